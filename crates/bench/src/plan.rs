//! What is run and in which order: rounds, loads, and the targets of each round shuffled by a seed.

use crate::options::Mode;
use crate::target::Kind;
use std::time::Duration;

/// A load and its number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Load {
    /// `pgbench -S` against PostgreSQL.
    Pgbench {
        /// Clients.
        clients: usize,
    },
    /// Our closed loop against the canned-reply server.
    Canned {
        /// Clients.
        clients: usize,
    },
    /// `pgbench -S -C` against PostgreSQL.
    Connect {
        /// Clients.
        clients: usize,
    },
    /// Idle clients over the canned-reply server.
    Memory {
        /// Clients.
        clients: usize,
    },
}

impl Load {
    /// How many clients it has.
    pub fn clients(self) -> usize {
        match self {
            Load::Pgbench { clients }
            | Load::Canned { clients }
            | Load::Connect { clients }
            | Load::Memory { clients } => clients,
        }
    }

    /// The heading of its table.
    pub fn title(self, mode: Mode) -> String {
        let clients = self.clients();
        let plural = if clients == 1 { "" } else { "s" };
        match self {
            Load::Pgbench { .. } => format!("pgbench -S {}, {clients} client{plural}", mode.word()),
            Load::Canned { .. } => format!("canned replies, {clients} client{plural}"),
            Load::Connect { .. } => format!("pgbench -S -C {}, {clients} client{plural}", mode.word()),
            Load::Memory { .. } => format!("memory, {clients} idle client{plural}"),
        }
    }

    /// The word it has in a report.
    pub fn word(self) -> &'static str {
        match self {
            Load::Pgbench { .. } => "pgbench",
            Load::Canned { .. } => "canned",
            Load::Connect { .. } => "connect",
            Load::Memory { .. } => "memory",
        }
    }

    /// Whether PostgreSQL stands behind it, and not the canned-reply server.
    pub fn needs_postgres(self) -> bool {
        matches!(self, Load::Pgbench { .. } | Load::Connect { .. })
    }

    /// Whether this target has anything to show under this load.
    pub fn suits(self, target: Kind) -> bool {
        !(matches!(self, Load::Memory { .. }) && target == Kind::Direct)
    }

    /// A first guess of what a step takes, for the time left.
    pub fn guess(self, seconds: u32) -> Duration {
        let clients = self.clients() as f64;
        let more = match self {
            Load::Pgbench { .. } => 0.2 + clients * 0.001,
            Load::Connect { .. } => 0.2,
            Load::Canned { .. } => 0.5 + clients * 0.0002,
            Load::Memory { .. } => return Duration::from_secs_f64(0.5 + clients * 0.0003),
        };
        Duration::from_secs_f64(f64::from(seconds) + more)
    }
}

/// Everything that will be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The targets, in the order of the report.
    pub targets: Vec<Kind>,
    /// The loads, in the order of the report.
    pub loads: Vec<Load>,
    /// How often each target meets each load.
    pub rounds: usize,
    /// How long each time.
    pub seconds: u32,
    /// How pgbench sends its queries.
    pub mode: Mode,
}

/// One target under one load in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The round, from 0.
    pub round: usize,
    /// The load.
    pub load: Load,
    /// The target.
    pub target: Kind,
}

impl Plan {
    /// How many steps `order` will give.
    pub fn steps(&self) -> usize {
        self.order(0).len()
    }

    /// Every step: round by round, in each the loads in order, under each the targets shuffled. Memory
    /// does not drift with the machine and comes once, at the end.
    pub fn order(&self, seed: u64) -> Vec<Step> {
        let mut dice = Dice(seed);
        let mut steps = Vec::new();
        for round in 0..self.rounds {
            for &load in self.loads.iter().filter(|load| !matches!(load, Load::Memory { .. })) {
                self.push_shuffled(&mut steps, &mut dice, round, load);
            }
        }
        for &load in self.loads.iter().filter(|load| matches!(load, Load::Memory { .. })) {
            self.push_shuffled(&mut steps, &mut dice, 0, load);
        }
        steps
    }

    fn push_shuffled(&self, steps: &mut Vec<Step>, dice: &mut Dice, round: usize, load: Load) {
        let first = steps.len();
        let suited = self.targets.iter().copied().filter(|&target| load.suits(target));
        steps.extend(suited.map(|target| Step { round, load, target }));
        let shuffled = &mut steps[first..];
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, dice.below(last + 1));
        }
    }
}

/// splitmix64: enough to shuffle five names, and the same on every machine.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % bound.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests;
