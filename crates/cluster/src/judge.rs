//! Who is of this cluster, who is its true primary, and who only says so.

use crate::answer::Answer;
use crate::cluster::{Cluster, Effects, Fact, NodeId, What};
use crate::node::{Node, Reach};

/// What a node counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has never proved anything.
    Unproved,
    /// The one that is written to.
    Primary,
    /// A standby of this cluster.
    Standby,
    /// Out of recovery on a timeline that is over.
    Stale,
    /// Out of recovery on this timeline, and not the primary.
    Rival,
    /// Of another cluster.
    Foreign,
}

impl Cluster {
    /// What a node counts as, by what it said last.
    pub(crate) fn standing(&self, node: NodeId) -> Standing {
        if self.limits.is_independent {
            return match self.answer(node) {
                None => Standing::Unproved,
                Some(answer) if answer.in_recovery => Standing::Standby,
                Some(_) => Standing::Primary,
            };
        }
        let (Some(answer), Some(system)) = (self.answer(node), self.system) else {
            return Standing::Unproved;
        };
        if answer.system != system {
            Standing::Foreign
        } else if answer.in_recovery {
            Standing::Standby
        } else if self.primary == Some(node) {
            Standing::Primary
        } else if answer.timeline < self.timeline {
            Standing::Stale
        } else {
            Standing::Rival
        }
    }

    /// The node that may be written to now; of several, one.
    pub(crate) fn writer(&self) -> Option<NodeId> {
        match self.limits.is_independent {
            true => self.ids().find(|node| self.is_writer(*node)),
            false => self.primary.filter(|node| self.is_writer(*node)),
        }
    }

    /// Whether a node may be written to now.
    pub(crate) fn is_writer(&self, node: NodeId) -> bool {
        self.nodes[node.index()].takes_work() && self.standing(node) == Standing::Primary
    }

    /// Draws the conclusions from a new answer.
    pub(crate) fn judge(&mut self, effects: &mut Effects) {
        let (before, writer) = (self.standings(), self.last_writer);
        self.agree(effects);
        self.raise_timeline();
        self.find_primary();
        self.judge_lag(effects);
        let after = self.standings();
        for (index, (was, is)) in (0..).zip(before.into_iter().zip(&after)) {
            if was == *is {
                continue;
            }
            effects.changed = true;
            let node = NodeId(index);
            if self.nodes[node.index()].reach != Reach::Up || self.nodes[node.index()].is_gone {
                // What it is comes to light while it is away, and is said when it is back.
                continue;
            }
            let timeline = self.answer(node).map_or(0, |answer| answer.timeline);
            let what = match is {
                Standing::Primary => What::Primary(timeline),
                Standing::Stale => What::Stale(timeline),
                Standing::Rival => What::Rival,
                Standing::Foreign => What::Foreign,
                Standing::Unproved | Standing::Standby => continue,
            };
            effects.facts.push(Fact { node: Some(node), what });
        }
        let now_writer = self.writer();
        if writer != now_writer {
            effects.changed = true;
            if now_writer.is_none() {
                effects.facts.push(Fact { node: None, what: What::NoPrimary });
            }
            self.last_writer = now_writer;
        }
    }

    /// The nodes agree upon an identifier once, when each has been asked: else the first stranger to answer would
    /// be the cluster.
    fn agree(&mut self, effects: &mut Effects) {
        if self.limits.is_independent || self.system.is_some() || !self.members().all(|node| node.is_heard) {
            return;
        }
        let systems: Vec<u64> = self.members().filter_map(|node| Some(node.answer?.system)).collect();
        let Some(&first) = systems.first() else { return };
        let count = |system: u64| systems.iter().filter(|other| **other == system).count();
        let majority = systems.iter().copied().find(|system| 2 * count(*system) > self.len());
        self.system = if count(first) == systems.len() { Some(first) } else { majority };
        if self.system.is_none() && !self.is_split {
            effects.facts.push(Fact { node: None, what: What::Split });
        }
        self.is_split = self.system.is_none();
    }

    fn raise_timeline(&mut self) {
        let Some(system) = self.system else { return };
        let ours = |node: &Node| node.answer.filter(|answer| answer.system == system);
        let highest = self.nodes.iter().filter_map(ours).map(|answer| answer.timeline).max();
        self.timeline = self.timeline.max(highest.unwrap_or(0));
    }

    /// The primary stays who it is until it says otherwise or a higher timeline is seen. A new one must be the
    /// only one whose last word was to be it, those that are down included: which of two went on is not for us to say.
    fn find_primary(&mut self) {
        let is_claimant = |answer: &Answer| {
            Some(answer.system) == self.system && !answer.in_recovery && answer.timeline == self.timeline
        };
        let claims = |node: NodeId| self.answer(node).filter(is_claimant);
        let is_member = |node: NodeId| !self.nodes[node.index()].is_gone;
        if self.primary.is_some_and(|primary| is_member(primary) && claims(primary).is_some()) {
            return;
        }
        let claimants: Vec<(NodeId, Answer)> =
            self.ids().filter_map(|node| Some((node, claims(node)?))).collect();
        // Two names of one server are no rivals.
        let is_one = claimants.windows(2).all(|pair| pair[0].1.started == pair[1].1.started);
        let up = claimants.iter().find(|(node, _)| self.nodes[node.index()].reach == Reach::Up);
        self.primary = up.filter(|_| is_one).map(|(node, _)| *node);
    }

    /// A standby that falls behind goes, and comes back when it is within half of the limit.
    fn judge_lag(&mut self, effects: &mut Effects) {
        let limits = self.limits;
        let all: Vec<NodeId> = self.ids().collect();
        for node in all {
            let is_late = self.lag(node).is_some_and(|(bytes, time)| {
                let scale = if self.nodes[node.index()].is_lagging { 2 } else { 1 };
                limits.lag_bytes.is_some_and(|most| bytes.saturating_mul(scale) > most)
                    || limits.lag_time.is_some_and(|most| time * scale as u32 > most)
            });
            let record = &mut self.nodes[node.index()];
            effects.changed |= record.is_lagging != is_late;
            record.is_lagging = is_late;
        }
    }

    /// How far a standby is behind the primary, in bytes and in time.
    pub(crate) fn lag(&self, node: NodeId) -> Option<(u64, std::time::Duration)> {
        let answer = self.answer(node).filter(|answer| answer.in_recovery)?;
        let primary = self.primary.and_then(|primary| self.answer(primary));
        let bytes = primary.map_or(0, |primary| primary.position.saturating_sub(answer.position));
        Some((bytes, answer.behind))
    }

    pub(crate) fn answer(&self, node: NodeId) -> Option<Answer> {
        self.nodes.get(node.index())?.answer
    }

    fn standings(&self) -> Vec<Standing> {
        (0..self.nodes.len() as u16).map(|index| self.standing(NodeId(index))).collect()
    }
}
