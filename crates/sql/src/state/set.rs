//! SET and RESET in all their forms.

use super::cursor::Cursor;
use super::{Effect, Set, Value};
use crate::lexer::Token;
use crate::name::Name;

const fn known(name: &'static str) -> Name<'static> {
    Name::written(name.as_bytes())
}

/// Behind the word SET.
pub(super) fn set<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> Option<()> {
    if cursor.eat("constraints") {
        cursor.tail();
        visit(Effect::SetTransaction);
        return Some(());
    }
    let ahead = *cursor;
    let is_local = cursor.eat("local");
    let is_session = !is_local && cursor.eat("session");
    if is_session && (cursor.is_symbol(b'=') || cursor.is("to") || cursor.is_symbol(b'.')) {
        *cursor = ahead; // a parameter that is called so
    }
    if cursor.eat("transaction") {
        cursor.tail();
        visit(Effect::SetTransaction);
        return Some(());
    }
    if is_session && cursor.eat_all(&["characteristics", "as", "transaction"]) {
        return characteristics(cursor, visit);
    }
    let (name, value) = name_and_value(cursor, is_session)?;
    cursor.token.is_none().then_some(())?;
    visit(match value {
        Some(value) => Effect::Set(Set { name, value, is_local }),
        None => Effect::Reset { name, is_local },
    });
    Some(())
}

/// No value is the default.
fn name_and_value<'a>(cursor: &mut Cursor<'a>, is_session: bool) -> Option<(Name<'a>, Option<Value<'a>>)> {
    let ahead = *cursor;
    let of_session = cursor.eat_all(&["session", "authorization"]);
    if of_session || is_session && cursor.eat("authorization") {
        return Some((known("session_authorization"), value(cursor)?));
    }
    if cursor.eat_all(&["time", "zone"]) {
        if cursor.is("local") || cursor.is("default") {
            cursor.advance();
            return Some((known("timezone"), None));
        }
        return Some((known("timezone"), Some(Value::TimeZone(text(cursor)?))));
    }
    if cursor.eat_all(&["xml", "option"]) {
        return Some((known("xmloption"), value(cursor)?));
    }
    let name = cursor.name()?;
    if cursor.eat_symbol(b'=') || cursor.eat("to") {
        // SET TIMEZONE = LOCAL is not a form of its own: the word is the value.
        return Some((name, value(cursor)?));
    }
    if cursor.eat_all(&["from", "current"]) {
        return Some((name, Some(Value::Unread)));
    }
    *cursor = ahead;
    for (word, parameter) in [("role", "role"), ("names", "client_encoding"), ("schema", "search_path")] {
        if cursor.eat(word) {
            let is_default = word == "names" && cursor.token.is_none();
            return Some((known(parameter), if is_default { None } else { value(cursor)? }));
        }
    }
    None
}

fn value<'a>(cursor: &mut Cursor<'a>) -> Option<Option<Value<'a>>> {
    let mut ahead = *cursor;
    if ahead.eat("default") && ahead.token.is_none() {
        *cursor = ahead;
        return Some(None);
    }
    Some(Some(Value::Written(text(cursor)?)))
}

/// The rest as written, unless a part of it is not to be read.
fn text<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let mut ahead = *cursor;
    while let Some(token) = ahead.token {
        if token == Token::Unread {
            return None;
        }
        ahead.advance();
    }
    let text = cursor.tail();
    (!text.is_empty()).then_some(text)
}

fn characteristics<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> Option<()> {
    const MODES: [(&[&str], &str, &str); 8] = [
        (&["isolation", "level", "serializable"], "default_transaction_isolation", "'serializable'"),
        (&["isolation", "level", "repeatable", "read"], "default_transaction_isolation", "'repeatable read'"),
        (&["isolation", "level", "read", "committed"], "default_transaction_isolation", "'read committed'"),
        (
            &["isolation", "level", "read", "uncommitted"],
            "default_transaction_isolation",
            "'read uncommitted'",
        ),
        (&["read", "only"], "default_transaction_read_only", "on"),
        (&["read", "write"], "default_transaction_read_only", "off"),
        (&["deferrable"], "default_transaction_deferrable", "on"),
        (&["not", "deferrable"], "default_transaction_deferrable", "off"),
    ];
    // A first reading: nothing is said of a statement that is not understood to its end.
    let mut ahead = *cursor;
    while ahead.token.is_some() {
        MODES.iter().find(|(words, ..)| ahead.eat_all(words))?;
        ahead.eat_symbol(b',');
    }
    while let Some((_, name, value)) = MODES.iter().find(|(words, ..)| cursor.eat_all(words)) {
        let value = Value::Written(value.as_bytes());
        visit(Effect::Set(Set { name: known(name), value, is_local: false }));
        cursor.eat_symbol(b',');
    }
    Some(())
}

/// Behind the word RESET.
pub(super) fn reset<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> Option<()> {
    let effect = if cursor.eat("all") {
        Effect::ResetAll
    } else if cursor.eat_all(&["time", "zone"]) {
        Effect::Reset { name: known("timezone"), is_local: false }
    } else if cursor.eat_all(&["session", "authorization"]) {
        Effect::Reset { name: known("session_authorization"), is_local: false }
    } else if cursor.eat_all(&["transaction", "isolation", "level"]) {
        Effect::SetTransaction
    } else {
        Effect::Reset { name: cursor.name()?, is_local: false }
    };
    cursor.token.is_none().then_some(())?;
    visit(effect);
    Some(())
}
