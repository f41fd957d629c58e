//! A server that dies again and again, and one that takes its time to come up: nobody's rows are lost, nobody is turned
//! away.
#![allow(clippy::disallowed_methods)] // clients are threads

mod figures;
mod ledger;
mod stage;

use std::fs;
use std::time::{Duration, Instant};

use figures::{Figures, is_full, sized};
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
    let figures = Figures::new("backends killed, immediate restarts");
    let (mut harms, mut stuck) = (0, Duration::ZERO);
    let clients = sized(30, 100);
    let (accounts, ledger) = Ledger::keep((&[howdah.port()], &login()), (clients, Style::Block), |ledger| {
        let start = Instant::now();
        for turn in 1..=sized(6, 60) {
            // PostgreSQL ends all sessions for one that was killed, and recovers.
            let mut victim = None;
            eventually(LIMIT, || {
                victim = child(&server, "postgres: postgres postgres");
                victim.is_some()
            });
            // It may have ended since, with the others.
            let _ = os::send_signal(victim.expect("waited for"), Signal::Kill);
            harms += 1;
            if is_full() {
                let next = Duration::from_secs(turn).saturating_sub(start.elapsed());
                if harms % 10 == 0 {
                    figures.say(&format!("{harms} killed"));
                }
                std::thread::sleep(next);
            } else {
                ledger.wait_for_more(60);
            }
        }
        figures.time("killing took", start.elapsed(), None);
        stuck = ledger.wait_for_everybody();
        for _ in 0..5 {
            server.restart(StopMode::Immediate);
            harms += 1;
            if is_full() {
                stuck = stuck.max(ledger.wait_for_everybody());
            }
        }
        stuck = stuck.max(ledger.wait_for_everybody());
    });
    let told: usize = accounts.iter().map(|account| account.told.len()).sum();
    let errors = ledger::check(accounts, &mut server.session("postgres"));
    // The server's own warning may come before.
    assert!(errors.iter().all(|error| error.ends_with("E(08007) ZI")), "{errors:?}");
    assert!(errors.len() <= 10 * harms, "no more than were at work: {}", errors.len());
    figures.count("clients", clients, None);
    figures.count("crashes", harms, None);
    figures.count("transactions acknowledged", told, None);
    figures.count("answered with 08007", errors.len(), Some(10 * harms));
    figures.count("acknowledged rows lost or doubled, connections lost", 0, Some(0));
    figures.time("the longest that nobody was acknowledged", ledger.stall(), None);
    figures.time("the longest transaction, outages included", ledger.longest(), None);
    figures.time("until everybody was answered after a recovery", stuck, Some(Duration::from_secs(5)));
}

#[test]
fn a_server_that_replays_its_log_keeps_its_clients_waiting_and_turns_nobody_away() {
    let server = server().setting("max_wal_size", "4GB").setting("checkpoint_timeout", "1h").start();
    let howdah = pooler(&server);
    let mut client = howdah.login(&login());
    client.sql("create table t as select n, repeat('x', 100) from generate_series(1, 1500000) n");
    let figures = Figures::new("server that replays its log");
    server.stop(StopMode::Immediate);
    let began = Instant::now();
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
        let newcomers = sized(100, 300);
        let waiting = (newcomers + 1).to_string();
        let mut newcomers: Vec<Raw> = (0..newcomers).map(|_| howdah.login(&login())).collect();
        figures.count("logged in meanwhile", newcomers.len(), None);
        for waiting in newcomers.iter_mut().chain([&mut client]) {
            waiting.send(query("select 1"));
        }
        eventually(LIMIT, || {
            howdah.admin_value("SHOW POOLS", &[("database", "db")], "cl_waiting") == waiting
        });
        if is_full() {
            figures.say("it replays, slowly");
            slow_down(startup, began + Duration::from_secs(15));
        }
        drop(thaw);
        start.join().expect("no panic");
        let ready = Instant::now();
        figures.time("starting up took", began.elapsed(), None);
        // It may have been told by a notice that it waits.
        assert!(client.answers(1).ends_with("T D C(SELECT 1) ZI"));
        figures.time("first answer after it was ready", ready.elapsed(), Some(Duration::from_secs(1)));
        for waiting in &mut newcomers {
            assert!(waiting.answers(1).ends_with("T D C(SELECT 1) ZI"));
        }
        figures.time("all answers after it was ready", ready.elapsed(), None);
        figures.count("errors", 0, Some(0));
    });
}

/// Lets a frozen process work for a hundredth of the time, until then.
fn slow_down(pid: u32, until: Instant) {
    while Instant::now() < until {
        for (signal, millis) in [(Signal::Continue, 2), (Signal::Stop, 200)] {
            os::send_signal(pid, signal).expect("a process of ours");
            std::thread::sleep(Duration::from_millis(millis));
        }
    }
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
