//! One step: a target under a load, and what is to be said of it.

use crate::arena::Arena;
use crate::error::BenchError;
use crate::generator::{self, Door, Swarm, Trouble, Window};
use crate::histogram::Percentiles;
use crate::host;
use crate::pgbench::Pgbench;
use crate::plan::{Load, Plan, Step};
use crate::postgres::{CONNECTIONS_MAX, DATABASE};
use crate::target::{CANNED_DATABASE, Kind, Target};
use crate::usage::{self, Cpu};
use crate::watch::{Watch, Watched, servers_of};
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
    /// The target's own, for those transactions.
    pub cpu: Option<Cpu>,
    /// The most memory the target held.
    pub rss_peak_kib: Option<u64>,
    /// The most connections PostgreSQL saw of it.
    pub servers_max: Option<u32>,
    /// Mean time to connect.
    pub connect_mean: Option<Duration>,
    /// Anonymous memory a client.
    pub bytes_per_client: Option<f64>,
    /// What went wrong.
    pub trouble: Trouble,
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
}

const WARM_UP: Duration = Duration::from_millis(300);
const QUERY: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = 4711;";

/// Runs one step.
pub fn run(arena: &mut Arena, plan: &Plan, step: Step, load_threads: usize) -> Result<Outcome, BenchError> {
    arena.stop.check()?;
    arena.check_servers()?;
    if let Load::Memory { clients } = step.load {
        return memory(arena, step.target, clients);
    }
    if step.load.needs_postgres() && step.target.is_one_to_one() && step.load.clients() >= CONNECTIONS_MAX {
        return Ok(Outcome::LeftOut(format!(
            "needs a server connection a client, max_connections={CONNECTIONS_MAX}"
        )));
    }
    let pid = match arena.target(step.target).map(|target| (target.check_alive(), target.pid())) {
        Some((Ok(()), pid)) => pid,
        Some((Err(why), _)) => return Ok(Outcome::Failed(why)),
        None => return Ok(Outcome::LeftOut("it is not running".to_owned())),
    };
    let outcome = match step.load {
        Load::Pgbench { clients } => pgbench(arena, plan, step.target, pid, (clients, false))?,
        Load::Connect { clients } => pgbench(arena, plan, step.target, pid, (clients, true))?,
        Load::Canned { clients } => canned(arena, plan, step.target, pid, (clients, load_threads))?,
        Load::Memory { .. } => return memory(arena, step.target, step.load.clients()),
    };
    // A step that was cut short by a signal is no result.
    arena.stop.check()?;
    Ok(outcome)
}

fn pgbench(
    arena: &mut Arena,
    plan: &Plan,
    kind: Kind,
    pid: Option<u32>,
    (clients, reconnect): (usize, bool),
) -> Result<Outcome, BenchError> {
    let role = kind.role();
    let Some(address) = arena.target(kind).and_then(|target| target.postgres()) else {
        return Ok(Outcome::LeftOut("PostgreSQL is not behind it".to_owned()));
    };
    let session = arena.postgres.as_ref().map(|postgres| postgres.session(DATABASE)).transpose()?;
    let watch = Watch::begin(Watched { pid, servers: session.map(|session| (session, role.clone())) });
    let ran = Pgbench {
        programs: &arena.programs,
        logs: arena.scratch.path().join("pgbench"),
        cores: arena.cores_for_load(),
        port: address.port(),
        role: &role,
        clients,
        threads: (host::cores() / 2).clamp(1, 4),
        seconds: plan.seconds,
        mode: plan.mode,
        reconnect,
    }
    .run(&arena.stop);
    let seen = watch.end();
    let run = ran?;
    if kind.is_one_to_one() {
        await_servers_gone(arena, &role)?;
    }
    if run.latencies.count() == 0 {
        return Ok(Outcome::Failed(run.trouble.first.unwrap_or_else(|| "no transaction ended".to_owned())));
    }
    Ok(Outcome::Measured(Box::new(Measurement {
        transactions: run.latencies.count(),
        tps: run.tps,
        latency: run.latencies.percentiles(),
        cpu: run.window.and_then(|(from, until)| seen.cpu_between(from, until)),
        rss_peak_kib: seen.rss_peak_kib,
        servers_max: seen.servers_max,
        connect_mean: run.connect_mean,
        bytes_per_client: None,
        trouble: run.trouble,
    })))
}

