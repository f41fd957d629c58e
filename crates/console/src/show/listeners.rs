//! `SHOW LISTENERS`: the connections that listen for clients, by number.

use model::{Cell, Column};

use super::cell::{int4, int4_column, int8, int8_column, text, text_column};
use crate::snapshot::ListenerRow;

pub(super) const COLUMNS: &[Column] = &[
    int8_column("id"),
    text_column("database"),
    text_column("state"),
    text_column("addr"),
    int4_column("port"),
    int4_column("remote_pid"),
    text_column("client_encoding"),
    int4_column("clients"),
    int4_column("channels"),
    int8_column("notifications"),
    int8_column("losses"),
];

pub(super) fn rows(listeners: &[ListenerRow]) -> Vec<Vec<Cell>> {
    listeners.iter().map(row).collect()
}

fn row(listener: &ListenerRow) -> Vec<Cell> {
    vec![
        int8(listener.id),
        text(&listener.database),
        text(listener.state),
        listener.addr.clone(),
        int4(listener.port),
        int4(listener.remote_pid),
        text(&listener.client_encoding),
        int4(listener.clients),
        int4(listener.channels),
        int8(listener.notifications),
        int8(listener.losses),
    ]
}
