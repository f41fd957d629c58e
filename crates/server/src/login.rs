//! Our login to a PostgreSQL server, from the startup message to the first ReadyForQuery.
//!
//! Decides which authentication we answer and with what, and what of the server's greeting is kept. Does not
//! know sockets, TLS or the clock, nor where the secret came from. The server is a stranger: whatever it sends,
//! in whatever order, ends in a state, an end or an error, in bounded memory.
//!
//! Order of calls: [`begin`] writes the startup message; the caller sends what is in `out` after every call,
//! cuts what it receives with [`next_message`] and gives each message to [`Login::handle`]. A
//! [`Step::NeedsKeys`] is answered by [`NeedsKeys::keys`] (slow to make: not on a thread that does I/O) before
//! the next message is looked at. Where the secret is a client's, [`Relayed`] comes first. At [`Step::Done`] the caller must hold no byte more of the server's.

mod credential;
mod fault;
mod frame;
mod lookup;
mod question;
mod relayed;
mod scram;
mod state;

#[cfg(test)]
mod tests;

pub use credential::{Method, Methods};
pub use fault::{LoginError, LoginFailed, LoginFault};
pub use frame::{MESSAGE_BYTES_MAX, Message, next_message};
pub use lookup::{Found, Lookup, LookupError, LookupFault, LookupStep};
pub use question::{Columns, Question, QuestionError, QuestionStep};
pub use relayed::{RelayStep, Relayed};
pub use scram::{KeyWork, NeedsKeys};
pub use state::{LoggedIn, Login, LoginOrder, Parameter, Step, begin};
