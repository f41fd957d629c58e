//! Ids, moments and plain nouns that every layer shares.
//!
//! Nothing here decides anything, does I/O or reads a clock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod ids;
mod mode;
mod moment;
pub mod parameters;
mod refusal;
mod state_mode;
mod statement;
mod table;

#[cfg(test)]
mod tests;

pub use ids::{ClientId, PoolId, ServerId, WorkerId};
pub use mode::PoolMode;
pub use moment::Moment;
pub use parameters::Parameters;
pub use refusal::{Outcome, Refusal};
pub use state_mode::StateMode;
pub use statement::{Digest, Statement, Statements};
pub use table::{Cell, Column, ColumnType, Table};
