//! Fills in the report: the machine, the programs, the settings before a run; every step's figures after it.

use crate::arena::Arena;
use crate::load::{Measurement, Outcome};
use crate::options::Options;
use crate::plan::{Load, Plan};
use crate::postgres::Postgres;
use crate::report::{self, Cpu, FORMAT, Figures, Latency, Machine, Report};
use crate::summary::Results;
use crate::target::Kind;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a run was made with and on, kept before it starts.
pub fn setting(options: &Options, plan: &Plan, arena: &Arena, seed: u64) -> Report {
    let configurations = plan
        .targets
        .iter()
        .filter_map(|&kind| Some((kind.to_string(), arena.launch.configuration(kind)?)))
        .collect();
    let mut programs = BTreeMap::new();
    let mut version = |name: &str, path: &Path, wanted: bool| {
        if wanted {
            programs.insert(name.to_owned(), version_of(path));
        }
    };
    version("postgres", &arena.programs.join("postgres"), arena.postgres.is_some());
    version("pgbench", &arena.programs.join("pgbench"), arena.postgres.is_some());
    let binaries = &arena.launch.binaries;
    version("pgbouncer", &binaries.pgbouncer, plan.targets.contains(&Kind::Pgbouncer));
    version("haproxy", &binaries.haproxy, plan.targets.contains(&Kind::Haproxy));
    version("pgpool2", &binaries.pgpool, plan.targets.contains(&Kind::Pgpool2));
    version("sysbench", &arena.sysbench, plan.loads.iter().any(|load| matches!(load, Load::Sysbench { .. })));
    let howdah = plan.targets.iter().any(|kind| kind.is_howdah());
    version("howdah", &binaries.howdah, howdah);
    Report {
        format: FORMAT,
        started: Some(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        machine: machine(),
        programs,
        command: std::env::args().skip(1).collect(),
        seed,
        rounds: plan.rounds,
        seconds: plan.seconds,
        mode: modes(options),
        scale: arena.setup.scale,
        pool_size: arena.setup.sizes.pool_size,
        max_connections: Some(arena.setup.connections_max),
        pinned: options.pin,
        postgres_settings: options
            .postgres
            .is_none()
            .then(|| Postgres::settings(arena.setup.connections_max)),
        configurations,
        baseline: options.baseline.clone(),
        notes: Vec::new(),
        beside: None,
        steps: Vec::new(),
    }
}

/// What was asked for; a load's title says what it got.
fn modes(options: &Options) -> String {
    match &options.modes[..] {
        [] => "each load's own".to_owned(),
        modes => modes.iter().map(|mode| mode.word()).collect::<Vec<_>>().join(", "),
    }
}

/// The steps of a run, whole or broken off, as the report has them.
pub fn steps(results: &Results) -> Vec<report::Step> {
    let step = |(step, outcome): &(crate::plan::Step, Outcome)| report::Step {
        round: step.round,
        load: step.load.word(),
        clients: step.load.clients(),
        title: step.load.title(),
        target: step.target.to_string(),
        outcome: match outcome {
            Outcome::Measured(one) => report::Outcome::Measured(Box::new(figures(one))),
            Outcome::Failed(why) => report::Outcome::Failed { failed: why.clone() },
            Outcome::LeftOut(why) => report::Outcome::LeftOut { left_out: why.clone() },
        },
    };
    results.iter().map(step).collect()
}

fn figures(one: &Measurement) -> Figures {
    let latency = one.latency.map(|seen| Latency {
        p50_s: seen.p50.as_secs_f64(),
        p90_s: seen.p90.as_secs_f64(),
        p99_s: seen.p99.as_secs_f64(),
        p999_s: seen.p999.as_secs_f64(),
        max_s: seen.max.as_secs_f64(),
    });
    let cpu = one.cpu.map(|cpu| Cpu {
        total_s: cpu.total.as_secs_f64(),
        user_s: cpu.user.as_secs_f64(),
        system_s: cpu.system.as_secs_f64(),
    });
    Figures {
        transactions: one.transactions,
        tps: one.tps,
        latency,
        cpu,
        cpu_s_per_1000: one.cpu_per_1000(),
        connect_mean_s: one.connect_mean.map(|mean| mean.as_secs_f64()),
        bytes_per_client: one.bytes_per_client,
        rss_peak_kib: one.rss_peak_kib,
        servers_max: one.servers_max,
        errors: one.trouble.count,
        first_error: one.trouble.first.clone(),
        latency_p99_s: one.latency_p99.map(|p99| p99.as_secs_f64()),
        latency_mean_s: one.latency_mean.map(|mean| mean.as_secs_f64()),
        latency_deviation_s: one.latency_deviation.map(|deviation| deviation.as_secs_f64()),
        statements: one.statements.iter().map(statement).collect(),
        connect_all_s: one.connect_all.map(|all| all.as_secs_f64()),
        bytes_per_second: one.bytes_per_second,
        errors_by_state: one.errors_by_state.clone(),
    }
}

fn statement((text, mean): &(String, Duration)) -> report::Statement {
    report::Statement { statement: text.clone(), mean_s: mean.as_secs_f64() }
}

fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Machine {
        cores: crate::host::cores(),
        cpu: model.map(|(_, model)| model.to_owned()),
        kernel: read("/proc/sys/kernel/osrelease"),
        tcp_congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
        load_before: read("/proc/loadavg"),
    }
}

fn version_of(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().next().map(str::to_owned)
}
