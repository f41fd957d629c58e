//! A cluster of real servers behind the pooler: whoever of them is the primary, the clients go on.
#![allow(clippy::disallowed_methods)] // clients are threads

mod figures;
mod ledger;
mod stage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use figures::{Figures, sized};
use ledger::{Ledger, Style};
use stage::bare;
use testkit::message::query;
use testkit::{
    Event, Howdah, HowdahOptions, Login, Pgbench, Postgres, PostgresOptions, Raw, StopMode, Version,
    eventually,
};

/// How long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(30);

fn primary() -> Postgres {
    PostgresOptions::new(Version::wanted()).setting("wal_keep_size", "128MB").start()
}

/// A commit is acknowledged only when a standby has it.
fn make_synchronous(primary: &Postgres) {
    primary.set("synchronous_commit", "on");
    primary.set("synchronous_standby_names", "*");
    primary.reload();
}

fn entry(ports: &[u16], attrs: &str) -> String {
    let hosts: Vec<&str> = ports.iter().map(|_| "127.0.0.1").collect();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("host={} port={} dbname=postgres target_session_attrs={attrs}", hosts.join(","), ports.join(","))
}

fn pooler(ports: &[u16]) -> HowdahOptions {
    bare()
        .database("db", &entry(ports, "primary"))
        .user("postgres", "")
        .setting("pool_mode", "transaction")
        .setting("default_pool_size", "10")
        .setting("max_client_conn", "500")
        .setting("monitor_user", "postgres")
}

fn login() -> Login {
    Login::new("postgres", "db")
}

/// The value of a column of SHOW NODES for the node at this port.
fn node(howdah: &Howdah, port: u16, column: &str) -> String {
    howdah.admin_value("SHOW NODES", &[("port", &port.to_string())], column)
}

#[track_caller]
fn wait_for_node(howdah: &Howdah, port: u16, column: &str, wanted: &str) {
    eventually(LIMIT, || node(howdah, port, column) == wanted);
}

#[test]
fn new_servers_go_to_the_primary_and_follow_it() {
    let first = primary();
    let second = first.standby();
    // The standby stands first in the list.
    let howdah = pooler(&[second.port(), first.port()]).start();
    let mut client = howdah.login(&login());
    assert_eq!(client.value("select pg_is_in_recovery()"), "f");
    assert_eq!(client.value("show port"), first.port().to_string());
    assert_eq!(node(&howdah, first.port(), "role"), "primary");
    assert_eq!(node(&howdah, second.port(), "role"), "standby");
    assert_eq!(node(&howdah, first.port(), "timeline"), "1");
    assert_eq!(node(&howdah, first.port(), "connections"), "1");
    first.stop(StopMode::Fast);
    second.promote();
    // The same session, and it waits if it must.
    assert_eq!(client.value("select pg_is_in_recovery()"), "f");
    assert_eq!(client.value("show port"), second.port().to_string());
    wait_for_node(&howdah, second.port(), "timeline", "2");
    wait_for_node(&howdah, first.port(), "state", "down");
}

/// Clients enter rows while `harm` is done. Each row that was acknowledged is there once, and nobody's connection
/// was lost. Answers what errors there were.
fn check_ledger(
    howdah: &Howdah,
    clients: (usize, Style),
    (first, last): (&Postgres, &Postgres),
    harm: impl FnOnce(&Ledger),
) -> (Vec<String>, Ledger) {
    first.sql(ledger::TABLE);
    let (accounts, ledger) = Ledger::keep((&[howdah.port()], &login()), clients, harm);
    (ledger::check(accounts, &mut last.session("postgres")), ledger)
}

