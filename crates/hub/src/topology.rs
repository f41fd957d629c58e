//! Lists of hosts that an engine tells: what it said last, and the settings that follow from it.
//!
//! What is fetched stands in for `host` and `port` of the entries that name the engine, so that all that reads
//! settings finds it there, and a new list is taken up as a reload would be. What the engine says of roles and states
//! is shown and nothing more; a change in it is a reason to ask the members themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::{NodeId, Sign};
use model::Moment;
use patroni::{Member, Report, Roster};
use settings::{Host, Ports, Settings, Topology};

use crate::clusters::{ClusterId, News, NodeInfo, Place, places};
use crate::hub::Hub;
use crate::reload::Reload;
use crate::work::Work;

/// What is known of each engine that an entry names.
#[derive(Default)]
pub(crate) struct Topologies {
    known: BTreeMap<Topology, Known>,
}

#[derive(Default)]
struct Known {
    roster: Roster,
    is_paused: bool,
    switchover: Option<String>,
    /// Why it could not be asked last time.
    fault: Option<String>,
    /// The first answer, or failure, has come.
    is_heard: bool,
}

/// What came of an answer.
#[must_use]
pub struct Learned<C, S> {
    /// The members are others: settings are changed as by a reload.
    pub reload: Option<Reload<C, S>>,
    /// What is to be done besides.
    pub work: Work<C, S>,
}

