//! The servers of a pool: each in exactly one state, and one function, [`Slots::place`], moves them.
//!
//! The idle ones form a list threaded through the table, the latest released last, so that taking either end or
//! one from the middle costs the same.

use model::Moment;

use crate::list::{Ends, Links, NIL};
use crate::near::Near;

/// The place of one server, from the decision to open it until it is closed.
///
/// A place is used again for another server, with another generation: an old name finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    index: u32,
    generation: u32,
}

impl Slot {
    pub(crate) const NOWHERE: Slot = Slot { index: NIL, generation: 0 };

    /// The place's number: small and dense, for a table beside the pool. It is used again after the close.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// What a server is doing, which is the list it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No server: the place is free.
    Free,
    /// Being connected and logged in.
    Opening,
    /// Lent to a client.
    Active,
    /// Being reset, checked or cleaned; no client has it.
    Tested,
    /// Released, but a cancel request to it is in flight.
    BeingCanceled,
    /// Ready for a client.
    Idle,
    /// Told to close; it counts until it is.
    Closing,
}

const STATES: usize = 7;

/// So many idle servers are looked at for the one that is nearest to who asks.
const PREFER_AMONG: usize = 8;

pub(crate) struct Record<S> {
    generation: u32,
    state: State,
    /// Cancel requests in flight to it.
    pub(crate) cancels: u32,
    /// The pool's epoch when its opening began; older than the pool's now: close it when free.
    pub(crate) epoch: u32,
    /// Who used it last, and how they left it.
    pub(crate) near: Near,
    /// Its client keeps it for its session state: set and taken away here alone.
    pinned: bool,
    /// Opened for one client alone.
    pub(crate) dedicated: bool,
    /// When it had logged in.
    pub(crate) connected: Moment,
    /// When it became idle, if it is.
    pub(crate) idle_since: Moment,
    /// The caller's handle, once opened.
    pub(crate) server: Option<S>,
}

impl<S> Record<S> {
    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }
}

pub(crate) struct Slots<S> {
    records: Vec<Record<S>>,
    free: Vec<u32>,
    counts: [u32; STATES],
    /// The latest released is the last.
    idle: Ends,
    links: Vec<Links>,
    cancels: u32,
    pinned: u32,
}

impl<S> Slots<S> {
    pub(crate) fn new() -> Slots<S> {
        Slots {
            records: Vec::new(),
            free: Vec::new(),
            counts: [0; STATES],
            idle: Ends::NONE,
            links: Vec::new(),
            cancels: 0,
            pinned: 0,
        }
    }

    /// How many are in a state.
    pub(crate) fn count(&self, state: State) -> u32 {
        self.counts[state as usize]
    }

    /// All places in use, whatever for: what the limits are about.
    pub(crate) fn in_use(&self) -> u32 {
        // Both are bounded by u32 indices.
        (self.records.len() - self.free.len()) as u32
    }

    /// Servers that are logged in and not on their way out.
    pub(crate) fn connected(&self) -> u32 {
        self.in_use() - self.count(State::Opening) - self.count(State::Closing)
    }

    /// Cancel requests in flight to all of them.
    pub(crate) fn cancels(&self) -> u32 {
        self.cancels
    }

    /// Servers that their clients keep.
    pub(crate) fn pinned(&self) -> u32 {
        self.pinned
    }

    /// Its client keeps it: until it is free or closed.
    pub(crate) fn set_pinned(&mut self, index: u32) {
        let record = &mut self.records[index as usize];
        self.pinned += u32::from(!record.pinned);
        record.pinned = true;
    }

    /// It is free again.
    #[inline]
    pub(crate) fn clear_pinned(&mut self, index: u32) {
        let record = &mut self.records[index as usize];
        self.pinned -= u32::from(record.pinned);
        record.pinned = false;
    }

