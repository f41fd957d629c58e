//! The table of all metrics. A line here is a line in docs/metrics.md.

use console::PoolRow;
use stats::Totals;

use crate::family::{Kind, Metric, Samples, Unit, Value};
use crate::reading::{PoolTally, Process, Reading};
use crate::verbs::verb;

use Value::{Count, Real};

const fn counter(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    read: fn(&Reading, &mut Samples),
) -> Metric {
    Metric { name, unit: None, kind: Kind::Counter, help, labels, read }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    read: fn(&Reading, &mut Samples),
) -> Metric {
    Metric { name, unit: None, kind: Kind::Gauge, help, labels, read }
}

impl Metric {
    const fn seconds(self) -> Metric {
        Metric { unit: Some(Unit::Seconds), ..self }
    }

    const fn bytes(self) -> Metric {
        Metric { unit: Some(Unit::Bytes), ..self }
    }
}

const POOL: &[&str] = &["database", "user", "standby"];
const POOL_STATE: &[&str] = &["database", "user", "standby", "state"];
const DATABASE: &[&str] = &["database"];
const PIN: &[&str] = &["database", "user", "reason", "statement"];
const ROUTE: &[&str] = &["database", "user", "to", "reason"];
const NODE: &[&str] = &["databases", "node"];
const LISTENER: &[&str] = &["database", "listener"];

/// The roles of a node, and its states, in the words of SHOW NODES.
const ROLES: [&str; 6] = ["unknown", "primary", "standby", "stale primary", "rival primary", "foreign"];
const STATES: [&str; 7] = ["unknown", "up", "settling", "lagging", "leaving", "down", "drained"];

/// How many values were left out: filled in when all others are.
pub(crate) const LEFT_OUT: &str = "howdah_series_left_out";

