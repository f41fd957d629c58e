//! When a pool opens servers, and what it makes of the outcome.
//!
//! As many at a time as there are waiters, up to a bound, and one at a time with growing pauses while they fail.

use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use crate::answer::{After, Dedicated, Failed, Failure, LoginError, Opened, Opens};
use crate::limits::OPENING_MAX;
use crate::near::Near;
use crate::pool::Pool;
use crate::slots::{Slot, State};

/// The first pause after a failure; it doubles with each that follows.
const RETRY_FIRST: Duration = Duration::from_millis(250);

/// The shortest pause, whatever `server_login_retry` says: a dead server is not asked in a tight loop.
const RETRY_LEAST: Duration = Duration::from_millis(10);

/// 250 ms doubled so often is over an hour.
const DOUBLINGS_MAX: u32 = 14;

/// A pool that a limit of its database or user keeps from opening asks again after this, should nobody tell it sooner.
const LIMIT_RETRY: Duration = Duration::from_secs(1);

/// What is known about opening servers.
#[derive(Default)]
pub(crate) struct Opening {
    /// Failures in a row; failures of attempts that were under way together count once.
    failures: u32,
    /// No attempt before this, because the last one failed.
    retry_from: Moment,
    /// No attempt before this, because a limit elsewhere is reached.
    limit_from: Moment,
    /// What the server said, if the last attempt was refused at login.
    login_error: Option<Arc<LoginError>>,
    /// Dedicated servers being opened: they serve no waiter.
    dedicated: u32,
    /// Whether `min_size` is to be filled up.
    keep_min: bool,
}

impl<C: Clone, S: Clone> Pool<C, S> {
    /// A server has logged in.
    pub fn opened(&mut self, now: Moment, slot: Slot, server: S, near: impl Into<Near>) -> Opened<C, S> {
        let Some(index) =
            self.slots.find(slot).filter(|index| self.slots.at(*index).state() == State::Opening)
        else {
            return Opened { after: After::Close, open: Opens::NONE };
        };
        let record = self.slots.at_mut(index);
        record.server = Some(server);
        record.connected = now;
        record.near = near.into();
        let (stale, dedicated) = (record.epoch != self.epoch, record.dedicated);
        self.opening.dedicated -= u32::from(dedicated);
        self.opening.failures = 0;
        self.opening.retry_from = Moment::default();
        self.opening.login_error = None;
        let shrunk = self.slots.in_use() - self.slots.count(State::Closing) > self.limits.most();
        let after = if stale || self.paused || shrunk {
            self.slots.place(index, State::Closing);
            After::Close
        } else if dedicated {
            self.slots.place(index, State::Active);
            After::Dedicated
        } else {
            self.offer(now, index)
        };
        Opened { after, open: self.opens(now) }
    }

    /// A server could not be opened.
    pub fn open_failed(&mut self, now: Moment, slot: Slot, failure: Failure) -> Failed<C> {
        let Some(dedicated) = self.abandon(slot) else {
            return Failed { refused: Vec::new(), open: Opens::NONE };
        };
        if dedicated {
            // Only its own client is told.
            return Failed { refused: Vec::new(), open: self.opens(now) };
        }
        if now >= self.opening.retry_from {
            let pause = RETRY_FIRST * (1 << self.opening.failures.min(DOUBLINGS_MAX));
            self.opening.failures = self.opening.failures.saturating_add(1);
            self.opening.retry_from = now + pause.min(self.limits.login_retry).max(RETRY_LEAST);
        }
        self.opening.login_error = match failure {
            Failure::Login(error) => Some(Arc::new(error)),
            Failure::Connect | Failure::NotNow => None,
        };
        let last_hope = self.slots.connected() == 0 && self.slots.count(State::Opening) == 0;
        let mut refused = Vec::new();
        if self.opening.login_error.is_some() && last_hope && !self.paused && self.held.is_none() {
            refused = self.refuse_waiting();
        }
        Failed { refused, open: self.opens(now) }
    }

    /// A limit of the database or the user stands in the way of an opening. No failure: the pool asks again after
    /// [`Pool::poke`], or after a while.
    pub fn open_refused(&mut self, now: Moment, slot: Slot) {
        if self.abandon(slot).is_some() {
            self.opening.limit_from = now + LIMIT_RETRY;
        }
    }

    /// A limit that stood in the way may have room now.
    pub fn poke(&mut self, now: Moment) -> Opens {
        self.opening.limit_from = Moment::default();
        self.opens(now)
    }

    /// A server's socket is closed, whatever it was doing and whoever wanted it. An old name is ignored.
    pub fn closed(&mut self, now: Moment, slot: Slot) -> Opens {
        let Some(index) = self.slots.find(slot) else { return Opens::NONE };
        if self.slots.at(index).state() == State::Opening {
            let _ = self.abandon(slot);
        } else {
            self.slots.place(index, State::Free);
        }
        self.opens(now)
    }

