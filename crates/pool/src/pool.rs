//! The pool and the way of a query through it: checkout, release, cancel.

use std::fmt;
use std::time::Duration;

use model::Moment;

use crate::answer::{After, Checkout, Counts, Ended, Grant, Released};
use crate::limits::Limits;
use crate::near::Near;
use crate::opening::Opening;
use crate::queue::{Queue, Ticket, Waiter};
use crate::slots::{Slot, Slots, State};

/// The servers and the waiting clients of one pair of database and server user.
///
/// `C` and `S` are the caller's handles of a client and of a server. Nothing here reads a clock: `now` is handed in and
/// never goes back.
pub struct Pool<C, S> {
    pub(crate) limits: Limits,
    pub(crate) slots: Slots<S>,
    pub(crate) queue: Queue<C>,
    /// Those who wait to keep a server for their session state.
    pub(crate) pin_queue: Queue<C>,
    pub(crate) opening: Opening,
    pub(crate) paused: bool,
    /// Since when there is nowhere to open a server: see [`Pool::hold`].
    pub(crate) held: Option<Moment>,
    /// Servers opened in an earlier epoch are closed when they are free.
    pub(crate) epoch: u32,
    /// No server is closed for its age before this.
    pub(crate) lifetime_from: Moment,
    /// When the age of the idle ones is to be looked at; may be too early.
    pub(crate) lifetime_due: Moment,
}

impl<C: Clone, S: Clone> Pool<C, S> {
    /// An empty pool.
    pub fn new(limits: Limits) -> Pool<C, S> {
        Pool {
            limits,
            slots: Slots::new(),
            queue: Queue::new(),
            pin_queue: Queue::second(),
            opening: Opening::default(),
            paused: false,
            held: None,
            epoch: 0,
            lifetime_from: Moment::default(),
            lifetime_due: Moment::NEVER,
        }
    }

    /// A client wants a server; it waits until `deadline` ([`Moment::NEVER`]: for ever) if there is none.
    #[inline]
    pub fn checkout(
        &mut self,
        now: Moment,
        near: impl Into<Near>,
        client: &C,
        deadline: Moment,
    ) -> Checkout<S> {
        let near = near.into();
        if let Some(grant) = self.grant_idle(now, near) {
            return Checkout::Granted(grant);
        }
        if let Some(error) = self.login_fails(now) {
            return Checkout::Refused(error);
        }
        let ticket = self.queue.push_last(Waiter {
            client: client.clone(),
            since: now,
            deadline,
            settings: near.settings,
        });
        Checkout::Queued { ticket, open: self.opens(now) }
    }

    /// As [`Pool::checkout`], for a client whose server turned out to be dead before it was used: it does not lose
    /// its turn, nor the time that it has waited.
    pub fn checkout_first(
        &mut self,
        now: Moment,
        near: impl Into<Near>,
        client: &C,
        since: Moment,
        deadline: Moment,
    ) -> Checkout<S> {
        let near = near.into();
        if let Some(grant) = self.grant_idle(now, near) {
            return Checkout::Granted(grant);
        }
        if let Some(error) = self.login_fails(now) {
            return Checkout::Refused(error);
        }
        let ticket = self.queue.push_first(Waiter {
            client: client.clone(),
            since,
            deadline,
            settings: near.settings,
        });
        Checkout::Queued { ticket, open: self.opens(now) }
    }

    /// A client leaves the queue. False if it no longer is in it: it has been given a server or an answer.
    pub fn forget(&mut self, ticket: Ticket) -> bool {
        let queue = if ticket.is_second() { &mut self.pin_queue } else { &mut self.queue };
        queue.take(ticket).is_some()
    }

    /// For how long a client in the queue has waited.
    pub fn waited(&self, now: Moment, ticket: Ticket) -> Option<Duration> {
        let queue = if ticket.is_second() { &self.pin_queue } else { &self.queue };
        queue.find(ticket).map(|waiter| now.since(waiter.since))
    }

