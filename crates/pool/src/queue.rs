//! The clients that wait for a server: first come, first served, but for those whose settings a freed server has.
//!
//! A list threaded through a table, so that leaving from the middle costs the same as from the front; through the same
//! table a list of each set of settings; and a heap of deadlines that is swept when most of it is out of date.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use model::Moment;
use rustc_hash::FxHashMap;

use crate::list::{Ends, Links};

/// A client's place in the queue; an old one finds nothing. Places are counted from one, so that a client without a
/// ticket needs no room to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    generation: u32,
    number: NonZeroU32,
}

/// Set in the tickets of the second of a pool's two queues.
const SECOND: u32 = 1 << 31;

impl Ticket {
    fn new(index: u32, mark: u32, generation: u32) -> Ticket {
        Ticket { generation, number: NonZeroU32::MIN.saturating_add(index) | mark }
    }

    /// Whether it is of the pool's second queue.
    pub(crate) fn is_second(self) -> bool {
        self.number.get() & SECOND != 0
    }

    fn index(self) -> u32 {
        (self.number.get() & !SECOND) - 1
    }

    fn generation(self) -> u32 {
        self.generation
    }
}

/// One waiting client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiter<C> {
    pub(crate) client: C,
    pub(crate) since: Moment,
    pub(crate) deadline: Moment,
    /// As in [`crate::Near`].
    pub(crate) settings: u64,
}

/// So often the one at the head lets another go first, whose settings the server has, for each server of the pool: to
/// set others costs a statement. While all servers have been freed twice, one with the head's own is among them, if
/// there are any: with a few times only, servers would change their settings all the time, and nobody wait less for it.
const PASSED_PER_SERVER: u32 = 2;
/// So often at least.
const PASSED_MIN: u32 = 8;
/// And none goes first that came more places behind it, for each server of the pool: so nobody is overtaken by more
/// than these.
const OVERTAKES_PER_SERVER: i64 = 12;
/// So many at least.
const OVERTAKES_MIN: i64 = 16;

/// The heap may have so many entries of clients that no longer wait before it is swept.
const STALE_MAX: usize = 64;

struct Entry<C> {
    generation: u32,
    /// By how it came: the lower, the earlier.
    order: i64,
    /// How often another went first while it was at the head.
    passed: u32,
    waiter: Option<Waiter<C>>,
}

pub(crate) struct Queue<C> {
    entries: Vec<Entry<C>>,
    free: Vec<u32>,
    all: Ends,
    links: Vec<Links>,
    /// Those with the same settings.
    alike: FxHashMap<u64, Ends>,
    alike_links: Vec<Links>,
    /// What the next to come are given: behind all others, and before them.
    order_last: i64,
    order_first: i64,
    /// What its tickets have set.
    mark: u32,
    deadlines: BinaryHeap<Reverse<(Moment, Ticket)>>,
}

impl<C> Queue<C> {
    pub(crate) fn new() -> Queue<C> {
        Queue {
            entries: Vec::new(),
            free: Vec::new(),
            all: Ends::NONE,
            links: Vec::new(),
            alike: FxHashMap::default(),
            alike_links: Vec::new(),
            order_last: 0,
            order_first: -1,
            mark: 0,
            deadlines: BinaryHeap::new(),
        }
    }

    /// A queue whose tickets are told from those of another.
    pub(crate) fn second() -> Queue<C> {
        Queue { mark: SECOND, ..Queue::new() }
    }

    pub(crate) fn len(&self) -> u32 {
        // Each is a client's socket: far below 2^32.
        (self.entries.len() - self.free.len()) as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Since when the client at the head waits.
    pub(crate) fn oldest(&self) -> Option<Moment> {
        let entry = self.entries.get(self.all.first as usize)?;
        entry.waiter.as_ref().map(|waiter| waiter.since)
    }

    /// The earliest deadline, or earlier: of a client that no longer waits.
    pub(crate) fn next_deadline(&self) -> Moment {
        if self.is_empty() {
            return Moment::NEVER;
        }
        self.deadlines.peek().map_or(Moment::NEVER, |Reverse((deadline, _))| *deadline)
    }

    /// Behind all others.
    pub(crate) fn push_last(&mut self, waiter: Waiter<C>) -> Ticket {
        let settings = waiter.settings;
        let index = self.store(waiter);
        self.entries[index as usize].order = self.order_last;
        self.order_last += 1;
        self.all.push_last(&mut self.links, index);
        self.alike.entry(settings).or_insert(Ends::NONE).push_last(&mut self.alike_links, index);
        self.ticket(index)
    }

    /// Before all others.
    pub(crate) fn push_first(&mut self, waiter: Waiter<C>) -> Ticket {
        let settings = waiter.settings;
        let index = self.store(waiter);
        self.entries[index as usize].order = self.order_first;
        self.order_first -= 1;
        self.all.push_first(&mut self.links, index);
        self.alike.entry(settings).or_insert(Ends::NONE).push_first(&mut self.alike_links, index);
        self.ticket(index)
    }

    /// Takes the client at the head.
    pub(crate) fn pop(&mut self) -> Option<Waiter<C>> {
        if self.is_empty() { None } else { self.remove(self.all.first) }
    }

    /// Takes the client at the head, or the first of those behind it whose settings these are: nobody is passed for ever,
    /// nor for longer than all `servers` together need for some transactions.
    #[inline]
    pub(crate) fn pop_near(&mut self, settings: u64, servers: u32) -> Option<Waiter<C>> {
        let head = self.entries.get(self.all.first as usize)?;
        let fits = head.waiter.as_ref().is_some_and(|waiter| waiter.settings == settings);
        if fits || head.passed >= PASSED_MIN.max(servers.saturating_mul(PASSED_PER_SERVER)) {
            return self.remove(self.all.first);
        }
        let alike = self.alike.get(&settings).map(|ends| ends.first);
        let overtakes = OVERTAKES_MIN.max(i64::from(servers) * OVERTAKES_PER_SERVER);
        match alike.filter(|&index| self.entries[index as usize].order - head.order <= overtakes) {
            None => self.remove(self.all.first),
            Some(index) => {
                self.entries[self.all.first as usize].passed += 1;
                self.remove(index)
            }
        }
    }

    /// Takes a client out, wherever it stands.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Waiter<C>> {
        self.find(ticket)?;
        self.remove(ticket.index())
    }

