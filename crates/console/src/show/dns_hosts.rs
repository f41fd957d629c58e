//! `SHOW DNS_HOSTS`: names in the DNS cache.

use model::{Cell, Column};

use super::cell::{int8, int8_column, text, text_column};
use crate::snapshot::DnsHostRow;

pub(super) const COLUMNS: &[Column] = &[text_column("hostname"), int8_column("ttl"), text_column("addrs")];

pub(super) fn rows(hosts: &[DnsHostRow]) -> Vec<Vec<Cell>> {
    let row =
        |host: &DnsHostRow| vec![text(&host.hostname), int8(host.ttl.as_secs()), Some(host.addrs.join(","))];
    hosts.iter().map(row).collect()
}
