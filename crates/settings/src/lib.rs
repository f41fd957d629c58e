//! The settings: one table of keys, and the pgbouncer.ini that sets them.
//!
//! [`read`] turns files (handed in, never opened here) into [`Settings`] or into every [`Problem`] found;
//! the table in [`GENERAL`], [`DATABASE`], [`USER`] and [`PEER`] is the only place that knows the keys. The
//! parser, `SHOW CONFIG`, the manual page and the commented example all come from it.
//!
//! Knows nothing of the machines that obey the settings: the composing layers turn [`Settings`] into each
//! machine's policy. The files that settings name (`auth_file`, `auth_hba_file`, certificates) are read
//! elsewhere.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod checks;
mod connstr;
mod consistency;
mod diff;
mod effective;
mod host;
mod manual;
mod nearest;
mod problem;
mod read;
mod secret;
mod settings;
mod share;
mod table;
mod topology;
mod url;
mod value;
mod words;

#[cfg(test)]
mod tests;

pub use consistency::Consistency;
pub use diff::{Changes, Reloaded, reload};
pub use effective::Effective;
pub use host::{Host, Ports};
pub use manual::{example, manual};
pub use problem::{Problem, ProblemKind, Warning, WarningKind};
pub use read::{Files, Outcome, read};
pub use secret::Secret;
pub use settings::{Found, Settings};
pub use share::Share;
pub use table::{
    Change, DATABASE, Database, GENERAL, General, Key, PEER, Peer, Section, Spec, Status, USER, User,
};
pub use topology::{Topology, Url};
pub use value::Kind;
pub use words::{
    AuthType, Compat, IoBackend, ListenLost, LoadBalance, ReadSplit, ServerAuth, SessionAttrs, SslMode,
    TlsProtocols, WorkersAwake,
};
