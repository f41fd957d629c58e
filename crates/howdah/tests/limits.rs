//! Limits hold exactly, with one worker and with several; PostgreSQL itself is the witness.
#![allow(clippy::disallowed_methods)] // clients are threads

mod stage;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

use stage::{
    LIMIT, PASSWORD, bare, check_fatal, holder, login, pooler, refused, server_for, servers_of, wait_for_pool,
};
use testkit::message::query;
use testkit::{Howdah, HowdahOptions, Login, Postgres, Raw, eventually};

/// Runs `clients` threads, each with a session of its own and so many transactions.
fn load(howdah: &Howdah, name: &str, clients: usize, transactions: usize) {
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut raw = howdah.session(name, name);
                for _ in 0..transactions {
                    assert_eq!(raw.ask(query("select pg_sleep(0.004)")), "T D C(SELECT 1) ZI");
                }
            });
        }
    });
}

/// The greatest number of sessions in the database that PostgreSQL has shown while `work` ran.
fn most_servers(database: &str, work: impl FnOnce()) -> usize {
    let (most, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let sql = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' and pid <> pg_backend_pid()"
    );
    let mut witness = Postgres::shared_wanted().session("postgres");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let seen: usize = witness.value(&sql).parse().expect("a count");
                most.fetch_max(seen, Ordering::SeqCst);
            }
        });
        work();
        over.store(true, Ordering::SeqCst);
    });
    most.into_inner()
}

/// Makes PostgreSQL refuse, and log, a session too many of this role.
fn set_connection_limit(role: &str, limit: usize) {
    Postgres::shared_wanted().sql(&format!("alter role \"{role}\" connection limit {limit}"));
}

fn assert_never_refused(role: &str) {
    let log = Postgres::shared_wanted().log();
    assert!(!log.contains(&format!("too many connections for role \"{role}\"")), "{role} had too many");
}

fn check_pool_size(workers: &str) {
    let name = format!("limits_pool_size_{workers}");
    let howdah = pooler(&name).setting("workers", workers).setting("default_pool_size", "3").start();
    set_connection_limit(&name, 3);
    let most = most_servers(&name, || load(&howdah, &name, 24, 20));
    assert_eq!(most, 3);
    assert_never_refused(&name);
    wait_for_pool(&howdah, &name, &[("sv_idle", "3"), ("sv_active", "0"), ("cl_waiting", "0")]);
    assert_eq!(servers_of(&name), 3);
}

#[test]
fn pool_size_is_exact_with_one_worker() {
    check_pool_size("1");
}

#[test]
fn pool_size_is_exact_with_four_workers() {
    check_pool_size("4");
}

#[test]
fn pool_size_of_user_goes_before_database_and_default() {
    let name = "limits_precedence";
    let server = server_for(name);
    let other = "limits_precedence_other";
    server.create_role(other, PASSWORD);
    let entry = format!("{} pool_size=2", server.connection(name));
    let howdah = bare()
        .database(name, &entry)
        .setting("default_pool_size", "5")
        .line("users", name, "pool_size=1")
        .user(name, PASSWORD)
        .user(other, PASSWORD)
        .start();
    let mut held: Vec<Raw> = Vec::new();
    for (user, size) in [(name, 1), (other, 2)] {
        for _ in 0..size {
            let mut raw = howdah.session(user, name);
            raw.sql("begin");
            held.push(raw);
        }
        let mut late = howdah.session(user, name);
        late.send(query("select 1"));
        held.push(late);
    }
    testkit::eventually_shown(&howdah, "SHOW POOLS", |rows| {
        let of = |user: &str, column: &str| {
            let row = rows.iter().find(|row| testkit::cell(row, "user") == Some(user));
            row.and_then(|row| testkit::cell(row, column)).map(str::to_owned)
        };
        [name, other].map(|user| (of(user, "sv_active"), of(user, "cl_waiting")))
            == [(Some("1".into()), Some("1".into())), (Some("2".into()), Some("1".into()))]
    });
    assert_eq!(servers_of(name), 3);
}

