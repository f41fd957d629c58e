//! Reloads change what they are about, for whom they are about, and disturb nobody else.
#![allow(clippy::disallowed_methods)] // clients are threads, and files are changed

mod stage;

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stage::{
    LIMIT, PASSWORD, bare, check_fatal, holder, login, next_error, pooler, refused, server_for, servers_of,
    wait_for_pool,
};
use testkit::message::{letters, query};
use testkit::{Howdah, HowdahOptions, Login, Postgres, Raw, Signal, cell, eventually, eventually_shown};

/// A pgbouncer.ini with these lines of databases and settings.
fn ini(databases: &[(&str, &str)], settings: &[(&str, &str)]) -> String {
    let lines = |pairs: &[(&str, &str)]| -> String {
        pairs.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
    };
    format!(
        "[databases]\n{}[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {{port}}\nunix_socket_dir = {{dir}}\n\
         auth_type = trust\nauth_file = {{dir}}/userlist.txt\nadmin_users = admin\npool_mode = transaction\n{}",
        lines(databases),
        lines(settings)
    )
}

/// A pooler with a whole ini, and one user.
fn with_ini(text: &str, user: &str) -> HowdahOptions {
    bare().ini(text).user(user, PASSWORD)
}

#[test]
fn storm_of_reloads_under_load_shows_no_client_an_error() {
    let name = "reload_storm";
    let server = server_for(name);
    let connection = server.connection(name);
    let make = |turn: usize| {
        let entry = format!("{connection} pool_size={}", 2 + turn % 5);
        let other = format!("{connection} application_name=turn{turn}");
        let idle = (turn % 7).to_string();
        let settings = [
            ("default_pool_size", "5"),
            ("max_client_conn", if turn.is_multiple_of(2) { "200" } else { "300" }),
            ("server_idle_timeout", if turn.is_multiple_of(3) { "1" } else { "600" }),
            ("server_lifetime", if turn % 4 == 3 { "1" } else { "3600" }),
            ("min_pool_size", idle.as_str()),
            ("max_prepared_statements", if turn.is_multiple_of(2) { "100" } else { "10" }),
            ("log_stats", "0"),
        ];
        let mut databases = vec![(name, entry.as_str()), ("sometimes", other.as_str())];
        if turn.is_multiple_of(2) {
            databases.pop();
        }
        ini(&databases, &settings)
    };
    let howdah = with_ini(&make(0), name).start();
    let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for seat in 0..10 {
            let (howdah, over, done) = (&howdah, &over, &done);
            scope.spawn(move || {
                let mut raw = howdah.session(name, name);
                while !over.load(Ordering::SeqCst) {
                    if seat < 3 {
                        raw = howdah.session(name, name);
                    }
                    let wanted = format!("{seat}");
                    assert_eq!(raw.value(&format!("select {seat}")), wanted);
                    assert_eq!(
                        raw.ask(query("begin; select 1; commit")),
                        "C(BEGIN) T D C(SELECT 1) C(COMMIT) ZI"
                    );
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut console = howdah.console();
        let start = Instant::now();
        let mut turn = 0;
        while start.elapsed() < Duration::from_secs(4) {
            turn += 1;
            howdah.write_ini(&make(turn));
            if turn.is_multiple_of(3) {
                howdah.signal(Signal::Hangup);
            }
            assert_eq!(console.ask(query("RELOAD")), "C(RELOAD) ZI");
            // What is read while it is written is no file of ours: each turn leaves some transactions behind.
            let before = done.load(Ordering::SeqCst);
            eventually(LIMIT, || done.load(Ordering::SeqCst) > before);
        }
        over.store(true, Ordering::SeqCst);
        assert!(turn > 30, "{turn} reloads");
    });
    assert!(done.into_inner() > 200);
}

#[test]
fn databases_appear_change_and_go() {
    let name = "reload_databases";
    let server = server_for(name);
    server.create_database("reload_databases_2", name);
    let (first, second) = (server.connection(name), server.connection("reload_databases_2"));
    let howdah = with_ini(&ini(&[(name, &first)], &[]), name).start();
    let current = "select current_database()";
    let mut stays = howdah.session(name, name);
    assert_eq!(stays.value(current), name);
    assert_eq!(refused(&howdah, &Login::new(name, "added")).text, "no such database: added");
    howdah.reload_ini(&ini(&[(name, &first), ("added", &second)], &[]));
    let mut added = howdah.session(name, "added");
    assert_eq!(added.value(current), "reload_databases_2");
    // The next transaction goes where the entry points now; the running one ends where it began.
    let mut running = holder(&howdah, name);
    howdah.reload_ini(&ini(&[(name, &second), ("added", &second)], &[]));
    assert_eq!(stays.value(current), "reload_databases_2");
    assert_eq!(running.value(current), name);
    assert_eq!(running.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(running.value(current), "reload_databases_2");
    eventually(LIMIT, || servers_of(name) == 0);
    let mut inside = howdah.session(name, "added");
    inside.sql("begin");
    howdah.reload_ini(&ini(&[(name, &second)], &[]));
    for raw in [&mut added, &mut inside] {
        check_fatal(&next_error(raw), "57P01", "database removed");
        assert_eq!(raw.expect_closed(), "");
    }
    assert_eq!(refused(&howdah, &Login::new(name, "added")).text, "no such database: added");
    assert_eq!(stays.value("select 1"), "1");
    let rows = howdah.admin("SHOW DATABASES");
    assert!(rows.iter().all(|row| cell(row, "name") != Some("added")), "{rows:?}");
}

#[test]
fn smaller_pool_closes_idle_servers_at_once_and_busy_ones_when_they_are_free() {
    let name = "reload_smaller";
    let mut howdah = pooler(name).setting("default_pool_size", "4").start();
    let mut held: Vec<Raw> = (0..4).map(|_| holder(&howdah, name)).collect();
    held[0].sql("commit");
    held[1].sql("commit");
    howdah.reload_with("default_pool_size", "1");
    eventually(LIMIT, || servers_of(name) == 2);
    held[2].sql("commit");
    held[3].sql("commit");
    eventually(LIMIT, || servers_of(name) == 1);
    for raw in &mut held {
        assert_eq!(raw.value("select 1"), "1");
    }
    assert_eq!(servers_of(name), 1);
}

#[test]
fn larger_pool_serves_those_who_wait() {
    let name = "reload_larger";
    let mut howdah = pooler(name).setting("default_pool_size", "1").start();
    let _held = holder(&howdah, name);
    let mut waiting = howdah.session(name, name);
    waiting.send(query("select 1"));
    wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
    howdah.reload_with("default_pool_size", "2");
    assert_eq!(waiting.answers(1), "T D C(SELECT 1) ZI");
    assert_eq!(servers_of(name), 2);
}

#[test]
fn smaller_limits_of_clients_end_nobody_who_is_in() {
    let name = "reload_clients";
    let mut howdah = pooler(name).setting("max_client_conn", "10").start();
    let mut inside: Vec<Raw> = (0..5).map(|_| howdah.session(name, name)).collect();
    howdah.reload_with("max_client_conn", "3");
    let text = "no more connections allowed (max_client_conn)";
    check_fatal(&refused(&howdah, &login(name)), "53300", text);
    for raw in &mut inside {
        assert_eq!(raw.value("select 1"), "1");
    }
    inside.truncate(2);
    eventually(LIMIT, || Raw::try_login(howdah.port(), &login(name)).is_ok());
}

#[test]
fn changed_timeouts_hold_for_sessions_that_are_open() {
    let name = "reload_timeouts";
    let mut howdah = pooler(name).setting("default_pool_size", "1").start();
    let _held = holder(&howdah, name);
    let mut open = howdah.session(name, name);
    howdah.reload_with("query_wait_timeout", "0.4");
    open.send(query("select 1"));
    check_fatal(&next_error(&mut open), "53300", "query_wait_timeout");
}

#[test]
fn changed_password_holds_at_once_for_every_exchange() {
    for (auth_type, turns) in [("plain", 3), ("md5", 1), ("scram-sha-256", 3)] {
        let name = format!("reload_password_{}", auth_type.replace('-', "_"));
        let howdah =
            pooler(&name).setting("auth_type", auth_type).setting("scram_iterations", "4096").start();
        let write = |secret: &str| {
            let users = format!("\"{name}\" \"{secret}\"\n");
            fs::write(howdah.dir().join("userlist.txt"), users).expect("own file");
            howdah.signal(Signal::Hangup);
        };
        let (old, new) = (login(&name), login(&name).password("another"));
        let gets_in = |login: &Login| Raw::try_login(howdah.port(), login).is_ok();
        for _ in 0..turns {
            assert!(gets_in(&old) && !gets_in(&new), "{auth_type}");
        }
        write("another");
        eventually(LIMIT, || gets_in(&new));
        for _ in 0..turns {
            assert!(!gets_in(&old) && gets_in(&new), "{auth_type}");
        }
    }
}

/// The messages of a login, and the values of two parameters in them.
fn greeting(howdah: &Howdah, login: &Login) -> (String, Vec<String>) {
    let mut raw = Raw::connect(howdah.port());
    login.send_startup(&mut raw);
    let messages = raw.until_ready();
    let told = messages.iter().filter(|message| message.tag == b'S').map(|message| message.strings());
    let told = told.filter(|told| matches!(told[0].as_str(), "application_name" | "TimeZone"));
    (letters(&messages), told.map(|told| told[1].clone()).collect())
}

#[test]
fn clients_that_come_alike_are_told_alike_until_the_settings_change() {
    let name = "reload_greeting";
    let mut howdah = pooler(name).start();
    drop(howdah.session(name, name));
    let (plain, own) = (login(name), login(name).parameter("application_name", "own"));
    let first = greeting(&howdah, &plain);
    assert_eq!(greeting(&howdah, &plain), first);
    for _ in 0..2 {
        assert_eq!(greeting(&howdah, &own), (first.0.clone(), vec!["own".to_owned(), first.1[1].clone()]));
    }
    // More kinds than are remembered: each is still told its own.
    for turn in 0..40 {
        let value = format!("app{}", turn % 20);
        let told = greeting(&howdah, &login(name).parameter("application_name", &value));
        assert_eq!(told.1[0], value);
    }
    howdah.reload_with("login_notify_message", "mind the gap");
    for _ in 0..2 {
        let (letters, told) = greeting(&howdah, &plain);
        assert!(letters.contains('N') && told == first.1, "{letters} {told:?}");
    }
    howdah.reload_with("application_name_add_host", "1");
    for _ in 0..2 {
        let told = greeting(&howdah, &own).1;
        assert!(told[0].starts_with("own - 127.0.0.1:"), "{told:?}");
    }
}

#[test]
fn key_that_is_left_out_returns_to_its_default() {
    let name = "reload_default";
    let server = server_for(name);
    let entry = server.connection(name);
    let value = |howdah: &Howdah, key: &str| howdah.admin_value("SHOW CONFIG", &[("key", key)], "value");
    let text = ini(&[(name, &entry)], &[("default_pool_size", "3"), ("server_lifetime", "50")]);
    let howdah = with_ini(&text, name).start();
    assert_eq!(value(&howdah, "server_lifetime"), "50");
    howdah.reload_ini(&ini(&[(name, &entry)], &[("default_pool_size", "3")]));
    assert_eq!(
        (value(&howdah, "server_lifetime"), value(&howdah, "default_pool_size")),
        ("3600".into(), "3".into())
    );
}

#[test]
fn keys_of_the_start_stay_as_they_are() {
    let name = "reload_start_keys";
    let mut howdah = pooler(name).setting("unix_socket_mode", "0700").setting("listen_backlog", "64").start();
    let port = howdah.port().to_string();
    // It listens before it has read everything: the file must not change under it.
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
    howdah.reload_with("listen_port", "1");
    howdah.reload_with("listen_backlog", "65");
    for (key, value) in [("listen_port", port.as_str()), ("listen_backlog", "64")] {
        assert_eq!(howdah.admin_value("SHOW CONFIG", &[("key", key)], "value"), value, "{key}");
    }
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
}

#[test]
fn logfile_is_opened_again() {
    let name = "reload_log";
    let howdah = pooler(name).setting("logfile", "{dir}/own.log").setting("log_connections", "1").start();
    let (own, old) = (howdah.dir().join("own.log"), howdah.dir().join("old.log"));
    let has = |path: &std::path::Path, text: &str| {
        fs::read_to_string(path).is_ok_and(|content| content.contains(text))
    };
    eventually(LIMIT, || has(&own, "process up: "));
    fs::rename(&own, &old).expect("own directory");
    howdah.session(name, name).close();
    eventually(LIMIT, || has(&old, "login attempt: "));
    assert!(!own.exists());
    assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
    howdah.session(name, name).close();
    eventually(LIMIT, || has(&own, "login attempt: "));
}

#[test]
fn removed_user_may_stay_but_not_come_back() {
    let name = "reload_user";
    let howdah = pooler(name).setting("auth_type", "plain").start();
    let mut inside = howdah.login(&login(name));
    let admin = Login::new(testkit::howdah::ADMIN, "pgbouncer").password(testkit::howdah::ADMIN_PASSWORD);
    let mut console = howdah.login(&admin);
    fs::write(howdah.dir().join("userlist.txt"), "\"admin\" \"admin-password\"\n").expect("own file");
    assert_eq!(console.ask(query("RELOAD")), "C(RELOAD) ZI");
    assert_eq!(refused(&howdah, &login(name)).sqlstate, "28P01");
    assert_eq!(inside.value("select 1"), "1");
    // A file that is gone does not open the doors.
    fs::remove_file(howdah.dir().join("userlist.txt")).expect("own file");
    console.ask(query("RELOAD"));
    assert_eq!(refused(&howdah, &login(name)).sqlstate, "28P01");
    assert_eq!(refused(&howdah, &login(name).password("")).sqlstate, "28P01");
}

#[test]
fn changed_rules_hold_for_new_logins() {
    let name = "reload_hba";
    let options = pooler(name).setting("auth_type", "hba");
    let howdah = options.hba("host all all 127.0.0.1/32 trust\n").start();
    let mut inside = howdah.session(name, name);
    let mut console = howdah.console();
    let rules = format!("host {name} {name} 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust\n");
    fs::write(howdah.dir().join("hba.conf"), rules).expect("own file");
    assert_eq!(console.ask(query("RELOAD")), "C(RELOAD) ZI");
    check_fatal(&refused(&howdah, &login(name)), "28000", "login rejected");
    assert_eq!(inside.value("select 1"), "1");
}

#[test]
fn pool_mode_changes_for_sessions_between_transactions() {
    let name = "reload_mode";
    let mut howdah = pooler(name).setting("pool_mode", "session").setting("default_pool_size", "1").start();
    let mut first = howdah.session(name, name);
    first.sql("select 1");
    let mut second = howdah.session(name, name);
    second.send(query("select 2"));
    wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
    howdah.reload_with("pool_mode", "transaction");
    // The server is shared from the next end of a transaction on.
    assert_eq!(first.value("select 3"), "3");
    assert_eq!(second.answers(1), "T D C(SELECT 1) ZI");
    assert_eq!(first.value("select 4"), "4");
    eventually_shown(&howdah, "SHOW POOLS", |rows| {
        rows.iter()
            .any(|row| cell(row, "database") == Some(name) && cell(row, "pool_mode") == Some("transaction"))
    });
}

#[test]
fn clients_that_come_during_reloads_are_let_in() {
    let name = "reload_logins";
    let howdah = pooler(name).setting("auth_type", "scram-sha-256").start();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
                }
            });
        }
        let mut console = howdah.console();
        for _ in 0..100 {
            assert_eq!(console.ask(query("RELOAD")), "C(RELOAD) ZI");
        }
        over.store(true, Ordering::SeqCst);
    });
    let server = Postgres::shared_wanted();
    assert!(server.sessions_in(name) >= 1);
}