/// All of them.
pub const METRICS: &[Metric] = &[
    // The process.
    gauge(
        "howdah_build_info",
        "Always 1: the version, and how workers hand bytes to the kernel.",
        &["version", "io_backend"],
        |of, out| {
            out.add([&of.whole.version, of.whole.io_backend], Count(1));
        },
    ),
    gauge("howdah_workers", "Worker threads.", &[], |of, out| out.add([], Count(of.whole.workers))),
    gauge("howdah_paused", "1 while all databases are paused together.", &[], |of, out| {
        out.add([], Value::flag(of.whole.is_paused));
    }),
    gauge("howdah_draining", "1 while the process waits for its clients to leave.", &[], |of, out| {
        out.add([], Value::flag(of.whole.is_draining));
    }),
    gauge("howdah_clients_limit", "How many clients may be connected (max_client_conn).", &[], |of, out| {
        out.add([], Count(of.whole.clients_limit));
    }),
    gauge("howdah_client_logins", "Clients that are logging in.", &[], |of, out| {
        out.add([], Count(of.whole.logins))
    }),
    gauge("howdah_cancel_requests", "Cancel requests on their way to servers.", &[], |of, out| {
        out.add([], Count(of.whole.cancels));
    }),
    // Pools: what is.
    gauge(
        "howdah_pool_clients",
        "Clients of a pool: with a server or idle (active), waiting for a server, or about to be canceled.",
        POOL_STATE,
        |of, out| {
            for row in &of.shown.pools {
                clients(row, out);
            }
        },
    ),
    gauge(
        "howdah_pool_servers",
        "Servers of a pool by what they do, in the words of SHOW POOLS.",
        POOL_STATE,
        |of, out| {
            for row in &of.shown.pools {
                servers(row, out);
            }
        },
    ),
    gauge(
        "howdah_pool_servers_pinned",
        "Servers that clients keep for their session state.",
        POOL,
        |of, out| {
            each_row(of, out, |row| Count(row.servers_pinned));
        },
    ),
    gauge(
        "howdah_pool_max_wait",
        "How long the first of the waiting clients has waited.",
        POOL,
        |of, out| {
            each_row(of, out, |row| Value::seconds(row.wait_max));
        },
    )
    .seconds(),
    gauge(
        "howdah_pool_held",
        "1 while clients wait because no host is fit for the pool.",
        POOL,
        |of, out| {
            each_pool(of, out, |pool| Value::flag(pool.is_held));
        },
    ),
    gauge(
        "howdah_pool_prepared_statements",
        "Prepared statements known to a pool, each shared by all who prepare the same.",
        POOL,
        |of, out| {
            each_pool(of, out, |pool| Count(pool.statements));
        },
    ),
    // Pools: what was.
    counter("howdah_pool_transactions", "Transactions.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.xact_count));
    }),
    counter("howdah_pool_queries", "Queries; a pipeline is one.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.query_count));
    }),
    counter(
        "howdah_pool_transaction",
        "Time in transactions, those idle in between included.",
        POOL,
        |of, out| {
            each_total(of, out, |totals| Value::micros(totals.xact_time_us));
        },
    )
    .seconds(),
    counter("howdah_pool_query", "Time in queries.", POOL, |of, out| {
        each_total(of, out, |totals| Value::micros(totals.query_time_us));
    })
    .seconds(),
    counter(
        "howdah_pool_wait",
        "Time that clients waited for a server, counted when they got it.",
        POOL,
        |of, out| {
            each_total(of, out, |totals| Value::micros(totals.wait_time_us));
        },
    )
    .seconds(),
    counter("howdah_pool_received", "Received from clients.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.received_bytes));
    })
    .bytes(),
    counter("howdah_pool_sent", "Received from servers and sent to clients.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.sent_bytes));
    })
    .bytes(),
    counter("howdah_pool_server_assignments", "Times that a client was given a server.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.server_assignment_count));
    }),
    counter("howdah_pool_client_logins", "Clients that logged in.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.client_login_count));
    }),
    counter("howdah_pool_client_parses", "Named statements that clients prepared.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.client_parse_count));
    }),
    counter(
        "howdah_pool_server_parses",
        "Named statements that had to be prepared on a server; the rest was there already.",
        POOL,
        |of, out| {
            each_total(of, out, |totals| Count(totals.server_parse_count));
        },
    ),
    counter("howdah_pool_binds", "Executions of named statements.", POOL, |of, out| {
        each_total(of, out, |totals| Count(totals.bind_count));
    }),
    counter(
        "howdah_pool_pins",
        "Times that a client began to keep its server for its session state.",
        POOL,
        |of, out| {
            each_total(of, out, |totals| Count(totals.pin_count));
        },
    ),
    // Databases.
    gauge("howdah_database_clients", "Clients of a database entry.", DATABASE, |of, out| {
        for row in &of.shown.databases {
            out.add([&row.name], Count(row.clients));
        }
    }),
    gauge(
        "howdah_database_clients_limit",
        "How many there may be, where there is a limit.",
        DATABASE,
        |of, out| {
            for row in of.shown.databases.iter().filter(|row| row.clients_max > 0) {
                out.add([&row.name], Count(row.clients_max));
            }
        },
    ),
    gauge(
        "howdah_database_servers",
        "Servers of a database entry, all its pools together.",
        DATABASE,
        |of, out| {
            for row in &of.shown.databases {
                out.add([&row.name], Count(row.servers));
            }
        },
    ),
    gauge(
        "howdah_database_servers_limit",
        "How many there may be, where there is a limit.",
        DATABASE,
        |of, out| {
            for row in of.shown.databases.iter().filter(|row| row.servers_max > 0) {
                out.add([&row.name], Count(row.servers_max));
            }
        },
    ),
    gauge(
        "howdah_database_pool_size",
        "How many servers each pool of a database entry may have.",
        DATABASE,
        |of, out| {
            for row in &of.shown.databases {
                out.add([&row.name], Count(row.pool_size));
            }
        },
    ),
    gauge("howdah_database_paused", "1 while it is paused by itself.", DATABASE, |of, out| {
        for row in &of.shown.databases {
            out.add([&row.name], Value::flag(row.paused));
        }
    }),
    gauge("howdah_database_disabled", "1 while it takes no new clients.", DATABASE, |of, out| {
        for row in &of.shown.databases {
            out.add([&row.name], Value::flag(row.disabled));
        }
    }),
    // Session state.
    gauge(
        "howdah_pins",
        "Clients that keep their server, by why, and by what made that state begins with.",
        PIN,
        |of, out| {
            for row in &of.shown.pins {
                out.add([&row.database, &row.user, &row.reason, verb(&row.statement)], Count(row.current));
            }
        },
    ),
    counter(
        "howdah_pins_begun",
        "Times that a client began to keep its server, by the same.",
        PIN,
        |of, out| {
            for row in &of.shown.pins {
                out.add([&row.database, &row.user, &row.reason, verb(&row.statement)], Count(row.total));
            }
        },
    ),
    // Reads.
    counter(
        "howdah_routes",
        "Transactions and statements of databases with read_write_split: where to, and why, in the words of SHOW ROUTES.",
        ROUTE,
        |of, out| {
            for row in &of.shown.routes {
                out.add([&row.database, &row.user, &row.to, row.reason], Count(row.count));
            }
        },
    ),
    gauge(
        "howdah_node_weight",
        "The part of the reads of a database that a host takes; that of the primary, if it has one.",
        &["database", "node"],
        |of, out| {
            for row in &of.weights {
                out.add([&row.database, &row.node], Count(row.weight.into()));
            }
        },
    ),
    // Clusters.
    gauge("howdah_node_up", "1 if a host answers and may be used.", NODE, |of, out| {
        each_node(of, out, |row| Some(Value::flag(matches!(row.state, "up" | "settling" | "lagging"))));
    }),
    gauge(
        "howdah_node_role",
        "1 for the role that a host has.",
        &["databases", "node", "role"],
        |of, out| {
            for (row, node) in nodes(of) {
                for role in ROLES {
                    out.add([&row.databases, &node, role], Value::flag(row.role == role));
                }
            }
        },
    ),
    gauge(
        "howdah_node_state",
        "1 for the state that a host is in.",
        &["databases", "node", "state"],
        |of, out| {
            for (row, node) in nodes(of) {
                for state in STATES {
                    out.add([&row.databases, &node, state], Value::flag(row.state == state));
                }
            }
        },
    ),
    gauge("howdah_node_timeline", "The timeline that a host has told of.", NODE, |of, out| {
        each_node(of, out, |row| row.timeline.map(|timeline| Count(timeline.into())));
    }),
    gauge(
        "howdah_node_lag",
        "How far a standby is behind the primary, in bytes of the log.",
        NODE,
        |of, out| {
            each_node(of, out, |row| row.lag.map(|(bytes, _)| Count(bytes)));
        },
    )
    .bytes(),
    gauge(
        "howdah_node_lag",
        "How far a standby is behind the primary, in time since the commit that it replayed last.",
        NODE,
        |of, out| {
            each_node(of, out, |row| row.lag.map(|(_, time)| Value::seconds(time)));
        },
    )
    .seconds(),
    gauge("howdah_node_servers", "Server connections on a host.", NODE, |of, out| {
        each_node(of, out, |row| Some(Count(row.connections.into())));
    }),
    counter(
        "howdah_cluster_failovers",
        "Times that another host became the primary.",
        &["databases"],
        |of, out| {
            for cluster in &of.clusters {
                out.add([&cluster.databases], Count(cluster.failovers));
            }
        },
    ),
    counter(
        "howdah_cluster_primary_losses",
        "Times that there was no primary any more, so that writes had to wait.",
        &["databases"],
        |of, out| {
            for cluster in &of.clusters {
                out.add([&cluster.databases], Count(cluster.losses));
            }
        },
    ),
    // LISTEN.
    gauge(
        "howdah_listener_up",
        "1 while the connection that listens for the clients of a database is there.",
        LISTENER,
        |of, out| {
            for row in &of.shown.listeners {
                out.add([&row.database, &row.id.to_string()], Value::flag(row.state == "listening"));
            }
        },
    ),
    gauge("howdah_listener_clients", "Clients that listen by it.", LISTENER, |of, out| {
        for row in &of.shown.listeners {
            out.add([&row.database, &row.id.to_string()], Count(row.clients));
        }
    }),
    gauge("howdah_listener_channels", "Channels that it listens on.", LISTENER, |of, out| {
        for row in &of.shown.listeners {
            out.add([&row.database, &row.id.to_string()], Count(row.channels));
        }
    }),
    counter("howdah_listener_notifications", "Notifications that came.", LISTENER, |of, out| {
        for row in &of.shown.listeners {
            out.add([&row.database, &row.id.to_string()], Count(row.notifications));
        }
    }),
    counter("howdah_listener_losses", "How often its connection was lost.", LISTENER, |of, out| {
        for row in &of.shown.listeners {
            out.add([&row.database, &row.id.to_string()], Count(row.losses));
        }
    }),
    // What all programs tell of themselves, by these names.
    counter("process_cpu", "Time on processors, user and system.", &[], |of, out| {
        process(of, out, |process| Some(Value::seconds(process.cpu)));
    })
    .seconds(),
    gauge("process_resident_memory", "Resident memory.", &[], |of, out| {
        process(of, out, |process| Some(Count(process.resident_bytes)));
    })
    .bytes(),
    gauge("process_virtual_memory", "Address space.", &[], |of, out| {
        process(of, out, |process| Some(Count(process.virtual_bytes)));
    })
    .bytes(),
    gauge("process_open_fds", "Open file descriptors.", &[], |of, out| {
        process(of, out, |process| Some(Count(process.open_fds)));
    }),
    gauge("process_max_fds", "How many there may be.", &[], |of, out| {
        process(of, out, |process| process.max_fds.map(Count));
    }),
    gauge(
        "process_start_time",
        "When the process started, since 1970; what it has been up for is the difference to now.",
        &[],
        |of, out| {
            process(of, out, |process| Some(Real(process.started_unix as f64)));
        },
    )
    .seconds(),
    gauge(LEFT_OUT, "Values that this scrape leaves out, because a metric has too many.", &[], |_, _| {}),
];

