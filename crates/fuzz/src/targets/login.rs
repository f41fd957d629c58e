//! The logins: a client's to us, ours to a server, and the question of auth_query.

use std::num::NonZeroU32;
use std::sync::OnceLock;

use auth::scram::{AwaitClientFirst, Credential, Nonce, ScramVerifier};
use auth::{LoginSecret, Password, StoredSecret};
use client::login::{Challenge, Expected, Greeting, Login, Next, Policy, Transport, UnknownParameter};
use model::Refusal;
use server::login::{LoginOrder, Lookup, LookupStep, Methods, RelayStep, Relayed, Step};
use wire::startup::Version;

use super::cuts;
use crate::corpus;

const ROUNDS: NonZeroU32 = NonZeroU32::new(16).expect("16 is not 0");

fn verifier() -> &'static ScramVerifier {
    static MADE: OnceLock<ScramVerifier> = OnceLock::new();
    MADE.get_or_init(|| ScramVerifier::from_password(&Password::new(&b"secret"[..]), b"salt", ROUNDS))
}

/// The first byte chooses the transport and the challenge.
fn challenge(choice: u8) -> Challenge {
    let clear = || StoredSecret::parse(b"secret");
    match choice % 9 {
        0 => Challenge::Pass,
        1 => Challenge::Plain(Expected::stored(clear())),
        2 => Challenge::Plain(Expected::stored(StoredSecret::Scram(verifier().clone()))),
        3 => Challenge::Plain(Expected::nobody(clear())),
        4 => Challenge::Md5(Expected::stored(clear()), *b"salt"),
        5 => Challenge::Refuse(Refusal::LoginRejected),
        6 => Challenge::Scram(AwaitClientFirst::new(
            Credential::stored(verifier().clone()),
            Some(b"binding"),
            Nonce([0; 18]),
        )),
        7 => Challenge::Relay,
        _ => Challenge::Scram(AwaitClientFirst::new(
            Credential::stored(verifier().clone()),
            None,
            Nonce([0; 18]),
        )),
    }
}

pub(super) fn client_corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (at, first) in corpus::first_packets().iter().enumerate() {
        for (other, proof) in corpus::proofs().iter().enumerate() {
            let choice = [(at * 5 + other) as u8];
            inputs.push([&choice[..], first, proof, &corpus::proofs()[3]].concat());
        }
    }
    inputs
}

pub(super) fn client(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let whole = enter(choice, bytes, &[bytes.len()]);
    let cut = enter(choice, bytes, &cuts(bytes));
    // What comes behind a request for encryption is refused, if it is there in time.
    if !whole.1.starts_with("received unencrypted data") {
        assert_eq!(whole, cut, "where a stream is cut makes no difference");
    }
}

/// Drives a login over bytes that come up to each of these places in turn: what was answered, and how it ended.
fn enter(choice: u8, bytes: &[u8], ends: &[usize]) -> (Vec<u8>, String) {
    let transport =
        [Transport::Plain, Transport::PlainTlsOffered, Transport::PlainTlsRequired, Transport::Tls];
    let mut login = Login::new(transport[usize::from(choice >> 4) % transport.len()]);
    let mut out = Vec::new();
    let mut at = 0;
    for &end in ends {
        loop {
            let step = login.handle(&bytes[at..end], &mut out);
            assert!(step.consumed <= end - at, "no more is consumed than there was");
            at += step.consumed;
            let is_answered = !matches!(step.next, Next::Read(_));
            login = match resolve(choice, step.next, &mut out) {
                Ok(login) => login,
                Err(end) => return (out, end),
            };
            if !is_answered || at == end {
                break;
            }
        }
    }
    (out, format!("reads on at {at}"))
}

