//! `SHOW POOLS`: by database and then by user.

use model::{Cell, Column};

use super::cell::{int4, int4_column, seconds_and_us, text, text_column};
use crate::snapshot::PoolRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("database"),
    text_column("user"),
    int4_column("cl_active"),
    int4_column("cl_waiting"),
    int4_column("cl_active_cancel_req"),
    int4_column("cl_waiting_cancel_req"),
    int4_column("sv_active"),
    int4_column("sv_active_cancel"),
    int4_column("sv_being_canceled"),
    int4_column("sv_idle"),
    int4_column("sv_used"),
    int4_column("sv_tested"),
    int4_column("sv_login"),
    int4_column("maxwait"),
    int4_column("maxwait_us"),
    text_column("pool_mode"),
    text_column("load_balance_hosts"),
    int4_column("sv_pinned"),
    text_column("standby"),
];

pub(super) fn rows(pools: &[PoolRow]) -> Vec<Vec<Cell>> {
    let mut sorted: Vec<&PoolRow> = pools.iter().collect();
    sorted.sort_by(|a, b| (&a.database, &a.user, &a.standby).cmp(&(&b.database, &b.user, &b.standby)));
    sorted.into_iter().map(row).collect()
}

fn row(pool: &PoolRow) -> Vec<Cell> {
    let [wait_max, wait_max_us] = seconds_and_us(pool.wait_max);
    vec![
        text(&pool.database),
        text(&pool.user),
        int4(pool.clients_active),
        int4(pool.clients_waiting),
        int4(pool.clients_active_cancel),
        int4(pool.clients_waiting_cancel),
        int4(pool.servers_active),
        int4(pool.servers_active_cancel),
        int4(pool.servers_being_canceled),
        int4(pool.servers_idle),
        int4(pool.servers_used),
        int4(pool.servers_tested),
        int4(pool.servers_login),
        wait_max,
        wait_max_us,
        text(pool.pool_mode.name()),
        pool.load_balance_hosts.map(str::to_owned),
        int4(pool.servers_pinned),
        pool.standby.clone(),
    ]
}
