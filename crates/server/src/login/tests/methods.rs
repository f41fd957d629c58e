//! Which way to authenticate is taken with which secret, and which is refused.

use auth::md5::Md5Secret;
use auth::scram::ScramLogin;
use auth::{LoginSecret, Password, ScramFault};
use wire::encode;

use super::model::{Ask, Asking, BINDING, PASSWORD, order, play, script, verifier, welcome};
use crate::login::*;

fn password() -> LoginSecret {
    LoginSecret::Clear(Password::new(PASSWORD))
}

fn md5() -> LoginSecret {
    LoginSecret::Md5(Md5Secret::from_password(&Password::new(PASSWORD), "ann"))
}

fn keys() -> LoginSecret {
    let verifier = verifier();
    LoginSecret::Scram(ScramLogin::derive(&Password::new(PASSWORD), verifier.salt(), verifier.iterations()))
}

#[track_caller]
fn check(ask: Ask, order: LoginOrder, expected: Result<Method, LoginFault>) {
    let result = play(order, &mut Asking::new(ask));
    let expected = expected.map(Some).map_err(LoginError::Fault);
    assert_eq!(result.map(|logged_in| logged_in.method), expected);
}

fn with(secret: LoginSecret) -> LoginOrder {
    LoginOrder { secret, ..order() }
}

fn allowing(methods: &[Method]) -> LoginOrder {
    LoginOrder { allowed: methods.iter().copied().collect(), ..order() }
}

fn bound(order: LoginOrder) -> LoginOrder {
    LoginOrder { binding: Some(BINDING.into()), ..order }
}

#[test]
fn password_serves_every_method() {
    check(Ask::Cleartext, with(password()), Ok(Method::Cleartext));
    check(Ask::Md5, with(password()), Ok(Method::Md5));
    check(Ask::Scram, with(password()), Ok(Method::Scram));
    check(Ask::ScramPlus, with(password()), Ok(Method::Scram));
    check(Ask::ScramPlus, bound(with(password())), Ok(Method::ScramPlus));
    check(Ask::Scram, bound(with(password())), Ok(Method::Scram));
}

#[test]
fn md5_secret_serves_md5_only() {
    check(Ask::Cleartext, with(md5()), Err(LoginFault::NoSecret(Method::Cleartext)));
    check(Ask::Md5, with(md5()), Ok(Method::Md5));
    check(Ask::Scram, with(md5()), Err(LoginFault::NoSecret(Method::Scram)));
}

#[test]
fn scram_keys_serve_scram_only() {
    check(Ask::Cleartext, with(keys()), Err(LoginFault::NoSecret(Method::Cleartext)));
    check(Ask::Md5, with(keys()), Err(LoginFault::NoSecret(Method::Md5)));
    check(Ask::Scram, with(keys()), Ok(Method::Scram));
    check(Ask::ScramPlus, bound(with(keys())), Ok(Method::ScramPlus));
}

#[test]
fn scram_keys_of_another_salt_are_a_fault() {
    let iterations = verifier().iterations();
    let other = ScramLogin::derive(&Password::new(PASSWORD), b"another", iterations);
    check(Ask::Scram, with(LoginSecret::Scram(other)), Err(LoginFault::Scram(ScramFault::KeysForOtherSalt)));
}

#[test]
fn no_secret_serves_no_method() {
    check(Ask::Cleartext, with(LoginSecret::None), Err(LoginFault::NoSecret(Method::Cleartext)));
    check(Ask::Md5, with(LoginSecret::None), Err(LoginFault::NoSecret(Method::Md5)));
    check(Ask::Scram, with(LoginSecret::None), Err(LoginFault::NoSecret(Method::Scram)));
}

#[test]
fn wrong_password_is_the_servers_refusal() {
    for ask in [Ask::Cleartext, Ask::Md5, Ask::Scram, Ask::ScramPlus] {
        let secret = LoginSecret::Clear(Password::new(b"wrong".as_slice()));
        let refused = play(bound(with(secret)), &mut Asking::new(ask));
        assert!(matches!(refused, Err(LoginError::Failed(_))), "{refused:?}");
    }
}

