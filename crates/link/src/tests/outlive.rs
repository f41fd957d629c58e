//! Which clients outlive their servers: those that lose nothing with them.

use std::sync::Arc;

use model::StateMode;
use wire::encode;
use wire::server::TransactionStatus;

use crate::Policy;

use super::harness::{Seat, parameters, server};

fn seat() -> Seat {
    let reported = parameters(&[("TimeZone", "UTC", true)]);
    let policy = Policy { state: StateMode::Carry, rides_out: true, ..Policy::default() };
    let mut seat = Seat::new(1, &policy, &Arc::default(), reported.clone());
    seat.grant(server(1, reported), false);
    seat
}

fn asks(seat: &mut Seat, text: &str) {
    let mut query = Vec::new();
    encode::query(&mut query, text.as_bytes());
    seat.client_says(&query);
    seat.to_server.clear();
}

fn answered(seat: &mut Seat, rows: &[&str], tag: &str, status: TransactionStatus) {
    let mut answer = Vec::new();
    for row in rows {
        encode::data_row(&mut answer, [Some(row.as_bytes()), None, None].into_iter());
    }
    encode::command_complete(&mut answer, tag.as_bytes());
    encode::ready_for_query(&mut answer, status);
    seat.server_says(&answer);
}

#[test]
fn a_client_without_state_outlives_its_server() {
    let mut seat = seat();
    assert!(seat.link.may_outlive());
    asks(&mut seat, "begin");
    assert!(seat.link.may_outlive());
    answered(&mut seat, &[], "BEGIN", TransactionStatus::InTransaction);
    asks(&mut seat, "set work_mem = '8MB'");
    answered(&mut seat, &[], "SET", TransactionStatus::InTransaction);
    assert!(seat.link.may_outlive(), "settings are the client's");
}

#[test]
fn a_lock_that_the_server_was_not_asked_for_yet_is_not_lost_in_silence() {
    let mut seat = seat();
    asks(&mut seat, "select pg_advisory_lock(1)");
    assert!(seat.link.may_outlive(), "it was not told that it has the lock");
    answered(&mut seat, &[], "SELECT 1", TransactionStatus::Idle);
    assert!(!seat.to_server.is_empty(), "the server is asked");
    assert!(!seat.link.may_outlive(), "the client believes that it has the lock");
    answered(&mut seat, &["l"], "SELECT 1", TransactionStatus::Idle);
    assert!(!seat.link.may_outlive(), "it has");
}

#[test]
fn what_turns_out_to_be_nothing_is_no_hindrance() {
    let mut seat = seat();
    asks(&mut seat, "select pg_try_advisory_lock(1)");
    answered(&mut seat, &[], "SELECT 1", TransactionStatus::Idle);
    assert!(!seat.link.may_outlive());
    answered(&mut seat, &[], "SELECT 0", TransactionStatus::Idle);
    assert!(seat.link.may_outlive());
}

#[test]
fn a_lock_of_a_transaction_under_way_is_not_lost_in_silence() {
    let mut seat = seat();
    asks(&mut seat, "begin");
    answered(&mut seat, &[], "BEGIN", TransactionStatus::InTransaction);
    asks(&mut seat, "select pg_advisory_lock(1)");
    answered(&mut seat, &[], "SELECT 1", TransactionStatus::InTransaction);
    assert!(!seat.link.may_outlive(), "a lock of the session is there after a rollback, too");
}

#[test]
fn a_server_that_goes_while_another_may_answer_says_so_to_nobody() {
    let mut goes = Vec::new();
    let words = "terminating connection due to immediate shutdown command";
    encode::report(&mut goes, encode::Severity::Warning, "57P01", words, None);
    for may_retry in [true, false] {
        let mut seat = seat();
        asks(&mut seat, "select 1");
        seat.link.set_may_retry(may_retry);
        seat.server_says(&goes);
        assert_eq!(seat.to_client.is_empty(), may_retry);
    }
}
