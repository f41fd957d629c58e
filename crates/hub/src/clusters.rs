//! Clusters: the lists of hosts that are monitored, and the pools whose servers are there.
//!
//! Entries that name the same hosts share one cluster, whatever role each of them wants. What a node is, and who may
//! have it, is `cluster`'s to say; this joins it to pools: a pool for which no node is fit is held. Which lists there
//! are, and what becomes of them when they change, stands in `membership`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Balance, Cluster, Effects, Fact, Failure, Fate, NodeId, Sign, Wanted, What};
use model::{Moment, PoolId};
use settings::{Database, Effective, Host, LoadBalance, SessionAttrs, Settings};

use crate::cell::PoolKey;
use crate::hub::Hub;
use crate::limits::OpenOrder;
use crate::work::Work;

/// A cluster's number, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u32);

/// One node of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRef {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node in it.
    pub node: NodeId,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The host.
    pub host: Host,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A node to ask, and how to get there.
#[derive(Debug)]
pub struct ProbeOrder {
    /// The node.
    pub at: NodeRef,
    /// By a new connection.
    pub fresh: bool,
    /// The way there; the same for all probes of the node as long as settings and secrets are.
    pub order: OpenOrder,
    /// For connecting, logging in and asking, each.
    pub limit: Duration,
}

/// Something about a cluster for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The words.
    pub text: String,
    /// Whether an operator should be alarmed.
    pub is_alarming: bool,
}

/// What the tables show of a node.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The entries that it serves, between commas.
    pub databases: String,
    /// Where it is.
    pub place: Place,
    /// What is known.
    pub view: cluster::NodeView,
    /// Which.
    pub at: NodeRef,
}

pub(crate) struct Watched {
    pub(crate) cluster: Cluster,
    /// Where each node is, by its number; those that are gone too.
    pub(crate) places: Vec<Place>,
    /// The entry whose settings say how it is monitored: the first that names these hosts.
    pub(crate) entry: String,
    /// What befell it.
    pub(crate) history: History,
}

/// What befell a cluster since it is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Who was primary last.
    last_primary: Option<NodeId>,
    /// How often that was another than before.
    pub failovers: u64,
    /// How often there was none any more.
    pub losses: u64,
}

impl History {
    fn note(&mut self, fact: &Fact) {
        match fact.what {
            What::Primary(_) => {
                self.failovers += u64::from(self.last_primary.is_some() && self.last_primary != fact.node);
                self.last_primary = fact.node;
            }
            What::NoPrimary => self.losses += u64::from(self.last_primary.is_some()),
            _ => {}
        }
    }
}

/// All clusters.
#[derive(Default)]
pub(crate) struct Clusters {
    pub(crate) by_places: BTreeMap<Vec<Place>, ClusterId>,
    pub(crate) all: BTreeMap<ClusterId, Watched>,
    pub(crate) last: u32,
}

/// The name of the pattern for entries made on demand.
const AUTO: &str = "*";
/// What the monitor connects to for these, if nothing else is said.
const AUTO_DBNAME: &str = "postgres";

/// The hosts of an entry; none, if they are still to be fetched.
pub(crate) fn places(settings: &Settings, database: &Database) -> Vec<Place> {
    if database.hosts.is_empty() && database.topology.is_some() {
        return Vec::new();
    }
    if database.hosts.is_empty() {
        let host = Host::Unix(settings.general.unix_socket_dir.clone());
        return vec![Place { host, port: database.ports.of(0) }];
    }
    let place = |(index, host): (usize, &Host)| Place { host: host.clone(), port: database.ports.of(index) };
    database.hosts.iter().enumerate().map(place).collect()
}