/// PostgreSQL ends its sessions a little after their clients; the next step must not run into its limit.
fn await_servers_gone(arena: &Arena, role: &str) -> Result<(), BenchError> {
    let Some(postgres) = &arena.postgres else { return Ok(()) };
    let mut session = postgres.session(DATABASE)?;
    let until = Instant::now() + Duration::from_secs(10);
    while servers_of(&mut session, role).is_some_and(|count| count > 0) && Instant::now() < until {
        arena.stop.check()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn door(target: &Target) -> Door {
    Door {
        address: target.canned(),
        user: target.kind.role(),
        database: CANNED_DATABASE.to_owned(),
        sql: QUERY.to_owned(),
    }
}

fn canned(
    arena: &mut Arena,
    plan: &Plan,
    kind: Kind,
    pid: Option<u32>,
    (clients, threads): (usize, usize),
) -> Result<Outcome, BenchError> {
    let stop = arena.stop.clone();
    let Some(door) = arena.target(kind).map(|target| door(target)) else {
        return Ok(Outcome::LeftOut("it is not running".to_owned()));
    };
    let window = Window { warm_up: WARM_UP, measured: Duration::from_secs(plan.seconds.into()) };
    let watch = Watch::begin(Watched { pid, servers: None });
    let ran = generator::closed_loop(&door, clients, threads, window, &stop);
    let seen = watch.end();
    let tally = ran.map_err(BenchError::io("generating load"))?;
    let transactions = tally.latencies.count();
    if transactions == 0 {
        return Ok(Outcome::Failed(tally.trouble.first.unwrap_or_else(|| "no transaction ended".to_owned())));
    }
    Ok(Outcome::Measured(Box::new(Measurement {
        transactions,
        tps: Some(transactions as f64 / window.measured.as_secs_f64()),
        latency: tally.latencies.percentiles(),
        cpu: seen.cpu_between(tally.from, tally.until),
        rss_peak_kib: seen.rss_peak_kib,
        trouble: tally.trouble,
        ..Measurement::default()
    })))
}

/// On a process of its own: what an earlier load left allocated would hide what idle clients cost.
fn memory(arena: &mut Arena, kind: Kind, clients: usize) -> Result<Outcome, BenchError> {
    const LIMIT: Duration = Duration::from_secs(120);
    let target = arena.start_target(kind, &format!("{kind}-memory"))?;
    let Some(pid) = target.pid() else {
        return Ok(Outcome::LeftOut("it has no process".to_owned()));
    };
    let (door, stop) = (door(&target), arena.stop.clone());
    let doing = || BenchError::io("opening idle clients");
    // Warm: pools, buffers and threads that do not belong to any one client are there already.
    let warm = |clients: usize| -> Result<Swarm, BenchError> {
        let mut swarm = Swarm::log_in(&door, clients, LIMIT, &stop).map_err(doing())?;
        swarm.ask_once(LIMIT, &stop).map_err(doing())?;
        stop.check()?;
        Ok(swarm)
    };
    drop(warm(arena.launch.pool_size)?);
    let before = usage::anonymous_kib(pid);
    let mut swarm = warm(clients)?;
    let after = usage::anonymous_kib(pid);
    let trouble = swarm.take_trouble();
    let logged_in = swarm.logged_in();
    if logged_in == 0 {
        return Ok(Outcome::Failed(trouble.first.unwrap_or_else(|| "nobody was let in".to_owned())));
    }
    let grown = before.zip(after).map(|(before, after)| after as f64 - before as f64);
    Ok(Outcome::Measured(Box::new(Measurement {
        transactions: logged_in as u64,
        bytes_per_client: grown.map(|kib| kib * 1_024.0 / logged_in as f64),
        rss_peak_kib: usage::rss_peak_kib(pid),
        trouble,
        ..Measurement::default()
    })))
}