#[test]
fn death_of_the_primary_costs_only_the_transactions_in_flight() {
    for (style, name) in
        [(Style::Single, "kill -9, single statements"), (Style::Block, "kill -9, transactions")]
    {
        let figures = Figures::new(name);
        let first = primary();
        let second = first.standby();
        make_synchronous(&first);
        let howdah = pooler(&[first.port(), second.port()]).start();
        let mut promoted = Duration::ZERO;
        let clients = (sized(30, 200), style);
        let (errors, ledger) = check_ledger(&howdah, clients, (&first, &second), |_| {
            figures.go_on("before", Duration::from_secs(5));
            let start = Instant::now();
            first.kill();
            second.set("synchronous_standby_names", "");
            second.reload();
            second.promote();
            promoted = start.elapsed();
            figures.go_on("after", Duration::from_secs(5));
        });
        // Ten servers: no more can have been at work.
        assert!(errors.len() <= 10, "{errors:?}");
        assert!(errors.iter().all(|error| error == "E(08007) ZI"), "{errors:?}");
        figures.count("clients", clients.0, None);
        figures.count("answered with 08007", errors.len(), Some(10));
        figures.count("acknowledged rows lost or doubled, connections lost", 0, Some(0));
        figures.time("the cluster's own promotion", promoted, None);
        figures.time("writes back after", ledger.stall(), Some(promoted + Duration::from_millis(500)));
    }
}

#[test]
fn fast_shutdown_of_the_primary_costs_single_statements_nothing() {
    let first = primary();
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    let (errors, _) = check_ledger(&howdah, (30, Style::Single), (&first, &second), |_| {
        // It sends all it has before it ends. With synchronous replication it would let go of clients that wait for
        // a standby, with a warning and no answer: of those nobody can say more than 08007.
        first.stop(StopMode::Fast);
        second.promote();
    });
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn planned_switchover_is_not_noticed() {
    let first = primary();
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    let bench = Pgbench::new(&first, howdah.port(), "postgres", "db");
    bench.fill(1);
    let over = AtomicBool::new(false);
    let figures = Figures::new("planned switchover");
    let (clients, seconds) = sized((50, 12), (200, 30));
    let mut own = Duration::ZERO;
    let report = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let run = bench.argument(&format!("--client={clients}")).argument("--jobs=4");
            let run = run.argument(&format!("--time={seconds}")).run();
            over.store(true, Ordering::SeqCst);
            run
        });
        eventually(LIMIT, || {
            let counts = first.sql("select count(*) from pgbench_history");
            counts[0][0].as_deref().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0) > 1000
        });
        figures.go_on("before", Duration::from_secs(10));
        let start = Instant::now();
        // No new sessions; those there are end their transactions, and are closed by the pooler.
        first.stop(StopMode::Smart);
        second.promote();
        own = start.elapsed();
        run.join().expect("no panic")
    });
    assert!(report.success, "{}", report.complaints);
    let after: u64 = second.sql("select count(*) from pgbench_history")[0][0]
        .as_deref()
        .expect("a count")
        .parse()
        .expect("a number");
    assert_eq!(after, report.transactions, "every transaction is there once");
    assert!(over.load(Ordering::SeqCst));
    let stall = second.sql(ledger::PGBENCH_STALL)[0][0].as_deref().expect("a time").parse().expect("seconds");
    figures.count("clients of pgbench", clients, None);
    figures.count("transactions", after as usize, None);
    figures.count("client errors", report.complaints.matches("error").count(), Some(0));
    figures.time("the cluster's own, from the order to the new primary", own, None);
    figures.time("stall", Duration::from_secs_f64(stall), Some(own + Duration::from_secs(1)));
}

#[test]
fn host_that_accepts_and_never_answers_keeps_nobody_waiting() {
    let first = primary();
    let hole = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = hole.local_addr().expect("bound").port();
    let figures = Figures::new("host that accepts and never answers");
    let howdah = pooler(&[port, first.port()]).setting("server_connect_timeout", "60").start();
    let clients = sized(1, 200);
    let longest = wave(&howdah, clients, first.port());
    figures.count("clients at once", clients, None);
    figures.time("the longest from login to answer, at first", longest, Some(Duration::from_secs(3)));
    // Not how fast it is, but that no limit of a connection attempt was waited for.
    assert!(longest < Duration::from_secs(30));
    wait_for_node(&howdah, port, "state", "down");
    let longest = wave(&howdah, clients, first.port());
    figures.time("the longest, once it is known", longest, Some(Duration::from_secs(1)));
    howdah.console().sql("RECONNECT");
    let longest = wave(&howdah, clients, first.port());
    figures.time("the longest, over new servers", longest, Some(Duration::from_secs(1)));
    let mut others: Vec<Raw> = (0..10).map(|_| howdah.login(&login())).collect();
    for other in &mut others {
        other.sql("begin");
    }
    assert!(node(&howdah, first.port(), "connections") == "10");
    assert_eq!(node(&howdah, port, "connections"), "0");
}

