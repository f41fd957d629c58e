//! The command line: what to run, and what is said about settings without running.
#![allow(clippy::disallowed_methods, reason = "a program has arguments and files")]

mod readable;
mod state;

use std::process::ExitCode;

use bench::run::Called;
use clap::{Parser, Subcommand};
use shell::reading::{Files, Source};
use shell::start::{self, StartOptions};

/// A PostgreSQL connection pooler: many clients ride one elephant.
#[derive(Debug, Parser)]
#[command(name = "howdah", disable_version_flag = true, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Started as PgBouncer is: howdah pgbouncer.ini. Without a file: howdah postgres://user@host/db"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Go to the background; needs pidfile to be set
    #[arg(short, long)]
    daemon: bool,
    /// Say nothing on stderr
    #[arg(short, long)]
    quiet: bool,
    /// Say more; twice for even more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Run as this user, if started by root
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,
    /// Take over from a running process: not built, start another with so_reuseport instead
    #[arg(short = 'R', long, hide = true)]
    reboot: bool,
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
    /// The settings: a pgbouncer.ini, or postgres://user@host/db for no file at all
    #[arg(value_name = "FILE.ini | URL")]
    settings: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say everything that is wrong with the settings, or what the statements of a file of SQL are, without starting
    Check {
        /// The settings
        #[arg(value_name = "FILE.ini | URL", required_unless_present_any = ["state", "reads"])]
        settings: Option<String>,
        /// Name the session state of each statement in this file
        #[arg(long, value_name = "FILE.sql", conflicts_with = "settings")]
        state: Option<String>,
        /// The settings that name functions of your own (state_functions), with --state
        #[arg(long, value_name = "FILE.ini | URL", requires = "state")]
        config: Option<String>,
        /// Name the statements in this file that may go to a standby
        #[arg(long, value_name = "FILE.sql", conflicts_with_all = ["settings", "state"])]
        reads: Option<String>,
    },
    /// Compare this pooler with others and with none, on this machine
    Bench(Box<bench::options::Options>),
    /// Print the manual of all settings
    Manual,
    /// Print an example of all settings, with their documentation
    Example,
    /// Print the list of all metrics
    Metrics,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // PgBouncer's exit code for bad use; help is not bad use.
            let code = u8::from(error.use_stderr());
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match &arguments.command {
        Some(Command::Check { state: Some(path), config, .. }) => {
            return check_state(path, config.as_deref());
        }
        Some(Command::Check { reads: Some(path), .. }) => return readable::check(path),
        // One of the three is there, or the command line was refused.
        Some(Command::Check { settings, .. }) => return check(settings.as_deref().unwrap_or_default()),
        Some(Command::Bench(options)) => return bench::run::main(options, Called::ByHowdah),
        Some(Command::Manual) => print!("{}", settings::manual()),
        Some(Command::Example) => print!("{}", settings::example()),
        Some(Command::Metrics) => print!("{}", metrics::manual()),
        None if arguments.version => print_version(),
        None => return run(arguments),
    }
    ExitCode::SUCCESS
}

fn print_version() {
    println!("{}", shell::version_line());
    println!("libevent: none (mio), adns: getaddrinfo, tls: rustls");
}

fn source(text: &str) -> Source {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        Source::Url(text.to_owned())
    } else {
        Source::File(text.to_owned())
    }
}

fn run(arguments: Arguments) -> ExitCode {
    let Some(settings) = &arguments.settings else {
        eprintln!(
            "howdah: say which settings: howdah FILE.ini, or howdah postgres://user@host/db (see --help)"
        );
        return ExitCode::FAILURE;
    };
    if arguments.reboot {
        eprintln!(
            "howdah: -R (taking over from a running process) is not built; start another with so_reuseport=1"
        );
        return ExitCode::FAILURE;
    }
    let files = Files {
        source: source(settings),
        quiet: arguments.quiet,
        verbose: u32::from(arguments.verbose),
        user: arguments.user,
    };
    match start::run(files, StartOptions { daemon: arguments.daemon }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("howdah: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn check_state(path: &str, config: Option<&str>) -> ExitCode {
    let mut named = Vec::new();
    if let Some(config) = config {
        let files = Files { source: source(config), quiet: true, verbose: 0, user: None };
        match files.settings() {
            Ok((settings, _)) => named = settings.general.state_functions,
            Err(problems) => {
                problems.iter().for_each(|problem| eprintln!("error: {problem}"));
                return ExitCode::FAILURE;
            }
        }
    }
    state::check(path, &named)
}

fn check(settings: &str) -> ExitCode {
    let files = Files { source: source(settings), quiet: true, verbose: 0, user: None };
    let (problems, warnings) = files.check();
    for warning in &warnings {
        println!("warning: {warning}");
    }
    for problem in &problems {
        println!("error: {problem}");
    }
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    println!("{settings}: {}, {}", count(problems.len(), "error"), count(warnings.len(), "warning"));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
