//! Logins to scripted servers: honest ones, wrong ones, and ones that send anything at all.

mod hostile;
mod lookup;
mod methods;
mod model;

use wire::encode;
use wire::server::TransactionStatus;
use wire::startup::{First, Version};

use self::model::{Answering, order, play, script, welcome};
use super::*;

/// Appends a message.
type Part<'a> = &'a dyn Fn(&mut Vec<u8>);

fn bytes(parts: &[Part<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| part(&mut out));
    out
}

fn ready(out: &mut Vec<u8>) {
    encode::ready_for_query(out, TransactionStatus::Idle);
}

#[test]
fn startup_message_names_user_database_and_parameters_in_order() {
    let mut order = order();
    order.version = Version::V3_2;
    order.parameters.push((b"application_name".as_slice().into(), b"app".as_slice().into()));
    let mut out = Vec::new();
    begin(order, &mut out).unwrap();
    let First::Startup(startup) = First::parse(&out).unwrap() else { panic!("no startup message") };
    assert_eq!(startup.version, Version::V3_2);
    let sent: Vec<_> = startup.parameters().collect();
    let expected: Vec<(&[u8], &[u8])> =
        vec![(b"user", b"ann"), (b"database", b"shop"), (b"application_name", b"app")];
    assert_eq!(sent, expected);
}

#[test]
fn startup_message_longer_than_a_server_takes_is_not_sent() {
    let mut order = order();
    order.parameters.push((b"options".as_slice().into(), vec![b'x'; 10_000].into()));
    let mut out = Vec::new();
    assert_eq!(begin(order, &mut out).unwrap_err(), LoginFault::StartupTooLong);
    assert!(out.is_empty());
}

#[test]
fn greeting_is_kept() {
    let logged_in = script(order(), &[welcome()]).unwrap();
    let expected = vec![
        (b"server_version".as_slice().into(), b"15.1".as_slice().into()),
        (b"TimeZone".as_slice().into(), b"UTC".as_slice().into()),
    ];
    assert_eq!(logged_in.parameters, expected);
    assert_eq!((logged_in.process_id, &*logged_in.cancel_key), (77, b"abcd".as_slice()));
    assert_eq!((logged_in.minor, logged_in.method), (0, Some(Method::Trust)));
}

#[test]
fn parameter_reported_twice_has_its_last_value() {
    let greeting = bytes(&[
        &encode::auth_ok,
        &|out| encode::parameter_status(out, b"TimeZone", b"UTC"),
        &|out| encode::parameter_status(out, b"timezone", b"CET"),
        &ready,
    ]);
    let logged_in = script(order(), &[greeting]).unwrap();
    assert_eq!(logged_in.parameters, vec![(b"timezone".as_slice().into(), b"CET".as_slice().into())]);
    assert_eq!((logged_in.process_id, logged_in.cancel_key.len()), (0, 0));
}

#[track_caller]
fn check_negotiation(asked: Version, newest: u16, expected: Result<u16, LoginFault>) {
    let mut order = order();
    order.version = asked;
    let options: [&[u8]; 0] = [];
    let mut greeting = Vec::new();
    encode::negotiate_protocol_version(&mut greeting, newest, options.into_iter());
    greeting.extend(welcome());
    let minor = script(order, &[greeting]).map(|logged_in| logged_in.minor);
    assert_eq!(minor, expected.map_err(LoginError::Fault));
}

#[test]
fn version_goes_down_to_what_the_server_speaks() {
    check_negotiation(Version::V3_2, 0, Ok(0));
    check_negotiation(Version::V3_2, 2, Ok(2));
    check_negotiation(Version::V3_0, 0, Ok(0));
}

#[test]
fn version_that_was_not_offered_is_a_fault() {
    check_negotiation(Version::V3_0, 2, Err(LoginFault::VersionNotOffered(0x0003_0002)));
    check_negotiation(Version::V3_2, 9999, Err(LoginFault::VersionNotOffered(0x0003_0000 | 9999)));
}

#[test]
fn second_negotiation_is_a_fault() {
    let options: [&[u8]; 0] = [];
    let negotiate = |out: &mut Vec<u8>| encode::negotiate_protocol_version(out, 0, options.into_iter());
    let twice = bytes(&[&negotiate, &negotiate]);
    assert_eq!(script(order(), &[twice]), Err(LoginFault::Unexpected(b'v').into()));
}

