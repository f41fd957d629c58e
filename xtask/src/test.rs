//! `cargo xtask test`: every test, in an order that shows progress.

use clap::Args;

use crate::Servers;
use crate::process::{Count, cargo, check, count_tests};
use crate::setup;
use crate::steps::Steps;
use crate::workspace::{self, TestTarget};

#[derive(Args)]
pub struct Options {
    /// Run only the tests whose names have this text in them
    #[arg(long)]
    filter: Option<String>,
    /// The PostgreSQL versions that the pooler is tested on
    #[arg(long, value_enum, default_value = "all")]
    pg: Servers,
}

pub fn run(options: &Options) -> Result<(), String> {
    setup::run()?;
    let mut steps = Steps::new();
    if steps.run("build", || check(cargo(&BUILD))).failed > 0 {
        return steps.finish();
    }
    let filter = options.filter.as_deref();
    steps.run("unit and property tests", || unit_tests(filter));
    for (place, &version) in options.pg.versions().iter().enumerate() {
        let name = format!("tests on PostgreSQL {}", version.number());
        // Only the pooler's own tests look at the version: the others run once.
        let reach = if place == 0 { Reach::All } else { Reach::Pooler };
        steps.run(&name, || integration_tests(version.number(), reach, filter));
    }
    steps.finish()
}

/// Everything at once, and always in this way: cargo builds anew what is built with other features.
pub const BUILD: [&str; 4] = ["test", "--workspace", "--no-run", "--quiet"];

/// Which integration tests to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    All,
    Pooler,
}

/// The tests beside the code.
pub fn unit_tests(filter: Option<&str>) -> Count {
    let mut command = cargo(&["test", "--workspace", "--lib", "--bins", "--no-fail-fast"]);
    command.args(filter);
    count_tests(command)
}

/// The tests in the directories `tests`, with the pooler in front of this version of PostgreSQL.
pub fn integration_tests(postgres: u16, reach: Reach, filter: Option<&str>) -> Count {
    let metadata = match workspace::metadata() {
        Ok(metadata) => metadata,
        Err(why) => {
            eprintln!("{why}");
            return Count::one(false);
        }
    };
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.env("HOWDAH_TEST_PG", postgres.to_string());
    if reach == Reach::Pooler {
        // The pooler's tests run twice: so once on each way to the kernel, where it has more than one.
        command.env("HOWDAH_TEST_IO_BACKEND", "epoll");
    }
    let mut targets = workspace::test_targets(&metadata);
    targets.retain(|target| reach == Reach::All || target.package == "howdah");
    if targets.is_empty() {
        println!("there are no such tests");
        return Count::one(false);
    }
    for TestTarget { name, .. } in &targets {
        command.args(["--test", name]);
    }
    command.args(filter);
    count_tests(command)
}
