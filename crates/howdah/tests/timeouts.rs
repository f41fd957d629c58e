//! Every limit of time ends what it is about, not before its time, with the right words, and nothing else.
#![allow(clippy::disallowed_methods)] // times are what is looked at

mod stage;

use std::time::{Duration, Instant};

use stage::{
    LIMIT, PASSWORD, bare, check_fatal, holder, login, next_error, pooler, refused, server_for, servers_of,
    wait_for_pool,
};
use testkit::message::query;
use testkit::{
    Chaos, Event, FakeServer, FakeSession, Howdah, Postgres, Raw, Refusal, cell, eventually,
    eventually_shown, reply,
};

/// Asserts that the session ends with this refusal, at least `least` after `start`.
#[track_caller]
fn check_end(raw: &mut Raw, start: Instant, least: Duration, sqlstate: &str, text: &str) {
    check_fatal(&next_error(raw), sqlstate, text);
    // Clocks of two processes: a little earlier is no fault.
    let passed = start.elapsed() + Duration::from_millis(20);
    assert!(passed >= least, "{text} after {passed:?} instead of {least:?}");
    assert_eq!(raw.expect_closed(), "");
}

/// The number of sessions in the database that do something.
fn busy_servers_of(database: &str) -> usize {
    let sql = format!("select 1 from pg_stat_activity where datname = '{database}' and state <> 'idle'");
    Postgres::shared_wanted().sql(&sql).len()
}

const HALF: Duration = Duration::from_millis(500);

#[test]
fn waiting_client_is_refused_after_query_wait_timeout_and_the_holder_is_not_touched() {
    let name = "timeouts_wait";
    let howdah = pooler(name).setting("default_pool_size", "1").setting("query_wait_timeout", "0.5").start();
    let mut held = holder(&howdah, name);
    let mut waiting = howdah.session(name, name);
    let start = Instant::now();
    waiting.send(query("select 1"));
    check_end(&mut waiting, start, HALF, "53300", "query_wait_timeout");
    wait_for_pool(&howdah, name, &[("cl_waiting", "0"), ("sv_active", "1")]);
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
}

