//! The main job on real input: a thousand clients of pgbench over twenty servers of a PostgreSQL that has room for
//! fifty, without one error and without one server too many.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use oracle::{LIMIT, TRANSACTION, USER, has_full_size, pooler_to};
use testkit::{Howdah, Pgbench, Postgres, PostgresOptions, Version, eventually};

const CLIENTS: usize = 1000;
const POOL_SIZE: usize = 20;

/// One server for all runs, with pgbench's tables; one run at a time.
fn server() -> (&'static Postgres, std::sync::MutexGuard<'static, ()>) {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let server = SERVER.get_or_init(|| {
        let server = PostgresOptions::new(Version::wanted()).max_connections(50).start();
        Pgbench::new(&server, server.port(), USER, USER).fill(1);
        server
    });
    (server, turn)
}

/// Runs pgbench while it counts the sessions of the server; returns the most there ever were.
#[track_caller]
fn run(server: &Postgres, howdah: &Howdah, arguments: &[&str]) -> usize {
    let over = AtomicBool::new(false);
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = server.session(USER);
            let sql = "select count(*) from pg_stat_activity \
                       where backend_type = 'client backend' and pid <> pg_backend_pid()";
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(session.value(sql).parse().expect("a count"), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        });
        let bench = Pgbench::new(server, howdah.port(), USER, TRANSACTION);
        let report = arguments.iter().fold(bench, |bench, argument| bench.argument(argument)).run();
        over.store(true, Ordering::Relaxed);
        assert!(report.success, "{arguments:?}: {}", report.complaints);
        let is_error =
            |line: &&str| line.contains("error") || line.contains("aborted") || line.contains("FATAL");
        assert_eq!(report.complaints.lines().find(is_error), None, "{arguments:?}");
        assert!(report.transactions > 0, "{arguments:?}: nothing was done");
    });
    most.into_inner()
}

#[track_caller]
fn check(workers: &str, arguments: &[&str]) {
    let (server, _turn) = server();
    let howdah = pooler_to(&server.connection(USER))
        .setting("default_pool_size", &POOL_SIZE.to_string())
        .setting("workers", workers)
        .start();
    let clients = format!("--client={CLIENTS}");
    let all = [&[clients.as_str(), "--jobs=2", "--no-vacuum"], arguments].concat();
    let most = run(server, &howdah, &all);
    assert!(most <= POOL_SIZE, "{most} sessions for a pool of {POOL_SIZE}");
    assert!(most > 1, "only {most} session was ever used");
    has_full_size(&howdah, TRANSACTION, POOL_SIZE);
    drop(howdah);
    eventually(LIMIT, || server.sessions_in(USER) == 0);
}

#[test]
fn thousand_clients_with_the_simple_protocol() {
    for workers in ["1", "2", "4"] {
        check(workers, &["--protocol=simple", "--select-only", "--transactions=10"]);
    }
}

#[test]
fn thousand_clients_with_the_extended_protocol() {
    check("2", &["--protocol=extended", "--select-only", "--transactions=10"]);
}

#[test]
fn thousand_clients_with_prepared_statements() {
    for workers in ["1", "4"] {
        check(workers, &["--protocol=prepared", "--select-only", "--transactions=20"]);
    }
}

/// Not with prepared statements: pgbench prepares while it waits for nothing else, and so would wait for servers
/// that its own clients hold in transactions.
#[test]
fn thousand_clients_that_write_in_transactions() {
    check("2", &["--protocol=extended", "--skip-some-updates", "--transactions=3"]);
}

#[test]
fn thousand_clients_that_connect_for_every_transaction() {
    check("2", &["--connect", "--select-only", "--transactions=3"]);
}
