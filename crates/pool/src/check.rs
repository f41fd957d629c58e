//! What is always true of a pool, for tests and the simulation.

use model::Moment;

use crate::pool::Pool;
use crate::slots::State;

impl<C: Clone, S: Clone> Pool<C, S> {
    /// Panics if the pool contradicts itself.
    ///
    /// The limit on the number of servers is not checked here: after it was lowered, it is passed for a while.
    pub fn assert_consistent(&self, now: Moment) {
        self.slots.assert_consistent();
        self.queue.assert_consistent();
        self.pin_queue.assert_consistent();
        let idle = self.slots.count(State::Idle);
        assert!(idle == 0 || self.queue.is_empty(), "nobody waits while a server is idle");
        assert!(idle == 0 || !self.paused, "a paused pool keeps no idle server");
        for index in self.slots.idle() {
            let record = self.slots.at(index);
            assert_eq!(record.epoch, self.epoch, "no server that is to be closed is idle");
            assert_eq!(record.cancels, 0, "no server with a cancel in flight is idle");
            assert!(!record.dedicated, "a dedicated server is never reused");
            assert!(self.limits.lifetime.is_zero() || self.age_is_watched(index), "every age is watched");
        }
        let is_waiting = !self.queue.is_empty() || self.pins_wanted() > 0;
        let stuck = is_waiting && self.slots.in_use() == 0 && !self.paused && self.held.is_none();
        assert!(
            !stuck || self.next_tick() < Moment::NEVER,
            "who waits for no server at all waits for a time"
        );
        let late = self.wait_due();
        assert!(
            idle == 0 || self.pins_wanted() == 0 || self.next_tick() <= now,
            "who may keep an idle server gets it"
        );
        assert!(self.next_tick() <= late, "deadlines are watched at {now:?}");
    }

    fn age_is_watched(&self, index: u32) -> bool {
        self.lifetime_due <= self.slots.at(index).connected + self.limits.lifetime
    }
}
