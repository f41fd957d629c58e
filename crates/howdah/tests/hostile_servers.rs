//! Servers that lie: each is closed, costs its own client at most one clean error, and nobody else anything.
#![allow(clippy::disallowed_methods)] // time is what must not be lost

mod stage;

use std::io;
use std::time::{Duration, Instant};

use stage::{LIMIT, PASSWORD, bare, login, server_for};
use testkit::message::{Message, message, message_of_length, query};
use testkit::wait::eventually_some;
use testkit::{Event, FakeServer, FakeSession, Howdah, HowdahOptions, Login, Raw, eventually, reply};

fn in_front_of(fake: &FakeServer) -> HowdahOptions {
    bare()
        .database("fake", &fake.connection("fake"))
        .user("somebody", PASSWORD)
        .setting("server_login_retry", "0.05")
        .setting("client_login_timeout", "3")
}

fn somebody() -> Login {
    Login::new("somebody", "fake")
}

/// Answers every query with `1`.
fn serve(session: &mut FakeSession) -> io::Result<()> {
    loop {
        match session.recv()?.tag {
            b'Q' => session.send(&reply::one_value("1"))?,
            b'X' => return Ok(()),
            _ => {}
        }
    }
}

/// Lies to the first connection and serves all others.
fn liar(lie: impl Fn(&mut FakeSession) -> io::Result<()> + Send + Sync + 'static) -> FakeServer {
    FakeServer::start(move |session| {
        if session.number == 1 {
            return lie(session);
        }
        session.welcome()?;
        serve(session)
    })
}

/// A server that lies at its login serves nobody; its client gets the next one, or one clean error.
fn check_second_server_serves(lie: impl Fn(&mut FakeSession) -> io::Result<()> + Send + Sync + 'static) {
    let fake = liar(lie);
    let howdah = in_front_of(&fake).setting("server_connect_timeout", "1").start();
    check_served_at_last(&howdah);
    assert!(fake.accepted() >= 2, "the liar was believed");
}

fn check_served_at_last(howdah: &Howdah) {
    let mut raw = eventually_some(LIMIT, || match Raw::try_login(howdah.port(), &somebody()) {
        Ok(raw) => Some(raw),
        Err(refusal) => {
            assert_eq!((refusal.severity.as_str(), refusal.sqlstate.len()), ("FATAL", 5), "{refusal:?}");
            None
        }
    });
    assert_eq!(raw.value("x"), "1");
}

/// Begins SCRAM and answers the client's first message with what `make` makes of its nonce.
fn scram_with(session: &mut FakeSession, make: impl Fn(&str) -> String) -> io::Result<()> {
    session.startup()?;
    session.send(&reply::authentication_sasl(&["SCRAM-SHA-256"]))?;
    let first = String::from_utf8_lossy(&session.recv()?.body).into_owned();
    let nonce = first.split("r=").nth(1).unwrap_or_default().to_owned();
    session.send(&reply::authentication(11, make(&nonce).as_bytes()))?;
    session.recv()?;
    // Whatever proof came: it was made from what must not have been taken.
    session.send(&reply::authentication(12, b"v=AAAA"))?;
    session.fall_silent()
}

#[test]
fn scram_of_a_server_is_bounded_in_every_part() {
    let salt = "QSXCR+Q6sek8bf92";
    let long = "A".repeat(1 << 20);
    let lies: Vec<Box<dyn Fn(&str) -> String + Send + Sync>> = vec![
        Box::new({
            let long = long.clone();
            move |nonce| format!("r={nonce}{long},s={salt},i=4096")
        }),
        Box::new({
            let long = long.clone();
            move |nonce| format!("r={nonce}x,s={long},i=4096")
        }),
        Box::new(move |nonce| format!("r={nonce}x,s={salt},i=2147483647")),
        Box::new(move |nonce| format!("r={nonce}x,s={salt},i=1000000000")),
        Box::new(move |nonce| format!("r={nonce}x,s={salt},i=99999999999999999999")),
        Box::new(move |nonce| format!("r={nonce}x,s={salt},i=0")),
        Box::new(move |nonce| format!("r={nonce}x,s={salt},i=-1")),
        Box::new(move |nonce| format!("r={nonce},s={salt},i=4096")),
        Box::new(move |_| format!("r=another,s={salt},i=4096")),
        Box::new(move |nonce| format!("r={nonce}x,s=,i=4096")),
        Box::new(|_| String::new()),
        Box::new(|_| "e=other-error".to_owned()),
    ];
    for lie in lies {
        check_second_server_serves(move |session| scram_with(session, &lie));
    }
}

