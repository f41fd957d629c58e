//! The report of a run: what it was made with and on, and what every step gave; written as JSON and read
//! back. It holds words and figures only, so that a file of any age, target or load can be shown and
//! compared. It does not know how they were measured (`json` fills it in) nor what they mean (`summary`).

use crate::error::BenchError;
use crate::summary::{self, Section};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

mod charts;
mod html;
mod overview;
mod page;
mod palette;

pub use page::page;

/// The form of the file that is written.
pub const FORMAT: u32 = 2;
/// The oldest form that is still read: it has all that is needed, if less.
const FORMAT_OLDEST: u32 = 1;

/// What ratios are to unless another target is chosen.
pub const BASELINE: &str = "pgbouncer";
/// The blind relay: the floor under every pooler.
pub const RELAY: &str = "relay";
/// Targets that none of our poolers' code is in: how they vary is the machine's doing.
pub const CONTROLS: [&str; 2] = ["direct", RELAY];

/// A whole run. Fields that a file lacks are empty, fields that are not known are passed over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The form of the file it was read from.
    pub format: u32,
    /// When it began, like `2026-11-21T05:00:00Z`.
    pub started: Option<String>,
    /// Where it was run.
    pub machine: Machine,
    /// Programs with what they said when asked for their versions.
    pub programs: BTreeMap<String, Option<String>>,
    /// The arguments it was called with.
    pub command: Vec<String>,
    /// Seed of the order of targets.
    pub seed: u64,
    /// How often each target met each load.
    pub rounds: usize,
    /// How long each time.
    pub seconds: u32,
    /// pgbench's query mode.
    pub mode: String,
    /// pgbench's scale.
    pub scale: u32,
    /// Server connections each pooler might open.
    pub pool_size: usize,
    /// PostgreSQL's limit of connections, where it is set for the run.
    pub max_connections: Option<usize>,
    /// Whether poolers had cores of their own.
    pub pinned: bool,
    /// What the throw-away PostgreSQL was set to.
    pub postgres_settings: Option<Vec<String>>,
    /// The settings files of the poolers.
    pub configurations: BTreeMap<String, String>,
    /// The target that ratios are to.
    pub baseline: Option<String>,
    /// Remarks on the run as a whole, each a line.
    pub notes: Vec<String>,
    /// What others have published of the same experiment, as lines to stand beside ours.
    pub beside: Option<String>,
    /// Every step in the order they were run.
    pub steps: Vec<Step>,
}

/// Where a run was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Cores it could use.
    pub cores: usize,
    /// What the processor calls itself.
    pub cpu: Option<String>,
    /// The kernel's release.
    pub kernel: String,
    /// The TCP congestion control.
    pub tcp_congestion_control: String,
    /// /proc/loadavg before the run.
    pub load_before: String,
}

/// One target under one load in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The round, from 0.
    pub round: usize,
    /// The load's word.
    pub load: String,
    /// Its number of clients.
    pub clients: usize,
    /// What distinguishes it from all other loads, for people.
    #[serde(default)]
    pub title: String,
    /// The target.
    pub target: String,
    /// What it gave.
    pub outcome: Outcome,
}

/// What one step gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The target did nothing for anyone.
    Failed {
        /// Its first words about it.
        failed: String,
    },
    /// It was not tried.
    LeftOut {
        /// Why.
        left_out: String,
    },
    /// Figures.
    Measured(Box<Figures>),
}

/// The figures of one step; nothing where the load does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Transactions that CPU and percentiles rest on.
    pub transactions: u64,
    /// Transactions a second.
    pub tps: Option<f64>,
    /// As the client sees it.
    pub latency: Option<Latency>,
    /// Its p99 alone, where the load tells nothing more.
    pub latency_p99_s: Option<f64>,
    /// Its mean.
    pub latency_mean_s: Option<f64>,
    /// Its standard deviation.
    pub latency_deviation_s: Option<f64>,
    /// What each statement of a transaction took: where clients wait.
    pub statements: Vec<Statement>,
    /// The target's own.
    pub cpu: Option<Cpu>,
    /// Of all of it, per 1000 transactions.
    pub cpu_s_per_1000: Option<f64>,
    /// Mean time to connect, with a new connection per transaction.
    pub connect_mean_s: Option<f64>,
    /// Until all clients were in, where they come once.
    pub connect_all_s: Option<f64>,
    /// Where the load is bulk.
    pub bytes_per_second: Option<f64>,
    /// Anonymous memory a client.
    pub bytes_per_client: Option<f64>,
    /// The most memory the target held.
    pub rss_peak_kib: Option<u64>,
    /// The most connections PostgreSQL saw of it.
    pub servers_max: Option<u32>,
    /// How often something went wrong.
    pub errors: u64,
    /// The same by SQLSTATE, as far as there was one.
    pub errors_by_state: BTreeMap<String, u64>,
    /// The first words about it.
    pub first_error: Option<String>,
}