#[test]
fn refusal_keeps_code_and_words() {
    let refusal = bytes(&[&|out| {
        encode::report(out, encode::Severity::Fatal, "53300", "sorry, too many clients already", None);
    }]);
    let failed = LoginFailed {
        severity: "FATAL".into(),
        sqlstate: Some("53300".into()),
        message: "sorry, too many clients already".into(),
    };
    let error = script(order(), &[refusal]).unwrap_err();
    assert_eq!(error, LoginError::Failed(failed));
    assert_eq!(error.to_string(), "server login failed: FATAL sorry, too many clients already");
}

#[track_caller]
fn check_refusal(body: &[u8], sqlstate: Option<&str>, message: &str) {
    let mut refusal = Vec::new();
    encode::message(&mut refusal, b'E', |out| out.extend_from_slice(body));
    let LoginError::Failed(failed) = script(order(), &[refusal]).unwrap_err() else { panic!("no refusal") };
    assert_eq!((failed.sqlstate.as_deref(), failed.message.as_str()), (sqlstate, message));
}

#[test]
fn fields_of_a_refusal_are_optional() {
    check_refusal(b"", None, "");
    check_refusal(b"\0", None, "");
    check_refusal(b"Mno code\0\0", None, "no code");
    check_refusal(b"C28P01\0\0", Some("28P01"), "");
    check_refusal(b"C28P01\0Mno terminator", Some("28P01"), "");
    check_refusal(b"Ctoo long\0Mx\0\0", None, "x");
    check_refusal(b"C28\n01\0Mx\0\0", None, "x");
}

#[test]
fn words_of_a_refusal_are_bounded() {
    let mut body = b"M".to_vec();
    body.resize(60_000, b'x');
    body.extend_from_slice(b"\0\0");
    check_refusal(&body, None, &"x".repeat(LoginFailed::MESSAGE_BYTES_MAX));
}

fn with_query() -> LoginOrder {
    LoginOrder { connect_query: Some(b"set x = 1".as_slice().into()), ..order() }
}

#[test]
fn connect_query_runs_before_the_end_and_its_parameters_count() {
    let answer = bytes(&[
        &|out| encode::parameter_status(out, b"TimeZone", b"CET"),
        &|out| encode::command_complete(out, b"SET"),
        &ready,
    ]);
    let mut server = Answering::new(vec![welcome(), answer]);
    let logged_in = play(with_query(), &mut server).unwrap();
    assert!(logged_in.parameters.contains(&(b"TimeZone".as_slice().into(), b"CET".as_slice().into())));
    assert_eq!(logged_in.connect_query_error, None);
    let mut query = Vec::new();
    encode::query(&mut query, b"set x = 1");
    assert_eq!(server.received[1], query);
}

#[test]
fn error_of_the_connect_query_is_kept_and_ignored() {
    let error =
        |out: &mut Vec<u8>| encode::report(out, encode::Severity::Error, "42601", "syntax error", None);
    let logged_in = script(with_query(), &[welcome(), bytes(&[&error, &ready])]).unwrap();
    assert_eq!(logged_in.connect_query_error.unwrap().sqlstate.as_deref(), Some("42601"));
}

#[test]
fn fatal_error_of_the_connect_query_ends_the_login() {
    let error = |out: &mut Vec<u8>| encode::report(out, encode::Severity::Fatal, "57P01", "going", None);
    let ended = script(with_query(), &[welcome(), bytes(&[&error])]);
    assert!(matches!(ended, Err(LoginError::Failed(_))));
}

#[test]
fn connect_query_must_not_leave_a_transaction_open() {
    let open = |out: &mut Vec<u8>| encode::ready_for_query(out, TransactionStatus::InTransaction);
    assert_eq!(script(with_query(), &[welcome(), bytes(&[&open])]), Err(LoginFault::NotIdle.into()));
}

#[test]
fn copy_in_the_connect_query_is_a_fault() {
    for tag in [b'G', b'H', b'W'] {
        let copy = |out: &mut Vec<u8>| {
            encode::message(out, tag, |out| out.extend_from_slice(&[0, 0, 0]));
        };
        let ended = script(with_query(), &[welcome(), bytes(&[&copy])]);
        assert_eq!(ended, Err(LoginFault::Unexpected(tag).into()));
    }
}
