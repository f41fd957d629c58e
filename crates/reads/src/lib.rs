//! Which statements provably may go to a standby, and what was decided about those that were seen.
//!
//! [`Verdicts`] keeps what was decided, by the fingerprints of `sql`. Does not know where a statement is sent.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod verdict;
mod verdicts;

pub use verdict::{Verdict, Why, unfit};
pub use verdicts::{Ticket, Verdicts, WAITING_MAX};
