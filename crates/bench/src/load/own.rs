//! The loads of our own generator: the closed loop, the coming and going, and the idle crowd.

use super::{Measurement, Outcome, watch};
use crate::arena::Arena;
use crate::churn;
use crate::error::BenchError;
use crate::generator::{self, Door, Swarm, Window};
use crate::plan::{Load, Plan, Step};
use crate::session::{Failure, Session};
use crate::target::{CANNED_DATABASE, Kind, Target};
use crate::usage;
use std::time::Duration;

const WARM_UP: Duration = Duration::from_millis(300);
const QUERY: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = 4711;";

fn canned_door(target: &Target) -> Option<Door> {
    Some(Door {
        address: target.canned()?,
        user: target.kind.role(),
        database: CANNED_DATABASE.to_owned(),
        sql: QUERY.to_owned(),
    })
}

fn postgres_door(target: &Target) -> Result<Option<Door>, BenchError> {
    let Some(access) = target.postgres() else { return Ok(None) };
    Ok(Some(Door {
        address: access.address()?,
        user: access.user.clone(),
        database: access.database.clone(),
        sql: QUERY.to_owned(),
    }))
}

/// Every client with one query under way, always; or each on a visit with one query.
pub fn closed_loop(
    arena: &mut Arena,
    plan: &Plan,
    step: Step,
    threads: usize,
) -> Result<Outcome, BenchError> {
    let on_postgres = matches!(step.load, Load::Crowd { .. });
    let door = match arena.target(step.target) {
        Some(target) if on_postgres => postgres_door(target)?,
        Some(target) => canned_door(target),
        None => None,
    };
    let Some(door) = door else {
        return Ok(Outcome::LeftOut("there is no such server behind it".to_owned()));
    };
    // Refused otherwise than by asking for a password: the load itself will tell.
    if let Err(Failure::AsksForPassword) = Session::open(door.address, &door.user, &door.database) {
        return Ok(Outcome::LeftOut("asks for a password, and our own clients have none".to_owned()));
    }
    let window = Window { warm_up: WARM_UP, measured: Duration::from_secs(plan.seconds.into()) };
    let watch = watch(arena, step.target, on_postgres)?;
    let clients = step.load.clients();
    let ran = match step.load {
        Load::Churn { .. } => churn::run(&door, clients, threads, window, &arena.stop),
        _ => generator::closed_loop(&door, clients, threads, window, &arena.stop),
    };
    let seen = watch.end();
    let tally = ran.map_err(BenchError::io("generating load"))?;
    let measured = Measurement {
        tps: Some(tally.latencies.count() as f64 / window.measured.as_secs_f64()),
        cpu: seen.cpu_between(tally.from, tally.until),
        rss_peak_kib: seen.rss_peak_kib,
        servers_max: seen.servers_max,
        trouble: tally.trouble,
        ..Measurement::default()
    };
    Ok(measured.timed(&tally.latencies).outcome())
}

/// On a process of its own: what an earlier load left allocated would hide what idle clients cost.
pub fn memory(arena: &mut Arena, kind: Kind, clients: usize) -> Result<Outcome, BenchError> {
    const LIMIT: Duration = Duration::from_secs(120);
    let target = arena.start_target(kind, &format!("{kind}-memory"))?;
    let (Some(pid), Some(door)) = (target.pid(), canned_door(&target)) else {
        return Ok(Outcome::LeftOut("it has no process".to_owned()));
    };
    let stop = arena.stop.clone();
    let doing = || BenchError::io("opening idle clients");
    // Warm: pools, buffers and threads that do not belong to any one client are there already.
    let warm = |clients: usize| -> Result<Swarm, BenchError> {
        let mut swarm = Swarm::log_in(&door, clients, LIMIT, &stop).map_err(doing())?;
        swarm.ask_once(LIMIT, &stop).map_err(doing())?;
        stop.check()?;
        Ok(swarm)
    };
    drop(warm(arena.setup.sizes.pool_size)?);
    let before = usage::anonymous_kib(pid);
    let mut swarm = warm(clients)?;
    let after = usage::anonymous_kib(pid);
    let trouble = swarm.take_trouble();
    let logged_in = swarm.logged_in();
    let grown = before.zip(after).map(|(before, after)| after as f64 - before as f64);
    let measured = Measurement {
        transactions: logged_in as u64,
        bytes_per_client: grown.map(|kib| kib * 1_024.0 / logged_in.max(1) as f64),
        rss_peak_kib: usage::rss_peak_kib(pid),
        trouble,
        ..Measurement::default()
    };
    Ok(measured.outcome())
}
