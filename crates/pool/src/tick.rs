//! What is due by time: idle and old servers, late waiters, openings that had to pause.

use model::Moment;

use crate::answer::{Due, Ended, Expired, Opens};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::slots::State;

impl<C: Clone, S: Clone> Pool<C, S> {
    /// When [`Pool::tick`] has something to do; it may turn out to be nothing. Any call can make it earlier.
    pub fn next_tick(&self) -> Moment {
        if self.is_pin_due() {
            return Moment::default();
        }
        self.wait_due().min(self.idle_due()).min(self.age_due()).min(self.open_due())
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Moment) -> Due<C, S> {
        let mut expired = Vec::new();
        while let Some((waiter, pinned)) = self.pop_expired(now) {
            let (client, waited) = (waiter.client, now.since(waiter.since));
            expired.push(Expired { client, waited, pinned, held: self.held.is_some() });
        }
        let handovers = self.pins_due(now);
        let mut close = Vec::new();
        while self.idle_due() <= now {
            close.extend(self.evict_idle());
        }
        if self.age_due() <= now {
            self.close_old(now, &mut close);
        }
        Due { close, open: self.opens(now), expired, handovers }
    }

    /// Puts new limits in force. Idle servers beyond them are closed now, others when they are released.
    pub fn set_limits(&mut self, now: Moment, limits: Limits) -> Due<C, S> {
        self.limits = limits;
        self.lifetime_from = self.lifetime_from.min(now + limits.lifetime_gap());
        self.lifetime_due = self.oldest_of_idle();
        let mut close = Vec::new();
        while self.slots.in_use() - self.slots.count(State::Closing) > limits.most() {
            let Some(ended) = self.evict_idle() else { break };
            close.push(ended);
        }
        let handovers = self.pins_due(now);
        Due { close, open: self.opens(now), expired: Vec::new(), handovers }
    }

    /// Takes out the longest idle server, to make room under a limit of its database or user.
    pub fn evict_idle(&mut self) -> Option<Ended<S>> {
        let index = self.slots.oldest_idle()?;
        self.end(index)
    }

    /// Since when the longest idle server is idle.
    pub fn oldest_idle(&self) -> Option<Moment> {
        self.slots.oldest_idle().map(|index| self.slots.at(index).idle_since)
    }

    fn idle_due(&self) -> Moment {
        if self.limits.idle_timeout.is_zero() || self.slots.connected() <= self.limits.kept() {
            return Moment::NEVER;
        }
        self.oldest_idle().map_or(Moment::NEVER, |since| since + self.limits.idle_timeout)
    }

    fn age_due(&self) -> Moment {
        if self.slots.count(State::Idle) == 0 {
            Moment::NEVER
        } else {
            self.lifetime_due.max(self.lifetime_from)
        }
    }

    fn close_old(&mut self, now: Moment, close: &mut Vec<Ended<S>>) {
        let mut next = self.slots.oldest_idle();
        while let Some(index) = next {
            next = self.slots.newer_idle(index);
            let connected = self.slots.at(index).connected;
            if self.is_lifetime_over(now, connected) {
                close.extend(self.end(index));
            }
        }
        self.lifetime_due = self.oldest_of_idle();
    }

    /// When the first of the idle servers reaches its age. One use is an age only for who was used.
    fn oldest_of_idle(&self) -> Moment {
        if self.limits.lifetime.is_zero() {
            return Moment::NEVER;
        }
        let ages = self.slots.idle().map(|index| self.slots.at(index).connected + self.limits.lifetime);
        ages.min().unwrap_or(Moment::NEVER)
    }
}

impl<C, S> Due<C, S> {
    /// Whether nothing was due.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.close.is_empty() && self.expired.is_empty() && self.handovers.is_empty();
        is_quiet && self.open == Opens::NONE
    }
}