#[test]
fn min_pool_size_of_forced_user_is_filled_without_clients_and_refilled() {
    let name = "limits_min_forced";
    let server = server_for(name);
    let entry = format!("{} user={name} min_pool_size=2", server.connection(name));
    let _howdah = bare().database(name, &entry).user(name, PASSWORD).start();
    eventually(LIMIT, || servers_of(name) == 2);
    let sql = format!("select pid from pg_stat_activity where datname = '{name}' order by pid");
    let before = server.sql(&sql);
    server.sql(&format!(
        "select pg_terminate_backend(min(pid)) from pg_stat_activity where datname = '{name}'"
    ));
    eventually(LIMIT, || {
        let now = server.sql(&sql);
        now.len() == 2 && now != before
    });
}

#[test]
fn min_pool_size_is_filled_once_there_is_a_client_and_kept_below_pool_size() {
    let name = "limits_min";
    let howdah = pooler(name).setting("min_pool_size", "5").setting("default_pool_size", "3").start();
    assert_eq!(servers_of(name), 0);
    let _client = howdah.session(name, name);
    wait_for_pool(&howdah, name, &[("sv_idle", "3"), ("sv_login", "0")]);
    assert_eq!(servers_of(name), 3);
}

fn check_reserve(workers: &str) {
    let name = format!("limits_reserve_{workers}");
    let name = name.as_str();
    let howdah = pooler(name)
        .setting("workers", workers)
        .setting("default_pool_size", "1")
        .setting("reserve_pool_size", "1")
        .setting("reserve_pool_timeout", "0.3")
        .start();
    set_connection_limit(name, 2);
    let first = holder(&howdah, name);
    let start = std::time::Instant::now();
    let second = holder(&howdah, name);
    assert!(start.elapsed().as_secs_f64() > 0.25, "the reserve was used too soon");
    let mut third = howdah.session(name, name);
    third.send(query("select 3"));
    third.expect_silence(std::time::Duration::from_millis(800));
    wait_for_pool(&howdah, name, &[("sv_active", "2"), ("cl_waiting", "1")]);
    second.close();
    assert_eq!(third.answers(1), "T D C(SELECT 1) ZI");
    assert_never_refused(name);
    howdah.wait_for_log("taking connection from reserve_pool");
    drop(first);
}

#[test]
fn reserve_is_used_after_its_timeout_and_no_further_with_one_worker() {
    check_reserve("1");
}

#[test]
fn reserve_is_used_after_its_timeout_and_no_further_with_four_workers() {
    check_reserve("4");
}

/// Two users of one database with room for two servers.
fn two_users(name: &str, workers: &str) -> (Howdah, String) {
    let server = server_for(name);
    let other = format!("{name}_other");
    server.create_role(&other, PASSWORD);
    let howdah = bare()
        .database(name, &format!("{} max_db_connections=2", server.connection(name)))
        .setting("workers", workers)
        .setting("default_pool_size", "5")
        .user(name, PASSWORD)
        .user(&other, PASSWORD)
        .start();
    (howdah, other)
}

fn check_max_db_connections(workers: &str) {
    let name = format!("limits_max_db_{workers}");
    let name = name.as_str();
    let (howdah, other) = two_users(name, workers);
    let mut first = holder(&howdah, name);
    let mut second = holder(&howdah, name);
    let mut late = howdah.login(&Login::new(name, name));
    late.send(query("select 1"));
    wait_for_pool(&howdah, name, &[("sv_active", "2"), ("cl_waiting", "1")]);
    assert_eq!(servers_of(name), 2);
    first.sql("commit");
    assert_eq!(late.answers(1), "T D C(SELECT 1) ZI");
    second.sql("commit");
    wait_for_pool(&howdah, name, &[("sv_idle", "2")]);
    // Both places are idle servers of the first user: the other one gets one of them.
    let most = most_servers(name, || {
        assert_eq!(howdah.session(&other, name).value("select current_user"), other);
    });
    // PostgreSQL may still show the evicted session for a moment.
    assert!(most <= 3, "{most}");
    eventually(LIMIT, || servers_of(name) == 2);
    howdah.wait_for_log("evicted");
}

#[test]
fn max_db_connections_counts_all_users_and_evicts_with_one_worker() {
    check_max_db_connections("1");
}

