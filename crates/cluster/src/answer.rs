//! What a node says of itself, why it says nothing, and what traffic shows of it.

use std::fmt;
use std::time::Duration;

/// What a node answered to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// It is a standby.
    pub in_recovery: bool,
    /// Which cluster it is of: made at initdb, and the same in all copies.
    pub system: u64,
    /// The timeline that it writes, or is known to follow.
    pub timeline: u32,
    /// Sessions on it may not write unless they say so.
    pub read_only: bool,
    /// The highest timeline that its log is shown to be of, on a standby: what it has replayed is of that history. It may
    /// be shown later than it is so, and never earlier.
    pub history: u32,
    /// When its postmaster was started, in microseconds: two names of one running server say the same.
    pub started: u64,
    /// Where its log ends, in bytes: inserted on a primary, whether it is on disk or not; replayed on a standby.
    pub position: u64,
    /// How long ago the last commit that it replayed was made, as long as it has more to replay.
    pub behind: Duration,
}

/// Why a probe came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The name could not be resolved: says nothing about the node.
    Name,
    /// Nobody listens there, or no way leads there.
    Refused,
    /// The connection was accepted and ended before there was an answer.
    Lost,
    /// No answer in time.
    Silent,
    /// It is shutting down (57P03).
    Leaving,
    /// It is starting up or recovering (57P03).
    Starting,
    /// It has no connection left (53300): so it is alive.
    Full,
    /// It does not let the monitor in, or not ask: so it is alive, and proves nothing.
    Denied,
}

impl Failure {
    /// Whether it says something about the node's health.
    pub(crate) fn is_verdict(self) -> bool {
        !matches!(self, Failure::Name | Failure::Full | Failure::Denied)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Name => "its name cannot be resolved",
            Failure::Refused => "nobody listens there",
            Failure::Lost => "the connection was lost",
            Failure::Silent => "no answer in time",
            Failure::Leaving => "it is shutting down",
            Failure::Starting => "it is starting up",
            Failure::Full => "it has no connection left",
            Failure::Denied => "it does not let the monitor ask",
        })
    }
}

/// What traffic shows. No verdict, but reason to look at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A new connection could not be made.
    ConnectFailed,
    /// A connection ended that should not have.
    Lost,
    /// A statement was refused because the node is read-only, or its role was not the one expected.
    RoleDiffers,
}
