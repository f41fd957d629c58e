//! Either side goes away: what the other hears of it, and what the next client finds.
//!
//! Rows P17, P22 to P24, P51 to P53 and P58 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use std::sync::atomic::{AtomicU32, Ordering};

use oracle::{
    LIMIT, SESSION, TRANSACTION, USER, fresh_database, has_full_size, pooler, pooler_to, until_waiting,
};
use testkit::message::{self, bind, describe_statement, execute, flush, parse, query, sync};
use testkit::{Event, FakeServer, Howdah, Postgres, Raw, Version, eventually, reply};

/// The ways in which a client may leave.
const LEAVINGS: [fn(Raw); 3] = [Raw::close, Raw::reset, drop::<Raw>];

/// A pooler in front of a database with an empty table `t`, with so many servers.
fn pooler_with_table(name: &str, size: usize) -> (&'static Postgres, Howdah) {
    let server = fresh_database(Version::wanted(), name);
    server.session(name).sql("create table t (n int)");
    let options = pooler_to(&server.connection(name));
    (server, options.setting("default_pool_size", &size.to_string()).start())
}

/// Ends the session of this backend and waits until it is gone.
fn terminate(server: &Postgres, pid: &str) {
    server.sql(&format!("select pg_terminate_backend({pid})"));
    let mut session = server.session(USER);
    eventually(LIMIT, || {
        session.value(&format!("select count(*) from pg_stat_activity where pid = {pid}")) == "0"
    });
}

/// The next client finds a clean session: no transaction, no row, no temporary table, no lock.
#[track_caller]
fn finds_nothing(howdah: &Howdah, rows: &str) {
    let mut next = howdah.session(USER, TRANSACTION);
    assert_eq!(next.ask(query("begin")), "C(BEGIN) ZT", "not in a transaction, so no notice");
    assert_eq!(next.value("select count(*) from t"), rows);
    let locks = "select count(*) from pg_locks where pid = pg_backend_pid() and locktype in ('advisory', 'transactionid')";
    assert_eq!(next.value(locks), "0");
    assert_eq!(next.ask(query("commit")), "C(COMMIT) ZI");
    next.close();
}

// P17

#[test]
fn server_that_died_idle_is_replaced_unnoticed() {
    let server = Postgres::shared(Version::wanted());
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, TRANSACTION);
    for _ in 0..10 {
        let pid = client.value("select pg_backend_pid()");
        terminate(server, &pid);
        client.send(message::all(&[query("select 1"), query("select 2")]));
        assert_eq!(client.answers(2), "T D C(SELECT 1) ZI T D C(SELECT 1) ZI");
    }
}

#[test]
fn idle_servers_that_die_together_are_all_replaced() {
    let (server, howdah) = pooler_with_table("ends_together", 5);
    for _ in 0..5 {
        has_full_size(&howdah, TRANSACTION, 5);
        let others = "datname = 'ends_together' and pid <> pg_backend_pid()";
        server.sql(&format!("select pg_terminate_backend(pid) from pg_stat_activity where {others}"));
        let mut session = server.session(USER);
        let left = format!("select count(*) from pg_stat_activity where {others}");
        eventually(LIMIT, || session.value(&left) == "0");
    }
    has_full_size(&howdah, TRANSACTION, 5);
}

// P22

#[test]
fn client_gone_inside_a_transaction_leaves_nothing() {
    let (server, howdah) = pooler_with_table("ends_transaction", 1);
    for leave in LEAVINGS {
        for text in [
            "begin; insert into t values (1)",
            "begin; insert into t values (1); select 1/0",
            "begin; select pg_advisory_xact_lock(7); create temp table mine (n int)",
            "insert into t values (1); begin; declare c cursor for select 1",
        ] {
            let mut client = howdah.session(USER, TRANSACTION);
            client.send(query(text));
            client.until_ready();
            let mut waiting = howdah.session(USER, TRANSACTION);
            waiting.send(query("delete from t"));
            until_waiting(&howdah, TRANSACTION, 1);
            leave(client);
            assert!(waiting.answers(1).starts_with("C(DELETE"), "served after {text}");
            finds_nothing(&howdah, "0");
        }
    }
    eventually(LIMIT, || server.sessions_in("ends_transaction") == 1);
}

