//! `SHOW DATABASES`: the entries of `[databases]`, by name.

use model::{Cell, Column};

use super::cell::{flag, int4, int4_column, text, text_column};
use crate::snapshot::DatabaseRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("name"),
    text_column("host"),
    int4_column("port"),
    text_column("database"),
    text_column("force_user"),
    int4_column("pool_size"),
    int4_column("min_pool_size"),
    int4_column("reserve_pool_size"),
    int4_column("server_lifetime"),
    text_column("pool_mode"),
    text_column("load_balance_hosts"),
    int4_column("max_connections"),
    int4_column("current_connections"),
    int4_column("max_client_connections"),
    int4_column("current_client_connections"),
    int4_column("paused"),
    int4_column("disabled"),
];

pub(super) fn rows(databases: &[DatabaseRow]) -> Vec<Vec<Cell>> {
    let mut sorted: Vec<&DatabaseRow> = databases.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted.into_iter().map(row).collect()
}

fn row(database: &DatabaseRow) -> Vec<Cell> {
    vec![
        text(&database.name),
        database.host.clone(),
        int4(database.port),
        text(&database.database),
        database.force_user.clone(),
        int4(database.pool_size),
        int4(database.min_pool_size),
        int4(database.reserve_pool_size),
        int4(database.server_lifetime.as_secs()),
        database.pool_mode.map(|mode| mode.name().to_owned()),
        database.load_balance_hosts.map(str::to_owned),
        int4(database.servers_max),
        int4(database.servers),
        int4(database.clients_max),
        int4(database.clients),
        flag(database.paused),
        flag(database.disabled),
    ]
}
