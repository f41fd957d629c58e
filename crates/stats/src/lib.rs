//! What is counted about a pool, how it is summed, and what a second or an event of it costs on average.
//!
//! Knows neither pools, sockets nor clocks: a worker adds to its own [`Counters`], whoever shows statistics
//! sums them to [`Totals`], and a [`History`] of two periods turns totals into [`Averages`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod averages;
mod counters;
mod history;
mod pins;
mod tallies;
mod totals;

#[cfg(test)]
mod tests;

pub use averages::Averages;
pub use counters::Counters;
pub use history::History;
pub use pins::{Counted, PinCount, PinCounts, PinKind, ROWS_MAX};
pub use tallies::Tallies;
pub use totals::{COUNTERS, Totals};
