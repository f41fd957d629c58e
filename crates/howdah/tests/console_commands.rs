//! The console's commands do what they say, wait for what they wait for, and touch nothing else.
#![allow(clippy::disallowed_methods)] // waiting has a limit

mod stage;

use std::time::Duration;

use stage::{
    LIMIT, PASSWORD, bare, check_fatal, holder, login, next_error, pooler, refused, server_for, servers_of,
    wait_for_pool, wait_until_deaf,
};
use testkit::message::{self, query};
use testkit::{Howdah, Raw, Refusal, eventually};

fn state_of(howdah: &Howdah, key: &str) -> String {
    howdah.admin_value("SHOW STATE", &[("key", key)], "value")
}

#[test]
fn pause_waits_for_transactions_and_holds_new_ones_until_resume() {
    let name = "console_pause";
    let howdah = pooler(name).start();
    let mut held = holder(&howdah, name);
    let mut other = howdah.session(name, name);
    let mut console = howdah.console();
    console.send(query("PAUSE"));
    console.expect_silence(Duration::from_millis(300));
    other.send(query("select 'later'"));
    assert_eq!(held.ask(query("select 1")), "T D C(SELECT 1) ZT");
    other.expect_silence(Duration::from_millis(200));
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(console.answers(1), "C(PAUSE) ZI");
    assert_eq!(state_of(&howdah, "paused"), "yes");
    eventually(LIMIT, || servers_of(name) == 0);
    // Logins are welcome, as long as they need no server.
    let mut third = howdah.session(name, name);
    third.send(query("select 'later'"));
    held.send(query("select 'later'"));
    wait_for_pool(&howdah, name, &[("cl_waiting", "3"), ("sv_active", "0")]);
    let refusal = console.try_sql("PAUSE").expect_err("twice");
    assert_eq!(refusal.text, "already suspended/paused");
    assert_eq!(console.ask(query("RESUME")), "C(RESUME) ZI");
    for raw in [&mut held, &mut other, &mut third] {
        assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI");
    }
    assert_eq!(state_of(&howdah, "paused"), "no");
}