#[test]
fn method_that_is_not_allowed_gets_nothing() {
    let scram = allowing(&[Method::Scram, Method::ScramPlus]);
    check(Ask::Cleartext, scram.clone(), Err(LoginFault::MethodNotAllowed(Method::Cleartext)));
    check(Ask::Md5, scram, Err(LoginFault::MethodNotAllowed(Method::Md5)));
    let md5 = allowing(&[Method::Md5]);
    check(Ask::Scram, md5.clone(), Err(LoginFault::MethodNotAllowed(Method::Scram)));
    let trusted = script(md5, &[welcome()]);
    assert_eq!(trusted, Err(LoginFault::MethodNotAllowed(Method::Trust).into()));
}

#[test]
fn channel_binding_alone_allowed_fails_closed() {
    let plus = allowing(&[Method::ScramPlus]);
    let missing = Err(LoginFault::Scram(ScramFault::BindingRequired));
    check(Ask::ScramPlus, bound(plus.clone()), Ok(Method::ScramPlus));
    check(Ask::Scram, bound(plus.clone()), missing);
    check(Ask::ScramPlus, plus, missing);
}

#[test]
fn channel_binding_not_allowed_is_not_hinted_at() {
    // With `y` in its first message the server would see its own offer taken away.
    check(Ask::ScramPlus, bound(allowing(&[Method::Scram])), Ok(Method::Scram));
}

#[test]
fn server_that_skips_its_proof_is_refused() {
    let mut offer = Vec::new();
    encode::auth_sasl(&mut offer, &["SCRAM-SHA-256"]);
    let skipped = script(order(), &[offer, welcome()]);
    assert_eq!(skipped, Err(LoginFault::Unexpected(b'R').into()));
}

#[test]
fn unknown_mechanisms_and_methods_are_refused() {
    let mut offer = Vec::new();
    encode::auth_sasl(&mut offer, &["OAUTHBEARER"]);
    let unknown = script(order(), &[offer]);
    assert_eq!(unknown, Err(LoginFault::Scram(ScramFault::MechanismsUnknown).into()));
    let mut gss = Vec::new();
    encode::message(&mut gss, b'R', |out| out.extend_from_slice(&7_u32.to_be_bytes()));
    assert_eq!(script(order(), &[gss]), Err(LoginFault::MethodUnknown(7).into()));
}

#[track_caller]
fn check_server_first(message: impl Into<Vec<u8>>) {
    let mut offer = Vec::new();
    encode::auth_sasl(&mut offer, &["SCRAM-SHA-256"]);
    let mut first = Vec::new();
    encode::auth_sasl_continue(&mut first, &message.into());
    let ended = script(order(), &[offer, first]);
    assert!(
        matches!(ended, Err(LoginError::Fault(LoginFault::Scram(_) | LoginFault::MessageTooLong(b'R')))),
        "{ended:?}"
    );
}

#[test]
fn cost_that_a_server_chooses_is_bounded() {
    // `AQEB...` is the nonce of `order` in base64.
    let nonce = "AQEB".repeat(6);
    check_server_first(format!("r={nonce}x,s=c2FsdA==,i=2147483647"));
    check_server_first(format!("r={nonce}x,s=c2FsdA==,i=1000001"));
    check_server_first(format!("r={nonce}x,s=c2FsdA==,i=0"));
    check_server_first(format!("r={nonce}{},s=c2FsdA==,i=4096", "x".repeat(1 << 20)));
    check_server_first(format!("r={nonce}{},s=c2FsdA==,i=4096", "x".repeat(60_000)));
    check_server_first(format!("r={nonce}x,s={},i=4096", "QUFB".repeat(10_000)));
    check_server_first("");
}

#[test]
fn words_of_methods_are_read_back() {
    for method in [Method::Trust, Method::Cleartext, Method::Md5, Method::Scram, Method::ScramPlus] {
        assert_eq!(Method::from_name(method.name()), Some(method));
        assert!(Methods::ALL.allows(method));
        assert!(!Methods::ALL.without(method).allows(method));
        assert!(Methods::EMPTY.with(method).allows(method));
    }
    assert_eq!(Method::from_name("gss"), None);
}
