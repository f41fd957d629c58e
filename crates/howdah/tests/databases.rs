//! Databases that are made, dropped, copied and renamed by applications that have closed their connections: the servers that
//! are left idle are the pooler's, and stand in nobody's way.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{BINARY, USER};
use testkit::message::{all, bind, execute, parse, query, sync};
use testkit::{Howdah, HowdahOptions, Login, Postgres, Raw, Version};

/// Any database of the shared server.
fn pooler(version: Version) -> HowdahOptions {
    let server = Postgres::shared(version);
    Howdah::new(BINARY)
        .database("*", &format!("host=127.0.0.1 port={}", server.port()))
        .setting("default_pool_size", "5")
        .setting("workers", "2")
        .user(USER, "")
}

/// A database of this name, with a few servers idle in it and nobody connected.
#[track_caller]
fn used(howdah: &Howdah, name: &str) {
    let mut admin = howdah.session(USER, USER);
    admin.ask(query(&format!("drop database if exists {name}")));
    assert_eq!(admin.ask(query(&format!("create database {name}"))), "C(CREATE DATABASE) ZI");
    let mut clients: Vec<Raw> = (0..3).map(|_| howdah.session(USER, name)).collect();
    for client in &mut clients {
        assert_eq!(client.ask(query("begin")), "C(BEGIN) ZT");
    }
    for client in &mut clients {
        assert_eq!(client.ask(query("commit")), "C(COMMIT) ZI");
    }
    clients.into_iter().for_each(Raw::close);
}

fn extended(sql: &str) -> Vec<u8> {
    all(&[parse("", sql, &[]), bind("", "", &[]), execute("", 0), sync()])
}

#[test]
fn a_database_that_nobody_is_connected_to_can_be_dropped() {
    for version in oracle::VERSIONS {
        let howdah = pooler(version).start();
        let mut admin = howdah.session(USER, USER);
        used(&howdah, "dropped_simple");
        assert_eq!(admin.ask(query("DROP DATABASE \"dropped_simple\"")), "C(DROP DATABASE) ZI");
        used(&howdah, "dropped_extended");
        assert_eq!(admin.ask(extended("drop database dropped_extended")), "1 2 C(DROP DATABASE) ZI");
        used(&howdah, "dropped_named");
        assert_eq!(admin.ask(all(&[parse("d", "drop database dropped_named", &[]), sync()])), "1 ZI");
        assert_eq!(admin.ask(all(&[bind("", "d", &[]), execute("", 0), sync()])), "2 C(DROP DATABASE) ZI");
    }
}

#[test]
fn a_database_can_be_copied_renamed_and_dropped_again() {
    let howdah = pooler(Version::wanted()).start();
    let mut admin = howdah.session(USER, USER);
    for name in ["copy_of_used", "renamed"] {
        admin.ask(query(&format!("drop database if exists {name}")));
    }
    used(&howdah, "copied");
    assert_eq!(admin.ask(query("create database copy_of_used template copied")), "C(CREATE DATABASE) ZI");
    used(&howdah, "copied");
    assert_eq!(admin.ask(query("alter database copied rename to renamed")), "C(ALTER DATABASE) ZI");
    for name in ["copy_of_used", "renamed"] {
        let mut client = howdah.session(USER, name);
        assert_eq!(client.value("select current_database()"), name);
        client.close();
        assert_eq!(admin.ask(query(&format!("drop database {name}"))), "C(DROP DATABASE) ZI");
    }
}

#[test]
fn a_database_that_clients_are_connected_to_is_in_use_as_postgresql_says() {
    let howdah = pooler(Version::wanted()).start();
    let mut admin = howdah.session(USER, USER);
    used(&howdah, "in_use");
    let mut client = howdah.session(USER, "in_use");
    assert_eq!(client.value("select 1"), "1");
    assert_eq!(admin.ask(query("drop database in_use")), "E(55006) ZI");
    assert_eq!(client.value("select 1"), "1", "its server has not been touched");
    client.close();
    assert_eq!(admin.ask(query("drop database in_use")), "C(DROP DATABASE) ZI");
}

#[test]
fn nobody_listens_in_a_database_that_is_dropped() {
    let howdah = pooler(Version::wanted()).start();
    let mut admin = howdah.session(USER, USER);
    used(&howdah, "listened_in");
    let mut client = howdah.session(USER, "listened_in");
    assert_eq!(client.ask(query("listen c")), "C(LISTEN) ZI");
    client.close();
    assert_eq!(admin.ask(query("drop database listened_in")), "C(DROP DATABASE) ZI");
}

#[test]
fn auth_query_keeps_no_database_from_being_dropped() {
    let howdah = pooler(Version::wanted())
        .setting("auth_type", "scram-sha-256")
        .setting("auth_user", USER)
        .setting("auth_query", "select usename, passwd from pg_shadow where usename = $1")
        .setting("auth_file", "{dir}/userlist.txt")
        .user(USER, "of no use")
        .start();
    let server = Postgres::shared(Version::wanted());
    let mut direct = server.session(USER);
    direct.sql("drop database if exists looked_up");
    direct.sql("drop role if exists looked_up");
    direct.sql("create role looked_up login password 'secret'");
    direct.sql("create database looked_up owner looked_up");
    direct.sql("alter role looked_up createdb");
    let login = |database: &str| Login::new("looked_up", database).password("secret");
    let mut client = howdah.login(&login("looked_up"));
    assert_eq!(client.value("select current_user"), "looked_up");
    client.close();
    let mut owner = howdah.login(&login(USER));
    assert_eq!(owner.ask(query("drop database looked_up")), "C(DROP DATABASE) ZI");
    owner.close();
    direct.sql("drop role looked_up");
}

#[test]
fn a_database_that_was_missing_is_there_once_it_is_made() {
    let howdah = pooler(Version::wanted()).start();
    let mut admin = howdah.session(USER, USER);
    admin.ask(query("drop database if exists not_yet"));
    let refused = || {
        let login = Login::new(USER, "not_yet");
        let refusal = Raw::try_login(howdah.port(), &login).err().expect("there is none");
        assert_eq!(refusal.sqlstate, "3D000", "{refusal:?}");
        refusal.text
    };
    // Each failure makes the pause until the next attempt longer.
    testkit::eventually(oracle::LIMIT, || refused().contains("cached"));
    testkit::eventually(oracle::LIMIT, || !refused().contains("cached"));
    testkit::eventually(oracle::LIMIT, || !refused().contains("cached"));
    assert_eq!(admin.ask(query("create database not_yet")), "C(CREATE DATABASE) ZI");
    let mut client = howdah.session(USER, "not_yet");
    assert_eq!(client.value("select 1"), "1");
    client.close();
    assert_eq!(admin.ask(query("drop database not_yet")), "C(DROP DATABASE) ZI");
}
