//! The loads that pgbench and sysbench put on: which command line a load is, and what becomes of its words.

use super::{Measurement, Outcome, watch};
use crate::arena::Arena;
use crate::error::BenchError;
use crate::host;
use crate::options::Mode;
use crate::pgbench::{Amount, Pgbench, Run};
use crate::plan::load::WIDE_ROW_BYTES;
use crate::plan::{Load, Login, Oltp, Plan, Script, Step};
use crate::sysbench::{self, Sysbench};
use std::time::Duration;

/// What a load means to pgbench.
struct Orders {
    script: Script,
    mode: Mode,
    login: Login,
    reconnect: bool,
    amount: Amount,
    threads: usize,
}

fn orders(load: Load, seconds: u32) -> Option<Orders> {
    let few = (host::cores() / 2).clamp(1, 4);
    let usual = Orders {
        script: Script::Select,
        mode: Mode::Simple,
        login: Login::Plain,
        reconnect: false,
        amount: Amount::Seconds(seconds),
        threads: few,
    };
    // pgbench prepares while its whole thread waits. Where its other clients hold all servers in transactions that
    // only this thread could end, that is for ever; so each client has a thread of its own.
    let threads_for = |script, mode| {
        let may_lock_itself = script == Script::TpcB && mode == Mode::Prepared;
        if may_lock_itself { load.clients() } else { few }
    };
    Some(match load {
        Load::Pgbench { script, mode, .. } => {
            Orders { script, mode, threads: threads_for(script, mode), ..usual }
        }
        Load::Connect { clients, script, mode, login } => {
            // A thread of pgbench waits for each of its logins, so as many log in at once as it has threads. The
            // published TPC-B with -C had one.
            let threads = if script == Script::TpcB { 1 } else { clients.min(100) };
            Orders { script, mode, login, reconnect: true, threads, ..usual }
        }
        Load::WideRow { login, .. } => Orders { script: Script::WideRow, login, ..usual },
        Load::Burst { each, .. } => Orders { amount: Amount::Each(each), threads: 20, ..usual },
        Load::Walled { .. } => {
            let (script, mode) = (Script::TpcB, Mode::Prepared);
            Orders { script, mode, threads: threads_for(script, mode), ..usual }
        }
        _ => return None,
    })
}

/// Runs pgbench.
pub fn pgbench(arena: &mut Arena, plan: &Plan, step: Step) -> Result<Outcome, BenchError> {
    let Some(orders) = orders(step.load, plan.seconds) else {
        return Ok(Outcome::LeftOut("pgbench knows no such load".to_owned()));
    };
    let Some(access) = arena.target(step.target).and_then(|target| target.postgres().cloned()) else {
        return Ok(Outcome::LeftOut("PostgreSQL is not behind it".to_owned()));
    };
    let watch = watch(arena, step.target, true)?;
    let ran = Pgbench {
        programs: &arena.programs,
        logs: arena.scratch.path().join("pgbench"),
        cores: arena.cores_for_load(),
        access: &access,
        login: orders.login,
        script: orders.script,
        scale: arena.setup.scale,
        clients: step.load.clients(),
        threads: orders.threads,
        amount: orders.amount,
        spare: step.load.spare(),
        mode: orders.mode,
        reconnect: orders.reconnect,
    }
    .run(&arena.stop);
    let seen = watch.end();
    let run: Run = ran?;
    let measured = Measurement {
        tps: run.tps,
        cpu: run.window.and_then(|(from, until)| seen.cpu_between(from, until)),
        rss_peak_kib: seen.rss_peak_kib,
        servers_max: seen.servers_max,
        connect_mean: run.connect_mean,
        connect_all: run.connect_all,
        statements: run.statements,
        bytes_per_second: match orders.script {
            Script::WideRow => run.tps.map(|tps| tps * WIDE_ROW_BYTES as f64),
            _ => None,
        },
        trouble: run.trouble,
        ..Measurement::default()
    };
    Ok(measured.timed(&run.latencies).outcome())
}

/// Runs sysbench.
pub fn sysbench(arena: &mut Arena, plan: &Plan, step: Step, script: Oltp) -> Result<Outcome, BenchError> {
    let Some(access) = arena.target(step.target).and_then(|target| target.postgres().cloned()) else {
        return Ok(Outcome::LeftOut("PostgreSQL is not behind it".to_owned()));
    };
    let log = arena.scratch.path().join("sysbench.log");
    let one = Sysbench {
        binary: &arena.sysbench,
        cores: arena.cores_for_load(),
        access: &access,
        script,
        clients: step.load.clients(),
        seconds: plan.seconds,
        log: log.clone(),
    };
    let limit = Duration::from_secs(plan.seconds.into()) + step.load.spare();
    let program = one.program();
    let from = crate::usage::UnixNanos::now();
    let watch = watch(arena, step.target, true)?;
    let finished = program.finish(&log, limit, &arena.stop);
    let until = crate::usage::UnixNanos::now();
    let seen = watch.end();
    let run = sysbench::Run::from_words(&finished?, limit);
    let measured = Measurement {
        transactions: run.transactions,
        tps: run.tps,
        latency_mean: run.mean,
        // sysbench tells one percentile; those that it does not tell are not made up.
        latency_p99: run.p99,
        cpu: seen.cpu_between(from, until),
        rss_peak_kib: seen.rss_peak_kib,
        servers_max: seen.servers_max,
        trouble: run.trouble,
        ..Measurement::default()
    };
    Ok(measured.outcome())
}

#[cfg(test)]
mod tests;
