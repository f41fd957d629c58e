//! The first bytes of a connection: startup packets good and bad, requests for encryption, protocol versions.
//!
//! Rows P31, P33 and P35 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests wait

mod oracle;

use oracle::{LIMIT, TRANSACTION, USER, pooler};
use testkit::message::{self, gssenc_request, query, ssl_request, startup};
use testkit::{Event, Howdah, Login, Message, Postgres, Raw, Version, letters};

/// Sends bytes as the first of a connection; what came up to ReadyForQuery or the end, and whether that was it.
fn open_with(port: u16, bytes: &[u8]) -> (Vec<Message>, bool) {
    let mut raw = Raw::connect(port);
    raw.send(bytes);
    let mut heard = Vec::new();
    loop {
        match raw.next(LIMIT) {
            Event::Message(message) if message.tag == b'Z' => return (heard, true),
            // Which parameters there are, and their number, is another test's business.
            Event::Message(message) if message.tag == b'S' => {}
            Event::Message(message) => heard.push(message),
            Event::End(_) => return (heard, false),
            Event::Silence => panic!("neither an answer nor the end to {}", bytes.escape_ascii()),
        }
    }
}

fn untagged(length: i32, body: &[u8]) -> Vec<u8> {
    [length.to_be_bytes().as_slice(), body].concat()
}

/// Sound but for the terminator that the list of parameters must have.
fn without_terminator() -> Vec<u8> {
    let mut bytes = startup((3, 0), &[("user", USER), ("database", TRANSACTION)]);
    bytes.pop();
    let length = i32::try_from(bytes.len()).expect("a short packet");
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

// P31

#[test]
fn broken_startup_packets_are_refused_or_closed() {
    let howdah = pooler(Version::wanted()).start();
    let mut other = howdah.session(USER, TRANSACTION);
    let version = 196_608_i32.to_be_bytes();
    let parameters = |count: usize| {
        let value = "x".repeat(count);
        startup((3, 0), &[("user", USER), ("database", TRANSACTION), ("application_name", &value)])
    };
    // Which SQLSTATE PostgreSQL has for it; empty where it says nothing.
    let cases: [(&str, Vec<u8>, &str); 14] = [
        ("length 0", untagged(0, &version), ""),
        ("length 4", untagged(4, &version), ""),
        ("length 7", untagged(7, &version), ""),
        ("length -1", untagged(-1, &version), ""),
        ("length i32::MAX", untagged(i32::MAX, &version), ""),
        ("too long", parameters(10_100), ""),
        ("no terminator", without_terminator(), "08P01"),
        ("no user", startup((3, 0), &[("database", TRANSACTION)]), "28000"),
        ("empty user", startup((3, 0), &[("user", ""), ("database", TRANSACTION)]), "28000"),
        ("protocol 4.0", startup((4, 0), &[("user", USER)]), "0A000"),
        ("protocol 2.0", startup((2, 0), &[("user", USER)]), "0A000"),
        ("protocol 1.0", startup((1, 0), &[("user", USER)]), "0A000"),
        ("name without value", untagged(15, b"\0\x03\0\0user\0x\0"), "08P01"),
        ("a web browser", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), ""),
    ];
    for (what, bytes, sqlstate) in cases {
        let (heard, ready) = open_with(howdah.port(), &bytes);
        assert!(!ready, "{what} was let in");
        let heard = letters(&heard);
        // Where PostgreSQL closes without a word, a word is no worse.
        let expected = format!("E({sqlstate})");
        assert!(
            heard.is_empty() || heard == expected || (sqlstate.is_empty() && heard == "E(08P01)"),
            "{what}: {heard}"
        );
        assert!(!sqlstate.is_empty() || heard != "E()", "{what}");
        assert!(sqlstate.is_empty() || !heard.is_empty(), "{what} deserves an answer");
        assert_eq!(other.value("select 'alive'"), "alive");
    }
    // Long, but not too long.
    let (_, ready) = open_with(howdah.port(), &parameters(9_000));
    assert!(ready);
}

#[test]
fn startup_packet_may_come_in_pieces() {
    let howdah = pooler(Version::wanted()).start();
    let bytes =
        message::all(&[startup((3, 0), &[("user", USER), ("database", TRANSACTION)]), query("select 1")]);
    for piece in [1, 3, 7, bytes.len()] {
        let mut raw = Raw::connect(howdah.port());
        bytes.chunks(piece).for_each(|part| raw.send(part));
        raw.until_ready();
        assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI");
    }
}

#[test]
fn half_a_startup_packet_costs_nobody_anything() {
    let howdah = pooler(Version::wanted()).start();
    let bytes = startup((3, 0), &[("user", USER), ("database", TRANSACTION)]);
    let mut halves: Vec<Raw> = Vec::new();
    for cut in 0..bytes.len() {
        let mut raw = Raw::connect(howdah.port());
        raw.send(&bytes[..cut]);
        halves.push(raw);
    }
    assert_eq!(howdah.session(USER, TRANSACTION).value("select 1"), "1");
    for raw in &mut halves {
        raw.half_close();
        assert_eq!(raw.expect_closed(), "");
    }
}

// P33

