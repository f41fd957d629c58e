//! When a server is free: pipelines, errors in them, and what is nobody's reply.

use model::PoolMode;

use super::script::{check, check_with};
use crate::Policy;

#[test]
fn a_query_frees_the_server_at_its_end() {
    check(
        "C Q(select 1)
           > Q(select 1)
           held
           S T D(1) C(SELECT 1)
           < T D(1) C(SELECT 1)
           held
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn every_sync_has_its_ready() {
    check(
        "C S S S
           > S S S
           S Z(I) Z(I)
           < Z(I) Z(I)
           held
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn only_the_idle_status_frees() {
    check(
        "C Q(begin)
           > Q(begin)
           S C(BEGIN) Z(T)
           < C(BEGIN) Z(T)
           held
           C Q(bad)
           > Q(bad)
           S E(42601) Z(E)
           < E(42601) Z(E)
           held
           C Q(rollback)
           > Q(rollback)
           S C(ROLLBACK) Z(I)
           < C(ROLLBACK) Z(I)
           free",
    );
}

#[test]
fn a_flush_without_sync_keeps_the_server() {
    check(
        "C P(,x) B E H
           > P(,x) B E H
           S 1 2 C(INSERT 0 1)
           < 1 2 C(INSERT 0 1)
           held
           C S
           > S
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn parse_answered_after_flush_is_bound_later() {
    check(
        "C P(s,x) D(s) H
           > P(#1,x) D(#1) H
           S 1 t T
           < 1 t T
           held
           C B(s) E S
           > B(#1) E S
           S 2 D(1) C(SELECT 1) Z(I)
           < 2 D(1) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn a_lone_flush_changes_nothing() {
    check(
        "C H
           > H
           free",
    );
}

#[test]
fn an_error_skips_to_the_sync_and_the_next_batch_works() {
    check(
        "C P(,bad) B E S P(,x) B E S
           > P(,bad) B E S P(,x) B E S
           S E(42601) Z(I)
           < E(42601) Z(I)
           held
           S 1 2 D(1) C(SELECT 1) Z(I)
           < 1 2 D(1) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn an_error_without_sync_keeps_the_server_until_one_comes() {
    check(
        "C P(,bad) H
           > P(,bad) H
           S E(42601)
           < E(42601)
           held
           C B E
           > B E
           held
           C S
           > S
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn queries_and_calls_behind_an_error_have_no_ready_of_their_own() {
    check(
        "C P(,bad) Q(select 1) F H
           > P(,bad) Q(select 1) F H
           S E(42601)
           < E(42601)
           held
           C Q(select 2) F
           > Q(select 2) F
           held
           C S
           > S
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn a_query_may_end_a_batch() {
    check(
        "C P(,x) B E Q(select 1)
           > P(,x) B E Q(select 1)
           S 1 2 D(1) C(SELECT 1) T D(1) C(SELECT 1) Z(T)
           < 1 2 D(1) C(SELECT 1) T D(1) C(SELECT 1) Z(T)
           held
           C S
           > S
           S Z(I)
           < Z(I)
           held",
    );
}

#[test]
fn a_sync_may_fail_where_it_commits() {
    check(
        "C P(,x) B E S
           > P(,x) B E S
           S 1 2 C(INSERT 0 1) E(23503) Z(I)
           < 1 2 C(INSERT 0 1) E(23503) Z(I)
           free",
    );
}

#[test]
fn a_string_of_statements_has_one_ready() {
    check(
        "C Q(begin;x;commit;x)
           > Q(begin;x;commit;x)
           S C(BEGIN) T D(1) C(SELECT 1) C(COMMIT) T D(1) C(SELECT 1)
           < C(BEGIN) T D(1) C(SELECT 1) C(COMMIT) T D(1) C(SELECT 1)
           held
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn an_empty_query_is_answered() {
    check(
        "C Q()
           > Q
           S I Z(I)
           < I Z(I)
           free",
    );
}

#[test]
fn a_portal_may_be_suspended_again_and_again() {
    check(
        "C P(,rows) B E(,2) E(,2) S
           > P(,rows) B E(,2) E(,2) S
           S 1 2 D(1) D(2) s D(3) C(SELECT 1) Z(I)
           < 1 2 D(1) D(2) s D(3) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn a_function_call_owes_one_ready() {
    check(
        "C F
           > F
           S V
           < V
           held
           S Z(I)
           < Z(I)
           free",
    );
    check(
        "C F
           > F
           S E(42883) Z(I)
           < E(42883) Z(I)
           free",
    );
}

#[test]
fn notices_and_notifications_are_nobodys_reply() {
    check(
        "C Q(begin)
           > Q(begin)
           S N(one) C(BEGIN) A Z(T) N(two) A
           < N(one) C(BEGIN) A Z(T) N(two) A
           held
           C Q(commit)
           > Q(commit)
           S N(three) C(COMMIT) Z(I) N(four)
           < N(three) C(COMMIT) Z(I) N(four)
           free",
    );
}

#[test]
fn a_reply_that_is_not_owed_ends_the_server() {
    for reply in [
        "1",
        "2",
        "3",
        "t",
        "n",
        "s",
        "V",
        "G G Z(I)",
        "c",
        "d",
        "R",
        "K",
        "v",
        "y",
        "Z(I) Z(I)",
        "Z(I) C(x)",
    ] {
        check(&format!(
            "C Q(begin)
             > Q(begin)
             S N(here)
             < N(here)
             S {reply}
             < {}
             gone",
            match reply {
                "G G Z(I)" => "G G",
                "Z(I) Z(I)" | "Z(I) C(x)" => "Z(I)",
                _ => "",
            }
        ));
    }
}

#[test]
fn a_ready_before_the_reply_ends_the_server() {
    check(
        "C P(,x) S
           > P(,x) S
           S Z(I)
           <
           gone",
    );
}

/// A message that comes in pieces is not interrupted by a reply of our own.
#[test]
fn replies_of_our_own_wait_for_the_end_of_a_message() {
    use super::harness::{Seat, parameters, server};
    use super::words::{client_bytes, server_bytes, server_words};
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
    seat.grant(server(1, nothing), false);
    seat.client_says(&client_bytes("P(s,x) B(s) E C(s)"));
    let answer = server_bytes("1 2 D(1) C(SELECT 1)");
    for byte in &answer {
        seat.server_says(&[*byte]);
    }
    assert_eq!(server_words(&seat.to_client), "1 2 D(1) C(SELECT 1) 3");
    seat.client_says(&client_bytes("P(t,x) B(t) E"));
    assert_eq!(server_words(&std::mem::take(&mut seat.to_client)), "1 2 D(1) C(SELECT 1) 3 1");
    let answer = server_bytes("2 D(1) C(SELECT 1) Z(I)");
    seat.server_says(&answer[..20]);
    seat.client_says(&client_bytes("P(u,x) S"));
    seat.server_says(&answer[20..]);
    assert_eq!(server_words(&seat.to_client), "2 D(1) C(SELECT 1) 1 Z(I)");
}

#[test]
fn rows_that_nobody_asked_for_never_reach_the_client() {
    check(
        "C S
           > S
           S T D(stranger) C(SELECT 1) Z(I)
           <
           gone",
    );
}

#[test]
fn a_session_keeps_its_server() {
    let policy = Policy { mode: PoolMode::Session, ..Policy::default() };
    check_with(
        policy,
        "C P(s,x) S
         > P(s,x) S
         S 1 Z(I)
         < 1 Z(I)
         held",
    );
}

#[test]
fn a_transaction_in_statement_mode_is_refused() {
    let policy = Policy { mode: PoolMode::Statement, ..Policy::default() };
    check_with(
        policy,
        "C Q(begin)
         > Q(begin)
         S C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         closed transaction blocks not allowed in statement pooling mode",
    );
}

#[test]
fn a_dedicated_client_keeps_its_server_and_copies_both_ways() {
    let policy = Policy { dedicated: true, ..Policy::default() };
    check_with(
        policy,
        "C Q(START_REPLICATION)
         > Q(START_REPLICATION)
         S W d(wal)
         < W d(wal)
         C d(status)
         > d(status)
         S d(more)
         < d(more)
         C c
         > c
         S c C(START_REPLICATION) Z(I)
         < c C(START_REPLICATION) Z(I)
         held",
    );
}

#[test]
fn the_server_is_not_free_before_the_client_was_heard() {
    use super::harness::{Seat, parameters, server};
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
    let mut out = crate::Out::default();
    seat.link.granted(model::Moment(1), server(1, nothing), false, &mut out);
    assert!(!seat.link.release_due());
    seat.link.client_is_silent();
    assert!(seat.link.release_due(), "a client that says nothing holds no server");
}
