//! Both sides against one another, and against keys that PostgreSQL made.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::{Password, ScramFault, StoredSecret};

const OFFER_BOTH: Mechanisms = Mechanisms { plain: true, plus: true };
const OFFER_PLAIN: Mechanisms = Mechanisms { plain: true, plus: false };
const BINDING: &[u8] = &[0xAB; 32];

fn password(text: &str) -> Password {
    Password::new(text)
}

fn few() -> NonZeroU32 {
    NonZeroU32::new(3).unwrap()
}

fn verifier(text: &str) -> ScramVerifier {
    ScramVerifier::from_password(&password(text), b"salt", few())
}

fn start(offered: Mechanisms, binding: Option<&[u8]>) -> Begin<'_> {
    Begin { offered, binding, binding_required: false, iterations_max: ITERATIONS_MAX, nonce: Nonce([7; 18]) }
}

/// Runs a whole exchange: `ours` is the binding that the verifying side sees, `theirs` the proving side's.
fn exchange(
    given: &Password,
    credential: Credential,
    ours: Option<&[u8]>,
    theirs: Begin<'_>,
) -> Result<Verified, ScramFault> {
    let verify = AwaitClientFirst::new(credential, ours, Nonce([9; 18]));
    let (prove, first) = begin(theirs)?;
    let (verify, server_first) = verify.handle(first.mechanism.name().as_bytes(), &first.message)?;
    let need = prove.handle(&server_first)?;
    let login = ScramLogin::derive(given, need.salt(), need.iterations());
    let (prove, client_final) = need.prove(&login)?;
    let verified = verify.handle(&client_final)?;
    prove.handle(&verified.server_final)?;
    Ok(verified)
}

#[test]
fn right_password_is_verified_by_both_sides_with_and_without_binding() {
    for (ours, theirs, mechanism) in [
        (None, start(OFFER_PLAIN, None), Mechanism::Sha256),
        (None, start(OFFER_PLAIN, Some(BINDING)), Mechanism::Sha256),
        (Some(BINDING), start(OFFER_BOTH, Some(BINDING)), Mechanism::Sha256Plus),
        (Some(BINDING), start(OFFER_BOTH, None), Mechanism::Sha256),
    ] {
        assert_eq!(begin(theirs).unwrap().1.mechanism, mechanism);
        let done = exchange(&password("pencil"), Credential::stored(verifier("pencil")), ours, theirs);
        assert_eq!(done.unwrap().login.verifier(), verifier("pencil"));
    }
}

#[test]
fn wrong_password_and_unknown_user_fail_alike() {
    let wrong =
        exchange(&password("crayon"), Credential::stored(verifier("pencil")), None, start(OFFER_PLAIN, None));
    let mock = Credential::mock(&MockKey::new([1; 32]), "nobody", few());
    let unknown = exchange(&password("crayon"), mock, None, start(OFFER_PLAIN, None));
    assert_eq!(wrong.unwrap_err(), ScramFault::ProofWrong);
    assert_eq!(unknown.unwrap_err(), ScramFault::ProofWrong);
}

#[test]
fn doomed_exchange_fails_even_with_a_right_proof() {
    let credential = Credential { verifier: verifier("pencil"), doomed: true };
    let done = exchange(&password("pencil"), credential, None, start(OFFER_PLAIN, None));
    assert_eq!(done.unwrap_err(), ScramFault::ProofWrong);
}

#[test]
fn man_in_the_middle_with_another_certificate_is_noticed() {
    let credential = Credential::stored(verifier("pencil"));
    let done = exchange(&password("pencil"), credential, Some(&[1; 32]), start(OFFER_BOTH, Some(BINDING)));
    assert_eq!(done.unwrap_err(), ScramFault::BindingDiffers);
}

#[test]
fn man_in_the_middle_who_hides_the_plus_offer_is_noticed() {
    let credential = Credential::stored(verifier("pencil"));
    let done = exchange(&password("pencil"), credential, Some(BINDING), start(OFFER_PLAIN, Some(BINDING)));
    assert_eq!(done.unwrap_err(), ScramFault::Downgraded);
}

#[test]
fn keys_seen_in_a_login_pass_through_to_a_server_with_the_same_verifier() {
    let credential = Credential::stored(verifier("pencil"));
    let seen = exchange(&password("pencil"), credential, None, start(OFFER_PLAIN, None)).unwrap().login;
    let verify = AwaitClientFirst::new(Credential::stored(verifier("pencil")), None, Nonce([3; 18]));
    let (prove, first) = begin(start(OFFER_PLAIN, None)).unwrap();
    let (verify, server_first) = verify.handle(b"SCRAM-SHA-256", &first.message).unwrap();
    let need = prove.handle(&server_first).unwrap();
    assert!(need.fits(&seen));
    let (prove, client_final) = need.prove(&seen).unwrap();
    prove.handle(&verify.handle(&client_final).unwrap().server_final).unwrap();
}

