//! The PostgreSQL protocol, version 3, as bytes.
//!
//! Borrowed views of what peers send and builders of what we send; nothing here owns a message, keeps
//! a state or knows a socket. The rules are those of the PostgreSQL manual's chapter
//! "Frontend/Backend Protocol"; a function names the section where it is not obvious.
//!
//! Every decoder takes bytes that a peer chose: none panics, and none allocates by a declared length.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod client;
mod cursor;
pub mod encode;
mod header;
pub mod server;
pub mod sqlstate;
pub mod startup;

#[cfg(test)]
mod tests;

pub use cursor::Malformed;
pub use header::{HEADER_SIZE, Header, HeaderFault};
