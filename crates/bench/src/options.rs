//! The command line, and what follows from it: defaults, `--quick`, contradictions. It knows no file
//! and starts nothing.

mod loads;

use crate::access::Access;
use crate::error::BenchError;
use crate::plan::{Load, Login, Plan};
use crate::scenario::{Asked, Scenario, Stage};
use crate::setup::Setup;
use crate::target::{Given, Kind};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Compares poolers: no pooler, a blind relay, pgbouncer, haproxy, pgpool2 and Howdah, interleaved in one run.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench", version, args_conflicts_with_subcommands = true)]
pub struct Options {
    /// Short: under 3 minutes, 3 rounds of 1 s with 20 and 200 clients
    #[arg(long)]
    pub quick: bool,
    /// Repeat a published experiment, with its original figures printed beside ours
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["quick", "loads", "modes", "logins", "memory", "postgres"])]
    pub scenario: Option<Scenario>,
    /// Targets to run: direct, relay, relay-uring, pgbouncer, haproxy, pgpool2, howdah (1 and 2 workers), howdah-N (N
    /// workers), howdah-N-epoll (without io_uring)
    #[arg(long, value_delimiter = ',', value_name = "TARGETS")]
    pub only: Vec<String>,
    /// One more target that runs already, in front of a database with pgbench's tables
    #[arg(long = "target", value_name = "NAME=postgres://USER:PASSWORD@HOST:PORT/DB[,pid=N]")]
    pub given: Vec<String>,
    /// Loads to run (default: all; quick: pgbench and canned)
    #[arg(long = "load", value_enum, value_delimiter = ',', value_name = "LOADS")]
    pub loads: Vec<LoadName>,
    /// The same as --load memory
    #[arg(long)]
    pub memory: bool,
    /// Numbers of clients, instead of each load's own
    #[arg(long, value_delimiter = ',', value_name = "N,N")]
    pub clients: Vec<usize>,
    /// Rounds; each runs every target once per load (default 5; quick and scenarios: 3)
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seconds each target is measured per round and load (default 2; quick: 1; scenarios: 5)
    #[arg(long)]
    pub seconds: Option<u32>,
    /// How pgbench sends its queries (default: all three; quick: simple)
    #[arg(long = "mode", value_enum, value_delimiter = ',', value_name = "MODES")]
    pub modes: Vec<Mode>,
    /// How clients of the connect, row64k and copy loads come in; bulk is plain or through TLS (default: all)
    #[arg(long = "login", value_enum, value_delimiter = ',', value_name = "LOGINS")]
    pub logins: Vec<Login>,
    /// Idle clients of the memory load
    #[arg(long, value_delimiter = ',', default_values_t = [5_000, 10_000], value_name = "N,N")]
    pub idle_clients: Vec<usize>,
    /// Server connections each pooler may open per database and user (default 20; scenarios: their own)
    #[arg(long, value_name = "N")]
    pub pool_size: Option<usize>,
    /// pgbench's scale: 100,000 accounts each (default 10; scenarios: their own)
    #[arg(long)]
    pub scale: Option<u32>,
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
    /// Use this PostgreSQL, by a user who may create a database and roles; they are dropped at the end
    #[arg(long, value_name = "postgres://USER:PASSWORD@HOST:PORT/DB")]
    pub postgres: Option<String>,
    /// Howdah's binary (default: `howdah bench` its own, else the one beside this)
    #[arg(long, value_name = "PATH")]
    pub howdah: Option<PathBuf>,
    /// pgbouncer's binary
    #[arg(long, default_value = "/usr/sbin/pgbouncer", value_name = "PATH")]
    pub pgbouncer: PathBuf,
    /// haproxy's binary
    #[arg(long, default_value = "/usr/sbin/haproxy", value_name = "PATH")]
    pub haproxy: PathBuf,
    /// pgpool's binary
    #[arg(long, default_value = "/usr/sbin/pgpool", value_name = "PATH")]
    pub pgpool: PathBuf,
    /// sysbench's binary
    #[arg(long, default_value = "/usr/bin/sysbench", value_name = "PATH")]
    pub sysbench: PathBuf,
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
        /// All sends of a batch of events in one call
        #[arg(long)]
        io_uring: bool,
        /// LISTEN=HOST:PORT, the first a port on 127.0.0.1
        #[arg(required = true)]
        routes: Vec<String>,
    },
}

