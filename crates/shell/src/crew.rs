//! Which workers are on duty: as few as the work needs.
//!
//! Two workers that are half idle fall asleep and are woken twice as often as one that does the work of both, and
//! each of their calls sends half as much. So a worker that can be spared leaves its poll to another, its
//! *stand-in*, and rests until that one has too much to do. No socket changes its poll, and whoever is woken does
//! the work, as always.
//!
//! Here is decided who rests and who comes back. It knows no poll and no thread.

use std::time::Duration;

use model::{Moment, WorkerId};

/// How long a worker's time is watched before anything is concluded from it.
const WINDOW_US: u64 = 10_000;
/// Of a thousand: who is awake for more of its time than this has somebody come back.
const MUCH: u32 = 800;
/// Of a thousand: two that are awake for less than this together can be one.
const LITTLE: u32 = 650;
/// For so long it must have been so: to leave a poll costs some time for each socket in it.
const SPARE_FOR: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Of a thousand parts of its time: for how many it was awake.
    share: u32,
    stand_in: Option<WorkerId>,
}

/// All workers.
#[derive(Debug)]
pub struct Crew(Box<[Member]>);

impl Crew {
    /// So many, all on duty.
    pub fn new(count: usize) -> Crew {
        Crew(vec![Member::default(); count].into())
    }

    /// Who watches the poll of a worker that rests; nobody if it is on duty.
    pub fn stand_in(&self, id: WorkerId) -> Option<WorkerId> {
        self.at(id).stand_in
    }

    /// Those for whom a worker stands in.
    pub fn wards(&self, id: WorkerId) -> Vec<WorkerId> {
        self.ids().filter(|&ward| self.stand_in(ward) == Some(id)).collect()
    }

    /// A worker on duty was awake for so much of its time.
    pub fn report(&mut self, id: WorkerId, share: u32) {
        self.at_mut(id).share = share;
    }

    /// Who should come back, if this worker has too much to do. Where it stands in for nobody, all that it does is
    /// for sockets of its own, and nobody can take that from it.
    pub fn relief(&self, id: WorkerId) -> Option<WorkerId> {
        if self.at(id).share > MUCH { self.wards(id).first().copied() } else { None }
    }

    /// Who could do this worker's work beside its own.
    pub fn successor(&self, id: WorkerId) -> Option<WorkerId> {
        let on_duty = self.ids().filter(|&other| other != id && self.stand_in(other).is_none());
        let idlest = on_duty.min_by_key(|&other| self.at(other).share)?;
        (self.at(id).share + self.at(idlest).share < LITTLE).then_some(idlest)
    }

    /// A worker rests; its wards have been left to others before.
    pub fn rest(&mut self, id: WorkerId, stand_in: WorkerId) {
        debug_assert!(id != stand_in && self.stand_in(stand_in).is_none() && self.wards(id).is_empty());
        let share = std::mem::take(&mut self.at_mut(id).share);
        self.at_mut(stand_in).share += share;
        self.at_mut(id).stand_in = Some(stand_in);
    }

    /// A worker that rests has another stand-in.
    pub fn hand_over(&mut self, ward: WorkerId, stand_in: WorkerId) {
        debug_assert!(ward != stand_in && self.stand_in(stand_in).is_none());
        self.at_mut(ward).stand_in = Some(stand_in);
    }

    /// A worker is on duty again.
    pub fn come_back(&mut self, id: WorkerId) {
        self.at_mut(id).stand_in = None;
    }

    fn ids(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.0.len() as u16).map(WorkerId)
    }

    fn at(&self, id: WorkerId) -> &Member {
        &self.0[usize::from(id.0)]
    }

    fn at_mut(&mut self, id: WorkerId) -> &mut Member {
        &mut self.0[usize::from(id.0)]
    }
}

/// How much of its time one worker is awake.
#[derive(Debug)]
pub struct Effort {
    since: Moment,
    slept_us: u64,
    /// Since when it could be spared; never, if it cannot.
    spare_since: Moment,
}

impl Effort {
    /// Nothing is known yet.
    pub fn new(now: Moment) -> Effort {
        Effort { since: now, slept_us: 0, spare_since: Moment::NEVER }
    }

    /// It slept. If that ends a window: for how many of a thousand parts of it it was awake.
    #[inline]
    pub fn slept(&mut self, from: Moment, until: Moment) -> Option<u32> {
        self.slept_us += until.micros_since(from);
        let whole = until.micros_since(self.since);
        if whole < WINDOW_US {
            return None;
        }
        let share = whole.saturating_sub(self.slept_us) * 1_000 / whole;
        (self.since, self.slept_us) = (until, 0);
        Some(share as u32)
    }

    /// Whether it can be spared, and could for long enough.
    pub fn is_spare(&mut self, now: Moment, can_be_spared: bool) -> bool {
        if !can_be_spared {
            self.spare_since = Moment::NEVER;
            return false;
        }
        self.spare_since = self.spare_since.min(now);
        now.since(self.spare_since) >= SPARE_FOR
    }
}

#[cfg(test)]
mod tests;
