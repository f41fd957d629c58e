//! `SHOW USERS`: the users that are known, by name.

use model::{Cell, Column};

use super::cell::{int4, int4_column, text, text_column};
use crate::snapshot::UserRow;

pub(super) const COLUMNS: &[Column] = &[
    text_column("name"),
    text_column("pool_size"),
    text_column("reserve_pool_size"),
    text_column("pool_mode"),
    int4_column("max_user_connections"),
    int4_column("current_connections"),
    int4_column("max_user_client_connections"),
    int4_column("current_client_connections"),
];

pub(super) fn rows(users: &[UserRow]) -> Vec<Vec<Cell>> {
    let mut sorted: Vec<&UserRow> = users.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted.into_iter().map(row).collect()
}

fn row(user: &UserRow) -> Vec<Cell> {
    vec![
        text(&user.name),
        Some(size(user.pool_size)),
        Some(size(user.reserve_pool_size)),
        user.pool_mode.map(|mode| mode.name().to_owned()),
        int4(user.servers_max),
        int4(user.servers),
        int4(user.clients_max),
        int4(user.clients),
    ]
}

/// Text that aligns like a number, and nothing where nothing is set.
fn size(size: Option<u64>) -> String {
    size.map(|size| format!("{size:>9}")).unwrap_or_default()
}
