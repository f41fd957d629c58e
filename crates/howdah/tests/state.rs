//! Session state in transaction mode, against real servers: the owner keeps it, nobody else sees it.
//!
//! A pool of one server, so that every client meets what the others have left there.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{SESSION, TRANSACTION, USER, pooler};
use testkit::message::{all, parse, query, sync};
use testkit::{Howdah, Login, Raw, Version};

fn start() -> Howdah {
    pooler(Version::wanted()).setting("default_pool_size", "1").start()
}

#[track_caller]
fn shows(client: &mut Raw, name: &str, value: &str) {
    assert_eq!(client.value(&format!("show {name}")), value, "{name}");
}

#[test]
fn settings_go_with_their_client() {
    let howdah = start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    for (set, name, value, default) in [
        ("set work_mem = '1234kB'", "work_mem", "1234kB", "4MB"),
        ("set search_path to a, \"B c\", public", "search_path", "a, \"B c\", public", "\"$user\", public"),
        ("set my.own = 'it''s'", "my.own", "it's", ""),
        ("select set_config('my.other', 'x y', false)", "my.other", "x y", ""),
        ("select set_config('my.expression', lower('ABC'), false)", "my.expression", "abc", ""),
        ("set statement_timeout = 12345", "statement_timeout", "12345ms", "0"),
        ("do $$ begin perform set_config('lock_timeout', '77', false); end $$", "lock_timeout", "77ms", "0"),
        (
            "set session characteristics as transaction read only",
            "default_transaction_read_only",
            "on",
            "off",
        ),
        ("begin; set geqo = off; commit", "geqo", "off", "on"),
    ] {
        own.sql(set);
        for _ in 0..2 {
            let shown = other.try_sql(&format!("select coalesce(current_setting('{name}', true), '')"));
            assert!(shown.is_ok(), "{set}");
            assert_eq!(
                other.value(&format!("select coalesce(current_setting('{name}', true), '')")),
                default,
                "{set}"
            );
            shows(&mut own, name, value);
        }
    }
    own.sql("reset all");
    for (name, default) in
        [("work_mem", "4MB"), ("statement_timeout", "0"), ("geqo", "on"), ("lock_timeout", "0")]
    {
        shows(&mut own, name, default);
    }
}

#[test]
fn settings_are_undone_with_their_transaction() {
    let howdah = start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    for text in [
        "begin; set work_mem = '1MB'; rollback",
        "set work_mem = '1MB'; select 1/0",
        "begin; savepoint s; set work_mem = '1MB'; rollback to s; commit",
        "begin; set local work_mem = '1MB'; commit",
    ] {
        let _error = own.try_sql(text);
        assert_eq!(other.value("show work_mem"), "4MB", "{text}");
        assert_eq!(own.value("show work_mem"), "4MB", "{text}");
    }
    own.sql("begin");
    own.sql("set work_mem = '2MB'");
    own.sql("savepoint s");
    own.sql("set work_mem = '3MB'");
    own.sql("rollback to s");
    own.sql("commit");
    assert_eq!(other.value("show work_mem"), "4MB");
    assert_eq!(own.value("show work_mem"), "2MB");
}

#[test]
fn a_role_goes_with_its_client() {
    let howdah = start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    own.sql("create role somebody");
    let me = own.value("select current_user");
    own.sql("set role somebody");
    assert_eq!(other.value("select current_user"), me);
    assert_eq!(own.value("select current_user"), "somebody");
    own.sql("reset role");
    assert_eq!(own.value("select current_user"), me);
    own.sql("set session authorization somebody");
    assert_eq!(other.value("select session_user"), me);
    assert_eq!(own.value("select session_user"), "somebody");
    own.sql("reset session authorization");
    assert_eq!(own.value("select session_user"), me);
    own.sql("set session authorization somebody");
    own.sql("discard all");
    assert_eq!(own.value("select session_user"), me);
    own.sql("drop role somebody");
}

/// PostgreSQL's list of settings leaves roles out.
#[test]
fn a_role_is_nobody_elses_after_a_program() {
    let howdah = start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    own.sql("drop role if exists programs; create role programs");
    let me = own.value("select current_user");
    for (set, program) in [
        ("set role programs", "do 'begin end'"),
        ("select 1", "do 'begin set role programs; end'"),
        ("select 1", "do 'begin perform set_config(''role'', ''programs'', false); end'"),
    ] {
        own.sql(set);
        own.sql(program);
        assert_eq!(other.value("select current_user"), me, "{set}; {program}");
        assert_eq!(own.value("select current_user"), "programs", "{set}; {program}");
        own.sql("do 'begin reset role; end'");
        assert_eq!(other.value("select current_user"), me);
        assert_eq!(own.value("select current_user"), me);
    }
    own.sql("drop role programs");
}

