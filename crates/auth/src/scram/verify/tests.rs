//! What a client may send wrongly, and RFC 7677's exchange seen from the verifying side.

use std::num::NonZeroU32;

use super::super::{Credential, Mechanism, MockKey, Nonce, ScramVerifier};
use super::{AwaitClientFinal, AwaitClientFirst};
use crate::{Password, ScramFault};

const PLAIN: &str = "SCRAM-SHA-256";
const PLUS: &str = "SCRAM-SHA-256-PLUS";

fn credential() -> Credential {
    let one = NonZeroU32::new(1).unwrap();
    Credential::stored(ScramVerifier::from_password(&Password::new("pencil"), b"salt", one))
}

fn awaiting(binding: Option<&[u8]>) -> AwaitClientFirst {
    AwaitClientFirst::new(credential(), binding, Nonce([0; 18]))
}

/// The first message against a connection without binding data, then against one with it.
#[track_caller]
fn check_first(mechanism: &str, message: &str, without: Option<ScramFault>, with: Option<ScramFault>) {
    for (binding, fault) in [(None, without), (Some(b"binding".as_slice()), with)] {
        let answer = awaiting(binding).handle(mechanism.as_bytes(), message.as_bytes());
        assert_eq!(answer.err(), fault, "{message:?} with binding {}", binding.is_some());
    }
}

#[track_caller]
fn check_first_refused(message: &str, fault: ScramFault) {
    check_first(PLAIN, message, Some(fault), Some(fault));
}

/// The last message after an honest first one of a connection without binding data.
#[track_caller]
fn check_final(message: &str, fault: ScramFault) {
    let (state, _) = awaiting(None).handle(PLAIN.as_bytes(), b"n,,n=,r=abc").unwrap();
    assert_eq!(state.handle(message.as_bytes()).err(), Some(fault), "{message:?}");
}

