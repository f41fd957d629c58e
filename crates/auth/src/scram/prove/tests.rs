//! What a lying server may send, and RFC 7677's exchange seen from the proving side.

use std::num::NonZeroU32;

use super::super::{ITERATIONS_MAX, Mechanism, Mechanisms, Nonce, ScramLogin};
use super::{AwaitServerFinal, AwaitServerFirst, Begin, NeedKeys, begin};
use crate::{Blame, Password, ScramFault, ServerErrorValue};

const OURS: &str = "AAAAAAAAAAAAAAAAAAAAAAAA";

fn start() -> Begin<'static> {
    Begin {
        offered: Mechanisms { plain: true, plus: false },
        binding: None,
        binding_required: false,
        iterations_max: ITERATIONS_MAX,
        nonce: Nonce([0; 18]),
    }
}

fn server_first(message: &str) -> Result<NeedKeys, ScramFault> {
    begin(start()).unwrap().0.handle(message.as_bytes())
}

#[track_caller]
fn check_first(message: &str, fault: ScramFault) {
    assert_eq!(server_first(message).err(), Some(fault), "{message:.200}");
}

fn proven() -> AwaitServerFinal {
    let need = server_first(&format!("r={OURS}x,s=c2FsdA==,i=1")).unwrap();
    let login = ScramLogin::derive(&Password::new("pencil"), need.salt(), need.iterations());
    need.prove(&login).unwrap().0
}

#[track_caller]
fn check_final(message: &str, fault: ScramFault) {
    assert_eq!(proven().handle(message.as_bytes()), Err(fault), "{message:?}");
}

#[track_caller]
fn check_begin(start: Begin<'_>, expected: Result<(Mechanism, &str), ScramFault>) {
    let first = begin(start).map(|(_, first)| (first.mechanism, String::from_utf8(first.message).unwrap()));
    assert_eq!(first, expected.map(|(mechanism, message)| (mechanism, message.to_owned())));
}