#[test]
fn pass_through_keys_must_belong_to_the_verifier() {
    let login = ScramLogin::derive(&password("crayon"), b"salt", few());
    assert_eq!(ScramLogin::pass_through(&verifier("pencil"), login.keys().client_key.clone()), None);
}

/// Verifiers made by PostgreSQL 15 for passwords on which SASLprep does something, nothing, or gives up.
#[test]
fn postgres_verifiers_match_their_passwords() {
    for (given, text) in [
        (
            "pencil",
            "SCRAM-SHA-256$4096:4uWnNc8fnE89r223z3FzSw==$Y83pca+OEhUeQabWFtZ99Rkjnsk8aSTWt/eB3XhpUuc=:cyVmK5/isNM4ttY7Xc6CsZCZrJdPOV1a3fRhuXBKxtU=",
        ),
        (
            "I\u{AD}X",
            "SCRAM-SHA-256$4096:wZf8/Lnh38lYLuNI0wKjSg==$3jkLVnXL6CCxv8nkxgObpEbmig9gn6EqGAXGuj6d1j0=:2HRlX8kCCIl3swezFreja2VCdyCKOkx440UECZ9Y0iE=",
        ),
        (
            "\u{2168} caf\u{E9}",
            "SCRAM-SHA-256$4096:/9pOGd69O315P3F9DDnlrg==$OVlGqLfX1EyrD43og0aJEPn151YRgsO5JFkml031jvU=:jhDcKr2IPfULud0ndUVB9I8q/QdQPLH5sAwuxbqLmn4=",
        ),
        (
            "\u{627}1",
            "SCRAM-SHA-256$4096:32GerxGfjW1WdWAmSQ63AA==$6Gqf+uR2dlOBIuz7ro6xvDkQLj2oe9Tcyju0uvP7ojQ=:h4Sk7JBGf1y4+m1cR4CF9PBP8HRDUzYm0bwdtdyJK9U=",
        ),
        (
            "a\tb",
            "SCRAM-SHA-256$4096:8NQ/yoEwWu+0x9DREP0lnQ==$qEcTIzWey84td9lsXQftG/sgHbFgwCW7Wgl5Ns5mbco=:/TTm66hdwNjntT6edwLjUAv85UaQ3VMyJf5bnof13TE=",
        ),
    ] {
        let parsed = ScramVerifier::parse(text.as_bytes()).unwrap();
        assert_eq!(parsed.to_text().reveal(), text.as_bytes());
        let made = ScramVerifier::from_password(&password(given), parsed.salt(), parsed.iterations());
        assert_eq!(made, parsed, "{given:?}");
    }
}

#[test]
fn broken_verifiers_are_unusable_and_never_clear_text() {
    const KEY: &str = "Y83pca+OEhUeQabWFtZ99Rkjnsk8aSTWt/eB3XhpUuc=";
    let good = format!("SCRAM-SHA-256$4096:c2FsdA==${KEY}:{KEY}");
    assert!(matches!(StoredSecret::parse(good.as_bytes()), StoredSecret::Scram(_)));
    for bad in [
        "SCRAM-SHA-256$".to_owned(),
        good.replace("4096", "0"),
        good.replace("4096", "-1"),
        good.replace("4096", "4294967296"),
        good.replace("4096", "2147483648"),
        good.replace("c2FsdA==", ""),
        good.replace("c2FsdA==", "c2FsdA"),
        good.replace("c2FsdA==", "***"),
        good.replacen(KEY, "c2FsdA==", 1),
        good[..good.len() - 1].to_owned(),
        format!("{good}x"),
        good.replace("==$", "==:"),
    ] {
        assert_eq!(StoredSecret::parse(bad.as_bytes()), StoredSecret::Unusable, "{bad}");
    }
}

#[test]
fn unknown_user_is_shaped_like_a_known_one() {
    let key = MockKey::new([5; 32]);
    let first = |credential| {
        let verify = AwaitClientFirst::new(credential, None, Nonce([2; 18]));
        verify.handle(b"SCRAM-SHA-256", b"n,,n=,r=clientnonce").unwrap().1
    };
    let known = ScramVerifier::from_password(&password("x"), &[4; SALT_BYTES_DEFAULT], ITERATIONS_DEFAULT);
    let known = first(Credential::stored(known));
    let mock = |user| first(Credential::mock(&key, user, ITERATIONS_DEFAULT));
    assert_eq!(mock("nobody").len(), known.len());
    assert_eq!(mock("nobody"), mock("nobody"), "the salt stays the same");
    assert_ne!(mock("nobody"), mock("somebody"), "every user has his own salt");
    assert_ne!(key.salt("nobody"), MockKey::new([6; 32]).salt("nobody"), "every process has its own salts");
}

