//! Clients that keep their server for what they left in their session: who they are is shown, how many they may be
//! is limited, and whoever waits for that is told.
#![allow(clippy::disallowed_methods)] // clients are threads

mod stage;

use stage::{LIMIT, check_fatal, login, next_error, pooler, run, servers_of, wait_for_pool};
use testkit::message::{all, bind, describe_statement, execute, parse, query, sync};
use testkit::wait::eventually_some;
use testkit::{Howdah, Raw, TempDir, cell, eventually, eventually_shown};

const LOCK: &str = "select pg_advisory_lock(1)";

/// A pooler with so many servers, of which so many may be kept.
fn limited(name: &str, servers: &str, pinned: &str) -> Howdah {
    pooler(name).setting("default_pool_size", servers).setting("max_pinned", pinned).start()
}

/// A session that keeps its server for a lock.
#[track_caller]
fn keeper(howdah: &Howdah, name: &str, lock: u32) -> Raw {
    let mut raw = howdah.session(name, name);
    raw.sql(&format!("select pg_advisory_lock({lock})"));
    raw
}

/// The row of SHOW PINS about this statement, once there is one.
fn pin(howdah: &Howdah, statement: &str, column: &str) -> String {
    eventually_some(LIMIT, || {
        let rows = howdah.admin("SHOW PINS");
        let row = rows.iter().find(|row| cell(row, "statement") == Some(statement))?;
        cell(row, column).map(str::to_owned)
    })
}

#[test]
fn show_pins_says_who_why_and_what_to_do_instead() {
    let name = "pins_shown";
    let howdah = pooler(name).start();
    let mut raw = Raw::login(howdah.port(), &login(name).parameter("application_name", "reports"));
    raw.sql("create temp table t (a int)");
    eventually(LIMIT, || howdah.admin("SHOW PINS").len() == 1);
    for (column, value) in [
        ("database", name),
        ("user", name),
        ("application_name", "reports"),
        ("reason", "temporary object"),
        ("current", "1"),
        ("total", "1"),
    ] {
        assert_eq!(pin(&howdah, "CREATE", column), value, "{column}");
    }
    assert!(pin(&howdah, "CREATE", "hint").contains("ON COMMIT DROP"));
    raw.sql("drop table t");
    eventually(LIMIT, || pin(&howdah, "CREATE", "current") == "0");
    assert_eq!(pin(&howdah, "CREATE", "total"), "1");
}

#[test]
fn reasons_come_and_go_one_by_one() {
    let name = "pins_reasons";
    let howdah = pooler(name).start();
    let mut raw = howdah.session(name, name);
    let shown = |raw: &mut Raw, sql: &str, wanted: &str| {
        raw.sql(sql);
        eventually_shown(&howdah, "SHOW CLIENTS", |rows| {
            let row = rows.iter().find(|row| cell(row, "user") == Some(name));
            row.is_some_and(|row| cell(row, "pin_reason").unwrap_or_default() == wanted)
        });
    };
    shown(&mut raw, "select 1", "");
    shown(&mut raw, "create temp table t (a int)", "temporary object");
    shown(&mut raw, LOCK, "temporary object, session advisory lock");
    shown(&mut raw, "drop table t", "session advisory lock");
    shown(&mut raw, "select pg_advisory_unlock(1)", "");
    assert_eq!(howdah.admin("SHOW PINS").len(), 2, "both are counted");
    assert!(howdah.admin("SHOW PINS").iter().all(|row| cell(row, "current") == Some("0")));
}