/// What makes it, a question that shows it, what the owner and everybody else answer, and what ends it.
const PINNED: [(&str, &str, &str, &str, &str); 4] = [
    (
        "select pg_advisory_lock(42)",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "1",
        "0",
        "select pg_advisory_unlock(42)",
    ),
    (
        "create temp table mine as select 1",
        "select count(*) from pg_class where relname = 'mine' and relnamespace = pg_my_temp_schema()",
        "1",
        "0",
        "drop table mine",
    ),
    (
        "declare c cursor with hold for select 1",
        "select count(*) from pg_cursors where is_holdable",
        "1",
        "0",
        "close c",
    ),
    ("listen mine", "select count(*) from pg_listening_channels()", "1", "0", "unlisten mine"),
];

#[test]
fn what_cannot_be_carried_keeps_the_server_while_it_lasts() {
    // Else LISTEN keeps none.
    let howdah =
        pooler(Version::wanted()).setting("default_pool_size", "2").setting("listen_fanout", "0").start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    for (make, ask, mine, theirs, end) in PINNED {
        own.sql(make);
        let pid = own.value("select pg_backend_pid()");
        for _ in 0..3 {
            assert_eq!(other.value(ask), theirs, "{make}");
            assert_ne!(other.value("select pg_backend_pid()"), pid, "{make}");
            assert_eq!(own.value(ask), mine, "{make}");
            assert_eq!(own.value("select pg_backend_pid()"), pid, "{make}");
        }
        own.sql(end);
        assert_eq!(own.value(ask), theirs, "{end}");
    }
}

#[test]
fn with_one_server_the_next_client_waits_until_the_state_is_gone_or_its_owner() {
    let howdah = start();
    for (make, ask, mine, theirs, end) in PINNED {
        let mut own = howdah.session(USER, TRANSACTION);
        own.sql(make);
        assert_eq!(own.value(ask), mine, "{make}");
        own.sql(end);
        let mut other = howdah.session(USER, TRANSACTION);
        assert_eq!(other.value(ask), theirs, "{make}");
        own.sql(make);
        drop(own);
        // Cleaned behind its owner.
        assert_eq!(other.value(ask), theirs, "{make}");
    }
}

#[test]
fn what_sql_prepares_goes_with_its_client_and_meets_nobody() {
    let howdah = start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    own.sql("create table if not exists prepared_t (n int)");
    own.sql("prepare p (int) as select $1 + 1");
    assert_eq!(other.try_sql("execute p(1)").expect_err("it is another's").sqlstate, "26000");
    other.sql("prepare p (int) as select $1 + 2");
    assert_eq!((own.value("execute p(1)"), other.value("execute p(1)")), ("2".to_owned(), "3".to_owned()));
    other.sql("deallocate p");
    assert_eq!(other.try_sql("execute p(1)").expect_err("it is gone").sqlstate, "26000");
    // It is no matter of a transaction.
    own.sql("begin; prepare q as select 7; insert into prepared_t values (1); rollback");
    assert_eq!(own.value("execute q"), "7");
    other.sql("discard all");
    assert_eq!(own.value("execute q"), "7");
    let error = own.try_sql("select 1; prepare q as select 8").expect_err("the name is in use");
    assert_eq!((&*error.sqlstate, &*error.text), ("42P05", "prepared statement \"q\" already exists"));
    let error = own.try_sql("execute p").expect_err("it wants a parameter");
    assert_eq!(error.text, "wrong number of parameters for prepared statement \"p\"");
    // Nobody keeps the server, whoever has prepared what.
    own.sql("begin");
    own.sql("create temp table made on commit drop as execute p(41)");
    assert_eq!(own.value("select * from made"), "42");
    own.sql("commit");
    own.sql("deallocate all");
    assert_eq!(own.try_sql("execute q").expect_err("it is gone").sqlstate, "26000");
    own.sql("drop table prepared_t");
}

