//! Whose turn it is: the locking protocol between workers, small enough to be model-checked.
//!
//! Any worker may work on any client and any server, and no worker ever waits for another. Two things make
//! that safe:
//!
//! - A [`Gate`] before each client's session. Whoever has news for the session posts it; the first to post
//!   does the work, and does the work of everybody who posts meanwhile.
//! - A [`Berth`] for each server connection. The server itself is either moored there or moved out, into the
//!   session of its client, so that two holders cannot exist; and an edge of its socket is remembered until
//!   whoever holds it next has seen it, so that none is lost while the server changes hands.
//!
//! With `--cfg loom` the same code runs under loom, which tries every interleaving.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod berth;
mod gate;
mod sync;

pub use berth::{Berth, Holder, News};
pub use gate::{Bits, Gate};