#[test]
fn rfc_7677_exchange_is_proven() {
    let state = AwaitServerFirst {
        binding: b"n,,".to_vec(),
        client_first_bare: "n=user,r=rOprNGfwEbeRWgbNEkqO".to_owned(),
        nonce: "rOprNGfwEbeRWgbNEkqO".to_owned(),
        iterations_max: 4096,
    };
    let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let need = state.handle(format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096").as_bytes()).unwrap();
    let login = ScramLogin::derive(&Password::new("pencil"), need.salt(), need.iterations());
    let (state, last) = need.prove(&login).unwrap();
    let expected = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    assert_eq!(String::from_utf8(last).unwrap(), expected);
    assert_eq!(state.handle(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
}

#[test]
fn plus_is_chosen_when_both_sides_have_it() {
    let both = Mechanisms { plain: true, plus: true };
    let bound = Begin { binding: Some(b"data"), ..start() };
    let plain = format!("n,,n=,r={OURS}");
    let aware = format!("y,,n=,r={OURS}");
    let plus = format!("p=tls-server-end-point,,n=,r={OURS}");
    check_begin(start(), Ok((Mechanism::Sha256, &plain)));
    check_begin(Begin { offered: both, ..start() }, Ok((Mechanism::Sha256, &plain)));
    check_begin(bound, Ok((Mechanism::Sha256, &aware)));
    check_begin(Begin { offered: both, ..bound }, Ok((Mechanism::Sha256Plus, &plus)));
}

#[test]
fn required_binding_fails_closed() {
    let required = Begin { binding_required: true, ..start() };
    let both = Mechanisms { plain: true, plus: true };
    check_begin(required, Err(ScramFault::BindingRequired));
    check_begin(Begin { offered: both, ..required }, Err(ScramFault::BindingRequired));
    check_begin(Begin { binding: Some(b"data"), ..required }, Err(ScramFault::BindingRequired));
    assert!(begin(Begin { offered: both, binding: Some(b"data"), ..required }).is_ok());
}

#[test]
fn server_without_a_known_mechanism_is_refused() {
    let offered = Mechanisms::from_names([b"SCRAM-SHA-1".as_slice(), b"PLAIN"]);
    check_begin(Begin { offered, ..start() }, Err(ScramFault::MechanismsUnknown));
    let offered = Mechanisms::from_names([b"SCRAM-SHA-256-PLUS".as_slice()]);
    assert_eq!(offered, Mechanisms { plain: false, plus: true });
    check_begin(Begin { offered, ..start() }, Err(ScramFault::MechanismsUnknown));
}

#[test]
fn nonce_must_extend_ours() {
    check_first("r=,s=c2FsdA==,i=1", ScramFault::NonceMalformed);
    check_first("r=xyz,s=c2FsdA==,i=1", ScramFault::NonceNotExtended);
    check_first(&format!("r={OURS},s=c2FsdA==,i=1"), ScramFault::NonceNotExtended);
    check_first(&format!("r=x{OURS},s=c2FsdA==,i=1"), ScramFault::NonceNotExtended);
    check_first(&format!("r={OURS} ,s=c2FsdA==,i=1"), ScramFault::NonceMalformed);
}

#[test]
fn long_nonce_and_salt_are_refused() {
    let nonce = "x".repeat(1024 - OURS.len());
    assert!(server_first(&format!("r={OURS}{nonce},s=c2FsdA==,i=1")).is_ok());
    check_first(&format!("r={OURS}x{nonce},s=c2FsdA==,i=1"), ScramFault::NonceTooLong);
    check_first(&format!("r={OURS}{},s=c2FsdA==,i=1", "x".repeat(1 << 20)), ScramFault::MessageTooLong);
    // 1024 and 1026 bytes of salt; then a kilobyte more.
    assert!(server_first(&format!("r={OURS}x,s={}AA==,i=1", "A".repeat(1364))).is_ok());
    check_first(&format!("r={OURS}x,s={},i=1", "A".repeat(1368)), ScramFault::SaltTooLong);
    check_first(&format!("r={OURS}x,s={},i=1", "A".repeat(2800)), ScramFault::SaltTooLong);
    check_first(&format!("r={OURS}x,s={},i=1", "A".repeat(1 << 20)), ScramFault::MessageTooLong);
}

#[test]
fn iteration_count_is_bounded() {
    let with = |count: &str| server_first(&format!("r={OURS}x,s=c2FsdA==,i={count}"));
    assert_eq!(with("1").unwrap().iterations().get(), 1);
    assert_eq!(with("1000000").unwrap().iterations().get(), 1_000_000);
    for count in ["0", "1000001", "2147483647", "4294967296", "99999999999999999999", "00000000001"] {
        assert_eq!(with(count).err(), Some(ScramFault::IterationsOutOfRange), "{count}");
    }
    for count in ["", "-1", "+1", "1 ", "0x10", "1.0", "\u{661}"] {
        assert_eq!(with(count).err(), Some(ScramFault::IterationsMalformed), "{count}");
    }
    let (state, _) = begin(Begin { iterations_max: 10, ..start() }).unwrap();
    let message = format!("r={OURS}x,s=c2FsdA==,i=11");
    assert_eq!(state.handle(message.as_bytes()).err(), Some(ScramFault::IterationsOutOfRange));
}

#[test]
fn malformed_server_first_is_refused() {
    check_first("", ScramFault::Malformed);
    check_first("e=other-error", ScramFault::AttributeMissing('r'));
    check_first(&format!("m=x,r={OURS}x,s=c2FsdA==,i=1"), ScramFault::MandatoryExtension);
    check_first(&format!("r={OURS}x,m=x,s=c2FsdA==,i=1"), ScramFault::MandatoryExtension);
    check_first(&format!("r={OURS}x,s=c2FsdA==,i=1,m=x"), ScramFault::MandatoryExtension);
    check_first(&format!("r={OURS}x,i=1,s=c2FsdA=="), ScramFault::AttributeMissing('s'));
    check_first(&format!("r={OURS}x,s=c2FsdA=="), ScramFault::AttributeMissing('i'));
    check_first(&format!("r={OURS}x"), ScramFault::AttributeMissing('s'));
    check_first(&format!("r={OURS}x,s=,i=1"), ScramFault::SaltMalformed);
    check_first(&format!("r={OURS}x,s=c2Fsd,i=1"), ScramFault::SaltMalformed);
    check_first(&format!("r={OURS}x,s=c2F dA==,i=1"), ScramFault::SaltMalformed);
    check_first(&format!("r={OURS}x,s=c2FsdA==,i=1,"), ScramFault::Malformed);
    check_first(&format!("r={OURS}x,s=c2FsdA==,i=1,junk"), ScramFault::Malformed);
    check_first(&format!("r={OURS}x,s=c2FsdA==,i=1,i=2"), ScramFault::AttributeUnexpected('i'));
    check_first(&format!("r={OURS}x,s=c2FsdA==,i=1\0"), ScramFault::Malformed);
    assert!(server_first(&format!("r={OURS}x,s=c2FsdA==,i=1,x=later")).is_ok());
}

#[test]
fn server_signature_is_checked() {
    check_final("", ScramFault::Malformed);
    check_final("v=", ScramFault::SignatureMalformed);
    check_final("v=AAAA", ScramFault::SignatureMalformed);
    check_final("v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", ScramFault::SignatureWrong);
    check_final("x=1", ScramFault::AttributeMissing('v'));
    check_final("v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,m=x", ScramFault::MandatoryExtension);
}

#[test]
fn server_error_value_is_a_fact_and_not_a_text() {
    check_final("e=invalid-proof", ScramFault::ServerError(ServerErrorValue::InvalidProof));
    check_final("e=\u{1b}[31mrun this", ScramFault::ServerError(ServerErrorValue::Other));
    assert_eq!(ScramFault::ServerError(ServerErrorValue::InvalidProof).blame(), Blame::Password);
}

#[test]
fn keys_for_another_salt_or_count_are_refused() {
    let need = || server_first(&format!("r={OURS}x,s=c2FsdA==,i=1")).unwrap();
    let count = |count| NonZeroU32::new(count).unwrap();
    let password = Password::new("pencil");
    for login in
        [ScramLogin::derive(&password, b"pepper", count(1)), ScramLogin::derive(&password, b"salt", count(2))]
    {
        assert!(!need().fits(&login));
        assert_eq!(need().prove(&login).err(), Some(ScramFault::KeysForOtherSalt));
    }
    assert!(need().prove(&ScramLogin::derive(&password, b"salt", count(1))).is_ok());
}
