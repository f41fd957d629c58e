//! Names of users with an @ in them, and the suffixes that some services want.
#![allow(clippy::disallowed_methods)] // a client that waits is a thread

mod stage;

use stage::{LIMIT, PASSWORD, bare, refused};
use testkit::message::{self, query};
use testkit::{Login, Postgres, PostgresOptions, Version, cell, eventually};

const NAME: &str = "ann@my-server";
const HBA: &str =
    "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

fn server() -> Postgres {
    let server = PostgresOptions::new(Version::V15).hba(HBA).start();
    for name in [NAME, "ann", "look@up"] {
        server.create_role(name, PASSWORD);
    }
    server.sql(&format!(
        "grant pg_read_all_stats to \"{NAME}\"; create function lookup(n text, out u text, out p text) language sql security definer as \
         $$select rolname::text, rolpassword from pg_authid where rolname = n$$"
    ));
    server
}

fn login(database: &str) -> Login {
    Login::new(NAME, database).password(PASSWORD)
}

#[test]
fn a_name_with_an_at_is_a_name() {
    let server = server();
    let entry = server.connection("postgres");
    let rules = format!(
        "host pgbouncer all all trust\nhost db {NAME} 127.0.0.1/32 scram-sha-256\nhost quoted \"{NAME}\" 127.0.0.1/32 md5\n\
        host looked all 127.0.0.1/32 scram-sha-256\nhost forced all 127.0.0.1/32 scram-sha-256\n"
    );
    let howdah = bare()
        .database("db", &entry)
        .database("quoted", &entry)
        .database("forced", &format!("{entry} user={NAME} password={PASSWORD}"))
        .database("looked", &format!("{entry} auth_user=look@up auth_query='select u, p from lookup($1)'"))
        .user(NAME, PASSWORD)
        .user("bob", PASSWORD)
        .user("look@up", PASSWORD)
        .setting("auth_type", "hba")
        .hba(&rules)
        .line("users", &format!("'{NAME}'"), "pool_size=1")
        .start();
    for database in ["db", "quoted", "looked"] {
        assert_eq!(howdah.login(&login(database)).value("select session_user"), NAME, "{database}");
        assert_eq!(refused(&howdah, &Login::new(NAME, database).password("wrong")).sqlstate, "28P01");
    }
    let bob = Login::new("bob", "forced").password(PASSWORD);
    assert_eq!(howdah.login(&bob).value("select session_user"), NAME);
    assert_eq!(refused(&howdah, &Login::new("bob", "db").password(PASSWORD)).sqlstate, "28000");
    assert_eq!(howdah.admin_value("SHOW POOLS", &[("database", "db")], "user"), NAME);
    assert_eq!(howdah.admin_value("SHOW USERS", &[("name", NAME)], "pool_size").trim(), "1");
    let mut victim = howdah.login(&login("db"));
    victim.send(query("select pg_sleep(100)"));
    let running =
        "select count(*) from pg_stat_activity where query = 'select pg_sleep(100)' and state = 'active'";
    eventually(LIMIT, || server.session("postgres").value(running) == "1");
    victim.cancel();
    assert!(message::is_canceled(&victim.answers(1), 'I'));
    let clients = howdah.admin("SHOW CLIENTS");
    assert!(clients.iter().any(|row| cell(row, "user") == Some(NAME)));
}

#[test]
fn suffixes_go_on_and_come_off() {
    let server = server();
    let entry = server.connection("postgres");
    let howdah = bare()
        .database("wants", &format!("{entry} server_user_suffix=@my-server"))
        .database("sends", &format!("{entry} client_user_suffix=@my-server"))
        .database("own", &format!("{entry} server_user_suffix=@my-server pool_mode=passthrough"))
        .setting("auth_type", "scram-sha-256")
        .user("ann", PASSWORD)
        .start();
    let plain = |database: &str| Login::new("ann", database).password(PASSWORD);
    assert_eq!(howdah.login(&plain("wants")).value("select session_user"), NAME);
    assert_eq!(howdah.login(&plain("sends")).value("select session_user"), "ann");
    assert_eq!(howdah.login(&login("sends")).value("select session_user"), "ann");
    assert_eq!(howdah.login(&plain("own")).value("select session_user"), NAME);
    assert_eq!(howdah.login(&login("own")).value("select session_user"), NAME);
    assert_eq!(howdah.admin_value("SHOW POOLS", &[("database", "sends")], "user"), "ann");
    // Not where nobody said so.
    assert_eq!(refused(&howdah, &login("wants")).sqlstate, "28P01");
}
