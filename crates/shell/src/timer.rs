//! Deadlines of sessions: a heap for each worker, and nothing that scans all clients.
//!
//! An entry is only ever a hint. A session whose deadline moved later keeps its old entry and is armed again
//! when that fires, so that a limit of a minute costs one heap operation a minute, however many queries pass.
//! Entries of sessions that are gone are swept out each time the heap has doubled: clients may come and go by
//! the thousand within the time limit of one login.

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
    sweep_at: usize,
}

/// Fewer entries than these are not worth a sweep.
const SWEEP_MIN: usize = 1024;

impl<T> Default for Timers<T> {
    /// Nobody yet.
    fn default() -> Timers<T> {
        Timers { heap: BinaryHeap::new(), sweep_at: SWEEP_MIN }
    }
}

impl<T> Timers<T> {
    /// Wakes `whom` at that moment, or never if it is gone by then.
    pub fn arm(&mut self, at: Moment, whom: &Arc<T>) {
        if at != Moment::NEVER {
            if self.heap.len() >= self.sweep_at {
                self.heap.retain(|Reverse(entry)| entry.whom.strong_count() > 0);
                self.sweep_at = SWEEP_MIN.max(self.heap.len() * 2);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_those_who_are_gone_do_not_pile_up() {
        let mut timers = Timers::default();
        let stayed: Vec<_> = (0..100).map(Arc::new).collect();
        stayed.iter().for_each(|whom| timers.arm(Moment(1_000), whom));
        for number in 0..100_000 {
            timers.arm(Moment(2_000), &Arc::new(number));
        }
        assert!(timers.heap.len() <= SWEEP_MIN + 1);
        assert_eq!(std::iter::from_fn(|| timers.due(Moment(1_000))).count(), 100);
    }

    #[test]
    fn the_earliest_of_those_who_are_there_comes_first() {
        let mut timers = Timers::default();
        let (late, soon, gone) = (Arc::new('l'), Arc::new('s'), Arc::new('g'));
        timers.arm(Moment(30), &late);
        timers.arm(Moment(20), &soon);
        timers.arm(Moment(10), &gone);
        timers.arm(Moment::NEVER, &soon);
        drop(gone);
        assert_eq!(timers.due(Moment(25)).as_deref(), Some(&'s'));
        assert!(timers.due(Moment(25)).is_none() && timers.next() == Moment(30));
    }
}
