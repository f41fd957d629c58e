//! What tables show of a node.

use std::time::Duration;

use model::Moment;

use crate::answer::Failure;
use crate::cluster::{Cluster, NodeId};
use crate::judge::Standing;
use crate::node::Reach;

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its role.
    pub role: Role,
    /// Its state.
    pub state: State,
    /// Its timeline, if it has told.
    pub timeline: Option<u32>,
    /// How far it is behind the primary, in bytes and time; only a standby is.
    pub lag: Option<(u64, Duration)>,
    /// Since when it is in that state.
    pub since: Moment,
    /// Connections on it.
    pub servers: u32,
    /// Why the last probe failed, if it did.
    pub failure: Option<Failure>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    Unknown,
    Primary,
    Standby,
    /// Says it is primary, on a timeline that is over.
    StalePrimary,
    /// Says it is primary as well.
    RivalPrimary,
    /// Of another cluster.
    Foreign,
}

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum State {
    Unknown,
    Up,
    /// Up, and still to prove that it stays so.
    Settling,
    /// Up, and too far behind.
    Lagging,
    Leaving,
    Down,
    Drained,
}

impl Role {
    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Role::Unknown => "unknown",
            Role::Primary => "primary",
            Role::Standby => "standby",
            Role::StalePrimary => "stale primary",
            Role::RivalPrimary => "rival primary",
            Role::Foreign => "foreign",
        }
    }
}

impl State {
    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            State::Unknown => "unknown",
            State::Up => "up",
            State::Settling => "settling",
            State::Lagging => "lagging",
            State::Leaving => "leaving",
            State::Down => "down",
            State::Drained => "drained",
        }
    }
}

impl Cluster {
    /// A node, for a table.
    pub fn view(&self, node: NodeId) -> Option<NodeView> {
        let record = self.nodes.get(node.index())?;
        let role = match self.standing(node) {
            Standing::Unproved => Role::Unknown,
            Standing::Primary => Role::Primary,
            Standing::Standby => Role::Standby,
            Standing::Stale => Role::StalePrimary,
            Standing::Rival => Role::RivalPrimary,
            Standing::Foreign => Role::Foreign,
        };
        let state = match record.reach {
            _ if record.is_drained => State::Drained,
            Reach::Unknown => State::Unknown,
            Reach::Leaving => State::Leaving,
            Reach::Down(_) => State::Down,
            Reach::Up if role == Role::Standby && record.proofs_left > 0 => State::Settling,
            Reach::Up if record.is_lagging => State::Lagging,
            Reach::Up => State::Up,
        };
        Some(NodeView {
            role,
            state,
            timeline: record.answer.map(|answer| answer.timeline),
            lag: self.lag(node),
            since: record.since,
            servers: record.servers,
            failure: record.failure,
        })
    }
}