    /// A holder gives a server back: a client that is done with it, or who reset or checked it.
    #[inline]
    pub fn release(&mut self, now: Moment, slot: Slot, near: impl Into<Near>, how: Released) -> After<C, S> {
        let Some(index) = self.slots.find(slot) else {
            // It was closed meanwhile; the caller's own close finds nothing to do.
            return After::Close;
        };
        let held = matches!(self.slots.at(index).state(), State::Active | State::Tested);
        if !held || how == Released::Close || self.must_close(now, index) {
            // What is released without being held is not trusted.
            self.slots.place(index, State::Closing);
            return After::Close;
        }
        let record = self.slots.at_mut(index);
        record.near = near.into();
        let is_canceling = record.cancels > 0;
        self.slots.clear_pinned(index);
        if is_canceling {
            self.slots.place(index, State::BeingCanceled);
            return After::Canceling;
        }
        self.offer(now, index)
    }

    /// The client of an active server has left; the caller keeps the server to reset, check or clean it, then
    /// releases it. False if it is not active: the caller does not have it.
    pub fn detach(&mut self, slot: Slot) -> bool {
        self.seize(slot, State::Active)
    }

    /// Whether the pool has given a server up that somebody has in hand: it is to be closed, and not cleaned first.
    pub fn has_given_up(&self, slot: Slot) -> bool {
        self.slots.find(slot).is_none_or(|index| self.slots.at(index).state() == State::Closing)
    }

    /// Bytes came from an idle server. If true, the caller has it now, to read, check and release or close it. If
    /// false, it is no longer idle: whoever has it will see the bytes.
    pub fn take_idle(&mut self, slot: Slot) -> bool {
        self.seize(slot, State::Idle)
    }

    /// A cancel request for the server's present client is about to be sent. If false, do not send it: the client no
    /// longer has this server, or too many requests are in flight.
    pub fn cancel_sent(&mut self, slot: Slot) -> bool {
        let Some(index) = self.slots.find(slot) else { return false };
        let room = self.limits.size == 0 || self.slots.cancels() < self.limits.most();
        if self.slots.at(index).state() != State::Active || !room {
            return false;
        }
        self.slots.add_cancel(index);
        true
    }

    /// PostgreSQL has closed the socket of a cancel request, or it failed. If this answers a server, it was waiting
    /// for that: the caller has it now, must see it answer one check, and then releases it.
    pub fn cancel_done(&mut self, slot: Slot) -> Option<S> {
        let index = self.slots.find(slot)?;
        let left = self.slots.drop_cancel(index);
        if left > 0 || self.slots.at(index).state() != State::BeingCanceled {
            return None;
        }
        self.slots.place(index, State::Tested);
        self.slots.at(index).server.clone()
    }

    /// Whether the server is to be closed as soon as it is free: after a reconnect, a reload, a kill.
    pub fn is_close_needed(&self, slot: Slot) -> bool {
        self.slots.find(slot).is_none_or(|index| {
            let record = self.slots.at(index);
            record.epoch != self.epoch || record.state() == State::Closing
        })
    }

    /// Whether an idle server must pass a check before its next use.
    pub fn is_check_needed(&self, now: Moment, slot: Slot) -> bool {
        self.slots.find(slot).is_some_and(|index| {
            let record = self.slots.at(index);
            record.state() == State::Idle && self.is_check_due(now, index)
        })
    }