#[test]
fn iterations_that_a_server_asks_for_cost_nobody_time() {
    let name = "hostile_iterations";
    let server = server_for(name);
    let fake = FakeServer::start(|session| {
        scram_with(session, |nonce| format!("r={nonce}x,s=QSXCR+Q6sek8bf92,i=2147483647"))
    });
    let howdah = in_front_of(&fake).database(name, &server.connection(name)).user(name, PASSWORD).start();
    let mut victim = Raw::connect(howdah.port());
    somebody().send_startup(&mut victim);
    let mut other = howdah.login(&login(name));
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(2) {
        let turn = Instant::now();
        assert_eq!(other.value("select 1"), "1");
        longest = longest.max(turn.elapsed());
    }
    assert!(longest < Duration::from_millis(500), "{longest:?} for one query");
    assert!(fake.accepted() > 0);
    assert!(victim.expect_closed().contains('E'));
}

#[test]
fn errors_without_fields_are_read_at_login() {
    for error in [
        message(b'E', b""),
        message(b'E', b"\0"),
        message(b'E', b"SFATAL\0"),
        message(b'E', b"SFATAL\0\0"),
        message(b'E', b"MMno code at all\0\0"),
        message(b'E', b"C\0M\0\0"),
        message(b'E', b"Cxx\0Mtext without an end"),
        message(b'E', &[0xff; 300]),
        message_of_length(b'E', i32::MAX, b"SFATAL\0"),
        message_of_length(b'E', 3, b""),
        message_of_length(b'E', -7, b""),
    ] {
        // Each is an end of this attempt; what the client is told is the server's business, if it says anything.
        let fake = FakeServer::start(move |session| {
            session.startup()?;
            session.send(&error)
        });
        let howdah = in_front_of(&fake).setting("client_login_timeout", "1").start();
        let refusal = Raw::try_login(howdah.port(), &somebody()).map(drop).expect_err("no server");
        assert_eq!(refusal.severity, "FATAL");
        assert_eq!(refusal.sqlstate.len(), 5, "{refusal:?}");
        assert!(!howdah.has_ended());
    }
}

#[test]
fn errors_without_fields_are_passed_on_in_a_session() {
    let fake = FakeServer::answering(|_, got| match got.strings().first().map(String::as_str) {
        Some("empty") => [message(b'E', b""), reply::ready(b'I')].concat(),
        Some("codeless") => [message(b'E', b"SERROR\0Mx\0\0"), reply::ready(b'I')].concat(),
        Some("endless") => [message(b'E', b"SERROR\0C42"), reply::ready(b'I')].concat(),
        Some("notice") => [message(b'N', b""), reply::one_value("1")].concat(),
        _ => reply::one_value("1"),
    });
    let howdah = in_front_of(&fake).start();
    for sql in ["empty", "codeless", "endless", "notice"] {
        let mut raw = howdah.login(&somebody());
        let answer = raw.ask(query(sql));
        let fits = answer.ends_with("ZI") || answer.ends_with("EOF");
        assert!(fits && answer.matches('E').count() <= 2, "{sql}: {answer}");
        assert_eq!(howdah.login(&somebody()).value("x"), "1");
    }
}

