//! Which statements provably may go to a standby: PostgreSQL's own grammar reads them, the server's catalog says what
//! the names in them are, and whatever is not known for certain goes to the primary.
//!
//! The order of calls: [`Case::open`] reads a text without its literals; as long as [`Case::question`] has one, the
//! server is asked it and [`Case::answer`] takes the row; then there is a [`Verdict`], which [`Verdicts`] keeps. Does
//! not know how the server is asked, nor where a statement is sent.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod case;
mod grammar;
mod names;
mod question;
mod verdict;
mod verdicts;

pub use case::{Case, Judged, Unclear};
pub use grammar::{STACK_BYTES, read};
pub use names::{Name, Needs};
pub use verdict::{Verdict, Why, unfit};
pub use verdicts::{Ticket, Verdicts, WAITING_MAX};

#[cfg(test)]
mod tests;