#[test]
fn query_wait_timeout_of_the_user_goes_before_the_database_and_zero_switches_off() {
    let name = "timeouts_wait_order";
    let server = server_for(name);
    let other = "timeouts_wait_order_other";
    server.create_role(other, PASSWORD);
    let entry = format!("{} user={name} pool_size=1 query_wait_timeout=0.3", server.connection(name));
    let howdah = bare()
        .database(name, &entry)
        .setting("query_wait_timeout", "60")
        .line("users", name, "query_wait_timeout=0")
        .user(name, PASSWORD)
        .user(other, PASSWORD)
        .start();
    let mut held = holder(&howdah, name);
    let (mut patient, mut hasty) = (howdah.session(name, name), howdah.session(other, name));
    patient.send(query("select 1"));
    hasty.send(query("select 1"));
    check_fatal(&next_error(&mut hasty), "53300", "query_wait_timeout");
    patient.expect_silence(HALF);
    held.sql("commit");
    assert_eq!(patient.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn query_longer_than_query_timeout_ends_with_its_server() {
    let name = "timeouts_query";
    let howdah = pooler(name).setting("query_timeout", "0.5").start();
    let mut slow = howdah.session(name, name);
    let mut quick = howdah.session(name, name);
    let start = Instant::now();
    slow.send(query("select pg_sleep(60)"));
    check_end(&mut slow, start, HALF, "57014", "query timeout");
    assert_eq!(quick.ask(query("select 1")), "T D C(SELECT 1) ZI");
    eventually(LIMIT, || busy_servers_of(name) == 0);
}

#[test]
fn query_timeout_is_about_the_query_and_not_about_the_transaction() {
    let name = "timeouts_query_idle";
    let howdah = pooler(name).setting("query_timeout", "0.5").start();
    let mut raw = holder(&howdah, name);
    raw.expect_silence(Duration::from_millis(900));
    assert_eq!(raw.ask(query("select 1")), "T D C(SELECT 1) ZT");
}

#[test]
fn query_timeout_ends_clients_that_wait_too() {
    let name = "timeouts_query_wait";
    let howdah = pooler(name)
        .setting("default_pool_size", "1")
        .setting("query_timeout", "0.5")
        .setting("query_wait_timeout", "60")
        .start();
    let _held = holder(&howdah, name);
    let mut waiting = howdah.session(name, name);
    waiting.send(query("select 1"));
    assert_eq!(next_error(&mut waiting).sqlstate, "57014");
}

#[test]
fn query_timeout_of_the_user_goes_before_the_general_one() {
    let name = "timeouts_query_user";
    let howdah = pooler(name).setting("query_timeout", "60").line("users", name, "query_timeout=0.3").start();
    let mut slow = howdah.session(name, name);
    slow.send(query("select pg_sleep(60)"));
    check_fatal(&next_error(&mut slow), "57014", "query timeout");
}

#[test]
fn idle_transaction_is_ended_but_a_busy_one_is_not() {
    let name = "timeouts_idle_tx";
    let howdah = pooler(name).setting("idle_transaction_timeout", "0.5").start();
    let mut raw = howdah.session(name, name);
    raw.sql("begin");
    raw.sql("select pg_sleep(0.9)");
    let start = Instant::now();
    check_end(&mut raw, start, Duration::from_millis(450), "25P03", "idle transaction timeout");
    eventually(LIMIT, || busy_servers_of(name) == 0);
    let mut idle = howdah.session(name, name);
    idle.sql("select 1");
    // Idle, but in no transaction.
    idle.expect_silence(Duration::from_millis(900));
    assert_eq!(idle.value("select 1"), "1");
}

#[test]
fn transaction_timeout_ends_a_transaction_however_busy_it_is() {
    let name = "timeouts_tx";
    let howdah = pooler(name).setting("transaction_timeout", "0.7").start();
    let mut raw = howdah.session(name, name);
    let start = Instant::now();
    raw.sql("begin");
    let refusal: Refusal = loop {
        if let Err(refusal) = raw.try_sql("select pg_sleep(0.01)") {
            break refusal;
        }
        assert!(start.elapsed() < LIMIT, "never ended");
    };
    check_fatal(&refusal, "25P04", "transaction timeout");
    assert!(start.elapsed() >= Duration::from_millis(680));
    eventually(LIMIT, || busy_servers_of(name) == 0);
}

#[test]
fn short_transactions_are_not_added_up() {
    let name = "timeouts_tx_many";
    let howdah = pooler(name).setting("transaction_timeout", "0.5").start();
    let mut raw = howdah.session(name, name);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1200) {
        assert_eq!(
            raw.ask(query("begin; select pg_sleep(0.05); commit")),
            "C(BEGIN) T D C(SELECT 1) C(COMMIT) ZI"
        );
    }
}

#[test]
fn silent_client_is_closed_after_client_idle_timeout_unless_it_has_a_server() {
    let name = "timeouts_client_idle";
    let howdah = pooler(name).setting("client_idle_timeout", "0.5").start();
    let mut held = holder(&howdah, name);
    let mut idle = howdah.session(name, name);
    let start = Instant::now();
    idle.sql("select 1");
    check_end(&mut idle, start, HALF, "57P05", "client_idle_timeout");
    held.expect_silence(HALF);
    assert_eq!(held.ask(query("commit")), "C(COMMIT) ZI");
}

#[test]
fn client_that_does_not_log_in_is_closed() {
    let name = "timeouts_login";
    let howdah = pooler(name)
        .setting("auth_type", "scram-sha-256")
        .setting("client_login_timeout", "1")
        .setting("tcp_defer_accept", "0")
        .start();
    let start = Instant::now();
    let mut silent = Raw::connect(howdah.port());
    let mut half = Raw::connect(howdah.port());
    half.send(&testkit::message::startup((3, 0), &[("user", name)])[..9]);
    let mut asked = Raw::connect(howdah.port());
    login(name).send_startup(&mut asked);
    assert_eq!(asked.recv().letter(), "R(10)");
    for raw in [&mut silent, &mut half, &mut asked] {
        check_end(raw, start, Duration::from_secs(1), "08006", "client_login_timeout");
    }
    let mut inside = howdah.login(&login(name));
    let mut late = Raw::connect(howdah.port());
    check_fatal(&next_error(&mut late), "08006", "client_login_timeout");
    assert_eq!(inside.value("select 1"), "1");
}

#[test]
fn login_that_waits_for_the_first_server_says_that_the_server_is_down() {
    let fake = FakeServer::start(FakeSession::fall_silent);
    let howdah = bare()
        .database("fake", &fake.connection("fake"))
        .setting("client_login_timeout", "1")
        .user("somebody", "")
        .start();
    let refusal = refused(&howdah, &testkit::Login::new("somebody", "fake"));
    check_fatal(&refusal, "08006", "client_login_timeout (server down)");
}

/// Serves as an honest server from the `n`th connection on; before it, each goes to `other`.
fn honest_from(
    n: u32,
    other: impl Fn(&mut FakeSession) -> std::io::Result<()> + Send + Sync + 'static,
) -> FakeServer {
    FakeServer::start(move |session| {
        if session.number < n {
            return other(session);
        }
        session.welcome()?;
        loop {
            if session.recv()?.tag == b'Q' {
                session.send(&reply::one_value("at last"))?;
            }
        }
    })
}

fn in_front_of(fake: &FakeServer) -> testkit::HowdahOptions {
    bare()
        .database("fake", &fake.connection("fake"))
        .user("somebody", "")
        .setting("server_login_retry", "0.2")
}

#[test]
fn server_that_never_answers_is_given_up_and_asked_again() {
    let fake = honest_from(3, FakeSession::fall_silent);
    let howdah = in_front_of(&fake).setting("server_connect_timeout", "0.4").start();
    let start = Instant::now();
    let mut raw = howdah.session("somebody", "fake");
    assert!(start.elapsed() >= Duration::from_millis(750), "given up too soon");
    assert_eq!(raw.value("when"), "at last");
}

fn check_waits_for(sqlstate: &'static str) {
    let fake = honest_from(4, move |session| {
        session.startup()?;
        session.send(&reply::error("FATAL", sqlstate, "not now"))
    });
    let howdah = in_front_of(&fake).start();
    assert_eq!(howdah.session("somebody", "fake").value("when"), "at last");
    assert!(fake.accepted() >= 4);
}

#[test]
fn client_waits_while_the_server_starts_up() {
    check_waits_for("57P03");
}

#[test]
fn client_waits_while_the_server_is_full() {
    check_waits_for("53300");
}

#[test]
fn client_waits_while_nobody_listens() {
    let name = "timeouts_nobody";
    let server = server_for(name);
    let chaos = Chaos::start(server.address());
    chaos.refuse();
    let howdah = bare()
        .database(name, &chaos.connection(name))
        .setting("server_login_retry", "0.2")
        .user(name, PASSWORD)
        .start();
    let mut raw = Raw::connect(howdah.port());
    login(name).send_startup(&mut raw);
    eventually(LIMIT, || chaos.accepted() >= 3);
    chaos.heal();
    assert!(raw.answers(1).ends_with("ZI"), "{}", raw.seen());
    assert_eq!(raw.value("select 1"), "1");
}

#[test]
fn failed_login_is_remembered_for_server_login_retry() {
    let fake = FakeServer::start(|session| {
        session.startup()?;
        session.send(&reply::error("FATAL", "28P01", "go away"))
    });
    let howdah = in_front_of(&fake).setting("server_login_retry", "30").start();
    let login = testkit::Login::new("somebody", "fake");
    let told: Vec<String> = (0..40)
        .map(|_| refused(&howdah, &login))
        .map(|refusal| format!("{} {}", refusal.sqlstate, refusal.text))
        .collect();
    assert_eq!(told[0], "28P01 go away");
    let cached = "28P01 server login has been failing, cached error: go away (server_login_retry)";
    assert!(told[1..].iter().all(|text| text == cached || *text == told[0]), "{told:#?}");
    assert!(told.iter().any(|text| text == cached), "{told:#?}");
    assert!(fake.accepted() < 20, "{} attempts for 40 clients", fake.accepted());
}

#[test]
fn idle_servers_are_closed_down_to_min_pool_size() {
    let name = "timeouts_server_idle";
    let howdah = pooler(name).setting("server_idle_timeout", "0.7").setting("min_pool_size", "1").start();
    let mut held: Vec<Raw> = (0..3).map(|_| holder(&howdah, name)).collect();
    assert_eq!(servers_of(name), 3);
    let start = Instant::now();
    for raw in &mut held {
        raw.sql("commit");
    }
    eventually(LIMIT, || servers_of(name) == 1);
    assert!(start.elapsed() >= Duration::from_millis(680), "closed too soon");
    assert_eq!(held[0].value("select 1"), "1");
}

#[test]
fn server_is_replaced_at_server_lifetime_but_not_within_a_transaction() {
    let name = "timeouts_lifetime";
    let howdah = pooler(name).setting("server_lifetime", "1").setting("default_pool_size", "1").start();
    let pid = "select pg_backend_pid()";
    let mut raw = howdah.session(name, name);
    let first = raw.value(pid);
    let start = Instant::now();
    raw.sql("begin");
    while start.elapsed() < Duration::from_millis(1300) {
        assert_eq!(raw.value("select pg_backend_pid() from pg_sleep(0.02)"), first);
    }
    raw.sql("commit");
    eventually(LIMIT, || raw.value(pid) != first);
    assert_eq!(servers_of(name), 1);
}

#[test]
fn server_with_no_lifetime_serves_once() {
    let name = "timeouts_lifetime_none";
    let howdah = pooler(name).setting("server_lifetime", "0").start();
    let mut raw = howdah.session(name, name);
    let pids: Vec<String> = (0..4).map(|_| raw.value("select pg_backend_pid()")).collect();
    let mut different = pids.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), pids.len(), "{pids:?}");
    eventually(LIMIT, || servers_of(name) == 0);
}

