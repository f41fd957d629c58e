//! A real Patroni behind two poolers: its members are fetched, its primary moves, its leader dies, and the clients stay.
//!
//! One test of several acts, since such a cluster takes longer to start than each of them.
#![allow(clippy::disallowed_methods)] // clients are threads

mod figures;
mod ledger;
mod stage;

use std::time::{Duration, Instant};

use figures::{Figures, sized};
use ledger::{Ledger, Style};
use stage::bare;
use testkit::{Howdah, HowdahOptions, Login, Patroni, Pgbench, Raw, Version, eventually, eventually_shown};

const LIMIT: Duration = Duration::from_secs(60);
const CLIENTS: usize = 40;
const SERVERS: usize = 10;

fn pooler(cluster: &Patroni) -> HowdahOptions {
    let entry =
        |attrs: &str| format!("topology={} dbname=postgres target_session_attrs={attrs}", cluster.topology());
    bare()
        .database("db", &entry("read-write"))
        .database("ro", &entry("standby"))
        .user("postgres", "")
        .setting("pool_mode", "transaction")
        .setting("default_pool_size", &SERVERS.to_string())
        .setting("max_client_conn", "500")
        .setting("monitor_user", "postgres")
        .setting("topology_interval", "0.3")
}

fn login() -> Login {
    Login::new("postgres", "db")
}

/// The port of the node that a pooler takes for the primary.
fn primary(howdah: &Howdah) -> Option<u16> {
    let rows = howdah.admin("SHOW NODES");
    let row = rows.iter().find(|row| {
        testkit::cell(row, "role") == Some("primary") && testkit::cell(row, "state") == Some("up")
    })?;
    testkit::cell(row, "port")?.parse().ok()
}

#[track_caller]
fn both_agree_on(howdahs: [&Howdah; 2], port: u16) {
    eventually(LIMIT, || howdahs.iter().all(|howdah| primary(howdah) == Some(port)));
}

#[test]
fn clients_outlive_what_happens_to_the_members_of_patroni() {
    if Version::wanted() != Version::V15 {
        println!("on PostgreSQL 15 alone: it takes a minute");
        return;
    }
    let start = Instant::now();
    let say = |what: &str| println!("[patroni] {:5.1} s: {what}", start.elapsed().as_secs_f64());
    let cluster = Patroni::start();
    say("three members are up");
    let (one, other) = (pooler(&cluster).start(), pooler(&cluster).start());
    let leader = cluster.leader().expect("somebody leads");
    both_agree_on([&one, &other], cluster.port(leader));
    Raw::login(one.port(), &login()).sql(ledger::TABLE);

    switchover_costs_no_connection(&cluster, [&one, &other], &say);
    switchover_that_is_announced_costs_nothing(&cluster, [&one, &other], &say);
    tags_take_readers_away(&cluster, &one);
    say("tags are obeyed");
    death_of_the_leader_costs_no_connection(&cluster, [&one, &other], &say);
    clients_of_the_other_pooler_go_on(&cluster, one, &other);
    say("one pooler is killed, the other went on");
}

fn switchover_costs_no_connection(cluster: &Patroni, howdahs: [&Howdah; 2], say: &dyn Fn(&str)) {
    let ports = howdahs.map(Howdah::port);
    let mut next = 0;
    let (accounts, ledger) = Ledger::keep((&ports, &login()), (CLIENTS, Style::Block), |_| {
        next = cluster.switch_over();
        both_agree_on(howdahs, cluster.port(next));
    });
    let told: usize = accounts.iter().map(|account| account.told.len()).sum();
    let errors = ledger::check(accounts, &mut cluster.session(next));
    // Patroni stops a server in fast mode: what it had in hand, nobody can know. Commits that wait for the standby
    // are let go with a warning.
    assert!(errors.iter().all(|error| error.ends_with("E(08007) ZI")), "{errors:?}");
    assert!(errors.len() <= 2 * SERVERS, "{errors:?}");
    Raw::login(ports[0], &login()).sql("truncate entries");
    let (stall, unknown) = (ledger.stall().as_secs_f64(), errors.len());
    say(&format!("switchover under {CLIENTS} clients: {told} told, {unknown} x 08007, stall {stall:.2} s"));
    cluster.wait_for_members(3);
}

