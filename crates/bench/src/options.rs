//! The command line, and what follows from it: defaults, `--quick`, contradictions. It knows no file
//! and starts nothing.

use crate::error::BenchError;
use crate::plan::{Load, Plan};
use crate::target::Kind;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Compares poolers: no pooler, Howdah, pgbouncer and a blind relay, interleaved in one run.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench", version, args_conflicts_with_subcommands = true)]
pub struct Options {
    /// Short: 3 rounds of 2 s with 20 and 200 clients
    #[arg(long)]
    pub quick: bool,
    /// Targets to run: direct, relay, pgbouncer, howdah (1 and 2 workers), howdah-N (N workers)
    #[arg(long, value_delimiter = ',', value_name = "TARGETS")]
    pub only: Vec<String>,
    /// Loads to run (default: pgbench, canned, connect and memory; quick: pgbench and canned)
    #[arg(long = "load", value_enum, value_delimiter = ',', value_name = "LOADS")]
    pub loads: Vec<LoadName>,
    /// The same as --load memory
    #[arg(long)]
    pub memory: bool,
    /// Numbers of clients (default 1,20,200,1000; the connect load: 1,50)
    #[arg(long, value_delimiter = ',', value_name = "N,N")]
    pub clients: Vec<usize>,
    /// Rounds; each runs every target once per load (default 5)
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seconds each target is measured per round and load (default 3)
    #[arg(long)]
    pub seconds: Option<u32>,
    /// How pgbench sends its queries
    #[arg(long, value_enum, default_value_t = Mode::Simple)]
    pub mode: Mode,
    /// Idle clients of the memory load
    #[arg(long, default_value_t = 5_000, value_name = "N")]
    pub idle_clients: usize,
    /// Server connections each pooler may open per database and user
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub pool_size: usize,
    /// pgbench's scale: 100,000 accounts each
    #[arg(long, default_value_t = 10)]
    pub scale: u32,
    /// Seed of the order of targets (default: from the clock; always printed)
    #[arg(long)]
    pub seed: Option<u64>,
    /// Poolers on the first cores, everything else on the others
    #[arg(long)]
    pub pin: bool,
    /// Threads of the canned-reply server
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub canned_threads: usize,
    /// Threads of our own load generator
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub load_threads: usize,
    /// First of the ports to use (default: free ones)
    #[arg(long, value_name = "PORT")]
    pub base_port: Option<u16>,
    /// Howdah's binary (default: beside this one)
    #[arg(long, value_name = "PATH")]
    pub howdah: Option<PathBuf>,
    /// pgbouncer's binary
    #[arg(long, default_value = "/usr/sbin/pgbouncer", value_name = "PATH")]
    pub pgbouncer: PathBuf,
    /// PostgreSQL's directory of programs (default: the newest under /usr/lib/postgresql)
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<PathBuf>,
    /// Write the whole report there, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as a page with charts there, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Target that ratios are to (default: pgbouncer)
    #[arg(long, value_name = "TARGET")]
    pub baseline: Option<String>,
    /// What to do with reports, and roles this program plays for itself
    #[command(subcommand)]
    pub role: Option<Role>,
}

/// What is done with reports; and the programs that the benchmark starts from its own binary, so that each
/// has its own CPU account.
#[derive(Debug, Clone, Subcommand)]
pub enum Role {
    /// Says what changed beyond noise between two reports written by --json
    Compare {
        /// The earlier report
        before: PathBuf,
        /// The later one
        after: PathBuf,
        /// End with status 1 if anything got worse
        #[arg(long)]
        fail_on_regression: bool,
    },
    /// Prints the page with charts of a report written by --json
    Html {
        /// The report
        file: PathBuf,
    },
    /// Answers every query with the same row
    #[command(hide = true)]
    ServeCanned {
        /// Port on 127.0.0.1
        #[arg(long)]
        port: u16,
        /// Event loops
        #[arg(long)]
        threads: usize,
    },
    /// Passes bytes on, one server connection per client
    #[command(hide = true)]
    ServeRelay {
        /// LISTEN=CONNECT, both ports on 127.0.0.1
        #[arg(required = true)]
        routes: Vec<String>,
    },
}

