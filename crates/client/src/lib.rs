//! One client: its login, what it sends, what it relies on.
//!
//! Machines without sockets, clocks or randomness: bytes and answers go in, bytes and asks come out.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod client;
pub mod login;
mod names;
pub mod refuse;

#[cfg(test)]
mod tests;

pub use client::{Client, Dialect, Rest, Unnamed, is_of_meaning};
pub use names::Names;