#[test]
fn client_and_server_and_pool_show_that_one_is_kept() {
    let name = "pins_columns";
    let howdah = pooler(name).start();
    let raw = keeper(&howdah, name, 1);
    wait_for_pool(&howdah, name, &[("sv_pinned", "1"), ("sv_active", "1")]);
    eventually(LIMIT, || {
        howdah.admin_value("SHOW CLIENTS", &[("user", name)], "pinned_since").starts_with("20")
    });
    assert_eq!(howdah.admin_value("SHOW SERVERS", &[("database", name)], "pinned"), "1");
    eventually(LIMIT, || howdah.admin_value("SHOW STATS", &[("database", name)], "total_pin_count") == "1");
    raw.close();
    wait_for_pool(&howdah, name, &[("sv_pinned", "0"), ("sv_active", "0")]);
    eventually(LIMIT, || pin(&howdah, "SELECT", "current") == "0");
}

#[test]
fn log_says_once_a_pin_what_keeps_the_server() {
    let name = "pins_log";
    let howdah = pooler(name).start();
    let mut raw = keeper(&howdah, name, 1);
    howdah.wait_for_log("keeps its server: session advisory lock by SELECT, until pg_advisory_unlock");
    raw.sql("select pg_advisory_lock(2)");
    raw.sql("select 1");
    assert_eq!(howdah.log().matches("keeps its server").count(), 1);
}

#[test]
fn client_is_told_by_a_notice_if_that_is_asked_for() {
    let name = "pins_notice";
    let howdah = pooler(name).setting("notify_pins", "1").start();
    let mut raw = howdah.session(name, name);
    raw.send(query(LOCK));
    loop {
        let message = raw.recv();
        if message.tag == b'N' {
            assert!(message.text().contains("session advisory lock"), "{}", message.text());
            break;
        }
    }
    raw.sql("select 1");
}

#[test]
fn share_of_the_pool_is_kept_for_clients_without_state() {
    let name = "pins_share";
    let howdah = limited(name, "4", "50%");
    let _keepers = [keeper(&howdah, name, 1), keeper(&howdah, name, 2)];
    let mut third = howdah.session(name, name);
    third.send(query("select pg_advisory_lock(3)"));
    wait_for_pool(&howdah, name, &[("sv_pinned", "2"), ("cl_waiting", "1")]);
    let mut others = [howdah.session(name, name), howdah.session(name, name)];
    for other in &mut others {
        other.sql("begin");
        assert_eq!(other.value("select 1"), "1");
    }
    assert!(servers_of(name) <= 4);
}

/// Four ways to run the same statement.
fn ways(sql: &str) -> Vec<Vec<u8>> {
    vec![
        query(sql),
        all(&[parse("", sql, &[]), bind("", "", &[]), execute("", 0), sync()]),
        all(&[parse("s", sql, &[]), bind("", "s", &[]), execute("", 0), sync()]),
        all(&[bind("", "before", &[]), execute("", 0), sync()]),
    ]
}

#[test]
fn who_waits_to_keep_a_server_gets_one_in_turn() {
    let name = "pins_turn";
    let howdah = limited(name, "4", "1");
    let mut first = keeper(&howdah, name, 1);
    let sql = "select pg_advisory_lock(2)";
    let mut waiting = Vec::new();
    for (number, bytes) in ways(sql).into_iter().enumerate() {
        let mut raw = howdah.session(name, name);
        if number == 3 {
            raw.ask(all(&[parse("before", sql, &[]), describe_statement("before"), sync()]));
        }
        raw.send(bytes);
        // Nobody waits for a server any more: they wait to keep one.
        let wanted = [("cl_waiting", &*(number + 1).to_string()), ("sv_active", "1"), ("sv_login", "0")];
        wait_for_pool(&howdah, name, &wanted);
        waiting.push(raw);
    }
    first.sql("select pg_advisory_unlock_all()");
    for (at, raw) in waiting.iter_mut().enumerate() {
        let answer = raw.answers(1);
        assert!(answer.contains("C(SELECT 1)"), "{at}: {answer}");
        wait_for_pool(&howdah, name, &[("cl_waiting", &(3 - at).to_string()), ("sv_pinned", "1")]);
        raw.sql("select pg_advisory_unlock_all()");
    }
    wait_for_pool(&howdah, name, &[("cl_waiting", "0"), ("sv_pinned", "0")]);
}