#[test]
fn waiting_client_is_told_once_after_query_wait_notify() {
    let name = "timeouts_notify";
    let howdah = pooler(name).setting("default_pool_size", "1").setting("query_wait_notify", "1").start();
    let mut held = holder(&howdah, name);
    let mut waiting = howdah.session(name, name);
    waiting.send(query("select 1"));
    let start = Instant::now();
    let notice = waiting.recv();
    assert_eq!(char::from(notice.tag), 'N');
    assert_eq!(notice.text(), "No server connection available in postgres backend, client being queued");
    assert!(start.elapsed() >= Duration::from_millis(950));
    waiting.expect_silence(Duration::from_millis(1300));
    held.sql("commit");
    assert_eq!(waiting.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn client_that_is_served_in_time_is_not_told() {
    let name = "timeouts_notify_not";
    let howdah = pooler(name).setting("query_wait_notify", "1").start();
    let mut raw = howdah.session(name, name);
    assert_eq!(raw.ask(query("select pg_sleep(1.3)")), "T D C(SELECT 1) ZI");
    assert_eq!(raw.next(Duration::from_millis(100)), Event::Silence);
}

fn shows(howdah: &Howdah, command: &str, column: &str, value: &str) -> bool {
    howdah.admin(command).iter().any(|row| cell(row, column) == Some(value))
}

#[test]
fn databases_made_from_the_star_are_forgotten_when_nobody_uses_them() {
    let name = "timeouts_autodb";
    let server = server_for(name);
    let star = format!("host=127.0.0.1 port={}", server.port());
    let howdah = bare()
        .database("*", &star)
        .setting("autodb_idle_timeout", "1")
        .setting("server_idle_timeout", "0.5")
        .user(name, PASSWORD)
        .start();
    let mut raw = howdah.session(name, name);
    assert_eq!(raw.value("select current_database()"), name);
    assert!(shows(&howdah, "SHOW DATABASES", "name", name));
    raw.close();
    eventually_shown(&howdah, "SHOW DATABASES", |rows| {
        rows.iter().all(|row| cell(row, "name") != Some(name))
    });
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
    howdah.wait_for_log(&format!("registered new auto-database: {name}"));
}

#[test]
fn empty_pools_are_forgotten_after_pool_idle_timeout() {
    let name = "timeouts_pool_idle";
    let howdah =
        pooler(name).setting("pool_idle_timeout", "0.5").setting("server_idle_timeout", "0.5").start();
    let mut raw = howdah.session(name, name);
    raw.sql("select 1");
    assert!(shows(&howdah, "SHOW POOLS", "database", name));
    raw.close();
    eventually_shown(&howdah, "SHOW POOLS", |rows| {
        rows.iter().all(|row| cell(row, "database") != Some(name))
    });
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
}
