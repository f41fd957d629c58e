//! The admin console: the database that a client enters to see and steer the pooler.
//!
//! [`grammar::parse`] turns text into a [`Command`], [`show::table`] turns a [`Snapshot`] into a table, and
//! a [`Session`] speaks the protocol, simple and extended, between them. The console knows neither pools
//! nor sockets: what it cannot answer from itself it asks for ([`Ask::Execute`]) and is told ([`Reply`]).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod command;
mod failure;
pub mod grammar;
mod render;
mod reply;
mod role;
mod session;
pub mod show;
mod snapshot;
mod welcome;

#[cfg(test)]
mod tests;

pub use command::{Command, Parameter, Scope, Show, Shutdown};
pub use failure::{AdminVerb, Failure};
pub use reply::{Notice, Reply};
pub use role::{Login, Role};
pub use session::{Ask, MESSAGE_SIZE_MAX, Progress, Session};
pub use snapshot::{
    Buffers, ClientRow, ClientState, ConfigRow, DatabaseRow, DnsHostRow, DnsZoneRow, ListCounts, ListenerRow,
    MemRow, NodeRow, PeerPoolRow, PeerRow, PinRow, Pinned, PoolRow, Replication, RouteRow, ServerRow,
    ServerState, Snapshot, Socket, State, StatsRow, UserRow,
};
pub use welcome::{DATABASES, is_console, welcome};