fn standby(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

fn clients(row: &PoolRow, out: &mut Samples) {
    let states = [
        ("active", row.clients_active),
        ("waiting", row.clients_waiting),
        ("canceling", row.clients_active_cancel),
    ];
    for (state, count) in states {
        out.add([&row.database, &row.user, standby(&row.standby), state], Count(count));
    }
}

fn servers(row: &PoolRow, out: &mut Samples) {
    let states = [
        ("active", row.servers_active),
        ("idle", row.servers_idle),
        ("used", row.servers_used),
        ("tested", row.servers_tested),
        ("login", row.servers_login),
        ("being_canceled", row.servers_being_canceled),
    ];
    for (state, count) in states {
        out.add([&row.database, &row.user, standby(&row.standby), state], Count(count));
    }
}

fn each_row(of: &Reading, out: &mut Samples, value: fn(&PoolRow) -> Value) {
    for row in &of.shown.pools {
        out.add([&row.database, &row.user, standby(&row.standby)], value(row));
    }
}

fn each_pool(of: &Reading, out: &mut Samples, value: fn(&PoolTally) -> Value) {
    for pool in &of.pools {
        out.add([&pool.database, &pool.user, standby(&pool.standby)], value(pool));
    }
}

fn each_total(of: &Reading, out: &mut Samples, value: fn(&Totals) -> Value) {
    for pool in &of.pools {
        out.add([&pool.database, &pool.user, standby(&pool.standby)], value(&pool.totals));
    }
}

/// Those that are known; a database whose hosts nobody has told has a row without one.
fn nodes(of: &Reading) -> impl Iterator<Item = (&console::NodeRow, String)> {
    let known = of.shown.nodes.iter().filter(|row| !row.host.is_empty());
    known.map(|row| (row, format!("{}:{}", row.host, row.port)))
}

fn each_node(of: &Reading, out: &mut Samples, value: fn(&console::NodeRow) -> Option<Value>) {
    for (row, node) in nodes(of) {
        if let Some(value) = value(row) {
            out.add([&row.databases, &node], value);
        }
    }
}

fn process(of: &Reading, out: &mut Samples, value: fn(&Process) -> Option<Value>) {
    if let Some(value) = of.process.as_ref().and_then(value) {
        out.add([], value);
    }
}
