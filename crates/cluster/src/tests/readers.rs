//! Who may read where, and how the readers are spread.

use std::time::Duration;

use super::{Bench, PRIMARY, STANDBY};
use crate::{Answer, Balance, Failure, Fate, Limits, NodeId, Role, State, Wanted};

#[track_caller]
fn check(answers: &[Answer], wanted: Wanted, nodes: &[u16]) {
    let mut bench = Bench::of(answers);
    let mut chosen: Vec<u16> = (0..8).filter_map(|_| bench.chosen_by(wanted, Balance::RoundRobin)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, nodes, "{wanted:?}");
}

#[test]
fn each_word_of_libpq_means_what_it_means_there() {
    let all = [PRIMARY, STANDBY, Answer { started: 3, ..STANDBY }];
    check(&all, Wanted::Any, &[0, 1, 2]);
    check(&all, Wanted::Primary, &[0]);
    check(&all, Wanted::ReadWrite, &[0]);
    check(&all, Wanted::Standby, &[1, 2]);
    check(&all, Wanted::ReadOnly, &[1, 2]);
    check(&all, Wanted::PreferStandby, &[1, 2]);
    check(&[PRIMARY], Wanted::PreferStandby, &[0]);
    check(&[PRIMARY], Wanted::Standby, &[]);
    let read_only = Answer { read_only: true, ..PRIMARY };
    check(&[read_only], Wanted::ReadWrite, &[]);
    check(&[read_only], Wanted::ReadOnly, &[0]);
    check(&[read_only], Wanted::Primary, &[0]);
}

#[test]
fn readers_go_where_the_fewest_are() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY, STANDBY]);
    let mut counts = [0; 3];
    for _ in 0..10 {
        counts[usize::from(bench.chosen(Wanted::Standby).unwrap())] += 1;
    }
    assert_eq!(counts, [0, 5, 5]);
    (0..3).for_each(|_| bench.cluster.released(NodeId(1)));
    assert_eq!([bench.chosen(Wanted::Standby), bench.chosen(Wanted::Standby)], [Some(1), Some(1)]);
}

#[test]
fn a_replica_that_falls_behind_goes_and_comes_back_within_half_of_the_limit() {
    let limits =
        Limits { lag_bytes: Some(1000), lag_time: Some(Duration::from_secs(10)), ..Limits::default() };
    let behind = |bytes: u64, seconds: u64| Answer {
        position: PRIMARY.position - bytes,
        behind: Duration::from_secs(seconds),
        ..STANDBY
    };
    let mut bench = Bench::with(3, limits);
    for (node, answer) in [(0, PRIMARY), (1, behind(0, 0)), (2, behind(1000, 10))] {
        let _ = bench.says(node, answer);
    }
    for (answer, state) in [
        (behind(1001, 0), State::Lagging),
        (behind(900, 0), State::Lagging),
        (behind(501, 0), State::Lagging),
        (behind(500, 5), State::Up),
        (behind(1000, 10), State::Up),
        (behind(0, 11), State::Lagging),
        (behind(0, 6), State::Lagging),
        (behind(0, 5), State::Up),
    ] {
        let _ = bench.says(2, answer);
        bench.check(2, Role::Standby, state);
        let fate = if state == State::Up { Fate::Keep } else { Fate::WhenFree };
        assert_eq!(bench.fate(2, Wanted::Standby), fate);
    }
    // Behind, but the only one: whom it serves, it goes on serving.
    let _ = bench.says(2, behind(5000, 0));
    bench.dies(1, Failure::Refused);
    assert_eq!(bench.fate(2, Wanted::Standby), Fate::Keep);
    assert_eq!(bench.chosen(Wanted::PreferStandby), Some(0));
}

#[test]
fn readers_leave_a_node_that_was_promoted() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY, STANDBY]);
    bench.dies(0, Failure::Refused);
    let _ = bench.says(1, Answer { in_recovery: false, timeline: 2, ..STANDBY });
    assert_eq!(bench.fate(1, Wanted::Standby), Fate::WhenFree);
    assert_eq!(bench.fate(1, Wanted::PreferStandby), Fate::WhenFree);
    assert_eq!(bench.fate(1, Wanted::Any), Fate::Keep);
    assert_eq!(bench.fate(2, Wanted::Standby), Fate::Keep);
}

#[test]
fn a_node_that_comes_back_gets_its_share_slowly() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY, STANDBY]);
    bench.dies(2, Failure::Refused);
    for _ in 0..20 {
        assert_eq!(bench.chosen(Wanted::Standby), Some(1));
    }
    let _ = bench.says(2, STANDBY);
    let count = |bench: &mut Bench| (0..10).filter(|_| bench.chosen(Wanted::Standby) == Some(2)).count();
    let at_first = count(&mut bench);
    assert!((1..=4).contains(&at_first), "{at_first}");
    bench.pass(10_000);
    assert_eq!(count(&mut bench), 10);
}

#[test]
fn a_node_that_keeps_failing_must_prove_itself_before_it_has_readers() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    for proofs in [0, 2, 4, 8, 16, 16] {
        bench.dies(1, Failure::Lost);
        let _ = bench.says(1, STANDBY);
        for _ in 0..proofs {
            bench.check(1, Role::Standby, State::Settling);
            let _ = bench.says(1, STANDBY);
        }
        bench.check(1, Role::Standby, State::Up);
    }
    // A primary has no deputy: it is used at once.
    for _ in 0..5 {
        bench.dies(0, Failure::Lost);
        let _ = bench.says(0, PRIMARY);
        assert_eq!(bench.chosen(Wanted::Primary), Some(0));
    }
}

#[test]
fn a_drained_node_gets_nothing_new() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    let effects = bench.cluster.set_drained(NodeId(0), true);
    assert!(effects.changed);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    assert_eq!(bench.fate(0, Wanted::Primary), Fate::WhenFree);
    let _ = bench.cluster.set_drained(NodeId(0), false);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
}