#[test]
fn client_gone_in_session_mode_is_cleaned_up_after() {
    let howdah = pooler(Version::wanted()).start();
    for leave in LEAVINGS {
        let mut client = howdah.session(USER, SESSION);
        let pid = client.value("select pg_backend_pid()");
        for text in [
            "set work_mem = '1234kB'",
            "create temp table mine (n int)",
            "prepare mine as select 1",
            "listen mine",
            "select pg_advisory_lock(8)",
            "declare mine cursor with hold for select 1",
            "set role pg_monitor",
        ] {
            client.sql(text);
        }
        leave(client);
        let mut next = howdah.session(USER, SESSION);
        assert_eq!(next.value("select pg_backend_pid()"), pid, "a clean goodbye costs no server");
        assert_ne!(next.value("show work_mem"), "1234kB");
        assert_eq!(next.value("select to_regclass('mine') is null"), "t");
        assert_eq!(next.value("select count(*) from pg_listening_channels()"), "0");
        assert_eq!(next.value("select count(*) from pg_prepared_statements"), "0");
        assert_eq!(next.value("select count(*) from pg_cursors where name = 'mine'"), "0");
        let locks = "select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'";
        assert_eq!(next.value(locks), "0");
        assert_eq!(next.value("select current_user"), USER);
        next.close();
    }
}

// P23

#[test]
fn client_gone_in_the_middle_of_a_result_frees_its_server() {
    let (server, howdah) = pooler_with_table("ends_result", 1);
    // 3 GB, if anybody read it.
    let large = "select repeat('x', 100000) from generate_series(1, 30000)";
    let active = "select count(*) from pg_stat_activity where datname = 'ends_result' and state = 'active' \
                  and query like '%pg_sleep%'";
    let mut session = server.session(USER);
    for leave in LEAVINGS {
        let mut client = howdah.session(USER, TRANSACTION);
        client.send(query(large));
        assert_eq!(client.recv().letter(), "T");
        assert_eq!(client.recv().letter(), "D");
        leave(client);
        finds_nothing(&howdah, "0");
        let mut client = howdah.session(USER, TRANSACTION);
        client.send(query("select pg_sleep(60)"));
        eventually(LIMIT, || session.value(active) == "1");
        leave(client);
        finds_nothing(&howdah, "0");
        eventually(LIMIT, || session.value(active) == "0");
    }
    eventually(LIMIT, || server.sessions_in("ends_result") == 1);
}

// P24

#[test]
fn client_gone_after_half_a_batch_leaves_no_server_in_between() {
    let (server, howdah) = pooler_with_table("ends_batch", 1);
    let insert = parse("", "insert into t values (1)", &[]);
    let run = message::all(&[insert.clone(), bind("", "", &[]), execute("", 0)]);
    let halves = [
        insert.clone(),
        message::all(&[insert.clone(), describe_statement("")]),
        message::all(&[insert.clone(), flush()]),
        run.clone(),
        message::all(&[run.clone(), flush()]),
        message::all(&[run.clone(), run.clone(), bind("", "nothing", &[])]),
        message::all(&[run.clone(), sync(), run.clone()]),
        run[..run.len() - 3].to_vec(),
        message::all(&[query("begin; insert into t values (2)"), run]),
    ];
    let mut rows = 0;
    for leave in LEAVINGS {
        for half in &halves {
            let mut client = howdah.session(USER, TRANSACTION);
            client.send(half);
            leave(client);
            let mut next = howdah.session(USER, TRANSACTION);
            assert_eq!(next.ask(query("begin")), "C(BEGIN) ZT");
            assert_eq!(next.ask(query("commit")), "C(COMMIT) ZI");
            let count: usize = next.value("select count(*) from t").parse().expect("a count");
            // What a Sync has committed may be there if it was read before its client had gone.
            assert!(count <= rows + 1, "{count} rows, {rows} before");
            rows = count;
        }
    }
    assert!(rows <= 3, "only the one batch that has its Sync may commit: {rows} rows");
    eventually(LIMIT, || server.sessions_in("ends_batch") == 1);
    let mut session = server.session(USER);
    let idle = "select count(*) from pg_stat_activity where datname = 'ends_batch' and state <> 'idle'";
    eventually(LIMIT, || session.value(idle) == "0");
}

// P51

/// Reads to the end: the letters, which must have one error, the last of them, and no made-up answer.
#[track_caller]
fn ends_with_one_error(client: &mut Raw) -> String {
    let heard = client.expect_closed();
    assert_eq!(heard.matches("E(").count(), 1, "{heard}");
    assert!(heard.ends_with(')') && !heard.contains('Z'), "{heard}");
    heard
}

#[test]
fn server_that_is_ended_tells_its_client_once() {
    let server = Postgres::shared(Version::wanted());
    let howdah = pooler(Version::wanted()).start();
    for text in ["begin; select 1", "begin; select 1/0"] {
        let mut client = howdah.session(USER, TRANSACTION);
        client.send(query("begin"));
        client.until_ready();
        let pid = client.value("select pg_backend_pid()");
        client.send(query(text));
        client.until_ready();
        terminate(server, &pid);
        assert_eq!(ends_with_one_error(&mut client), "E(57P01)");
    }
    let mut client = howdah.session(USER, TRANSACTION);
    let pid = client.value("select pg_backend_pid()");
    client.send(query("select pg_sleep(60)"));
    eventually(LIMIT, || howdah.admin_value("SHOW POOLS", &[("database", TRANSACTION)], "sv_active") == "1");
    terminate(server, &pid);
    let heard = ends_with_one_error(&mut client);
    assert!(heard == "T E(57P01)" || heard == "E(57P01)", "{heard}");
    has_full_size(&howdah, TRANSACTION, 1);
}