/// Patroni runs what is told it before it stops a server: so the poolers let transactions end there first.
fn switchover_that_is_announced_costs_nothing(cluster: &Patroni, howdahs: [&Howdah; 2], say: &dyn Fn(&str)) {
    let bench = Pgbench::with(cluster.program("pgbench"), &[howdahs[0].port()], "postgres", "db");
    bench.fill(1);
    let leader = cluster.leader().expect("somebody leads");
    let mut next = 0;
    let figures = Figures::new("Patroni: announced switchover");
    let mut own = Duration::ZERO;
    cluster.announce_to(&howdahs.map(Howdah::port));
    let report = std::thread::scope(|scope| {
        let time = format!("--time={}", sized(7, 30));
        let bench = bench.argument("--client=200").argument("--jobs=4").argument(&time);
        let run = scope.spawn(move || bench.run());
        let mut session = cluster.session(leader);
        eventually(LIMIT, || session.value("select count(*) > 500 from pgbench_history") == "t");
        figures.go_on("before", Duration::from_secs(8));
        let start = Instant::now();
        next = cluster.switch_over();
        eventually(LIMIT, || cluster.session(next).value("select pg_is_in_recovery()") == "f");
        own = start.elapsed();
        both_agree_on(howdahs, cluster.port(next));
        run.join().expect("no panic")
    });
    let mut session = cluster.session(next);
    assert!(report.success && !report.complaints.contains("error"), "{report:?}");
    let kept = session.value("select count(*) from pgbench_history");
    assert_eq!(kept, report.transactions.to_string(), "every transaction is there once");
    let stall = session.value(ledger::PGBENCH_STALL);
    say(&format!(
        "announced switchover under 200 of pgbench: {kept} transactions, 0 errors, stall {stall} s"
    ));
    let stall = Duration::from_secs_f64(stall.parse().expect("seconds"));
    figures.count("clients of pgbench", 200, None);
    figures.count("transactions", report.transactions as usize, None);
    figures.count("client errors", 0, Some(0));
    figures.time("the cluster's own, from the order to the new primary", own, None);
    figures.time("stall", stall, Some(own + Duration::from_secs(1)));
    cluster.wait_for_members(3);
    for howdah in howdahs {
        eventually_shown(howdah, "SHOW NODES", |rows| {
            rows.len() == 3 && rows.iter().all(|row| testkit::cell(row, "state") == Some("up"))
        });
    }
    cluster.announce_to(&[]);
}