#[test]
fn pause_of_one_database_leaves_the_others_alone() {
    let name = "console_pause_one";
    let server = server_for(name);
    let howdah = bare()
        .database(name, &server.connection(name))
        .database("other", &server.connection(name))
        .user(name, PASSWORD)
        .start();
    let (mut here, mut there) = (howdah.session(name, name), howdah.session(name, "other"));
    let mut console = howdah.console();
    assert_eq!(console.ask(query(&format!("PAUSE {name}"))), "C(PAUSE) ZI");
    assert_eq!(howdah.admin_value("SHOW DATABASES", &[("name", name)], "paused"), "1");
    here.send(query("select 1"));
    here.expect_silence(Duration::from_millis(200));
    assert_eq!(there.value("select 1"), "1");
    assert_eq!(console.ask(query(&format!("RESUME {name}"))), "C(RESUME) ZI");
    assert_eq!(here.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn cancel_of_a_waiting_pause_resumes() {
    let name = "console_pause_cancel";
    let howdah = pooler(name).start();
    let mut held = holder(&howdah, name);
    let mut console = howdah.console();
    console.send(query("PAUSE"));
    console.expect_silence(Duration::from_millis(200));
    console.cancel();
    assert_eq!(console.answers(1), "E(57014) ZI");
    assert_eq!(state_of(&howdah, "paused"), "no");
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
}

#[test]
fn console_that_waits_may_leave() {
    let name = "console_pause_gone";
    let howdah = pooler(name).start();
    let mut held = holder(&howdah, name);
    let mut console = howdah.console();
    console.send(query(&format!("PAUSE {name}")));
    console.expect_silence(Duration::from_millis(200));
    console.reset();
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
    let mut second = howdah.console();
    eventually(LIMIT, || servers_of(name) == 0);
    assert_eq!(second.ask(query(&format!("RESUME {name}"))), "C(RESUME) ZI");
    assert_eq!(held.value("select 1"), "1");
}

#[test]
fn kill_ends_clients_and_servers_and_pauses() {
    let name = "console_kill";
    let howdah = pooler(name).start();
    let (mut busy, mut idle) = (holder(&howdah, name), howdah.session(name, name));
    let mut console = howdah.console();
    assert_eq!(console.ask(query(&format!("KILL {name}"))), "C(KILL) ZI");
    for raw in [&mut busy, &mut idle] {
        check_fatal(&next_error(raw), "57P01", "database removed");
        assert_eq!(raw.expect_closed(), "");
    }
    eventually(LIMIT, || servers_of(name) == 0);
    assert_eq!(howdah.admin_value("SHOW DATABASES", &[("name", name)], "paused"), "1");
    assert_eq!(console.ask(query(&format!("RESUME {name}"))), "C(RESUME) ZI");
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
}

#[test]
fn kill_client_ends_one_and_cleans_its_server() {
    let name = "console_kill_client";
    let howdah = pooler(name).setting("default_pool_size", "1").start();
    let mut victim = holder(&howdah, name);
    victim.sql("create table undone (n int)");
    let mut other = howdah.session(name, name);
    let port = victim.local_port().to_string();
    let id = howdah.admin_value("SHOW CLIENTS", &[("port", &port)], "id");
    assert_eq!(howdah.console().ask(query(&format!("KILL_CLIENT {id}"))), "C(KILL_CLIENT) ZI");
    check_fatal(&next_error(&mut victim), "57P01", "admin forced disconnect");
    victim.expect_closed();
    assert_eq!(other.value("select count(*) from pg_class where relname = 'undone'"), "0");
    let pointer = |howdah: &Howdah, raw: &Raw| {
        howdah.admin_value("SHOW CLIENTS", &[("port", &raw.local_port().to_string())], "ptr")
    };
    let by_pointer = format!("KILL_CLIENT {}", pointer(&howdah, &other));
    assert_eq!(howdah.console().ask(query(&by_pointer)), "C(KILL_CLIENT) ZI");
    check_fatal(&next_error(&mut other), "57P01", "admin forced disconnect");
}

#[test]
fn disabled_database_takes_no_new_clients() {
    let name = "console_disable";
    let howdah = pooler(name).start();
    let mut old = howdah.session(name, name);
    let mut console = howdah.console();
    assert_eq!(console.ask(query(&format!("DISABLE {name}"))), "C(DISABLE) ZI");
    check_fatal(&refused(&howdah, &login(name)), "57P03", &format!("database \"{name}\" is disabled"));
    assert_eq!(old.value("select 1"), "1");
    assert_eq!(howdah.admin_value("SHOW DATABASES", &[("name", name)], "disabled"), "1");
    assert_eq!(console.ask(query(&format!("ENABLE {name}"))), "C(ENABLE) ZI");
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
}

#[test]
fn reconnect_replaces_servers_between_transactions_and_wait_close_waits_for_it() {
    let name = "console_reconnect";
    let howdah = pooler(name).start();
    let pid = "select pg_backend_pid()";
    let (mut held, mut other) = (holder(&howdah, name), howdah.session(name, name));
    let (first, second) = (held.value(pid), other.value(pid));
    let mut console = howdah.console();
    assert_eq!(console.ask(query("RECONNECT")), "C(RECONNECT) ZI");
    assert_ne!(other.value(pid), second);
    assert_eq!(held.value(pid), first);
    console.send(query(&format!("WAIT_CLOSE {name}")));
    console.expect_silence(Duration::from_millis(200));
    held.sql("commit");
    assert_eq!(console.answers(1), "C(WAIT_CLOSE) ZI");
    assert_ne!(held.value(pid), first);
    assert_eq!(console.ask(query(&format!("RECONNECT {name}"))), "C(RECONNECT) ZI");
    assert_eq!(console.ask(query("WAIT_CLOSE")), "C(WAIT_CLOSE) ZI");
}

#[test]
fn set_holds_until_the_next_reload() {
    let name = "console_set";
    let howdah = pooler(name).setting("default_pool_size", "2").start();
    let mut console = howdah.console();
    assert_eq!(console.ask(query("SET default_pool_size = 1")), "C(SET default_pool_size=1) ZI");
    assert_eq!(console.ask(query("SET query_wait_timeout TO '0.3'")), "C(SET query_wait_timeout=0.3) ZI");
    let value = |key: &str| howdah.admin_value("SHOW CONFIG", &[("key", key)], "value");
    assert_eq!((value("default_pool_size"), value("query_wait_timeout")), ("1".into(), "0.3".into()));
    let mut held = holder(&howdah, name);
    let mut late = howdah.session(name, name);
    late.send(query("select 1"));
    check_fatal(&next_error(&mut late), "53300", "query_wait_timeout");
    assert_eq!(console.ask(query("RELOAD")), "C(RELOAD) ZI");
    assert_eq!((value("default_pool_size"), value("query_wait_timeout")), ("2".into(), "120".into()));
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
    held.sql("commit");
    // What only a restart can change is not changed.
    let port = value("listen_port");
    assert!(console.ask(query("SET listen_port = 1")).ends_with("ZI"));
    assert_eq!(value("listen_port"), port);
}

fn check_shutdown(name: &str, command: &str, ends: impl FnOnce(&Howdah, &mut Raw, &mut Raw)) {
    let howdah = pooler(name).start();
    let (mut held, mut idle) = (holder(&howdah, name), howdah.session(name, name));
    let mut console = howdah.console();
    console.send(query(command));
    ends(&howdah, &mut held, &mut idle);
    let status = howdah.wait_exit(LIMIT);
    assert_eq!(status.code(), Some(0), "{command}: {status:?}");
    eventually(LIMIT, || servers_of(name) == 0);
}

#[test]
fn shutdown_ends_at_once() {
    check_shutdown("console_shutdown", "SHUTDOWN", |_, held, idle| {
        held.expect_closed();
        idle.expect_closed();
    });
}

#[test]
fn shutdown_wait_for_servers_lets_transactions_finish() {
    check_shutdown("console_shutdown_servers", "SHUTDOWN WAIT_FOR_SERVERS", |howdah, held, idle| {
        howdah.wait_for_log("SHUTDOWN");
        idle.send(query("select 1"));
        let refusal: Refusal = next_error(idle);
        check_fatal(&refusal, "57P01", "server shutting down");
        assert_eq!(held.ask(query("select 1")), "T D C(SELECT 1) ZT");
        assert!(!howdah.has_ended());
        assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
    });
}

#[test]
fn shutdown_wait_for_clients_lets_sessions_finish() {
    check_shutdown("console_shutdown_clients", "SHUTDOWN WAIT_FOR_CLIENTS", |howdah, held, idle| {
        howdah.wait_for_log("SHUTDOWN");
        assert_eq!(idle.ask(query("select 1")), "T D C(SELECT 1) ZI");
        assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
        assert_eq!(held.ask(query("select 1")), "T D C(SELECT 1) ZI");
        wait_until_deaf(howdah);
        assert!(!howdah.has_ended());
        held.send(message::terminate());
        idle.send(message::terminate());
    });
}
