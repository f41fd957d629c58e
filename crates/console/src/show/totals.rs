//! `SHOW TOTALS`: what all pools together counted, a line each.

use model::{Cell, Column};
use stats::{Averages, COUNTERS, Totals};

use super::cell::{numeric, numeric_column, text_column};

pub(super) const COLUMNS: &[Column] = &[text_column("name"), numeric_column("value")];

pub(super) fn rows((totals, averages): &(Totals, Averages)) -> Vec<Vec<Cell>> {
    let lines = |prefix: &'static str, values: [u64; COUNTERS]| {
        let line = move |(name, value)| vec![Some(format!("{prefix}_{name}")), numeric(value)];
        NAMES.into_iter().zip(values).map(line)
    };
    lines("total", totals.values()).chain(lines("avg", averages.values())).collect()
}

/// In the order of [`Totals::values`].
const NAMES: [&str; COUNTERS] = [
    "server_assignment_count",
    "xact_count",
    "query_count",
    "client_bytes",
    "server_bytes",
    "xact_time",
    "query_time",
    "wait_time",
    "ps_client_parse_count",
    "ps_server_parse_count",
    "ps_bind_count",
    "client_login_count",
    "pin_count",
];
