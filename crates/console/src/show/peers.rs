//! `SHOW PEERS`: the entries of `[peers]`.

use model::{Cell, Column};

use super::cell::{int4, int4_column, text_column};
use crate::snapshot::PeerRow;

pub(super) const COLUMNS: &[Column] =
    &[int4_column("peer_id"), text_column("host"), int4_column("port"), int4_column("pool_size")];

pub(super) fn rows(peers: &[PeerRow]) -> Vec<Vec<Cell>> {
    let row =
        |peer: &PeerRow| vec![int4(peer.peer_id), peer.host.clone(), int4(peer.port), int4(peer.pool_size)];
    peers.iter().map(row).collect()
}
