//! What is run and in which order: rounds, loads, and the targets of each round shuffled by a seed.

pub mod load;

pub use load::{Direction, Load, Login, Oltp, Script};

use crate::target::Kind;
use std::time::Duration;

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

impl Step {
    /// A first guess of what it takes, for the time left.
    pub fn guess(self, seconds: u32) -> Duration {
        // Started for the step, a process a client.
        let start = if self.target.is_short_lived() { Duration::from_secs(1) } else { Duration::ZERO };
        start + self.load.guess(seconds)
    }
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
            for &load in self.loads.iter().filter(|load| round < load.rounds_max()) {
                self.push_shuffled(&mut steps, &mut dice, round, load);
            }
        }
        steps.sort_by_key(|step| matches!(step.load, Load::Memory { .. }));
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

/// splitmix64: enough to shuffle some names, and the same on every machine.
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