#[test]
fn encryption_is_declined_as_often_as_it_is_asked_for_once() {
    let howdah = pooler(Version::wanted()).start();
    let orders = [
        vec![ssl_request()],
        vec![gssenc_request()],
        vec![gssenc_request(), ssl_request()],
        vec![ssl_request(), gssenc_request()],
    ];
    for order in orders {
        let mut raw = Raw::connect(howdah.port());
        for request in &order {
            raw.send(request);
            assert_eq!(raw.recv_byte(), b'N');
        }
        Login::new(USER, TRANSACTION).run(&mut raw).expect("a login in the clear");
        assert_eq!(raw.value("select 1"), "1");
    }
}

#[test]
fn second_request_for_tls_ends_in_an_error_or_another_no() {
    let howdah = pooler(Version::wanted()).start();
    let mut raw = Raw::connect(howdah.port());
    raw.send(ssl_request());
    assert_eq!(raw.recv_byte(), b'N');
    raw.send(ssl_request());
    match raw.recv_byte() {
        b'N' => raw.half_close(),
        // PostgreSQL takes it for a protocol version that it does not speak.
        b'E' => {}
        other => panic!("answered with {other}"),
    }
    drop(raw);
    assert_eq!(howdah.session(USER, TRANSACTION).value("select 1"), "1");
}

// P35

/// What NegotiateProtocolVersion says, the length of the key, and whether the session came to be.
fn negotiation(port: u16, bytes: &[u8]) -> (Vec<String>, usize, bool) {
    let (heard, ready) = open_with(port, bytes);
    let said = heard.iter().filter(|message| message.tag != b'K' && message.tag != b'R');
    let said = said.map(|message| match message.tag {
        b'v' => format!("v {}", message.body.escape_ascii()),
        b'E' => format!("E {} {}", message.sqlstate(), message.text()),
        _ => message.letter(),
    });
    let key = heard.iter().find(|message| message.tag == b'K');
    (said.collect(), key.map_or(0, |message| message.body.len()), ready)
}

#[test]
fn versions_and_options_are_negotiated_as_postgresql_does() {
    let howdah: Howdah = pooler(Version::V18).start();
    let server = Postgres::shared(Version::V18);
    let own: [&[(&str, &str)]; 4] = [
        &[],
        &[("_pq_.test_protocol_negotiation", "")],
        &[("_pq_.one", "x"), ("_pq_.two", ""), ("application_name", "y")],
        &[("_pq_", "no option")],
    ];
    for minor in [0, 1, 2, 3, 9999] {
        for options in &own[..3] {
            let with = |database| {
                let mut all = vec![("user", USER), ("database", database)];
                all.extend_from_slice(options);
                startup((3, minor), &all)
            };
            let direct = negotiation(server.port(), &with(USER));
            let pooled = negotiation(howdah.port(), &with(TRANSACTION));
            assert_eq!(pooled, direct, "protocol 3.{minor} with {options:?}");
            assert!(direct.2);
        }
    }
    // 3.2 and more have a key of 32 bytes, whatever was negotiated down.
    let asked = |minor| {
        negotiation(howdah.port(), &startup((3, minor), &[("user", USER), ("database", TRANSACTION)])).1
    };
    assert_eq!([asked(0), asked(2), asked(9999)], [8, 36, 36]);
    for major in [4, 1234] {
        let bytes = startup((major, 0), &[("user", USER), ("database", USER)]);
        let code = |port| negotiation(port, &bytes).0[0][..7].to_owned();
        assert_eq!(code(howdah.port()), code(server.port()), "protocol {major}.0");
    }
}

#[test]
fn database_is_the_users_name_if_none_is_said() {
    let howdah = pooler(Version::wanted())
        .database(USER, &Postgres::shared(Version::wanted()).connection(USER))
        .start();
    let (heard, ready) = open_with(howdah.port(), &startup((3, 0), &[("user", USER)]));
    assert!(ready, "{}", letters(&heard));
}

/// What becomes of a session that asks at its startup to be somebody else: who it is, or the code of the refusal.
fn becomes(port: u16, user: &str, database: &str, parameter: (&str, &str)) -> Result<String, String> {
    let login = Login::new(user, database).parameter(parameter.0, parameter.1);
    let mut raw = Raw::try_login(port, &login).map_err(|refusal| refusal.sqlstate)?;
    let who = "select session_user || ' ' || current_user || ' ' || current_setting('session_authorization')";
    let rows = raw.try_sql(who).map_err(|refusal| refusal.sqlstate)?;
    rows[0][0].clone().ok_or_else(String::new)
}

#[test]
fn session_authorization_at_startup_makes_nobody_another() {
    let server = Postgres::shared(Version::wanted());
    server.sql("drop role if exists startup_other; create role startup_other");
    let howdah = pooler(Version::wanted()).start();
    for role in [USER, "startup_other"] {
        let option = format!("-c session_authorization={role}");
        for parameter in [("session_authorization", role), ("options", &*option)] {
            let straight = becomes(server.port(), USER, USER, parameter);
            assert_eq!(straight, Ok(format!("{USER} {USER} {USER}")), "{parameter:?}");
            for database in [TRANSACTION, oracle::SESSION] {
                let through = becomes(howdah.port(), USER, database, parameter);
                assert_eq!(through, straight, "{parameter:?} in {database}");
            }
        }
    }
    // PostgreSQL looks whether it might have been heeded; through the pooler it is nothing at all.
    let nobody = ("session_authorization", "startup_nobody");
    assert_eq!(becomes(server.port(), USER, USER, nobody), Err("22023".into()));
    assert_eq!(becomes(howdah.port(), USER, TRANSACTION, nobody), Ok(format!("{USER} {USER} {USER}")));
}
