//! Nodes that come and go while the others stay what they are.

use super::{Bench, PRIMARY, STANDBY};
use crate::{Answer, Fate, NodeId, Role, State, Wanted};

#[test]
fn a_node_that_comes_is_asked_and_disturbs_nobody() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    let node = bench.cluster.add(bench.now).unwrap();
    assert_eq!(node, NodeId(2));
    assert_eq!((bench.chosen(Wanted::Primary), bench.chosen(Wanted::Standby)), (Some(0), Some(1)));
    let asked = bench.cluster.tick(bench.now).probes;
    assert!(asked.iter().any(|probe| probe.node == node && probe.fresh));
    let _ = bench.says(2, STANDBY);
    bench.check(2, Role::Standby, State::Up);
    assert_eq!(bench.cluster.len(), 3);
}

#[test]
fn a_node_that_goes_gets_nothing_more_and_what_it_has_ends_when_free() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY, STANDBY]);
    assert_eq!(bench.chosen(Wanted::Standby), Some(1));
    let effects = bench.cluster.remove(NodeId(1));
    assert!(effects.changed && effects.facts.is_empty());
    assert_eq!(bench.fate(1, Wanted::Standby), Fate::WhenFree);
    assert_eq!(bench.fate(2, Wanted::Standby), Fate::Keep);
    assert_eq!((bench.chosen(Wanted::Standby), bench.chosen(Wanted::Standby)), (Some(2), Some(2)));
    assert_eq!(bench.cluster.ids().collect::<Vec<_>>(), [NodeId(0), NodeId(2)]);
    assert!(!bench.cluster.remove(NodeId(1)).changed, "it went before");
}

#[test]
fn a_number_is_used_again_only_when_nothing_is_on_it() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    assert_eq!(bench.chosen(Wanted::Standby), Some(1));
    let _ = bench.cluster.remove(NodeId(1));
    assert_eq!(bench.cluster.add(bench.now), Some(NodeId(2)), "a connection is left on the old one");
    bench.cluster.released(NodeId(1));
    assert_eq!(bench.cluster.add(bench.now), Some(NodeId(1)));
    // Nothing of what it was is left.
    assert_eq!(bench.view(1).role, Role::Unknown);
}

#[test]
fn a_late_answer_of_a_node_that_is_gone_is_not_heard() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    let _ = bench.cluster.remove(NodeId(1));
    let effects = bench.says(1, Answer { timeline: 9, in_recovery: false, ..STANDBY });
    assert!(effects.facts.is_empty() && !effects.changed);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
}

#[test]
fn a_primary_that_is_taken_from_the_list_is_written_to_no_more() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    let _ = bench.cluster.remove(NodeId(0));
    assert_eq!(bench.chosen(Wanted::Primary), None);
    let _ = bench.says(1, Answer { in_recovery: false, timeline: 2, ..STANDBY });
    assert_eq!(bench.chosen(Wanted::Primary), Some(1));
}

#[test]
fn a_node_without_readers_can_still_be_the_primary() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY, STANDBY]);
    assert!(bench.cluster.set_reads(NodeId(1), false).changed);
    assert_eq!((bench.chosen(Wanted::Standby), bench.chosen(Wanted::Standby)), (Some(2), Some(2)));
    assert_eq!(bench.fate(1, Wanted::Standby), Fate::WhenFree);
    assert_eq!(bench.fate(1, Wanted::Any), Fate::WhenFree);
    let _ = bench.says(1, Answer { in_recovery: false, timeline: 2, ..STANDBY });
    assert_eq!(bench.chosen(Wanted::ReadWrite), Some(1));
    assert_eq!(bench.fate(1, Wanted::ReadWrite), Fate::Keep);
}

#[test]
fn a_drained_primary_holds_its_writers_until_it_is_back() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    assert!(bench.cluster.set_drained(NodeId(0), true).changed);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    assert_eq!(bench.fate(0, Wanted::Primary), Fate::WhenFree);
    bench.check(0, Role::Primary, State::Drained);
    let _ = bench.cluster.set_drained(NodeId(0), false);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
}

#[test]
fn a_cluster_may_begin_with_nobody() {
    let mut bench = Bench::new(0);
    assert_eq!((bench.cluster.is_empty(), bench.chosen(Wanted::Any)), (true, None));
    assert_eq!(bench.cluster.next_tick(), model::Moment::NEVER);
    for answer in [PRIMARY, STANDBY] {
        let node = bench.cluster.add(bench.now).unwrap();
        let _ = bench.cluster.tick(bench.now);
        let _ = bench.says(node.0, answer);
    }
    assert_eq!((bench.chosen(Wanted::Primary), bench.chosen(Wanted::Standby)), (Some(0), Some(1)));
}
