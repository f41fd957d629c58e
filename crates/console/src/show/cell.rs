//! Columns and cells in few words.

use std::time::Duration;

use model::{Cell, Column, ColumnType};

pub(super) const fn text_column(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Text }
}

pub(super) const fn int4_column(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Int4 }
}

pub(super) const fn int8_column(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Int8 }
}

pub(super) const fn numeric_column(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Numeric }
}

pub(super) fn text(value: &str) -> Cell {
    Some(value.to_owned())
}

/// A driver reads an int4 into 32 bits: what does not fit is shown as the greatest that does.
pub(super) fn int4(value: impl TryInto<i32>) -> Cell {
    Some(value.try_into().unwrap_or(i32::MAX).to_string())
}

pub(super) fn int8(value: impl TryInto<i64>) -> Cell {
    Some(value.try_into().unwrap_or(i64::MAX).to_string())
}

pub(super) fn numeric(value: u64) -> Cell {
    Some(value.to_string())
}

pub(super) fn flag(value: bool) -> Cell {
    int4(i32::from(value))
}

/// A duration in two columns: seconds, and the microseconds beside them.
pub(super) fn seconds_and_us(value: Duration) -> [Cell; 2] {
    [int4(value.as_secs()), int4(value.subsec_micros())]
}