/// A statement of a transaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statement {
    /// Its text.
    pub statement: String,
    /// How long it took in the mean, its wait included.
    pub mean_s: f64,
}

/// Percentiles in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Half are faster.
    pub p50_s: f64,
    /// 9 of 10 are faster.
    pub p90_s: f64,
    /// 99 of 100 are faster.
    pub p99_s: f64,
    /// 999 of 1000 are faster.
    #[serde(rename = "p99.9_s")]
    pub p999_s: f64,
    /// The slowest.
    pub max_s: f64,
}

/// CPU time in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// User and system.
    pub total_s: f64,
    /// User alone.
    pub user_s: f64,
    /// System alone.
    pub system_s: f64,
}

impl Report {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Report, BenchError> {
        let text = fs::read_to_string(path).map_err(BenchError::io(format!("reading {}", path.display())))?;
        Report::parse(&text).map_err(|why| BenchError::Options(format!("{}: {why}", path.display())))
    }

    /// Understands a file's text, or says in one line why not.
    pub fn parse(text: &str) -> Result<Report, String> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let Ok(Head { format }) = serde_json::from_str(text) else {
            return Err("this is no report of the benchmark (JSON with a field \"format\")".to_owned());
        };
        if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
            return Err(format!(
                "this report has format {format}, and formats {FORMAT_OLDEST} to {FORMAT} can be read"
            ));
        }
        let mut report: Report =
            serde_json::from_str(text).map_err(|error| format!("the report is damaged: {error}"))?;
        // The first form named a load in its summary only; word and number tell its loads apart as well.
        for step in report.steps.iter_mut().filter(|step| step.title.is_empty()) {
            let plural = if step.clients == 1 { "" } else { "s" };
            step.title = format!("{}, {} client{plural}", step.load, step.clients);
        }
        Ok(report)
    }

    /// The file's text: the report and, for programs that read it, its summary.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Written<'a> {
            #[serde(flatten)]
            report: &'a Report,
            summary: Vec<Section>,
        }
        let written = Written { report: self, summary: summary::sections(self) };
        // Nothing in it can fail to be written: all keys are strings. An empty object is refused on reading.
        serde_json::to_string_pretty(&written).unwrap_or_else(|_| "{}".to_owned()) + "\n"
    }

    /// The target that ratios are to.
    pub fn baseline(&self) -> &str {
        self.baseline.as_deref().unwrap_or(BASELINE)
    }

    /// The targets' names, each once, in a fixed order: what has no pooler, pgbouncer, other peers, ours.
    pub fn targets(&self) -> Vec<&str> {
        let mut targets: Vec<&str> = Vec::new();
        for step in &self.steps {
            if !targets.contains(&step.target.as_str()) {
                targets.push(&step.target);
            }
        }
        // howdah-2 stands before howdah-10; others are in the order of the alphabet.
        targets.sort_by_key(|&target| (rank(target), if is_ours(target) { target.len() } else { 0 }, target));
        targets
    }
}

/// Steps are shuffled; in a report a target has the same place every time.
fn rank(target: &str) -> usize {
    let control = CONTROLS.iter().position(|&control| control == target);
    control.unwrap_or(if is_ours(target) {
        CONTROLS.len() + 2
    } else {
        CONTROLS.len() + usize::from(target != BASELINE)
    })
}

/// Whether it is Howdah, with however many workers.
fn is_ours(target: &str) -> bool {
    target.starts_with("howdah")
}

#[cfg(test)]
mod tests;
