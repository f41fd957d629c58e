//! The names that one client gave to its prepared statements.
//!
//! A name is taken when its Parse is sent, not when it is answered: what follows in the same pipeline relies
//! on it. So every change is kept until the server has answered, and taken back if it never will.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use model::Statement;

/// What one statement costs beside its text, in bytes; so that a million empty ones are bounded too.
const ENTRY_BYTES: usize = 160;

#[derive(Debug)]
struct Change {
    name: Box<[u8]>,
    /// In which batch of the client's messages.
    batch: u64,
    before: Option<Arc<Statement>>,
}

/// A client's map from name to statement. Keys come from the client, so the map's hash is a keyed one.
#[derive(Debug, Default)]
pub struct Names {
    held: HashMap<Box<[u8]>, Arc<Statement>>,
    unsettled: VecDeque<Change>,
    /// Of Parses that were made to fail, in order, for the words of the errors to come.
    misused: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Names {
    /// The statement of this name.
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        self.held.get(name)
    }

    /// A name of the statement with this number.
    pub fn name_of(&self, id: u64) -> Option<&[u8]> {
        self.held.iter().find(|(_, statement)| statement.id == id).map(|(name, _)| &**name)
    }

    /// All of them.
    pub fn all(&self) -> Vec<(Box<[u8]>, Arc<Statement>)> {
        self.held.iter().map(|(name, statement)| (name.clone(), Arc::clone(statement))).collect()
    }

    /// Gives a name for good: the server has done it.
    pub fn give(&mut self, name: &[u8], statement: Arc<Statement>) {
        self.put(name, Some(statement));
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there is none, and no change that could still be taken back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.unsettled.is_empty()
    }

    /// A Parse of a name in use was made to fail.
    pub fn push_misused(&mut self, name: &[u8]) {
        self.misused.push_back(name.into());
    }

    /// The name of the oldest such Parse that has not been told.
    pub fn take_misused(&mut self) -> Box<[u8]> {
        self.misused.pop_front().unwrap_or_default()
    }

    /// Bytes that these names keep alive: texts count in full, although others may share them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is certain what `name` means in `batch`. A change of an earlier batch that is not settled
    /// leaves it open: an error may undo that batch and not this one.
    pub fn is_certain(&self, name: &[u8], batch: u64) -> bool {
        let mut earlier = self.unsettled.iter().take_while(|change| change.batch != batch);
        !earlier.any(|change| *change.name == *name)
    }

    /// Gives a name to a statement, until settled or undone.
    pub fn insert(&mut self, name: &[u8], statement: Arc<Statement>, batch: u64) {
        let before = self.put(name, Some(statement));
        self.unsettled.push_back(Change { name: name.into(), batch, before });
    }

    /// Takes a name away, until settled or undone.
    pub fn remove(&mut self, name: &[u8], batch: u64) {
        let before = self.put(name, None);
        self.unsettled.push_back(Change { name: name.into(), batch, before });
    }

    /// Takes a name away for good: the server has done it.
    pub fn forget(&mut self, name: &[u8]) {
        self.put(name, None);
    }

    /// The oldest unsettled change was answered.
    pub fn settle(&mut self) {
        self.unsettled.pop_front();
    }

    /// The `count` oldest unsettled changes will never be answered: they did not happen.
    pub fn undo(&mut self, count: usize) {
        let undone: Vec<Change> = self.unsettled.drain(..count.min(self.unsettled.len())).collect();
        for change in undone.into_iter().rev() {
            // A later change of the same name stands; what it would go back to is now what we went back to.
            match self.unsettled.iter_mut().find(|later| later.name == change.name) {
                Some(later) => later.before = change.before,
                None => {
                    self.put(&change.name, change.before);
                }
            }
        }
    }

    /// DEALLOCATE ALL or DISCARD ALL was done: changes sent after it are still to come.
    pub fn clear(&mut self) {
        let mut later: HashMap<Box<[u8]>, Option<Arc<Statement>>> = HashMap::new();
        for change in &mut self.unsettled {
            // What the first change of a name goes back to is gone; the others go back to one another.
            if !later.contains_key(&change.name) {
                change.before = None;
                later.insert(change.name.clone(), self.held.get(&change.name).cloned());
            }
        }
        self.held.clear();
        self.bytes = 0;
        for (name, statement) in later {
            self.put(&name, statement);
        }
    }

    fn put(&mut self, name: &[u8], statement: Option<Arc<Statement>>) -> Option<Arc<Statement>> {
        let cost = |statement: &Arc<Statement>| ENTRY_BYTES + name.len() + statement.rest.len();
        let before = match statement {
            Some(statement) => {
                self.bytes += cost(&statement);
                self.held.insert(name.into(), statement)
            }
            None => self.held.remove(name),
        };
        self.bytes -= before.as_ref().map_or(0, cost);
        before
    }
}
