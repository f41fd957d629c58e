//! `cargo xtask ci`: everything that must be green before a change is taken, as one table of steps.

use std::process::Command;

use clap::Args;
use testkit::Version;

use crate::process::{Count, cargo, check, count_tests};
use crate::steps::Steps;
use crate::test::{BUILD, Reach, integration_tests, unit_tests};
use crate::{demo, documents, layers, setup, tidy, workspace};

#[derive(Args)]
pub struct Options {
    /// Run only the steps whose names have this text in them
    #[arg(long)]
    only: Option<String>,
}

/// A step: what it is called, and what it does.
type Step = (&'static str, fn() -> Count);

/// In this order; each builds on what the one before has built.
const STEPS: [Step; 16] = [
    ("what the machine needs", || verdict(setup::run())),
    ("format", || check(cargo(&["fmt", "--all", "--", "--check"]))),
    ("layers", || verdict(layers::run())),
    ("tidy", || verdict(tidy::run(&tidy::Options { list: false }))),
    ("clippy", || {
        check(cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    ("build", || check(cargo(&BUILD))),
    ("generated documents", generated_documents),
    ("unit and property tests", || unit_tests(None)),
    ("examples in the documentation", || count_tests(cargo(&["test", "--quiet", "--workspace", "--doc"]))),
    ("tests on PostgreSQL 15", || integration_tests(Version::V15.number(), Reach::All, None)),
    ("tests on PostgreSQL 18", || integration_tests(Version::V18.number(), Reach::Pooler, None)),
    ("locking protocol, every interleaving", loom),
    ("release build", || check(cargo(&["build", "--release", "-p", "howdah", "-p", "sim", "-p", "fuzz"]))),
    ("simulation", || released("sim", &["--seeds", "5000"])),
    ("fuzz of every decoder", || released("fuzz", &["--seconds", "5"])),
    ("demo", demo),
];

pub fn run(options: &Options) -> Result<(), String> {
    let mut steps = Steps::new();
    for (name, work) in STEPS {
        if options.only.as_ref().is_none_or(|part| name.contains(part.as_str())) {
            steps.run(name, work);
        }
    }
    steps.finish()
}

/// Runs a program as the step before has built it: `cargo run` would choose other features, and build anew.
fn released(program: &str, arguments: &[&str]) -> Count {
    match workspace::release_program(program) {
        Ok(path) => {
            let mut command = Command::new(path);
            command.args(arguments).current_dir(workspace::root());
            check(command)
        }
        Err(why) => verdict(Err(why)),
    }
}

/// By the pooler that was built for its tests.
fn generated_documents() -> Count {
    let binary = workspace::debug_program("howdah").ok();
    verdict(documents::run(&documents::Options { check: true, binary }))
}

fn demo() -> Count {
    let binary = workspace::release_program("howdah").ok();
    verdict(demo::run(&demo::Options { exit_after_burst: true, clients: 1000, seconds: 5, binary }))
}

/// The same tests with every lock and atomic replaced by loom's; built apart, since the flag reaches all crates.
fn loom() -> Count {
    let mut command = cargo(&["test", "--quiet", "--release", "-p", "baton", "--target-dir", "target/loom"]);
    command.env("RUSTFLAGS", "--cfg loom");
    count_tests(command)
}

fn verdict(result: Result<(), String>) -> Count {
    if let Err(why) = &result {
        eprintln!("{why}");
    }
    Count::one(result.is_ok())
}
