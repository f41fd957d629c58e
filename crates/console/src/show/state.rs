//! `SHOW STATE`: whether all is paused.

use model::{Cell, Column};

use super::cell::{text, text_column};
use crate::snapshot::State;

pub(super) const COLUMNS: &[Column] = &[text_column("key"), text_column("value")];

pub(super) fn rows(state: State) -> Vec<Vec<Cell>> {
    let states = [("active", State::Active), ("paused", State::Paused), ("suspended", State::Suspended)];
    let row = |(key, other)| vec![text(key), text(if state == other { "yes" } else { "no" })];
    states.into_iter().map(row).collect()
}
