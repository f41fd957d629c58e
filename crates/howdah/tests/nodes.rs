//! Hosts added, taken away and drained while clients are at work.
#![allow(clippy::disallowed_methods)] // the load is a thread

mod stage;

use std::collections::BTreeSet;
use std::time::Duration;

use stage::bare;
use testkit::{
    Howdah, HowdahOptions, Login, Pgbench, Postgres, PostgresOptions, Raw, Version, cell, eventually,
};

const LIMIT: Duration = Duration::from_secs(30);

fn primary() -> Postgres {
    PostgresOptions::new(Version::wanted()).setting("wal_keep_size", "128MB").start()
}

fn hosts(ports: &[u16]) -> String {
    let hosts: Vec<&str> = ports.iter().map(|_| "127.0.0.1").collect();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("host={} port={}", hosts.join(","), ports.join(","))
}

fn pooler(ports: &[u16]) -> HowdahOptions {
    let entry = |attrs: &str| format!("{} dbname=postgres target_session_attrs={attrs}", hosts(ports));
    bare()
        .database("db", &entry("primary"))
        .database("ro", &entry("standby"))
        .user("postgres", "")
        .setting("default_pool_size", "8")
        .setting("max_client_conn", "200")
        .setting("monitor_user", "postgres")
}

fn node(howdah: &Howdah, port: u16, column: &str) -> String {
    howdah.admin_value("SHOW NODES", &[("port", &port.to_string())], column)
}

#[track_caller]
fn wait_for_node(howdah: &Howdah, port: u16, column: &str, wanted: &str) {
    eventually(LIMIT, || node(howdah, port, column) == wanted);
}

/// The servers of the database that is written to.
fn writers(howdah: &Howdah) -> BTreeSet<String> {
    let rows = howdah.admin("SHOW SERVERS");
    let of_it = rows.iter().filter(|row| cell(row, "database") == Some("db"));
    of_it.filter_map(|row| cell(row, "remote_pid")).map(str::to_owned).collect()
}

#[test]
fn hosts_come_and_go_by_reload_and_nobody_notices() {
    let first = primary();
    let (second, third) = (first.standby(), first.standby());
    let ports = [first.port(), second.port(), third.port()];
    let howdah = pooler(&ports[..2]).start();
    let bench = |database: &str| Pgbench::new(&first, howdah.port(), "postgres", database);
    bench("db").fill(1);
    let two = howdah.ini_text();
    let with = |list: &[u16]| two.replace(&hosts(&ports[..2]), &hosts(list));
    let reports = std::thread::scope(|scope| {
        let load = |database: &'static str, kind: &'static str| {
            let run = bench(database).argument("--client=16").argument("--jobs=2").argument("--time=5");
            let run = run.argument("--no-vacuum").argument(kind);
            scope.spawn(move || run.run())
        };
        let loads = [load("db", "--builtin=tpcb-like"), load("ro", "--select-only")];
        let readers = |port: u16| node(&howdah, port, "connections");
        eventually(LIMIT, || readers(ports[1]) == "8");
        eventually(LIMIT, || writers(&howdah).len() == 8);
        let before = writers(&howdah);
        howdah.reload_ini(&with(&ports));
        wait_for_node(&howdah, ports[2], "state", "up");
        howdah.reload_ini(&with(&[ports[0], ports[2]]));
        eventually(LIMIT, || readers(ports[2]) == "8");
        assert_eq!(howdah.admin("SHOW NODES").len(), 2);
        howdah.reload_ini(&two);
        eventually(LIMIT, || readers(ports[1]) == "8");
        assert_eq!(writers(&howdah), before, "servers on hosts that stay are kept");
        loads.map(|load| load.join().expect("no panic"))
    });
    for report in reports {
        assert!(report.success && report.transactions > 0, "{}", report.complaints);
    }
}

#[test]
fn a_drained_node_gets_no_more_and_its_servers_end_when_free() {
    let first = primary();
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    let mut reader: Raw = howdah.login(&Login::new("postgres", "ro"));
    reader.sql("begin");
    let mut console = howdah.console();
    let refused = console.try_sql("DRAIN NODE nowhere:1").expect_err("no such node");
    assert_eq!(refused.text, "no such node: nowhere:1, use SHOW NODES;");
    console.sql(&format!("DRAIN NODE 127.0.0.1:{}", second.port()));
    wait_for_node(&howdah, second.port(), "state", "drained");
    // Its transaction goes on to its end; then there is nobody for readers, and they wait.
    assert_eq!(reader.value("show port"), second.port().to_string());
    reader.sql("commit");
    wait_for_node(&howdah, second.port(), "connections", "0");
    let mut writer = howdah.login(&Login::new("postgres", "db"));
    assert_eq!(writer.value("show port"), first.port().to_string());
    reader.send(testkit::message::query("show port"));
    eventually(LIMIT, || howdah.admin_value("SHOW POOLS", &[("database", "ro")], "cl_waiting") == "1");
    // A reload does not undo it.
    howdah.reload_ini(&howdah.ini_text());
    assert_eq!(node(&howdah, second.port(), "state"), "drained");
    console.sql(&format!("UNDRAIN NODE 127.0.0.1:{}", second.port()));
    assert_eq!(reader.answers(1), "T D C(SHOW) ZI");
    assert_eq!(node(&howdah, second.port(), "state"), "up");
}

#[test]
fn a_host_without_port_means_all_that_are_there() {
    let first = primary();
    let second = first.standby();
    let howdah = pooler(&[first.port(), second.port()]).start();
    howdah.login(&Login::new("postgres", "db")).sql("select 1");
    let mut console = howdah.console();
    console.sql("DRAIN NODE 127.0.0.1;");
    for server in [&first, &second] {
        assert_eq!(node(&howdah, server.port(), "state"), "drained");
    }
    let mut client = howdah.login(&Login::new("postgres", "db"));
    client.send(testkit::message::query("select 1"));
    console.sql("undrain node 127.0.0.1");
    assert_eq!(client.answers(1), "T D C(SELECT 1) ZI");
}