/// A load by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadName {
    /// `pgbench -S` against PostgreSQL
    Pgbench,
    /// Our generator against the canned-reply server
    Canned,
    /// `pgbench -S -C`: a new connection per transaction
    Connect,
    /// Idle clients
    Memory,
}

/// pgbench's `-M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// One Query message
    Simple,
    /// Parse, Bind, Describe, Execute, Sync each time
    Extended,
    /// Parse once, then Bind, Execute, Sync
    Prepared,
}

impl Mode {
    /// The word pgbench takes.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }
}

const CLIENTS: [usize; 4] = [1, 20, 200, 1000];
const CLIENTS_QUICK: [usize; 2] = [20, 200];
const CLIENTS_CONNECT: [usize; 2] = [1, 50];

impl Options {
    /// Settles what is run, in which rounds.
    pub fn plan(&self) -> Result<Plan, BenchError> {
        let refuse = |what: &str| Err(BenchError::Options(what.to_owned()));
        let rounds = self.rounds.unwrap_or(if self.quick { 3 } else { 5 });
        let seconds = self.seconds.unwrap_or(if self.quick { 2 } else { 3 });
        if rounds == 0 || seconds == 0 || self.pool_size == 0 || self.scale == 0 {
            return refuse("--rounds, --seconds, --pool-size and --scale must be at least 1");
        }
        if self.clients.contains(&0) || self.idle_clients == 0 {
            return refuse("--clients and --idle-clients must be at least 1");
        }
        if self.canned_threads == 0 || self.load_threads == 0 {
            return refuse("--canned-threads and --load-threads must be at least 1");
        }
        let targets = self.targets()?;
        if let Some(baseline) = &self.baseline
            && !targets.iter().any(|target| target.to_string() == *baseline)
        {
            return refuse(&format!("--baseline {baseline} is none of the targets of this run"));
        }
        let mut loads = Vec::new();
        for name in self.load_names() {
            match name {
                LoadName::Memory => loads.push(Load::Memory { clients: self.idle_clients }),
                LoadName::Connect => {
                    loads.extend(self.clients_or(&CLIENTS_CONNECT).map(|clients| Load::Connect { clients }));
                }
                LoadName::Canned => {
                    loads.extend(
                        self.clients_or(self.clients_usual()).map(|clients| Load::Canned { clients }),
                    );
                }
                LoadName::Pgbench => {
                    loads.extend(
                        self.clients_or(self.clients_usual()).map(|clients| Load::Pgbench { clients }),
                    );
                }
            }
        }
        Ok(Plan { targets, loads, rounds, seconds, mode: self.mode })
    }

    fn clients_usual(&self) -> &'static [usize] {
        if self.quick { &CLIENTS_QUICK } else { &CLIENTS }
    }

    fn clients_or<'a>(&'a self, usual: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        if self.clients.is_empty() { usual } else { &self.clients }.iter().copied()
    }

    fn load_names(&self) -> Vec<LoadName> {
        let mut names = Vec::new();
        for &name in &self.loads {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if self.memory && !names.contains(&LoadName::Memory) {
            names.push(LoadName::Memory);
        }
        if names.is_empty() {
            names.extend([LoadName::Pgbench, LoadName::Canned]);
            if !self.quick {
                names.extend([LoadName::Connect, LoadName::Memory]);
            }
        }
        names
    }

    fn targets(&self) -> Result<Vec<Kind>, BenchError> {
        let usual = ["direct", "relay", "pgbouncer", "howdah"].map(str::to_owned);
        let mut targets = Vec::new();
        for word in if self.only.is_empty() { &usual[..] } else { &self.only[..] } {
            let Some(kinds) = Kind::named(word) else {
                return Err(BenchError::Options(format!(
                    "no target is called {word:?}: there are direct, relay, pgbouncer, howdah and howdah-N"
                )));
            };
            for kind in kinds {
                if !targets.contains(&kind) {
                    targets.push(kind);
                }
            }
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests;
