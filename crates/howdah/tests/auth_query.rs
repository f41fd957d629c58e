//! Users that only PostgreSQL knows: looked up anew for each login, by a session that no client can touch.
#![allow(clippy::disallowed_methods)] // logins have a limit of time

mod stage;

use stage::{LIMIT, PASSWORD, bare, check_fatal, login, refused, server_for};
use testkit::message::{self, query};
use testkit::{Howdah, HowdahOptions, Login, Postgres, Raw, cell, eventually};

/// The user who asks for all others; he owns everything, as the default query needs.
fn asker(name: &str) -> String {
    format!("asker_{name}")
}

/// A pooler that knows its asker and nobody else, in front of a role and a database of this name.
fn asking(name: &str) -> HowdahOptions {
    let server = server_for(name);
    server.sql(&format!("create role {} superuser login password '{PASSWORD}'", asker(name)));
    bare()
        .database(name, &server.connection(name))
        .setting("auth_type", "scram-sha-256")
        .setting("auth_user", &asker(name))
        .user(&asker(name), PASSWORD)
}

#[track_caller]
fn check_wrong(howdah: &Howdah, login: &Login) {
    let refusal = refused(howdah, login);
    assert_eq!((refusal.severity.as_str(), refusal.sqlstate.as_str()), ("FATAL", "28P01"), "{refusal:?}");
}

fn check_looked_up(name: &str, auth_type: &str) {
    let howdah = asking(name).setting("auth_type", auth_type).start();
    let server = Postgres::shared_wanted();
    for _ in 0..2 {
        let mut raw = howdah.login(&login(name));
        // The session is the client's own, not the asker's.
        assert_eq!(raw.value("select session_user || ' ' || current_user"), format!("{name} {name}"));
        check_wrong(&howdah, &login(name).password("wrong"));
        check_wrong(&howdah, &Login::new("no_such_role", name).password(PASSWORD));
    }
    server.sql(&format!("alter role {name} password 'another'"));
    check_wrong(&howdah, &login(name));
    assert_eq!(howdah.login(&login(name).password("another")).value("select 1"), "1");
    server.sql(&format!("alter role {name} nologin"));
    check_wrong(&howdah, &login(name).password("another"));
}

#[test]
fn scram_verifier_is_looked_up_for_each_login() {
    check_looked_up("query_scram", "scram-sha-256");
}

#[test]
fn password_is_compared_with_what_is_looked_up() {
    check_looked_up("query_plain", "plain");
}

#[test]
fn md5_becomes_scram_for_a_verifier_that_is_looked_up() {
    check_looked_up("query_md5", "md5");
}

#[test]
fn unknown_role_is_told_as_a_wrong_password_is() {
    let name = "query_same";
    let howdah = asking(name).start();
    // The name has the length of the other.
    let unknown = "query_sane";
    let exchange = |user: &str| {
        let mut raw = Raw::connect(howdah.port());
        let refusal = Login::new(user, name).password("wrong").run(&mut raw).expect_err("wrong password");
        (raw.seen(), refusal.sqlstate, refusal.text.replace(user, name))
    };
    assert_eq!(exchange(unknown), exchange(name));
    let elsewhere = refused(&howdah, &Login::new(name, "no_such_database").password("wrong"));
    assert_eq!(elsewhere.text, exchange(name).2);
}

#[test]
fn valid_until_holds_for_first_and_later_logins() {
    let name = "query_until";
    let howdah = asking(name).start();
    let server = Postgres::shared_wanted();
    let until = |text: &str| server.sql(&format!("alter role {name} valid until {text}"));
    until("'2001-01-01'");
    check_wrong(&howdah, &login(name));
    for good in ["'infinity'", "'2999-01-01'"] {
        until(good);
        assert_eq!(howdah.login(&login(name)).value("select 1"), "1", "{good}");
    }
    server.sql(&format!(
        "do $$ begin execute format('alter role {name} valid until %L', now() + interval '2 s'); end $$"
    ));
    let mut inside = howdah.login(&login(name));
    eventually(LIMIT, || Raw::try_login(howdah.port(), &login(name)).is_err());
    check_wrong(&howdah, &login(name));
    // The pool is warm, and whoever is in stays in.
    assert_eq!(inside.value("select 1"), "1");
}