pub(crate) fn wanted(attrs: SessionAttrs) -> Wanted {
    match attrs {
        SessionAttrs::Any => Wanted::Any,
        SessionAttrs::ReadWrite => Wanted::ReadWrite,
        SessionAttrs::ReadOnly => Wanted::ReadOnly,
        SessionAttrs::Primary => Wanted::Primary,
        SessionAttrs::Standby => Wanted::Standby,
        SessionAttrs::PreferStandby => Wanted::PreferStandby,
    }
}

pub(crate) fn balance(word: LoadBalance) -> Balance {
    match word {
        LoadBalance::RoundRobin => Balance::RoundRobin,
        LoadBalance::Disable => Balance::First,
        LoadBalance::LeastConnections => Balance::Least,
        LoadBalance::Random => Balance::Random,
    }
}

pub(crate) fn monitored(settings: &Settings) -> impl Iterator<Item = (&str, &Database)> {
    let named = settings.databases.iter().map(|(name, database)| (name.as_str(), database));
    let all = named.chain(settings.autodb.iter().map(|database| (AUTO, database)));
    all.filter(|(_, database)| database.target_session_attrs.is_some())
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// After the settings have changed, each pool is held or not as its cluster is now.
    pub(crate) fn hold_or_not(&mut self, now: Moment, work: &mut Work<C, S>) {
        let ids: Vec<PoolId> = self.pools.keys().copied().collect();
        for id in ids {
            self.hold_or_not_one(now, id, work);
        }
    }

    fn hold_or_not_one(&mut self, now: Moment, id: PoolId, work: &mut Work<C, S>) {
        let Some(cell) = self.pool(id).map(Arc::clone) else { return };
        if self.has_node(&cell.key) {
            let open = cell.lock().unhold(now);
            work.open_all(&cell, open);
        } else if cell.key.reader.is_some() {
            // There are others for reads.
            let mut pool = cell.lock();
            pool.hold(now);
            work.reroute.extend(pool.refuse_waiting());
        } else {
            cell.lock().hold(now);
        }
    }

    /// Whether a server for this pool has somewhere to go, as far as that is known.
    pub(crate) fn has_node(&self, key: &PoolKey) -> bool {
        if let Some(place) = &key.reader {
            return self.reader_of(key, place).is_some_and(|(id, node)| {
                let watched = self.clusters.all.get(&id);
                watched.is_some_and(|watched| watched.cluster.may_have(node, Wanted::Standby))
            });
        }
        self.cluster_of(key).is_none_or(|(id, wanted, _)| {
            self.clusters.all.get(&id).is_some_and(|watched| watched.cluster.can_choose(wanted))
        })
    }

    /// The node for one more server of a pool: `Err` if it has a cluster, and nobody there is fit.
    pub(crate) fn choose(&mut self, now: Moment, key: &PoolKey) -> Result<Option<(NodeRef, Place)>, ()> {
        if let Some(place) = &key.reader {
            let (id, node) = self.reader_of(key, place).ok_or(())?;
            let watched = self.clusters.all.get_mut(&id).ok_or(())?;
            let fits = watched.cluster.choose_this(node, Wanted::Standby);
            return fits.then(|| Some((NodeRef { cluster: id, node }, place.clone()))).ok_or(());
        }
        let Some((id, wanted, balance)) = self.cluster_of(key) else { return Ok(None) };
        let weights = self.weights(key, id);
        let watched = self.clusters.all.get_mut(&id).ok_or(())?;
        let node = watched.cluster.choose(now, wanted, balance, &weights).ok_or(())?;
        Ok(Some((NodeRef { cluster: id, node }, watched.places[node.index()].clone())))
    }

    /// A node for a connection that is not a pool's: the primary, or any that answers.
    pub(crate) fn any_node(
        &mut self,
        now: Moment,
        key: &PoolKey,
        is_of_primary: bool,
    ) -> Option<(NodeRef, Place)> {
        let (id, ..) = self.cluster_of(key)?;
        let watched = self.clusters.all.get_mut(&id)?;
        let wanted = if is_of_primary { Wanted::Primary } else { Wanted::Any };
        let node = watched.cluster.choose(now, wanted, Balance::First, &[])?;
        watched.cluster.released(node);
        Some((NodeRef { cluster: id, node }, watched.places[node.index()].clone()))
    }

    /// Whether a connection that listens on this node hears nothing of worth there any more: it is out, or not the
    /// primary, and others notify.
    pub fn is_no_place_to_listen(&self, at: NodeRef) -> bool {
        let watched = self.clusters.all.get(&at.cluster);
        watched.is_none_or(|watched| watched.cluster.fate(at.node, Wanted::Primary) != Fate::Keep)
    }

    pub(crate) fn cluster_of(&self, key: &PoolKey) -> Option<(ClusterId, Wanted, Balance)> {
        if self.clusters.all.is_empty() {
            return None;
        }
        let database = self.database(&self.settings, &key.database)?;
        let attrs = database.target_session_attrs?;
        let id = self.clusters.by_places.get(&places(&self.settings, database))?;
        let wanted = if key.reader.is_some() { Wanted::Standby } else { wanted(attrs) };
        Some((*id, wanted, balance(database.load_balance_hosts)))
    }

    /// What a pool's servers are for, if it has a cluster.
    pub fn wanted_of(&self, pool: PoolId) -> Option<Wanted> {
        let key = &self.pools.get(&pool)?.cell.key;
        self.cluster_of(key).map(|(_, wanted, _)| wanted)
    }

    /// A probe has ended.
    pub fn probed(&mut self, now: Moment, at: NodeRef, outcome: Result<Answer, Failure>) -> Work<C, S> {
        self.with_cluster(now, at.cluster, |cluster| cluster.probed(now, at.node, outcome))
    }

    /// Traffic has shown something about a node.
    pub fn heard(&mut self, now: Moment, at: NodeRef, sign: Sign) -> Work<C, S> {
        self.with_cluster(now, at.cluster, |cluster| cluster.heard(now, at.node, sign))
    }

    /// A server that was opened on a node is gone, or never came to be.
    pub fn node_released(&mut self, at: NodeRef) {
        if let Some(watched) = self.clusters.all.get_mut(&at.cluster) {
            watched.cluster.released(at.node);
        }
    }

    /// What is to be done with a server of a pool on a node.
    pub fn fate(&self, pool: PoolId, at: NodeRef) -> Fate {
        let Some(record) = self.pools.get(&pool) else { return Fate::WhenFree };
        match self.cluster_of(&record.cell.key) {
            Some((id, wanted, _)) if id == at.cluster => self
                .clusters
                .all
                .get(&id)
                .map_or(Fate::WhenFree, |watched| watched.cluster.fate(at.node, wanted)),
            _ => Fate::WhenFree,
        }
    }

    /// All nodes.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes = Vec::new();
        for (list, id) in &self.clusters.by_places {
            let Some(watched) = self.clusters.all.get(id) else { continue };
            let databases = self.entries_of(list);
            for node in watched.cluster.ids() {
                let Some(view) = watched.cluster.view(node) else { continue };
                let place = watched.places[node.index()].clone();
                let at = NodeRef { cluster: *id, node };
                nodes.push(NodeInfo { databases: databases.clone(), place, view, at });
            }
        }
        nodes
    }

    /// What befell each cluster, by the entries that it serves.
    pub fn histories(&self) -> Vec<(String, History)> {
        let known = self.clusters.by_places.iter();
        let known = known.filter_map(|(list, id)| Some((list, self.clusters.all.get(id)?)));
        known.map(|(list, watched)| (self.entries_of(list), watched.history)).collect()
    }

    /// The entries that name these hosts, between commas.
    fn entries_of(&self, list: &[Place]) -> String {
        let named =
            monitored(&self.settings).filter(|(_, database)| places(&self.settings, database) == list);
        named.map(|(name, _)| name).collect::<Vec<_>>().join(",")
    }

    /// The nodes that are to be asked by now.
    pub(crate) fn tick_clusters(&mut self, now: Moment, work: &mut Work<C, S>) {
        let all = self.clusters.all.iter();
        let due: Vec<ClusterId> =
            all.filter(|(_, watched)| watched.cluster.next_tick() <= now).map(|(id, _)| *id).collect();
        for id in due {
            work.extend(self.with_cluster(now, id, |cluster| cluster.tick(now)));
        }
    }

    /// When the next node is to be asked.
    pub(crate) fn clusters_due(&self) -> Moment {
        let due = self.clusters.all.values().map(|watched| watched.cluster.next_tick());
        due.min().unwrap_or(Moment::NEVER)
    }

    pub(crate) fn with_cluster(
        &mut self,
        now: Moment,
        id: ClusterId,
        event: impl FnOnce(&mut Cluster) -> Effects,
    ) -> Work<C, S> {
        let mut work = Work::none();
        // It may have been forgotten by a reload meanwhile.
        let Some(watched) = self.clusters.all.get_mut(&id) else { return work };
        let effects = event(&mut watched.cluster);
        for fact in &effects.facts {
            watched.history.note(fact);
            let what = match fact.node {
                Some(node) => format!("{} {}", watched.places[node.index()], fact.what),
                None => fact.what.to_string(),
            };
            let text = format!("cluster of {}: {what}", watched.entry);
            work.news.push(News { text, is_alarming: fact.what.is_alarming() });
        }
        for probe in effects.probes {
            work.probe.extend(self.probe_order(NodeRef { cluster: id, node: probe.node }, probe.fresh));
        }
        if effects.changed {
            work.recheck.push(id);
            self.hold_or_not(now, &mut work);
        }
        work
    }

    fn probe_order(&self, at: NodeRef, fresh: bool) -> Option<ProbeOrder> {
        let settings = &self.settings;
        let watched = self.clusters.all.get(&at.cluster)?;
        let database = match watched.entry.as_str() {
            AUTO => settings.autodb.as_ref()?,
            name => settings.databases.get(name)?,
        };
        let effective = Effective { general: &settings.general, database: Some(database), user: None };
        let user = effective.monitor_user()?;
        let is_forced = database.user.as_deref() == Some(user);
        let secret = self.secrets.for_server(Some(database), &watched.entry, user, is_forced);
        let own = match watched.entry.as_str() {
            AUTO => AUTO_DBNAME,
            name => effective.server_dbname(name),
        };
        let general = &settings.general;
        let order = OpenOrder {
            places: vec![watched.places.get(at.node.index())?.clone()],
            dbname: effective.monitor_dbname().unwrap_or(own).to_owned(),
            user: user.to_owned(),
            secret,
            allowed: general.server_auth_allowed.clone(),
            parameters: vec![("application_name", "howdah monitor".to_owned())],
            tls: general.server_tls_sslmode,
            connect_query: None,
            connect_timeout: general.monitor_timeout,
            node: Some(at),
        };
        Some(ProbeOrder { at, fresh, order, limit: general.monitor_timeout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_is_another_primary_and_not_the_first_or_the_same() {
        let mut history = History::default();
        let mut note = |node: Option<u16>, what| {
            history.note(&Fact { node: node.map(NodeId), what });
            (history.failovers, history.losses)
        };
        assert_eq!(note(None, What::NoPrimary), (0, 0), "there was none to be lost");
        assert_eq!(note(Some(1), What::Primary(1)), (0, 0));
        assert_eq!(note(None, What::NoPrimary), (0, 1));
        assert_eq!(note(Some(1), What::Primary(1)), (0, 1));
        assert_eq!(note(Some(0), What::Up(true)), (0, 1));
        assert_eq!(note(Some(2), What::Primary(2)), (1, 1));
        assert_eq!(note(Some(1), What::Primary(3)), (2, 1));
    }
}
