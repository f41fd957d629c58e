//! The scripted client against real servers: what it builds is understood, what it reports is what came.

use testkit::message::{self, all};
use testkit::{Event, Login, Postgres, PostgresOptions, Raw, Tls, Version, letters};

#[track_caller]
fn check(parts: &[Vec<u8>], readies: usize, expected: &str) {
    for version in [Version::V15, Version::V18] {
        let mut raw = Postgres::shared(version).session("postgres");
        raw.send(all(parts));
        assert_eq!(raw.answers(readies), expected, "on {version:?}");
    }
}

#[test]
fn simple_query_gives_its_letters() {
    check(&[message::query("select 1")], 1, "T D C(SELECT 1) ZI");
}

#[test]
fn empty_query_gives_its_letters() {
    check(&[message::query("")], 1, "I ZI");
}

#[test]
fn extended_query_gives_its_letters() {
    let parts = [
        message::parse("s", "select $1::text", &[25]),
        message::describe_statement("s"),
        message::bind("p", "s", &[Some("x")]),
        message::describe_portal("p"),
        message::execute("p", 0),
        message::close_portal("p"),
        message::close_statement("s"),
        message::sync(),
    ];
    check(&parts, 1, "1 t T 2 T D C(SELECT 1) 3 3 ZI");
}

#[test]
fn error_in_a_pipeline_skips_to_its_sync() {
    let parts = [
        message::parse("", "select 1/0", &[]),
        message::bind("", "nothing_of_that_name", &[]),
        message::execute("", 0),
        message::sync(),
        message::sync(),
    ];
    check(&parts, 2, "1 E(26000) ZI ZI");
}

#[test]
fn row_limit_suspends_the_portal() {
    let parts = [
        message::parse("", "select generate_series(1, 3)", &[]),
        message::bind("", "", &[]),
        message::execute("", 2),
        message::execute("", 2),
        message::sync(),
    ];
    check(&parts, 1, "1 2 D D s D C(SELECT 1) ZI");
}

#[test]
fn flush_brings_answers_without_ready() {
    let mut raw = Postgres::shared(Version::V15).session("postgres");
    raw.send(all(&[message::parse("", "select 1", &[]), message::flush()]));
    assert_eq!(raw.recv().letter(), "1");
    assert_eq!(raw.ask(message::sync()), "ZI");
}

#[test]
fn copy_in_and_out_give_their_letters() {
    let mut raw = Postgres::shared(Version::V18).session("postgres");
    raw.sql("create temp table t (v int)");
    raw.send(message::query("copy t from stdin"));
    assert_eq!(raw.recv().letter(), "G");
    assert_eq!(raw.ask(all(&[message::copy_data(b"1\n2\n"), message::copy_done()])), "C(COPY 2) ZI");
    assert_eq!(raw.ask(message::query("copy t to stdout")), "H d d c C(COPY 2) ZI");
    raw.send(message::query("copy t from stdin"));
    assert_eq!(raw.ask(message::copy_fail("no more")), "G E(57014) ZI");
}

#[test]
fn function_call_gives_its_letters() {
    // Addition of int4 has had this id since the beginning.
    check(&[message::function_call(177, &[Some("2"), Some("3")])], 1, "V ZI");
}

#[test]
fn long_run_of_rows_is_one_letter_with_a_count() {
    check(&[message::query("select generate_series(1, 1000)")], 1, "T D*1000 C(SELECT 1000) ZI");
}

#[test]
fn error_and_rows_are_decoded() {
    let mut raw = Postgres::shared(Version::V15).session("postgres");
    let refusal = raw.try_sql("select 1/0").expect_err("division by zero");
    assert_eq!(refusal.sqlstate, "22012");
    assert_eq!(raw.sql("select 'a', null"), [vec![Some("a".into()), None]]);
    let row = vec![("x".to_owned(), "1".to_owned()), ("y".to_owned(), String::new())];
    assert_eq!(raw.table("select 1 as x, null as y"), [row]);
    assert_eq!(raw.parameters["client_encoding"], "UTF8");
}

#[test]
fn notices_and_settings_have_their_names() {
    let mut raw = Postgres::shared(Version::V15).session("postgres");
    raw.send(message::query("set application_name = 'x'"));
    assert_eq!(raw.answers(1), "C(SET) S(application_name) ZI");
    assert_eq!(raw.ask(message::query("do $$ begin raise notice 'n'; end $$")), "N(00000) C(DO) ZI");
    raw.sql("listen ears");
    assert_eq!(raw.ask(message::query("notify ears")), "C(NOTIFY) A(ears) ZI");
}

