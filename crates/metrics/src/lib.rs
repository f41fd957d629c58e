//! What a scrape is told: which metrics there are, what each is about, and where in a [`Reading`] its numbers stand.
//!
//! The order of calls: somebody gathers a [`Reading`], [`families`] makes values of it, and somebody writes them out.
//! Knows neither how that is written nor who asks. Nothing here counts: what is told was counted already.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod family;
mod manual;
mod reading;
mod table;
mod verbs;

pub use family::{Family, Kind, LABEL_BYTES_MAX, Metric, SERIES_MAX, Series, Unit, Value, families};
pub use manual::manual;
pub use reading::{ClusterTally, PoolTally, Process, Reading, WeightRow, Whole};
pub use table::METRICS;

#[cfg(test)]
mod tests;