/// A load by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadName {
    /// `pgbench -S`: one row by its key
    Pgbench,
    /// pgbench's TPC-B: five statements in a transaction
    Tpcb,
    /// `pgbench -S -C`: a new connection per transaction
    Connect,
    /// pgbench with a row of 64 KB
    Row64k,
    /// 100 MB in one COPY, out and in
    Copy,
    /// sysbench OLTP, read-only and read-write
    Sysbench,
    /// Our generator against PostgreSQL: thousands of clients
    Crowd,
    /// Our generator against the canned-reply server: the pooler alone
    Canned,
    /// Our generator against the canned-reply server, a new connection for each query
    Churn,
    /// Idle clients
    Memory,
}

/// pgbench's `-M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
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

const POOL_SIZE: usize = 20;
const SCALE: u32 = 10;

impl Options {
    /// Settles what is run, over which servers, one stage after the other.
    pub fn stages(&self) -> Result<Vec<Stage>, BenchError> {
        self.check_numbers()?;
        let targets = self.targets()?;
        if let Some(baseline) = &self.baseline
            && !targets.iter().any(|target| target.to_string() == *baseline)
        {
            let words = format!("--baseline {baseline} is none of the targets of this run");
            return Err(BenchError::Options(words));
        }
        let (rounds, seconds) = match self.scenario {
            Some(_) => (3, 5),
            None if self.quick => (3, 1),
            None => (5, 2),
        };
        let (rounds, seconds) = (self.rounds.unwrap_or(rounds), self.seconds.unwrap_or(seconds));
        if let Some(scenario) = self.scenario {
            let asked = Asked {
                targets,
                clients: self.clients.clone(),
                rounds,
                seconds,
                scale: self.scale,
                pool_size: self.pool_size,
            };
            return Ok(scenario.stages(&asked));
        }
        let loads: Vec<Load> = self.all_loads();
        let (pool_size, scale) = (self.pool_size.unwrap_or(POOL_SIZE), self.scale.unwrap_or(SCALE));
        let setup = Setup::new(pool_size, scale, &loads);
        Ok(vec![Stage { plan: Plan { targets, loads, rounds, seconds }, setup, shows_walls: false }])
    }

    fn check_numbers(&self) -> Result<(), BenchError> {
        let refuse = |what: &str| Err(BenchError::Options(what.to_owned()));
        let zero = [
            self.rounds == Some(0),
            self.seconds == Some(0),
            self.pool_size == Some(0),
            self.scale == Some(0),
        ];
        if zero.contains(&true) {
            return refuse("--rounds, --seconds, --pool-size and --scale must be at least 1");
        }
        if self.clients.contains(&0) || self.idle_clients.contains(&0) {
            return refuse("--clients and --idle-clients must be at least 1");
        }
        if self.canned_threads == 0 || self.load_threads == 0 {
            return refuse("--canned-threads and --load-threads must be at least 1");
        }
        Ok(())
    }

    /// The targets that run already.
    pub fn given(&self) -> Result<Vec<Given>, BenchError> {
        let given = self.given.iter().map(|text| Given::parse(text)).collect::<Result<Vec<_>, _>>()?;
        for (place, one) in given.iter().enumerate() {
            if given[..place].iter().any(|other| other.name == one.name) {
                return Err(BenchError::Options(format!("two targets are called {}", one.name)));
            }
        }
        Ok(given)
    }

    /// The PostgreSQL to use instead of one of our own.
    pub fn postgres(&self) -> Result<Option<Access>, BenchError> {
        self.postgres.as_deref().map(Access::parse).transpose()
    }

    fn targets(&self) -> Result<Vec<Kind>, BenchError> {
        let usual = ["direct", "relay", "pgbouncer", "haproxy", "pgpool2", "howdah"].map(str::to_owned);
        let mut targets = Vec::new();
        for word in if self.only.is_empty() { &usual[..] } else { &self.only[..] } {
            let Some(kinds) = Kind::named(word) else {
                return Err(BenchError::Options(format!(
                    "no target is called {word:?}: there are direct, relay, pgbouncer, haproxy, pgpool2, howdah \
                     and howdah-N"
                )));
            };
            for kind in kinds {
                if !targets.contains(&kind) {
                    targets.push(kind);
                }
            }
        }
        targets.extend(self.given()?.iter().map(|given| Kind::Given(given.name)));
        Ok(targets)
    }
}

#[cfg(test)]
mod tests;