/// What the tables show of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyInfo {
    /// What it says of the one member.
    pub member: String,
    /// What is said of the member by its owner.
    pub tags: String,
    /// What it says of the whole, and why it could not be asked last.
    pub whole: String,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// An engine was asked.
    pub fn told_members(
        &mut self,
        now: Moment,
        topology: &Topology,
        told: Result<Report, String>,
    ) -> Learned<C, S> {
        let mut learned = Learned { reload: None, work: Work::none() };
        if !self.settings.topologies().contains(topology) {
            return learned;
        }
        let report = match told {
            Ok(report) => report,
            Err(fault) => {
                self.not_told(topology, fault, &mut learned.work);
                return learned;
            }
        };
        let known = self.topologies.known.entry(topology.clone()).or_default();
        let leaders = |roster: &Roster| -> Vec<String> {
            roster
                .members()
                .filter(|member| is_leader(&member.role))
                .map(|member| member.name.clone())
                .collect()
        };
        let before = leaders(&known.roster);
        if known.fault.take().is_some() || !known.is_heard {
            learned.work.news.push(quiet(format!("{topology}: the members are told")));
        }
        known.is_heard = true;
        if known.is_paused != report.is_paused || known.switchover != report.switchover {
            known.is_paused = report.is_paused;
            known.switchover.clone_from(&report.switchover);
            learned.work.news.push(quiet(format!("{topology}: {}", known.whole())));
        }
        let is_changed = known.roster.take(report);
        let is_led_anew = leaders(&known.roster) != before;
        if is_changed {
            let list: Vec<String> =
                known.roster.members().map(|member| format!("{}:{}", member.host, member.port)).collect();
            learned.work.news.push(quiet(format!("{topology}: the members are {}", list.join(", "))));
            let mut settings = Settings::clone(&self.settings);
            self.fill_members(&mut settings);
            learned.reload = Some(self.set(now, settings));
        } else {
            self.mark_members(now, &mut learned.work);
        }
        if is_led_anew {
            self.doubt_members(now, topology, &mut learned.work);
        }
        learned
    }

    /// Nothing changes for that. It is said when it begins and when it is another reason.
    fn not_told(&mut self, topology: &Topology, fault: String, work: &mut Work<C, S>) {
        let known = self.topologies.known.entry(topology.clone()).or_default();
        if known.fault.as_ref() != Some(&fault) {
            let text = format!("{topology}: the members cannot be fetched, those known stay: {fault}");
            work.news.push(News { text, is_alarming: true });
        }
        known.fault = Some(fault);
    }

    /// Puts what is known of members into settings that were read. Of an engine that was not asked yet the entry keeps
    /// the hosts that it has.
    pub(crate) fn fill_members(&mut self, settings: &mut Settings) {
        let named: BTreeSet<Topology> = settings.topologies().into_iter().cloned().collect();
        self.topologies.known.retain(|topology, _| named.contains(topology));
        let old = Arc::clone(&self.settings);
        for (name, database) in settings.fetched() {
            let before = if name == "*" { old.autodb.as_ref() } else { old.databases.get(name) };
            let topology = database.topology.as_ref();
            let known = topology.and_then(|topology| self.topologies.known.get(topology));
            let members = known.map(|known| known.places()).filter(|members| !members.is_empty());
            match (members, before.filter(|before| before.topology.is_some())) {
                (Some(members), _) => {
                    let (hosts, ports): (Vec<Host>, Vec<u16>) = members.into_iter().unzip();
                    database.hosts = hosts;
                    database.ports = Ports::new(ports).unwrap_or_default();
                }
                (None, Some(before)) => {
                    database.hosts.clone_from(&before.hosts);
                    database.ports.clone_from(&before.ports);
                }
                (None, None) => {}
            }
        }
    }

    /// Members whose owners want no readers there have none.
    pub(crate) fn mark_members(&mut self, now: Moment, work: &mut Work<C, S>) {
        for (id, node, takes_reads) in self.marks() {
            work.extend(self.with_cluster(now, id, |cluster| cluster.set_reads(node, takes_reads)));
        }
    }

    fn marks(&self) -> Vec<(ClusterId, NodeId, bool)> {
        let mut marks = Vec::new();
        for (topology, known) in &self.topologies.known {
            for (id, node, place) in self.nodes_of(topology) {
                let member = known.member_at(&place);
                marks.push((id, node, !member.is_some_and(|member| member.tags.noloadbalance)));
            }
        }
        marks
    }

    /// Somebody else is said to lead: that is for the members to say, and they are asked at once.
    fn doubt_members(&mut self, now: Moment, topology: &Topology, work: &mut Work<C, S>) {
        for (id, node, _) in self.nodes_of(topology) {
            work.extend(self.with_cluster(now, id, |cluster| cluster.heard(now, node, Sign::RoleDiffers)));
        }
    }

    /// The nodes of the cluster that has the members of an engine.
    fn nodes_of(&self, topology: &Topology) -> Vec<(ClusterId, NodeId, Place)> {
        let all = self.settings.databases.values().chain(&self.settings.autodb);
        let Some(database) = all.into_iter().find(|database| database.topology.as_ref() == Some(topology))
        else {
            return Vec::new();
        };
        let id = self.clusters.by_places.get(&places(&self.settings, database));
        let Some((id, watched)) = id.and_then(|id| Some((*id, self.clusters.all.get(id)?))) else {
            return Vec::new();
        };
        let node = |node: NodeId| (id, node, watched.places[node.index()].clone());
        watched.cluster.ids().map(node).collect()
    }

    /// What an engine says of a node; nothing, if its cluster has none.
    pub fn topology_info(&self, node: &NodeInfo) -> TopologyInfo {
        let is_here =
            |topology: &&Topology| self.nodes_of(topology).iter().any(|(id, ..)| *id == node.at.cluster);
        let topology = self.settings.topologies().into_iter().find(is_here);
        let known = topology.and_then(|topology| self.topologies.known.get(topology));
        let Some(known) = known else { return TopologyInfo::default() };
        let member = known.member_at(&node.place);
        let words = member.map(|member| [&member.name, &member.role, &member.state].map(String::as_str));
        TopologyInfo {
            member: words.map(|words| words.join(" ").trim().to_owned()).unwrap_or_default(),
            tags: member.map(|member| member.tags.to_string()).unwrap_or_default(),
            whole: known.whole(),
        }
    }

    /// Entries whose members nobody has told yet, and why.
    pub fn untold(&self) -> Vec<(String, String)> {
        let named = self.settings.databases.iter().map(|(name, database)| (name.as_str(), database));
        let all = named.chain(self.settings.autodb.iter().map(|database| ("*", database)));
        let untold = all.filter(|(_, database)| database.hosts.is_empty());
        untold
            .filter_map(|(name, database)| {
                let known = self.topologies.known.get(database.topology.as_ref()?);
                let whole = known.map_or_else(|| "not told yet".to_owned(), Known::whole);
                Some((name.to_owned(), whole))
            })
            .collect()
    }
}

impl Known {
    fn member_at(&self, place: &Place) -> Option<&Member> {
        let is_there = |member: &&Member| {
            member.port == place.port && Host::parse(&member.host).as_ref() == Some(&place.host)
        };
        self.roster.members().find(is_there)
    }

    fn places(&self) -> Vec<(Host, u16)> {
        let members = self.roster.members();
        members.filter_map(|member| Some((Host::parse(&member.host)?, member.port))).collect()
    }

    fn whole(&self) -> String {
        let mut parts = Vec::new();
        if self.is_paused {
            parts.push("paused".to_owned());
        }
        parts.extend(self.switchover.clone());
        parts.extend(self.fault.as_ref().map(|fault| format!("not told: {fault}")));
        parts.join("; ")
    }
}

/// In the words of all its versions.
fn is_leader(role: &str) -> bool {
    ["leader", "master", "primary", "standby_leader"].contains(&role)
}

/// What listeners of databases of one engine have in common before its members are told.
pub(crate) fn landmark(topology: &Topology) -> Vec<Place> {
    let url = |url: &settings::Url| Place { host: url.host.clone(), port: url.port };
    topology.urls.iter().map(url).collect()
}

fn quiet(text: String) -> News {
    News { text, is_alarming: false }
}
