//! Right and wrong passwords by every method, and what stays the same for users who do not exist.

use model::Refusal;

use super::*;
use crate::refuse;

const WRONG: &[u8] = b"guess";
const FAILED: &str = "refused 28P01 password authentication failed for user \"ann\"";

fn check(challenge: impl Fn() -> Challenge, segments: &[Vec<u8>], story: &str) -> Heard {
    let heard = hear(Transport::Plain, &challenge, segments.iter().map(Vec::as_slice));
    assert_eq!(heard.story(), story);
    heard
}

fn plain(secret: StoredSecret) -> impl Fn() -> Challenge {
    move || Challenge::Plain(Expected::stored(secret.clone()))
}

fn md5(secret: StoredSecret) -> impl Fn() -> Challenge {
    move || Challenge::Md5(Expected::stored(secret.clone()), SALT)
}

#[test]
fn trust_asks_nothing() {
    let heard = check(|| Challenge::Pass, &[hello()], "who, in");
    assert!(heard.sent.is_empty(), "AuthenticationOk is held back");
}

#[test]
fn a_refusing_challenge_ends_the_login() {
    let refuse = || Challenge::Refuse(Refusal::LoginRejected);
    check(refuse, &[hello()], "who, refused 28000 login rejected");
}

#[test]
fn a_password_in_clear_text_is_compared_with_every_kind_of_secret() {
    let right = [hello(), password(PASSWORD)];
    let wrong = [hello(), password(WRONG)];
    let digest = StoredSecret::Md5(Md5Secret::from_password(&Password::new(PASSWORD), USER));
    for secret in [clear(), digest] {
        check(plain(secret.clone()), &right, "who, R3, in by password");
        check(plain(secret), &wrong, &format!("who, R3, {FAILED}"));
    }
    check(plain(StoredSecret::Unusable), &right, &format!("who, R3, {FAILED}"));
    // PBKDF2 is run by whoever has the time for it.
    let slow = StoredSecret::Scram(verifier());
    check(plain(slow.clone()), &right, "who, R3, check, in by password");
    check(plain(slow), &wrong, &format!("who, R3, check, {FAILED}"));
}

#[test]
fn a_password_that_was_right_before_is_not_put_through_the_slow_check_again() {
    let shown = |password: &'static [u8]| {
        let expected = Expected::stored(StoredSecret::Scram(verifier()));
        let expected = expected.or_shown(Some(Password::new(password)));
        move || Challenge::Plain(expected.clone())
    };
    let sent = |text: &[u8]| [hello(), password(text)];
    check(shown(PASSWORD), &sent(PASSWORD), "who, R3, in by password");
    check(shown(PASSWORD), &sent(WRONG), &format!("who, R3, check, {FAILED}"));
    // Whatever was shown before is compared with, and never stands for the secret itself.
    check(shown(WRONG), &sent(PASSWORD), "who, R3, check, in by password");
    check(shown(b""), &sent(b""), "who, R3, check, refused 28P01 empty password returned by client");
}

#[test]
fn an_empty_password_is_told_so() {
    let empty = [hello(), password(b"")];
    let told = "refused 28P01 empty password returned by client";
    check(plain(clear()), &empty, &format!("who, R3, {told}"));
    check(md5(clear()), &empty, &format!("who, R5, {told}"));
}

#[test]
fn an_md5_answer_is_compared_with_clear_text_and_with_md5() {
    let digest = StoredSecret::Md5(Md5Secret::from_password(&Password::new(PASSWORD), USER));
    for secret in [clear(), digest] {
        check(md5(secret.clone()), &[hello(), md5_answer(PASSWORD)], "who, R5, in");
        check(md5(secret.clone()), &[hello(), md5_answer(WRONG)], &format!("who, R5, {FAILED}"));
        // The stored digest itself is not the answer to a salt.
        let stored = Md5Secret::from_password(&Password::new(PASSWORD), USER).to_text();
        check(md5(secret), &[hello(), password(stored.reveal())], &format!("who, R5, {FAILED}"));
    }
}

#[test]
fn scram_gives_the_keys_of_the_right_password_only() {
    let [first, last] = sasl(PASSWORD, stored_exchange(None), None);
    let scram = || Challenge::Scram(stored_exchange(None));
    check(scram, &[hello(), first, last], "who, R10, R11, R12, in by keys");
    let [first, last] = sasl(WRONG, stored_exchange(None), None);
    check(scram, &[hello(), first, last], "who, R10, R11, refused 28P01 SASL authentication failed");
}