    /// Whether `min_size` is kept filled: when the pool has a client, or its user is forced.
    pub fn keep_min(&mut self, now: Moment, keep: bool) -> Opens {
        self.opening.keep_min = keep;
        self.opens(now)
    }

    /// A place for a server that one client keeps to itself, as replication does. `None` if the pool is full or paused.
    pub fn reserve_dedicated(&mut self) -> Option<Dedicated<S>> {
        if self.paused || self.held.is_some() {
            return None;
        }
        let mut evicted = None;
        if self.slots.in_use() >= size_or_any(self.limits.size) {
            let index = self.slots.oldest_idle()?;
            evicted = self.end(index);
            // Its place is taken over at once; the caller closes it before it opens the new one.
            self.slots.place(index, State::Free);
        }
        self.opening.dedicated += 1;
        Some(Dedicated { slot: self.slots.reserve(self.epoch, true), evicted })
    }

    /// Whether a client that comes now would wait for nothing but the next attempt: no server is there, and the last
    /// could not be opened.
    pub fn is_failing(&self, now: Moment) -> bool {
        self.opening.failures > 0 && self.slots.connected() == 0 && now < self.opening.retry_from
    }

    /// The cached error, if a client that comes now has nothing to hope for.
    pub(crate) fn login_fails(&self, now: Moment) -> Option<Arc<LoginError>> {
        let error = self.opening.login_error.as_ref()?;
        let under_way = self.slots.count(State::Opening) > self.opening.dedicated;
        let due = now >= self.opening.retry_from;
        let hope = self.slots.connected() > 0 || under_way || due || self.paused || self.held.is_some();
        (!hope).then(|| Arc::clone(error))
    }

    /// Takes places for the servers to be opened now.
    pub(crate) fn opens(&mut self, now: Moment) -> Opens {
        let mut opens = Opens::NONE;
        if let Some((count, from)) = self.demand()
            && from <= now
        {
            for _ in 0..count.min(OPENING_MAX as u32) {
                opens.push(self.slots.reserve(self.epoch, false));
            }
        }
        opens
    }

    /// When the next server is to be opened, if time is all that stands in the way.
    pub(crate) fn open_due(&self) -> Moment {
        self.demand().map_or(Moment::NEVER, |(_, from)| from)
    }

    /// How many servers to open, and from when on.
    #[inline]
    fn demand(&self) -> Option<(u32, Moment)> {
        // A pool that is full and has no reserve opens nothing: asked by each client that begins to wait.
        let is_full = self.slots.in_use() >= size_or_any(self.limits.size);
        if is_full && self.limits.reserve_timeout.is_zero() {
            return None;
        }
        let under_way = self.slots.count(State::Opening) - self.opening.dedicated;
        let at_once = if self.opening.failures > 0 { 1 } else { OPENING_MAX as u32 };
        if self.paused || self.held.is_some() || under_way >= at_once {
            return None;
        }
        let servers = self.slots.in_use();
        let for_pins = self.pins_wanted().saturating_sub(self.slots.count(State::Idle));
        let for_waiters = (self.queue.len() + for_pins).saturating_sub(under_way);
        let for_min = if self.opening.keep_min { self.limits.kept().saturating_sub(servers) } else { 0 };
        let need = for_waiters.max(for_min);
        let room = size_or_any(self.limits.size).saturating_sub(servers);
        let from = self.opening.retry_from.max(self.opening.limit_from);
        if need > 0 && room > 0 {
            return Some((need.min(room).min(at_once - under_way), from));
        }
        let reserve = servers < self.limits.most() && !self.limits.reserve_timeout.is_zero();
        let oldest_pin = self.pin_queue.oldest().filter(|_| for_pins > 0);
        let oldest = self.queue.oldest().into_iter().chain(oldest_pin).min()?;
        (for_waiters > 0 && under_way == 0 && reserve)
            .then(|| (1, from.max(oldest + self.limits.reserve_timeout)))
    }

    /// What a server said when it refused a login holds no longer: its database has changed.
    pub fn forget_refusal(&mut self, now: Moment) -> Opens {
        if self.opening.login_error.is_none() {
            return Opens::NONE;
        }
        self.forget_failures();
        self.opens(now)
    }

    /// Failures so far say nothing about what is opened from now on.
    pub(crate) fn forget_failures(&mut self) {
        self.opening.failures = 0;
        self.opening.retry_from = Moment::default();
        self.opening.login_error = None;
    }

    /// Frees the place of an opening that came to nothing; says whether it was a dedicated one.
    fn abandon(&mut self, slot: Slot) -> Option<bool> {
        let index = self.slots.find(slot).filter(|index| self.slots.at(*index).state() == State::Opening)?;
        let dedicated = self.slots.at(index).dedicated;
        self.opening.dedicated -= u32::from(dedicated);
        self.slots.place(index, State::Free);
        Some(dedicated)
    }
}

fn size_or_any(size: u32) -> u32 {
    if size == 0 { u32::MAX } else { size }
}
