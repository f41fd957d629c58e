//! The cluster itself: its events, and when which node is asked.

use std::fmt;
use std::sync::Arc;

use model::Moment;

use crate::answer::{Answer, Failure, Sign};
use crate::board::Board;
use crate::choose::Wanted;
use crate::fresh::Log;
use crate::limits::{HASTE, HURRY, Limits, MISSED_FOR, RETRY, SIGNS_EVERY, SOON};
use crate::node::{Node, Reach};

/// A node's place in the list of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl NodeId {
    /// As an index into the list of hosts.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The nodes of one list of hosts.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) limits: Limits,
    pub(crate) nodes: Vec<Node>,
    /// The identifier that the nodes have agreed upon.
    pub(crate) system: Option<u64>,
    /// The highest timeline that a node of it was seen on.
    pub(crate) timeline: u32,
    /// The true primary of that timeline. It stays so while it is down: nobody else is on this timeline.
    pub(crate) primary: Option<NodeId>,
    /// Who could be written to when that was last looked at.
    pub(crate) last_writer: Option<NodeId>,
    /// The nodes are of different clusters, and none has the majority.
    pub(crate) is_split: bool,
    /// For round robin.
    pub(crate) turn: usize,
    /// What the primary has written.
    pub(crate) log: Log,
    /// Of which primary and timeline that is.
    pub(crate) log_of: Option<(NodeId, u32)>,
    /// Who may be read from.
    pub(crate) board: Arc<Board>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Whoever still looks at it finds nobody.
        self.board.close();
    }
}

/// A node to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which.
    pub node: NodeId,
    /// By a new connection, in place of the one that is kept.
    pub fresh: bool,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Effects {
    /// Nodes to ask; each is answered by [`Cluster::probed`].
    pub probes: Vec<Probe>,
    /// Whom connections may go to, or which may stay, is no longer the same.
    pub changed: bool,
    /// For the log.
    pub facts: Vec<Fact>,
}

/// Something that became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// About which node, if about one.
    pub node: Option<NodeId>,
    /// What.
    pub what: What,
}

/// What became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It answers again, or for the first time: as a standby or not.
    Up(bool),
    /// It takes no more connections.
    Leaving,
    /// It is down.
    Down(Failure),
    /// It is the primary of this timeline.
    Primary(u32),
    /// There is no primary that can be written to.
    NoPrimary,
    /// It claims to be primary on a timeline that is over; gets no writes.
    Stale(u32),
    /// It claims to be primary as well; gets no writes.
    Rival,
    /// It is of another cluster; gets nothing.
    Foreign,
    /// The nodes are of different clusters, and none has the majority: nothing is used.
    Split,
}

impl What {
    /// Whether an operator should be alarmed.
    pub fn is_alarming(self) -> bool {
        !matches!(self, What::Up(_) | What::Primary(_))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Up(true) => f.write_str("is up, a standby"),
            What::Up(false) => f.write_str("is up, not in recovery"),
            What::Leaving => f.write_str("is shutting down: it gets no more work"),
            What::Down(failure) => write!(f, "is down: {failure}"),
            What::Primary(timeline) => write!(f, "is the primary, on timeline {timeline}"),
            What::NoPrimary => f.write_str("no primary: writes wait"),
            What::Stale(timeline) => {
                write!(f, "says it is primary on timeline {timeline}, which is over: it gets no writes")
            }
            What::Rival => f.write_str("says it is primary on the timeline of another: it gets no writes"),
            What::Foreign => f.write_str("is of another cluster (system identifier): it gets nothing"),
            What::Split => {
                f.write_str("the hosts are of different clusters (system identifier): none is used")
            }
        }
    }
}

impl Cluster {
    /// Nothing is known of any node yet, and all are asked at the first tick.
    pub fn new(now: Moment, count: usize, limits: Limits) -> Cluster {
        let count = count.min(usize::from(u16::MAX));
        Cluster {
            limits,
            nodes: (0..count).map(|_| Node::new(now)).collect(),
            system: None,
            timeline: 0,
            primary: None,
            last_writer: None,
            is_split: false,
            turn: 0,
            log: Log::default(),
            log_of: None,
            board: Arc::new(Board::new(count)),
        }
    }

    /// A new list of hosts that are partly the same is of the same cluster, and no older.
    pub fn inherit(&mut self, before: &Cluster) {
        self.system = before.system;
        self.timeline = before.timeline;
    }