#[test]
fn scram_binds_to_the_channel_where_there_is_one() {
    let scram = || Challenge::Scram(stored_exchange(Some(BINDING)));
    let [first, last] = sasl(PASSWORD, scram_of(scram()), Some(BINDING));
    let segments = [hello(), first, last];
    let heard = hear(Transport::Tls, &scram, segments.iter().map(Vec::as_slice));
    assert_eq!(heard.story(), "who, R10, R11, R12, in by keys");
    assert!(heard.sent.windows(18).any(|window| window == b"SCRAM-SHA-256-PLUS"));

    // Somebody between the two ends has another certificate.
    let [first, last] = sasl(PASSWORD, stored_exchange(Some(b"another")), Some(b"another"));
    let segments = [hello(), first, last];
    let heard = hear(Transport::Tls, &scram, segments.iter().map(Vec::as_slice));
    assert_eq!(heard.story(), "who, R10, R11, refused 08P01 SCRAM: channel binding check failed");
}

fn scram_of(challenge: Challenge) -> AwaitClientFirst {
    match challenge {
        Challenge::Scram(exchange) => exchange,
        _ => panic!("not SCRAM"),
    }
}

#[test]
fn a_mechanism_that_was_not_offered_is_refused() {
    let mut initial = Vec::new();
    encode::sasl_initial(&mut initial, "SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc");
    let scram = || Challenge::Scram(stored_exchange(None));
    let told = "who, R10, refused 08P01 client selected an invalid SASL authentication mechanism";
    check(scram, &[hello(), initial], told);
}

#[test]
fn what_comes_behind_the_password_is_left_for_the_session() {
    let query = b"Q\0\0\0\x0dselect 1\0";
    let all = [hello(), password(PASSWORD), query.to_vec()].concat();
    let heard = check(plain(clear()), &[all], "who, R3, in by password");
    assert_eq!(heard.rest, query);
    let [first, last] = sasl(PASSWORD, stored_exchange(None), None);
    let all = [hello(), first, last, query.to_vec()].concat();
    let heard = check(|| Challenge::Scram(stored_exchange(None)), &[all], "who, R10, R11, R12, in by keys");
    assert_eq!(heard.rest, query);
}

/// A user who does not exist and one whose password is wrong: the same messages of the same sizes.
fn check_alike(known: impl Fn() -> Challenge, unknown: impl Fn() -> Challenge, answers: &[Vec<u8>]) {
    let segments = || [hello()].into_iter().chain(answers.iter().cloned()).collect::<Vec<_>>();
    let say = |challenge: &dyn Fn() -> Challenge| {
        hear(Transport::Plain, challenge, segments().iter().map(Vec::as_slice))
    };
    let (known, unknown) = (say(&known), say(&unknown));
    assert_eq!(known.story(), unknown.story());
    assert!(known.story().contains("refused 28P01"), "{}", known.story());
    assert_eq!(known.sent.len(), unknown.sent.len());
}

#[test]
fn an_unknown_user_has_the_same_conversation_as_a_known_one() {
    let nobody = |decoy: StoredSecret| Challenge::Plain(Expected::nobody(decoy));
    check_alike(plain(clear()), || nobody(StoredSecret::Unusable), &[password(WRONG)]);
    let slow = StoredSecret::Scram(verifier());
    check_alike(plain(slow.clone()), || nobody(slow.clone()), &[password(WRONG)]);
    let nobody = || Challenge::Md5(Expected::nobody(StoredSecret::Unusable), SALT);
    check_alike(md5(clear()), nobody, &[md5_answer(WRONG)]);
    let answers = sasl(WRONG, stored_exchange(None), None);
    let nobody = || Challenge::Scram(mock_exchange());
    check_alike(|| Challenge::Scram(stored_exchange(None)), nobody, &answers);
    let empty = [password(b"")];
    check_alike(plain(clear()), || Challenge::Plain(Expected::nobody(clear())), &empty);
}

