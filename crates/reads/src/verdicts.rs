//! What was decided, shared by all workers: from a fingerprint to a verdict, without a lock.
//!
//! A table of fixed size. An entry is three words, and the first two are mixed with the third, so that words of two
//! writers fit together only by the same accident by which two fingerprints would be one. A new generation makes all
//! entries those of nobody. Does not know what a verdict is made of.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use sql::fingerprint::Fingerprint;

use crate::verdict::{Verdict, Why};

/// Entries: 24 bytes each, so a table is 192 KB.
const ENTRIES: usize = 8192;
/// So many entries a fingerprint can be in.
const WAYS: usize = 4;
/// So many statements at most wait for their verdict: each of them is a text that somebody keeps.
pub const WAITING_MAX: usize = 64;

#[derive(Default)]
struct Entry {
    first: AtomicU64,
    second: AtomicU64,
    /// The generation, and the verdict as a number from 1.
    data: AtomicU64,
}

/// The verdicts of one database.
pub struct Verdicts {
    entries: Box<[Entry]>,
    generation: AtomicU64,
    /// How often the schema is known to have changed.
    schema: AtomicU64,
    waiting: AtomicUsize,
}

/// The right and the duty to decide.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    fingerprint: Fingerprint,
    generation: u64,
}

impl Default for Verdicts {
    fn default() -> Verdicts {
        Verdicts {
            entries: (0..ENTRIES).map(|_| Entry::default()).collect(),
            // Zero is that of entries never written.
            generation: AtomicU64::new(1),
            schema: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl Verdicts {
    /// What was decided. `None`: nobody has asked yet. What is being decided is `Primary(Why::Undecided)`.
    #[inline]
    pub fn of(&self, fingerprint: Fingerprint) -> Option<Verdict> {
        let generation = self.generation.load(Ordering::Relaxed);
        self.places(fingerprint).iter().find_map(|entry| {
            let data = entry.data.load(Ordering::Relaxed);
            let [first, second] = mixed(fingerprint, data);
            let is_it = data >> 8 == generation
                && entry.first.load(Ordering::Relaxed) == first
                && entry.second.load(Ordering::Relaxed) == second;
            if is_it { verdict(data) } else { None }
        })
    }

    /// Asks for the right to decide; `None` if somebody has it, it is decided, or too many wait already.
    pub fn claim(&self, fingerprint: Fingerprint) -> Option<Ticket> {
        if self.of(fingerprint).is_some() {
            return None;
        }
        let one_more = |waiting| (waiting < WAITING_MAX).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        let ticket = Ticket { fingerprint, generation: self.generation.load(Ordering::Acquire) };
        self.write(&ticket, code(Verdict::Primary(Why::Undecided)));
        Some(ticket)
    }

    /// Decides. What was found out before the last [`Verdicts::forget_all`] is not kept.
    pub fn put(&self, ticket: Ticket, verdict: Verdict) {
        self.write(&ticket, code(verdict));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// It could not be found out: whoever comes next may try.
    pub fn give_up(&self, ticket: Ticket) {
        self.write(&ticket, 0);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// A standby has refused what was judged a read: none is asked again as long as the catalog stays what it is.
    #[cold]
    pub fn refute(&self, fingerprint: Fingerprint) {
        let generation = self.generation.load(Ordering::Acquire);
        self.write(&Ticket { fingerprint, generation }, code(Verdict::Primary(Why::Refuted)));
    }

    /// Begins a new generation: the catalog may be another.
    pub fn forget_all(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Begins a new generation if the schema has changed since the last time that this was said.
    #[inline]
    pub fn schema_is(&self, changes: u64) {
        if self.schema.load(Ordering::Relaxed) != changes
            && self.schema.swap(changes, Ordering::AcqRel) != changes
        {
            self.forget_all();
        }
    }

    /// How many statements wait for a verdict.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn places(&self, fingerprint: Fingerprint) -> &[Entry] {
        let start = fingerprint.halves[0] as usize % (ENTRIES / WAYS) * WAYS;
        &self.entries[start..start + WAYS]
    }

    fn write(&self, ticket: &Ticket, code: u64) {
        let generation = self.generation.load(Ordering::Acquire);
        if generation != ticket.generation {
            return;
        }
        let fingerprint = ticket.fingerprint;
        let places = self.places(fingerprint);
        let is_own = |entry: &&Entry| {
            let data = entry.data.load(Ordering::Relaxed);
            let [first, second] = mixed(fingerprint, data);
            entry.first.load(Ordering::Relaxed) == first && entry.second.load(Ordering::Relaxed) == second
        };
        let is_free = |entry: &&Entry| {
            let data = entry.data.load(Ordering::Relaxed);
            data >> 8 != generation || data & 0xff == 0
        };
        let entry = places
            .iter()
            .find(is_own)
            .or_else(|| places.iter().find(is_free))
            // Any one; which, follows from the fingerprint alone, so that nothing has to be counted.
            .unwrap_or(&places[(fingerprint.halves[1] >> 32) as usize % WAYS]);
        let data = generation << 8 | code;
        let [first, second] = mixed(fingerprint, data);
        entry.data.store(data, Ordering::Relaxed);
        entry.first.store(first, Ordering::Relaxed);
        entry.second.store(second, Ordering::Relaxed);
    }
}

/// The first two words of an entry whose third is `data`.
fn mixed(fingerprint: Fingerprint, data: u64) -> [u64; 2] {
    // An odd multiplier: every bit of the data is in both words.
    let spread = data.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [fingerprint.halves[0] ^ spread, fingerprint.halves[1] ^ spread.rotate_left(32)]
}

fn code(verdict: Verdict) -> u64 {
    match verdict {
        Verdict::Read => 1,
        Verdict::Primary(why) => 2 + why.index() as u64,
    }
}

fn verdict(data: u64) -> Option<Verdict> {
    match data & 0xff {
        0 => None,
        1 => Some(Verdict::Read),
        code => Why::ALL.get(code as usize - 2).map(|&why| Verdict::Primary(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(number: u64) -> Fingerprint {
        Fingerprint { halves: [number, number.wrapping_mul(0x9e37_79b9_7f4a_7c15)] }
    }

    #[test]
    fn what_is_put_is_found() {
        let verdicts = Verdicts::default();
        for (number, &why) in (0..).zip(Why::ALL) {
            let ticket = verdicts.claim(fingerprint(number)).unwrap();
            assert_eq!(verdicts.of(fingerprint(number)), Some(Verdict::Primary(Why::Undecided)));
            assert!(verdicts.claim(fingerprint(number)).is_none());
            verdicts.put(ticket, Verdict::Primary(why));
            assert_eq!(verdicts.of(fingerprint(number)), Some(Verdict::Primary(why)));
        }
        assert_eq!(verdicts.of(fingerprint(9999)), None);
        assert_eq!(verdicts.waiting(), 0);
    }

    #[test]
    fn what_was_found_out_before_a_change_is_not_kept() {
        let verdicts = Verdicts::default();
        let early = verdicts.claim(fingerprint(1)).unwrap();
        verdicts.forget_all();
        verdicts.put(early, Verdict::Read);
        assert_eq!(verdicts.of(fingerprint(1)), None);
        let ticket = verdicts.claim(fingerprint(1)).unwrap();
        verdicts.put(ticket, Verdict::Read);
        assert_eq!(verdicts.of(fingerprint(1)), Some(Verdict::Read));
        verdicts.forget_all();
        assert_eq!(verdicts.of(fingerprint(1)), None);
    }

    #[test]
    fn a_change_of_the_schema_is_a_change_once() {
        let verdicts = Verdicts::default();
        verdicts.schema_is(7);
        let ticket = verdicts.claim(fingerprint(1)).unwrap();
        verdicts.put(ticket, Verdict::Read);
        verdicts.schema_is(7);
        assert_eq!(verdicts.of(fingerprint(1)), Some(Verdict::Read));
        verdicts.schema_is(8);
        assert_eq!(verdicts.of(fingerprint(1)), None);
    }

    #[test]
    fn what_was_refuted_is_no_read_until_the_catalog_is_another() {
        let verdicts = Verdicts::default();
        let ticket = verdicts.claim(fingerprint(1)).unwrap();
        verdicts.put(ticket, Verdict::Read);
        verdicts.refute(fingerprint(1));
        assert_eq!(verdicts.of(fingerprint(1)), Some(Verdict::Primary(Why::Refuted)));
        assert!(verdicts.claim(fingerprint(1)).is_none(), "nobody asks again");
        // Whoever is late with what the catalog says has asked before, and is not asked.
        assert_eq!(verdicts.waiting(), 0);
        verdicts.forget_all();
        assert_eq!(verdicts.of(fingerprint(1)), None);
    }

    #[test]
    fn who_gives_up_lets_the_next_one_try() {
        let verdicts = Verdicts::default();
        let ticket = verdicts.claim(fingerprint(1)).unwrap();
        verdicts.give_up(ticket);
        assert_eq!(verdicts.of(fingerprint(1)), None);
        assert!(verdicts.claim(fingerprint(1)).is_some());
    }

    #[test]
    fn only_so_many_wait() {
        let verdicts = Verdicts::default();
        let mut tickets: Vec<Ticket> =
            (0..WAITING_MAX as u64).map_while(|at| verdicts.claim(fingerprint(at))).collect();
        assert_eq!(tickets.len(), WAITING_MAX);
        assert!(verdicts.claim(fingerprint(1 << 40)).is_none());
        verdicts.give_up(tickets.pop().unwrap());
        assert!(verdicts.claim(fingerprint(1 << 40)).is_some());
    }

    #[test]
    fn a_full_table_forgets_and_never_confuses() {
        let verdicts = Verdicts::default();
        let wanted =
            |number: u64| if number.is_multiple_of(2) { Verdict::Read } else { Verdict::Primary(Why::Write) };
        for number in 0..3 * ENTRIES as u64 {
            let ticket = verdicts.claim(fingerprint(number)).unwrap();
            verdicts.put(ticket, wanted(number));
        }
        let found = (0..3 * ENTRIES as u64).filter(|&number| {
            let verdict = verdicts.of(fingerprint(number));
            assert!(verdict.is_none_or(|verdict| verdict == wanted(number)));
            verdict.is_some()
        });
        assert!(found.count() > ENTRIES / 2);
    }
}
