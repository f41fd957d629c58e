//! All kinds of session state that the matrix knows, by what they are made of.

mod objects;
mod sequences;
mod settings;
mod statements;
mod transactions;

use super::kind::Kind;

pub fn all() -> Vec<&'static Kind> {
    let tables = [settings::KINDS, transactions::KINDS, statements::KINDS, objects::KINDS, sequences::KINDS];
    tables.into_iter().flatten().collect()
}
