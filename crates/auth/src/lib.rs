//! Who a client is, and how we say who we are to a server: secrets, the password exchanges, and the files that
//! name users and rules.
//!
//! Everything here is pure: nonces, salts and file contents are arguments, and the bytes are those *inside* the
//! protocol's messages. Nothing here knows how a message is framed, where a secret is kept, or what a refused
//! client is told.
//!
//! Two calls are slow on purpose and say so: [`scram::salted_password`] (with what is built on it) and
//! [`method::check_plain`] when [`StoredSecret::check_is_slow`]. They belong off the threads that do I/O.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod secret;
mod verdict;

pub mod login;
pub mod md5;
pub mod method;
pub mod scram;

mod problem;
mod tokens;

pub mod hba;
pub mod ident;
pub mod userlist;

pub use login::LoginSecret;
pub use method::ClientMethod;
pub use problem::{PROBLEMS_MAX, Problem, Problems};
pub use secret::{Password, StoredSecret};
pub use verdict::{Blame, Refusal, ScramFault, ServerErrorValue};

#[cfg(test)]
mod tests;
