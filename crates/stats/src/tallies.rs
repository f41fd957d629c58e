//! Counts of things that are numbered, of one worker: how many kinds there are is known only when it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// One thread adds, any thread reads; as with [`crate::Counters`], additions by two threads at once may be lost.
#[derive(Debug)]
#[repr(align(128))]
pub struct Tallies(Box<[AtomicU64]>);

impl Tallies {
    /// None of any kind yet.
    pub fn new(kinds: usize) -> Tallies {
        Tallies((0..kinds).map(|_| AtomicU64::new(0)).collect())
    }

    /// One more of this kind.
    #[inline]
    pub fn add(&self, kind: usize) {
        if let Some(count) = self.0.get(kind) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// How many of this kind.
    pub fn count(&self, kind: usize) -> u64 {
        self.0.get(kind).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
