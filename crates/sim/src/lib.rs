//! A seeded simulation of clients, servers and their misfortunes, around the pooler's own pure machines.
//!
//! It drives the crates pool, link, server, client and baton in the order of calls that the shell keeps, with a
//! network, a clock and a PostgreSQL of its own. The same seed makes the same run. Beside each client stands an
//! ideal: what a server of its own would have answered; and the checkers look at what no client can see.
//!
//! Reading order: what chance there is, how bytes travel, what a server does, what a client says and expects,
//! what the pooler does, what goes wrong, what must be true, how a seed is run.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod rng;

mod net;

mod postgres;

mod client;
mod ears;
mod script;

mod keeper;
mod lease;
mod nodes;
mod notes;
mod opening;
mod outlive;
mod parts;
mod relay;
mod sent;
mod world;

mod misfortune;
mod plan;
mod plant;

mod check;
mod run;

#[cfg(test)]
mod tests;

pub use plant::{PLANTS, Plant};
pub use run::{Verdict, run};