/// Answers what a login wants until it wants bytes, or says how it ended.
fn resolve(choice: u8, mut next: Next, out: &mut Vec<u8>) -> Result<Login, String> {
    loop {
        next = match next {
            Next::Read(login) => return Ok(login),
            Next::StartTls(_) => return Err("tls".to_owned()),
            Next::Identify(_, state) => state.identified(challenge(choice), out),
            Next::CheckPassword(check, state) => state.checked(check.run()),
            Next::Authenticated(authenticated, state) => {
                let policy = Policy { ignored: &[], tracked: &[], unknown: UnknownParameter::Carry };
                let carried = authenticated.requested.settle(&policy);
                state.accepted(out).welcome(&Greeting::default(), 1, b"keyk", out);
                return Err(format!("in with {carried:?}"));
            }
            Next::Relayed(_, state) => state.said(PASSWORD_WANTED, true, out),
            // Another server than ours would have other reasons.
            Next::Answer(answer, state) if answer.message().len().is_multiple_of(2) => {
                state.said(PASSWORD_WANTED, true, out)
            }
            Next::Answer(_, state) => {
                state.let_in().accepted(out).welcome(&Greeting::default(), 1, b"keyk", out);
                return Err("let in by its server".to_owned());
            }
            Next::Cancel { process_id, key } => return Err(format!("cancel {process_id} {key:?}")),
            // Of no meaning is how much of the bytes was read by then.
            Next::Refuse(refusal) => return Err(refusal.to_string()),
            Next::Close(closed) => return Err(format!("{closed:?}")),
        };
    }
}

/// AuthenticationCleartextPassword.
const PASSWORD_WANTED: &[u8] = b"R\0\0\0\x08\0\0\0\x03";

fn order() -> LoginOrder {
    LoginOrder {
        version: Version::V3_2,
        user: "user".into(),
        database: "database".into(),
        parameters: Vec::new(),
        secret: LoginSecret::Clear(Password::new(&b"secret"[..])),
        allowed: Methods::ALL,
        binding: Some(Box::from(&b"binding"[..])),
        nonce: Nonce([0; 18]),
        connect_query: Some(Box::from(&b"select 1"[..])),
    }
}

pub(super) fn server(input: &[u8]) {
    relayed(input);
    let mut out = Vec::new();
    let Ok(mut login) = server::login::begin(order(), &mut out) else { return };
    let mut at = 0;
    while let Ok(Some((message, size))) = server::login::next_message(&input[at..]) {
        at += size;
        login = match login.handle(message, &mut out) {
            Ok(Step::Next(login)) => login,
            Ok(Step::NeedsKeys(needed)) => {
                // Making them takes as long as the server asks, which is bounded elsewhere.
                let work = needed.work();
                assert!(out.len() < 1 << 20, "answers are short");
                drop(work);
                return;
            }
            Ok(Step::Done(_)) => return,
            Err(fault) => return drop(format!("{fault:?}")),
        };
    }
}

/// The same messages, in a login that is a client's.
fn relayed(input: &[u8]) {
    let mut out = Vec::new();
    let Ok(mut relayed) = Relayed::begin(order(), input.len().is_multiple_of(2), &mut out) else { return };
    let mut at = 0;
    while let Ok(Some((message, size))) = server::login::next_message(&input[at..]) {
        at += size;
        relayed = match relayed.handle(message) {
            Ok(RelayStep::Next(next)) => next,
            Ok(RelayStep::Put { message, is_question, mut next }) => {
                assert!(message.len() <= size + 2, "no more is passed on than came");
                if is_question && next.answered(b"p\0\0\0\x16SCRAM-SHA-256\0y,,n=").is_err() {
                    return;
                }
                next
            }
            Ok(RelayStep::LetIn(_)) => return,
            Err(fault) => return drop(format!("{fault:?}")),
        };
    }
}

pub(super) fn lookup(input: &[u8]) {
    let mut out = Vec::new();
    let Ok(mut lookup) = Lookup::begin("select $1", "user", &mut out) else { return };
    let mut at = 0;
    while let Ok(Some((message, size))) = server::login::next_message(&input[at..]) {
        at += size;
        lookup = match lookup.handle(message) {
            Ok(LookupStep::Next(lookup)) => lookup,
            Ok(LookupStep::Done(found)) => return drop(format!("{found:?}")),
            Err(fault) => return drop(format!("{fault:?}")),
        };
    }
}
