//! Settings of sessions: each client has its own, whatever server it gets and whoever had that before.
//!
//! Rows P15, P32, P49 and P50 of the table of cases that poolers got wrong, and the queries that the pooler runs by
//! itself: connect, check and reset.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{LIMIT, Oracle, SESSION, TRANSACTION, Talk, USER, pooler, pooler_to};
use testkit::message::query;
use testkit::{FakeServer, Howdah, Login, Postgres, PostgresOptions, Raw, Version, eventually, reply};

#[track_caller]
fn shows(client: &mut Raw, name: &str, value: &str) {
    assert_eq!(client.value(&format!("show {name}")), value, "{name}");
}

/// A session with these startup parameters.
#[track_caller]
fn session_with(howdah: &Howdah, parameters: &[(&str, &str)]) -> Raw {
    let login = Login::new(USER, TRANSACTION);
    howdah.login(&parameters.iter().fold(login, |login, (name, value)| login.parameter(name, value)))
}

// P32

#[test]
fn startup_parameters_follow_their_client_from_server_to_server() {
    let wanted = [
        ("search_path", "pg_catalog, public"),
        ("client_min_messages", "warning"),
        ("extra_float_digits", "2"),
        ("statement_timeout", "54321ms"),
        ("work_mem", "1234kB"),
        ("application_name", "it's \"quoted\" \\ and more"),
        ("DateStyle", "German, DMY"),
        ("TimeZone", "Asia/Kolkata"),
        ("geqo", "off"),
    ];
    for (version, size) in [(Version::V15, 1), (Version::V18, 1), (Version::V18, 3)] {
        let howdah = pooler(version).setting("default_pool_size", &size.to_string()).start();
        let mut own = session_with(&howdah, &wanted);
        let mut other = session_with(&howdah, &[("work_mem", "2345kB"), ("search_path", "public")]);
        let mut plain = howdah.session(USER, TRANSACTION);
        let mut direct = Postgres::shared(version).session(USER);
        for _ in 0..3 {
            for (name, value) in wanted {
                shows(&mut own, name, value);
                let default = direct.value(&format!("show {name}"));
                shows(&mut plain, name, &default);
                match name {
                    "work_mem" => shows(&mut other, name, "2345kB"),
                    "search_path" => shows(&mut other, name, "public"),
                    _ => shows(&mut other, name, &default),
                }
            }
        }
    }
}

#[test]
fn options_set_parameters_in_all_their_spellings() {
    let howdah = pooler(Version::wanted()).start();
    let options =
        r#"-c work_mem=1234kB -csearch_path="a\ b",public --client-min-messages=error  -c geqo=off"#;
    let mut own = session_with(&howdah, &[("options", options)]);
    let mut plain = howdah.session(USER, TRANSACTION);
    for _ in 0..3 {
        shows(&mut own, "work_mem", "1234kB");
        shows(&mut own, "search_path", "\"a b\",public");
        shows(&mut own, "client_min_messages", "error");
        shows(&mut own, "geqo", "off");
        shows(&mut plain, "geqo", "on");
    }
    // What stands beside `options` wins over what stands in them, as PostgreSQL has it.
    let mut both = session_with(&howdah, &[("work_mem", "3456kB"), ("options", "-c work_mem=1234kB")]);
    shows(&mut both, "work_mem", "3456kB");
}

