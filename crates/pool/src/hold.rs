//! A pool whose servers have nowhere to be: clients wait, and their own limits of waiting with them.
//!
//! Who decides that knows the nodes; the pool knows only that it is so.

use model::Moment;

use crate::answer::{Ended, Opens};
use crate::pool::Pool;
use crate::queue::Waiter;
use crate::slots::{Slot, State};

impl<C: Clone, S: Clone> Pool<C, S> {
    /// No server can be opened until [`Pool::unhold`]: none is tried, and clients wait for as long as
    /// `failover_timeout` says, whatever their own deadlines are.
    pub fn hold(&mut self, now: Moment) {
        self.held.get_or_insert(now);
    }

    /// Servers can be opened again. The time in between counts for no deadline, and what failed before is forgotten.
    pub fn unhold(&mut self, now: Moment) -> Opens {
        if let Some(from) = self.held.take() {
            self.queue.excuse(now, from);
            self.pin_queue.excuse(now, from);
            self.forget_failures();
        }
        self.opens(now)
    }

    /// Whether [`Pool::hold`] is in force.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// A server is to go as soon as it is free. Answers it if that is now.
    pub fn retire(&mut self, slot: Slot) -> Option<Ended<S>> {
        let index = self.slots.find(slot)?;
        if self.slots.at(index).state() == State::Idle {
            return self.end(index);
        }
        self.slots.at_mut(index).epoch = self.epoch.wrapping_sub(1);
        None
    }

    /// A server is to go now, whatever it is doing. Who has it must be told by the caller.
    pub fn cut(&mut self, slot: Slot) -> Option<Ended<S>> {
        let index = self.slots.find(slot)?;
        match self.slots.at(index).state() {
            State::Active | State::Tested | State::BeingCanceled | State::Idle => self.end(index),
            State::Opening => {
                self.slots.at_mut(index).epoch = self.epoch.wrapping_sub(1);
                None
            }
            State::Free | State::Closing => None,
        }
    }

    /// When the next waiter, for a server or to keep one, has waited too long.
    pub(crate) fn wait_due(&self) -> Moment {
        let Some(from) = self.held else {
            return self.queue.next_deadline().min(self.pin_queue.next_deadline());
        };
        self.held_due(from, self.queue.oldest()).min(self.held_due(from, self.pin_queue.oldest()))
    }

    /// Takes out one that has; `true` if it wanted to keep a server.
    pub(crate) fn pop_expired(&mut self, now: Moment) -> Option<(Waiter<C>, bool)> {
        let Some(from) = self.held else {
            let late = self.queue.pop_expired(now).map(|waiter| (waiter, false));
            return late.or_else(|| self.pin_queue.pop_expired(now).map(|waiter| (waiter, true)));
        };
        if self.held_due(from, self.queue.oldest()) <= now {
            return self.queue.pop().map(|waiter| (waiter, false));
        }
        let is_due = self.held_due(from, self.pin_queue.oldest()) <= now;
        if is_due { self.pin_queue.pop().map(|waiter| (waiter, true)) } else { None }
    }

    fn held_due(&self, from: Moment, oldest: Option<Moment>) -> Moment {
        oldest.map_or(Moment::NEVER, |since| from.max(since).deadline(self.limits.failover_timeout))
    }
}
