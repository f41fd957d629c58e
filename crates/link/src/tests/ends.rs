//! Ends of clients and servers, limits of lengths and of time, and signs of life.

use std::time::Duration;

use model::{Moment, PoolMode, Refusal};

use super::harness::{Seat, parameters, server};
use super::script::{check, check_with};
use super::words::{client_bytes, client_words, server_bytes, server_words};
use crate::{Out, Policy, Then};

#[test]
fn terminate_is_quiet_and_never_forwarded() {
    for before in ["Q(begin)", "P(,bad) H", "S", "d(x)"] {
        let sent = if before == "d(x)" { "" } else { before };
        check(&format!("C {before} X\n > {sent}\n closed"));
    }
}

#[test]
fn a_client_that_leaves_between_queries_leaves_a_clean_server() {
    check(
        "C S
           > S
           S Z(I)
           < Z(I)
           left clean
           client b
           C S
           > S
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn an_open_transaction_is_rolled_back() {
    check(
        "C Q(begin)
           > Q(begin)
           S C(BEGIN) Z(T)
           < C(BEGIN) Z(T)
           left cleaning
           > Q(ROLLBACK)
           S N(nobody hears) C(ROLLBACK) Z(I)
           clean",
    );
}

#[test]
fn a_session_is_rolled_back_and_reset_in_two_messages() {
    let policy = Policy { mode: PoolMode::Session, ..Policy::default() };
    check_with(
        policy,
        "C Q(begin;bad)
         > Q(begin;bad)
         S C(BEGIN) E(42601) Z(E)
         < C(BEGIN) E(42601) Z(E)
         left cleaning
         > Q(ROLLBACK)
         S C(ROLLBACK) Z(I)
         > Q(DISCARD ALL)
         cleaning
         S S(TimeZone=UTC) C(DISCARD ALL)
         cleaning
         S Z(I)
         clean",
    );
}

#[test]
fn a_server_that_does_not_roll_back_is_closed() {
    check(
        "C Q(begin)
           > Q(begin)
           S C(BEGIN) Z(T)
           < C(BEGIN) Z(T)
           left cleaning
           > Q(ROLLBACK)
           S C(ROLLBACK) Z(T)
           close",
    );
}

#[test]
fn a_reset_that_fails_closes_the_server() {
    let policy = Policy { reset_always: true, ..Policy::default() };
    check_with(
        policy,
        "C Q(x)
         > Q(x)
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         left cleaning
         > Q(DISCARD ALL)
         S E(55000)
         close",
    );
}

#[test]
fn a_server_that_owes_anything_is_closed() {
    for (sent, answered) in [
        ("Q(x)", ""),
        ("Q(x)", "T D(1)"),
        ("Q(copy t from stdin)", "G"),
        ("P(,x) B E H", "1 2 C(SELECT 1)"),
        ("P(,bad) H", "E(42601)"),
        ("P(,copy t from stdin) B E S d(x) c S", "1 2 G E(22P04)"),
    ] {
        let answer =
            if answered.is_empty() { String::new() } else { format!("S {answered}\n < {answered}\n") };
        check(&format!("C {sent}\n > {sent}\n {answer} left close"));
    }
}

#[test]
fn half_a_message_to_the_server_closes_it() {
    let nothing = parameters(&[]);
    let policy = Policy::default();
    let mut seat = Seat::new(1, &policy, &Default::default(), nothing.clone());
    seat.grant(server(1, nothing), false);
    let bytes = client_bytes(&format!("Q({})", "x".repeat(100_000)));
    seat.client_says(&bytes[..50_000]);
    assert_eq!(seat.to_server.len(), 50_000, "a large message streams");
    seat.server_says(&server_bytes("E(54000) Z(I)"));
    assert!(seat.link.is_mid_message() && !seat.link.release_due());
    let mut server = seat.leave().expect("a server");
    assert_eq!(
        crate::unpaired::left(&mut server, &policy, &mut Out::default()),
        crate::unpaired::Fate::Close
    );
}

#[test]
fn a_server_that_ends_the_session_is_heard() {
    check(
        "C Q(begin)
           > Q(begin)
           S C(BEGIN) Z(T) Fatal(25P03 terminating)
           < C(BEGIN) Z(T) Fatal(25P03 terminating)
           gone told",
    );
}

#[test]
fn a_server_that_ends_before_the_client_was_heard_is_not_told() {
    check(
        "check
           C Q(x)
           > Q
           S Fatal(57P01 terminating)
           <
           gone",
    );
}

#[test]
fn a_check_goes_before_the_client() {
    check(
        "check
           C Q(x)
           > Q
           S I Z(I)
           <
           > Q(x)
           S C(SELECT 1) Z(I)
           < C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn an_error_without_fields_is_an_error() {
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
    seat.grant(server(1, nothing), false);
    seat.client_says(&client_bytes("Q(x)"));
    seat.server_says(b"E\0\0\0\x04");
    seat.server_says(&server_bytes("Z(I)"));
    assert_eq!(server_words(&seat.to_client), "E Z(I)");
    assert!(seat.release().is_some());
}

#[test]
fn an_error_of_any_length_passes() {
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
    seat.grant(server(1, nothing), false);
    seat.client_says(&client_bytes("Q(x)"));
    let error = server_bytes(&format!("E(42601 {}) Z(I)", "long".repeat(100_000)));
    for piece in error.chunks(1000) {
        seat.server_says(piece);
    }
    assert_eq!(seat.to_client, error);
    assert!(seat.release().is_some());
}

#[test]
fn a_header_that_is_none_closes_the_client() {
    for bytes in [
        &b"Q\0\0\0\0"[..],
        b"Q\0\0\0\x03",
        b"Q\xff\xff\xff\xff",
        b"Q\x7f\xff\xff\xff",
        b"S\0\0\x4e\x20",
        b"\0\0\0\0\x04",
        b"GET / HTTP/1.1",
        b"p\0\0\0\x04",
    ] {
        let nothing = parameters(&[]);
        let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
        seat.grant(server(1, nothing), false);
        seat.client_says(bytes);
        let is_refused = match &seat.end {
            Some(Then::Close(Some(refusal))) => matches!(**refusal, Refusal::ProtocolViolation(_)),
            _ => false,
        };
        assert!(is_refused && seat.to_server.is_empty(), "{bytes:?}");
        assert!(seat.leave().expect("a server").is_shareable(), "the client's fault is not the server's");
    }
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_small_message_holds_no_server() {
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
    seat.grant(server(1, nothing.clone()), false);
    let bytes = client_bytes("Q(select 1)");
    seat.client_says(&bytes[..8]);
    assert!(seat.release().is_some());
    seat.grant(server(2, nothing), false);
    seat.client_says(&bytes[8..]);
    assert_eq!(client_words(&seat.to_server), "Q(select 1)");
}

#[test]
fn too_much_owed_makes_the_client_wait_and_the_server_answer() {
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing.clone());
    seat.grant(server(1, nothing), false);
    let most = server::ledger::OWED_MAX;
    seat.client_says(&client_bytes("S").repeat(most + 10));
    assert_eq!(seat.from_client.len(), 50);
    assert!(seat.to_server.ends_with(&client_bytes("S H")));
    seat.server_says(&server_bytes("Z(I)").repeat(most));
    assert!(seat.from_client.is_empty());
    seat.server_says(&server_bytes("Z(I)").repeat(10));
    assert_eq!(seat.to_client.len(), 6 * (most + 10));
    assert!(seat.release().is_some());
}

#[test]
fn simple_queries_may_be_refused() {
    let policy = Policy { disable_pqexec: true, ..Policy::default() };
    check_with(policy, "C Q(x)\n closed PQexec disallowed");
}

#[test]
fn each_limit_of_time_has_its_refusal() {
    let seconds = |count| Duration::from_secs(count);
    let policy = Policy {
        query_timeout: seconds(10),
        idle_transaction_timeout: seconds(20),
        transaction_timeout: seconds(40),
        client_idle_timeout: seconds(80),
        ..Policy::default()
    };
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &policy, &Default::default(), nothing.clone());
    let after = |count| Moment(1) + seconds(count);
    let check = |seat: &Seat, count: u64, refusal: Refusal| {
        assert_eq!(seat.link.poll_timeout(), after(count));
        assert_eq!(seat.link.on_timeout(after(count) - Duration::from_micros(1)), None);
        assert_eq!(seat.link.on_timeout(after(count)), Some(refusal));
    };
    check(&seat, 80, Refusal::ClientIdleTimeout);
    seat.grant(server(1, nothing), false);
    seat.client_says(&client_bytes("Q(begin)"));
    check(&seat, 10, Refusal::QueryTimeout);
    seat.server_says(&server_bytes("C(BEGIN) Z(T)"));
    check(&seat, 20, Refusal::IdleTransactionTimeout);
    seat.link.set_policy(std::sync::Arc::new(Policy { idle_transaction_timeout: Duration::ZERO, ..policy }));
    check(&seat, 40, Refusal::TransactionTimeout);
}

#[test]
fn a_batch_without_its_sync_counts_as_idle_in_transaction() {
    let policy = Policy { idle_transaction_timeout: Duration::from_secs(20), ..Policy::default() };
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, &policy, &Default::default(), nothing.clone());
    seat.grant(server(1, nothing), false);
    seat.client_says(&client_bytes("P(,x) H"));
    seat.server_says(&server_bytes("1"));
    let end = Moment(1) + Duration::from_secs(20);
    assert_eq!(seat.link.on_timeout(end), Some(Refusal::IdleTransactionTimeout));
}

#[test]
fn a_client_that_waits_is_canceled_at_the_end_of_its_batch() {
    let check = |sent: &str, consumed: &str, told: &str| {
        let nothing = parameters(&[]);
        let mut seat = Seat::new(1, &Policy::default(), &Default::default(), nothing);
        let mut out = Out::default();
        let count = seat.link.cancel_waiting(&client_bytes(sent), &mut out);
        super::harness::append(&mut seat.to_client, &out.to_client, &[]);
        assert_eq!(
            (count, server_words(&seat.to_client)),
            (client_bytes(consumed).len(), told.to_owned()),
            "{sent}"
        );
    };
    let canceled = "E(57014 canceling statement due to user request) Z(I)";
    check("Q(x) Q(y)", "Q(x)", canceled);
    check("P(,x) B Q(y) E S S", "P(,x) B Q(y) E S", canceled);
    check("d(late) c Q(x)", "d(late) c Q(x)", canceled);
    check("P(,x) B E", "", "");
    check("S Q(x)", "S", "Z(I)");
    check("X", "", "");
}
