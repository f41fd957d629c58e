//! `SHOW NODES`: the hosts of clusters that are monitored, and what is known of each.

use model::{Cell, Column};

use super::cell::{int4, int4_column, int8, int8_column, text, text_column};
use crate::snapshot::NodeRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("databases"),
    text_column("host"),
    int4_column("port"),
    text_column("role"),
    text_column("state"),
    int4_column("timeline"),
    int8_column("lag_bytes"),
    int8_column("lag_ms"),
    text_column("since"),
    int4_column("connections"),
    text_column("last_error"),
    text_column("member"),
    text_column("tags"),
    text_column("topology"),
];

pub(super) fn rows(nodes: &[NodeRow]) -> Vec<Vec<Cell>> {
    nodes.iter().map(row).collect()
}

fn row(node: &NodeRow) -> Vec<Cell> {
    vec![
        text(&node.databases),
        text(&node.host),
        int4(node.port),
        text(node.role),
        text(node.state),
        node.timeline.and_then(int4),
        node.lag.and_then(|(bytes, _)| int8(bytes)),
        node.lag.and_then(|(_, time)| int8(time.as_millis())),
        text(&node.since),
        int4(node.connections),
        text(&node.last_error),
        text(&node.member),
        text(&node.tags),
        text(&node.topology),
    ]
}