#[test]
fn impossible_settings_are_refused_and_hurt_nobody_else() {
    let howdah = pooler(Version::wanted()).start();
    let mut other = howdah.session(USER, TRANSACTION);
    let cases = [
        ("no_such_setting", "1", "42704"),
        ("work_mem", "plenty", "22023"),
        ("client_encoding", "klingon", "22023"),
        ("TimeZone", "Nowhere/Atlantis", "22023"),
        ("max_connections", "7", "55P02"),
        ("options", "-c no_such_setting=1", "42704"),
        ("options", "-c work_mem=plenty", "22023"),
    ];
    for (name, value, sqlstate) in cases {
        let login = Login::new(USER, TRANSACTION).parameter(name, value);
        let direct = Raw::try_login(
            Postgres::shared(Version::wanted()).port(),
            &Login::new(USER, USER).parameter(name, value),
        );
        let direct = direct.err().expect("PostgreSQL refuses it, too");
        assert_eq!(direct.sqlstate, sqlstate, "{name}={value}");
        // Where only a server can tell, the first query is told.
        let pooled = match Raw::try_login(howdah.port(), &login) {
            Err(refusal) => refusal,
            Ok(mut raw) => raw.try_sql("select 1").expect_err("an impossible setting"),
        };
        assert_eq!(
            (pooled.severity.as_str(), pooled.sqlstate.as_str()),
            ("FATAL", sqlstate),
            "{name}={value}"
        );
        assert_eq!(other.value("select 'alive'"), "alive");
    }
}

// P50

/// Reported parameters with a value that is nobody's default.
fn reported(version: Version) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("application_name", "mine"),
        ("client_encoding", "LATIN1"),
        ("DateStyle", "SQL, DMY"),
        ("default_transaction_read_only", "on"),
        ("IntervalStyle", "iso_8601"),
        ("standard_conforming_strings", "off"),
        ("TimeZone", "America/New_York"),
    ];
    if version == Version::V18 {
        all.extend([("search_path", "pg_catalog"), ("scram_iterations", "5000")]);
    }
    all
}

#[test]
fn reported_settings_belong_to_the_client_that_set_them() {
    for version in oracle::VERSIONS {
        let howdah = pooler(version).start();
        let mut own = howdah.session(USER, TRANSACTION);
        let mut plain = howdah.session(USER, TRANSACTION);
        let before = plain.parameters.clone();
        for (name, value) in reported(version) {
            assert_eq!(own.ask(query(&format!("set {name} = '{value}'"))), format!("C(SET) S({name}) ZI"));
            for _ in 0..2 {
                shows(&mut own, name, value);
                assert_eq!(own.parameters[name], value, "what the client was told");
                shows(&mut plain, name, &before[name]);
            }
        }
        for (name, _) in reported(version) {
            own.sql(&format!("reset {name}"));
            shows(&mut own, name, &before[name]);
        }
        assert_eq!(plain.parameters, before, "nobody was told of what is not his");
        assert_eq!(own.parameters, before);
    }
}

#[test]
fn odd_values_survive_the_way() {
    let howdah = pooler(Version::wanted()).start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut plain = howdah.session(USER, TRANSACTION);
    for value in ["", " ", "'", "''", "\\", "\\'", "a;b--", "\"x\"", "$$", "größe", "/*"] {
        let quoted = value.replace('\'', "''");
        own.sql(&format!("set application_name = '{quoted}'"));
        let direct = own.parameters["application_name"].clone();
        shows(&mut plain, "application_name", "");
        shows(&mut own, "application_name", &direct);
        let mut at_startup = session_with(&howdah, &[("application_name", value)]);
        shows(&mut plain, "application_name", "");
        shows(&mut at_startup, "application_name", &direct);
    }
    let mut strings =
        session_with(&howdah, &[("standard_conforming_strings", "off"), ("application_name", "a\\'b")]);
    shows(&mut strings, "application_name", "a\\'b");
    shows(&mut plain, "application_name", "");
    shows(&mut strings, "application_name", "a\\'b");
}

// P49

