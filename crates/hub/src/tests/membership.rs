//! Lists of hosts that change: by reload, by an engine, by the operator.

use std::collections::BTreeSet;

use cluster::{Answer, Role, State};
use patroni::{Member, Report, Tags};
use settings::Topology;

use super::*;

const NODE: Answer = Answer {
    in_recovery: true,
    system: 7,
    timeline: 1,
    history: 1,
    read_only: false,
    started: 1,
    position: 1,
    behind: Duration::ZERO,
};

fn list(hosts: &str) -> String {
    format!("[databases]\napp = host={hosts} user=ann target_session_attrs=primary\n")
}

const TOLD: &str =
    "[databases]\napp = topology=patroni:http://e user=ann target_session_attrs=primary\nother = host=x\n";

impl Bench {
    fn node(&self, host: &str) -> NodeInfo {
        let nodes = self.hub.nodes();
        nodes.into_iter().find(|node| node.place.host.to_string() == host).expect("a node")
    }

    fn hosts(&self) -> BTreeSet<String> {
        self.hub.nodes().iter().map(|node| node.place.host.to_string()).collect()
    }

    /// The first of these is the primary.
    fn answer(&mut self, hosts: &[&str]) {
        for (index, host) in hosts.iter().enumerate() {
            let answer = Answer { in_recovery: index > 0, started: index as u64, ..NODE };
            let at = self.node(host).at;
            let _ = self.hub.probed(self.now, at, Ok(answer));
        }
    }

    fn reload(&mut self, ini: &str) -> Work<u64, u64> {
        self.hub.reload(self.now, inputs(ini, USERS)).work
    }

    fn tell(&mut self, hosts: &[(&str, bool)]) -> Learned<u64, u64> {
        let topology = self.topology();
        let member = |(host, noloadbalance): &(&str, bool)| Member {
            name: (*host).to_owned(),
            host: (*host).to_owned(),
            port: 5432,
            role: "replica".to_owned(),
            state: "running".to_owned(),
            tags: Tags { noloadbalance: *noloadbalance, ..Tags::default() },
        };
        let report = Report { members: hosts.iter().map(member).collect(), ..Report::default() };
        self.hub.told_members(self.now, &topology, Ok(report))
    }

    fn topology(&self) -> Topology {
        self.hub.settings().topologies().into_iter().next().expect("an engine").clone()
    }
}

fn started(ini: &str) -> Bench {
    let mut bench = Bench::new(ini);
    let _ = bench.hub.start(bench.now);
    bench
}

#[test]
fn a_list_that_is_partly_the_same_keeps_what_is_known() {
    let mut bench = started(&list("a,b"));
    bench.answer(&["a", "b"]);
    let (_, cell) = bench.member("app", "ann");
    let slot = bench.lend(&cell);
    let before = bench.node("a").at;
    let work = bench.reload(&list("b,a,c"));
    assert!(work.close.is_empty(), "no server is closed");
    assert_eq!(bench.hosts().len(), 3);
    assert_eq!((bench.node("a").at, bench.node("a").view.role), (before, Role::Primary));
    assert_eq!(bench.node("a").view.servers, 1);
    assert_eq!(bench.node("c").view.state, State::Unknown);
    assert!(bench.hub.has_node(&cell.key), "nobody waits for the new one");
    assert_eq!(bench.release(&cell, slot), After::Idle);
}