#[test]
fn last_values_of_sequences_are_told_to_nobody_else() {
    let howdah =
        pooler(Version::wanted()).setting("default_pool_size", "3").setting("max_pinned", "2").start();
    let mut own = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    own.sql("create table drawn (id serial, v text)");
    // Nobody asks for it yet: so nobody keeps a server.
    own.sql("insert into drawn (v) values ('x')");
    for client in [&mut own, &mut other] {
        assert_eq!(client.try_sql("select lastval()").expect_err("not defined").sqlstate, "55000");
    }
    assert_eq!(own.value("insert into drawn (v) values ('y') returning id"), "2");
    other.sql("insert into drawn (v) values ('z')");
    for _ in 0..2 {
        assert_eq!(
            (own.value("select lastval()"), other.value("select lastval()")),
            ("2".into(), "3".into())
        );
        assert_eq!(own.value("select currval('drawn_id_seq')"), "2");
    }
    // Another application does not ask: so its clients keep no server.
    let mut third = howdah.login(&Login::new(USER, TRANSACTION).parameter("application_name", "orm"));
    third.sql("insert into drawn (v) values ('b')");
    third.sql("select nextval('drawn_id_seq')");
    // In one transaction it was right before, and is.
    own.sql("discard sequences");
    assert_eq!(own.try_sql("select lastval()").expect_err("not defined").sqlstate, "55000");
    let rows = own.sql("insert into drawn (v) values ('a'); select lastval()");
    assert_eq!(rows[0][0].as_deref(), Some("6"));
    own.sql("discard all");
    other.sql("drop table drawn");
}

#[test]
fn one_text_under_two_time_zones_is_two_statements() {
    let howdah = start();
    let login = |zone: &str| howdah.login(&Login::new(USER, TRANSACTION).parameter("TimeZone", zone));
    let (mut utc, mut tokyo) = (login("UTC"), login("Asia/Tokyo"));
    let sql = "select extract(epoch from '2026-01-01 00:00'::timestamptz)::bigint";
    for client in [&mut utc, &mut tokyo] {
        client.sql(&format!("prepare p as {sql}"));
        client.ask(all(&[parse("s", sql, &[]), sync()]));
    }
    for name in ["p", "s"] {
        assert_eq!(utc.value(&format!("execute {name}")), "1767225600", "{name}");
        assert_eq!(tokyo.value(&format!("execute {name}")), "1767193200", "{name}");
    }
}

#[test]
fn what_sql_prepares_is_prepared_on_each_server_that_its_client_gets() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "3").start();
    let mut own = howdah.session(USER, TRANSACTION);
    own.sql("prepare p as select pg_backend_pid()");
    let mut others: Vec<Raw> = Vec::new();
    let mut pids = std::collections::BTreeSet::new();
    // Each takes the server that was used last.
    for _ in 0..3 {
        pids.insert(own.value("execute p"));
        let mut other = howdah.session(USER, TRANSACTION);
        other.sql("begin");
        others.push(other);
        if others.len() == 3 {
            break;
        }
    }
    assert!(pids.len() > 1, "{pids:?}");
}

#[test]
fn a_reset_goes_back_to_what_the_client_logged_in_with() {
    let howdah = start();
    for database in [TRANSACTION, SESSION] {
        let login =
            Login::new(USER, database).parameter("work_mem", "1234kB").parameter("TimeZone", "Asia/Kolkata");
        let mut own = howdah.login(&login);
        for text in ["reset all", "discard all", "reset work_mem; reset timezone"] {
            own.sql("set work_mem = '2MB'; set timezone = 'UTC'");
            own.sql(text);
            shows(&mut own, "work_mem", "1234kB");
            shows(&mut own, "timezone", "Asia/Kolkata");
            assert_eq!(own.parameters["TimeZone"], "Asia/Kolkata", "{text}");
        }
        own.sql("begin; set work_mem = '2MB'");
        own.sql("reset all");
        shows(&mut own, "work_mem", "1234kB");
        own.sql("commit");
        // Nobody waits for an answer in between.
        own.send(query("set work_mem = '2MB'"));
        own.send(query("reset all"));
        own.send(query("show work_mem"));
        own.answers(2);
        let shown = own.until_ready();
        assert!(shown.iter().any(|message| message.body.windows(6).any(|bytes| bytes == b"1234kB")));
    }
}

#[test]
fn what_would_keep_a_server_is_refused_where_that_is_wanted() {
    let howdah = pooler(Version::wanted())
        .setting("default_pool_size", "1")
        .setting("session_state", "refuse")
        .start();
    let mut own = howdah.session(USER, TRANSACTION);
    own.sql("set work_mem = '1234kB'");
    own.sql("begin");
    let error = own.try_sql("select pg_advisory_lock(1)").expect_err("refused");
    assert_eq!(error.sqlstate, "0A000");
    assert!(error.text.contains("session advisory lock is not allowed here"), "{}", error.text);
    let aborted = own.try_sql("select 1").expect_err("the transaction is aborted");
    assert_eq!(aborted.sqlstate, "25P02");
    own.sql("rollback");
    shows(&mut own, "work_mem", "1234kB");
    assert_eq!(
        own.value("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"),
        "0"
    );
}
