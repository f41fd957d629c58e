//! Which secret works with which method.

use super::{Challenge, ClientMethod, ScramSource, UnknownAs, check_plain, scram_source};
use crate::{Password, Refusal, StoredSecret};

const VERIFIER: &[u8] = b"SCRAM-SHA-256$4096:4uWnNc8fnE89r223z3FzSw==$\
Y83pca+OEhUeQabWFtZ99Rkjnsk8aSTWt/eB3XhpUuc=:cyVmK5/isNM4ttY7Xc6CsZCZrJdPOV1a3fRhuXBKxtU=";

fn clear() -> Option<StoredSecret> {
    Some(StoredSecret::parse(b"pencil"))
}

fn md5() -> Option<StoredSecret> {
    Some(StoredSecret::parse(b"md516ead560cce489da9f2fd00912e06712"))
}

fn scram() -> Option<StoredSecret> {
    Some(StoredSecret::parse(VERIFIER))
}

fn unusable() -> Option<StoredSecret> {
    Some(StoredSecret::parse(b""))
}

#[track_caller]
fn check_challenge(method: ClientMethod, stored: Option<StoredSecret>, expected: Challenge) {
    assert_eq!(method.challenge(stored.as_ref(), UnknownAs::Md5), expected);
}

#[test]
fn md5_becomes_scram_for_a_scram_secret() {
    check_challenge(ClientMethod::Md5, clear(), Challenge::Md5);
    check_challenge(ClientMethod::Md5, md5(), Challenge::Md5);
    check_challenge(ClientMethod::Md5, scram(), Challenge::Scram);
}

#[test]
fn unknown_user_is_challenged_as_most_users_are() {
    for stored in [None, unusable()] {
        check_challenge(ClientMethod::Md5, stored.clone(), Challenge::Md5);
        check_challenge(ClientMethod::Plain, stored.clone(), Challenge::Cleartext);
        check_challenge(ClientMethod::Scram, stored.clone(), Challenge::Scram);
        assert_eq!(ClientMethod::Md5.challenge(stored.as_ref(), UnknownAs::Scram), Challenge::Scram);
    }
}

#[test]
fn trust_needs_a_known_user_and_any_does_not() {
    check_challenge(ClientMethod::Trust, unusable(), Challenge::Pass);
    check_challenge(ClientMethod::Trust, None, Challenge::Refuse(Refusal::UserUnknown));
    check_challenge(ClientMethod::Any, None, Challenge::Pass);
}

#[test]
fn methods_that_cannot_run_refuse() {
    check_challenge(ClientMethod::Reject, clear(), Challenge::Refuse(Refusal::Rejected));
    check_challenge(ClientMethod::Hba, clear(), Challenge::Refuse(Refusal::NoRule));
    check_challenge(ClientMethod::Ldap, clear(), Challenge::Refuse(Refusal::MethodUnsupported));
    check_challenge(ClientMethod::Pam, clear(), Challenge::Refuse(Refusal::MethodUnsupported));
}

#[test]
fn scram_takes_verifiers_and_clear_text_but_not_md5() {
    assert!(matches!(scram_source(scram().as_ref()), ScramSource::Stored(_)));
    assert!(matches!(scram_source(clear().as_ref()), ScramSource::Derive(_)));
    let clear_of_nothing = Some(StoredSecret::Clear(Password::new("")));
    for stored in [md5(), unusable(), clear_of_nothing, None] {
        assert!(matches!(scram_source(stored.as_ref()), ScramSource::Mock));
    }
}

#[test]
fn plain_compares_with_every_kind_of_secret() {
    for stored in [clear(), md5(), scram()] {
        let check = |given: &str| check_plain(stored.as_ref(), "e", &Password::new(given));
        assert_eq!(check("pencil"), Ok(()));
        assert_eq!(check("pencil "), Err(Refusal::PasswordWrong));
        assert_eq!(check(""), Err(Refusal::PasswordEmpty));
    }
    for stored in [unusable(), None] {
        let refused = check_plain(stored.as_ref(), "e", &Password::new("pencil"));
        assert_eq!(refused, Err(Refusal::PasswordWrong));
    }
}

#[test]
fn stored_text_itself_is_not_the_password() {
    for text in [VERIFIER, b"md516ead560cce489da9f2fd00912e06712"] {
        let stored = StoredSecret::parse(text);
        assert_eq!(check_plain(Some(&stored), "e", &Password::new(text)), Err(Refusal::PasswordWrong));
    }
}

#[test]
fn verifier_with_too_many_iterations_is_not_computed() {
    let text = String::from_utf8(VERIFIER.to_vec()).unwrap().replace("4096", "2147483647");
    let stored = StoredSecret::parse(text.as_bytes());
    let refused = check_plain(Some(&stored), "e", &Password::new("pencil"));
    assert_eq!(refused, Err(Refusal::SecretTooCostly));
}

#[test]
fn words_are_those_of_the_two_files() {
    assert_eq!(ClientMethod::from_setting("plain"), Some(ClientMethod::Plain));
    assert_eq!(ClientMethod::from_setting("password"), None);
    assert_eq!(ClientMethod::from_setting("hba"), Some(ClientMethod::Hba));
    assert_eq!(ClientMethod::from_hba("password"), Some(ClientMethod::Plain));
    for word in ["plain", "any", "pam", "hba", "MD5", ""] {
        assert_eq!(ClientMethod::from_hba(word), None, "{word}");
    }
}