#[test]
fn the_password_of_a_decoy_lets_nobody_in() {
    let nobody = || Challenge::Plain(Expected::nobody(clear()));
    check(nobody, &[hello(), password(PASSWORD)], &format!("who, R3, {FAILED}"));
    let nobody = || Challenge::Plain(Expected::nobody(StoredSecret::Scram(verifier())));
    check(nobody, &[hello(), password(PASSWORD)], &format!("who, R3, check, {FAILED}"));
    let nobody = || Challenge::Md5(Expected::nobody(clear()), SALT);
    check(nobody, &[hello(), md5_answer(PASSWORD)], &format!("who, R5, {FAILED}"));
    let [first, last] = sasl(PASSWORD, mock_exchange(), None);
    let nobody = || Challenge::Scram(mock_exchange());
    check(nobody, &[hello(), first, last], "who, R10, R11, refused 28P01 SASL authentication failed");
}

#[test]
fn the_welcome_follows_the_word_that_the_client_may_come_in() {
    let mut out = Vec::new();
    let first = Login::new(Transport::Plain).handle(&hello(), &mut out).next;
    let Next::Identify(_, waiting) = first else { panic!("{first:?}") };
    let next = waiting.identified(Challenge::Pass, &mut out);
    let Next::Authenticated(_, waiting) = next else { panic!("{next:?}") };
    assert!(out.is_empty());
    let waiting = waiting.accepted(&mut out);
    assert_eq!(out, [b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
    let parameters: [(&[u8], &[u8]); 2] = [(b"server_version", b"18.0"), (b"TimeZone", b"UTC")];
    waiting.welcome(&Greeting::new(parameters, &["mind the gap"]), 7, b"abcd", &mut out);
    let mut heard = Heard::default();
    heard.sent(&out);
    assert_eq!(heard.story(), "R0, S, S, K, N");
}

#[test]
fn a_state_that_waits_for_an_answer_takes_no_bytes() {
    let mut out = Vec::new();
    let next = Login::new(Transport::Plain).handle(&hello(), &mut out).next;
    let Next::Identify(_, waiting) = next else { panic!("{next:?}") };
    let login = Login::from(waiting);
    assert!(!login.reads());
    let step = login.handle(&password(PASSWORD), &mut out);
    assert_eq!(step.consumed, 0);
    assert!(matches!(step.next, Next::Read(Login::Challenge(_))) && out.is_empty());
}

#[test]
fn no_state_shows_a_secret_in_debug_output() {
    let hello = startup(&[("user", USER), ("password", "s3cr3t-canary"), ("options", "-c x=s3cr3t-canary")]);
    let as_numbers = format!("{PASSWORD:?}");
    let [first, last] = sasl(PASSWORD, stored_exchange(None), None);
    let slow = StoredSecret::Scram(verifier());
    let heard = [
        check(plain(clear()), &[hello.clone(), password(PASSWORD)], "who, R3, in by password"),
        check(plain(slow), &[hello.clone(), password(PASSWORD)], "who, R3, check, in by password"),
        check(md5(clear()), &[hello.clone(), md5_answer(PASSWORD)], "who, R5, in"),
        check(
            || Challenge::Scram(stored_exchange(None)),
            &[hello, first, last],
            "who, R10, R11, R12, in by keys",
        ),
    ];
    for heard in heard {
        assert!(heard.debug.contains("Requested"), "{}", heard.debug);
        assert!(!heard.debug.contains("s3cr3t"), "{}", heard.debug);
        assert!(!heard.debug.contains(as_numbers.trim_matches(['[', ']'])), "{}", heard.debug);
    }
}

#[test]
fn a_slow_check_may_move_to_another_thread() {
    fn check<T: Send>() {}
    check::<super::super::PasswordCheck>();
    check::<super::super::Checked>();
    check::<Login>();
}

#[test]
fn a_refusal_is_fatal_unless_the_session_lives() {
    let encode = |refusal: &Refusal| {
        let mut out = Vec::new();
        refuse::encode(&mut out, refusal);
        out
    };
    let fatal = encode(&Refusal::NoSuchDatabase("shop".to_owned()));
    let fields = wire::server::ErrorFields::parse(&fatal[5..]);
    assert!(fields.is_fatal() && fatal[0] == b'E');
    assert_eq!(fields.code, Some(&b"3D000"[..]));
    assert_eq!(fields.message, Some(&b"no such database: shop"[..]));
    let error = encode(&Refusal::UnknownStatement("s1".to_owned()));
    assert!(!wire::server::ErrorFields::parse(&error[5..]).is_fatal());
}
