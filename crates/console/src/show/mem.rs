//! `SHOW MEM`: memory by what it is used for.

use model::{Cell, Column};

use super::cell::{int4, int4_column, text, text_column};
use crate::snapshot::MemRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("name"),
    int4_column("size"),
    int4_column("used"),
    int4_column("free"),
    int4_column("memtotal"),
];

pub(super) fn rows(kinds: &[MemRow]) -> Vec<Vec<Cell>> {
    let row = |kind: &MemRow| {
        vec![text(&kind.name), int4(kind.size), int4(kind.used), int4(kind.free), int4(kind.total_bytes)]
    };
    kinds.iter().map(row).collect()
}