#[test]
fn server_that_is_being_set_up_for_a_client_is_given_back_only_when_it_is() {
    let name = "pins_settings";
    let howdah = limited(name, "2", "1");
    let mut first = keeper(&howdah, name, 1);
    let mut second = howdah.session(name, name);
    let mut third = howdah.session(name, name);
    for size in ["5MB", "5MB", "6MB", "6MB"] {
        second.sql(&format!("set work_mem = '{size}'"));
        assert_eq!(third.value("show work_mem"), "4MB");
        second.send(query("select pg_advisory_lock(2)"));
        wait_for_pool(&howdah, name, &[("cl_waiting", "1"), ("sv_pinned", "1"), ("sv_idle", "1")]);
        assert_eq!(third.value("show work_mem"), "4MB");
        first.sql("select pg_advisory_unlock_all()");
        assert!(second.answers(1).contains("C(SELECT 1)"));
        assert_eq!(second.value("show work_mem"), size);
        second.sql("select pg_advisory_unlock_all()");
        first.sql(LOCK);
    }
}

#[test]
fn wait_to_keep_a_server_ends_with_its_cause() {
    let name = "pins_timeout";
    let howdah = pooler(name)
        .setting("default_pool_size", "4")
        .setting("max_pinned", "1")
        .setting("query_wait_timeout", "1")
        .start();
    let _first = keeper(&howdah, name, 1);
    let mut second = howdah.session(name, name);
    second.send(query(LOCK));
    let words = "query_wait_timeout (max_pinned: as many clients as may keep their server for session state)";
    check_fatal(&next_error(&mut second), "53300", words);
}

#[test]
fn who_waits_to_keep_a_server_can_be_canceled_and_goes_on() {
    let name = "pins_cancel";
    let howdah = limited(name, "4", "1");
    let mut first = keeper(&howdah, name, 1);
    let mut second = howdah.session(name, name);
    // Now there is a server for it: whoever waits from here on waits to keep one.
    second.sql("select 1");
    second.send(query(LOCK));
    wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
    second.cancel();
    assert_eq!(next_error(&mut second).sqlstate, "57014");
    second.until_ready();
    assert_eq!(second.value("select 7"), "7", "without any wait");
    first.sql("select pg_advisory_unlock_all()");
    second.sql(LOCK);
    wait_for_pool(&howdah, name, &[("sv_pinned", "1")]);
}

#[test]
fn server_of_a_client_that_vanishes_frees_its_place() {
    let name = "pins_vanish";
    let howdah = limited(name, "2", "1");
    for statement in [LOCK, "select setseed(0.5)"] {
        let mut first = howdah.session(name, name);
        first.sql(statement);
        wait_for_pool(&howdah, name, &[("sv_pinned", "1")]);
        let mut second = howdah.session(name, name);
        second.send(query(LOCK));
        wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
        first.reset();
        assert!(second.answers(1).contains("C(SELECT 1)"));
        second.sql("select pg_advisory_unlock_all()");
        wait_for_pool(&howdah, name, &[("sv_pinned", "0")]);
    }
}

#[test]
fn state_made_in_a_transaction_counts_beyond_the_limit() {
    let name = "pins_beyond";
    let howdah = limited(name, "4", "1");
    let _first = keeper(&howdah, name, 1);
    let mut second = howdah.session(name, name);
    for sql in ["begin", "select 1", "create temp table t (a int)", "commit"] {
        second.sql(sql);
    }
    wait_for_pool(&howdah, name, &[("sv_pinned", "2"), ("cl_waiting", "0")]);
    second.sql("insert into t values (1)");
    second.sql("drop table t");
    wait_for_pool(&howdah, name, &[("sv_pinned", "1")]);
}