/// Clients that log in and ask, all at once: the longest that one of them took.
fn wave(howdah: &Howdah, clients: usize, port: u16) -> Duration {
    std::thread::scope(|scope| {
        let one = || {
            let start = Instant::now();
            assert_eq!(howdah.login(&login()).value("show port"), port.to_string());
            start.elapsed()
        };
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).max().unwrap_or_default()
    })
}

#[test]
fn rows_that_are_told_while_the_primary_is_frozen_and_after_it_are_kept() {
    let first = primary();
    let second = first.standby();
    make_synchronous(&first);
    let figures = Figures::new("frozen primary");
    let howdah = pooler(&[first.port(), second.port()]).start();
    let clients = (sized(30, 100), Style::Block);
    let (errors, ledger) = check_ledger(&howdah, clients, (&first, &second), |ledger| {
        first.freeze_all();
        let frozen = Instant::now();
        wait_for_node(&howdah, first.port(), "state", "down");
        figures.time("the frozen one is out after", frozen.elapsed(), Some(Duration::from_secs(3)));
        second.set("synchronous_standby_names", "");
        second.reload();
        second.promote();
        figures.time("the other is promoted after", frozen.elapsed(), None);
        ledger.wait_for_more(300);
        figures.go_on("frozen", Duration::from_secs(40).saturating_sub(frozen.elapsed()));
        // From now on it would acknowledge by itself what nobody keeps; and what it had in hand it commits.
        first.set("synchronous_standby_names", "");
        first.thaw();
        first.reload();
        wait_for_node(&howdah, first.port(), "role", "stale primary");
        ledger.wait_for_more(300);
        figures.go_on("thawed", Duration::from_secs(10));
        assert_eq!(node(&howdah, first.port(), "connections"), "0");
    });
    assert!(errors.len() <= 10, "{errors:?}");
    assert!(errors.iter().all(|error| error == "E(08007) ZI"), "{errors:?}");
    figures.count("clients", clients.0, None);
    figures.count("answered with 08007", errors.len(), Some(10));
    figures.count("acknowledged rows lost", 0, Some(0));
    figures.time("stall", ledger.stall(), None);
    let rows = |server: &Postgres| -> usize {
        let count = server.session("postgres").value("select count(*) from entries");
        count.parse().expect("a count")
    };
    figures.count(
        "rows of the new timeline that the old one never saw",
        rows(&second).saturating_sub(rows(&first)),
        None,
    );
}

#[test]
fn old_primary_that_comes_back_gets_no_write() {
    let first = primary();
    first.sql("create table t (n int)");
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    let mut client = howdah.login(&login());
    client.sql("select 1");
    first.kill();
    second.promote();
    assert_eq!(client.value("show port"), second.port().to_string());
    // It knows nothing of what has happened, and takes writes.
    first.start_again();
    wait_for_node(&howdah, first.port(), "role", "stale primary");
    let mut clients: Vec<Raw> = (0..10).map(|_| howdah.login(&login())).collect();
    for client in &mut clients {
        client.sql("begin");
    }
    for client in &mut clients {
        client.sql("insert into t values (1)");
        client.sql("commit");
    }
    assert_eq!(second.sql("select count(*) from t")[0][0].as_deref(), Some("10"));
    assert_eq!(first.sql("select count(*) from t")[0][0].as_deref(), Some("0"));
    assert_eq!(node(&howdah, first.port(), "connections"), "0");
}

