//! `SHOW STATS`, `STATS_TOTALS` and `STATS_AVERAGES`: what each database's pools counted, by name.

use model::{Cell, Column};

use super::cell::{numeric, numeric_column, text, text_column};
use crate::snapshot::StatsRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("database"),
    numeric_column("total_server_assignment_count"),
    numeric_column("total_xact_count"),
    numeric_column("total_query_count"),
    numeric_column("total_received"),
    numeric_column("total_sent"),
    numeric_column("total_xact_time"),
    numeric_column("total_query_time"),
    numeric_column("total_wait_time"),
    numeric_column("total_client_parse_count"),
    numeric_column("total_server_parse_count"),
    numeric_column("total_bind_count"),
    numeric_column("total_client_login_count"),
    numeric_column("avg_server_assignment_count"),
    numeric_column("avg_xact_count"),
    numeric_column("avg_query_count"),
    numeric_column("avg_recv"),
    numeric_column("avg_sent"),
    numeric_column("avg_xact_time"),
    numeric_column("avg_query_time"),
    numeric_column("avg_wait_time"),
    numeric_column("avg_client_parse_count"),
    numeric_column("avg_server_parse_count"),
    numeric_column("avg_bind_count"),
    numeric_column("avg_client_login_count"),
    numeric_column("total_pin_count"),
    numeric_column("avg_pin_count"),
];

pub(super) const TOTALS_COLUMNS: &[Column] = &[
    text_column("database"),
    numeric_column("server_assignment_count"),
    numeric_column("xact_count"),
    numeric_column("query_count"),
    numeric_column("bytes_received"),
    numeric_column("bytes_sent"),
    numeric_column("xact_time"),
    numeric_column("query_time"),
    numeric_column("wait_time"),
    numeric_column("client_parse_count"),
    numeric_column("server_parse_count"),
    numeric_column("bind_count"),
    numeric_column("client_login_count"),
    numeric_column("pin_count"),
];

pub(super) const AVERAGES_COLUMNS: &[Column] = &[
    text_column("database"),
    numeric_column("server_assignment_count"),
    numeric_column("xact_count"),
    numeric_column("query_count"),
    numeric_column("bytes_received"),
    numeric_column("bytes_sent"),
    numeric_column("xact_time"),
    numeric_column("query_time"),
    numeric_column("wait_time"),
    numeric_column("avg_client_parse_count"),
    numeric_column("avg_server_parse_count"),
    numeric_column("avg_bind_count"),
    numeric_column("avg_client_login_count"),
    numeric_column("avg_pin_count"),
];

pub(super) fn rows(databases: &[StatsRow]) -> Vec<Vec<Cell>> {
    rows_of(databases, |row| {
        // Ours stand behind all those that tools know.
        let ([totals @ .., pins], [averages @ .., pins_per_s]) = (row.totals.values(), row.averages.values());
        totals.into_iter().chain(averages).chain([pins, pins_per_s]).collect()
    })
}

pub(super) fn totals(databases: &[StatsRow]) -> Vec<Vec<Cell>> {
    rows_of(databases, |row| row.totals.values().to_vec())
}

pub(super) fn averages(databases: &[StatsRow]) -> Vec<Vec<Cell>> {
    rows_of(databases, |row| row.averages.values().to_vec())
}

fn rows_of(databases: &[StatsRow], values: impl Fn(&StatsRow) -> Vec<u64>) -> Vec<Vec<Cell>> {
    let mut sorted: Vec<&StatsRow> = databases.iter().collect();
    sorted.sort_by(|a, b| a.database.cmp(&b.database));
    let row = |row: &StatsRow| {
        std::iter::once(text(&row.database)).chain(values(row).into_iter().map(numeric)).collect()
    };
    sorted.into_iter().map(row).collect()
}