    /// What a server is doing.
    pub fn state(&self, slot: Slot) -> State {
        self.slots.find(slot).map_or(State::Free, |index| self.slots.at(index).state())
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many clients wait.
    pub fn waiting(&self) -> u32 {
        self.queue.len() + self.pin_queue.len()
    }

    /// Since when the oldest of them waits.
    pub fn oldest_waiter(&self) -> Option<Moment> {
        match (self.queue.oldest(), self.pin_queue.oldest()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// All servers, from being opened to being closed.
    pub fn servers(&self) -> u32 {
        self.slots.in_use()
    }

    /// How many have a server or wait for one.
    pub fn load(&self) -> u32 {
        self.slots.count(State::Active) + self.waiting()
    }

    /// Numbers for the console.
    pub fn counts(&self, now: Moment) -> Counts {
        let idle = self.slots.count(State::Idle);
        let due = |index: &u32| self.is_check_due(now, *index);
        // The idle list is in order, so what needs a check is at its old end.
        let used = self.slots.idle().take_while(due).count() as u32;
        Counts {
            active: self.slots.count(State::Active),
            active_cancel: self.slots.cancels(),
            being_canceled: self.slots.count(State::BeingCanceled),
            idle: idle - used,
            used,
            tested: self.slots.count(State::Tested),
            login: self.slots.count(State::Opening),
            closing: self.slots.count(State::Closing),
            pinned: self.slots.pinned(),
            waiting: self.waiting(),
            maxwait: self.oldest_waiter().map_or(Duration::ZERO, |since| now.since(since)),
        }
    }

    /// Gives a server that is clean and free to the oldest waiter, or lays it by.
    #[inline]
    pub(crate) fn offer(&mut self, now: Moment, index: u32) -> After<C, S> {
        if !self.pin_queue.is_empty()
            && self.is_pin_next()
            && let Some(after) = self.hand_to_pin(now, index)
        {
            return after;
        }
        let (settings, servers) = (self.slots.at(index).near.settings, self.slots.in_use());
        if !self.queue.is_empty()
            && let Some(grant) = self.lend(index, false)
            && let Some(Waiter { client, since, .. }) = self.queue.pop_near(settings, servers)
        {
            return After::Handover { client, grant, waited: now.since(since) };
        }
        let record = self.slots.at_mut(index);
        record.idle_since = now;
        if !self.limits.lifetime.is_zero() {
            self.lifetime_due = self.lifetime_due.min(record.connected + self.limits.lifetime);
        }
        self.slots.place(index, State::Idle);
        After::Idle
    }

    /// Takes a server out of any list to be closed by the caller.
    pub(crate) fn end(&mut self, index: u32) -> Option<Ended<S>> {
        let slot = self.slots.name(index);
        let server = self.slots.at_mut(index).server.take();
        self.slots.place(index, State::Closing);
        server.map(|server| Ended { slot, server })
    }

    #[inline]
    pub(crate) fn grant_idle(&mut self, now: Moment, near: Near) -> Option<Grant<S>> {
        let index = self.slots.next_idle(near, self.limits.round_robin)?;
        let check = self.is_check_due(now, index);
        self.lend(index, check)
    }

    #[inline]
    pub(crate) fn lend(&mut self, index: u32, check: bool) -> Option<Grant<S>> {
        let server = self.slots.at(index).server.clone()?;
        self.slots.place(index, State::Active);
        Some(Grant { slot: self.slots.name(index), server, check, pinned: false })
    }

    fn seize(&mut self, slot: Slot, from: State) -> bool {
        let Some(index) = self.slots.find(slot) else { return false };
        let seized = self.slots.at(index).state() == from;
        if seized {
            self.slots.place(index, State::Tested);
        }
        seized
    }

    #[inline]
    pub(crate) fn is_check_due(&self, now: Moment, index: u32) -> bool {
        let idle_since = self.slots.at(index).idle_since;
        self.limits.check_delay.is_some_and(|delay| idle_since + delay <= now)
    }

    #[inline]
    fn must_close(&mut self, now: Moment, index: u32) -> bool {
        let record = self.slots.at(index);
        let connected = record.connected;
        self.paused
            || record.dedicated
            || record.epoch != self.epoch
            || self.slots.in_use() - self.slots.count(State::Closing) > self.limits.most()
            || self.is_lifetime_over(now, connected)
    }

    /// Whether a server is too old; if so, the next one is not for a while.
    pub(crate) fn is_lifetime_over(&mut self, now: Moment, connected: Moment) -> bool {
        let over = connected + self.limits.lifetime <= now && now >= self.lifetime_from;
        if over {
            self.lifetime_from = now + self.limits.lifetime_gap();
        }
        over
    }
}

impl<C, S> fmt::Debug for Pool<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("servers", &self.slots.in_use())
            .field("waiting", &self.queue.len())
            .field("paused", &self.paused)
            .finish_non_exhaustive()
    }
}
