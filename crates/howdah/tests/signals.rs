//! Signals do what PgBouncer's do.
#![allow(clippy::disallowed_methods)] // clients are threads

mod stage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stage::{
    LIMIT, check_fatal, holder, local, login, next_error, pooler, refused, server_for, servers_of,
    wait_for_pool, wait_until_deaf,
};
use testkit::message::{self, query};
use testkit::{Howdah, Login, Postgres, Raw, Signal, eventually, eventually_shown};

fn assert_exits_well(howdah: &Howdah, name: &str) {
    let status = howdah.wait_exit(LIMIT);
    assert_eq!(status.code(), Some(0), "{status:?}");
    eventually(LIMIT, || servers_of(name) == 0);
    assert!(!howdah.socket().exists(), "the socket was left behind");
}

#[test]
fn hangup_reloads() {
    let name = "signals_hup";
    let howdah = pooler(name).setting("default_pool_size", "2").start();
    let mut inside = howdah.session(name, name);
    howdah.write_ini(&howdah.ini_text().replace("default_pool_size = 2", "default_pool_size = 9"));
    howdah.signal(Signal::Hangup);
    howdah.wait_for_log("got SIGHUP");
    eventually_shown(&howdah, "SHOW CONFIG", |rows| {
        let value = |row: &Vec<(String, String)>| testkit::cell(row, "value") == Some("9");
        rows.iter().any(|row| testkit::cell(row, "key") == Some("default_pool_size") && value(row))
    });
    assert_eq!(inside.value("select 1"), "1");
    howdah.write_ini("nonsense");
    howdah.signal(Signal::Hangup);
    eventually(LIMIT, || howdah.log().matches("got SIGHUP").count() == 2);
    assert_eq!(inside.value("select 1"), "1");
    assert_eq!(howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value"), "9");
}

#[test]
fn terminate_waits_for_clients_and_takes_no_new_ones() {
    let name = "signals_term";
    let howdah = pooler(name).start();
    let (mut first, mut second) = (holder(&howdah, name), howdah.session(name, name));
    howdah.signal(Signal::Terminate);
    howdah.wait_for_log("got SIGTERM");
    wait_until_deaf(&howdah);
    // The Unix socket is open for the console, and for nobody else.
    let socket = local(&howdah);
    let refusal = Raw::try_login(socket.as_path(), &login(name)).map(drop).expect_err("too late");
    check_fatal(&refusal, "57P01", "pooler is shutting down");
    let admin = Login::new(testkit::howdah::ADMIN, "pgbouncer").password(testkit::howdah::ADMIN_PASSWORD);
    assert_eq!(Raw::login(socket.as_path(), &admin).table("SHOW STATE").len(), 3);
    assert_eq!(first.ask(query("commit")), "C(COMMIT) ZI");
    for _ in 0..3 {
        assert_eq!((first.value("select 1"), second.value("select 2")), ("1".into(), "2".into()));
    }
    first.close();
    assert_eq!(second.value("select 3"), "3");
    assert!(!howdah.has_ended());
    second.close();
    assert_exits_well(&howdah, name);
}

#[test]
fn terminate_ends_at_once_where_nobody_is() {
    let name = "signals_term_idle";
    let howdah = pooler(name).start();
    howdah.session(name, name).sql("select 1");
    howdah.signal(Signal::Terminate);
    assert_exits_well(&howdah, name);
}

fn check_second_signal(name: &str, first: Signal, second: Signal) {
    let howdah = pooler(name).start();
    let mut held = holder(&howdah, name);
    howdah.signal(first);
    howdah.wait_for_log("got SIG");
    assert_eq!(held.value("select 1"), "1");
    assert!(!howdah.has_ended());
    howdah.signal(second);
    assert_exits_well(&howdah, name);
    held.expect_closed();
}

#[test]
fn second_terminate_ends_at_once() {
    check_second_signal("signals_term_term", Signal::Terminate, Signal::Terminate);
}

#[test]
fn terminate_after_interrupt_ends_at_once() {
    check_second_signal("signals_int_term", Signal::Interrupt, Signal::Terminate);
}

#[test]
fn interrupt_lets_transactions_finish_and_refuses_new_ones() {
    let name = "signals_int";
    let howdah = pooler(name).setting("default_pool_size", "1").start();
    let mut held = holder(&howdah, name);
    let (mut waiting, mut idle) = (howdah.session(name, name), howdah.session(name, name));
    waiting.send(query("select 1"));
    wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
    howdah.signal(Signal::Interrupt);
    howdah.wait_for_log("got SIGINT");
    check_fatal(&next_error(&mut waiting), "57P01", "server shutting down");
    idle.send(query("select 1"));
    check_fatal(&next_error(&mut idle), "57P01", "server shutting down");
    assert_eq!(held.ask(query("select 1")), "T D C(SELECT 1) ZT");
    assert!(!howdah.has_ended());
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
    assert_exits_well(&howdah, name);
}

#[test]
fn quit_ends_at_once() {
    let name = "signals_quit";
    let howdah = pooler(name).start();
    let mut held = holder(&howdah, name);
    howdah.signal(Signal::Quit);
    assert_exits_well(&howdah, name);
    held.expect_closed();
}

#[test]
fn user_signals_pause_and_resume() {
    let name = "signals_usr";
    let howdah = pooler(name).start();
    let mut held = holder(&howdah, name);
    howdah.signal(Signal::User1);
    howdah.wait_for_log("got SIGUSR1");
    let mut waiting = howdah.session(name, name);
    waiting.send(query("select 'late'"));
    waiting.expect_silence(Duration::from_millis(200));
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
    eventually(LIMIT, || servers_of(name) == 0);
    assert_eq!(howdah.admin_value("SHOW STATE", &[("key", "paused")], "value"), "yes");
    howdah.signal(Signal::User2);
    assert_eq!(waiting.answers(1), "T D C(SELECT 1) ZI");
    assert_eq!(howdah.admin_value("SHOW STATE", &[("key", "paused")], "value"), "no");
    // Twice is no more than once.
    let heard = |signal: &str| howdah.log().matches(&format!("got {signal}")).count();
    howdah.signal(Signal::User2);
    eventually(LIMIT, || heard("SIGUSR2") == 2);
    howdah.signal(Signal::User1);
    eventually(LIMIT, || heard("SIGUSR1") == 2);
    howdah.signal(Signal::User1);
    eventually(LIMIT, || heard("SIGUSR1") == 3);
    eventually(LIMIT, || howdah.admin_value("SHOW STATE", &[("key", "paused")], "value") == "yes");
    howdah.signal(Signal::User2);
    assert_eq!(held.value("select 1"), "1");
}

/// Every commit that a client was told of is there, and nothing is there twice, when the pooler ends under load.
fn check_acknowledged(name: &str, signal: Signal) {
    let howdah = pooler(name).setting("default_pool_size", "3").start();
    let server = Postgres::shared_wanted();
    server.session(name).sql("create table entries (who int, turn int); grant all on entries to public");
    let over = AtomicBool::new(false);
    let told: Vec<i32> = std::thread::scope(|scope| {
        let (howdah, over) = (&howdah, &over);
        let client = |who: i32| {
            move || {
                let mut raw = howdah.session(name, name);
                let mut acknowledged = 0;
                while !over.load(Ordering::SeqCst) {
                    let turn = acknowledged + 1;
                    let sql = format!("begin; insert into entries values ({who}, {turn}); commit");
                    if raw.try_send(query(&sql)).is_err() || !raw.answers(1).ends_with("C(COMMIT) ZI") {
                        break;
                    }
                    acknowledged = turn;
                }
                acknowledged
            }
        };
        let clients: Vec<_> = (0..8).map(|who| scope.spawn(client(who))).collect();
        eventually(LIMIT, || server.session(name).value("select count(*) > 200 from entries") == "t");
        howdah.signal(signal);
        if signal == Signal::Terminate {
            howdah.wait_for_log("got SIGTERM");
            over.store(true, Ordering::SeqCst);
        }
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    assert_eq!(howdah.wait_exit(LIMIT).code(), Some(0));
    let mut session = server.session(name);
    assert_eq!(session.value("select count(*) - count(distinct (who, turn)) from entries"), "0");
    for (who, acknowledged) in told.into_iter().enumerate() {
        let sql = format!("select count(*) from entries where who = {who}");
        let kept: i32 = session.value(&sql).parse().expect("a count");
        // The last one may have been committed with the answer lost, unless sessions were ended in order.
        let most = if signal == Signal::Quit { acknowledged + 1 } else { acknowledged };
        assert!((acknowledged..=most).contains(&kept), "client {who}: {kept} kept, {acknowledged} told");
    }
}

#[test]
fn interrupt_under_load_loses_and_doubles_nothing() {
    check_acknowledged("signals_load_int", Signal::Interrupt);
}

#[test]
fn terminate_under_load_loses_and_doubles_nothing() {
    check_acknowledged("signals_load_term", Signal::Terminate);
}

#[test]
fn quit_under_load_loses_and_doubles_nothing_that_was_told() {
    check_acknowledged("signals_load_quit", Signal::Quit);
}

#[test]
fn closed_standard_error_and_broken_pipes_do_not_end_it() {
    let name = "signals_pipe";
    server_for(name);
    let server = Postgres::shared_wanted();
    let howdah = stage::bare().database(name, &server.connection(name)).user(name, stage::PASSWORD).start();
    for _ in 0..50 {
        let mut raw = howdah.session(name, name);
        raw.send([query("select repeat('x', 200000)"), query("select 1")].concat());
        raw.reset();
    }
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
    let mut console = howdah.console();
    console.send([query("SHOW CONFIG"), message::terminate()].concat());
    console.reset();
    assert!(!howdah.has_ended());
    assert_eq!(refused(&howdah, &Login::new("nobody", name)).severity, "FATAL");
}
