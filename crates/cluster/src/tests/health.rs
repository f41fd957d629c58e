//! When a node is out, and when it is asked.

use super::{Bench, PRIMARY, STANDBY};
use crate::{Failure, Fate, NodeId, Probe, Role, Sign, State, Wanted};

#[test]
fn one_failure_is_none_and_two_are_a_verdict() {
    for (failure, fate) in
        [(Failure::Refused, Fate::WhenFree), (Failure::Lost, Fate::WhenFree), (Failure::Silent, Fate::AtOnce)]
    {
        let mut bench = Bench::of(&[PRIMARY]);
        let _ = bench.fails(0, failure);
        assert_eq!(bench.chosen(Wanted::Primary), Some(0), "{failure:?}");
        assert_eq!(bench.fate(0, Wanted::Primary), Fate::Keep);
        let effects = bench.fails(0, failure);
        assert!(effects.changed);
        assert_eq!(bench.chosen(Wanted::Primary), None, "{failure:?}");
        assert_eq!(bench.fate(0, Wanted::Primary), fate, "{failure:?}");
    }
}

#[test]
fn what_says_nothing_about_health_changes_nothing() {
    for failure in [Failure::Name, Failure::Full, Failure::Denied] {
        let mut bench = Bench::of(&[PRIMARY]);
        for _ in 0..10 {
            let _ = bench.fails(0, failure);
        }
        assert_eq!(bench.chosen(Wanted::Primary), Some(0), "{failure:?}");
        assert_eq!(bench.view(0).failure, Some(failure));
    }
}

#[test]
fn a_node_that_shuts_down_gets_no_more_and_keeps_what_it_has() {
    let mut bench = Bench::of(&[PRIMARY]);
    let _ = bench.fails(0, Failure::Leaving);
    bench.check(0, Role::Primary, State::Leaving);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    assert_eq!(bench.fate(0, Wanted::Primary), Fate::WhenFree);
}

#[test]
fn a_node_that_starts_is_down_until_it_answers() {
    let mut bench = Bench::of(&[PRIMARY]);
    let _ = bench.fails(0, Failure::Starting);
    bench.check(0, Role::Primary, State::Down);
    let effects = bench.says(0, PRIMARY);
    assert!(effects.changed);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
}

#[test]
fn all_nodes_are_asked_at_first_and_then_in_their_time() {
    let mut bench = Bench::new(2);
    let effects = bench.cluster.tick(bench.now);
    let all = [0, 1].map(|node| Probe { node: NodeId(node), fresh: true });
    assert_eq!(effects.probes, all);
    assert!(bench.cluster.tick(bench.now).probes.is_empty(), "one at a time");
    for _ in 0..2 {
        let _ = bench.says(0, PRIMARY);
        let _ = bench.says(1, STANDBY);
    }
    bench.pass(399);
    assert!(bench.cluster.next_tick() > bench.now);
    assert!(bench.cluster.tick(bench.now).probes.is_empty());
    bench.pass(102);
    assert_eq!(bench.cluster.tick(bench.now).probes.len(), 2);
}

#[test]
fn without_a_primary_nodes_are_asked_more_often() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    bench.dies(0, Failure::Refused);
    let _ = bench.says(1, STANDBY);
    bench.pass(101);
    assert!(!bench.cluster.tick(bench.now).probes.is_empty());
}

#[test]
fn traffic_has_a_node_asked_at_once_and_not_without_end() {
    let mut bench = Bench::of(&[PRIMARY]);
    let effects = bench.cluster.heard(bench.now, NodeId(0), Sign::Lost);
    assert_eq!(effects.probes, [Probe { node: NodeId(0), fresh: true }]);
    for _ in 0..100 {
        let effects = bench.cluster.heard(bench.now, NodeId(0), Sign::ConnectFailed);
        assert!(effects.probes.is_empty(), "while one is under way, no other");
    }
    // What was heard meanwhile is not forgotten.
    assert_eq!(bench.says(0, PRIMARY).probes.len(), 1);
    assert!(bench.says(0, PRIMARY).probes.is_empty());
}

#[test]
fn one_probe_of_four_makes_its_own_connection() {
    let mut bench = Bench::new(1);
    let mut fresh = Vec::new();
    for _ in 0..9 {
        bench.pass(1000);
        let probes = bench.cluster.tick(bench.now).probes;
        fresh.extend(probes.iter().map(|probe| u8::from(probe.fresh)));
        let _ = bench.says(0, PRIMARY);
    }
    assert_eq!(fresh, [1, 0, 0, 1, 0, 0, 0, 1, 0]);
}
