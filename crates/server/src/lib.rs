//! One server connection: its login, the replies it owes, what it has prepared and set.
//!
//! It never knows a client, a pool, the settings or a socket.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ledger;
pub mod listening;
pub mod login;
pub mod prepared;
mod server;

#[cfg(test)]
mod tests;

pub use ledger::{Entry, Instead, Ledger, Made, Marks, Owed, Passes};
pub use server::{Broken, Check, Left, Retry, Server, Undescribed, UnnamedOf};
