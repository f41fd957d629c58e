//! Who is written to.

use super::{Bench, PRIMARY, STANDBY};
use crate::{Answer, Balance, Failure, Fate, Limits, Role, State, Wanted, What};

#[test]
fn nobody_is_written_to_before_all_were_asked() {
    let mut bench = Bench::new(3);
    let _ = bench.says(0, PRIMARY);
    let _ = bench.says(1, STANDBY);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    let effects = bench.fails(2, Failure::Silent);
    assert!(effects.changed);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
    assert_eq!(bench.chosen(Wanted::ReadWrite), Some(0));
}

#[test]
fn promoted_standby_is_the_primary_of_the_higher_timeline() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    bench.dies(0, Failure::Refused);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    let effects = bench.says(1, Answer { timeline: 2, ..STANDBY_PROMOTED });
    assert!(effects.changed);
    assert_eq!(bench.chosen(Wanted::Primary), Some(1));
    assert!(bench.facts.contains(&(Some(1), What::Primary(2))));
}

const STANDBY_PROMOTED: Answer = Answer { in_recovery: false, ..STANDBY };

#[test]
fn old_primary_that_comes_back_gets_nothing() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    bench.dies(0, Failure::Silent);
    let _ = bench.says(1, Answer { timeline: 2, ..STANDBY_PROMOTED });
    let _ = bench.says(0, PRIMARY);
    bench.check(0, Role::StalePrimary, State::Up);
    assert_eq!(bench.chosen(Wanted::Primary), Some(1));
    assert_eq!(bench.fate(0, Wanted::Primary), Fate::AtOnce);
    assert_eq!(bench.chosen(Wanted::Any), Some(1));
    // Made a standby of the new one, it is of use again.
    let _ = bench.says(0, Answer { timeline: 2, ..STANDBY });
    assert_eq!(bench.chosen(Wanted::Standby), Some(0));
}

#[test]
fn a_standby_alone_can_tell_that_a_timeline_is_over() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY, STANDBY]);
    // The promoted node is out of our reach; one that follows it is not.
    bench.dies(1, Failure::Silent);
    let _ = bench.says(2, Answer { timeline: 2, ..STANDBY });
    assert_eq!(bench.chosen(Wanted::Primary), None);
    assert_eq!(bench.fate(0, Wanted::Primary), Fate::AtOnce);
}

#[test]
fn a_second_primary_of_the_same_timeline_gets_no_write() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    let _ = bench.says(1, STANDBY_PROMOTED);
    bench.check(1, Role::RivalPrimary, State::Up);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
    // Not even when the true one is down: nobody can say what either has.
    bench.dies(0, Failure::Refused);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    // Where the first says itself that it is none any more, the second is the only one.
    let _ = bench.says(0, STANDBY);
    let _ = bench.says(1, STANDBY_PROMOTED);
    assert_eq!(bench.chosen(Wanted::Primary), Some(1));
}

#[test]
fn of_two_primaries_from_the_start_none_is_written_to() {
    let mut bench = Bench::of(&[PRIMARY, Answer { started: 9, ..PRIMARY }]);
    assert_eq!(bench.chosen(Wanted::Primary), None);
    bench.dies(0, Failure::Silent);
    assert_eq!(bench.chosen(Wanted::Primary), None);
}

#[test]
fn two_names_of_one_server_are_no_rivals() {
    let mut bench = Bench::of(&[PRIMARY, PRIMARY]);
    assert_eq!(bench.chosen(Wanted::Primary), Some(0));
}

#[test]
fn a_foreign_node_gets_nothing() {
    let foreign = Answer { system: 8, timeline: 9, ..PRIMARY };
    let mut bench = Bench::of(&[foreign, PRIMARY, STANDBY]);
    bench.check(0, Role::Foreign, State::Up);
    assert_eq!(bench.chosen(Wanted::Primary), Some(1));
    assert_eq!(bench.fate(0, Wanted::Any), Fate::AtOnce);
    assert_eq!(bench.view(1).timeline, Some(1));
}

#[test]
fn of_two_clusters_without_a_majority_none_is_used() {
    let mut bench = Bench::of(&[Answer { system: 8, ..PRIMARY }, PRIMARY]);
    assert_eq!(bench.chosen(Wanted::Any), None);
    assert!(bench.facts.contains(&(None, What::Split)));
}

#[test]
fn the_first_to_answer_does_not_decide_which_cluster_it_is() {
    let mut bench = Bench::new(3);
    let _ = bench.says(0, Answer { system: 8, ..PRIMARY });
    assert_eq!(bench.chosen(Wanted::Any), None);
    let _ = bench.says(1, PRIMARY);
    let _ = bench.says(2, STANDBY);
    assert_eq!(bench.chosen(Wanted::Primary), Some(1));
}

#[test]
fn a_longer_list_of_hosts_goes_on_from_what_was_known() {
    let mut before = Bench::of(&[PRIMARY, STANDBY]);
    before.dies(0, Failure::Silent);
    let _ = before.says(1, Answer { timeline: 3, ..STANDBY_PROMOTED });
    let mut bench = Bench::new(3);
    bench.cluster.inherit(&before.cluster);
    let _ = bench.says(0, PRIMARY);
    bench.check(0, Role::StalePrimary, State::Up);
    assert_eq!(bench.chosen(Wanted::Primary), None);
}

#[test]
fn equals_need_no_common_history() {
    let limits = Limits { is_independent: true, ..Limits::default() };
    let mut bench = Bench::with(3, limits);
    let other = Answer { system: 8, timeline: 5, started: 3, ..PRIMARY };
    let _ = bench.says(0, PRIMARY);
    // Nobody waits for the others.
    assert_eq!(bench.chosen(Wanted::ReadWrite), Some(0));
    let _ = bench.says(1, other);
    let _ = bench.says(2, Answer { system: 9, ..STANDBY });
    let chosen: Vec<_> =
        (0..4).map(|_| bench.chosen_by(Wanted::ReadWrite, Balance::RoundRobin).unwrap()).collect();
    assert!(chosen.contains(&0) && chosen.contains(&1) && !chosen.contains(&2), "{chosen:?}");
    assert_eq!(bench.fate(1, Wanted::ReadWrite), Fate::Keep);
    assert_eq!(bench.chosen(Wanted::Standby), Some(2));
    bench.dies(0, Failure::Refused);
    assert_eq!(bench.chosen(Wanted::ReadWrite), Some(1));
    assert_eq!(bench.fate(1, Wanted::ReadWrite), Fate::Keep);
    bench.dies(1, Failure::Silent);
    assert_eq!(bench.chosen(Wanted::ReadWrite), None);
    // One that comes back as another is no stranger.
    let _ = bench.says(1, Answer { system: 10, timeline: 1, ..PRIMARY });
    assert_eq!(bench.chosen(Wanted::ReadWrite), Some(1));
}
