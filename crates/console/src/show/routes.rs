//! `SHOW ROUTES`: where transactions went of databases whose reads may go to standbys, and why.

use model::{Cell, Column};

use super::cell::{int8, int8_column, text, text_column};
use crate::snapshot::RouteRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("database"),
    text_column("user"),
    text_column("to"),
    text_column("reason"),
    int8_column("count"),
];

pub(super) fn rows(routes: &[RouteRow]) -> Vec<Vec<Cell>> {
    let row = |route: &RouteRow| {
        vec![text(&route.database), text(&route.user), text(&route.to), text(route.reason), int8(route.count)]
    };
    routes.iter().map(row).collect()
}
