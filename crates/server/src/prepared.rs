//! The prepared statements that one server connection has, by number, the least recently used first to go.

use std::sync::Arc;

use model::Statement;
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Debug)]
struct Held {
    statement: Arc<Statement>,
    used_at: u64,
    /// The server has it, by what it has answered.
    had: bool,
    /// The server will have it, once it has answered what it was sent.
    has: bool,
    /// How many Parses and Closes of it are not answered.
    pending: u32,
    /// In which batch the last of these was sent.
    sent_in: u64,
}

/// What a server has been sent a Parse for and not a Close.
///
/// An entry is made when the Parse is sent, because what follows in the same pipeline may rely on it. What an
/// error undoes goes back to what was answered, and forward again over what is still to be.
#[derive(Debug, Default)]
pub struct Prepared {
    held: FxHashMap<u64, Held>,
    uses: u64,
}

impl Prepared {
    /// How many the server will have.
    pub fn len(&self) -> usize {
        self.held.values().filter(|held| held.has).count()
    }

    /// Whether the server will have none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is certain what the server has of `id` for what is sent in `batch`. A Parse or Close of an
    /// earlier batch that is not answered yet leaves it open: an error may skip that batch and not this one.
    pub fn is_certain(&self, id: u64, batch: u64) -> bool {
        self.held.get(&id).is_none_or(|held| held.pending == 0 || held.sent_in == batch)
    }

    /// The statement of this number, if the server has it or something about it is not answered yet.
    pub fn find(&self, id: u64) -> Option<&Arc<Statement>> {
        self.held.get(&id).map(|held| &held.statement)
    }

    /// Whether the server has it; counts as a use.
    pub fn touch(&mut self, id: u64) -> bool {
        self.uses += 1;
        let Some(held) = self.held.get_mut(&id) else { return false };
        held.used_at = self.uses;
        held.has
    }

    /// Whether the last that was sent about it was sent in this batch.
    pub fn is_of(&self, id: u64, batch: u64) -> bool {
        self.held.get(&id).is_some_and(|held| held.sent_in == batch)
    }

    /// A Parse of `statement` is sent in `batch`.
    pub fn insert(&mut self, statement: Arc<Statement>, batch: u64) {
        self.uses += 1;
        let fresh = Held { statement, used_at: 0, had: false, has: true, pending: 0, sent_in: batch };
        let held = self.held.entry(fresh.statement.id).or_insert(fresh);
        held.used_at = self.uses;
        held.sent(true, batch);
    }

    /// Whether the server has it, or will.
    pub fn has(&self, id: u64) -> bool {
        self.held.get(&id).is_some_and(|held| held.has)
    }

    /// The server has it: its client's own PREPARE has made it.
    pub fn made(&mut self, statement: Arc<Statement>) {
        self.uses += 1;
        let fresh = Held { statement, used_at: 0, had: true, has: true, pending: 0, sent_in: 0 };
        let held = self.held.entry(fresh.statement.id).or_insert(fresh);
        (held.used_at, held.had, held.has) = (self.uses, true, true);
    }

    /// The server has it no more: its client's own DEALLOCATE has dropped it.
    pub fn dropped(&mut self, id: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            (held.had, held.has) = (false, held.has && held.pending > 0);
            if held.is_gone() {
                self.held.remove(&id);
            }
        }
    }

    /// A Close of `id` is sent in `batch`.
    pub fn close(&mut self, id: u64, batch: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.sent(false, batch);
        }
    }

    /// The statement to close so that no more than `most` are held; the caller sends the Close.
    ///
    /// A scan: it happens only when a new statement is prepared beyond the limit.
    pub fn oldest_beyond(&self, most: usize) -> Option<Arc<Statement>> {
        if self.held.len() <= most || self.len() <= most {
            return None;
        }
        let held = self.held.values().filter(|held| held.has);
        held.min_by_key(|held| held.used_at).map(|held| Arc::clone(&held.statement))
    }

    /// The oldest Parse or Close of `id` was answered.
    pub fn answered(&mut self, id: u64, is_parse: bool) {
        if let Some(held) = self.held.get_mut(&id) {
            held.had = is_parse;
            held.pending = held.pending.saturating_sub(1);
            if held.is_gone() {
                self.held.remove(&id);
            }
        }
    }

    /// The Parses and Closes of `undone` will never be answered; of those `owed` behind them, in order, nothing
    /// is known yet.
    pub fn undo(&mut self, undone: impl Iterator<Item = u64>, owed: impl Iterator<Item = (u64, bool)>) {
        let undone: FxHashSet<u64> = undone.collect();
        for id in &undone {
            if let Some(held) = self.held.get_mut(id) {
                (held.has, held.pending) = (held.had, 0);
            }
        }
        for (id, is_parse) in owed.filter(|(id, _)| undone.contains(id)) {
            if let Some(held) = self.held.get_mut(&id) {
                (held.has, held.pending) = (is_parse, held.pending + 1);
            }
        }
        for id in &undone {
            if self.held.get(id).is_some_and(Held::is_gone) {
                self.held.remove(id);
            }
        }
    }

    /// DEALLOCATE ALL or DISCARD ALL was done. What is sent behind it is still to come.
    pub fn clear(&mut self) {
        self.held.retain(|_, held| {
            (held.had, held.has) = (false, held.has && held.pending > 0);
            !held.is_gone()
        });
    }
}

impl Held {
    fn sent(&mut self, has: bool, batch: u64) {
        (self.has, self.sent_in) = (has, batch);
        self.pending += 1;
    }

    fn is_gone(&self) -> bool {
        !self.had && !self.has && self.pending == 0
    }
}
