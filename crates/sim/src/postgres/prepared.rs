//! Prepared statements: by the protocol and by SQL, one namespace. Constants in them are read when they are prepared,
//! as the settings of that moment have them.

use std::rc::Rc;

use super::text::between;
use super::{Outcome, Postgres};

/// One.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) text: Rc<[u8]>,
    by_sql: bool,
}

/// A constant that means what the session's TimeZone makes of it.
const CONSTANT: &[u8] = b"@zone";
/// What the pooler calls its own.
const POOLERS: &[u8] = b"howdah_";

/// The name behind PREPARE, EXECUTE or DEALLOCATE.
fn name_of(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'(' | b';')).unwrap_or(rest.len());
    &rest[..end]
}

fn unknown(name: &[u8]) -> Outcome {
    let name = String::from_utf8_lossy(name);
    Outcome::Error("26000", format!("prepared statement \"{name}\" does not exist"))
}

impl Postgres {
    /// A text with its constants read.
    fn with_constants(&self, text: &[u8]) -> Rc<[u8]> {
        let Some(at) = text.windows(CONSTANT.len()).position(|window| window == CONSTANT) else {
            return text.into();
        };
        let value = self.shown(b"TimeZone").unwrap_or_default();
        [&text[..at], b"@", &value, b"@", &text[at + CONSTANT.len()..]].concat().into()
    }

    /// What the constant in a text is, if it has one.
    pub(super) fn constant_in(&self, text: &[u8]) -> Vec<u8> {
        let text = self.with_constants(text);
        if !text.contains(&b'@') {
            return Vec::new();
        }
        [b"@", between(&text, b'@', b'@'), b"@"].concat()
    }

    pub(super) fn keep_statement(&mut self, name: &[u8], text: &[u8], by_sql: bool) {
        let text = self.with_constants(text);
        self.statements.insert(name.to_vec(), Prepared { text, by_sql });
    }

    /// Whether SQL has prepared something that does not go with its client.
    pub(super) fn has_prepared_by_sql(&self) -> bool {
        self.statements.iter().any(|(name, statement)| statement.by_sql && !name.starts_with(POOLERS))
    }

    /// Names that the pooler gives to statements which are to stay.
    pub(crate) fn shared_statements(&self) -> usize {
        let is_shared = |name: &&Vec<u8>| {
            name.strip_prefix(POOLERS).is_some_and(|number| number.iter().all(u8::is_ascii_digit))
        };
        self.statements.keys().filter(is_shared).count()
    }

    /// Whether every name is one that the pooler has given.
    pub(crate) fn has_only_shared(&self) -> bool {
        self.statements.keys().all(|name| name.is_empty() || name.starts_with(POOLERS))
    }

    /// `PREPARE name AS text`.
    pub(super) fn prepare(&mut self, rest: &[u8]) -> Outcome {
        let name = name_of(rest);
        let at = rest.windows(4).position(|window| window == b" AS ").map_or(rest.len(), |at| at + 4);
        let text = &rest[at..];
        // Simpler than PostgreSQL, which reads the text first.
        if self.statements.contains_key(name) {
            let name = String::from_utf8_lossy(name);
            return Outcome::Error("42P05", format!("prepared statement \"{name}\" already exists"));
        }
        if text.starts_with(b"SYNTAX") {
            return Outcome::Error("42601", "syntax error".into());
        }
        self.keep_statement(name, text, true);
        self.complete("PREPARE".into())
    }

    /// What `EXECUTE name('value')` and what explains it are about.
    pub(super) fn executed(&self, text: &[u8]) -> Option<Result<Vec<u8>, Outcome>> {
        const EXECUTE: &[u8] = b"EXECUTE ";
        let at = text.windows(EXECUTE.len()).position(|window| window == EXECUTE)?;
        let rest = &text[at + EXECUTE.len()..];
        let name = name_of(rest);
        let Some(statement) = self.statements.get(name) else { return Some(Err(unknown(name))) };
        let value = if rest.contains(&b'\'') { between(rest, b'\'', b'\'') } else { b"" };
        Some(Ok(super::sql::with_value(&statement.text, value)))
    }

    pub(super) fn execute_by_sql(&mut self, text: &[u8], is_simple: bool) -> Outcome {
        match self.executed(text) {
            None => unknown(b""),
            Some(Err(outcome)) => outcome,
            Some(Ok(text)) => self.execute(&text, is_simple, 0, 0).0,
        }
    }

    pub(super) fn explain(&mut self, text: &[u8], is_simple: bool) -> Outcome {
        match self.executed(text) {
            Some(Ok(_)) => {
                self.rows(b"plan", 1, 0, is_simple);
                self.complete("EXPLAIN".into())
            }
            Some(Err(outcome)) => outcome,
            None => unknown(b""),
        }
    }

    /// `DEALLOCATE name`, `DEALLOCATE ALL`.
    pub(super) fn deallocate(&mut self, rest: &[u8]) -> Outcome {
        let name = name_of(rest);
        if name == b"ALL" {
            self.statements.clear();
            return self.complete("DEALLOCATE ALL".into());
        }
        match self.statements.remove(name) {
            Some(_) => self.complete("DEALLOCATE".into()),
            None => unknown(name),
        }
    }

    /// Whether a statement answers rows.
    pub(super) fn has_rows(&self, text: &[u8]) -> bool {
        if text.starts_with(b"EXPLAIN") {
            return true;
        }
        if !text.starts_with(b"EXECUTE ") {
            return super::sql::has_rows(text);
        }
        matches!(self.executed(text), Some(Ok(text)) if super::sql::has_rows(&text))
    }
}

/// A row without the constant in it, and the constant.
pub(crate) fn apart(row: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let value = row.get(5 + 6..)?;
    let first = value.iter().position(|&byte| byte == b'@')?;
    let last = value.iter().rposition(|&byte| byte == b'@').filter(|last| *last > first)?;
    Some(([&value[..first], &value[last + 1..]].concat(), &value[first + 1..last]))
}