#[test]
fn settings_of_a_transaction_end_as_the_server_says() {
    let oracle = Oracle::new();
    let rolled_back = |talk: &mut Talk| {
        talk.ask(&[query("begin; set application_name = 'x'")]);
        talk.ask(&[query("rollback")]);
        talk.ask(&[query("show application_name")]);
    };
    let expected = "C(BEGIN) C(SET) S(application_name) ZT C(ROLLBACK) S(application_name) ZI T D C(SHOW) ZI";
    oracle.agree(rolled_back, expected);
    let local = |talk: &mut Talk| {
        talk.ask(&[query("begin; set local datestyle = 'German'; select 1")]);
        talk.ask(&[query("commit")]);
        talk.ask(&[query("show datestyle")]);
    };
    let expected = "C(BEGIN) C(SET) T D C(SELECT 1) S(DateStyle) ZT C(COMMIT) S(DateStyle) ZI T D C(SHOW) ZI";
    oracle.agree(local, expected);
    let bad = |talk: &mut Talk| {
        talk.ask(&[query("set datestyle = 'nonsense'")]);
        talk.ask(&[query("set timezone = 'Asia/Tokyo'; select 1/0")]);
        talk.ask(&[query("show timezone")]);
    };
    oracle.agree(bad, "E(22023) ZI C(SET) E(22012) ZI T D C(SHOW) ZI");
}

// P15

#[test]
fn what_a_client_was_told_is_what_it_has_after_a_reload_of_the_server() {
    let server = PostgresOptions::new(Version::wanted()).start();
    let howdah = pooler_to(&server.connection(USER)).setting("default_pool_size", "2").start();
    let mut idle = howdah.session(USER, TRANSACTION);
    let mut own = session_with(&howdah, &[("DateStyle", "SQL, DMY")]);
    let mut session = howdah.session(USER, SESSION);
    let mut open = howdah.session(USER, TRANSACTION);
    assert_eq!(open.ask(query("begin")), "C(BEGIN) ZT");
    for (style, zone) in
        [("German, DMY", "Asia/Tokyo"), ("Postgres, MDY", "Europe/Paris"), ("ISO, MDY", "UTC")]
    {
        server.set("datestyle", style);
        server.set("timezone", zone);
        server.reload();
        // Those that hold a server hear of it by themselves; nobody else is disturbed.
        eventually(LIMIT, || {
            session.value("select 1");
            session.parameters["DateStyle"] == style && session.parameters["TimeZone"] == zone
        });
        for client in [&mut idle, &mut own, &mut open, &mut session] {
            for name in ["DateStyle", "TimeZone"] {
                let shown = client.value(&format!("show {name}"));
                assert_eq!(client.parameters[name], shown, "{name} as told");
            }
        }
        shows(&mut own, "DateStyle", "SQL, DMY");
    }
    assert_eq!(open.ask(query("commit")), "C(COMMIT) ZI");
}

// The pooler's own queries

/// A server that notes queries and answers all of them with one value.
fn listening_server() -> FakeServer {
    FakeServer::answering(|_, message| match message.tag {
        b'Q' if message.body.starts_with(b"fail") => {
            [reply::error("ERROR", "42601", "it fails"), reply::ready(b'I')].concat()
        }
        b'Q' => reply::one_value("1"),
        b'S' => reply::ready(b'I'),
        _ => Vec::new(),
    })
}

#[test]
fn connect_query_runs_once_a_server_and_its_failure_is_only_logged() {
    let server = listening_server();
    let connection = server.connection("any");
    let howdah = Howdah::new(oracle::BINARY)
        .database("good", &format!("{connection} connect_query='first; things'"))
        .database("bad", &format!("{connection} connect_query='fail'"))
        .setting("default_pool_size", "1")
        .user(USER, "")
        .start();
    for database in ["good", "bad"] {
        for _ in 0..3 {
            assert_eq!(howdah.session(USER, database).ask(query("select 'client'")), "T D C(SELECT 1) ZI");
        }
    }
    let client = "select 'client'".to_owned();
    let mut expected = vec!["first; things".to_owned()];
    expected.extend(vec![client.clone(); 3]);
    expected.push("fail".to_owned());
    expected.extend(vec![client; 3]);
    assert_eq!(server.queries(), expected);
    howdah.wait_for_log("it fails");
}

