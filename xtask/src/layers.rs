//! `cargo xtask layers`: who may know whom, as a table, compared with what cargo says.
//!
//! A new arrow between crates is a decision: record it in docs/decisions and add it here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::workspace::{self, list, text};

/// What a crate may depend on. Tests may use more: [`FOR_TESTS`] and whatever is in a lower tier.
struct Layer {
    name: &'static str,
    tier: u8,
    ours: &'static [&'static str],
    outside: &'static [&'static str],
}

const fn layer(
    tier: u8,
    name: &'static str,
    ours: &'static [&'static str],
    outside: &'static [&'static str],
) -> Layer {
    Layer { name, tier, ours, outside }
}

const LAYERS: [Layer; 25] = [
    // 0: words
    layer(0, "model", &[], &[]),
    layer(0, "wire", &["model"], &[]),
    layer(0, "sql", &["model"], &[]),
    layer(0, "stats", &["model"], &[]),
    // 1: machines
    layer(1, "auth", &["model"], AUTH),
    layer(1, "settings", &["model"], &[]),
    layer(1, "client", &["model", "wire", "sql", "auth"], &["rustc-hash"]),
    layer(1, "server", &["model", "wire", "auth"], &["rustc-hash"]),
    layer(1, "pool", &["model"], &["rustc-hash"]),
    layer(1, "cluster", &["model"], &[]),
    layer(1, "patroni", &[], &["serde", "serde_json"]),
    layer(1, "console", &["model", "stats", "wire"], &[]),
    layer(1, "metrics", &["console", "stats"], &[]),
    layer(1, "reads", &["sql"], &["pg_query"]),
    // 2: compositions
    layer(2, "link", &["model", "wire", "sql", "client", "server"], &["rustc-hash"]),
    layer(2, "hub", HUB_OURS, &["rustc-hash", "hashbrown"]),
    // 3: input and output, threads and locks
    layer(3, "baton", &[], &["loom", "parking_lot"]),
    layer(3, "volley", &[], &["io-uring", "libc"]),
    layer(3, "shell", SHELL_OURS, SHELL_OUTSIDE),
    // 4: programs
    layer(4, "howdah", &["bench", "metrics", "model", "reads", "settings", "shell", "sql"], &["clap"]),
    layer(4, "bench", &["auth", "model", "volley", "wire"], BENCH_OUTSIDE),
    layer(4, "sim", SHELL_OURS, &[]),
    layer(4, "fuzz", PURE, &["rustix"]),
    layer(4, "testkit", &[], &["libc", "postgres-protocol", "rcgen", "rustls", "sha2"]),
    layer(4, "xtask", &["testkit"], &["clap", "serde_json"]),
];

const PURE: &[&str] = &[
    "model", "wire", "sql", "stats", "auth", "settings", "client", "server", "pool", "cluster", "patroni",
    "console", "metrics", "reads", "link", "hub",
];
const HUB_OURS: &[&str] = &["model", "stats", "settings", "auth", "pool", "cluster", "patroni", "console"];
const SHELL_OURS: &[&str] = &[
    "model", "wire", "sql", "stats", "auth", "settings", "client", "server", "pool", "cluster", "patroni",
    "console", "metrics", "reads", "link", "hub", "baton", "volley",
];
const SHELL_OUTSIDE: &[&str] = &[
    "getrandom",
    "http-body-util",
    "hyper",
    "hyper-util",
    "jiff",
    "libc",
    "mio",
    "parking_lot",
    "prometheus-client",
    "rustls",
    "rustls-pki-types",
    "rustix",
    "sha2",
    "socket2",
    "tokio",
    "tokio-rustls",
    "tracing",
    "x509-parser",
];
const BENCH_OUTSIDE: &[&str] =
    &["clap", "jiff", "libc", "mio", "plotters", "rustls", "serde", "serde_json", "tokio"];
const AUTH: &[&str] = &["base64", "hmac", "md-5", "pbkdf2", "sha2", "stringprep", "subtle", "zeroize"];

/// What tests may use in any crate.
const FOR_TESTS: &[&str] = &["loom", "postgres-protocol", "proptest", "testkit"];

/// What no crate of the tiers 0 to 2 may reach, by any way.
const OUTER_WORLD: &[&str] =
    &["getrandom", "jiff", "libc", "mio", "parking_lot", "rand", "rustls", "socket2", "tokio", "tracing"];

pub fn run() -> Result<(), String> {
    let metadata = workspace::metadata()?;
    let mut faults = Vec::new();
    // What is in third/ is a dependency like others, only nearer.
    let ids: BTreeSet<&str> = list(&metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    let members: Vec<&Value> =
        list(&metadata, "packages").iter().filter(|package| ids.contains(text(package, "id"))).collect();
    let names: BTreeSet<&str> = members.iter().map(|package| text(package, "name")).collect();
    for package in &members {
        let name = text(package, "name");
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            faults.push(format!("{name} is in no layer; add it to xtask/src/layers.rs"));
            continue;
        };
        direct_faults(layer, package, &names, &mut faults);
    }
    indirect_faults(&metadata, &mut faults);
    if faults.is_empty() {
        println!("{} crates depend only on what their layers may know", members.len());
        return Ok(());
    }
    Err(faults.join("\n"))
}

fn direct_faults(layer: &Layer, package: &Value, members: &BTreeSet<&str>, faults: &mut Vec<String>) {
    for dependency in list(package, "dependencies") {
        let (on, kind) = (text(dependency, "name"), text(dependency, "kind"));
        let ours = members.contains(on);
        let listed = if ours { layer.ours.contains(&on) } else { layer.outside.contains(&on) };
        let lower = LAYERS.iter().any(|other| other.name == on && other.tier < layer.tier);
        let for_tests = kind == "dev" && (FOR_TESTS.contains(&on) || lower);
        if !listed && !for_tests {
            let how = if kind == "dev" { " in its tests" } else { "" };
            faults.push(format!("{} must not know {on}{how}", layer.name));
        }
    }
}

/// Follows all ordinary dependencies of the pure crates.
fn indirect_faults(metadata: &Value, faults: &mut Vec<String>) {
    let names: BTreeMap<&str, &str> = list(metadata, "packages")
        .iter()
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").iter().map(|node| (text(node, "id"), node)).collect();
    let pure = LAYERS.iter().filter(|layer| layer.tier <= 2);
    for layer in pure {
        let Some(start) = nodes.keys().find(|id| names.get(*id) == Some(&layer.name)) else { continue };
        let mut known = BTreeSet::from([*start]);
        let mut open = vec![*start];
        while let Some(id) = open.pop() {
            let dependencies = nodes.get(id).map_or(&[][..], |node| list(node, "deps"));
            let ordinary = dependencies
                .iter()
                .filter(|dependency| list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null()));
            for dependency in ordinary {
                let on = text(dependency, "pkg");
                let name = names.get(on).copied().unwrap_or_default();
                if OUTER_WORLD.contains(&name) {
                    let by = names.get(id).copied().unwrap_or_default();
                    faults.push(format!("{} must not reach {name} (by way of {by})", layer.name));
                }
                if known.insert(on) {
                    open.push(on);
                }
            }
        }
    }
}
