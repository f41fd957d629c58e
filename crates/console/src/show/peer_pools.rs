//! `SHOW PEER_POOLS`: cancel requests on their way to peers.

use model::{Cell, Column};

use super::cell::{int4, int4_column};
use crate::snapshot::PeerPoolRow;

pub(super) const COLUMNS: &[Column] = &[
    int4_column("peer_id"),
    int4_column("cl_active_cancel_req"),
    int4_column("cl_waiting_cancel_req"),
    int4_column("sv_active_cancel"),
    int4_column("sv_login"),
];

pub(super) fn rows(pools: &[PeerPoolRow]) -> Vec<Vec<Cell>> {
    let row = |pool: &PeerPoolRow| {
        vec![
            int4(pool.peer_id),
            int4(pool.clients_active_cancel),
            int4(pool.clients_waiting_cancel),
            int4(pool.servers_active_cancel),
            int4(pool.servers_login),
        ]
    };
    pools.iter().map(row).collect()
}