    pub(crate) fn find(&self, ticket: Ticket) -> Option<&Waiter<C>> {
        let entry = self.entries.get(ticket.index() as usize)?;
        if entry.generation == ticket.generation() { entry.waiter.as_ref() } else { None }
    }

    /// Takes one client whose deadline has come, and sweeps what no longer waits.
    pub(crate) fn pop_expired(&mut self, now: Moment) -> Option<Waiter<C>> {
        while let Some(&Reverse((deadline, ticket))) = self.deadlines.peek() {
            if self.find(ticket).is_none() {
                self.deadlines.pop();
            } else if deadline <= now {
                self.deadlines.pop();
                return self.take(ticket);
            } else {
                break;
            }
        }
        None
    }

    /// The time since `from` does not count for anybody's deadline.
    pub(crate) fn excuse(&mut self, now: Moment, from: Moment) {
        let mut deadlines = Vec::with_capacity(self.len() as usize);
        for (index, entry) in (0_u32..).zip(&mut self.entries) {
            let Some(waiter) = entry.waiter.as_mut().filter(|waiter| waiter.deadline != Moment::NEVER) else {
                continue;
            };
            waiter.deadline = waiter.deadline + now.since(from.max(waiter.since));
            let ticket = Ticket::new(index, self.mark, entry.generation);
            deadlines.push(Reverse((waiter.deadline, ticket)));
        }
        self.deadlines = deadlines.into();
    }

    fn ticket(&self, index: u32) -> Ticket {
        Ticket::new(index, self.mark, self.entries[index as usize].generation)
    }

    fn store(&mut self, waiter: Waiter<C>) -> u32 {
        let deadline = waiter.deadline;
        let index = match self.free.pop() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                entry.passed = 0;
                entry.waiter = Some(waiter);
                index
            }
            None => {
                self.entries.push(Entry { generation: 0, order: 0, passed: 0, waiter: Some(waiter) });
                self.links.push(Links::NONE);
                self.alike_links.push(Links::NONE);
                (self.entries.len() - 1) as u32
            }
        };
        if deadline != Moment::NEVER {
            if self.deadlines.len() >= 2 * self.len() as usize + STALE_MAX {
                self.sweep();
            }
            self.deadlines.push(Reverse((deadline, self.ticket(index))));
        }
        index
    }

    fn remove(&mut self, index: u32) -> Option<Waiter<C>> {
        let entry = &mut self.entries[index as usize];
        let waiter = entry.waiter.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.all.remove(&mut self.links, index);
        if let Some(alike) = self.alike.get_mut(&waiter.settings) {
            alike.remove(&mut self.alike_links, index);
            if alike.is_empty() {
                self.alike.remove(&waiter.settings);
            }
        }
        self.free.push(index);
        Some(waiter)
    }

    fn sweep(&mut self) {
        let mut deadlines = std::mem::take(&mut self.deadlines);
        deadlines.retain(|Reverse((_, ticket))| self.find(*ticket).is_some());
        self.deadlines = deadlines;
    }

    /// Panics unless the list, the table and the heap agree.
    pub(crate) fn assert_consistent(&self) {
        let all = self.all.assert_consistent(&self.links);
        let mut timed = 0;
        let mut order = i64::MIN;
        let mut alike: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for &index in &all {
            let entry = &self.entries[index as usize];
            let waiter = entry.waiter.as_ref();
            assert!(waiter.is_some(), "who is in the list waits");
            assert!(order < entry.order, "who came earlier stands before");
            order = entry.order;
            alike.entry(waiter.map_or(0, |waiter| waiter.settings)).or_default().push(index);
            timed += usize::from(waiter.is_some_and(|waiter| waiter.deadline != Moment::NEVER));
        }
        assert_eq!(self.alike.len(), alike.len(), "a list for each set of settings, and no other");
        for (settings, indices) in alike {
            let there = self.alike[&settings].assert_consistent(&self.alike_links);
            assert_eq!(there, indices, "those alike stand as in the whole list");
        }
        let count = all.len() as u32;
        assert_eq!(count, self.len(), "no waiter is lost");
        let live = self.deadlines.iter().filter(|Reverse((_, ticket))| self.find(*ticket).is_some()).count();
        assert_eq!(live, timed, "every deadline is in the heap");
        assert!(self.deadlines.len() <= 2 * self.entries.len() + STALE_MAX + 1, "the heap is swept");
    }
}