#[test]
fn max_db_connections_counts_all_users_and_evicts_with_four_workers() {
    check_max_db_connections("4");
}

#[test]
fn max_db_connections_holds_under_load_of_two_users() {
    let name = "limits_max_db_load";
    let (howdah, other) = two_users(name, "4");
    std::thread::scope(|scope| {
        for user in [name, other.as_str()] {
            for _ in 0..6 {
                let howdah = &howdah;
                scope.spawn(move || {
                    let mut raw = howdah.session(user, name);
                    for _ in 0..10 {
                        assert_eq!(raw.value("select current_user"), user);
                    }
                });
            }
        }
        for _ in 0..40 {
            let current = howdah.admin_value("SHOW DATABASES", &[("name", name)], "current_connections");
            assert!(current.parse::<u32>().expect("a count") <= 2, "{current}");
        }
    });
    eventually(LIMIT, || servers_of(name) <= 2);
}

#[test]
fn max_user_connections_counts_all_databases_and_evicts() {
    let name = "limits_max_user";
    let server = server_for(name);
    server.create_database("limits_max_user_2", name);
    let howdah = bare()
        .database(name, &server.connection(name))
        .database("limits_max_user_2", &server.connection("limits_max_user_2"))
        .line("users", name, "max_user_connections=1")
        .user(name, PASSWORD)
        .start();
    let mut held = holder(&howdah, name);
    let mut other = howdah.session_soon(name, "limits_max_user_2");
    held.sql("commit");
    assert_eq!(other.finish(), "limits_max_user_2");
    eventually(LIMIT, || servers_of(name) == 0 && servers_of("limits_max_user_2") == 1);
    assert_eq!(held.value("select current_database()"), name);
    eventually(LIMIT, || servers_of(name) == 1 && servers_of("limits_max_user_2") == 0);
}

/// A login and a query of which nothing has been read yet.
struct Soon(Raw);

trait SessionSoon {
    fn session_soon(&self, user: &str, database: &str) -> Soon;
}

impl SessionSoon for Howdah {
    fn session_soon(&self, user: &str, database: &str) -> Soon {
        let mut raw = Raw::connect(self.port());
        Login::new(user, database).send_startup(&mut raw);
        raw.send(query("select current_database()"));
        wait_for_waiting(self, database);
        Soon(raw)
    }
}

/// Waits until somebody wants a server of this database and has none.
#[track_caller]
fn wait_for_waiting(howdah: &Howdah, database: &str) {
    testkit::eventually_shown(howdah, "SHOW POOLS", |rows| {
        rows.iter().any(|row| {
            testkit::cell(row, "database") == Some(database) && testkit::cell(row, "cl_waiting") == Some("1")
        })
    });
}

impl Soon {
    #[track_caller]
    fn finish(&mut self) -> String {
        let login = self.0.until_ready();
        assert!(login.iter().all(|message| message.tag != b'E'), "{login:?}");
        testkit::message::rows(&self.0.until_ready())[0][0].clone().expect("a name")
    }
}

/// So many clients try at once; those that come in stay. How many did, and what the others were told.
fn rush(howdah: &Howdah, name: &str, clients: usize) -> (Vec<Raw>, Vec<String>) {
    let (inside, outside) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let barrier = Barrier::new(clients);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                barrier.wait();
                match Raw::try_login(howdah.port(), &login(name)) {
                    Ok(raw) => inside.lock().expect("no panic").push(raw),
                    Err(refusal) => outside
                        .lock()
                        .expect("no panic")
                        .push(format!("{} {}", refusal.sqlstate, refusal.text)),
                }
            });
        }
    });
    (inside.into_inner().expect("no panic"), outside.into_inner().expect("no panic"))
}

fn check_client_limit(name: &str, text: &str, limit: impl FnOnce(HowdahOptions) -> HowdahOptions) {
    check_limit(limit(pooler(name)), name, text);
}

