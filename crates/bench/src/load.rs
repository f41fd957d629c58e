//! One step: a target under a load, and what is to be said of it.

mod bulk;
mod own;
mod real;

use crate::arena::{Arena, FILES_SPARE};
use crate::error::BenchError;
use crate::generator::Trouble;
use crate::histogram::{Histogram, Percentiles};
use crate::plan::{Load, Plan, Step};
use crate::target::{Kind, Target};
use crate::usage::Cpu;
use crate::watch::{Watch, Watched, servers_of};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one step gave.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Figures, perhaps with trouble beside them.
    Measured(Box<Measurement>),
    /// The target did nothing for anyone: its first words about it.
    Failed(String),
    /// It was not tried, and why.
    LeftOut(String),
}

/// The figures of one step. Nothing where the load does not tell.
#[derive(Debug, Clone, Default)]
pub struct Measurement {
    /// Transactions that CPU and percentiles rest on.
    pub transactions: u64,
    /// Transactions a second.
    pub tps: Option<f64>,
    /// As the client sees it.
    pub latency: Option<Percentiles>,
    /// Its p99 alone, where a load tells nothing more.
    pub latency_p99: Option<Duration>,
    /// Its mean.
    pub latency_mean: Option<Duration>,
    /// Its standard deviation.
    pub latency_deviation: Option<Duration>,
    /// Mean time of each statement of the transaction: where clients wait.
    pub statements: Vec<(String, Duration)>,
    /// The target's own, for those transactions.
    pub cpu: Option<Cpu>,
    /// The most memory the target held.
    pub rss_peak_kib: Option<u64>,
    /// The most connections PostgreSQL saw of it.
    pub servers_max: Option<u32>,
    /// Mean time to connect, with a new connection per transaction.
    pub connect_mean: Option<Duration>,
    /// Until all clients were in, where they come once.
    pub connect_all: Option<Duration>,
    /// Anonymous memory a client.
    pub bytes_per_client: Option<f64>,
    /// Where a load is about bulk.
    pub bytes_per_second: Option<f64>,
    /// What went wrong.
    pub trouble: Trouble,
    /// The same by SQLSTATE, or by a word where none was told.
    pub errors_by_state: BTreeMap<String, u64>,
}

impl Measurement {
    /// CPU seconds of the target per 1000 transactions.
    pub fn cpu_per_1000(&self) -> Option<f64> {
        self.per_1000(self.cpu?.total)
    }

    /// The user part, per 1000 transactions.
    pub fn cpu_user_per_1000(&self) -> Option<f64> {
        self.per_1000(self.cpu?.user)
    }

    fn per_1000(&self, cpu: Duration) -> Option<f64> {
        (self.transactions > 0).then(|| cpu.as_secs_f64() * 1_000.0 / self.transactions as f64)
    }

    /// With what a histogram tells.
    fn timed(mut self, latencies: &Histogram) -> Measurement {
        self.transactions = latencies.count();
        self.latency = latencies.percentiles();
        self.latency_mean = latencies.mean();
        self.latency_deviation = latencies.deviation();
        self
    }

    /// A result; without a transaction it is none.
    fn outcome(mut self) -> Outcome {
        if self.transactions == 0 {
            return Outcome::Failed(self.trouble.first.unwrap_or_else(|| "no transaction ended".to_owned()));
        }
        self.errors_by_state = self.trouble.by_state.clone();
        Outcome::Measured(Box::new(self))
    }
}

/// Runs one step.
pub fn run(arena: &mut Arena, plan: &Plan, step: Step, load_threads: usize) -> Result<Outcome, BenchError> {
    arena.stop.check()?;
    arena.check_servers()?;
    if let Some(why) = beyond(arena, step) {
        return Ok(Outcome::LeftOut(why));
    }
    // Memory is measured on a process of its own.
    let has_process = !matches!(step.load, Load::Memory { .. });
    let for_the_step = has_process && arena.is_short_lived(step.target);
    if for_the_step && let Err(error) = arena.start_for_step(step) {
        arena.stop.check()?;
        return Ok(Outcome::Failed(error.to_string()));
    }
    match arena.target(step.target).map(Target::check_alive) {
        _ if !has_process => {}
        Some(Ok(())) => {}
        Some(Err(why)) => return Ok(Outcome::Failed(why)),
        None => return Ok(Outcome::LeftOut("it is not running".to_owned())),
    }
    let outcome = match step.load {
        Load::Pgbench { .. }
        | Load::Connect { .. }
        | Load::WideRow { .. }
        | Load::Burst { .. }
        | Load::Walled { .. } => real::pgbench(arena, plan, step),
        Load::Sysbench { script, .. } => real::sysbench(arena, plan, step, script),
        Load::Copy { direction, login } => bulk::copy(arena, plan, step.target, direction, login),
        Load::Crowd { .. } | Load::Canned { .. } | Load::Churn { .. } => {
            own::closed_loop(arena, plan, step, load_threads)
        }
        Load::Memory { clients } => own::memory(arena, step.target, clients),
    };
    if for_the_step {
        arena.stop_target(step.target);
    }
    if step.load.needs_postgres() && (step.target.is_one_to_one() || for_the_step) {
        await_servers_gone(arena, &step.target.role())?;
    }
    // A step that was cut short by a signal is no result.
    arena.stop.check()?;
    outcome
}

/// Why a step is not worth its time: what it would show is known. A scenario shows it all the same.
fn beyond(arena: &Arena, step: Step) -> Option<String> {
    let (clients, wall) = (step.load.clients(), arena.setup.connections_max);
    let files = 2 * clients as u64 + FILES_SPARE;
    if step.target.has_two_sockets_a_client() && files > arena.files_max {
        return Some(format!("needs two open files a client, and the limit is {}", arena.files_max));
    }
    if arena.shows_walls || !step.load.needs_postgres() {
        return None;
    }
    if step.target.is_one_to_one() && clients >= wall {
        return Some(format!("needs a server connection a client, max_connections={wall}"));
    }
    let children = arena.setup.pgpool_children(clients);
    (step.target == Kind::Pgpool2 && clients > children).then(|| {
        format!("serves a client a child, and max_connections={wall} has room for {children} children")
    })
}

/// The watch over a target under a load.
fn watch(arena: &mut Arena, kind: Kind, with_servers: bool) -> Result<Watch, BenchError> {
    let (pid, role) = match arena.target(kind) {
        Some(target) => (target.pid(), target.postgres().map(|access| access.user.clone())),
        None => (None, None),
    };
    let postgres = arena.postgres.as_ref().filter(|_| with_servers);
    let session = postgres.map(|postgres| postgres.session()).transpose()?;
    Ok(Watch::begin(Watched { pid, servers: session.zip(role) }))
}

/// PostgreSQL ends its sessions a little after their clients; the next step must not run into its limit.
fn await_servers_gone(arena: &Arena, role: &str) -> Result<(), BenchError> {
    let Some(postgres) = &arena.postgres else { return Ok(()) };
    let mut session = postgres.session()?;
    let until = Instant::now() + Duration::from_secs(10);
    while servers_of(&mut session, role).is_some_and(|count| count > 0) && Instant::now() < until {
        arena.stop.check()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
