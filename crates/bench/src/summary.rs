//! From many rounds to one line a target: medians with their spread, ratios paired within each round,
//! and whether the machine was too noisy to tell.

use crate::load::{Measurement, Outcome};
use crate::plan::{Load, Plan, Step};
use crate::target::Kind;

/// Every step with what it gave, in the order they were run.
pub type Results = Vec<(Step, Outcome)>;

/// A median with the least and the most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// Beyond this width nothing is claimed.
pub const NOISE_MAX: f64 = 0.15;

impl Spread {
    /// Of those values, if there are any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<_> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Spread { median, min, max })
    }

    /// From the least to the most, as a share of the median.
    pub fn width(&self) -> f64 {
        if self.median > 0.0 { (self.max - self.min) / self.median } else { 0.0 }
    }
}

/// One target under one load, over all rounds.
#[derive(Debug, Clone)]
pub struct Row {
    /// The target.
    pub target: Kind,
    /// Transactions a second.
    pub tps: Option<Spread>,
    /// In seconds.
    pub p50: Option<Spread>,
    /// In seconds.
    pub p99: Option<Spread>,
    /// CPU seconds per 1000 transactions.
    pub cpu: Option<Spread>,
    /// Of it, in user space.
    pub cpu_user: Option<Spread>,
    /// Time to connect, in seconds.
    pub connect: Option<Spread>,
    /// Memory a client.
    pub bytes_per_client: Option<Spread>,
    /// CPU against pgbouncer's of the same round.
    pub cpu_ratio: Option<Spread>,
    /// Throughput against pgbouncer's of the same round.
    pub tps_ratio: Option<Spread>,
    /// The most memory in any round, in KiB.
    pub rss_peak_kib: Option<u64>,
    /// The most server connections in any round.
    pub servers_max: Option<u32>,
    /// What went wrong, over all rounds.
    pub errors: u64,
    /// The first words about that, or why there are no figures.
    pub remark: Option<String>,
}

impl Row {
    /// How far the rounds lie apart: by CPU, or by throughput where there is no process to account.
    pub fn width(&self) -> Option<f64> {
        self.cpu.or(self.tps).map(|spread| spread.width())
    }

    /// Whether that is too far to tell anything from it.
    pub fn is_noisy(&self) -> bool {
        self.width().is_some_and(|width| width > NOISE_MAX)
    }
}

/// All targets under one load.
#[derive(Debug, Clone)]
pub struct Section {
    /// The load.
    pub load: Load,
    /// A row a target, in the plan's order.
    pub rows: Vec<Row>,
}

/// Sums up a run, whole or broken off.
pub fn sections(plan: &Plan, results: &Results) -> Vec<Section> {
    let section = |&load: &Load| Section {
        load,
        rows: plan.targets.iter().filter_map(|&target| row(plan, results, load, target)).collect(),
    };
    plan.loads.iter().map(section).filter(|section| !section.rows.is_empty()).collect()
}

fn row(plan: &Plan, results: &Results, load: Load, target: Kind) -> Option<Row> {
    let outcomes: Vec<_> = outcomes(results, load, target).map(|(_, outcome)| outcome).collect();
    if outcomes.is_empty() {
        return None;
    }
    let measured = || outcomes.iter().copied().filter_map(measurement);
    let spread = |pick: &dyn Fn(&Measurement) -> Option<f64>| Spread::of(measured().filter_map(pick));
    let latency = |pick: fn(&crate::histogram::Percentiles) -> std::time::Duration| {
        Spread::of(measured().filter_map(|one| one.latency.as_ref().map(|seen| pick(seen).as_secs_f64())))
    };
    let ratio = |pick: &dyn Fn(&Measurement) -> Option<f64>| {
        Spread::of((0..plan.rounds).filter_map(|round| {
            // A target that drops clients is cheap and fast, and compares with nothing.
            let sound = |one: &&Measurement| one.trouble.count == 0;
            let figure = |kind| in_round(results, load, kind, round).filter(sound).and_then(pick);
            Some(figure(target)? / figure(Kind::Pgbouncer).filter(|&figure| figure > 0.0)?)
        }))
    };
    let remark = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Measured(one) => one.trouble.first.clone(),
        Outcome::Failed(why) | Outcome::LeftOut(why) => Some(why.clone()),
    });
    let failed = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Failed(_))).count() as u64;
    Some(Row {
        target,
        tps: spread(&|one| one.tps),
        p50: latency(|seen| seen.p50),
        // sysbench tells this one alone.
        p99: latency(|seen| seen.p99).or_else(|| spread(&|one| one.latency_p99.map(|p99| p99.as_secs_f64()))),
        cpu: spread(&Measurement::cpu_per_1000),
        cpu_user: spread(&Measurement::cpu_user_per_1000),
        connect: spread(&|one| one.connect_mean.map(|mean| mean.as_secs_f64())),
        bytes_per_client: spread(&|one| one.bytes_per_client),
        cpu_ratio: ratio(&Measurement::cpu_per_1000),
        tps_ratio: ratio(&|one| one.tps),
        rss_peak_kib: measured().filter_map(|one| one.rss_peak_kib).max(),
        servers_max: measured().filter_map(|one| one.servers_max).max(),
        errors: failed + measured().map(|one| one.trouble.count).sum::<u64>(),
        remark,
    })
}

fn outcomes(results: &Results, load: Load, target: Kind) -> impl Iterator<Item = (usize, &Outcome)> {
    results
        .iter()
        .filter(move |(step, _)| step.load == load && step.target == target)
        .map(|(step, outcome)| (step.round, outcome))
}

fn measurement(outcome: &Outcome) -> Option<&Measurement> {
    match outcome {
        Outcome::Measured(one) => Some(one),
        Outcome::Failed(_) | Outcome::LeftOut(_) => None,
    }
}

fn in_round(results: &Results, load: Load, target: Kind, round: usize) -> Option<&Measurement> {
    outcomes(results, load, target).find(|(at, _)| *at == round).and_then(|(_, outcome)| measurement(outcome))
}

#[cfg(test)]
mod tests;
