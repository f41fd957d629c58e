//! A login that a server judges: what goes to and fro, and that nothing else does.

use model::Refusal;

use super::super::{AwaitServer, Closed};
use super::*;

const ASKED: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
const ANSWER: &[u8] = b"p\0\0\0\x0bsecret\0";

/// The startup message is read, and the server is to ask.
fn relayed() -> (Requested, AwaitServer) {
    let mut bytes = Vec::new();
    let parameters = [("user", "ann@host"), ("database", "db"), ("work_mem", "1"), ("options", "-c a=b\\ c")];
    let parameters = parameters.into_iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    assert!(wire::encode::startup(&mut bytes, Version::V3_0, parameters));
    let mut out = Vec::new();
    let step = Login::new(Transport::Plain).handle(&bytes, &mut out);
    assert_eq!(step.consumed, bytes.len());
    let Next::Identify(identity, state) = step.next else { panic!("{:?}", step.next) };
    assert_eq!(identity.user, "ann@host");
    match state.identified(Challenge::Relay, &mut out) {
        Next::Relayed(requested, state) if out.is_empty() => (requested, state),
        next => panic!("{next:?}"),
    }
}

fn reads(next: Next) -> Login {
    match next {
        Next::Read(login) => login,
        next => panic!("{next:?}"),
    }
}

#[test]
fn startup_parameters_go_on_as_they_came() {
    let carried = relayed().0.verbatim();
    assert_eq!(carried.options.as_deref(), Some(b"-c a=b\\ c".as_slice()));
    let [own] = carried.parameters.as_slice() else { panic!("{carried:?}") };
    assert_eq!((&*own.name, &*own.value), (b"work_mem".as_slice(), b"1".as_slice()));
}

#[test]
fn an_answer_is_passed_on_whole_and_behind_it_nothing() {
    let mut out = Vec::new();
    let login = reads(relayed().1.said(ASKED, true, &mut out));
    assert_eq!(out, ASKED);
    assert!(login.reads());
    let login = reads(login.handle(&ANSWER[..7], &mut out).next);
    let step = login.handle(&[ANSWER, b"Q\0\0\0\x05\0"].concat(), &mut out);
    assert_eq!(step.consumed, ANSWER.len());
    let Next::Answer(answer, state) = step.next else { panic!("{:?}", step.next) };
    assert_eq!(answer.message(), ANSWER);
    assert!(!format!("{answer:?}").contains("secret"));
    // A last word is no question.
    let login = reads(state.said(b"R\0\0\0\x08\0\0\0\x0c", false, &mut out));
    assert!(!login.reads() && matches!(login, Login::Server(_)));
}

#[test]
fn what_is_no_answer_ends_it() {
    let ends = |bytes: &[u8]| {
        let mut out = Vec::new();
        reads(relayed().1.said(ASKED, true, &mut out)).handle(bytes, &mut out).next
    };
    assert!(matches!(ends(b"Q\0\0\0\x05\0"), Next::Refuse(Refusal::ProtocolViolation(_))));
    assert!(matches!(ends(b"p\0\x01\x11\x70"), Next::Refuse(Refusal::ProtocolViolation(_))));
    assert!(matches!(ends(b"X\0\0\0\x04"), Next::Close(Closed::Terminated)));
}
