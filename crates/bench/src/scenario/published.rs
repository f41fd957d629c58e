//! The original figures, as they were published. They are from other machines and other years: what
//! compares is the shape (who holds, who falls, who refuses), never the height.

use crate::plan::Load;
use crate::scenario::Scenario;

/// One figure of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// What was measured.
    pub system: &'static str,
    /// With how many clients.
    pub clients: usize,
    /// Transactions a second.
    pub tps: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// Until all clients were in, in milliseconds.
    pub connect_ms: Option<f64>,
    /// What else was seen.
    pub remark: &'static str,
}

const fn seen(
    system: &'static str,
    clients: usize,
    tps: Option<f64>,
    latency_ms: Option<f64>,
    connect_ms: Option<f64>,
    remark: &'static str,
) -> Figure {
    Figure { system, clients, tps, latency_ms, connect_ms, remark }
}

const fn rds(system: &'static str, clients: usize, tps: f64, latency_ms: f64, connect_ms: f64) -> Figure {
    seen(system, clients, Some(tps), Some(latency_ms), Some(connect_ms), "")
}

const fn rate(system: &'static str, clients: usize, tps: f64) -> Figure {
    seen(system, clients, Some(tps), None, None, "")
}

const fn failed(system: &'static str, clients: usize, remark: &'static str) -> Figure {
    seen(system, clients, None, None, None, remark)
}

const RDS_PROXY: &[Figure] = &[
    rds("direct", 100, 3056.0, 32.7, 667.0),
    rds("RDS Proxy", 100, 1021.0, 97.9, 563.0),
    rds("direct", 200, 1217.0, 164.0, 1441.0),
    rds("RDS Proxy", 200, 1806.0, 110.7, 1095.0),
    rds("direct", 300, 1145.0, 262.0, 2369.0),
    rds("RDS Proxy", 300, 1458.0, 205.7, 1475.0),
    rds("direct", 400, 618.0, 647.0, 3203.0),
    rds("RDS Proxy", 400, 1385.0, 288.8, 1798.0),
    rds("direct", 500, 358.0, 1396.0, 5780.0),
    // Its latency and connect time stand in the source as a copy of those of 400 clients.
    rate("RDS Proxy", 500, 1342.0),
    failed("direct", 600, "aborted, 0 of 6000 done: remaining connection slots are reserved"),
    rds("RDS Proxy", 600, 1142.0, 525.0, 2539.0),
    rds("RDS Proxy", 700, 1547.0, 452.0, 3175.0),
];

const SHORT_CONNECTIONS: &[Figure] = &[
    seen("direct", 100, Some(752.0), None, None, "12079 tps without the time to connect"),
    seen("PgBouncer", 100, Some(5985.0), None, None, "13415 tps without the time to connect"),
];

const THOUSAND_CLIENTS: &[Figure] = &[
    seen("direct", 1000, Some(406.0), Some(2376.0), None, "deviation 3391 ms; waits in row locks"),
    seen("PgBouncer", 1000, Some(565.0), Some(1734.0), None, "deviation 406 ms; 1472 ms of it in BEGIN"),
];

const HAPROXY_150: &[Figure] = &[
    seen("PgBouncer", 150, None, None, None, "its overhead of connecting is 8% of HAProxy's"),
    failed("HAProxy", 200, "never completed; 190 was the most"),
];

const PGPOOL_CONNECT: &[Figure] = &[
    rate("direct", 10, 16.96),
    rate("PgBouncer", 10, 26.86),
    rate("Pgpool-II", 10, 15.52),
    rate("direct", 20, 16.97),
    rate("PgBouncer", 20, 27.19),
    rate("Pgpool-II", 20, 15.67),
    rate("direct", 40, 16.73),
    rate("PgBouncer", 40, 26.77),
    rate("Pgpool-II", 40, 15.33),
    rate("direct", 80, 16.75),
    rate("PgBouncer", 80, 26.64),
    rate("Pgpool-II", 80, 15.53),
    rate("direct", 100, 16.51),
    rate("PgBouncer", 100, 26.73),
    rate("Pgpool-II", 100, 15.66),
    failed("direct", 200, "aborted"),
    rate("PgBouncer", 200, 26.93),
    failed("Pgpool-II", 200, "aborted with more than 200 children, hung with 100 or fewer"),
];

const MANAGED_950: &[Figure] = &[
    seen(
        "Azure, 8 cores, limit 960",
        950,
        Some(60.9),
        Some(12494.0),
        None,
        "deviation 40490 ms; before that 469 of 950 could not look up the host's name",
    ),
    seen("Azure, 16 cores, limit 1900", 1000, Some(6002.0), Some(152.9), None, "deviation 248.6 ms"),
];

const SYSBENCH_OLTP: &[Figure] = &[
    failed("Azure, 8 cores", 10, "prepare failed: server closed the connection unexpectedly"),
    failed("Azure, 16 cores", 10, "prepare worked for 3 tables; stopped for its price"),
];

impl Scenario {
    /// What was published about it.
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Scenario::RdsProxy => RDS_PROXY,
            Scenario::ShortConnections => SHORT_CONNECTIONS,
            Scenario::ThousandClients => THOUSAND_CLIENTS,
            Scenario::Haproxy150 => HAPROXY_150,
            Scenario::PgpoolConnect => PGPOOL_CONNECT,
            Scenario::Managed950 => MANAGED_950,
            Scenario::SessionState => &[],
            Scenario::SysbenchOltp => SYSBENCH_OLTP,
        }
    }

    /// On what they were measured.
    pub fn origin(self) -> &'static str {
        match self {
            Scenario::RdsProxy => "AWS db.t2.micro, PostgreSQL 11.10, pgbench -S -j 20 -t 10, scale 4",
            Scenario::ShortConnections => "pgbench -M extended -S -C -c 100 -j 100 -T 60, scale 100",
            Scenario::ThousandClients => "pgbench -M extended -c 1000 -j 1000 -T 60, scale 20, pool 100",
            Scenario::Haproxy150 => "150 clients over 100 connections, 60 s, PostgreSQL's limit 500",
            Scenario::PgpoolConnect => {
                "pgbench -C, scale 100, one thread, one processor, 5 min, Pgpool-II on the same machine"
            }
            Scenario::Managed950 => {
                "Azure managed PostgreSQL 10.7, pgbench --protocol=prepared, scale 10000, 600 s"
            }
            Scenario::SessionState => {
                "no figures; RDS Proxy gives a client with state a connection for the rest of its session"
            }
            Scenario::SysbenchOltp => {
                "Azure managed PostgreSQL 10.7, sysbench 0.5, 250 tables of 450,000 rows"
            }
        }
    }

    /// The figures that belong beside a load.
    pub fn beside(self, load: Load) -> Vec<Figure> {
        // With -C and without, the haproxy experiment is two loads, of which each figure tells one thing.
        let fits = |figure: &&Figure| figure.clients == load.clients();
        self.figures().iter().filter(fits).copied().collect()
    }
}