fn tags_take_readers_away(cluster: &Patroni, howdah: &Howdah) {
    let leader = cluster.leader().expect("somebody leads");
    let [shy, bold] = [(leader + 1) % 3, (leader + 2) % 3].map(|member| cluster.port(member).to_string());
    let reader = || Raw::login(howdah.port(), &Login::new("postgres", "ro"));
    let ports_of = |readers: &mut [Raw]| -> Vec<String> {
        readers
            .iter_mut()
            .map(|reader| {
                reader.sql("begin");
                reader.value("show port")
            })
            .collect()
    };
    let mut readers: Vec<Raw> = (0..SERVERS).map(|_| reader()).collect();
    let before = ports_of(&mut readers);
    assert!(before.contains(&shy) && before.contains(&bold), "{before:?}");
    // Nothing that would have Patroni choose another synchronous standby: the leader is to die soon.
    cluster.set_tags((leader + 1) % 3, r#"{"noloadbalance": true, "clonefrom": true}"#);
    eventually_shown(howdah, "SHOW NODES", |rows| {
        let of_it = |row: &&Vec<(String, String)>| testkit::cell(row, "port") == Some(&shy);
        rows.iter().find(of_it).and_then(|row| testkit::cell(row, "tags")) == Some("noloadbalance")
    });
    for reader in &mut readers {
        reader.sql("commit");
    }
    let after = ports_of(&mut readers);
    assert!(after.iter().all(|port| *port == bold), "{after:?}");
    drop(readers);
    cluster.set_tags((leader + 1) % 3, "{}");
    cluster.wait_for_members(3);
}

fn death_of_the_leader_costs_no_connection(cluster: &Patroni, howdahs: [&Howdah; 2], say: &dyn Fn(&str)) {
    let ports = howdahs.map(Howdah::port);
    let leader = cluster.leader().expect("somebody leads");
    let (mut next, mut promoted) = (0, Duration::ZERO);
    let (accounts, ledger) = Ledger::keep((&ports, &login()), (CLIENTS, Style::Block), |_| {
        let start = Instant::now();
        cluster.kill(leader);
        eventually(LIMIT, || {
            next = cluster.leader().filter(|next| *next != leader).unwrap_or(usize::MAX);
            next < usize::MAX && cluster.session(next).value("select pg_is_in_recovery()") == "f"
        });
        promoted = start.elapsed();
        both_agree_on(howdahs, cluster.port(next));
    });
    let errors = ledger::check(accounts, &mut cluster.session(next));
    // Two poolers with so many servers each: no more can have been at work.
    assert!(errors.len() <= 2 * SERVERS, "{errors:?}");
    assert!(errors.iter().all(|error| error.ends_with("E(08007) ZI")), "{errors:?}");
    say(&format!(
        "leader killed: promoted after {:.2} s, stall {:.2} s, {} x 08007",
        promoted.as_secs_f64(),
        ledger.stall().as_secs_f64(),
        errors.len()
    ));
    let figures = Figures::new("Patroni: kill -9 of leader and Patroni");
    figures.count("clients over two poolers", CLIENTS, None);
    figures.count("answered with 08007", errors.len(), Some(2 * SERVERS));
    figures.count("acknowledged rows lost or doubled, connections lost", 0, Some(0));
    figures.time("the cluster's own promotion", promoted, None);
    figures.time("writes back after", ledger.stall(), Some(promoted + Duration::from_millis(500)));
    // Its entry in the store has ended, and so its place in the list.
    for howdah in howdahs {
        eventually_shown(howdah, "SHOW NODES", |rows| {
            rows.len() == 2 && rows.iter().all(|row| testkit::cell(row, "state") == Some("up"))
        });
    }
}

fn clients_of_the_other_pooler_go_on(cluster: &Patroni, one: Howdah, other: &Howdah) {
    let program = || cluster.program("pgbench");
    // libpq goes through its list of hosts: half of the clients name one first, half the other.
    let here = Pgbench::with(program(), &[other.port(), one.port()], "postgres", "db");
    let there = Pgbench::with(program(), &[one.port(), other.port()], "postgres", "db");
    let clients = |of: &Howdah| of.admin("SHOW CLIENTS").len();
    let run = |bench: &Pgbench, time: &str| {
        bench.clone().argument("--client=20").argument("--no-vacuum").argument(time).run()
    };
    let report = std::thread::scope(|scope| {
        let staying = scope.spawn(|| run(&here, "--time=3"));
        let losing = scope.spawn(|| run(&there, "--time=3"));
        eventually(LIMIT, || clients(&one) > 20 && clients(other) > 20);
        drop(one);
        assert!(!losing.join().expect("no panic").success, "its clients are cut");
        // Whoever connects anew finds the other.
        assert!(run(&there, "--transactions=5").success);
        staying.join().expect("no panic")
    });
    assert!(report.success && report.transactions > 0, "{}", report.complaints);
}
