//! From many rounds to one line a target: medians with their spread, ratios paired within each round,
//! and what the rounds and the machine allow to be said. It works on the report alone: words and figures.

use crate::load::Outcome as LoadOutcome;
use crate::plan;
use crate::report::{CONTROLS, Figures, Latency, Outcome, RELAY, Report, Statement, Step};
use serde::Serialize;
use std::collections::BTreeMap;

mod noise;

pub use noise::{MachineNoise, Steadiness, Verdict, machine_noise};

/// Every step with what it gave, in the order they were run.
pub type Results = Vec<(plan::Step, LoadOutcome)>;

/// A median with the least and the most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

    /// Whether both have a value in common.
    pub fn overlaps(&self, other: &Spread) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

/// One target under one load, over all rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// The target.
    pub target: String,
    /// Rounds that gave figures.
    pub rounds: usize,
    /// Transactions a second.
    pub tps: Option<Spread>,
    /// Half are faster.
    pub p50_s: Option<Spread>,
    /// 9 of 10 are faster.
    pub p90_s: Option<Spread>,
    /// 99 of 100 are faster.
    pub p99_s: Option<Spread>,
    /// 999 of 1000 are faster.
    #[serde(rename = "p99.9_s")]
    pub p999_s: Option<Spread>,
    /// The mean.
    pub mean_s: Option<Spread>,
    /// The standard deviation.
    pub deviation_s: Option<Spread>,
    /// What each statement took, in the mean of the rounds, in the order of the transaction.
    pub statements: Vec<Statement>,
    /// Time to connect.
    pub connect_s: Option<Spread>,
    /// Time until all clients were in.
    pub connect_all_s: Option<Spread>,
    /// CPU seconds per 1000 transactions.
    pub cpu_s_per_1000: Option<Spread>,
    /// Of it, in user space.
    pub cpu_user_s_per_1000: Option<Spread>,
    /// CPU against the relay's of the same round.
    pub cpu_to_relay: Option<Spread>,
    /// CPU against the baseline's of the same round.
    pub cpu_to_baseline: Option<Spread>,
    /// Throughput against the baseline's of the same round.
    pub tps_to_baseline: Option<Spread>,
    /// Where the load is bulk.
    pub bytes_per_second: Option<Spread>,
    /// Memory a client.
    pub bytes_per_client: Option<Spread>,
    /// The most memory in any round.
    pub rss_peak_kib: Option<u64>,
    /// The most server connections in any round.
    pub servers_max: Option<u32>,
    /// What went wrong, over all rounds.
    pub errors: u64,
    /// The same by SQLSTATE.
    pub errors_by_state: BTreeMap<String, u64>,
    /// The first words about that, or why there are no figures.
    pub remark: Option<String>,
    /// What may be said of its CPU against the baseline's.
    pub verdict: Option<Verdict>,
    /// Whether its rounds lie too far apart.
    pub noisy: bool,
}

impl Row {
    /// How far the rounds lie apart: by CPU, or by throughput where there is no process to account.
    pub fn width(&self) -> Option<f64> {
        (self.rounds > 1).then(|| self.cpu_s_per_1000.or(self.tps).map(|spread| spread.width()))?
    }

    /// The same by whichever of the two varies more: CPU repeats well on machines whose clocks do not.
    pub fn width_of_all(&self) -> Option<f64> {
        let widths = [self.cpu_s_per_1000, self.tps].into_iter().flatten().map(|spread| spread.width());
        widths.reduce(f64::max).filter(|_| self.rounds > 1)
    }

    /// Whether no pooler's code is in it.
    pub fn is_control(&self) -> bool {
        CONTROLS.contains(&self.target.as_str())
    }

    /// Whether it has any figure at all.
    pub fn is_measured(&self) -> bool {
        self.rounds > 0
    }
}

/// All targets under one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Section {
    /// The load's word.
    pub load: String,
    /// Its number of clients.
    pub clients: usize,
    /// What tells it from all other loads.
    pub title: String,
    /// A row a target, in the report's order.
    #[serde(rename = "targets")]
    pub rows: Vec<Row>,
}

impl Section {
    /// The title without its number of clients: what sections of one chart have in common.
    pub fn family(&self) -> String {
        let ending = |words: &str| {
            let plural = if self.clients == 1 { "" } else { "s" };
            format!("{} {words}{plural}", self.clients)
        };
        let (client, idle) = (ending("client"), ending("idle client"));
        let parts = self.title.split(", ").filter(|&part| part != client && part != idle);
        parts.collect::<Vec<_>>().join(", ")
    }

    /// In how many rounds it was run.
    pub fn rounds(&self) -> usize {
        self.rows.iter().map(|row| row.rounds).max().unwrap_or(0)
    }

    /// The row of a target.
    pub fn row(&self, target: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.target == target)
    }
}