#[test]
fn client_whose_kept_server_is_lost_is_told_what_went_with_it() {
    let name = "pins_lost";
    let howdah = pooler(name).start();
    for before in ["select 1", "begin"] {
        let mut raw = howdah.session(name, name);
        raw.sql("create temp table t (a int)");
        raw.sql(LOCK);
        let pid = raw.value("select pg_backend_pid()");
        raw.sql(before);
        howdah.session(name, name).sql(&format!("select pg_terminate_backend({pid})"));
        let words = "the server was lost, and with it session state: temporary object, session advisory lock \
                     (the server said: terminating connection due to administrator command)";
        check_fatal(&next_error(&mut raw), "08006", words);
    }
}

#[test]
fn statement_that_fails_keeps_no_place() {
    let name = "pins_failed";
    let howdah = limited(name, "4", "1");
    let mut raw = howdah.session(name, name);
    for _ in 0..3 {
        assert!(raw.ask(query("select pg_advisory_lock('nonsense')")).contains('E'));
        wait_for_pool(&howdah, name, &[("sv_pinned", "0"), ("sv_active", "0")]);
    }
    raw.sql(LOCK);
    wait_for_pool(&howdah, name, &[("sv_pinned", "1")]);
}

#[test]
fn function_named_in_the_settings_keeps_the_server() {
    let name = "pins_function";
    let howdah = pooler(name).setting("state_functions", "set_tenant").start();
    let mut raw = howdah.session(name, name);
    raw.sql("create function set_tenant() returns int language sql as 'select 1'");
    raw.sql("select set_tenant()");
    wait_for_pool(&howdah, name, &[("sv_pinned", "1")]);
    assert_eq!(pin(&howdah, "SELECT", "reason"), "function named in the settings");
}

#[test]
fn session_state_is_set_for_a_user_before_its_database() {
    let name = "pins_modes";
    let server = stage::server_for(name);
    let entry = format!("{} session_state=off", server.connection(name));
    let other = "pins_modes_carry";
    server.create_role(other, stage::PASSWORD);
    let howdah = stage::bare()
        .database(name, &entry)
        .line("users", other, "session_state=carry")
        .user(name, stage::PASSWORD)
        .user(other, stage::PASSWORD)
        .start();
    let mut off = howdah.session(name, name);
    off.sql(LOCK);
    let mut carry = howdah.session(other, name);
    carry.sql("select pg_advisory_lock(2)");
    eventually(LIMIT, || howdah.admin("SHOW PINS").len() == 1);
    assert_eq!(pin(&howdah, "SELECT", "user"), other);
}

#[test]
fn limit_that_is_raised_lets_in_who_waits() {
    let name = "pins_raised";
    let mut howdah = limited(name, "4", "1");
    let _first = keeper(&howdah, name, 1);
    let mut second = howdah.session(name, name);
    second.send(query("select pg_advisory_lock(2)"));
    wait_for_pool(&howdah, name, &[("cl_waiting", "1")]);
    howdah.reload_with("max_pinned", "100%");
    assert!(second.answers(1).contains("C(SELECT 1)"));
}

#[test]
fn mistakes_in_the_settings_are_answered_with_what_is_allowed() {
    for (line, wanted) in [
        ("session_state = cary", "allowed: one of carry, pin, refuse, off; did you mean carry?"),
        ("max_pinned = half", "allowed: a whole number of 0 or more, or 1% to 100%"),
        ("max_pinned = 120%", "allowed: a whole number of 0 or more, or 1% to 100%"),
        ("state_functions = app.f, g()", "allowed: names of functions between commas, without schema"),
        ("notify_pins = yes", "allowed: 0 or 1"),
    ] {
        let directory = TempDir::new();
        directory.write("pgbouncer.ini", format!("[pgbouncer]\n{line}\n"));
        let (output, said) = run(&["check", "pgbouncer.ini"], directory.path());
        assert!(!output.status.success() && said.contains(wanted), "{line}: {said}");
    }
}