#[test]
fn rfc_7677_exchange_is_verified() {
    let salt = b"\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81";
    let iterations = NonZeroU32::new(4096).unwrap();
    let verifier = ScramVerifier::from_password(&Password::new("pencil"), salt, iterations);
    let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let state = AwaitClientFinal {
        credential: Credential::stored(verifier),
        binding_expected: b"n,,".to_vec(),
        client_first_bare: b"n=user,r=rOprNGfwEbeRWgbNEkqO".to_vec(),
        server_first: format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096").into_bytes(),
        nonce_both: nonce.as_bytes().to_vec(),
    };
    let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    let verified = state.handle(last.as_bytes()).unwrap();
    assert_eq!(verified.server_final, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#[test]
fn server_first_carries_nonce_salt_and_iterations() {
    let (_, server_first) = awaiting(None).handle(PLAIN.as_bytes(), b"n,,n=x,r=abc").unwrap();
    assert_eq!(server_first, b"r=abcAAAAAAAAAAAAAAAAAAAAAAAA,s=c2FsdA==,i=1");
}

#[test]
fn plus_is_offered_first_and_only_with_binding_data() {
    assert_eq!(awaiting(None).mechanisms(), [Mechanism::Sha256]);
    assert_eq!(awaiting(Some(b"x")).mechanisms(), [Mechanism::Sha256Plus, Mechanism::Sha256]);
}

#[test]
fn user_name_in_the_message_is_ignored() {
    check_first(PLAIN, "n,,n=*=2C=3D,r=abc", None, None);
    check_first(PLAIN, "n,,n=,r=abc", None, None);
}

#[test]
fn optional_extensions_are_passed_over() {
    check_first(PLAIN, "n,,n=,r=abc,x=1,z=2", None, None);
}

#[test]
fn mechanism_must_be_one_that_was_offered() {
    let unknown = Some(ScramFault::MechanismUnknown);
    check_first("SCRAM-SHA-1", "n,,n=,r=abc", unknown, unknown);
    check_first("", "n,,n=,r=abc", unknown, unknown);
    check_first("SCRAM-SHA-256\0", "n,,n=,r=abc", unknown, unknown);
    check_first(PLUS, "p=tls-server-end-point,,n=,r=abc", unknown, None);
}

#[test]
fn binding_flag_must_agree_with_the_mechanism() {
    let unoffered = Some(ScramFault::MechanismUnknown);
    check_first(PLAIN, "y,,n=,r=abc", None, Some(ScramFault::Downgraded));
    check_first(PLUS, "y,,n=,r=abc", unoffered, Some(ScramFault::BindingMissing));
    check_first(PLUS, "n,,n=,r=abc", unoffered, Some(ScramFault::BindingMissing));
    check_first(PLUS, "p=tls-unique,,n=,r=abc", unoffered, Some(ScramFault::BindingTypeUnknown));
    check_first_refused("p=tls-server-end-point,,n=,r=abc", ScramFault::BindingUnasked);
    check_first_refused("x,,n=,r=abc", ScramFault::BindingFlagUnknown);
    check_first_refused("nn,,n=,r=abc", ScramFault::BindingFlagUnknown);
    check_first_refused("p,,n=,r=abc", ScramFault::BindingFlagUnknown);
}

#[test]
fn malformed_first_messages_are_refused() {
    check_first_refused("", ScramFault::BindingFlagUnknown);
    check_first_refused("n", ScramFault::Malformed);
    check_first_refused("n,", ScramFault::AttributeMissing('n'));
    check_first_refused("n,,", ScramFault::Malformed);
    check_first_refused("n,a=other,n=,r=abc", ScramFault::AuthorizationIdentity);
    check_first_refused("n,b=other,n=,r=abc", ScramFault::Malformed);
    check_first_refused("n,,n=", ScramFault::AttributeMissing('r'));
    check_first_refused("n,,r=abc,n=", ScramFault::AttributeMissing('n'));
    check_first_refused("n,,m=x,n=,r=abc", ScramFault::MandatoryExtension);
    check_first_refused("n,,n=,m=x,r=abc", ScramFault::MandatoryExtension);
    check_first_refused("n,,n=,r=abc,m=x", ScramFault::MandatoryExtension);
    check_first_refused("n,,n=,r=abc,r=abc", ScramFault::AttributeUnexpected('r'));
    check_first_refused("n,,n=,r=abc,", ScramFault::Malformed);
    check_first_refused("n,,n=,r=abc,xy", ScramFault::Malformed);
    check_first_refused("n,,n=,r=abc,1=y", ScramFault::Malformed);
    check_first_refused("n,,n,r=abc", ScramFault::Malformed);
    check_first_refused("n,,n=\0,r=abc", ScramFault::Malformed);
    check_first_refused("n,,n=,r=", ScramFault::NonceMalformed);
    check_first_refused("n,,n=,r=a b", ScramFault::NonceMalformed);
    check_first_refused("n,,n=,r=a\u{e9}b", ScramFault::NonceMalformed);
}

#[test]
fn long_nonces_and_messages_are_refused() {
    check_first(PLAIN, &format!("n,,n=,r={}", "x".repeat(1024)), None, None);
    check_first_refused(&format!("n,,n=,r={}", "x".repeat(1025)), ScramFault::NonceTooLong);
    check_first_refused(&format!("n,,n=,r={}", "x".repeat(1 << 20)), ScramFault::MessageTooLong);
    check_final(&format!("c=biws,r={}", "x".repeat(1 << 20)), ScramFault::MessageTooLong);
}

#[test]
fn malformed_final_messages_are_refused() {
    let nonce = "abcAAAAAAAAAAAAAAAAAAAAAAAA";
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    check_final("", ScramFault::Malformed);
    check_final("c=biws", ScramFault::AttributeMissing('r'));
    check_final(&format!("r={nonce},c=biws,p={key}"), ScramFault::AttributeMissing('c'));
    check_final(&format!("c=biws,r={nonce}"), ScramFault::AttributeMissing('p'));
    check_final(&format!("m=x,c=biws,r={nonce},p={key}"), ScramFault::MandatoryExtension);
    check_final(&format!("c=biws,r={nonce},m=x,p={key}"), ScramFault::MandatoryExtension);
    check_final(&format!("c=biws,r={nonce},c=biws,p={key}"), ScramFault::AttributeUnexpected('c'));
    check_final(&format!("c=biws,r={nonce},p={key},x=1"), ScramFault::Malformed);
    check_final(&format!("c=biws,r={nonce},p={key},"), ScramFault::Malformed);
    check_final(&format!("c=eSws,r={nonce},p={key}"), ScramFault::BindingDiffers);
    check_final(&format!("c=,r={nonce},p={key}"), ScramFault::BindingDiffers);
    check_final(&format!("c=biws,r={nonce}x,p={key}"), ScramFault::NonceDiffers);
    check_final(&format!("c=biws,r=abc,p={key}"), ScramFault::NonceDiffers);
    check_final(&format!("c=biws,r={nonce},p="), ScramFault::ProofMalformed);
    check_final(&format!("c=biws,r={nonce},p=AAAA"), ScramFault::ProofMalformed);
    check_final(&format!("c=biws,r={nonce},p={}", &key[1..]), ScramFault::ProofMalformed);
    check_final(&format!("c=biws,r={nonce},p=*{}", &key[1..]), ScramFault::ProofMalformed);
    check_final(&format!("c=biws,r={nonce},p={}", "A".repeat(64)), ScramFault::ProofMalformed);
    check_final(&format!("c=biws,r={nonce},p={key}"), ScramFault::ProofWrong);
    check_final(&format!("c=biws,r={nonce},x=1,p={key}"), ScramFault::ProofWrong);
}

#[test]
fn malformed_messages_fail_alike_for_unknown_users() {
    let mock = || Credential::mock(&MockKey::new([0; 32]), "nobody", NonZeroU32::new(1).unwrap());
    for message in ["c=biws,r=x,p=AAAA", "c=eSws,r=x,p=AAAA", "c=biws,r=abcAAAAAAAAAAAAAAAAAAAAAAAA,p=AAAA"] {
        let answers = [credential(), mock()].map(|credential| {
            let first = AwaitClientFirst::new(credential, None, Nonce([0; 18]));
            let (state, _) = first.handle(PLAIN.as_bytes(), b"n,,n=,r=abc").unwrap();
            state.handle(message.as_bytes()).unwrap_err()
        });
        assert_eq!(answers[0], answers[1]);
    }
}
