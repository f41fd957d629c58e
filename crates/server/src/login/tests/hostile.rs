//! Servers that send anything: every type in every state, every byte changed, no end.

use wire::encode;

use super::model::{Answering, Ask, Asking, BINDING, Server, order, play, script, welcome};
use crate::login::*;

/// What an honest server sends in each round of each way to log in.
fn honest_rounds() -> Vec<(LoginOrder, Vec<Vec<u8>>)> {
    struct Recording(Asking, Vec<Vec<u8>>);
    impl Server for Recording {
        fn answer(&mut self, sent: &[u8]) -> Vec<u8> {
            let said = self.0.answer(sent);
            self.1.push(said.clone());
            said
        }
    }
    let mut all = Vec::new();
    for ask in [Ask::Cleartext, Ask::Md5, Ask::Scram, Ask::ScramPlus] {
        let order = LoginOrder { binding: Some(BINDING.into()), ..order() };
        let mut server = Recording(Asking::new(ask), Vec::new());
        play(order.clone(), &mut server).unwrap();
        all.push((order, server.1));
    }
    let order = LoginOrder { connect_query: Some(b"select 1".as_slice().into()), ..order() };
    let mut answer = Vec::new();
    encode::data_row(&mut answer, [Some(b"1".as_slice())].into_iter());
    encode::command_complete(&mut answer, b"SELECT 1");
    encode::ready_for_query(&mut answer, wire::server::TransactionStatus::Idle);
    all.push((order, vec![welcome(), answer]));
    all
}

/// Every cut of `line` between two messages, as what came before it.
fn boundaries(line: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut all = vec![0];
    while let Ok(Some((_, size))) = next_message(&line[at..]) {
        at += size;
        all.push(at);
    }
    all
}

#[test]
fn every_type_in_every_state_ends_or_goes_on() {
    for (order, rounds) in honest_rounds() {
        for (round, line) in rounds.iter().enumerate() {
            for at in boundaries(line) {
                interrupt(&order, &rounds, round, at);
            }
        }
    }
}

/// Puts one message of every type into a round, `at` so many bytes.
fn interrupt(order: &LoginOrder, rounds: &[Vec<u8>], round: usize, at: usize) {
    let bodies: [&[u8]; 5] = [b"", b"\0", b"\0\0\0\0", b"\0\0\0\x0a\0", &[0xff; 300]];
    for (tag, body) in (0..=255).flat_map(|tag| bodies.map(|body| (tag, body))) {
        let mut lines = rounds.to_vec();
        let rest = lines[round].split_off(at);
        encode::message(&mut lines[round], tag, |out| out.extend_from_slice(body));
        lines[round].extend(rest);
        // An error or a login; a panic would fail this test.
        let _ = script(order.clone(), &lines);
    }
}

#[test]
fn every_changed_byte_ends_or_goes_on() {
    for (order, rounds) in honest_rounds() {
        for round in 0..rounds.len() {
            for at in 0..rounds[round].len() {
                damage(&order, &rounds, round, at);
            }
        }
    }
}

/// Changes one byte of a round, leaves it out, and ends the round before it.
fn damage(order: &LoginOrder, rounds: &[Vec<u8>], round: usize, at: usize) {
    for change in [0x01, 0x20, 0x7f, 0x80, 0xff] {
        let mut lines = rounds.to_vec();
        lines[round][at] ^= change;
        let _ = script(order.clone(), &lines);
    }
    let mut lines = rounds.to_vec();
    lines[round].remove(at);
    let _ = script(order.clone(), &lines);
    let mut lines = rounds.to_vec();
    lines[round].truncate(at);
    assert!(script(order.clone(), &lines).is_err());
}

#[test]
fn changed_proof_of_the_server_is_refused() {
    let (order, rounds) = honest_rounds().swap_remove(2);
    let at = rounds[2].windows(2).position(|two| two == b"v=").unwrap() + 2;
    for place in at..at + 43 {
        let mut lines = rounds.clone();
        lines[2][place] = if lines[2][place] == b'A' { b'B' } else { b'A' };
        let ended = script(order.clone(), &lines);
        assert!(matches!(ended, Err(LoginError::Fault(LoginFault::Scram(_)))), "{place} {ended:?}");
    }
}

#[test]
fn endless_notices_end() {
    let mut notice = Vec::new();
    encode::report(&mut notice, encode::Severity::Notice, "00000", "again", None);
    assert_eq!(script(order(), &[notice.repeat(100_000)]), Err(LoginFault::TooMuch.into()));
}

#[test]
fn endless_rows_of_the_connect_query_end() {
    let order = LoginOrder { connect_query: Some(b"select".as_slice().into()), ..order() };
    let mut row = Vec::new();
    encode::data_row(&mut row, [Some([b'x'; 60_000].as_slice())].into_iter());
    assert_eq!(script(order, &[welcome(), row.repeat(300)]), Err(LoginFault::TooMuch.into()));
}

#[test]
fn endless_parameters_end() {
    let mut greeting = Vec::new();
    encode::auth_ok(&mut greeting);
    for number in 0..300 {
        encode::parameter_status(&mut greeting, format!("p{number}").as_bytes(), b"x");
    }
    assert_eq!(script(order(), &[greeting]), Err(LoginFault::ParametersTooLarge.into()));
    let mut greeting = Vec::new();
    encode::auth_ok(&mut greeting);
    for number in 0..3 {
        encode::parameter_status(&mut greeting, format!("p{number}").as_bytes(), &[b'x'; 30_000]);
    }
    assert_eq!(script(order(), &[greeting]), Err(LoginFault::ParametersTooLarge.into()));
}

#[test]
fn long_message_is_refused_by_its_header() {
    assert_eq!(next_message(b"N\0\x10\0\0").unwrap_err(), LoginFault::MessageTooLong(b'N'));
    assert_eq!(next_message(b"N\xff\xff\xff\xff").unwrap_err(), LoginFault::BadLength(b'N'));
    assert_eq!(next_message(b"N\0\0\0\x03").unwrap_err(), LoginFault::BadLength(b'N'));
    assert!(next_message(b"N\0\0\0").unwrap().is_none());
    assert!(next_message(b"N\0\0\0\x05").unwrap().is_none());
}

#[test]
fn cancel_key_over_its_limit_is_refused() {
    for (size, right) in [(3, false), (4, true), (32, true), (256, true), (257, false)] {
        let mut greeting = Vec::new();
        encode::auth_ok(&mut greeting);
        encode::backend_key(&mut greeting, 1, &vec![7; size]);
        encode::ready_for_query(&mut greeting, wire::server::TransactionStatus::Idle);
        assert_eq!(script(order(), &[greeting]).is_ok(), right, "{size}");
    }
}

#[test]
fn server_in_a_transaction_is_refused() {
    for status in *b"TEx" {
        let mut greeting = Vec::new();
        encode::auth_ok(&mut greeting);
        encode::message(&mut greeting, b'Z', |out| out.push(status));
        assert!(script(order(), &[greeting]).is_err());
    }
}

#[test]
fn password_goes_nowhere_before_it_is_asked_for() {
    let mut server = Answering::new(vec![welcome()]);
    play(order(), &mut server).unwrap();
    assert_eq!(server.received.len(), 1);
    assert!(!server.received[0].windows(4).any(|part| part == b"open"));
}
