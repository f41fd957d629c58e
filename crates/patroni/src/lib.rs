//! What Patroni says of a cluster's members, and the list of hosts that follows from it.
//!
//! [`Report::read`] takes the body of an answer to `GET /cluster`, of any version of Patroni and of anybody who says
//! he is one: its size, the count of its members and the length of each word are bounded. A [`Roster`] makes a list of
//! one report after the other, from which nobody is struck off for being absent once.
//!
//! Knows neither sockets nor clusters. Roles and states are words for people: who the primary is, PostgreSQL says.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod report;
mod roster;

#[cfg(test)]
mod tests;

pub use report::{BYTES_MAX, Fault, MEMBERS_MAX, Member, Report, Tags};
pub use roster::{ABSENCES_MAX, Roster};
