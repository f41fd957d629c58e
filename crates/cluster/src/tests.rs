//! Tables of small cases, and a run of random events against what must never be.

mod epoch;
mod fresh;
mod health;
mod members;
mod random;
mod readers;

use std::time::Duration;

use model::Moment;

use crate::{
    Answer, Balance, Cluster, Effects, Failure, Fate, Limits, NodeId, NodeView, Role, State, Wanted, What,
};

/// A cluster under test, and the time.
pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) now: Moment,
    pub(crate) facts: Vec<(Option<u16>, What)>,
}

/// Of this cluster, on timeline 1.
pub(crate) const PRIMARY: Answer = Answer {
    in_recovery: false,
    system: 7,
    timeline: 1,
    history: 1,
    read_only: false,
    started: 1,
    position: 1_000_000,
    behind: Duration::ZERO,
};

pub(crate) const STANDBY: Answer = Answer { in_recovery: true, started: 2, ..PRIMARY };

impl Bench {
    pub(crate) fn new(count: usize) -> Bench {
        Bench::with(count, Limits::default())
    }

    pub(crate) fn with(count: usize, limits: Limits) -> Bench {
        let now = Moment(1_000_000);
        Bench { cluster: Cluster::new(now, count, limits), now, facts: Vec::new() }
    }

    /// A cluster whose nodes have answered.
    pub(crate) fn of(answers: &[Answer]) -> Bench {
        let mut bench = Bench::new(answers.len());
        for (index, answer) in (0..).zip(answers) {
            let _ = bench.says(index, *answer);
        }
        bench
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    pub(crate) fn says(&mut self, node: u16, answer: Answer) -> Effects {
        self.end(node, Ok(answer))
    }

    pub(crate) fn fails(&mut self, node: u16, failure: Failure) -> Effects {
        self.end(node, Err(failure))
    }

    /// As often as it takes for a verdict.
    pub(crate) fn dies(&mut self, node: u16, failure: Failure) {
        let _ = self.fails(node, failure);
        let _ = self.fails(node, failure);
    }

    fn end(&mut self, node: u16, outcome: Result<Answer, Failure>) -> Effects {
        self.pass(100);
        let effects = self.cluster.probed(self.now, NodeId(node), outcome);
        self.facts.extend(effects.facts.iter().map(|fact| (fact.node.map(|node| node.0), fact.what)));
        effects
    }

    pub(crate) fn chosen(&mut self, wanted: Wanted) -> Option<u16> {
        self.chosen_by(wanted, Balance::Least)
    }

    pub(crate) fn chosen_by(&mut self, wanted: Wanted, balance: Balance) -> Option<u16> {
        self.cluster.choose(self.now, wanted, balance, &[]).map(|node| node.0)
    }

    pub(crate) fn fate(&self, node: u16, wanted: Wanted) -> Fate {
        self.cluster.fate(NodeId(node), wanted)
    }

    pub(crate) fn view(&self, node: u16) -> NodeView {
        self.cluster.view(NodeId(node)).expect("a node")
    }

    #[track_caller]
    pub(crate) fn check(&self, node: u16, role: Role, state: State) {
        let view = self.view(node);
        assert_eq!((view.role, view.state), (role, state), "node {node}");
    }
}
