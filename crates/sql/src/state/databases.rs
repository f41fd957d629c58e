//! Commands about whole databases: which ones they need to themselves, and which come into being.
//!
//! PostgreSQL drops, renames, moves or copies a database only while no other session is in it.

use super::Effect;
use super::cursor::Cursor;
use crate::name::Name;

/// What CREATE DATABASE copies unless it is told otherwise.
const TEMPLATE: Name<'static> = Name::written(b"template1");

/// Behind CREATE DATABASE.
pub(super) fn create<'a>(mut cursor: Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    if let Some(name) = cursor.name() {
        visit(Effect::Database(name));
        visit(Effect::Database(template(cursor)));
    }
}

/// Among the options, which are words with a value each.
fn template<'a>(mut cursor: Cursor<'a>) -> Name<'a> {
    cursor.eat("with");
    while cursor.token.is_some() {
        let is_template = cursor.is("template");
        let is_of_two_words = cursor.is("connection");
        cursor.advance();
        if is_of_two_words {
            cursor.eat("limit");
        }
        cursor.eat_symbol(b'=');
        if is_template && !cursor.is("default") {
            return cursor.name().unwrap_or(TEMPLATE);
        }
        cursor.eat_symbol(b'-');
        cursor.advance();
    }
    TEMPLATE
}

/// Behind ALTER.
pub(super) fn alter<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    if !cursor.eat("database") {
        return;
    }
    let Some(name) = cursor.name() else { return };
    if cursor.eat_all(&["rename", "to"]) {
        visit(Effect::Database(name));
        if let Some(name) = cursor.name() {
            visit(Effect::Database(name));
        }
    } else if cursor.eat_all(&["set", "tablespace"]) {
        visit(Effect::Database(name));
    }
}

/// Behind DROP DATABASE.
pub(super) fn drop<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    cursor.eat_all(&["if", "exists"]);
    if let Some(name) = cursor.name() {
        visit(Effect::Database(name));
    }
}