fn check_limit(options: HowdahOptions, name: &str, text: &str) {
    let howdah = options.setting("workers", "4").start();
    // The very first login opens the pool's server; the fixture's own probes are gone by then.
    drop(howdah.session(name, name));
    let mut console = howdah.console();
    eventually(LIMIT, || console.table("SHOW CLIENTS").len() == 1);
    drop(console);
    let (inside, outside) = rush(&howdah, name, 30);
    assert_eq!((inside.len(), outside.len()), (10, 20));
    assert!(outside.iter().all(|told| told == &format!("53300 {text}")), "{outside:?}");
    // An administrator is never shut out, and a place that is left can be taken.
    assert_eq!(howdah.admin("SHOW VERSION").len(), 1);
    check_fatal(&refused(&howdah, &login(name)), "53300", text);
    drop(inside);
    let mut console = howdah.console();
    eventually(LIMIT, || console.table("SHOW CLIENTS").len() == 1);
    drop(console);
    let (again, _) = rush(&howdah, name, 12);
    assert_eq!(again.len(), 10);
}

#[test]
fn max_client_conn_is_exact() {
    let text = "no more connections allowed (max_client_conn)";
    check_client_limit("limits_clients", text, |options| options.setting("max_client_conn", "10"));
}

#[test]
fn max_db_client_connections_is_exact() {
    let text = "client connections exceeded (max_db_client_connections)";
    check_client_limit("limits_db_clients", text, |options| {
        options.setting("max_db_client_connections", "10")
    });
}

#[test]
fn max_db_client_connections_of_the_entry_goes_before_the_general_one() {
    let text = "client connections exceeded (max_db_client_connections)";
    let name = "limits_entry_clients";
    let server = server_for(name);
    let entry = format!("{} max_db_client_connections=10", server.connection(name));
    let options =
        bare().database(name, &entry).user(name, PASSWORD).setting("max_db_client_connections", "5");
    check_limit(options, name, text);
}

#[test]
fn max_user_client_connections_is_exact() {
    let text = "client connections exceeded (max_user_client_connections)";
    check_client_limit("limits_user_clients", text, |options| {
        options.setting("max_user_client_connections", "10")
    });
}

#[test]
fn max_user_client_connections_of_the_user_goes_before_the_general_one() {
    let text = "client connections exceeded (max_user_client_connections)";
    let name = "limits_one_user_clients";
    check_client_limit(name, text, |options| {
        options.setting("max_user_client_connections", "5").line(
            "users",
            name,
            "max_user_client_connections=10",
        )
    });
}

fn check_queue_order(workers: &str) {
    let name = format!("limits_queue_{workers}");
    let name = name.as_str();
    let howdah = pooler(name)
        .setting("workers", workers)
        .setting("default_pool_size", "1")
        // No timer shall be what finds out that a client has gone.
        .setting("query_wait_notify", "0")
        .start();
    Postgres::shared_wanted().session(name).sql("create sequence turn; grant all on turn to public");
    let mut held = holder(&howdah, name);
    let mut waiting = Vec::new();
    for place in 1..=8 {
        let mut raw = howdah.session(name, name);
        raw.send(query("select nextval('turn')"));
        wait_for_pool(&howdah, name, &[("cl_waiting", &place.to_string())]);
        waiting.push(raw);
    }
    // Who gives up leaves the queue without a gap.
    waiting.remove(3).reset();
    wait_for_pool(&howdah, name, &[("cl_waiting", "7")]);
    held.sql("commit");
    let turns: Vec<_> = waiting.iter_mut().map(|raw| testkit::message::rows(&raw.until_ready())).collect();
    let expected: Vec<_> = (1..=7).map(|turn| vec![vec![Some(turn.to_string())]]).collect();
    assert_eq!(turns, expected);
}

#[test]
fn waiting_clients_are_served_in_order_with_one_worker() {
    check_queue_order("1");
}

#[test]
fn waiting_clients_are_served_in_order_with_four_workers() {
    check_queue_order("4");
}

#[test]
fn login_never_waits_for_a_server() {
    let name = "limits_login";
    let howdah = pooler(name).setting("default_pool_size", "1").start();
    let _held = holder(&howdah, name);
    let sessions: Vec<Raw> = (0..50).map(|_| howdah.session(name, name)).collect();
    wait_for_pool(&howdah, name, &[("cl_active", "51"), ("cl_waiting", "0"), ("sv_active", "1")]);
    assert_eq!((sessions.len(), servers_of(name)), (50, 1));
}