#[test]
fn cancel_ends_the_query() {
    for version in [Version::V15, Version::V18] {
        let mut raw = Postgres::shared(version).session("postgres");
        raw.send(message::query("select pg_sleep(60)"));
        let server = Postgres::shared(version);
        let pid = raw.key.as_ref().expect("a key").pid;
        let busy = format!("select count(*) from pg_stat_activity where pid = {pid} and state = 'active'");
        testkit::wait::eventually(std::time::Duration::from_secs(10), || {
            server.session("postgres").value(&busy) == "1"
        });
        raw.cancel();
        assert_eq!(raw.answers(1), "T E(57014) ZI");
    }
}

#[test]
fn protocol_3_2_gives_a_long_key() {
    let server = Postgres::shared(Version::V18);
    let raw = Raw::login(server.port(), &Login::new("postgres", "postgres").protocol(3, 2));
    assert_eq!(raw.key.expect("a key").secret.len(), 32);
}

#[test]
fn unknown_protocol_is_negotiated() {
    let server = Postgres::shared(Version::V18);
    let login = Login::new("postgres", "postgres").protocol(3, 9999).parameter("_pq_.unknown", "1");
    let mut raw = Raw::connect(server.port());
    login.send_startup(&mut raw);
    assert!(letters(&raw.until_ready()).starts_with("v "));
}

#[test]
fn large_row_can_be_skimmed() {
    let mut raw = Postgres::shared(Version::V15).session("postgres");
    raw.send(message::query("select repeat('x', 10000000)"));
    assert_eq!(raw.skim().0, b'T');
    assert_eq!(raw.skim(), (b'D', 10_000_006));
    assert_eq!(raw.answers(1), "C(SELECT 1) ZI");
}

#[test]
fn every_kind_of_password_is_understood() {
    let hba = "local all all trust\n\
        host all plain 127.0.0.1/32 password\n\
        host all hashed 127.0.0.1/32 md5\n\
        host all salted 127.0.0.1/32 scram-sha-256\n";
    let server = PostgresOptions::new(Version::V15).tls().hba(hba).start();
    server.create_role("plain", "secret");
    server.create_role("salted", "secret");
    let mut session = server.session("postgres");
    session.sql("set password_encryption = md5");
    session.sql("create role hashed login password 'secret'");
    for user in ["plain", "hashed", "salted"] {
        let login = Login::new(user, "postgres");
        let mut raw = Raw::login(server.port(), &login.clone().password("secret"));
        assert_eq!(raw.value("select current_user"), user);
        let refusal = Raw::try_login(server.port(), &login.password("wrong")).err().expect("a refusal");
        assert_eq!(refusal.sqlstate, "28P01", "{user}");
    }
    let bound = Login::new("salted", "postgres").password("secret").tls(Tls::default()).channel_binding();
    assert_eq!(Raw::login(server.port(), &bound).value("select 1"), "1");
}

#[test]
fn client_certificate_is_shown() {
    let hba = "local all all trust\nhostssl all all 127.0.0.1/32 cert\n";
    let server = PostgresOptions::new(Version::V15).tls().hba(hba).start();
    let own = server.certificates().expect("TLS was asked for").client("somebody", "postgres");
    let tls = Tls { certificate: Some(own), ..Tls::default() };
    assert_eq!(
        Raw::login(server.port(), &Login::new("postgres", "postgres").tls(tls)).value("select 1"),
        "1"
    );
    let refusal = Raw::try_login(server.port(), &Login::new("postgres", "postgres").tls(Tls::default()));
    assert_eq!(refusal.err().expect("a refusal").sqlstate, "28000");
}

#[test]
fn ends_are_told_apart() {
    let mut raw = Postgres::shared(Version::V15).session("postgres");
    raw.send(message::terminate());
    assert_eq!(raw.expect_closed(), "");
    let mut raw = Raw::connect(Postgres::shared(Version::V15).port());
    raw.send([0, 0, 0, 0]);
    assert_eq!(raw.answers(1), "EOF");
    assert!(matches!(raw.next(std::time::Duration::ZERO), Event::End(_)));
}
