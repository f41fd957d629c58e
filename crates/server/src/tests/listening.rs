//! Conversations with a connection that listens: what is told, and what each message comes to.

use wire::encode::{self, Severity};
use wire::server::TransactionStatus;

use crate::listening::{Listening, Said, Unfit, ask, tell};
use crate::login::next_message;

#[track_caller]
fn check_told(listen: &[&str], unlisten: &[&str], expected: &str) {
    let mut out = Vec::new();
    tell(&mut out, listen.iter().map(|name| name.as_bytes()), unlisten.iter().map(|name| name.as_bytes()));
    let mut query = Vec::new();
    encode::query(&mut query, expected.as_bytes());
    assert_eq!(out, query, "{}", String::from_utf8_lossy(&out));
}

#[test]
fn channels_are_quoted_so_that_no_name_is_anything_else() {
    check_told(&["jobs"], &[], r#"LISTEN "jobs";"#);
    check_told(&["a", "B c"], &["d"], r#"LISTEN "a";LISTEN "B c";UNLISTEN "d";"#);
    check_told(&[r#"x";DROP TABLE t;--"#], &[], r#"LISTEN "x"";DROP TABLE t;--";"#);
}

#[test]
fn the_question_that_costs_nothing_is_empty() {
    let mut out = Vec::new();
    ask(&mut out);
    assert_eq!(out, b"Q\0\0\0\x05\0");
}

/// Letters: `?` a question is sent; `A` notification, `N` notice, `S` parameter, `C` CommandComplete, `I`
/// EmptyQueryResponse, `e` ERROR, `f` FATAL, `Z` ready, `z` ready in a transaction, `D` a row, `a` a notification that
/// is none. Said: `-` nothing, `r` ready, `R` refused, `n` notification, `E` end, `!` unfit.
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut listening = Listening::default();
    let mut said = String::new();
    for letter in script.chars() {
        let mut bytes = Vec::new();
        match letter {
            '?' => {
                listening.asked();
                continue;
            }
            'A' => encode::notification(&mut bytes, 7, b"jobs", b"one"),
            'a' => {
                encode::message(&mut bytes, b'A', |out| out.extend_from_slice(b"\0\0\0\x07jobs"));
            }
            'N' => encode::report(&mut bytes, Severity::Notice, "00000", "hello", None),
            'S' => encode::parameter_status(&mut bytes, b"a", b"b"),
            'C' => encode::command_complete(&mut bytes, b"LISTEN"),
            'I' => bytes.extend_from_slice(&encode::EMPTY_QUERY),
            'e' => encode::report(&mut bytes, Severity::Error, "25006", "in recovery", None),
            'f' => encode::report(&mut bytes, Severity::Fatal, "57P01", "terminating", None),
            'Z' => encode::ready_for_query(&mut bytes, TransactionStatus::Idle),
            'z' => encode::ready_for_query(&mut bytes, TransactionStatus::InTransaction),
            _ => encode::data_row(&mut bytes, [Some(&b"x"[..])].into_iter()),
        }
        let (message, _) = next_message(&bytes).expect("framed").expect("whole");
        said.push(match listening.handle(message) {
            Ok(Said::Nothing) => '-',
            Ok(Said::Ready) => 'r',
            Ok(Said::Refused(failed)) => {
                assert_eq!(failed.message, "in recovery");
                'R'
            }
            Ok(Said::Notification { process_id, channel, payload }) => {
                assert_eq!((process_id, channel, payload), (7, &b"jobs"[..], &b"one"[..]));
                'n'
            }
            Ok(Said::End(failed)) => {
                assert!(!failed.message.is_empty());
                'E'
            }
            Err(Unfit(_)) => '!',
        });
    }
    assert_eq!(said, expected, "{script}");
}

#[test]
fn notifications_come_at_any_time() {
    check("A", "n");
    check("ANSA", "n--n");
    check("?CACAZ", "-n-nr");
}

#[test]
fn a_question_is_answered_once_whatever_its_commands() {
    check("?CCCZ", "---r");
    check("?IZ", "-r");
    check("?IZ?CZ", "-r-r");
}

#[test]
fn a_refusal_is_told_with_the_end_of_the_question() {
    check("?eZ", "-R");
    check("?CeZ?CZ", "--R-r");
    check("?eC", "-!");
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    check("Z", "!");
    check("C", "!");
    check("D", "!");
    check("?D", "!");
    check("?CZZ", "-r!");
    check("?Cz", "-!");
    check("a", "!");
}

#[test]
fn a_server_may_end_the_session_at_any_time() {
    check("f", "E");
    check("?f", "E");
    check("?Cf", "-E");
    check("e", "E");
}
