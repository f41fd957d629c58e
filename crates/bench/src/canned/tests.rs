//! Claims about `canned`, each as small as it can be.

use super::*;
use crate::protocol::{TERMINATE, query, startup};
use crate::session::Session;

fn hear(pieces: &[&[u8]]) -> Result<(usize, Vec<u8>), HangUp> {
    let (mut talk, mut out, mut taken) = (Talk::default(), Vec::new(), 0);
    for piece in pieces {
        taken += talk.hear(piece, &mut out)?;
    }
    Ok((taken, out))
}

/// The types of the messages in `bytes`, whose lengths must fit.
fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some(length) = number(bytes, 1) {
        kinds.push(bytes[0] as char);
        bytes = &bytes[length as usize + 1..];
    }
    assert!(bytes.is_empty());
    kinds
}

fn check(messages: &[u8], expected: &str) {
    let hello = startup("u", "d");
    let (taken, out) = hear(&[&hello, messages]).expect("still talking");
    assert_eq!(taken, hello.len() + messages.len());
    assert_eq!(kinds(&out), format!("RSSSSSSSSSSSKZ{expected}"));
}

#[test]
fn a_query_is_answered_with_one_row() {
    check(&query("select abalance from pgbench_accounts"), "TDCZ");
}

#[test]
fn a_set_is_answered_without_rows() {
    check(&query("DISCARD ALL"), "CZ");
    check(&query("SET client_encoding='UTF8';SET application_name TO 'x y';"), "SCSCZ");
}

/// Else poolers that follow parameters would set them again before every transaction.
#[test]
fn a_parameter_is_reported_as_set_and_as_asked_for_at_startup() {
    let (_, out) = hear(&[&startup("u", "d"), &query("SET TimeZone='Asia/Aden'; set a to 'b'")]).unwrap();
    let text = String::from_utf8_lossy(&out);
    for expected in ["application_name\0bench\0", "TimeZone\0UTC\0", "TimeZone\0Asia/Aden\0", "a\0b\0"] {
        assert!(text.contains(expected), "{expected:?}");
    }
}

#[test]
fn the_extended_protocol_is_answered_message_by_message() {
    let messages = [
        protocol::message(b'P', &[b"s\0select 1\0\0\0"]),
        protocol::message(b'D', &[b"Ss\0"]),
        protocol::message(b'B', &[b"\0s\0\0\0\0\0\0\0"]),
        protocol::message(b'D', &[b"P\0"]),
        protocol::message(b'E', &[b"\0\0\0\0\0"]),
        protocol::message(b'S', &[]),
    ];
    check(&messages.concat(), "1tT2TDCZ");
}

#[test]
fn half_a_message_is_left_for_later() {
    let hello = startup("u", "d");
    assert_eq!(hear(&[&hello[..9]]), Ok((0, vec![])));
    let (taken, _) = hear(&[&hello, &query("select 1")[..7]]).unwrap();
    assert_eq!(taken, hello.len());
}

#[test]
fn tls_is_declined_and_a_cancel_closes() {
    assert_eq!(hear(&[&[0, 0, 0, 8, 4, 210, 22, 47]]), Ok((8, b"N".to_vec())));
    assert_eq!(hear(&[&[0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 2]]), Err(HangUp));
}

#[test]
fn terminate_and_impossible_lengths_close() {
    assert_eq!(hear(&[&startup("u", "d"), &TERMINATE]), Err(HangUp));
    assert_eq!(hear(&[&startup("u", "d"), &[b'Q', 255, 0, 0, 0]]), Err(HangUp));
    assert_eq!(hear(&[&[255, 0, 0, 0, 0, 3, 0, 0]]), Err(HangUp));
}

#[test]
fn sessions_are_served_on_every_loop() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || serve(&listener, 2));
    let mut sessions: Vec<_> = (0..5).map(|_| Session::open(address, "u", "d").unwrap()).collect();
    for session in &mut sessions {
        assert_eq!(session.query("select 1").unwrap(), ["0"]);
        assert_eq!(session.query("set x = 1").unwrap(), [""; 0]);
    }
}
