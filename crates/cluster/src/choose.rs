//! The node for a new connection.

use model::Moment;

use crate::cluster::{Cluster, NodeId};
use crate::judge::Standing;

/// What a connection is for: libpq's `target_session_attrs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any node of the cluster.
    Any,
    /// The primary, if sessions on it may write.
    ReadWrite,
    /// A node whose sessions may not write.
    ReadOnly,
    /// The primary.
    Primary,
    /// A standby.
    Standby,
    /// A standby, or any while there is none.
    PreferStandby,
}

impl Wanted {
    /// Whether the connection is made to write.
    pub fn writes(self) -> bool {
        matches!(self, Wanted::ReadWrite | Wanted::Primary)
    }
}

/// How the choice falls among several that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Each in turn.
    RoundRobin,
    /// The first of the list.
    First,
    /// The one with the fewest connections.
    Least,
    /// Of two taken at random the one with fewer; for new connections as `Least`.
    Random,
}

/// How much of the readers a node takes, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Its part, in relation to those of others; none, if it is 0.
    pub weight: u32,
    /// Only the nearest that are fit are taken.
    pub distance: u32,
}

impl Default for Weight {
    fn default() -> Weight {
        Weight { weight: 1, distance: 0 }
    }
}

/// Of a node of which nothing is said, it is like any other.
pub(crate) fn weight_of(weights: &[Weight], node: NodeId) -> Weight {
    weights.get(node.index()).copied().unwrap_or_default()
}

impl Cluster {
    /// The node for one more connection, which is counted until [`Cluster::released`]. `weights`, by node, concern
    /// readers alone.
    pub fn choose(
        &mut self,
        now: Moment,
        wanted: Wanted,
        balance: Balance,
        weights: &[Weight],
    ) -> Option<NodeId> {
        let all: Vec<NodeId> = self.ids().filter(|node| self.fits(*node, wanted)).collect();
        let is_for_one = wanted.writes() && !self.limits.is_independent;
        let weights = if is_for_one { &[] } else { weights };
        let takes = all.iter().filter(|node| weight_of(weights, **node).weight > 0);
        let nearest = takes.clone().map(|node| weight_of(weights, *node).distance).min();
        let near = takes.copied().filter(|node| Some(weight_of(weights, *node).distance) == nearest);
        let near: Vec<NodeId> = near.collect();
        // Rather one that should have none than nobody.
        let fitting = if near.is_empty() { &all } else { &near };
        let node = match fitting.as_slice() {
            [] => return None,
            [one] => *one,
            _ => self.balanced(now, fitting, balance, weights),
        };
        self.nodes[node.index()].servers += 1;
        Some(node)
    }

    /// As [`Cluster::choose`], where only one node will do.
    pub fn choose_this(&mut self, node: NodeId, wanted: Wanted) -> bool {
        let fits = self.may_have(node, wanted);
        if fits {
            self.nodes[node.index()].servers += 1;
        }
        fits
    }

    /// Whether a node would be fit for a new connection of this kind.
    pub fn may_have(&self, node: NodeId, wanted: Wanted) -> bool {
        node.index() < self.nodes.len() && self.fits(node, wanted)
    }

    /// Whether [`Cluster::choose`] would find one.
    pub fn can_choose(&self, wanted: Wanted) -> bool {
        self.ids().any(|node| self.fits(node, wanted))
    }

    /// A connection that was counted is gone, or never came to be.
    pub fn released(&mut self, node: NodeId) {
        if let Some(record) = self.nodes.get_mut(node.index()) {
            record.servers = record.servers.saturating_sub(1);
        }
    }

    /// Whether a node may have a new connection of this kind.
    pub(crate) fn fits(&self, node: NodeId, wanted: Wanted) -> bool {
        let record = &self.nodes[node.index()];
        if !record.takes_work() {
            return false;
        }
        let Some(answer) = record.answer else { return false };
        let (standing, is_writer) = (self.standing(node), self.is_writer(node));
        let is_steady = record.takes_reads && record.proofs_left == 0 && !record.is_lagging;
        let is_reader = standing == Standing::Standby && is_steady;
        match wanted {
            Wanted::Primary => is_writer,
            Wanted::ReadWrite => is_writer && !answer.read_only,
            Wanted::Standby => is_reader,
            Wanted::ReadOnly => is_reader || (is_writer && answer.read_only),
            Wanted::Any => is_reader || is_writer,
            Wanted::PreferStandby => is_reader || (is_writer && !self.can_choose(Wanted::Standby)),
        }
    }

    fn balanced(&mut self, now: Moment, fitting: &[NodeId], balance: Balance, weights: &[Weight]) -> NodeId {
        let weight = |node: &NodeId| weight_of(weights, *node).weight.max(1);
        let servers = |node: &NodeId| f64::from(self.nodes[node.index()].servers) / f64::from(weight(node));
        let share = |node: &NodeId| self.nodes[node.index()].share(now, self.limits.slow_start);
        let fullest = fitting.iter().map(servers).fold(0.0, f64::max);
        // One that has just come back takes its growing part of what the others have.
        let ready: Vec<NodeId> = fitting
            .iter()
            .copied()
            .filter(|node| share(node) >= 1.0 || servers(node) < share(node) * fullest)
            .collect();
        let among = if ready.is_empty() { fitting } else { &ready };
        match balance {
            Balance::First => among[0],
            Balance::RoundRobin => {
                self.turn = self.turn.wrapping_add(1);
                let all: u64 = among.iter().map(|node| u64::from(weight(node))).sum();
                let mut left = self.turn as u64 % all;
                let is_it = |node: &&NodeId| {
                    let own = u64::from(weight(node));
                    let is_it = left < own;
                    left = left.saturating_sub(own);
                    is_it
                };
                among.iter().find(is_it).copied().unwrap_or(among[0])
            }
            Balance::Least | Balance::Random => {
                let load = |node: &NodeId| servers(node) / share(node);
                let mut best = among[0];
                for node in among {
                    if load(node) < load(&best) {
                        best = *node;
                    }
                }
                best
            }
        }
    }
}
