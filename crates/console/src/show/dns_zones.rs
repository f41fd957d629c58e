//! `SHOW DNS_ZONES`: zones in the DNS cache.

use model::{Cell, Column};

use super::cell::{int4, int4_column, int8, int8_column, text, text_column};
use crate::snapshot::DnsZoneRow;

pub(super) const COLUMNS: &[Column] = &[text_column("zonename"), int8_column("serial"), int4_column("count")];

pub(super) fn rows(zones: &[DnsZoneRow]) -> Vec<Vec<Cell>> {
    let row = |zone: &DnsZoneRow| vec![text(&zone.zonename), int8(zone.serial), int4(zone.count)];
    zones.iter().map(row).collect()
}
