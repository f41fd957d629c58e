//! `SHOW VERSION`.

use model::{Cell, Column};

use super::cell::{text, text_column};

pub(super) const COLUMNS: &[Column] = &[text_column("version")];

pub(super) fn rows(version: &str) -> Vec<Vec<Cell>> {
    vec![vec![text(version)]]
}
