//! One client paired with at most one server: what becomes of every byte between the two.
//!
//! The link is given bytes as they arrive and says which spans of them go where; it owns no message that it
//! only forwards. It reads no clock and no socket, and it does not know the pool: it says when it is done
//! with its server, and whoever calls it gives that server to another.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod by_sql;
mod carry;
mod census;
mod channels;
mod from_client;
mod from_server;
mod instead;
mod link;
mod noted;
mod out;
mod outlive;
mod policy;
mod prepared;
mod route;
mod sequences;
mod stale;
mod state;
pub mod unpaired;
mod waiting;

#[cfg(test)]
mod tests;

pub use channels::Channel;
pub use link::{Granted, Link, Standing};
pub use out::{Out, Side, Span, Tally};
pub use policy::Policy;
pub use progress::{Progress, Then};
pub use route::{Ground, Reason as PrimaryReason, Verdict, Way};
pub use sql::state::{Functions, Reason};
pub use state::pins::Pins;

mod progress {
    use model::Refusal;

    /// What came of a read.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Progress {
        /// How many of the bytes are dealt with. The rest must be given again, with more behind them.
        pub consumed: usize,
        /// What the caller does next.
        pub then: Then,
    }

    /// What a link expects next from the side whose bytes it was given.
    #[derive(Debug, PartialEq, Eq)]
    pub enum Then {
        /// More bytes, whenever they come.
        Read,
        /// No more bytes of this side until the other has sent some.
        Wait,
        /// The client's next message makes state that will keep its server, and nothing of it was sent. Whoever
        /// counts such clients says [`Link::permit`](crate::Link::permit) and gives the bytes again, or takes the
        /// server and does so with a later one.
        Pin,
        /// The client has said goodbye, or what it sent cannot be answered in any other way.
        ///
        /// Boxed: this travels with every read, and a refusal only once.
        Close(Option<Box<Refusal>>),
        /// The server is at its end. `true`: the client has been told why, or is being told by the bytes
        /// in `out`.
        ServerGone(bool),
    }
}
