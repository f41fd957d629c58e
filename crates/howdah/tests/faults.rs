//! Servers that die, networks that cut, descriptors and disks that run out: what was told stays true, the pool
//! comes back to its full size, and who was not concerned notices nothing.
#![allow(clippy::disallowed_methods)] // clients are threads

mod stage;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stage::{LIMIT, PASSWORD, bare, holder, login, pooler, server_for, servers_of, wait_for_pool};
use testkit::message::{self, query};
use testkit::{
    Chaos, Direction, Faults, Howdah, Login, Postgres, PostgresOptions, Raw, Refusal, Signal, StopMode,
    Version, eventually, os,
};

/// A server of one test's own, whose commits survive the death of its processes, and a pooler in front of it.
fn own_server() -> (Postgres, Howdah) {
    let server = PostgresOptions::new(Version::wanted()).setting("synchronous_commit", "on").start();
    let howdah = bare()
        .database("postgres", &server.connection("postgres"))
        .user("postgres", "")
        .setting("default_pool_size", "4")
        .setting("server_login_retry", "0.2")
        .start();
    (server, howdah)
}

/// One turn of a client: a committed row, or how it ended.
fn entry(raw: &mut Raw, who: usize, turn: usize) -> Result<(), Option<Refusal>> {
    let sql = format!("begin; insert into entries values ({who}, {turn}); commit");
    raw.try_send(query(&sql)).map_err(|_| None)?;
    let answer = raw.answers(1);
    if answer.ends_with("C(COMMIT) ZI") { Ok(()) } else { Err(None) }
}

/// Tells the clients to go, also when a test fails while they are at it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Clients enter rows, and come back when they are thrown out, while `harm` is done. Then every row that was
/// acknowledged is there once, and none that was not asked for.
fn check_ledger(server: &Postgres, howdah: &Howdah, harm: impl FnOnce(&AtomicUsize)) {
    server.sql("create table entries (who int, turn int)");
    let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let login = Login::new("postgres", "postgres");
    let client = |who: usize| {
        let (mut told, mut doubtful) = (Vec::new(), Vec::new());
        let mut turn = 0;
        while !over.load(Ordering::SeqCst) {
            let Ok(mut raw) = Raw::try_login(howdah.port(), &login) else { continue };
            while !over.load(Ordering::SeqCst) {
                turn += 1;
                match entry(&mut raw, who, turn) {
                    Ok(()) => told.push(turn),
                    Err(_) => {
                        doubtful.push(turn);
                        break;
                    }
                }
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
        (told, doubtful)
    };
    let outcomes: Vec<(Vec<usize>, Vec<usize>)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|who| scope.spawn(move || client(who))).collect();
        let going = Over(&over);
        eventually(LIMIT, || done.load(Ordering::SeqCst) > 100);
        harm(&done);
        let before = done.load(Ordering::SeqCst);
        eventually(LIMIT, || done.load(Ordering::SeqCst) > before + 100);
        drop(going);
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    let mut session = server.session("postgres");
    for (who, (told, doubtful)) in outcomes.iter().enumerate() {
        let rows = session.sql(&format!("select turn from entries where who = {who} order by turn"));
        let kept: Vec<usize> =
            rows.iter().map(|row| row[0].as_deref().expect("a turn").parse().expect("a number")).collect();
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "client {who}: doubled");
        for turn in told {
            assert!(
                kept.binary_search(turn).is_ok(),
                "client {who}: turn {turn} was acknowledged and is lost"
            );
        }
        for turn in kept.iter().filter(|turn| told.binary_search(turn).is_err()) {
            assert!(doubtful.contains(turn), "client {who}: turn {turn} was refused and is there");
        }
    }
}

/// The pool has its full size again: so many clients are served at once.
fn check_full_size(howdah: &Howdah, user: &str, database: &str, size: usize) {
    let mut held: Vec<Raw> = (0..size).map(|_| howdah.login(&Login::new(user, database))).collect();
    for raw in &mut held {
        raw.sql("begin");
    }
    wait_for_pool(howdah, database, &[("sv_active", &size.to_string()), ("cl_waiting", "0")]);
    for raw in &mut held {
        raw.sql("commit");
    }
    let size = size.to_string();
    wait_for_pool(howdah, database, &[("sv_idle", &size), ("sv_active", "0"), ("sv_login", "0")]);
}

