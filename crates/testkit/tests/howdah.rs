//! The fixture of the pooler, tried out on the pooler that everybody knows: it reads the same files.
#![allow(clippy::disallowed_methods)] // files are what is looked at

use std::path::Path;
use std::time::Duration;

use testkit::message::query;
use testkit::{Howdah, HowdahOptions, Postgres, Signal, Version, cell, eventually, eventually_shown, os};

/// Debian's pgbouncer; it does not run as root.
fn pooler() -> HowdahOptions {
    let binary = "/usr/sbin/pgbouncer";
    if !Path::new(binary).exists() {
        testkit::install::ensure_packages(&["pgbouncer"]);
    }
    let server = Postgres::shared(Version::V15);
    let options = Howdah::new(binary)
        .database("postgres", &server.connection("postgres"))
        .user("postgres", "")
        .setting("unix_socket_dir", "");
    if os::is_root() { options.argument("-u").argument("postgres") } else { options }
}

#[test]
fn pooler_answers_once_started() {
    let howdah = pooler().start();
    assert_eq!(howdah.session("postgres", "postgres").value("select 1"), "1");
    assert!(howdah.rss_kb() > 0);
    assert!(howdah.threads() > 0);
    assert!(howdah.open_files() > 3);
}

#[test]
fn console_gives_tables() {
    let howdah = pooler().setting("default_pool_size", "7").start();
    assert_eq!(howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value"), "7");
    let _session = howdah.session("postgres", "postgres");
    eventually_shown(&howdah, "SHOW CLIENTS", |rows| {
        rows.iter().any(|row| cell(row, "user") == Some("postgres"))
    });
}

#[test]
fn reload_makes_a_new_file_hold() {
    let mut howdah = pooler().start();
    howdah.reload_with("default_pool_size", "3");
    assert_eq!(howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value"), "3");
    howdah.add_user("somebody", "secret");
    howdah.console().sql("RELOAD");
    assert!(howdah.ini_text().contains("default_pool_size = 3"));
    eventually_shown(&howdah, "SHOW USERS", |rows| {
        rows.iter().any(|row| cell(row, "name") == Some("somebody"))
    });
}

#[test]
fn log_can_be_waited_for() {
    let howdah = pooler().setting("log_connections", "1").start();
    let _session = howdah.session("postgres", "postgres");
    howdah.wait_for_log("login attempt");
}

#[test]
fn pooler_that_does_not_start_tells_why() {
    let (status, log) = pooler().setting("pool_mode", "nonsense").start_and_fail();
    assert!(!status.success());
    assert!(log.contains("nonsense") || log.contains("pool_mode"), "{log}");
}

#[test]
fn signal_ends_the_pooler_and_it_starts_again() {
    let howdah = pooler().start();
    howdah.signal(Signal::Terminate);
    howdah.wait_exit(Duration::from_secs(10));
    assert!(howdah.has_ended());
    howdah.start_again();
    assert_eq!(howdah.session("postgres", "postgres").ask(query("select 1")), "T D C(SELECT 1) ZI");
}

#[test]
fn whole_ini_may_be_given() {
    let ini = "[databases]\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
        auth_type = trust\nauth_file = {dir}/userlist.txt\nadmin_users = admin\n";
    let howdah = pooler().ini(ini).start();
    assert_eq!(
        howdah.admin_value("SHOW CONFIG", &[("key", "listen_port")], "value"),
        howdah.port().to_string()
    );
}

#[test]
fn open_files_can_be_few() {
    let howdah = pooler().open_files(256).start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", howdah.pid())).expect("own process");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    assert!(line.contains("256"), "{line}");
}

#[test]
fn pooler_of_a_dropped_fixture_is_gone() {
    let howdah = pooler().start();
    let (pid, dir) = (howdah.pid(), howdah.dir().to_path_buf());
    drop(howdah);
    eventually(Duration::from_secs(5), || !Path::new(&format!("/proc/{pid}")).exists());
    assert!(!dir.exists());
}
