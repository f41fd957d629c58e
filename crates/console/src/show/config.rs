//! `SHOW CONFIG`: the settings, in alphabetical order.

use model::{Cell, Column};

use super::cell::{text, text_column};
use crate::snapshot::ConfigRow;

pub(super) const COLUMNS: &[Column] =
    &[text_column("key"), text_column("value"), text_column("default"), text_column("changeable")];

pub(super) fn rows(settings: &[ConfigRow]) -> Vec<Vec<Cell>> {
    let mut sorted: Vec<&ConfigRow> = settings.iter().collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    let row = |setting: &ConfigRow| {
        let changeable = if setting.changeable { "yes" } else { "no" };
        vec![text(&setting.key), setting.value.clone(), setting.default.clone(), text(changeable)]
    };
    sorted.into_iter().map(row).collect()
}