#[test]
fn role_without_a_password_never_gets_in() {
    let name = "query_null";
    let howdah = asking(name).setting("auth_type", "plain").start();
    Postgres::shared_wanted().sql(&format!("alter role {name} password null"));
    for password in ["", "null", "NULL", PASSWORD] {
        check_wrong(&howdah, &login(name).password(password));
    }
}

#[test]
fn nobody_becomes_the_asker() {
    let name = "query_asker";
    let howdah = asking(name).start();
    check_wrong(&howdah, &Login::new("no_such_role", name).password(PASSWORD));
    check_wrong(&howdah, &Login::new(&asker(name), name).password("wrong"));
    // The asker is a user of the userlist like any other.
    let mut raw = howdah.login(&Login::new(&asker(name), name).password(PASSWORD));
    assert_eq!(raw.value("select current_user"), asker(name));
}

#[test]
fn odd_names_are_names_and_nothing_else() {
    let name = "query_odd";
    let howdah = asking(name).start();
    let server = Postgres::shared_wanted();
    server.session(name).sql("create table kept (n int); insert into kept values (1)");
    let long = "l".repeat(63);
    let odd = [
        "'; drop table kept; --",
        "\"quoted\"",
        "a'b",
        "$1",
        "\\",
        "\u{1f418}",
        " ",
        &long,
        "%s%n",
        "Q'||(select 1)||'",
    ];
    for user in odd {
        check_wrong(&howdah, &Login::new(user, name).password(PASSWORD));
        server.create_role(user, PASSWORD);
        let mut raw = howdah.login(&Login::new(user, name).password(PASSWORD));
        assert_eq!(raw.value("select current_user"), user);
    }
    // Longer names are cut by PostgreSQL, here as there: nobody becomes anybody else by it.
    check_wrong(&howdah, &Login::new(&"m".repeat(64), name).password(PASSWORD));
    let mut raw = Raw::connect(howdah.port());
    let mut startup = message::startup((3, 0), &[("user", "bad_xx"), ("database", name)]);
    let place = startup.windows(2).position(|pair| pair == b"xx").expect("its place");
    startup[place..place + 2].copy_from_slice(b"\xff\xc0");
    raw.send(startup);
    raw.send(message::sasl_initial("SCRAM-SHA-256", b"n,,n=,r=fixedfixed"));
    raw.half_close();
    assert!(!raw.expect_closed().contains('Z'), "{}", raw.seen());
    assert_eq!(server.session(name).value("select n from kept"), "1");
    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
}

#[test]
fn query_of_ones_own_is_used_for_its_database() {
    let name = "query_own";
    let server = server_for(name);
    server.create_role("query_own_asker", PASSWORD);
    let mut session = server.session(name);
    session.sql(
        "create function lookup(text) returns table (name text, secret text) security definer language sql \
         as $$ select rolname::text, rolpassword from pg_catalog.pg_authid where rolname = $1 $$",
    );
    let entry = format!(
        "{} auth_user=query_own_asker auth_query='select name, secret from lookup($1)'",
        server.connection(name)
    );
    let howdah = bare()
        .database(name, &entry)
        .database("unasked", &server.connection(name))
        .setting("auth_type", "scram-sha-256")
        .user("query_own_asker", PASSWORD)
        .start();
    assert_eq!(howdah.login(&login(name)).value("select current_user"), name);
    check_wrong(&howdah, &Login::new(name, "unasked").password(PASSWORD));
}

fn check_failing_query(name: &str, auth_query: &str) {
    let howdah = asking(name).setting("auth_query", auth_query).setting("client_login_timeout", "10").start();
    for _ in 0..2 {
        check_fatal(&refused(&howdah, &login(name)), "F0000", "bouncer config error");
    }
    assert_eq!(howdah.login(&Login::new(&asker(name), name).password(PASSWORD)).value("select 1"), "1");
}

#[test]
fn query_with_an_error_is_told_as_a_fault_of_the_settings() {
    check_failing_query("query_error", "select nonsense from nowhere where $1 = ''");
}

#[test]
fn query_with_three_columns_is_told_as_a_fault_of_the_settings() {
    check_failing_query("query_columns", "select $1::text, 'x'::text, 'y'::text");
}

