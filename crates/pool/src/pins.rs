//! Clients that keep their server for the state they left in it: how many may, and who waits until one more may.
//!
//! A place is marked when its client is about to make such state, and the mark goes when the server is free or
//! closed. Who finds all marks given waits without a server, in a queue of its own: what frees a mark may leave
//! servers idle, and others need not wait behind it.

use model::Moment;

use crate::answer::{After, Checkout, Grant, Handover};
use crate::near::Near;
use crate::pool::Pool;
use crate::queue::Waiter;
use crate::slots::{Slot, State};

impl<C: Clone, S: Clone> Pool<C, S> {
    /// The client of an active server is about to keep it for its session state. If false, as many as may do so
    /// already: it must give the server back and ask by [`Pool::checkout_pinned`].
    pub fn pin(&mut self, slot: Slot) -> bool {
        let Some(index) = self.active(slot) else { return false };
        let may = self.slots.at(index).is_pinned() || (self.may_pin() && self.pin_queue.is_empty());
        if may {
            self.slots.set_pinned(index);
        }
        may
    }

    /// As [`Pool::pin`] for a client in the middle of a transaction, which cannot give the server back: it is
    /// counted even beyond the limit.
    pub fn pin_beyond(&mut self, slot: Slot) {
        if let Some(index) = self.active(slot) {
            self.slots.set_pinned(index);
        }
    }

    /// Whether a server is marked as kept.
    pub fn is_pinned(&self, slot: Slot) -> bool {
        self.slots.find(slot).is_some_and(|index| self.slots.at(index).is_pinned())
    }

    /// As [`Pool::checkout`], for a client that will keep the server for its session state: it waits until it may.
    pub fn checkout_pinned(
        &mut self,
        now: Moment,
        near: impl Into<Near>,
        client: &C,
        deadline: Moment,
    ) -> Checkout<S> {
        let near = near.into();
        if self.pin_queue.is_empty()
            && let Some(grant) = self.grant_pinned(now, near)
        {
            return Checkout::Granted(grant);
        }
        if let Some(error) = self.login_fails(now) {
            return Checkout::Refused(error);
        }
        let ticket = self.pin_queue.push_last(Waiter {
            client: client.clone(),
            since: now,
            deadline,
            settings: near.settings,
        });
        Checkout::Queued { ticket, open: self.opens(now) }
    }

    /// As [`Pool::checkout_first`], for such a client.
    pub fn checkout_pinned_first(
        &mut self,
        now: Moment,
        near: impl Into<Near>,
        client: &C,
        since: Moment,
        deadline: Moment,
    ) -> Checkout<S> {
        let near = near.into();
        if let Some(grant) = self.grant_pinned(now, near) {
            return Checkout::Granted(grant);
        }
        if let Some(error) = self.login_fails(now) {
            return Checkout::Refused(error);
        }
        let ticket = self.pin_queue.push_first(Waiter {
            client: client.clone(),
            since,
            deadline,
            settings: near.settings,
        });
        Checkout::Queued { ticket, open: self.opens(now) }
    }

    /// How many of those who wait to keep a server wait for nothing but a server.
    #[inline]
    pub(crate) fn pins_wanted(&self) -> u32 {
        let waiting = self.pin_queue.len();
        match self.limits.pinned_max {
            0 => waiting,
            most => waiting.min(most.saturating_sub(self.slots.pinned())),
        }
    }

    /// Whether a free server belongs to who waits to keep one: no one else has waited for longer.
    pub(crate) fn is_pin_next(&self) -> bool {
        if self.pins_wanted() == 0 {
            return false;
        }
        let (pin, other) = (self.pin_queue.oldest(), self.queue.oldest());
        other.is_none_or(|other| pin.is_some_and(|pin| pin <= other))
    }

    /// Gives a free server to the one who has waited longest to keep one.
    pub(crate) fn hand_to_pin(&mut self, now: Moment, index: u32) -> Option<After<C, S>> {
        let check = self.slots.at(index).state() == State::Idle && self.is_check_due(now, index);
        let grant = self.lend(index, check)?;
        let Waiter { client, since, .. } = self.pin_queue.pop()?;
        self.slots.set_pinned(index);
        Some(After::Handover { client, grant: Grant { pinned: true, ..grant }, waited: now.since(since) })
    }

    /// Whether somebody waits to keep a server, may, and one lies idle: after a close, or a change of the limit.
    pub(crate) fn is_pin_due(&self) -> bool {
        !self.pin_queue.is_empty() && self.slots.count(State::Idle) > 0 && self.pins_wanted() > 0
    }

    /// Serves such clients.
    pub(crate) fn pins_due(&mut self, now: Moment) -> Vec<Handover<C, S>> {
        let mut handovers = Vec::new();
        while self.is_pin_due()
            && let Some(index) = self.slots.next_idle(Near::NOBODY, self.limits.round_robin)
            && let Some(After::Handover { client, grant, waited }) = self.hand_to_pin(now, index)
        {
            handovers.push(Handover { client, grant, waited });
        }
        handovers
    }

    fn grant_pinned(&mut self, now: Moment, near: Near) -> Option<Grant<S>> {
        if !self.may_pin() {
            return None;
        }
        let grant = self.grant_idle(now, near)?;
        let index = self.slots.find(grant.slot)?;
        self.slots.set_pinned(index);
        Some(Grant { pinned: true, ..grant })
    }

    fn may_pin(&self) -> bool {
        self.limits.pinned_max == 0 || self.slots.pinned() < self.limits.pinned_max
    }

    fn active(&self, slot: Slot) -> Option<u32> {
        self.slots.find(slot).filter(|index| self.slots.at(*index).state() == State::Active)
    }
}
