//! `SHOW PINS`: why clients keep their servers, what they do most first.

use std::cmp::Reverse;

use model::{Cell, Column};

use super::cell::{int4, int4_column, numeric, numeric_column, text, text_column};
use crate::snapshot::PinRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("database"),
    text_column("user"),
    text_column("application_name"),
    text_column("reason"),
    text_column("statement"),
    int4_column("current"),
    numeric_column("total"),
    text_column("hint"),
];

pub(super) fn rows(pins: &[PinRow]) -> Vec<Vec<Cell>> {
    let mut sorted: Vec<&PinRow> = pins.iter().collect();
    sorted
        .sort_by_key(|pin| (Reverse(pin.current), Reverse(pin.total), &pin.database, &pin.user, &pin.reason));
    sorted.into_iter().map(row).collect()
}

fn row(pin: &PinRow) -> Vec<Cell> {
    vec![
        text(&pin.database),
        text(&pin.user),
        text(&pin.application_name),
        text(&pin.reason),
        text(&pin.statement),
        int4(pin.current),
        numeric(pin.total),
        text(&pin.hint),
    ]
}
