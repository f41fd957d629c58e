//! Ours beside theirs: for every load of a scenario what was published and what this run saw, refusals and
//! hangs with their words.

use crate::load::{Measurement, Outcome};
use crate::plan::{Load, Plan};
use crate::scenario::Scenario;
use crate::scenario::published::Figure;
use crate::summary::{Results, Spread};
use crate::target::Kind;
use serde_json::{Value, json};

/// What a target showed under a load, over all rounds.
struct Ours {
    target: Kind,
    tps: Option<f64>,
    latency_ms: Option<f64>,
    deviation_ms: Option<f64>,
    connect_ms: Option<f64>,
    servers: Option<u32>,
    remark: String,
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

fn ours(results: &Results, load: Load, target: Kind) -> Option<Ours> {
    let outcomes: Vec<&Outcome> = results
        .iter()
        .filter(|(step, _)| step.load == load && step.target == target)
        .map(|(_, outcome)| outcome)
        .collect();
    if outcomes.is_empty() {
        return None;
    }
    let measured: Vec<&Measurement> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Measured(one) => Some(&**one),
            Outcome::Failed(_) | Outcome::LeftOut(_) => None,
        })
        .collect();
    let of = |pick: fn(&Measurement) -> Option<f64>| median(measured.iter().filter_map(|one| pick(one)));
    let millis = |pick: fn(&Measurement) -> Option<std::time::Duration>| {
        median(measured.iter().filter_map(|one| pick(one)).map(|time| time.as_secs_f64() * 1e3))
    };
    Some(Ours {
        target,
        tps: of(|one| one.tps),
        latency_ms: millis(|one| one.latency_mean),
        deviation_ms: millis(|one| one.latency_deviation),
        connect_ms: millis(|one| one.connect_all.or(one.connect_mean)),
        servers: measured.iter().filter_map(|one| one.servers_max).max(),
        remark: remark(&outcomes),
    })
}

fn remark(outcomes: &[&Outcome]) -> String {
    let mut words = Vec::new();
    for outcome in outcomes {
        let said = match outcome {
            Outcome::Failed(why) => format!("failed: {why}"),
            Outcome::LeftOut(why) => why.clone(),
            Outcome::Measured(one) => match &one.trouble.first {
                Some(first) => format!("{} errors: {first}", one.trouble.count),
                None => waits(one).unwrap_or_default(),
            },
        };
        // The first round's words stand for all; trouble comes before everything else.
        if !said.is_empty() && (words.is_empty() || !matches!(outcome, Outcome::Measured(_))) {
            words.insert(0, said);
        }
    }
    words.into_iter().next().unwrap_or_default()
}

/// The statement that takes longest, if it takes a good part of the transaction.
fn waits(one: &Measurement) -> Option<String> {
    let whole: f64 = one.statements.iter().map(|(_, time)| time.as_secs_f64()).sum();
    let (text, time) = one.statements.iter().max_by_key(|(_, time)| *time)?;
    let head: String = text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let time = time.as_secs_f64();
    (time > whole / 3.0).then(|| format!("{:.0} ms of it in {}", time * 1e3, head.trim_end_matches(';')))
}

const HEADINGS: [&str; 6] = ["", "tps", "mean ms", "deviation", "connect ms", "servers"];

/// The comparison for a terminal.
pub fn text(scenario: Scenario, plan: &Plan, results: &Results) -> String {
    let mut text = format!(
        "\n{}: what was published, and this machine\n  published: {}\n  connect ms: until all were in; with -C, the mean of one\n",
        scenario.name(),
        scenario.origin()
    );
    for &load in &plan.loads {
        let mut rows = vec![(HEADINGS.map(str::to_owned), String::new())];
        rows.extend(scenario.beside(load).iter().map(published_row));
        rows.extend(plan.targets.iter().filter_map(|&target| ours(results, load, target)).map(our_row));
        text += &format!("\n{}\n{}", load.title(), aligned(&rows));
    }
    text
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or(String::new(), |value| format!("{value:.digits$}"))
}

fn published_row(figure: &Figure) -> ([String; 6], String) {
    let digits = if figure.tps.is_some_and(|tps| tps < 100.0) { 1 } else { 0 };
    let cells = [
        format!("(published) {}", figure.system),
        cell(figure.tps, digits),
        cell(figure.latency_ms, 1),
        String::new(),
        cell(figure.connect_ms, 1),
        String::new(),
    ];
    (cells, figure.remark.to_owned())
}

fn our_row(ours: Ours) -> ([String; 6], String) {
    let cells = [
        ours.target.to_string(),
        cell(ours.tps, 0),
        cell(ours.latency_ms, 1),
        cell(ours.deviation_ms, 1),
        cell(ours.connect_ms, 1),
        ours.servers.map_or(String::new(), |count| count.to_string()),
    ];
    (cells, ours.remark)
}

fn aligned(rows: &[([String; 6], String)]) -> String {
    let width =
        |column: usize| rows.iter().map(|(cells, _)| cells[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (cells, remark) in rows {
        let mut line = format!("  {:<width$}", cells[0], width = width(0));
        for (column, cell) in cells.iter().enumerate().skip(1) {
            line += &format!("  {cell:>width$}", width = width(column));
        }
        line += &format!("  {remark}");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// What was published, for programs.
pub fn value(scenario: Scenario) -> Value {
    let figures: Vec<_> = scenario
        .figures()
        .iter()
        .map(|figure| {
            json!({
                "system": figure.system,
                "clients": figure.clients,
                "tps": figure.tps,
                "latency_s": figure.latency_ms.map(|ms| ms / 1e3),
                "connect_s": figure.connect_ms.map(|ms| ms / 1e3),
                "remark": figure.remark,
            })
        })
        .collect();
    json!({ "name": scenario.name(), "origin": scenario.origin(), "published": figures })
}

#[cfg(test)]
mod tests;
