//! Names that cannot be resolved for a while: nobody notices as long as the address is unchanged.
//!
//! Takes root, for a name server on port 53 and a resolver's file of the pooler's own.
#![allow(clippy::disallowed_methods)] // the stage starts programs

mod figures;
mod stage;

use std::net::Ipv4Addr;
use std::time::Duration;

use figures::{Figures, is_full};
use stage::bare;
use testkit::{DnsMode, DnsServer, Howdah, Pgbench, PostgresOptions, Version, eventually, os};

const LIMIT: Duration = Duration::from_secs(30);
const NAME: &str = "primary.howdah.test";

#[test]
fn names_that_fail_cost_nobody_anything_while_the_address_is_unchanged() {
    if !os::is_root() || !may_unshare() {
        println!("SKIPPED: names_that_fail_cost_nobody_anything_while_the_address_is_unchanged takes root");
        return;
    }
    let server = PostgresOptions::new(Version::wanted()).max_connections(100).start();
    let names = DnsServer::start(NAME, Ipv4Addr::LOCALHOST);
    let entry = format!("host={NAME} port={} dbname=postgres", server.port());
    let howdah = bare()
        .resolver(names.address())
        .database("plain", &entry)
        .database("cluster", &format!("{entry} target_session_attrs=primary"))
        .user("postgres", "")
        .setting("monitor_user", "postgres")
        .setting("default_pool_size", "20")
        .setting("max_client_conn", "2000")
        // Each name is asked for again and again within this short test.
        .setting("dns_max_ttl", "0.2")
        .setting("dns_nxdomain_ttl", "0.2")
        .start();
    let bench = |database: &str| Pgbench::new(&server, howdah.port(), "postgres", database);
    bench("plain").fill(1);
    let figures = Figures::new("names that fail");
    let steady = |database: &'static str| {
        let bench = bench(database).argument("--no-vacuum").argument("--client=20").argument("--jobs=2");
        move || bench.argument("--rate=200").argument("--time=70").run()
    };
    std::thread::scope(|scope| {
        // Beside those that come in crowds, there are those who are there all the time.
        let there = is_full().then(|| ["plain", "cluster"].map(|database| scope.spawn(steady(database))));
        let mut logins = 0;
        for mode in [DnsMode::NxDomain, DnsMode::ServFail, DnsMode::Silent] {
            names.set(mode);
            figures.go_on(&format!("{mode:?}"), Duration::from_secs(9));
            for database in ["plain", "cluster"] {
                fails_unnoticed(&howdah, &names, &bench(database), &format!("{database}, {mode:?}"));
                logins += 950;
            }
            figures.go_on(&format!("{mode:?}"), Duration::from_secs(9));
            names.set(DnsMode::Address);
        }
        figures.count("logins, 950 at once", logins, None);
        for report in there.into_iter().flatten().map(|run| run.join().expect("no panic")) {
            assert!(report.success && report.complaints.is_empty(), "{}", report.complaints);
            figures.count("transactions of those that were there", report.transactions as usize, None);
        }
        figures.count("questions to the name server", names.asked(), None);
        figures.count("errors", 0, Some(0));
    });
}

/// Containers may have a root that may not.
fn may_unshare() -> bool {
    let status = std::process::Command::new("unshare").args(["--mount", "true"]).status();
    status.is_ok_and(|status| status.success())
}

/// While the name fails all servers are made anew, under 950 clients that log in at once.
fn fails_unnoticed(howdah: &Howdah, names: &DnsServer, bench: &Pgbench, what: &str) {
    let asked = names.asked();
    howdah.console().sql("RECONNECT");
    let bench = bench.clone().argument("--select-only").argument("--no-vacuum");
    let report = bench.argument("--client=950").argument("--jobs=8").argument("--transactions=2").run();
    assert!(report.success && report.complaints.is_empty(), "{what}: {}", report.complaints);
    assert_eq!(report.transactions, 1900, "{what}");
    eventually(LIMIT, || {
        // Whoever needs a server has the name asked for.
        howdah.console().sql("RECONNECT");
        howdah.session("postgres", what.split(',').next().unwrap_or_default()).sql("select 1");
        names.asked() > asked
    });
}
