//! A server that dies again and again, and one that takes its time to come up: nobody's rows are lost, nobody is turned
//! away.
#![allow(clippy::disallowed_methods)] // clients are threads

mod ledger;
mod stage;

use std::fs;
use std::time::{Duration, Instant};

use ledger::{Ledger, Style};
use stage::bare;
use testkit::message::query;
use testkit::{
    Howdah, Login, Postgres, PostgresOptions, Raw, Signal, StopMode, Version, cell, eventually, os,
};

const LIMIT: Duration = Duration::from_secs(60);

/// Commits are on disk before they are acknowledged, as far as the process is concerned.
fn server() -> PostgresOptions {
    PostgresOptions::new(Version::wanted()).setting("synchronous_commit", "on")
}

fn pooler(server: &Postgres) -> Howdah {
    bare()
        .database("db", &format!("{} target_session_attrs=primary", server.connection("postgres")))
        .user("postgres", "")
        .setting("default_pool_size", "10")
        .setting("max_client_conn", "500")
        .setting("monitor_user", "postgres")
        .start()
}

fn login() -> Login {
    Login::new("postgres", "db")
}

#[test]
fn backends_that_are_killed_and_servers_that_restart_lose_no_row() {
    let server = server().start();
    let howdah = pooler(&server);
    server.sql(ledger::TABLE);
    let mut harms = 0;
    let (accounts, ledger) = Ledger::keep((&[howdah.port()], &login()), (30, Style::Block), |ledger| {
        for _ in 0..6 {
            // PostgreSQL ends all sessions for one that was killed, and recovers.
            let mut victim = None;
            eventually(LIMIT, || {
                victim = child(&server, "postgres: postgres postgres");
                victim.is_some()
            });
            os::send_signal(victim.expect("waited for"), Signal::Kill).expect("a process of ours");
            harms += 1;
            ledger.wait_for_more(60);
        }
        for _ in 0..5 {
            server.restart(StopMode::Immediate);
            harms += 1;
        }
    });
    let told: usize = accounts.iter().map(|account| account.told.len()).sum();
    let errors = ledger::check(accounts, &mut server.session("postgres"));
    // The server's own warning may come before.
    assert!(errors.iter().all(|error| error.ends_with("E(08007) ZI")), "{errors:?}");
    assert!(errors.len() <= 10 * harms, "no more than were at work: {}", errors.len());
    println!("{harms} crashes: {told} told, {} x 08007, stall {:?}", errors.len(), ledger.stall());
}

#[test]
fn a_server_that_replays_its_log_keeps_its_clients_waiting_and_turns_nobody_away() {
    let server = server().setting("max_wal_size", "4GB").setting("checkpoint_timeout", "1h").start();
    let howdah = pooler(&server);
    let mut client = howdah.login(&login());
    client.sql("create table t as select n, repeat('x', 100) from generate_series(1, 1500000) n");
    server.stop(StopMode::Immediate);
    std::thread::scope(|scope| {
        let start = scope.spawn(|| server.start_again());
        let mut startup = None;
        eventually(LIMIT, || {
            startup = child(&server, "postgres: startup");
            startup.is_some()
        });
        let startup = startup.expect("waited for");
        os::send_signal(startup, Signal::Stop).expect("a process of ours");
        let thaw = Thaw(startup);
        let mut console = howdah.console();
        eventually(LIMIT, || {
            let rows = console.table("SHOW NODES");
            cell(&rows[0], "state") == Some("down")
        });
        let mut newcomers: Vec<Raw> = (0..100).map(|_| howdah.login(&login())).collect();
        for waiting in newcomers.iter_mut().chain([&mut client]) {
            waiting.send(query("select 1"));
        }
        eventually(LIMIT, || howdah.admin_value("SHOW POOLS", &[("database", "db")], "cl_waiting") == "101");
        drop(thaw);
        start.join().expect("no panic");
        let ready = Instant::now();
        // It may have been told by a notice that it waits.
        assert!(client.answers(1).ends_with("T D C(SELECT 1) ZI"));
        println!("an answer {:?} after the server was ready", ready.elapsed());
        for waiting in &mut newcomers {
            assert!(waiting.answers(1).ends_with("T D C(SELECT 1) ZI"));
        }
    });
}

/// Lets a process go on, also when a test fails while it is frozen.
struct Thaw(u32);

impl Drop for Thaw {
    fn drop(&mut self) {
        let _ = os::send_signal(self.0, Signal::Continue);
    }
}

/// A process of the server's whose title begins so, once the postmaster has told where it is.
fn child(server: &Postgres, title: &str) -> Option<u32> {
    let file = fs::read_to_string(server.data().join("postmaster.pid")).ok()?;
    let postmaster = file.lines().next()?.trim();
    let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).ok()?;
    let is_meant = |pid: &&str| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with(title)
    };
    children.split_whitespace().find(is_meant)?.parse().ok()
}