#[test]
fn query_runs_in_auth_dbname() {
    let name = "query_dbname";
    let server = server_for(name);
    server.create_database("query_dbname_auth", name);
    server.sql(&format!("create role {} superuser login password '{PASSWORD}'", asker(name)));
    let howdah = bare()
        .database(name, &server.connection(name))
        .database("lookups", &server.connection("query_dbname_auth"))
        .setting("auth_type", "scram-sha-256")
        .setting("auth_user", &asker(name))
        .setting("auth_dbname", "lookups")
        .user(&asker(name), PASSWORD)
        .start();
    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
    let sql = format!(
        "select string_agg(distinct datname, ' ') from pg_stat_activity where usename = '{}'",
        asker(name)
    );
    assert_eq!(server.session("postgres").value(&sql), "query_dbname_auth");
}

#[test]
fn many_lookups_at_once_share_the_servers_of_the_asker() {
    let name = "query_many";
    let howdah = asking(name).setting("default_pool_size", "2").start();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(howdah.login(&login(name)).value("select 1"), "1"));
        }
    });
    let rows = howdah.admin("SHOW POOLS");
    let of_asker = rows.iter().filter(|row| cell(row, "user") == Some(&asker(name)));
    for row in of_asker {
        let count = |column| cell(row, column).and_then(|count| count.parse::<u32>().ok()).expect("a count");
        assert!(count("sv_active") + count("sv_idle") + count("sv_used") + count("sv_login") <= 2, "{row:?}");
    }
}

/// A schema with a table and an operator that would catch a lookup whose search_path a client could set.
fn set_trap(name: &str) {
    let mut session = Postgres::shared_wanted().session(name);
    session.sql(
        "create schema evil; grant usage on schema evil to public;
         create table evil.caught (who text);
         create function evil.spring() returns text language plpgsql security definer
           as $$ begin insert into evil.caught values (session_user); return 'evil-password'; end $$;
         create view evil.pg_authid as
           select 'victim'::name as rolname, true as rolcanlogin, null::timestamptz as rolvaliduntil,
             evil.spring() as rolpassword;
         create function evil.same(name, text) returns boolean language plpgsql security definer
           as $$ begin insert into evil.caught values (session_user); return true; end $$;
         create operator evil.= (leftarg = name, rightarg = text, function = evil.same);
         grant select on evil.pg_authid to public",
    );
}

#[test]
fn search_path_of_a_client_reaches_no_lookup() {
    let name = "query_trap";
    let server = server_for(name);
    server.sql(&format!("create role {} superuser login password '{PASSWORD}'", asker(name)));
    set_trap(name);
    // The trap works where somebody walks into it.
    let mut session = server.session(name);
    session.sql("set search_path = evil, pg_catalog");
    assert_eq!(session.value("select rolpassword from pg_authid where rolname = 'victim'"), "evil-password");
    session.sql("truncate evil.caught");
    let howdah = bare()
        .database(name, &server.connection(name))
        .setting("auth_type", "plain")
        .setting("auth_user", &asker(name))
        .setting("track_extra_parameters", "search_path, IntervalStyle")
        .setting("default_pool_size", "1")
        .user(&asker(name), PASSWORD)
        .start();
    let victim = || Login::new("victim", name).password("evil-password");
    let tries = [
        victim().parameter("search_path", "evil, pg_catalog"),
        victim().parameter("search_path", "evil,pg_catalog,pg_temp"),
        victim().parameter("options", "-c search_path=evil,pg_catalog"),
        victim().parameter("options", "--search_path=evil,pg_catalog -c default_transaction_read_only=on"),
        login(name).parameter("search_path", "evil, pg_catalog"),
    ];
    for _ in 0..3 {
        for login in &tries {
            // Whether the last one is let in is its own business; nobody else is.
            let _ = Raw::try_login(howdah.port(), login);
        }
        check_wrong(&howdah, &victim());
    }
    assert_eq!(session.value("select count(*) from evil.caught"), "0");
    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
}

#[test]
fn lookup_survives_the_end_of_its_server() {
    let name = "query_killed";
    let howdah = asking(name).start();
    howdah.login(&login(name)).sql("select 1");
    let server = Postgres::shared_wanted();
    for _ in 0..3 {
        server.sql(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{}'",
            asker(name)
        ));
        eventually(LIMIT, || Raw::try_login(howdah.port(), &login(name)).is_ok());
    }
    assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
    check_wrong(&howdah, &login(name).password("wrong"));
}
