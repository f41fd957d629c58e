//! A cluster of real servers behind the pooler: whoever of them is the primary, the clients go on.
#![allow(clippy::disallowed_methods)] // clients are threads

mod stage;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use stage::bare;
use testkit::message::query;
use testkit::{
    Howdah, HowdahOptions, Login, Pgbench, Postgres, PostgresOptions, Raw, StopMode, Version, eventually,
};

/// How long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(30);

fn primary() -> Postgres {
    PostgresOptions::new(Version::wanted()).setting("wal_keep_size", "128MB").start()
}

/// A commit is acknowledged only when a standby has it.
fn make_synchronous(primary: &Postgres) {
    primary.set("synchronous_commit", "on");
    primary.set("synchronous_standby_names", "*");
    primary.reload();
}

fn entry(ports: &[u16], attrs: &str) -> String {
    let hosts: Vec<&str> = ports.iter().map(|_| "127.0.0.1").collect();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("host={} port={} dbname=postgres target_session_attrs={attrs}", hosts.join(","), ports.join(","))
}

fn pooler(ports: &[u16]) -> HowdahOptions {
    bare()
        .database("db", &entry(ports, "primary"))
        .user("postgres", "")
        .setting("pool_mode", "transaction")
        .setting("default_pool_size", "10")
        .setting("max_client_conn", "500")
        .setting("monitor_user", "postgres")
}

fn login() -> Login {
    Login::new("postgres", "db")
}

/// The value of a column of SHOW NODES for the node at this port.
fn node(howdah: &Howdah, port: u16, column: &str) -> String {
    howdah.admin_value("SHOW NODES", &[("port", &port.to_string())], column)
}

#[track_caller]
fn wait_for_node(howdah: &Howdah, port: u16, column: &str, wanted: &str) {
    eventually(LIMIT, || node(howdah, port, column) == wanted);
}

#[test]
fn new_servers_go_to_the_primary_and_follow_it() {
    let first = primary();
    let second = first.standby();
    // The standby stands first in the list.
    let howdah = pooler(&[second.port(), first.port()]).start();
    let mut client = howdah.login(&login());
    assert_eq!(client.value("select pg_is_in_recovery()"), "f");
    assert_eq!(client.value("show port"), first.port().to_string());
    assert_eq!(node(&howdah, first.port(), "role"), "primary");
    assert_eq!(node(&howdah, second.port(), "role"), "standby");
    assert_eq!(node(&howdah, first.port(), "timeline"), "1");
    assert_eq!(node(&howdah, first.port(), "connections"), "1");
    first.stop(StopMode::Fast);
    second.promote();
    // The same session, and it waits if it must.
    assert_eq!(client.value("select pg_is_in_recovery()"), "f");
    assert_eq!(client.value("show port"), second.port().to_string());
    wait_for_node(&howdah, second.port(), "timeline", "2");
    wait_for_node(&howdah, first.port(), "state", "down");
}