#[test]
fn death_of_a_backend_loses_and_doubles_nothing() {
    let (server, howdah) = own_server();
    let mut idle = howdah.session("postgres", "postgres");
    assert_eq!(idle.value("select 1"), "1");
    check_ledger(&server, &howdah, |done| {
        for _ in 0..3 {
            let sql = "select pid from pg_stat_activity where backend_type = 'client backend' \
                and query like '%entries%' and pid <> pg_backend_pid() limit 1";
            let pid = server.session("postgres").value(sql).parse().expect("a process");
            let recoveries = || server.log().matches("ready to accept connections").count();
            let earlier = recoveries();
            os::send_signal(pid, Signal::Kill).expect("root, or the server's own user");
            // All sessions of the server go with it, and come again after its recovery.
            eventually(LIMIT, || recoveries() > earlier);
            let before = done.load(Ordering::SeqCst);
            eventually(LIMIT, || done.load(Ordering::SeqCst) > before + 50);
        }
    });
    check_full_size(&howdah, "postgres", "postgres", 4);
    // It was between transactions all the time.
    assert_eq!(idle.value("select 2"), "2");
}

#[test]
fn restart_of_the_server_loses_and_doubles_nothing() {
    let (server, howdah) = own_server();
    let mut idle = howdah.session("postgres", "postgres");
    check_ledger(&server, &howdah, |done| {
        for mode in [StopMode::Fast, StopMode::Immediate] {
            server.restart(mode);
            let before = done.load(Ordering::SeqCst);
            eventually(LIMIT, || done.load(Ordering::SeqCst) > before + 50);
        }
    });
    check_full_size(&howdah, "postgres", "postgres", 4);
    assert_eq!(idle.value("select 2"), "2");
}

#[test]
fn client_that_waits_while_the_server_is_down_is_served_when_it_is_back() {
    let (server, howdah) = own_server();
    let mut idle = howdah.session("postgres", "postgres");
    idle.sql("select 1");
    server.stop(StopMode::Fast);
    idle.send(query("select 'patience'"));
    idle.expect_silence(Duration::from_millis(300));
    let mut late = howdah.session("postgres", "postgres");
    late.send(query("select 'patience'"));
    server.start_again();
    for raw in [&mut idle, &mut late] {
        assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI");
    }
}