#[test]
fn a_host_that_goes_leaves_a_node_whose_servers_end_when_free() {
    let mut bench = started(&list("a,b"));
    bench.answer(&["a", "b"]);
    let (_, cell) = bench.member("app", "ann");
    bench.lend(&cell);
    let before = bench.node("a").at;
    let work = bench.reload(&list("b"));
    assert_eq!(work.recheck, [before.cluster]);
    assert_eq!(bench.hub.fate(cell.id, before), cluster::Fate::WhenFree);
    assert!(!bench.hub.has_node(&cell.key), "a standby is left");
    assert_eq!(bench.hosts().into_iter().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_list_with_nobody_of_the_old_one_is_another_cluster() {
    let mut bench = started(&list("a,b"));
    bench.answer(&["a", "b"]);
    let old = bench.node("a").at;
    let work = bench.reload(&list("c"));
    assert_ne!(bench.node("c").at.cluster, old.cluster);
    assert!(work.recheck.contains(&old.cluster), "servers of the old one are looked at");
}

#[test]
fn a_listener_goes_to_the_primary_alone_and_leaves_what_no_longer_is_one() {
    let mut bench = started(&list("a,b"));
    let (_, cell) = bench.member("app", "ann");
    let order = |bench: &mut Bench| bench.hub.listen_order(bench.now, &cell);
    assert!(order(&mut bench).is_none(), "nobody knows the primary yet");
    bench.answer(&["a", "b"]);
    let on = |bench: &mut Bench| order(bench).expect("a primary").node.expect("of the cluster");
    let (first, second) = (bench.node("a").at, bench.node("b").at);
    assert_eq!(on(&mut bench), first);
    assert!(!bench.hub.is_no_place_to_listen(first));
    assert!(bench.hub.is_no_place_to_listen(second), "a standby hears nothing");
    for _ in 0..2 {
        let _ = bench.hub.probed(bench.now, first, Err(cluster::Failure::Silent));
    }
    assert!(bench.hub.is_no_place_to_listen(first), "it is frozen");
    assert!(order(&mut bench).is_none());
    let promoted = Answer { in_recovery: false, timeline: 2, started: 1, ..NODE };
    let _ = bench.hub.probed(bench.now, second, Ok(promoted));
    assert_eq!(on(&mut bench), second);
    assert!(!bench.hub.is_no_place_to_listen(second));
    // Thawed, it says what it was.
    let _ = bench.hub.probed(bench.now, first, Ok(Answer { in_recovery: false, ..NODE }));
    assert!(bench.hub.is_no_place_to_listen(first));
    // A node that is drained, or of a cluster that is gone.
    let _ = bench.hub.set_drained(bench.now, "b", true);
    assert!(bench.hub.is_no_place_to_listen(second));
    let _ = bench.reload("[databases]\napp = host=a,b user=ann\n");
    assert!(bench.hub.is_no_place_to_listen(second));
    assert_eq!(order(&mut bench).expect("any host").places.len(), 2);
}

#[test]
fn a_list_that_another_entry_still_has_stays_its_own() {
    let two = |other: &str| {
        let entry = "user=ann target_session_attrs=primary";
        format!("[databases]\napp = host=a,b {entry}\nother = host={other} {entry}\n")
    };
    let mut bench = started(&two("a,b"));
    let shared = bench.node("b").at.cluster;
    let _ = bench.reload(&two("a,c"));
    assert_eq!(bench.node("b").at.cluster, shared);
    assert_ne!(bench.node("c").at.cluster, shared);
}

#[test]
fn drained_nodes_are_named_by_host_and_port_and_stay_so() {
    let mut bench = started(&list("a,b"));
    bench.answer(&["a", "b"]);
    for (name, is_known) in [("c", false), ("a:5433", false), ("a:", false), ("a:5432", true), ("a", true)] {
        let drained = bench.hub.set_drained(bench.now, name, true);
        assert_eq!(drained.is_ok(), is_known, "{name}");
        let wanted = if is_known { State::Drained } else { State::Up };
        assert_eq!(bench.node("a").view.state, wanted, "{name}");
        let _ = bench.hub.set_drained(bench.now, "a", false);
    }
    let _ = bench.hub.set_drained(bench.now, "b", true);
    let _ = bench.reload(&list("a,b,c"));
    assert_eq!(bench.node("b").view.state, State::Drained);
}

#[test]
fn members_that_are_told_are_hosts() {
    let mut bench = started(TOLD);
    let (_, cell) = bench.member("app", "ann");
    assert!(!bench.hub.has_node(&cell.key) && bench.hosts().is_empty());
    assert_eq!(bench.hub.untold(), [("app".to_owned(), "not told yet".to_owned())]);
    assert!(bench.hub.lookup_order(bench.now, &cell).is_none(), "no other place is tried");
    let learned = bench.tell(&[("a", false), ("b", true)]);
    assert_eq!(learned.reload.expect("a change").changes.databases_changed, ["app"]);
    bench.answer(&["a", "b"]);
    assert!(bench.hub.has_node(&cell.key) && bench.hub.untold().is_empty());
    let info = bench.hub.topology_info(&bench.node("b"));
    assert_eq!((info.member.as_str(), info.tags.as_str()), ("b replica running", "noloadbalance"));
    assert!(bench.tell(&[("b", true), ("a", false)]).reload.is_none(), "the same members");
    let row = bench.hub.database_rows().into_iter().find(|row| row.name == "app");
    assert_eq!(row.and_then(|row| row.host).as_deref(), Some("a,b"));
}

#[test]
fn not_being_told_changes_nothing_and_is_said_once() {
    let mut bench = started(TOLD);
    let _ = bench.tell(&[("a", false)]);
    bench.answer(&["a"]);
    let topology = bench.topology();
    let mut fail = |words: &str| {
        let learned = bench.hub.told_members(bench.now, &topology, Err(words.to_owned()));
        assert!(learned.reload.is_none());
        learned.work.news.len()
    };
    assert_eq!([fail("no way"), fail("no way"), fail("other"), fail("other")], [1, 0, 1, 0]);
    assert_eq!(bench.hub.topology_info(&bench.node("a")).whole, "not told: other");
    let told = bench.tell(&[("a", false)]);
    assert_eq!(told.work.news.len(), 1, "it is said that it is over");
    assert_eq!(bench.hub.topology_info(&bench.node("a")).whole, "");
}

#[test]
fn reload_keeps_members_that_were_told() {
    let mut bench = started(TOLD);
    let _ = bench.tell(&[("a", false), ("b", true)]);
    bench.answer(&["a", "b"]);
    let before = bench.node("a").at;
    assert!(bench.reload(TOLD).is_empty());
    assert_eq!(bench.node("a").at, before);
    // Another list of URLs: the hosts stay until those have answered.
    let _ = bench.reload(&TOLD.replace("http://e", "http://f,http://e"));
    assert_eq!(bench.node("a").at, before);
    assert!(bench.tell(&[("a", false)]).reload.is_some());
    assert_eq!(bench.node("a").at, before);
    // An engine that is no longer named has nothing to say.
    let _ = bench.reload(&list("a"));
    let gone = settings(TOLD);
    let gone = (*gone.topologies().first().expect("an engine")).clone();
    let learned = bench.hub.told_members(bench.now, &gone, Err("late".to_owned()));
    assert!(learned.reload.is_none() && learned.work.is_empty());
}

#[test]
fn health_is_what_a_newcomer_would_find() {
    let mut bench = started(&list("a"));
    assert_eq!(bench.hub.fitness("app"), Fitness::NoNode);
    bench.answer(&["a"]);
    assert_eq!((bench.hub.fitness("app"), bench.hub.fitness("none")), (Fitness::Fit, Fitness::Unknown));
    bench.hub.disable(bench.now, "app").expect("it is there");
    assert_eq!(bench.hub.fitness("app"), Fitness::Disabled);
    bench.hub.enable(bench.now, "app").expect("it is there");
    let _ = bench.hub.pause(bench.now, &database("app"));
    assert_eq!((bench.hub.fitness("app"), bench.hub.readiness()), (Fitness::Paused, Readiness::Ready));
    let _ = bench.hub.pause(bench.now, &Scope::All);
    assert_eq!(bench.hub.readiness(), Readiness::Paused);
    let _ = bench.hub.shutdown(console::Shutdown::WaitForClients);
    assert_eq!(bench.hub.readiness(), Readiness::Draining);
}