#[test]
fn answers_to_the_request_for_tls_are_one_byte_or_nothing() {
    let injected = reply::error("FATAL", "28P01", &format!("INJECTED {}", "x".repeat(30_000)));
    let lies: [Vec<u8>; 5] = [
        injected,
        [b"S".to_vec(), reply::welcome(1)].concat(),
        [b"S".to_vec(), b"junk".to_vec()].concat(),
        b"Y".to_vec(),
        [b"N".to_vec(), reply::welcome(1)].concat(),
    ];
    for lie in lies {
        let sent = lie.clone();
        let fake = FakeServer::start(move |session| {
            session.opening()?;
            session.send(&sent)?;
            session.fall_silent()
        });
        let howdah = in_front_of(&fake)
            .setting("server_tls_sslmode", "require")
            .setting("client_login_timeout", "1")
            .setting("server_connect_timeout", "1")
            .start();
        let refusal = Raw::try_login(howdah.port(), &somebody()).map(drop).expect_err("no TLS");
        assert!(!refusal.text.contains("INJECTED"), "{refusal:?}");
        assert!(fake.accepted() > 0 && fake.received().is_empty(), "{:?}", fake.received());
        assert!(!howdah.log().contains("INJECTED"), "the log repeats a stranger's words");
    }
}

/// Types that PostgreSQL sends within a session.
const KNOWN: &[u8] = b"123ACDEGHIKNRSTVWZcdnstv";

/// The type that a query `select NUMBER` asks for: words that leave no doubt what they do to a session.
fn asked_type(got: &Message) -> Option<u8> {
    got.strings().first()?.strip_prefix("select ")?.parse().ok()
}

/// One server for all types: a query that asks for one is answered with an empty message of it, and then right.
fn lying_in_answers() -> FakeServer {
    FakeServer::answering(|_, got| match asked_type(got) {
        Some(tag) => [message(tag, b""), reply::one_value("1")].concat(),
        None => reply::one_value("1"),
    })
}

fn check_alive(howdah: &Howdah) {
    let mut other = howdah.login(&somebody());
    assert_eq!(other.ask(query("select x")), "T D C(SELECT 1) ZI");
}

#[test]
fn every_type_in_an_answer_is_known_or_ends_the_session_with_one_error() {
    let fake = lying_in_answers();
    let howdah = in_front_of(&fake).setting("default_pool_size", "1").start();
    for tag in 0..=255_u8 {
        let mut raw = howdah.login(&somebody());
        let before = fake.accepted();
        let answer = raw.ask(query(&format!("select {tag}")));
        if !KNOWN.contains(&tag) {
            let errors = answer.matches("E(").count();
            assert!(answer.ends_with("EOF") && errors == 1, "type {tag}: {answer}");
            check_alive(&howdah);
            assert!(fake.accepted() > before, "type {tag}: the server was used again");
        } else {
            assert!(answer.ends_with("ZI") || answer.ends_with("EOF"), "type {tag}: {answer}");
            check_alive(&howdah);
        }
    }
}

#[test]
fn every_type_behind_an_answer_is_harmless_to_the_next_client() {
    let fake = FakeServer::answering(|_, got| match asked_type(got) {
        Some(tag) => [reply::one_value("1"), message(tag, b"")].concat(),
        None => reply::one_value("1"),
    });
    let howdah = in_front_of(&fake).setting("default_pool_size", "1").start();
    for tag in 0..=255_u8 {
        let mut raw = howdah.login(&somebody());
        let answer = raw.ask(query(&format!("select {tag}")));
        assert!(answer.starts_with("T D C(SELECT 1) ZI"), "type {tag}: {answer}");
        let mut next = howdah.login(&somebody());
        assert_eq!(next.ask(query("select x")), "T D C(SELECT 1) ZI", "type {tag}");
    }
}