#[test]
fn frozen_server_is_waited_for() {
    let (server, howdah) = own_server();
    let mut raw = howdah.session("postgres", "postgres");
    raw.sql("select 1");
    server.freeze_all();
    raw.send(query("select 2"));
    let mut console = howdah.console();
    raw.expect_silence(Duration::from_millis(300));
    assert_eq!(console.table("SHOW STATE").len(), 3);
    server.thaw();
    assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn terminated_backends_cost_their_clients_one_error_and_the_pool_nothing() {
    let name = "faults_terminated";
    let howdah = pooler(name).setting("default_pool_size", "3").start();
    let mut idle = howdah.session(name, name);
    idle.sql("select 1");
    let mut busy = holder(&howdah, name);
    let mut running = howdah.session(name, name);
    running.send(query("select pg_sleep(60)"));
    wait_for_pool(&howdah, name, &[("sv_active", "2")]);
    let server = Postgres::shared_wanted();
    server.sql(&format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"));
    for raw in [&mut busy, &mut running] {
        let told = raw.expect_closed();
        assert_eq!(told.matches("E(").count(), 1, "{told}");
        assert!(told.contains("E(57P01)"), "{told}");
    }
    assert_eq!(idle.value("select 2"), "2");
    check_full_size(&howdah, name, name, 3);
    assert_eq!(servers_of(name), 3);
}

/// Clients whose answers carry their own names.
fn identify(howdah: &Howdah, name: &str, clients: usize, turns: usize) {
    std::thread::scope(|scope| {
        for who in 0..clients {
            scope.spawn(move || {
                let mut raw = howdah.session(name, name);
                for turn in 0..turns {
                    check_identity(&mut raw, &format!("{who}-{turn}"));
                }
            });
        }
    });
}

fn check_identity(raw: &mut Raw, text: &str) {
    assert_eq!(raw.value(&format!("select '{text}'")), text);
    raw.send(message::all(&[
        message::parse("s", "select $1::text", &[]),
        message::bind("", "s", &[Some(text)]),
        message::execute("", 0),
        message::close_statement("s"),
        message::sync(),
    ]));
    let rows = message::rows(&raw.until_ready());
    assert_eq!(rows, [[Some(text.to_owned())]]);
}

fn behind_chaos(name: &str) -> (Chaos, Howdah) {
    let chaos = Chaos::start(server_for(name).address());
    let howdah = bare()
        .database(name, &chaos.connection(name))
        .user(name, PASSWORD)
        .setting("default_pool_size", "3")
        .setting("server_login_retry", "0.1")
        .setting("server_connect_timeout", "2")
        .start();
    (chaos, howdah)
}

const BYTE_BY_BYTE: Faults = Faults {
    latency: Duration::ZERO,
    piece_max: Some(1),
    swallow: false,
    hold: false,
    cut_after: None,
    cut_by_reset: false,
};

#[test]
fn single_bytes_from_servers_make_whole_answers() {
    let (chaos, howdah) = behind_chaos("faults_bytes_server");
    chaos.set_both(BYTE_BY_BYTE);
    identify(&howdah, "faults_bytes_server", 6, 10);
}

#[test]
fn single_bytes_from_clients_make_whole_queries() {
    let name = "faults_bytes_client";
    let howdah = pooler(name).setting("default_pool_size", "2").start();
    let chaos = Chaos::start(([127, 0, 0, 1], howdah.port()).into());
    chaos.set_both(BYTE_BY_BYTE);
    std::thread::scope(|scope| {
        for who in 0..6 {
            let port = chaos.port();
            scope.spawn(move || {
                let mut raw = Raw::login(port, &login(name));
                for turn in 0..10 {
                    check_identity(&mut raw, &format!("{who}-{turn}"));
                }
            });
        }
    });
    wait_for_pool(&howdah, name, &[("sv_active", "0"), ("cl_waiting", "0")]);
}

/// Servers are cut at every place of a conversation, from the login to the middle of a row.
fn check_cuts(name: &str, by_reset: bool) {
    let (chaos, howdah) = behind_chaos(name);
    for cut_after in [1, 5, 9, 40, 200, 330, 420, 440, 470, 500, 550, 600, 800, 1500, 3000] {
        let cut = Faults { cut_after: Some(cut_after), cut_by_reset: by_reset, ..Faults::default() };
        chaos.set(Direction::ToClient, cut);
        // Old servers have passed the place already: they go.
        chaos.close_all();
        let mut console = howdah.console();
        let mut raw = Raw::connect(howdah.port());
        login(name).send_startup(&mut raw);
        raw.send(query("select 'x', repeat('y', 1000)"));
        raw.next(Duration::from_millis(60));
        chaos.heal();
        assert_eq!(console.table("SHOW STATE").len(), 3);
        drop(raw);
        let mut next = howdah.session(name, name);
        check_identity_until_served(&mut next, &howdah, name);
    }
    chaos.close_all();
    wait_for_pool(&howdah, name, &[("sv_idle", "0"), ("sv_active", "0")]);
    check_full_size(&howdah, name, name, 3);
}

/// A server that was cut while it was idle may be found out by its next client; that one may try again.
fn check_identity_until_served(raw: &mut Raw, howdah: &Howdah, name: &str) {
    let start = Instant::now();
    loop {
        match raw.try_sql("select 'mine'") {
            Ok(rows) => return assert_eq!(rows, [[Some("mine".to_owned())]]),
            Err(refusal) => assert!(start.elapsed() < LIMIT, "{refusal:?}"),
        }
        *raw = howdah.session(name, name);
    }
}

#[test]
fn servers_cut_at_any_byte_are_replaced() {
    check_cuts("faults_cut", false);
}

#[test]
fn servers_reset_at_any_byte_are_replaced() {
    check_cuts("faults_reset", true);
}

#[test]
fn servers_that_end_while_idle_cost_nobody_a_query() {
    let name = "faults_idle_end";
    let (chaos, howdah) = behind_chaos(name);
    let mut raw = howdah.session(name, name);
    for turn in 0..10 {
        check_identity(&mut raw, &turn.to_string());
        if turn % 2 == 0 {
            chaos.close_all()
        } else {
            chaos.reset_all()
        }
        // Once the pooler knows, nobody is given a dead server.
        wait_for_pool(&howdah, name, &[("sv_idle", "0"), ("sv_active", "0")]);
    }
    check_full_size(&howdah, name, name, 3);
}

#[test]
fn query_into_a_black_hole_ends_by_query_timeout() {
    let name = "faults_black_hole";
    let chaos = Chaos::start(server_for(name).address());
    let howdah = bare()
        .database(name, &chaos.connection(name))
        .user(name, PASSWORD)
        .setting("query_timeout", "0.7")
        .setting("default_pool_size", "1")
        .start();
    let mut raw = howdah.session(name, name);
    raw.sql("select 1");
    chaos.set_both(Faults { swallow: true, ..Faults::default() });
    raw.send(query("select 2"));
    assert_eq!(raw.expect_closed(), "E(57014)");
    chaos.heal();
    assert_eq!(howdah.session(name, name).value("select 3"), "3");
}

/// Clients that leave in every way, at every time.
fn check_leaving(name: &str, workers: &str) {
    let howdah = pooler(name)
        .setting("workers", workers)
        .setting("default_pool_size", "3")
        .setting("max_client_conn", "500")
        .start();
    check_full_size(&howdah, name, name, 3);
    let descriptors = howdah.open_files();
    std::thread::scope(|scope| {
        for who in 0..6_usize {
            let howdah = &howdah;
            scope.spawn(move || {
                for turn in 0..40 {
                    let mut raw = Raw::connect(howdah.port());
                    login(name).send_startup(&mut raw);
                    if (who + turn) % 7 == 0 {
                        raw.reset();
                        continue;
                    }
                    raw.answers(1);
                    let sent =
                        [query("begin"), query("select repeat('x', 100000)"), query("select pg_sleep(0.01)")];
                    for sql in &sent[..(turn % 4).min(3)] {
                        raw.send(sql);
                    }
                    match (who + turn) % 5 {
                        0 => raw.reset(),
                        1 => drop(raw),
                        2 => raw.close(),
                        3 => {
                            raw.half_close();
                            raw.expect_closed();
                        }
                        _ => {
                            // Half a message is all that comes.
                            let _ = raw.try_send(&query("select 1")[..7]);
                            raw.reset();
                        }
                    }
                }
            });
        }
        identify(&howdah, name, 3, 60);
    });
    wait_for_pool(&howdah, name, &[("cl_active", "0"), ("cl_waiting", "0"), ("sv_active", "0")]);
    check_full_size(&howdah, name, name, 3);
    eventually(LIMIT, || howdah.open_files() <= descriptors + 1);
    eventually(LIMIT, || servers_of(name) == 3);
}

#[test]
fn clients_that_leave_in_every_way_leave_nothing_with_one_worker() {
    check_leaving("faults_leaving_1", "1");
}

#[test]
fn clients_that_leave_in_every_way_leave_nothing_with_four_workers() {
    check_leaving("faults_leaving_4", "4");
}

#[test]
fn running_out_of_descriptors_ends_nobody() {
    let name = "faults_descriptors";
    let howdah = pooler(name)
        .setting("max_client_conn", "5000")
        .setting("workers", "2")
        .setting("tcp_defer_accept", "0")
        .open_files(100)
        .start();
    let mut inside = howdah.session(name, name);
    let mut console = howdah.console();
    assert_eq!(inside.value("select 1"), "1");
    // More than it may open, and fewer than the system holds back for it.
    let mut crowd: Vec<Raw> = (0..180).map(|_| Raw::connect(howdah.port())).collect();
    for raw in &mut crowd {
        // Who is turned away may have been closed already.
        let _ = raw.try_send(message::startup((3, 0), &[("user", name), ("database", name)]));
    }
    eventually(LIMIT, || howdah.open_files() >= 90);
    for _ in 0..20 {
        assert_eq!(inside.value("select 1"), "1");
        assert_eq!(console.table("SHOW STATE").len(), 3);
    }
    let lines =
        howdah.log().lines().filter(|line| line.contains("accept") || line.contains("Too many open")).count();
    assert!(lines < 50, "{lines} lines about it");
    drop(crowd);
    let start = Instant::now();
    eventually(LIMIT, || Raw::try_login(howdah.port(), &login(name)).is_ok());
    assert!(start.elapsed() < Duration::from_secs(5));
    identify(&howdah, name, 10, 3);
}

#[test]
fn full_disk_for_the_log_ends_nobody() {
    let name = "faults_disk";
    let howdah = pooler(name).argument("-q").setting("logfile", "/dev/full").setting("verbose", "2").start();
    identify(&howdah, name, 10, 5);
    for _ in 0..50 {
        howdah.session(name, name).sql("select 1");
    }
    assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
    identify(&howdah, name, 5, 3);
}

/// Whether every thread of a process has taken its SIGSTOP.
fn is_stopped(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it is there");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The name before it may have blanks and parentheses.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    })
}

#[test]
fn stopped_pooler_goes_on_where_it_stood() {
    let name = "faults_stopped";
    let howdah = pooler(name).setting("query_wait_timeout", "60").setting("default_pool_size", "1").start();
    let (mut held, mut waiting) = (holder(&howdah, name), howdah.session(name, name));
    waiting.send(query("select 'later'"));
    wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
    howdah.signal(Signal::Stop);
    eventually(LIMIT, || is_stopped(howdah.pid()));
    held.send(query("commit"));
    held.expect_silence(Duration::from_millis(300));
    howdah.signal(Signal::Continue);
    assert_eq!(held.answers(1), "C(COMMIT) ZI");
    assert_eq!(waiting.answers(1), "T D C(SELECT 1) ZI");
}
