//! `SHOW LISTS`: how long the internal lists are.

use model::{Cell, Column};

use super::cell::{int4, int4_column, text, text_column};
use crate::snapshot::ListCounts;

pub(super) const COLUMNS: &[Column] = &[text_column("list"), int4_column("items")];

pub(super) fn rows(counts: &ListCounts) -> Vec<Vec<Cell>> {
    let lists = [
        ("databases", counts.databases),
        ("users", counts.users),
        ("peers", counts.peers),
        ("pools", counts.pools),
        ("peer_pools", counts.peer_pools),
        ("free_clients", counts.clients_free),
        ("used_clients", counts.clients_used),
        ("login_clients", counts.clients_login),
        ("free_servers", counts.servers_free),
        ("used_servers", counts.servers_used),
        ("dns_names", counts.dns_names),
        ("dns_zones", counts.dns_zones),
        ("dns_queries", counts.dns_queries),
        ("dns_pending", counts.dns_pending),
    ];
    lists.into_iter().map(|(name, items)| vec![text(name), int4(items)]).collect()
}
