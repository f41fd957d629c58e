//! auth_query: right answers, wrong ones, and anything at all.

use auth::Password;
use wire::encode;
use wire::server::TransactionStatus;

use super::Part;
use crate::login::*;

fn columns(count: usize) -> impl Fn(&mut Vec<u8>) {
    move |out| {
        let fields = (0..count).map(|_| encode::Field { name: "x", oid: 25, width: -1 });
        encode::row_description(out, fields.collect::<Vec<_>>().into_iter());
    }
}

fn row<'a>(values: &'a [Option<&'a [u8]>]) -> impl Fn(&mut Vec<u8>) + 'a {
    move |out| encode::data_row(out, values.iter().copied())
}

fn answer(parts: &[Part<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&encode::PARSE_COMPLETE);
    out.extend_from_slice(&encode::BIND_COMPLETE);
    parts.iter().for_each(|part| part(&mut out));
    encode::command_complete(&mut out, b"SELECT 1");
    encode::ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

/// `None` if the answer has no end.
fn run(mut received: &[u8]) -> Option<Result<Option<Found>, LookupError>> {
    let mut out = Vec::new();
    let mut lookup = Lookup::begin("select a, b from c where a = $1", "ann", &mut out).unwrap();
    loop {
        let (message, size) = next_message(received).ok()??;
        match lookup.handle(message) {
            Ok(LookupStep::Next(next)) => lookup = next,
            Ok(LookupStep::Done(found)) => return Some(Ok(found)),
            Err(error) => return Some(Err(error)),
        }
        received = &received[size..];
    }
}

#[track_caller]
fn check(received: &[u8], expected: Result<Option<Found>, LookupFault>) {
    assert_eq!(run(received), Some(expected.map_err(LookupError::Fault)));
}

fn found(secret: Option<&[u8]>) -> Option<Found> {
    Some(Found { user: b"ann".as_slice().into(), secret: secret.map(Password::new) })
}

#[test]
fn row_is_found() {
    let two = columns(2);
    check(&answer(&[&two, &row(&[Some(b"ann"), Some(b"md5")])]), Ok(found(Some(b"md5"))));
    check(&answer(&[&two, &row(&[Some(b"ann"), None])]), Ok(found(None)));
    check(&answer(&[&two]), Ok(None));
}

#[test]
fn answer_of_another_shape_is_refused() {
    let two = columns(2);
    check(&answer(&[&columns(1)]), Err(LookupFault::ColumnsNotTwo(1)));
    check(&answer(&[&columns(3)]), Err(LookupFault::ColumnsNotTwo(3)));
    check(&answer(&[&two, &row(&[Some(b"ann")])]), Err(LookupFault::ColumnsNotTwo(1)));
    check(&answer(&[&two, &row(&[None, Some(b"x")])]), Err(LookupFault::UserInvalid));
    check(&answer(&[&two, &row(&[Some(&[b'u'; 128]), Some(b"x")])]), Err(LookupFault::UserInvalid));
    check(&answer(&[&two, &row(&[Some(b"ann"), Some(&[b's'; 2048])])]), Err(LookupFault::SecretTooLong));
    let one = row(&[Some(b"ann"), None]);
    check(&answer(&[&two, &one, &one]), Err(LookupFault::TooManyRows));
    check(&answer(&[&|out| out.extend_from_slice(&encode::NO_DATA)]), Err(LookupFault::ColumnsNotTwo(0)));
}

#[test]
fn error_of_the_query_is_in_the_servers_words() {
    let mut received = Vec::new();
    encode::report(&mut received, encode::Severity::Error, "42501", "permission denied", None);
    let Some(Err(LookupError::Failed(failed))) = run(&received) else { panic!("no failure") };
    assert_eq!(failed.sqlstate.as_deref(), Some("42501"));
}

#[test]
fn name_of_the_user_is_a_parameter() {
    let mut out = Vec::new();
    let name = "x'; drop table t; --";
    Lookup::begin("select 1, $1", name, &mut out).unwrap();
    let (parse, size) = next_message(&out).unwrap().unwrap();
    let parsed = wire::client::Parse::read(parse.body).unwrap();
    assert_eq!((parse.tag, parsed.query()), (b'P', b"select 1, $1".as_slice()));
    let (bind, _) = next_message(&out[size..]).unwrap().unwrap();
    assert_eq!(bind.tag, b'B');
    assert!(bind.body.windows(name.len()).any(|part| part == name.as_bytes()));
}

#[test]
fn changed_answers_end_or_go_on() {
    let honest = answer(&[&columns(2), &row(&[Some(b"ann"), Some(b"secret")])]);
    for at in 0..honest.len() {
        for change in 1..=255 {
            let mut received = honest.clone();
            received[at] ^= change;
            let _ = run(&received);
        }
        assert_eq!(run(&honest[..at]), None);
    }
}
