//! Deadlines of sessions: a heap for each worker, and nothing that scans all clients.
//!
//! An entry is only ever a hint. A session whose deadline moved later keeps its old entry and is armed again
//! when that fires, so that a limit of a minute costs one heap operation a minute, however many queries pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};

use model::Moment;

struct Entry<T> {
    at: Moment,
    whom: Weak<T>,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// Who is to be woken when.
pub struct Timers<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
}

impl<T> Default for Timers<T> {
    /// Nobody yet.
    fn default() -> Timers<T> {
        Timers { heap: BinaryHeap::new() }
    }
}

impl<T> Timers<T> {
    /// Wakes `whom` at that moment, or never if it is gone by then.
    pub fn arm(&mut self, at: Moment, whom: &Arc<T>) {
        if at != Moment::NEVER {
            self.heap.push(Reverse(Entry { at, whom: Arc::downgrade(whom) }));
        }
    }

    /// The earliest moment at which there is something to do.
    pub fn next(&self) -> Moment {
        self.heap.peek().map_or(Moment::NEVER, |Reverse(entry)| entry.at)
    }

    /// One of those whose moment has come.
    pub fn due(&mut self, now: Moment) -> Option<Arc<T>> {
        while self.heap.peek().is_some_and(|Reverse(entry)| entry.at <= now) {
            if let Some(Reverse(entry)) = self.heap.pop()
                && let Some(whom) = entry.whom.upgrade()
            {
                return Some(whom);
            }
        }
        None
    }
}