proptest! {
    #[test]
    fn only_the_same_password_is_verified(
        stored in "\\PC{1,12}", given in "\\PC{1,12}", salt in prop::collection::vec(any::<u8>(), 1..40),
        client_nonce in any::<[u8; 18]>(), server_nonce in any::<[u8; 18]>(), bound in any::<bool>(),
    ) {
        let binding = bound.then_some(BINDING);
        let offered = if bound { OFFER_BOTH } else { OFFER_PLAIN };
        for given in [&stored, &given] {
            let verifier = ScramVerifier::from_password(&password(&stored), &salt, few());
            let verify = AwaitClientFirst::new(Credential::stored(verifier.clone()), binding, Nonce(server_nonce));
            let (prove, first) = begin(Begin { nonce: Nonce(client_nonce), ..start(offered, binding) }).unwrap();
            let (verify, server_first) =
                verify.handle(first.mechanism.name().as_bytes(), &first.message).unwrap();
            let need = prove.handle(&server_first).unwrap();
            let login = ScramLogin::derive(&password(given), need.salt(), need.iterations());
            let same = login.verifier() == verifier;
            let (prove, client_final) = need.prove(&login).unwrap();
            match verify.handle(&client_final) {
                Ok(verified) => {
                    prop_assert!(same);
                    prop_assert!(prove.handle(&verified.server_final).is_ok());
                }
                Err(fault) => {
                    prop_assert!(!same);
                    prop_assert_eq!(fault, ScramFault::ProofWrong);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_password_and_a_message(
        bytes in prop::collection::vec(any::<u8>(), 0..200), mechanism in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        ScramVerifier::from_password(&Password::new(bytes.clone()), b"s", few());
        ScramVerifier::parse(&bytes);
        StoredSecret::parse(&bytes);
        let credential = Credential::stored(verifier("x"));
        let verify = AwaitClientFirst::new(credential.clone(), None, Nonce([1; 18]));
        prop_assert!(verify.handle(&mechanism, &bytes).is_err());
        let verify = AwaitClientFirst::new(credential, None, Nonce([1; 18]));
        let _ = verify.handle(b"SCRAM-SHA-256", &bytes);
        prop_assert!(begin(start(OFFER_PLAIN, None)).unwrap().0.handle(&bytes).is_err());
    }

    #[test]
    fn verifier_text_reads_back(
        salt in prop::collection::vec(any::<u8>(), 1..64), iterations in 1u32..=i32::MAX as u32,
        stored in any::<[u8; 32]>(), server in any::<[u8; 32]>(),
    ) {
        let verifier = ScramVerifier {
            iterations: NonZeroU32::new(iterations).unwrap(),
            salt,
            stored_key: StoredKey::new(stored),
            server_key: ServerKey::new(server),
        };
        prop_assert_eq!(ScramVerifier::parse(verifier.to_text().reveal()), Some(verifier));
    }
}

/// Every byte of each message replaced by every value, and every message cut short: no panic, no login.
#[test]
fn mutated_messages_never_log_in_and_never_panic() {
    let credential = || Credential::stored(verifier("pencil"));
    let verify = |binding| AwaitClientFirst::new(credential(), binding, Nonce([9; 18]));
    let login = ScramLogin::derive(&password("pencil"), b"salt", few());
    let theirs = start(OFFER_BOTH, Some(BINDING));
    let (prove, first) = begin(theirs).unwrap();
    let plus = b"SCRAM-SHA-256-PLUS";
    let awaiting = |first: &[u8]| verify(Some(BINDING)).handle(plus, first);
    let (state, server_first) = awaiting(&first.message).unwrap();
    let (_, client_final) = prove.handle(&server_first).unwrap().prove(&login).unwrap();
    let server_final = state.handle(&client_final).unwrap().server_final;

    for_mutations(&first.message, |message| {
        // The name in n= may change; whatever does is signed, so the honest proof no longer fits.
        if let Ok((state, _)) = awaiting(message) {
            assert!(state.handle(&client_final).is_err());
        }
    });
    for_mutations(&server_first, |message| {
        let (prove, _) = begin(Begin { iterations_max: 50, ..theirs }).unwrap();
        if let Ok(need) = prove.handle(message) {
            let login = ScramLogin::derive(&password("pencil"), need.salt(), need.iterations());
            let (_, client_final) = need.prove(&login).unwrap();
            assert!(awaiting(&first.message).unwrap().0.handle(&client_final).is_err());
        }
    });
    for_mutations(&client_final, |message| {
        assert!(awaiting(&first.message).unwrap().0.handle(message).is_err());
    });
    for_mutations(&server_final, |message| {
        let (prove, _) = begin(theirs).unwrap();
        let (prove, _) = prove.handle(&server_first).unwrap().prove(&login).unwrap();
        assert!(prove.handle(message).is_err());
    });
}

fn for_mutations(message: &[u8], mut check: impl FnMut(&[u8])) {
    for at in 0..message.len() {
        check(&message[..at]);
        for byte in 0..=255 {
            let mut mutated = message.to_vec();
            mutated[at] = byte;
            if mutated != message {
                check(&mutated);
            }
        }
        let mut shorter = message.to_vec();
        shorter.remove(at);
        check(&shorter);
        let mut longer = message.to_vec();
        longer.insert(at, b',');
        check(&longer);
    }
}
