//! Answers one after the other.

use crate::{ABSENCES_MAX, Member, Report, Roster, Tags};

fn report(ports: &[u16]) -> Report {
    let member = |port: &u16| Member {
        name: format!("n{port}"),
        host: "h".to_owned(),
        port: *port,
        role: "replica".to_owned(),
        state: "streaming".to_owned(),
        tags: Tags::default(),
    };
    Report { members: ports.iter().map(member).collect(), ..Report::default() }
}

#[track_caller]
fn check(roster: &Roster, ports: &[u16]) {
    assert_eq!(roster.members().map(|member| member.port).collect::<Vec<_>>(), ports);
}

#[test]
fn who_comes_is_in_at_once_and_keeps_the_order() {
    let mut roster = Roster::default();
    assert!(roster.take(report(&[2, 1])));
    assert!(!roster.take(report(&[1, 2])), "the same places in another order");
    assert!(roster.take(report(&[3, 1, 2])));
    check(&roster, &[2, 1, 3]);
}

#[test]
fn who_is_absent_is_out_only_after_several_times_in_a_row() {
    let mut roster = Roster::default();
    roster.take(report(&[1, 2]));
    for _ in 1..ABSENCES_MAX {
        assert!(!roster.take(report(&[1])));
    }
    check(&roster, &[1, 2]);
    assert!(!roster.take(report(&[1, 2])), "it is back");
    for _ in 1..ABSENCES_MAX {
        assert!(!roster.take(report(&[1])));
    }
    assert!(roster.take(report(&[1])));
    check(&roster, &[1]);
}

#[test]
fn what_is_said_of_a_member_is_always_the_last_word() {
    let mut roster = Roster::default();
    roster.take(report(&[1]));
    let mut next = report(&[1]);
    next.members[0].tags.noloadbalance = true;
    next.members[0].role = "leader".to_owned();
    assert!(!roster.take(next), "nobody came or went");
    let member = roster.members().next().unwrap();
    assert!(member.tags.noloadbalance && member.role == "leader");
}

#[test]
fn a_list_that_is_another_one_each_time_does_not_grow() {
    let mut roster = Roster::default();
    for turn in 0..20_u16 {
        let ports: Vec<u16> = (1..=64).map(|port| turn * 64 + port).collect();
        roster.take(report(&ports));
        assert!(roster.members().count() <= crate::MEMBERS_MAX);
    }
}