/// Sums up a run, whole or broken off: a section a load, in the order of their first steps.
pub fn sections(report: &Report) -> Vec<Section> {
    let targets = report.targets();
    let mut sections: Vec<Section> = Vec::new();
    let mut steps_of: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in &report.steps {
        let steps = steps_of.entry(&step.title).or_default();
        if steps.is_empty() {
            let (load, title) = (step.load.clone(), step.title.clone());
            sections.push(Section { load, clients: step.clients, title, rows: Vec::new() });
        }
        steps.push(step);
    }
    for section in &mut sections {
        let steps = &steps_of[section.title.as_str()];
        let rows = targets.iter().filter_map(|target| row(steps, target, report.baseline()));
        section.rows = rows.collect();
    }
    sections
}

type Pick<'a> = &'a dyn Fn(&Figures) -> Option<f64>;

fn row(steps: &[&Step], target: &str, baseline: &str) -> Option<Row> {
    let outcomes = || steps.iter().filter(|step| step.target == target).map(|step| &step.outcome);
    outcomes().next()?;
    let measured = || outcomes().filter_map(figures);
    let spread = |pick: Pick| Spread::of(measured().filter_map(pick));
    let latency = |pick: fn(&Latency) -> f64| spread(&|one| one.latency.as_ref().map(pick));
    let cpu: Pick = &|one| one.cpu_s_per_1000;
    let cpu_to_baseline = paired(steps, target, baseline, cpu);
    let mut row = Row {
        target: target.to_owned(),
        rounds: measured().count(),
        tps: spread(&|one| one.tps),
        p50_s: latency(|seen| seen.p50_s),
        p90_s: latency(|seen| seen.p90_s),
        p99_s: latency(|seen| seen.p99_s).or_else(|| spread(&|one| one.latency_p99_s)),
        p999_s: latency(|seen| seen.p999_s),
        mean_s: spread(&|one| one.latency_mean_s),
        deviation_s: spread(&|one| one.latency_deviation_s),
        statements: statements(measured()),
        connect_s: spread(&|one| one.connect_mean_s),
        connect_all_s: spread(&|one| one.connect_all_s),
        cpu_s_per_1000: spread(cpu),
        cpu_user_s_per_1000: spread(&cpu_user_s_per_1000),
        cpu_to_relay: Spread::of(paired(steps, target, RELAY, cpu)),
        cpu_to_baseline: Spread::of(cpu_to_baseline.iter().copied()),
        tps_to_baseline: Spread::of(paired(steps, target, baseline, &|one| one.tps)),
        bytes_per_second: spread(&|one| one.bytes_per_second),
        bytes_per_client: spread(&|one| one.bytes_per_client),
        rss_peak_kib: measured().filter_map(|one| one.rss_peak_kib).max(),
        servers_max: measured().filter_map(|one| one.servers_max).max(),
        remark: outcomes().find_map(|outcome| match outcome {
            Outcome::Measured(one) => one.first_error.clone(),
            Outcome::Failed { failed: why } | Outcome::LeftOut { left_out: why } => Some(why.clone()),
        }),
        verdict: if target == baseline { None } else { Verdict::of(&cpu_to_baseline) },
        ..Row::default()
    };
    let failed = outcomes().filter(|outcome| matches!(outcome, Outcome::Failed { .. })).count() as u64;
    row.errors = failed + measured().map(|one| one.errors).sum::<u64>();
    for (state, count) in measured().flat_map(|one| &one.errors_by_state) {
        *row.errors_by_state.entry(state.clone()).or_default() += count;
    }
    row.noisy = row.width().is_some_and(|width| width > NOISE_MAX);
    Some(row)
}

/// The figure's ratio in each round in which both were sound: a target that drops clients is cheap and
/// fast, and compares with nothing.
fn paired(steps: &[&Step], target: &str, other: &str, pick: Pick) -> Vec<f64> {
    let figure = |target: &str, round: usize| {
        let step = steps.iter().find(|step| step.round == round && step.target == target)?;
        figures(&step.outcome).filter(|one| one.errors == 0).and_then(pick)
    };
    let rounds = steps.iter().filter(|step| step.target == target).map(|step| step.round);
    let ratio = |round| Some(figure(target, round)? / figure(other, round).filter(|&figure| figure > 0.0)?);
    rounds.filter_map(ratio).collect()
}

fn cpu_user_s_per_1000(one: &Figures) -> Option<f64> {
    let cpu = one.cpu.filter(|_| one.transactions > 0)?;
    Some(cpu.user_s * 1_000.0 / one.transactions as f64)
}

fn statements<'a>(rounds: impl Iterator<Item = &'a Figures>) -> Vec<Statement> {
    let mut sums: Vec<(Statement, u32)> = Vec::new();
    for one in rounds.flat_map(|one| &one.statements) {
        match sums.iter_mut().find(|(sum, _)| sum.statement == one.statement) {
            Some((sum, rounds)) => {
                sum.mean_s += one.mean_s;
                *rounds += 1;
            }
            None => sums.push((one.clone(), 1)),
        }
    }
    sums.into_iter()
        .map(|(sum, rounds)| Statement { mean_s: sum.mean_s / f64::from(rounds), ..sum })
        .collect()
}

fn figures(outcome: &Outcome) -> Option<&Figures> {
    match outcome {
        Outcome::Measured(one) => Some(one),
        Outcome::Failed { .. } | Outcome::LeftOut { .. } => None,
    }
}

#[cfg(test)]
mod tests;
