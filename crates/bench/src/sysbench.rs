//! The real sysbench: its command lines and what it prints.

use crate::access::Access;
use crate::generator::Trouble;
use crate::host::last_words;
use crate::plan::Oltp;
use crate::process::{Finished, Program};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Few and small, so that they are in memory; sysbench's usual distribution of keys.
const TABLES: u32 = 4;
const ROWS: u32 = 10_000;

/// Makes its tables.
pub fn fill(binary: &Path, access: &Access) -> Program {
    program(binary, access, Oltp::ReadWrite).arguments(["prepare"])
}

fn program(binary: &Path, access: &Access, script: Oltp) -> Program {
    let Access { host, port, user, password, database } = access;
    let mut program = Program::new("sysbench", binary);
    program.environment.push(("PGSSLMODE", "disable".to_owned()));
    program.environment.extend(password.clone().map(|password| ("PGPASSWORD", password)));
    program.arguments([
        script.word().to_owned(),
        "--db-driver=pgsql".to_owned(),
        format!("--pgsql-host={host}"),
        format!("--pgsql-port={port}"),
        format!("--pgsql-user={user}"),
        format!("--pgsql-password={}", password.as_deref().unwrap_or_default()),
        format!("--pgsql-db={database}"),
        format!("--tables={TABLES}"),
        format!("--table-size={ROWS}"),
    ])
}

/// One run.
#[derive(Debug)]
pub struct Sysbench<'a> {
    /// The program.
    pub binary: &'a Path,
    /// Its cores.
    pub cores: Option<String>,
    /// Where to.
    pub access: &'a Access,
    /// What.
    pub script: Oltp,
    /// Threads, each a client.
    pub clients: usize,
    /// For how long.
    pub seconds: u32,
    /// Where its words go.
    pub log: PathBuf,
}

impl Sysbench<'_> {
    /// The command.
    pub fn program(&self) -> Program {
        let mut program = program(self.binary, self.access, self.script);
        program.cores = self.cores.clone();
        program.arguments([
            format!("--threads={}", self.clients),
            format!("--time={}", self.seconds),
            "--percentile=99".to_owned(),
            "run".to_owned(),
        ])
    }
}

/// What came out.
#[derive(Debug, Default, PartialEq)]
pub struct Run {
    /// Whole transactions.
    pub transactions: u64,
    /// A second.
    pub tps: Option<f64>,
    /// Mean latency of a transaction.
    pub mean: Option<Duration>,
    /// Of a hundred, 99 are faster.
    pub p99: Option<Duration>,
    /// The slowest.
    pub max: Option<Duration>,
    /// What went wrong.
    pub trouble: Trouble,
}

impl Run {
    /// Reads what it printed.
    pub fn from_words(finished: &Finished, limit: Duration) -> Run {
        let mut run = Run::default();
        let millis = |text: &str| {
            let millis =
                text.trim().parse::<f64>().ok().filter(|millis| millis.is_finite() && *millis >= 0.0);
            millis.map(|millis| Duration::from_secs_f64(millis / 1_000.0))
        };
        for line in finished.said.lines() {
            let line = line.trim();
            if let Some(words) = line.strip_prefix("FATAL: ") {
                // Its last words tell only that a thread is over.
                if !words.starts_with("`thread_run'") && !words.starts_with("`thread_init'") {
                    run.trouble.add(|| words.to_owned());
                }
                continue;
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                "transactions" => {
                    run.transactions =
                        value.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
                    let rate = value.split_once('(').and_then(|(_, rate)| rate.split_whitespace().next());
                    run.tps = rate.and_then(|word| word.parse().ok());
                }
                "avg" => run.mean = millis(value),
                "max" => run.max = millis(value),
                "99th percentile" => run.p99 = millis(value),
                _ => {}
            }
        }
        match finished.status {
            None => run.trouble.add(|| format!("sysbench hung: killed after {} s", limit.as_secs())),
            Some(status) if !status.success() && run.trouble.count == 0 => {
                run.trouble.add(|| last_words(&finished.said));
            }
            Some(_) => {}
        }
        run
    }
}

#[cfg(test)]
mod tests;