#[test]
fn every_type_at_login_is_known_or_ends_the_attempt() {
    // Known, with an empty body, most are as wrong as the others: the next server serves in any case.
    for tag in (0..=255_u8).filter(|tag| !b"ENSA".contains(tag)).step_by(5).chain(*b"DTZKR") {
        check_second_server_serves(move |session| {
            session.startup()?;
            session.send(&[reply::authentication_ok(), message(tag, b"")].concat())?;
            session.fall_silent()
        });
    }
}

#[test]
fn lengths_of_a_server_are_checked() {
    let lies: [fn() -> Vec<u8>; 6] = [
        || message_of_length(b'D', 3, b""),
        || message_of_length(b'D', 0, b""),
        || message_of_length(b'D', -1, b""),
        || message_of_length(b'Z', 500_000_000, b"I"),
        || message_of_length(b'C', i32::MAX, b"SELECT"),
        || message_of_length(b'K', 2_000_000, b""),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let fake = FakeServer::answering(move |_, got| match got.strings().first().map(String::as_str) {
            Some("lie") => lie(),
            _ => reply::one_value("1"),
        });
        let howdah = in_front_of(&fake).start();
        let before = howdah.rss_kb();
        let mut raw = howdah.login(&somebody());
        raw.send(query("lie"));
        raw.set_limit(Duration::from_secs(5));
        let answer = raw.answers(1);
        assert!(answer.ends_with("EOF") && answer.matches("E(").count() == 1, "lie {number}: {answer}");
        check_alive(&howdah);
        assert!(howdah.rss_kb() < before + 20 * 1024, "lie {number} took memory");
    }
}

#[test]
fn length_that_a_server_only_declares_takes_no_memory() {
    let fake = FakeServer::start(|session| {
        session.welcome()?;
        session.recv()?;
        session.send(&message_of_length(b'D', 1_000_000_000, &[0; 1000]))?;
        session.fall_silent()
    });
    let howdah = in_front_of(&fake).start();
    let before = howdah.rss_kb();
    let mut sessions: Vec<Raw> = (0..10).map(|_| howdah.login(&somebody())).collect();
    for raw in &mut sessions {
        raw.send(query("x"));
    }
    for raw in &mut sessions {
        assert!(matches!(raw.next(Duration::from_millis(50)), Event::Silence));
    }
    assert!(howdah.rss_kb() < before + 10 * 1024, "{} KB, before {before}", howdah.rss_kb());
    fake.close_all();
    for raw in &mut sessions {
        assert!(!raw.expect_closed().contains('Z'));
    }
}

#[test]
fn server_that_says_it_is_ready_too_often_is_not_used_again() {
    let fake = FakeServer::answering(|_, got| match got.strings().first().map(String::as_str) {
        Some("twice") => [reply::one_value("mine"), reply::one_value("yours?")].concat(),
        Some("late") => [reply::one_value("mine"), reply::ready(b'I')].concat(),
        _ => reply::one_value("1"),
    });
    let howdah = in_front_of(&fake).setting("default_pool_size", "1").start();
    for sql in ["twice", "late"] {
        let mut raw = howdah.login(&somebody());
        assert_eq!(raw.value(sql), "mine");
        for _ in 0..3 {
            assert_eq!(howdah.login(&somebody()).value("x"), "1", "{sql}");
        }
    }
}

#[test]
fn server_that_talks_for_ever_at_login_is_given_up() {
    let fake = liar(|session| {
        session.startup()?;
        session.send(&reply::authentication_ok())?;
        loop {
            session.send(&reply::parameter_status("name", &"v".repeat(1000)).repeat(50))?;
        }
    });
    let howdah = in_front_of(&fake).setting("server_connect_timeout", "1").start();
    let before = howdah.rss_kb();
    let start = Instant::now();
    check_served_at_last(&howdah);
    assert!(start.elapsed() < LIMIT);
    eventually(LIMIT, || howdah.rss_kb() < before + 20 * 1024);
}
