//! Which clusters there are, and which nodes each of them has: by the lists of hosts that entries name.
//!
//! A list that has changed stays the same cluster if somebody of it stayed: its nodes in both lists keep what is known
//! of them, and their connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Cluster, Limits, NodeId};
use console::Failure;
use model::Moment;
use settings::{Database, Settings};

use crate::clusters::{ClusterId, History, NodeRef, Place, Watched, monitored, places};
use crate::hub::Hub;
use crate::work::Work;

impl<C: Clone, S: Clone> Hub<C, S> {
    /// Makes, changes and forgets clusters as the settings say.
    pub(crate) fn renew_clusters(&mut self, now: Moment, work: &mut Work<C, S>) {
        let settings = Arc::clone(&self.settings);
        let mut entries: BTreeMap<Vec<Place>, Vec<(&str, &Database)>> = BTreeMap::new();
        for (name, database) in monitored(&settings) {
            entries.entry(places(&settings, database)).or_default().push((name, database));
        }
        for (list, sharing) in &entries {
            let limits = limits(&settings, sharing);
            let known = self.clusters.by_places.get(list).copied();
            let left = |other: &Vec<Place>| !entries.contains_key(other);
            let id = match known.or_else(|| self.changed_list(list, left)) {
                Some(id) => id,
                None => self.new_cluster(now, list, limits),
            };
            self.set_members(now, id, list, work);
            if let Some(watched) = self.clusters.all.get_mut(&id) {
                watched.cluster.set_limits(limits);
                watched.entry = sharing[0].0.to_owned();
            }
        }
        let clusters = &mut self.clusters;
        clusters.by_places.retain(|list, _| entries.contains_key(list));
        let kept: Vec<ClusterId> = clusters.by_places.values().copied().collect();
        // Their servers are no pool's any more.
        work.recheck.extend(clusters.all.keys().filter(|id| !kept.contains(id)));
        clusters.all.retain(|id, _| kept.contains(id));
    }

    /// The cluster of a list that nobody names any more and that is partly the same.
    fn changed_list(&mut self, list: &[Place], is_left: impl Fn(&Vec<Place>) -> bool) -> Option<ClusterId> {
        let shares = |other: &Vec<Place>| other.iter().any(|place| list.contains(place));
        let lists = &mut self.clusters.by_places;
        let old = lists.keys().find(|other| is_left(other) && shares(other)).cloned()?;
        let id = lists.remove(&old)?;
        lists.insert(list.to_vec(), id);
        Some(id)
    }

    fn new_cluster(&mut self, now: Moment, list: &[Place], limits: Limits) -> ClusterId {
        let clusters = &mut self.clusters;
        let mut cluster = Cluster::new(now, list.len(), limits);
        let shares = |known: &&Vec<Place>| known.iter().any(|place| list.contains(place));
        let before = clusters.by_places.keys().find(shares).and_then(|known| clusters.by_places.get(known));
        if let Some(known) = before.and_then(|id| clusters.all.get(id)) {
            cluster.inherit(&known.cluster);
        }
        clusters.last += 1;
        let id = ClusterId(clusters.last);
        let watched =
            Watched { cluster, places: list.to_vec(), entry: String::new(), history: History::default() };
        clusters.all.insert(id, watched);
        clusters.by_places.insert(list.to_vec(), id);
        id
    }

    /// Adds and removes nodes, so that they are those of the list.
    fn set_members(&mut self, now: Moment, id: ClusterId, list: &[Place], work: &mut Work<C, S>) {
        let Some(watched) = self.clusters.all.get_mut(&id) else { return };
        let has = |watched: &Watched, place: &Place| {
            watched.cluster.ids().any(|node| watched.places[node.index()] == *place)
        };
        let fresh: Vec<&Place> = list.iter().filter(|place| !has(watched, place)).collect();
        for place in fresh {
            let Some(node) = watched.cluster.add(now) else { continue };
            match watched.places.get_mut(node.index()) {
                Some(known) => *known = place.clone(),
                None => watched.places.push(place.clone()),
            }
        }
        let is_gone = |node: &NodeId| !list.contains(&watched.places[node.index()]);
        let gone: Vec<NodeId> = watched.cluster.ids().filter(is_gone).collect();
        for node in gone {
            work.extend(self.with_cluster(now, id, |cluster| cluster.remove(node)));
        }
    }

    /// `DRAIN NODE` and `UNDRAIN NODE`: a host, with or without its port, in every cluster that has it.
    pub fn set_drained(&mut self, now: Moment, name: &str, is_drained: bool) -> Result<Work<C, S>, Failure> {
        let meant: Vec<NodeRef> =
            self.nodes().into_iter().filter(|node| is_named(&node.place, name)).map(|node| node.at).collect();
        if meant.is_empty() {
            return Err(Failure::NoSuchNode(name.to_owned()));
        }
        let mut work = Work::none();
        for at in meant {
            work.extend(
                self.with_cluster(now, at.cluster, |cluster| cluster.set_drained(at.node, is_drained)),
            );
        }
        Ok(work)
    }
}

/// `host`, `host:port`, and `[address]:port` for what has colons itself.
fn is_named(place: &Place, name: &str) -> bool {
    let (host, port) = (place.host.to_string(), place.port);
    name == host || name == format!("{host}:{port}") || name == format!("[{host}]:{port}")
}

/// Entries that share a cluster share its limits: the strictest of each kind.
fn limits(settings: &Settings, sharing: &[(&str, &Database)]) -> Limits {
    let bytes = sharing.iter().filter_map(|(_, database)| database.max_replica_lag_bytes);
    let times = sharing.iter().filter_map(|(_, database)| database.max_replica_lag);
    Limits {
        interval: settings.general.monitor_interval.max(INTERVAL_LEAST),
        lag_bytes: bytes.filter(|most| *most > 0).min().map(u64::from),
        lag_time: times.filter(|most| !most.is_zero()).min(),
        is_independent: sharing.iter().any(|(_, database)| database.independent_hosts),
        ..Limits::default()
    }
}

/// However the setting reads, nodes are not asked in a tight loop.
const INTERVAL_LEAST: Duration = Duration::from_millis(20);
