//! The benchmark: what a transaction costs through Howdah, through its peers and through nothing at all.
//!
//! One run drives all targets, round by round in an order drawn from a printed seed, so that a machine
//! that drifts hits all alike; what is compared is the ratio to PgBouncer *within each round*. The crate
//! speaks the protocol with its own few lines (`protocol`), not with the `wire` crate it helps to judge.
//!
//! Reading order: what is asked for, what is run, what puts load on it, what is seen, what is said.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Tier 4: it starts processes, measures time and opens sockets.
#![allow(clippy::disallowed_methods)]

pub mod access;
pub mod error;
pub mod options;
pub mod plan;
pub mod scenario;
pub mod secret;
pub mod setup;

pub mod arena;
pub mod host;
pub mod postgres;
pub mod process;
pub mod target;

pub mod canned;
pub mod churn;
pub mod generator;
pub mod histogram;
pub mod pgbench;
pub mod protocol;
pub mod relay;
pub mod session;
pub mod sysbench;
pub mod trouble;
pub mod visitor;

pub mod load;
pub mod usage;
pub mod watch;

pub mod compare;
pub mod json;
pub mod progress;
pub mod report;
pub mod run;
pub mod summary;
pub mod table;
