//! The report for programs: the machine, the programs, the settings, every figure of every round.

use crate::arena::Arena;
use crate::load::{Measurement, Outcome};
use crate::options::Options;
use crate::plan::{Load, Plan};
use crate::postgres::Postgres;
use crate::summary::{Results, Row, Section, Spread};
use crate::target::Kind;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The form of the file; grows with it.
const FORMAT: u32 = 1;

/// What a run was made with and on, kept before it starts.
pub fn setting(options: &Options, plan: &Plan, arena: &Arena, seed: u64) -> Value {
    let configurations: Map<_, _> = plan
        .targets
        .iter()
        .filter_map(|&kind| Some((kind.to_string(), Value::from(arena.launch.configuration(kind)?))))
        .collect();
    let mut programs = Map::new();
    let mut version = |name: &str, path: &Path, wanted: bool| {
        if wanted {
            programs.insert(name.to_owned(), version_of(path).into());
        }
    };
    version("postgres", &arena.programs.join("postgres"), arena.postgres.is_some());
    version("pgbench", &arena.programs.join("pgbench"), arena.postgres.is_some());
    let binaries = &arena.launch.binaries;
    version("pgbouncer", &binaries.pgbouncer, plan.targets.contains(&Kind::Pgbouncer));
    version("haproxy", &binaries.haproxy, plan.targets.contains(&Kind::Haproxy));
    version("pgpool2", &binaries.pgpool, plan.targets.contains(&Kind::Pgpool2));
    version("sysbench", &arena.sysbench, plan.loads.iter().any(|load| matches!(load, Load::Sysbench { .. })));
    let howdah = plan.targets.iter().any(|kind| matches!(kind, Kind::Howdah { .. }));
    version("howdah", &binaries.howdah, howdah);
    json!({
        "format": FORMAT,
        "machine": machine(),
        "programs": programs,
        "command": std::env::args().skip(1).collect::<Vec<_>>(),
        "seed": seed,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "scale": arena.setup.scale,
        "pool_size": arena.setup.sizes.pool_size,
        "max_connections": arena.setup.connections_max,
        "pinned": options.pin,
        "postgres_settings": options.postgres.is_none().then(|| Postgres::settings(arena.setup.connections_max)),
        "configurations": configurations,
    })
}

/// The whole report.
pub fn report(mut setting: Value, sections: &[Section], results: &Results) -> Value {
    setting["summary"] = sections.iter().map(section_value).collect();
    setting["steps"] = results
        .iter()
        .map(|(step, outcome)| {
            json!({
                "round": step.round,
                "load": step.load.word(),
                "clients": step.load.clients(),
                "target": step.target.to_string(),
                "outcome": outcome_value(outcome),
            })
        })
        .collect();
    setting
}

fn section_value(section: &Section) -> Value {
    json!({
        "load": section.load.word(),
        "clients": section.load.clients(),
        "title": section.load.title(),
        "targets": section.rows.iter().map(row_value).collect::<Vec<_>>(),
    })
}

fn row_value(row: &Row) -> Value {
    json!({
        "target": row.target.to_string(),
        "tps": spread_value(row.tps),
        "p50_s": spread_value(row.p50),
        "p99_s": spread_value(row.p99),
        "connect_s": spread_value(row.connect),
        "cpu_s_per_1000": spread_value(row.cpu),
        "cpu_user_s_per_1000": spread_value(row.cpu_user),
        "cpu_to_pgbouncer": spread_value(row.cpu_ratio),
        "tps_to_pgbouncer": spread_value(row.tps_ratio),
        "bytes_per_client": spread_value(row.bytes_per_client),
        "rss_peak_kib": row.rss_peak_kib,
        "servers_max": row.servers_max,
        "errors": row.errors,
        "remark": row.remark,
        "noisy": row.is_noisy(),
    })
}

fn spread_value(spread: Option<Spread>) -> Value {
    spread.map_or(
        Value::Null,
        |Spread { median, min, max }| json!({ "median": median, "min": min, "max": max }),
    )
}

fn outcome_value(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Measured(one) => measurement_value(one),
        Outcome::Failed(why) => json!({ "failed": why }),
        Outcome::LeftOut(why) => json!({ "left_out": why }),
    }
}

fn measurement_value(one: &Measurement) -> Value {
    let latency = one.latency.map(|seen| {
        json!({
            "p50_s": seen.p50.as_secs_f64(),
            "p90_s": seen.p90.as_secs_f64(),
            "p99_s": seen.p99.as_secs_f64(),
            "p99.9_s": seen.p999.as_secs_f64(),
            "max_s": seen.max.as_secs_f64(),
        })
    });
    let cpu = one.cpu.map(|cpu| {
        json!({
            "total_s": cpu.total.as_secs_f64(),
            "user_s": cpu.user.as_secs_f64(),
            "system_s": cpu.system.as_secs_f64(),
        })
    });
    json!({
        "transactions": one.transactions,
        "tps": one.tps,
        "latency": latency,
        "cpu": cpu,
        "cpu_s_per_1000": one.cpu_per_1000(),
        "latency_mean_s": one.latency_mean.map(|mean| mean.as_secs_f64()),
        "latency_deviation_s": one.latency_deviation.map(|deviation| deviation.as_secs_f64()),
        "latency_p99_s": one.latency_p99.map(|p99| p99.as_secs_f64()),
        "statements": one.statements.iter().map(|(text, mean)| json!({
            "statement": text,
            "mean_s": mean.as_secs_f64(),
        })).collect::<Vec<_>>(),
        "connect_all_s": one.connect_all.map(|all| all.as_secs_f64()),
        "bytes_per_second": one.bytes_per_second,
        "errors_by_state": one.errors_by_state,
        "connect_mean_s": one.connect_mean.map(|mean| mean.as_secs_f64()),
        "bytes_per_client": one.bytes_per_client,
        "rss_peak_kib": one.rss_peak_kib,
        "servers_max": one.servers_max,
        "errors": one.trouble.count,
        "first_error": one.trouble.first,
    })
}

fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "cores": crate::host::cores(),
        "cpu": model.map(|(_, model)| model),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "tcp_congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "load_before": read("/proc/loadavg"),
    })
}

fn version_of(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().next().map(str::to_owned)
}