    /// Puts new limits in force.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Who may be read from.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// A probe has ended.
    pub fn probed(&mut self, now: Moment, node: NodeId, outcome: Result<Answer, Failure>) -> Effects {
        let pace = self.pace();
        let Some(record) = self.nodes.get_mut(node.index()) else { return Effects::default() };
        if record.is_gone {
            record.is_probing = false;
            return Effects::default();
        }
        let before = record.reach;
        record.is_probing = false;
        record.is_heard = true;
        record.due = now + pace;
        match outcome {
            Ok(answer) => record.answered(now, answer),
            Err(failure) => record.failed(now, failure),
        }
        if record.is_doubted {
            record.due = now;
        }
        let mut effects = Effects::default();
        if record.reach != before {
            effects.changed = true;
            let what = match (record.reach, outcome) {
                (Reach::Down(_), Err(failure)) => What::Down(failure),
                (Reach::Leaving, _) => What::Leaving,
                (_, Ok(answer)) => What::Up(answer.in_recovery),
                (_, Err(failure)) => What::Down(failure),
            };
            effects.facts.push(Fact { node: Some(node), what });
        }
        self.judge(&mut effects);
        self.publish(outcome.ok().map(|answer| (node, answer)));
        if outcome.is_ok() && self.writer() == Some(node) {
            self.ask_standbys_too(now);
        }
        self.ask_due(now, &mut effects);
        effects
    }

    /// While clients miss what they have written: what the primary has just said helps them once a standby has said that
    /// it is as far, and not before.
    fn ask_standbys_too(&mut self, now: Moment) {
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if !node.is_gone && node.is_in_recovery() && self.is_missed(node) {
                let node = &mut self.nodes[index];
                (node.due, node.is_doubted) = (now, node.is_probing);
            }
        }
    }

    /// Traffic has shown something.
    pub fn heard(&mut self, now: Moment, node: NodeId, sign: Sign) -> Effects {
        let mut effects = Effects::default();
        let Some(record) = self.nodes.get_mut(node.index()).filter(|record| !record.is_gone) else {
            return effects;
        };
        record.wants_fresh |= sign != Sign::RoleDiffers;
        record.is_doubted = record.is_probing;
        record.due = record.due.min(now.max(record.asked_at + SIGNS_EVERY));
        self.ask_due(now, &mut effects);
        effects
    }

    /// What is due by time.
    pub fn tick(&mut self, now: Moment) -> Effects {
        let mut effects = Effects::default();
        self.ask_due(now, &mut effects);
        effects
    }

    /// When [`Cluster::tick`] has something to do.
    pub fn next_tick(&self) -> Moment {
        let idle = self.members().filter(|node| !node.is_probing);
        let due = idle.map(|node| self.due(node));
        due.min().unwrap_or(Moment::NEVER)
    }

    /// When a node is to be asked: soon, while clients miss what they have written; standbys after the primary.
    fn due(&self, node: &Node) -> Moment {
        let is_soon = self.is_missed(node) && !(node.is_in_recovery() && self.writer().is_some());
        if is_soon { node.due.min(node.asked_at + SOON) } else { node.due }
    }

    /// Whether clients miss what this node has yet to say.
    fn is_missed(&self, node: &Node) -> bool {
        let missed_at = self.board.missed_at();
        missed_at > Moment::default()
            && node.reach == Reach::Up
            && node.asked_at < missed_at + MISSED_FOR
            && (node.asked_at <= missed_at || !self.board.is_caught_up())
    }

    /// What clients may know of who can be read from. `said`: what a node has just said.
    pub(crate) fn publish(&mut self, said: Option<(NodeId, Answer)>) {
        // One that is down has said what it has said: reads go on meanwhile.
        let of = self.primary.map(|primary| (primary, self.timeline));
        if of != self.log_of {
            self.log.clear();
            self.log_of = of;
        }
        if let (Some((node, answer)), Some((primary, timeline))) = (said, of)
            && node == primary
            && answer.timeline == timeline
        {
            self.log.push(self.nodes[node.index()].asked_at, answer.position);
        }
        for node in (0..self.nodes.len() as u16).map(NodeId) {
            let record = &self.nodes[node.index()];
            let is_open = self.fits(node, Wanted::Standby);
            // What was replayed of another timeline's log is measured by another rule.
            let of_this = record.answer.filter(|answer| {
                is_open && of.is_some() && answer.in_recovery && answer.history == self.timeline
            });
            let fresh = of_this.map_or(Moment::default(), |answer| self.log.as_of(answer.position));
            self.board.publish(node, is_open, fresh, record.answered_to);
        }
    }

    fn ask_due(&mut self, now: Moment, effects: &mut Effects) {
        for node in (0..self.nodes.len() as u16).map(NodeId) {
            let record = &self.nodes[node.index()];
            if !record.is_probing && !record.is_gone && self.due(record) <= now {
                let haste = HASTE.min(self.limits.interval / 2);
                let record = &mut self.nodes[node.index()];
                let fresh = record.ask(now, haste) || record.reach != Reach::Up;
                effects.probes.push(Probe { node, fresh });
            }
        }
    }

    /// How long until a node is asked again.
    fn pace(&self) -> std::time::Duration {
        let interval = self.limits.interval;
        if self.writer().is_some() { interval } else { (interval / HURRY).min(RETRY) }
    }
}