#[test]
fn check_query_precedes_a_client_after_the_delay() {
    for (check, seen) in [("select 'check'", vec!["select 'check'"]), ("<empty>", vec![""]), ("", vec![])] {
        let server = listening_server();
        let howdah = pooler_to(&server.connection("any"))
            .setting("server_check_query", check)
            .setting("server_check_delay", "0")
            .start();
        let mut client = howdah.session(USER, TRANSACTION);
        assert_eq!(client.ask(query("select 1")), "T D C(SELECT 1) ZI");
        // A fresh server needs no check, so count from here on.
        let before = server.queries().len();
        assert_eq!(client.ask(query("select 2")), "T D C(SELECT 1) ZI");
        let queries = server.queries().split_off(before);
        let expected: Vec<&str> = seen.into_iter().chain(["select 2"]).collect();
        assert_eq!(queries, expected, "server_check_query = {check}");
    }
}

#[test]
fn server_that_fails_its_check_is_replaced_unnoticed() {
    let server = FakeServer::answering(|number, message| match message.tag {
        b'Q' if number == 1 && message.body.starts_with(b"check") => {
            [reply::error("ERROR", "42601", "no"), reply::ready(b'I')].concat()
        }
        b'Q' => reply::one_value("1"),
        _ => Vec::new(),
    });
    let howdah = pooler_to(&server.connection("any"))
        .setting("server_check_query", "check")
        .setting("server_check_delay", "0")
        .start();
    let mut client = howdah.session(USER, TRANSACTION);
    for _ in 0..4 {
        assert_eq!(client.ask(query("select 1")), "T D C(SELECT 1) ZI");
    }
    assert!(server.accepted() >= 2, "the first server was closed");
}

#[test]
fn reset_query_runs_where_and_when_it_should() {
    for (entry, always, runs) in [(SESSION, "0", true), (TRANSACTION, "0", false), (TRANSACTION, "1", true)] {
        let server = listening_server();
        let howdah = pooler_to(&server.connection("any"))
            .setting("server_reset_query", "reset; it")
            .setting("server_reset_query_always", always)
            .start();
        for _ in 0..2 {
            assert_eq!(howdah.session(USER, entry).ask(query("select 1")), "T D C(SELECT 1) ZI");
        }
        // The next client shows that the release before it is over.
        assert_eq!(howdah.session(USER, entry).ask(query("select 2")), "T D C(SELECT 1) ZI");
        let resets = server.queries().iter().filter(|text| *text == "reset; it").count();
        assert!(
            if runs { resets >= 2 } else { resets == 0 },
            "{entry}, always {always}: {:?}",
            server.queries()
        );
        assert_eq!(server.accepted(), 1);
    }
}

#[test]
fn failed_reset_closes_the_server() {
    let server = listening_server();
    let howdah = pooler_to(&server.connection("any")).setting("server_reset_query", "fail").start();
    for expected in 1..4 {
        assert_eq!(howdah.session(USER, SESSION).ask(query("select 1")), "T D C(SELECT 1) ZI");
        assert_eq!(server.accepted(), expected);
    }
}

#[test]
fn session_without_a_reset_query_is_handed_on_as_it_is() {
    let howdah = pooler(Version::wanted()).setting("server_reset_query", "").start();
    let mut first = howdah.session(USER, SESSION);
    first.sql("set work_mem = '1234kB'");
    first.close();
    shows(&mut howdah.session(USER, SESSION), "work_mem", "1234kB");
}

// Statement mode

#[test]
fn statement_mode_has_no_transactions() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, "statement");
    assert_eq!(client.value("select 1"), "1");
    client.send(query("begin"));
    let heard = client.expect_closed();
    assert!(heard.ends_with("E(08P01)"), "{heard}");
    let mut next = howdah.session(USER, "statement");
    assert_eq!(next.ask(query("begin; select 1; commit")), "C(BEGIN) T D C(SELECT 1) C(COMMIT) ZI");
    assert_eq!(next.ask(query("select 1/0")), "E(22012) ZI");
}
