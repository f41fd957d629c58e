//! Prepared statements as clients share them: one text, one number, however many names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The text and parameter types of a Parse message, and the number by which servers know them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Statement {
    /// Unique in the process; the server's name is made of it.
    pub id: u64,
    /// The body of the Parse message after the statement's name: text, zero, types.
    ///
    /// The whole of it is compared, never a hash alone: two statements that collide must not be one.
    pub rest: Box<[u8]>,
}

impl Statement {
    /// The name by which servers know it.
    pub fn server_name(&self) -> String {
        format!("howdah_{}", self.id)
    }
}

/// All statements that some client or server still holds.
#[derive(Debug, Default)]
pub struct Statements {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    known: HashMap<Box<[u8]>, Weak<Statement>>,
    sweep_at: usize,
}

impl Statements {
    /// The statement with this text and these types, made if nobody holds it.
    ///
    /// Forgotten ones are swept out each time the table has doubled, so that it never holds more than twice
    /// what is in use.
    pub fn intern(&self, rest: &[u8]) -> Arc<Statement> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = inner.known.get(rest).and_then(Weak::upgrade) {
            return statement;
        }
        inner.last_id += 1;
        let statement = Arc::new(Statement { id: inner.last_id, rest: rest.into() });
        inner.known.insert(rest.into(), Arc::downgrade(&statement));
        if inner.known.len() > inner.sweep_at.max(1024) {
            inner.known.retain(|_, statement| statement.strong_count() > 0);
            inner.sweep_at = inner.known.len() * 2;
        }
        statement
    }

    /// How many are known, those about to be swept included.
    pub fn len(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).known.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
