//! How two runs differ in what should be alike: machine, programs, settings.

use crate::report::Report;
use std::collections::BTreeSet;

/// Each difference as a line.
pub fn warnings(before: &Report, after: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, one: String, two: String| {
        if one != two {
            warnings.push(format!("{what}: {one}, then {two}"));
        }
    };
    let named = |word: &Option<String>| word.clone().unwrap_or_else(|| "unknown".to_owned());
    let (one, two) = (&before.machine, &after.machine);
    differ("other machine, cores", one.cores.to_string(), two.cores.to_string());
    differ("other machine, processor", named(&one.cpu), named(&two.cpu));
    differ("other kernel", one.kernel.clone(), two.kernel.clone());
    differ(
        "other TCP congestion control",
        one.tcp_congestion_control.clone(),
        two.tcp_congestion_control.clone(),
    );
    differ("rounds", before.rounds.to_string(), after.rounds.to_string());
    differ("seconds", before.seconds.to_string(), after.seconds.to_string());
    differ("pgbench's mode", before.mode.clone(), after.mode.clone());
    differ("pgbench's scale", before.scale.to_string(), after.scale.to_string());
    differ("pool size", before.pool_size.to_string(), after.pool_size.to_string());
    let limit =
        |report: &Report| report.max_connections.map_or("as set".to_owned(), |limit| limit.to_string());
    differ("max_connections", limit(before), limit(after));
    differ("pinned to cores", before.pinned.to_string(), after.pinned.to_string());
    let settings = |report: &Report| report.postgres_settings.clone().unwrap_or_default().join(", ");
    differ("PostgreSQL's settings", settings(before), settings(after));
    let programs: BTreeSet<_> = before.programs.keys().chain(after.programs.keys()).collect();
    for program in programs {
        if let (Some(one), Some(two)) = (before.programs.get(program), after.programs.get(program)) {
            differ(program, named(one), named(two));
        }
    }
    for (target, ini) in &before.configurations {
        let other = after.configurations.get(target);
        if other.is_some_and(|other| without_ports(ini) != without_ports(other)) {
            warnings.push(format!("{target} was configured otherwise"));
        }
    }
    warnings
}

/// Ports are drawn anew by every run, and so are the names of files.
fn without_ports(ini: &str) -> Vec<String> {
    let word = |word: &str| match word.split_once("port=") {
        Some((before, _)) => format!("{before}port="),
        None => word.to_owned(),
    };
    ini.lines().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect()
}