    /// Takes a free place for a server to be opened.
    pub(crate) fn reserve(&mut self, epoch: u32, dedicated: bool) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record {
                generation: 0,
                state: State::Free,
                cancels: 0,
                epoch,
                near: Near::NOBODY,
                pinned: false,
                dedicated,
                connected: Moment::default(),
                idle_since: Moment::default(),
                server: None,
            });
            self.links.push(Links::NONE);
            self.counts[State::Free as usize] += 1;
            // A pool never has anything like 2^32 servers: each is a socket.
            (self.records.len() - 1) as u32
        });
        let record = &mut self.records[index as usize];
        record.epoch = epoch;
        record.dedicated = dedicated;
        let slot = Slot { index, generation: record.generation };
        self.place(index, State::Opening);
        slot
    }

    /// Where a name leads; `None` when its server is gone.
    #[inline]
    pub(crate) fn find(&self, slot: Slot) -> Option<u32> {
        let record = self.records.get(slot.index as usize)?;
        (record.generation == slot.generation && record.state != State::Free).then_some(slot.index)
    }

    pub(crate) fn name(&self, index: u32) -> Slot {
        Slot { index, generation: self.records[index as usize].generation }
    }

    pub(crate) fn at(&self, index: u32) -> &Record<S> {
        &self.records[index as usize]
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut Record<S> {
        &mut self.records[index as usize]
    }

    /// One more cancel request is in flight to it.
    pub(crate) fn add_cancel(&mut self, index: u32) {
        self.records[index as usize].cancels += 1;
        self.cancels += 1;
    }

    /// One fewer; says how many are left.
    pub(crate) fn drop_cancel(&mut self, index: u32) -> u32 {
        let record = &mut self.records[index as usize];
        if record.cancels > 0 {
            record.cancels -= 1;
            self.cancels -= 1;
        }
        record.cancels
    }

    /// Moves a server to a state: the only function that does.
    #[inline]
    pub(crate) fn place(&mut self, index: u32, to: State) {
        let from = self.records[index as usize].state;
        self.counts[from as usize] -= 1;
        self.counts[to as usize] += 1;
        if from == State::Idle {
            self.idle.remove(&mut self.links, index);
        }
        let record = &mut self.records[index as usize];
        record.state = to;
        if record.pinned && !matches!(to, State::Active | State::Tested) {
            self.clear_pinned(index);
        }
        let record = &mut self.records[index as usize];
        match to {
            State::Idle => self.idle.push_last(&mut self.links, index),
            State::Free => {
                self.cancels -= record.cancels;
                record.cancels = 0;
                record.server = None;
                record.generation = record.generation.wrapping_add(1);
                self.free.push(index);
            }
            State::Closing => record.server = None,
            State::Opening | State::Active | State::Tested | State::BeingCanceled => {}
        }
    }

    /// The idle server to use next: of the latest released, or with `round_robin` of those that are idle longest,
    /// the first of those nearest to who asks.
    #[inline]
    pub(crate) fn next_idle(&self, asked: Near, round_robin: bool) -> Option<u32> {
        let mut index = if round_robin { self.idle.first } else { self.idle.last };
        let (mut best, mut best_score) = (index, 0);
        for _ in 0..PREFER_AMONG {
            if index == NIL {
                break;
            }
            let record = &self.records[index as usize];
            // Who takes turns does not stay with one worker.
            let score = record.near.score(asked) | u8::from(round_robin);
            if score == Near::BEST {
                return Some(index);
            }
            if score > best_score {
                (best, best_score) = (index, score);
            }
            let links = self.links[index as usize];
            index = if round_robin { links.later } else { links.earlier };
        }
        (best != NIL).then_some(best)
    }

    pub(crate) fn oldest_idle(&self) -> Option<u32> {
        (!self.idle.is_empty()).then_some(self.idle.first)
    }

    /// The idle ones, longest idle first.
    pub(crate) fn idle(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.oldest_idle(), |index| self.newer_idle(*index))
    }

    /// The one that became idle next after an idle one.
    pub(crate) fn newer_idle(&self, index: u32) -> Option<u32> {
        let newer = self.links[index as usize].later;
        (newer != NIL).then_some(newer)
    }

    /// Every place that is in use.
    pub(crate) fn used_indices(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.records).filter(|(_, record)| record.state != State::Free).map(|(index, _)| index)
    }

    /// Panics unless the counts, the free list and the idle list say the same as the records.
    pub(crate) fn assert_consistent(&self) {
        let mut counts = [0u32; STATES];
        let mut cancels = 0;
        let mut pinned = 0;
        for record in &self.records {
            counts[record.state as usize] += 1;
            cancels += record.cancels;
            pinned += u32::from(record.pinned);
            let is_held = matches!(record.state, State::Active | State::Tested);
            assert!(is_held || !record.pinned, "pinned in state {:?}", record.state);
            let has_server =
                matches!(record.state, State::Active | State::Tested | State::BeingCanceled | State::Idle);
            assert_eq!(record.server.is_some(), has_server, "a server in state {:?}", record.state);
        }
        assert_eq!(counts, self.counts, "the counts are those of the records");
        assert_eq!(cancels, self.cancels, "the sum of the cancels in flight");
        assert_eq!(pinned, self.pinned, "every pinned server is counted");
        assert_eq!(self.free.len(), self.count(State::Free) as usize, "every free place is in the free list");
        let mut before = Moment::default();
        let idle = self.idle.assert_consistent(&self.links);
        for &index in &idle {
            let record = self.at(index);
            assert_eq!(record.state, State::Idle, "only idle servers are in the idle list");
            assert!(before <= record.idle_since, "the idle list is in order of release");
            before = record.idle_since;
        }
        assert_eq!(idle.len() as u32, self.count(State::Idle), "every idle server is in the idle list");
    }
}
