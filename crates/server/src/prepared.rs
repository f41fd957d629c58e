//! The prepared statements that one server connection has, by number, the least recently used first to go.

use std::sync::Arc;

use model::Statement;
use rustc_hash::FxHashMap;

#[derive(Debug)]
struct Held {
    statement: Arc<Statement>,
    used_at: u64,
    /// In which batch its Parse was sent; nothing once that was answered.
    sent_in: Option<u64>,
}

/// What a server has been sent a Parse for and not a Close.
///
/// An entry is made when the Parse is sent, because what follows in the same pipeline may rely on it, and
/// unmade if the server never answers it with ParseComplete. What was never answered is undone last first.
#[derive(Debug, Default)]
pub struct Prepared {
    held: FxHashMap<u64, Held>,
    closing: Vec<Held>,
    uses: u64,
}

impl Prepared {
    /// How many the server has.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether the server has none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the server has it for what is sent in `batch`; counts as a use. A Parse of an earlier batch that
    /// is not answered yet does not count: an error may skip it and not this batch.
    pub fn touch(&mut self, id: u64, batch: u64) -> bool {
        self.uses += 1;
        match self.held.get_mut(&id) {
            Some(held) => {
                held.used_at = self.uses;
                held.sent_in.is_none_or(|sent_in| sent_in == batch)
            }
            None => false,
        }
    }

    /// A Parse of `statement` is sent in `batch`.
    pub fn insert(&mut self, statement: Arc<Statement>, batch: u64) {
        self.uses += 1;
        self.held.insert(statement.id, Held { statement, used_at: self.uses, sent_in: Some(batch) });
    }

    /// The Parse of `id` was answered.
    pub fn parsed(&mut self, id: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.sent_in = None;
        }
    }

    /// The statement to close so that no more than `most` are held; the caller sends the Close.
    ///
    /// A scan: it happens only when a new statement is prepared beyond the limit.
    pub fn evict(&mut self, most: usize) -> Option<Arc<Statement>> {
        if self.held.len() <= most {
            return None;
        }
        let oldest = self.held.iter().min_by_key(|(_, held)| held.used_at).map(|(&id, _)| id)?;
        self.close(oldest)
    }

    /// A Close of `id` is sent, if the server has it.
    pub fn close(&mut self, id: u64) -> Option<Arc<Statement>> {
        let held = self.held.remove(&id)?;
        let statement = Arc::clone(&held.statement);
        self.closing.push(held);
        Some(statement)
    }

    /// The Close of `id` was answered.
    pub fn closed(&mut self, id: u64) {
        self.closing.retain(|held| held.statement.id != id);
    }

    /// The Parse of `id` was never answered: the server does not have it.
    pub fn undo_parse(&mut self, id: u64) {
        self.held.remove(&id);
    }

    /// The Close of `id` was never answered: the server still has it, unless it was prepared again since.
    pub fn undo_close(&mut self, id: u64) {
        if let Some(at) = self.closing.iter().position(|held| held.statement.id == id) {
            let held = self.closing.swap_remove(at);
            self.held.entry(id).or_insert(held);
        }
    }

    /// DEALLOCATE ALL or DISCARD ALL was done. What a Parse behind it brings is still to come.
    pub fn clear(&mut self, is_coming: impl Fn(u64) -> bool) {
        self.held.retain(|&id, _| is_coming(id));
        self.closing.clear();
    }
}
