//! What a pool answers, as plain values.

use std::sync::Arc;
use std::time::Duration;

use model::Refusal;

use crate::limits::OPENING_MAX;
use crate::queue::Ticket;
use crate::slots::Slot;

/// A server lent to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant<S> {
    /// The name by which it is released.
    pub slot: Slot,
    /// The caller's own handle.
    pub server: S,
    /// It was idle so long that it must pass a check first.
    pub check: bool,
    /// The client may keep it for its session state, and is counted as one that does.
    pub pinned: bool,
}

/// A server for a client that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover<C, S> {
    /// Who waited.
    pub client: C,
    /// What it gets.
    pub grant: Grant<S>,
    /// For how long it waited.
    pub waited: Duration,
}

/// The answer to a client that wants a server.
#[derive(Clone, Debug)]
#[must_use]
pub enum Checkout<S> {
    /// It has one.
    Granted(Grant<S>),
    /// It waits in the queue.
    Queued {
        /// Its place, to leave the queue by.
        ticket: Ticket,
        /// Servers to open now.
        open: Opens,
    },
    /// No server could log in, none is left, and no attempt is due yet.
    Refused(Arc<LoginError>),
}

/// In which condition a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Idle, outside a transaction, owing nothing, reset where that is asked for.
    Clean,
    /// Anything else.
    Close,
}

/// What becomes of a server that its holder gave back, or that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum After<C, S> {
    /// It belongs to the oldest waiter: serve it now.
    Handover {
        /// Who waited.
        client: C,
        /// What it gets.
        grant: Grant<S>,
        /// For how long it waited.
        waited: Duration,
    },
    /// It is idle; the caller no longer owns it.
    Idle,
    /// A cancel request is in flight to it; whoever sees that one end gets it from [`crate::Pool::cancel_done`].
    Canceling,
    /// It was opened for the caller alone, who has it now.
    Dedicated,
    /// Close it, then call [`crate::Pool::closed`].
    Close,
}

/// A server to close: the caller closes it, then calls [`crate::Pool::closed`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Ended<S> {
    /// Its place, still counted.
    pub slot: Slot,
    /// The caller's handle; the pool has forgotten it.
    pub server: S,
}

/// The places of servers to open now: already counted, at most [`OPENING_MAX`], no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Opens {
    slots: [Slot; OPENING_MAX],
    count: u8,
    next: u8,
}

impl Opens {
    /// Nothing to open.
    pub const NONE: Opens = Opens { slots: [Slot::NOWHERE; OPENING_MAX], count: 0, next: 0 };

    /// How many are left in it.
    pub fn len(&self) -> usize {
        usize::from(self.count - self.next)
    }

    /// Whether there is nothing to open.
    pub fn is_empty(&self) -> bool {
        self.count == self.next
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        self.slots[usize::from(self.count)] = slot;
        self.count += 1;
    }
}

impl Iterator for Opens {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        let slot = self.slots[..usize::from(self.count)].get(usize::from(self.next)).copied()?;
        self.next += 1;
        Some(slot)
    }
}

/// The answer to a server that has logged in.
#[derive(Clone, Debug)]
#[must_use]
pub struct Opened<C, S> {
    /// Whose it is.
    pub after: After<C, S>,
    /// Further servers to open.
    pub open: Opens,
}

/// What a server said when it refused the login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginError {
    /// SQLSTATE.
    pub code: String,
    /// The server's words.
    pub message: String,
}

impl LoginError {
    /// What clients are told that waited for this login.
    pub fn refusal(&self) -> Refusal {
        Refusal::ServerLoginFailed(self.code.clone(), self.message.clone())
    }

    /// What clients are told that come before the next attempt.
    pub fn cached_refusal(&self) -> Refusal {
        let words =
            format!("server login has been failing, cached error: {} (server_login_retry)", self.message);
        Refusal::ServerLoginFailed(self.code.clone(), words)
    }
}

/// Why a server could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Not reached, no answer in time, TLS failed: clients go on waiting.
    Connect,
    /// The server refused the login: clients are told, unless another server lives.
    Login(LoginError),
    /// The server takes nobody now (57P03, 53300): clients go on waiting.
    NotNow,
}

/// The answer to a failed opening.
#[derive(Clone, Debug)]
#[must_use]
pub struct Failed<C> {
    /// Waiters to refuse with the server's own words; they have left the queue.
    pub refused: Vec<C>,
    /// Servers to open now: none, unless the failed one was a dedicated one and others are due.
    pub open: Opens,
}

/// A place for a server that one client keeps to itself.
#[derive(Clone, Debug)]
#[must_use]
pub struct Dedicated<S> {
    /// Counted from now on.
    pub slot: Slot,
    /// An idle server that had to make room: close it before the new one is opened.
    pub evicted: Option<Ended<S>>,
}

/// A client that waited in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired<C> {
    /// Who; it has left the queue.
    pub client: C,
    /// For how long it waited.
    pub waited: Duration,
    /// It waited to keep a server for its session state.
    pub pinned: bool,
    /// In a held pool: `failover_timeout` is over, and not the limit of its own.
    pub held: bool,
}

/// What is due by time or by a change of limits.
#[derive(Clone, Debug)]
#[must_use]
pub struct Due<C, S> {
    /// Servers to close.
    pub close: Vec<Ended<S>>,
    /// Servers to open.
    pub open: Opens,
    /// Waiters past their deadline.
    pub expired: Vec<Expired<C>>,
    /// Waiters that have an idle server now.
    pub handovers: Vec<Handover<C, S>>,
}

/// All that lived in a pool.
#[derive(Clone, Debug)]
#[must_use]
pub struct Killed<C, S> {
    /// Servers to close, whatever they are doing.
    pub servers: Vec<Ended<S>>,
    /// Waiters to disconnect; they have left the queue.
    pub clients: Vec<C>,
}

/// Numbers for `SHOW POOLS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Servers lent to clients.
    pub active: u32,
    /// Cancel requests in flight.
    pub active_cancel: u32,
    /// Servers kept back until a cancel request has ended.
    pub being_canceled: u32,
    /// Idle servers, ready at once.
    pub idle: u32,
    /// Idle servers that need a check first.
    pub used: u32,
    /// Servers being reset or checked.
    pub tested: u32,
    /// Servers being opened.
    pub login: u32,
    /// Servers whose closing is not done.
    pub closing: u32,
    /// Servers that their clients keep, or are about to keep, for session state.
    pub pinned: u32,
    /// Clients that wait, those that want to keep a server included.
    pub waiting: u32,
    /// How long the oldest of them has waited.
    pub maxwait: Duration,
}
