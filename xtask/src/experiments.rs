//! `cargo xtask experiments`: what a failover does to clients, at full length, with figures held against limits.
//!
//! The experiments are tests of the crate `howdah` that are longer when this command runs them. They leave their figures
//! in a file, one a line; here they are read, judged and put together.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use testkit::{TempDir, Version};

use crate::process::{Count, cargo, check};
use crate::steps::Steps;
use crate::{setup, workspace};

#[derive(Args)]
pub struct Options {
    /// Run only the experiments whose names have this text in them
    #[arg(long)]
    only: Option<String>,
    /// Take the pooler as the tests build it, in place of a release build
    #[arg(long)]
    debug: bool,
    /// Write the figures to this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the figures to this file, as a table in Markdown
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// An experiment: its name, the file of tests, and the test.
type Experiment = (&'static str, &'static str, &'static str);

const EXPERIMENTS: [Experiment; 9] = [
    ("planned switchover", "failover", "planned_switchover_is_not_noticed"),
    ("kill -9 of the primary", "failover", "death_of_the_primary_costs_only_the_transactions_in_flight"),
    ("kills and restarts", "storms", "backends_that_are_killed_and_servers_that_restart_lose_no_row"),
    ("frozen primary", "failover", "rows_that_are_told_while_the_primary_is_frozen_and_after_it_are_kept"),
    ("slow start", "storms", "a_server_that_replays_its_log_keeps_its_clients_waiting_and_turns_nobody_away"),
    ("silent host", "failover", "host_that_accepts_and_never_answers_keeps_nobody_waiting"),
    ("names", "dns", "names_that_fail_cost_nobody_anything_while_the_address_is_unchanged"),
    ("reads", "split", "a_standby_that_applies_late_is_read_from_by_nobody_who_has_just_written"),
    ("Patroni", "patroni", "clients_outlive_what_happens_to_the_members_of_patroni"),
];

/// One figure, and the bounds that it must be within, if it must.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    experiment: String,
    what: String,
    value: f64,
    text: String,
    unit: String,
    least: Option<f64>,
    most: Option<f64>,
}

pub fn run(options: &Options) -> Result<(), String> {
    setup::run()?;
    let start = Instant::now();
    let home = TempDir::new();
    let file = home.join("figures");
    let mut steps = Steps::new();
    let binary = if options.debug { None } else { Some(workspace::release_program("howdah")?) };
    if binary.is_some() {
        steps.run("release build", || check(cargo(&["build", "--release", "-p", "howdah"])));
    }
    for (name, target, test) in EXPERIMENTS {
        if options.only.as_ref().is_none_or(|part| name.contains(part.as_str())) {
            steps.run(name, || experiment((target, test), &file, binary.as_deref()));
        }
    }
    let text = fs::read_to_string(&file).unwrap_or_default();
    let figures: Vec<Figure> = text.lines().filter_map(Figure::read).collect();
    let machine = machine(binary.as_deref());
    println!("\n{}", table(&figures));
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    write(options.json.as_deref(), || json_of(&figures, &machine, minutes))?;
    write(options.markdown.as_deref(), || markdown(&figures, &machine))?;
    steps.run("figures within their limits", || {
        let is_good = |figure: &&Figure| figure.is_within();
        let passed = figures.iter().filter(is_good).count() as u64;
        Count { passed, failed: figures.len() as u64 - passed }
    });
    steps.finish()
}

fn experiment((target, test): (&str, &str), file: &Path, binary: Option<&Path>) -> Count {
    let mut command = cargo(&["test", "--quiet", "-p", "howdah", "--test", target, "--"]);
    command.args(["--exact", test, "--nocapture"]).env("HOWDAH_EXPERIMENTS", file);
    command.envs(binary.map(|binary| ("HOWDAH_TEST_BINARY", binary)));
    check(command)
}

impl Figure {
    /// As the tests write it: fields between tabs.
    fn read(line: &str) -> Option<Figure> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [experiment, what, value, unit, least, most] = fields[..] else { return None };
        Some(Figure {
            experiment: experiment.to_owned(),
            what: what.to_owned(),
            value: value.parse().ok()?,
            text: format!("{value} {unit}").trim().to_owned(),
            unit: unit.to_owned(),
            least: least.parse().ok(),
            most: most.parse().ok(),
        })
    }

    fn is_within(&self) -> bool {
        self.least.is_none_or(|least| self.value >= least) && self.most.is_none_or(|most| self.value <= most)
    }

    fn limit(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match (self.least, self.most) {
            (Some(least), Some(most)) => format!("{least} to {most}{unit}"),
            (Some(least), None) => format!("at least {least}{unit}"),
            (None, Some(most)) => format!("at most {most}{unit}"),
            (None, None) => String::new(),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.least.is_none() && self.most.is_none(), self.is_within()) {
            (true, _) => "",
            (false, true) => "kept",
            (false, false) => "BROKEN",
        }
    }
}

/// For the terminal.
fn table(figures: &[Figure]) -> String {
    let mut text = format!("{:<58} {:>12}  {:<16} limit\n", "figure", "value", "");
    let mut last = "";
    for figure in figures {
        if figure.experiment != last {
            text.push_str(&format!("{}\n", figure.experiment));
            last = &figure.experiment;
        }
        let line =
            format!("  {:<56} {:>12}  {:<16} {}", figure.what, figure.text, figure.limit(), figure.verdict());
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn markdown(figures: &[Figure], machine: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (what, words) in machine {
        text.push_str(&format!("- {what}: {words}\n"));
    }
    text.push_str("\n| experiment | figure | value | limit | |\n|---|---|---|---|---|\n");
    let mut last = "";
    for figure in figures {
        let experiment = if figure.experiment == last { "" } else { &figure.experiment };
        last = &figure.experiment;
        let fields = [experiment, &figure.what, &figure.text, &figure.limit(), figure.verdict()];
        text.push_str(&format!("| {} |\n", fields.join(" | ")));
    }
    text
}

fn json_of(figures: &[Figure], machine: &[(&str, String)], minutes: f64) -> String {
    let figure = |figure: &Figure| {
        json!({
            "experiment": figure.experiment,
            "figure": figure.what,
            "value": figure.value,
            "unit": figure.unit,
            "at_least": figure.least,
            "at_most": figure.most,
            "is_kept": figure.is_within(),
        })
    };
    let machine: serde_json::Map<String, Value> =
        machine.iter().map(|(what, words)| ((*what).to_owned(), json!(words))).collect();
    let all: Vec<Value> = figures.iter().map(figure).collect();
    format!("{:#}\n", json!({ "machine": machine, "minutes": minutes, "figures": all }))
}

/// What the figures depend on; no name of a host or of a directory.
fn machine(binary: Option<&Path>) -> Vec<(&'static str, String)> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.unwrap_or_default().trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let said = |program: &Path| {
        let output = Command::new(program).arg("--version").output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let build = if binary.is_some() { "release build" } else { "the tests' build" };
    vec![
        ("processor", format!("{cores} x {model}")),
        ("kernel", kernel.trim().to_owned()),
        ("PostgreSQL", said(&Version::wanted().programs().join("postgres"))),
        ("pooler", format!("{} ({build})", binary.map(said).unwrap_or_default()).trim().to_owned()),
    ]
}

fn write(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    fs::write(path, text()).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
