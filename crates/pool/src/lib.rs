//! Which waiting client gets which server, and when servers open and close.
//!
//! One [`Pool`] is one pair of database and server user. It moves handles that it is given and knows nothing of
//! sockets, protocol or SQL; what it wants done it answers from the call that made it want it. It never waits, allocates
//! nothing in steady state, and each call on the way of a query costs the same however large the pool is, so a
//! lock around it is held for nanoseconds.
//!
//! A server's life, as calls:
//!
//! ```text
//! checkout / closed / tick / poke / resume  ->  Opens: each Slot in it is counted from now on
//!     opened(slot, server)   or   open_failed(slot)   or   open_refused(slot)
//! checkout -> Granted    release -> Handover            the client has it
//!     detach(slot)                                      its client left, it is being reset or checked
//!     release(slot)      -> Handover | Idle | Canceling | Close
//! anything that says close                              the caller closes the socket, then
//!     closed(slot)       -> Opens                       and only now the place is free again
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod check;
mod drain;
mod hold;
mod limits;
mod list;
mod near;
mod opening;
mod pins;
mod pool;
mod queue;
mod slots;
mod tick;

#[cfg(test)]
mod tests;

pub use answer::{
    After, Checkout, Counts, Dedicated, Due, Ended, Expired, Failed, Failure, Grant, Handover, Killed,
    LoginError, Opened, Opens, Released,
};
pub use limits::{Limits, OPENING_MAX};
pub use near::Near;
pub use pool::Pool;
pub use queue::Ticket;
pub use slots::{Slot, State};
