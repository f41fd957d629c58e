//! Averages as PgBouncer makes them: counts and bytes per second, times per event.

use std::fmt;
use std::time::Duration;

use crate::totals::{COUNTERS, Totals};

/// What happened in a second, or took how long each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// Times a second that a client was given a server.
    pub server_assignments_per_s: u64,
    /// Transactions a second.
    pub xacts_per_s: u64,
    /// Queries a second.
    pub queries_per_s: u64,
    /// Bytes a second from clients.
    pub received_bytes_per_s: u64,
    /// Bytes a second from servers.
    pub sent_bytes_per_s: u64,
    /// Microseconds of a transaction.
    pub xact_time_us: u64,
    /// Microseconds of a query.
    pub query_time_us: u64,
    /// Microseconds of waiting for each server given.
    pub wait_time_us: u64,
    /// Parse messages a second from clients.
    pub client_parses_per_s: u64,
    /// Parse messages a second to servers.
    pub server_parses_per_s: u64,
    /// Bind messages a second.
    pub binds_per_s: u64,
    /// Logins a second.
    pub client_logins_per_s: u64,
    /// Times a second that a client began to keep its server.
    pub pins_per_s: u64,
}

impl Averages {
    /// The averages of what lies between two totals; all zero if no time does.
    pub fn between(earlier: &Totals, later: &Totals, elapsed: Duration) -> Averages {
        let elapsed_us = elapsed.as_micros();
        if elapsed_us == 0 {
            return Averages::default();
        }
        let added = later.since(earlier);
        let per_s = |count: u64| {
            let per_s = u128::from(count) * 1_000_000 / elapsed_us;
            u64::try_from(per_s).unwrap_or(u64::MAX)
        };
        let each = |time_us: u64, count: u64| time_us.checked_div(count).unwrap_or(0);
        Averages {
            server_assignments_per_s: per_s(added.server_assignment_count),
            xacts_per_s: per_s(added.xact_count),
            queries_per_s: per_s(added.query_count),
            received_bytes_per_s: per_s(added.received_bytes),
            sent_bytes_per_s: per_s(added.sent_bytes),
            xact_time_us: each(added.xact_time_us, added.xact_count),
            query_time_us: each(added.query_time_us, added.query_count),
            wait_time_us: each(added.wait_time_us, added.server_assignment_count),
            client_parses_per_s: per_s(added.client_parse_count),
            server_parses_per_s: per_s(added.server_parse_count),
            binds_per_s: per_s(added.bind_count),
            client_logins_per_s: per_s(added.client_login_count),
            pins_per_s: per_s(added.pin_count),
        }
    }

    /// The averages in the order in which the console shows them, which is that of [`Totals::values`].
    pub fn values(&self) -> [u64; COUNTERS] {
        [
            self.server_assignments_per_s,
            self.xacts_per_s,
            self.queries_per_s,
            self.received_bytes_per_s,
            self.sent_bytes_per_s,
            self.xact_time_us,
            self.query_time_us,
            self.wait_time_us,
            self.client_parses_per_s,
            self.server_parses_per_s,
            self.binds_per_s,
            self.client_logins_per_s,
            self.pins_per_s,
        ]
    }
}

/// The log's line of each `stats_period`, in PgBouncer's words: tools match it.
impl fmt::Display for Averages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stats: {} xacts/s, {} queries/s, {} client parses/s, {} server parses/s, {} binds/s, \
             {} client logins/s, in {} B/s, out {} B/s, xact {} us, query {} us, wait {} us",
            self.xacts_per_s,
            self.queries_per_s,
            self.client_parses_per_s,
            self.server_parses_per_s,
            self.binds_per_s,
            self.client_logins_per_s,
            self.received_bytes_per_s,
            self.sent_bytes_per_s,
            self.xact_time_us,
            self.query_time_us,
            self.wait_time_us,
        )
    }
}