#[test]
fn frozen_primary_is_cut_off_and_its_late_answer_reaches_nobody() {
    let first = primary();
    first.sql("create table t (n int)");
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    let mut client = howdah.login(&login());
    client.send(query("select pg_sleep(0.3), 'late'"));
    eventually(LIMIT, || {
        first.sql("select count(*) from pg_stat_activity where query like '%late%' and state = 'active'")[0]
            [0]
        .as_deref()
            >= Some("2")
    });
    first.freeze_all();
    // The kernel still takes what is sent to it.
    assert_eq!(client.answers(1), "E(08007) ZI");
    second.promote();
    client.sql("insert into t values (1)");
    first.thaw();
    wait_for_node(&howdah, first.port(), "role", "stale primary");
    assert_eq!(client.value("select count(*) from t"), "1");
    assert_eq!(client.value("show port"), second.port().to_string());
}

/// The payload of the next notification within a moment, if one comes.
fn heard(listener: &mut Raw) -> Option<String> {
    loop {
        match listener.next(Duration::from_millis(20)) {
            Event::Message(message) if message.tag == b'A' => {
                let text = String::from_utf8_lossy(&message.body[4..]).into_owned();
                return text.split('\0').nth(1).map(str::to_owned);
            }
            // Warnings that notifications may have been lost.
            Event::Message(message) => assert_eq!(message.tag, b'N'),
            Event::Silence => return None,
            Event::End(end) => panic!("its connection has ended: {end:?}"),
        }
    }
}

/// Waits until a listener hears what is notified, and nothing else.
#[track_caller]
fn wait_until_heard(howdah: &Howdah, listener: &mut Raw, payload: &str) {
    let mut other = howdah.login(&login());
    eventually(LIMIT, || {
        other.sql(&format!("notify news, '{payload}'"));
        let heard = heard(listener);
        assert!(heard.is_none() || heard.as_deref() == Some(payload), "{heard:?}");
        heard.is_some()
    });
    while heard(listener).is_some() {}
}

#[test]
fn a_listener_leaves_a_frozen_primary_and_hears_the_true_one() {
    let first = primary();
    let second = first.standby();
    let howdah = pooler(&[second.port(), first.port()]).start();
    let mut listener = howdah.login(&login());
    listener.sql("listen news");
    wait_until_heard(&howdah, &mut listener, "before");
    let at = || howdah.admin_value("SHOW LISTENERS", &[], "port");
    assert_eq!(at(), first.port().to_string());
    first.freeze_all();
    wait_for_node(&howdah, first.port(), "state", "down");
    second.promote();
    wait_until_heard(&howdah, &mut listener, "after");
    assert_eq!(at(), second.port().to_string());
    first.thaw();
    wait_for_node(&howdah, first.port(), "role", "stale primary");
    // What it says now is for nobody.
    first.sql("notify news, 'of the past'");
    wait_until_heard(&howdah, &mut listener, "at last");
}

#[test]
fn a_listener_lets_a_server_shut_down_in_order() {
    let first = primary();
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    let mut listener = howdah.login(&login());
    listener.sql("listen news");
    // It would wait for any session.
    first.stop(StopMode::Smart);
    second.promote();
    wait_until_heard(&howdah, &mut listener, "after");
}

#[test]
fn clients_wait_for_a_primary_and_are_told_in_the_end() {
    let first = primary();
    let howdah =
        pooler(&[first.port()]).setting("query_wait_timeout", "1").setting("failover_timeout", "4").start();
    let mut client = howdah.login(&login());
    client.sql("select 1");
    first.stop(StopMode::Fast);
    wait_for_node(&howdah, first.port(), "state", "down");
    // New logins are answered, and wait as all others do.
    let mut newcomer = howdah.login(&login());
    newcomer.send(query("select 1"));
    assert_eq!(newcomer.answers(1), "E(57P03) EOF");
    client.send(query("select 1"));
    first.start_again();
    assert_eq!(client.answers(1), "T D C(SELECT 1) ZI");
}
