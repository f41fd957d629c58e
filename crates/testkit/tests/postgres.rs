//! The PostgreSQL fixture against real servers of both versions.
#![allow(clippy::disallowed_methods)] // clocks and files are what is looked at

use std::time::Duration;

use testkit::{Login, Pgbench, Postgres, PostgresOptions, Raw, StopMode, Tls, Version, message, wait};

fn each_version(check: impl Fn(Version)) {
    for version in [Version::V15, Version::V18] {
        check(version);
    }
}

#[test]
fn server_is_of_the_version_asked_for() {
    each_version(|version| {
        let number = Postgres::shared(version).session("postgres").value("show server_version_num");
        assert!(number.starts_with(&version.number().to_string()), "{number}");
    });
}

#[test]
fn server_listens_on_both_its_sockets() {
    each_version(|version| {
        let server = Postgres::shared(version);
        let mut raw = Raw::login(server.port(), &Login::new("postgres", "postgres"));
        assert_eq!(raw.value("select 1"), "1");
        assert_eq!(server.session("postgres").value("select 1"), "1");
    });
}

#[test]
fn server_has_the_options_asked_for() {
    let server = PostgresOptions::new(Version::V18).max_connections(17).setting("work_mem", "3MB").start();
    let mut session = server.session("postgres");
    assert_eq!(session.value("show max_connections"), "17");
    assert_eq!(session.value("show work_mem"), "3MB");
}

#[test]
fn role_and_database_can_be_made_and_used() {
    each_version(|version| {
        let server = Postgres::shared(version);
        server.create_role("ro'le \"x", "pass'word");
        server.create_database("a base", "ro'le \"x");
        let mut raw = Raw::login(server.port(), &Login::new("ro'le \"x", "a base"));
        assert_eq!(raw.value("select current_user"), "ro'le \"x");
        assert_eq!(server.sessions_in("a base"), 1);
    });
}

#[test]
fn server_stops_in_each_mode_and_starts_again_with_its_data() {
    each_version(|version| {
        let server = PostgresOptions::new(version).start();
        server.sql("create table kept as select 7 as seven");
        for mode in [StopMode::Smart, StopMode::Fast, StopMode::Immediate] {
            let before = server.pid();
            server.restart(mode);
            assert_ne!(server.pid(), before);
            assert_eq!(server.session("postgres").value("select seven from kept"), "7");
        }
    });
}

#[test]
fn killed_server_starts_again() {
    each_version(|version| {
        let server = PostgresOptions::new(version).start();
        let mut session = server.session("postgres");
        server.kill();
        session.expect_closed();
        server.start_again();
        assert_eq!(server.session("postgres").value("select 1"), "1");
    });
}

#[test]
fn frozen_server_is_silent_until_it_is_thawed() {
    let server = PostgresOptions::new(Version::V15).start();
    let mut session = server.session("postgres");
    server.freeze_all();
    session.send(message::query("select 1"));
    session.expect_silence(Duration::from_millis(200));
    server.thaw();
    assert_eq!(session.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn reload_makes_new_settings_hold() {
    let server = PostgresOptions::new(Version::V15).start();
    let mut session = server.session("postgres");
    server.set("work_mem", "5MB");
    server.reload();
    wait::eventually(Duration::from_secs(10), || session.value("show work_mem") == "5MB");
}

#[test]
fn server_speaks_tls_when_asked_to() {
    let server = PostgresOptions::new(Version::V15).tls().start();
    let login = Login::new("postgres", "postgres").tls(Tls::default());
    let mut raw = Raw::login(server.port(), &login);
    assert_eq!(raw.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()"), "t");
}

#[test]
fn process_of_a_dropped_server_is_gone() {
    let server = PostgresOptions::new(Version::V18).start();
    let (pid, home) = (server.pid(), server.socket_dir().to_path_buf());
    drop(server);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!home.exists());
}

#[test]
fn pgbench_reports_what_it_did() {
    each_version(|version| {
        let server = Postgres::shared(version);
        server.create_role("bench", "secret");
        server.create_database("bench", "bench");
        let pgbench = Pgbench::new(server, server.port(), "bench", "bench");
        pgbench.fill(1);
        let run =
            pgbench.clone().argument("--select-only").argument("--client=20").argument("--transactions=10");
        let report = run.argument("--protocol=prepared").run();
        assert!(report.success && report.tps > 0.0, "{report:?}");
        assert_eq!(report.transactions, 200);
        assert!(!pgbench.argument("--file=nothing.sql").run().success);
    });
}
