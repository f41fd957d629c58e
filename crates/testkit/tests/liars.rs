//! The lying server and the bad network do what their names say.
#![allow(clippy::disallowed_methods)] // clocks and files are what is looked at

use std::time::{Duration, Instant};

use testkit::message::query;
use testkit::{
    Chaos, Direction, End, Event, FakeServer, Faults, Login, Postgres, Raw, Version, eventually, reply,
};

const SHORT: Duration = Duration::from_millis(150);

fn somebody() -> Login {
    Login::new("somebody", "somewhere")
}

fn through_chaos() -> (Chaos, Raw) {
    let chaos = Chaos::start(Postgres::shared(Version::V15).address());
    let raw = Raw::login(chaos.port(), &Login::new("postgres", "postgres"));
    (chaos, raw)
}

#[test]
fn honest_server_answers_both_protocols() {
    let server = FakeServer::honest();
    let mut raw = Raw::login(server.address(), &somebody());
    assert_eq!(raw.value("anything"), "1");
    let parts = [testkit::message::parse("", "x", &[]), testkit::message::sync()].concat();
    assert_eq!(raw.ask(parts), "1 ZI");
    assert_eq!(server.queries(), ["anything"]);
    assert_eq!(server.accepted(), 1);
}

#[test]
fn scripted_server_says_what_the_script_says() {
    let server = FakeServer::answering(|_, message| match message.strings().first().map(String::as_str) {
        Some("junk") => b"\xffjunk".to_vec(),
        Some("bare error") => testkit::message::message(b'E', &[]),
        _ => [reply::notice("listen"), reply::ready(b'I')].concat(),
    });
    let mut raw = Raw::login(server.address(), &somebody());
    assert_eq!(raw.ask(query("x")), "N(00000) ZI");
    raw.send(query("bare error"));
    assert_eq!(raw.recv().letter(), "E()");
    raw.send(query("junk"));
    assert_eq!(raw.recv_byte(), 0xff);
}

#[test]
fn server_may_close_in_the_middle_of_a_message() {
    let server = FakeServer::start(|session| {
        session.welcome()?;
        session.recv()?;
        let row = reply::data_row(&[Some("a long value")]);
        session.send(&row[..row.len() - 3])
    });
    let mut raw = Raw::login(server.address(), &somebody());
    raw.send(query("x"));
    assert_eq!(raw.answers(1), "EOF");
}

#[test]
fn server_may_reset() {
    let server = FakeServer::start(|session| {
        session.welcome()?;
        session.recv()?;
        session.reset()
    });
    let mut raw = Raw::login(server.address(), &somebody());
    raw.send(query("x"));
    assert_eq!(raw.answers(1), "RST");
}

#[test]
fn silent_server_is_silent_until_all_is_closed() {
    let server = FakeServer::start(|session| {
        session.welcome()?;
        session.fall_silent()
    });
    let mut raw = Raw::login(server.address(), &somebody());
    raw.send(query("x"));
    raw.expect_silence(SHORT);
    server.close_all();
    raw.expect_closed();
}

#[test]
fn server_keeps_the_keys_of_cancels() {
    let server = FakeServer::honest();
    let raw = Raw::login(server.address(), &somebody());
    raw.cancel();
    let key = raw.key.clone().expect("a key");
    eventually(Duration::from_secs(5), || {
        server.cancels() == [[&key.pid.to_be_bytes()[..], &key.secret].concat()]
    });
}

#[test]
fn network_without_faults_changes_nothing() {
    let (chaos, mut raw) = through_chaos();
    assert_eq!(raw.ask(query("select generate_series(1, 5000)")), "T D*5000 C(SELECT 5000) ZI");
    assert_eq!(chaos.accepted(), 1);
}

#[test]
fn network_delays() {
    let (chaos, mut raw) = through_chaos();
    chaos.set(Direction::ToClient, Faults { latency: SHORT, ..Faults::default() });
    let start = Instant::now();
    raw.sql("select 1");
    assert!(start.elapsed() >= SHORT);
}

#[test]
fn network_cuts_to_single_bytes() {
    let (chaos, mut raw) = through_chaos();
    chaos.set_both(Faults { piece_max: Some(1), ..Faults::default() });
    assert_eq!(raw.value("select repeat('y', 300)"), "y".repeat(300));
}

#[test]
fn network_swallows_and_heals() {
    let (chaos, mut raw) = through_chaos();
    chaos.set(Direction::ToServer, Faults { swallow: true, ..Faults::default() });
    raw.send(query("select 1"));
    raw.expect_silence(SHORT);
    chaos.heal();
    assert_eq!(raw.value("select 2"), "2");
}

#[test]
fn network_holds_and_lets_go() {
    let (chaos, mut raw) = through_chaos();
    chaos.set(Direction::ToClient, Faults { hold: true, ..Faults::default() });
    // The pump that waits for bytes at this moment may pass on one more piece.
    raw.send(query("select 1; select 2"));
    raw.next(SHORT);
    raw.send(query("select 3"));
    while matches!(raw.next(SHORT), Event::Message(_)) {}
    raw.send(query("select 4"));
    raw.expect_silence(SHORT);
    chaos.heal();
    raw.until_ready();
}

#[test]
fn network_cuts_after_some_bytes() {
    let chaos = Chaos::start(Postgres::shared(Version::V15).address());
    chaos.set(Direction::ToClient, Faults { cut_after: Some(5), ..Faults::default() });
    let mut raw = Raw::connect(chaos.port());
    Login::new("postgres", "postgres").send_startup(&mut raw);
    let got: Vec<u8> = (0..5).map(|_| raw.recv_byte()).collect();
    assert_eq!(got, [b'R', 0, 0, 0, 8]);
    assert!(matches!(raw.next(Duration::from_secs(5)), Event::End(_)));
}

#[test]
fn network_resets() {
    let (chaos, mut raw) = through_chaos();
    chaos.reset_all();
    assert_eq!(raw.next(Duration::from_secs(5)), Event::End(End::Reset));
}

#[test]
fn network_closes_one_way_only() {
    let server = FakeServer::start(|session| {
        session.welcome()?;
        // Reads up to the client's half close, and speaks after it.
        while session.recv().is_ok() {}
        session.send(&reply::one_value("late"))
    });
    let chaos = Chaos::start(server.address());
    let mut raw = Raw::login(chaos.port(), &somebody());
    chaos.half_close(Direction::ToServer);
    assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn network_refuses_and_redirects() {
    let chaos = Chaos::start(Postgres::shared(Version::V15).address());
    chaos.refuse();
    Raw::connect(chaos.port()).expect_closed();
    chaos.heal();
    let server = FakeServer::honest();
    chaos.redirect(server.address());
    assert_eq!(Raw::login(chaos.port(), &somebody()).value("x"), "1");
}
