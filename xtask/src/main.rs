//! The project's own commands, `cargo xtask COMMAND`. This file knows which there are; each has a file of its own.
#![forbid(unsafe_code)]
// Tier 4: commands run programs and read files.
#![allow(clippy::disallowed_methods)]

mod apps;
mod bench;
mod ci;
mod demo;
mod documents;
mod experiments;
mod layers;
mod process;
mod setup;
mod steps;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use testkit::Version;

/// The project's own commands
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a throw-away PostgreSQL and Howdah, send 1000 clients, stay up until Ctrl-C
    Demo(demo::Options),
    /// Run every test, against real PostgreSQL servers that the tests start themselves
    Test(test::Options),
    /// Everything that must be green before a change is taken
    Ci(ci::Options),
    /// Compare Howdah, pgbouncer and no pooler under load
    Bench(bench::Options),
    /// Run applications that know nothing of poolers, and compare with what they do without one
    Apps(apps::Options),
    /// Do harm to servers under load, at full length, and hold what clients notice against limits
    Experiments(experiments::Options),
    /// Install what the other commands need and the machine lacks
    Setup,
    /// Check that no crate depends on what its layer must not know
    Layers,
    /// Check sizes, heads, forbidden words and the names in documents
    Tidy(tidy::Options),
    /// Write docs/settings.md and docs/example.ini from the table of settings
    GenDocs(documents::Options),
}

/// The PostgreSQL versions to test on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Servers {
    #[value(name = "15")]
    V15,
    #[value(name = "18")]
    V18,
    All,
}

impl Servers {
    fn versions(self) -> &'static [Version] {
        match self {
            Servers::V15 => &[Version::V15],
            Servers::V18 => &[Version::V18],
            Servers::All => &[Version::V15, Version::V18],
        }
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Ci(options) => ci::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Apps(options) => apps::run(&options),
        Command::Experiments(options) => experiments::run(&options),
        Command::Setup => setup::run(),
        Command::Layers => layers::run(),
        Command::Tidy(options) => tidy::run(&options),
        Command::GenDocs(options) => documents::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The table of steps has said it already when there is nothing here.
            if !why.is_empty() {
                eprintln!("{why}");
            }
            ExitCode::FAILURE
        }
    }
}
