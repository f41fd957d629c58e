//! A leader that is cut off from its peers and from the store, and not from its clients: takes root, for network
//! namespaces.
#![allow(clippy::disallowed_methods)] // clients are threads

mod ledger;
mod stage;

use std::time::{Duration, Instant};

use ledger::{Ledger, Style};
use stage::bare;
use testkit::{Howdah, Login, Network, Patroni, Raw, Version, cell, eventually, eventually_shown};

const LIMIT: Duration = Duration::from_secs(60);
const SERVERS: usize = 10;

#[test]
fn a_leader_that_its_clients_alone_can_reach_loses_no_row_of_theirs() {
    if Version::wanted() != Version::V15 {
        println!("on PostgreSQL 15 alone: it takes a minute");
        return;
    }
    let Some(network) = Network::start(3) else {
        println!(
            "SKIPPED: a_leader_that_its_clients_alone_can_reach_loses_no_row_of_theirs takes root, ip, setpriv"
        );
        return;
    };
    let cluster = Patroni::start_in(network);
    let entry = format!("topology={} dbname=postgres target_session_attrs=read-write", cluster.topology());
    let howdah = bare()
        .database("db", &entry)
        .user("postgres", "")
        .setting("default_pool_size", &SERVERS.to_string())
        .setting("max_client_conn", "200")
        .setting("monitor_user", "postgres")
        .start();
    let login = Login::new("postgres", "db");
    howdah.login(&login).sql(ledger::TABLE);
    let leader = cluster.leader().expect("somebody leads");
    let mut next = usize::MAX;
    let start = Instant::now();
    let (accounts, ledger) = Ledger::keep((&[howdah.port()], &login), (30, Style::Block), |_| {
        cluster.network().cut_off(leader);
        eventually(LIMIT, || {
            next = (0..3).find(|member| *member != leader && cluster.is_leader(*member)).unwrap_or(next);
            next < usize::MAX && cluster.session(next).value("select pg_is_in_recovery()") == "f"
        });
        eventually_shown(&howdah, "SHOW NODES", |rows| {
            let primary = rows.iter().find(|row| cell(row, "role") == Some("primary"));
            primary.and_then(|row| cell(row, "port")) == Some(&cluster.port(next).to_string())
        });
    });
    let told: usize = accounts.iter().map(|account| account.told.len()).sum();
    let errors = ledger::check(accounts, &mut cluster.session(next));
    assert!(errors.iter().all(|error| error.ends_with("E(08007) ZI")), "{errors:?}");
    assert!(errors.len() <= SERVERS, "{errors:?}");
    println!(
        "cut off for {:.1} s: {told} told, {} x 08007, stall {:.2} s",
        start.elapsed().as_secs_f64(),
        errors.len(),
        ledger.stall().as_secs_f64()
    );
    cluster.network().heal(leader);
    hidden_primary_holds_its_clients(&cluster, &howdah, next);
}

/// The primary is well, and nothing of it comes through: no reset, no refusal, no acknowledgement of a packet.
fn hidden_primary_holds_its_clients(cluster: &Patroni, howdah: &Howdah, primary: usize) {
    let login = Login::new("postgres", "db");
    howdah.login(&login).sql("truncate entries");
    let port = cluster.port(primary).to_string();
    let shows = |state: &str| {
        eventually_shown(howdah, "SHOW NODES", |rows| {
            let row = rows.iter().find(|row| cell(row, "port") == Some(&port));
            row.and_then(|row| cell(row, "state")) == Some(state)
        });
    };
    let (accounts, ledger) = Ledger::keep((&[howdah.port()], &login), (30, Style::Block), |_| {
        cluster.network().hide(primary);
        shows("down");
        // Newcomers are let in, and wait as the others do.
        let newcomers: Vec<Raw> = (0..20).map(|_| howdah.login(&login)).collect();
        cluster.network().show(primary);
        shows("up");
        drop(newcomers);
    });
    let errors = ledger::check(accounts, &mut cluster.session(primary));
    assert!(errors.iter().all(|error| error == "E(08007) ZI"), "{errors:?}");
    assert!(errors.len() <= SERVERS, "{errors:?}");
    println!("hidden: {} x 08007, stall {:.2} s", errors.len(), ledger.stall().as_secs_f64());
}
