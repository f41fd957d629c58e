//! Sockets, threads, TLS, clocks, files: everything that touches the world.
//!
//! The data plane is `worker` (the event loop), `relay` (the only loop that moves bytes), `lease` (how a server
//! changes hands) and `keeper` (servers without a client). The control plane is `control` and what it calls.
//! Nothing here knows what a message means: it moves spans and carries out decisions.
#![warn(missing_docs)]
#![allow(clippy::disallowed_methods, reason = "this is the layer that has clocks, files and threads")]

pub mod start;

pub mod worker;
pub mod crew;
pub mod duty;
mod level;
pub mod accept;
pub mod session;
pub mod enter;
pub mod relay;
pub mod lease;
mod leftover;
pub mod keeper;
pub mod fanout;
pub mod outlive;
mod waiting;
pub mod claim;
pub mod entry;
mod entering;
pub mod reception;
pub mod admin;

pub mod shared;
pub mod home;
pub mod moored;
mod outbox;
mod passthrough;
mod nodes;
pub mod socket;
mod records;
pub mod sources;
mod split;
mod deadlines;
pub mod timer;
pub mod clock;
mod peer;
pub mod pins;
mod random;
mod http;
mod exposition;
mod process;
mod alike;
mod digests;
mod journal;

pub mod control;
pub mod reading;
pub mod cancel;
pub mod cancel_out;
pub mod connect;
pub mod dns;
pub mod listen;
pub mod log;
pub mod pidfile;
pub mod privileges;
pub mod signal;
pub mod sockopt;
pub mod systemd;
pub mod tls;

/// The version of PgBouncer whose surface this is: what tools that ask it for its version rely on.
pub const VERSION: &str = "1.25.2";

/// `SHOW VERSION`, and the first line of `howdah -V`.
pub fn version_line() -> String {
    format!("PgBouncer {VERSION} (Howdah {})", env!("CARGO_PKG_VERSION"))
}