#[test]
fn server_that_vanishes_is_reported_once_and_in_its_place() {
    // The first connection is cut somewhere in its answer; the second one is sound.
    let whole = reply::one_value("1");
    for cut in 0..whole.len() {
        let sent = whole[..cut].to_vec();
        let server = FakeServer::start(move |session| {
            session.welcome()?;
            loop {
                if session.recv()?.tag == b'Q' {
                    if session.number == 1 {
                        session.send(&sent)?;
                        return Ok(());
                    }
                    session.send(&reply::one_value("1"))?;
                }
            }
        });
        let howdah = pooler_to(&server.connection("any")).start();
        let mut client = howdah.session(USER, TRANSACTION);
        client.send(query("select 1"));
        let mut letters = Vec::new();
        // A message that was cut can only be followed by the end; at a boundary there is room for a word.
        while let Event::Message(message) = next_whole(&mut client) {
            letters.push(message.letter());
        }
        let errors = letters.iter().filter(|letter| letter.starts_with('E')).count();
        assert!(errors <= 1 && !letters.contains(&"ZI".to_owned()), "cut at {cut}: {letters:?}");
        let mut next = howdah.session(USER, TRANSACTION);
        assert_eq!(next.ask(query("select 1")), "T D C(SELECT 1) ZI", "cut at {cut}");
    }
}

/// The next message, where half of one may be followed by what looks like a message.
fn next_whole(client: &mut Raw) -> Event {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.next(LIMIT))).unwrap_or(Event::Silence)
}

// P52

#[test]
fn waiting_clients_wait_on_while_the_server_starts() {
    static REFUSED: AtomicU32 = AtomicU32::new(0);
    let server = FakeServer::start(|session| {
        session.startup()?;
        if REFUSED.fetch_add(1, Ordering::SeqCst) < 4 {
            return session.send(&reply::error("FATAL", "57P03", "the database system is starting up"));
        }
        session.send(&reply::welcome(session.number))?;
        loop {
            if session.recv()?.tag == b'Q' {
                session.send(&reply::one_value("1"))?;
            }
        }
    });
    let howdah = pooler_to(&server.connection("any")).start();
    // Even the login of the pool's first client waits for it.
    let mut client = howdah.session(USER, TRANSACTION);
    assert_eq!(client.ask(query("select 1")), "T D C(SELECT 1) ZI");
    assert!(REFUSED.load(Ordering::SeqCst) > 4);
}

// P53

#[test]
fn limits_of_the_server_are_told_to_their_owner_alone() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, TRANSACTION);
    assert!(client.ask(query("begin; set local idle_in_transaction_session_timeout = 20")).ends_with("ZT"));
    assert_eq!(ends_with_one_error(&mut client), "E(25P03)");
    let mut next = howdah.session(USER, TRANSACTION);
    assert_eq!(next.value("select 1"), "1");
    assert!(next.ask(query("begin; set local statement_timeout = 20")).ends_with("ZT"));
    let answer = next.ask(query("select pg_sleep(60)"));
    assert!(message::is_canceled(&answer, 'E'), "{answer}");
    assert_eq!(next.ask(query("rollback")), "C(ROLLBACK) ZI");
    assert_eq!(next.value("select 'alive'"), "alive");
}

// P58

#[test]
fn pool_has_its_full_size_after_a_storm_of_departures() {
    let (server, howdah) = pooler_with_table("ends_storm", 4);
    let acts: [Vec<u8>; 6] = [
        query("select 1"),
        query("begin"),
        query("select repeat('x', 1000) from generate_series(1, 10000)"),
        message::all(&[parse("", "select 1", &[]), flush()]),
        query("select pg_sleep(0.01)"),
        query("copy t from stdin")[..7].to_vec(),
    ];
    std::thread::scope(|scope| {
        for worker in 0..16_usize {
            let (howdah, acts) = (&howdah, &acts);
            scope.spawn(move || {
                for round in 0..25 {
                    let mut client = howdah.session(USER, TRANSACTION);
                    client.send(&acts[(worker + round) % acts.len()]);
                    if round % 2 == 0 {
                        let _ = client.next(std::time::Duration::from_millis(5));
                    }
                    LEAVINGS[(worker + round / 3) % LEAVINGS.len()](client);
                }
            });
        }
    });
    has_full_size(&howdah, TRANSACTION, 4);
    finds_nothing(&howdah, "0");
    eventually(LIMIT, || server.sessions_in("ends_storm") <= 4);
}
