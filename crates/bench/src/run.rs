//! A whole run, from the command line to the report.

use crate::arena::{self, Arena, Checked};
use crate::canned;
use crate::compare;
use crate::error::BenchError;
use crate::host::Stop;
use crate::json;
use crate::load;
use crate::options::{Options, Role};
use crate::plan::{Plan, Step};
use crate::progress::{Progress, minutes};
use crate::relay::{self, Route};
use crate::report::{self, Report};
use crate::scenario::{Stage, beside};
use crate::summary::Results;
use crate::table;
use crate::target::launch::Binaries;
use crate::usage::UnixNanos;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How this program was called, and so how it starts itself again in another role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// As a program of its own.
    Alone,
    /// As `howdah bench`.
    ByHowdah,
}

/// Does what the command line says.
pub fn run(options: &Options, called: Called) -> Result<(), BenchError> {
    match &options.role {
        Some(role) => play(role),
        None => measure(options, called),
    }
}

/// The same for a `main`: the error is said in one line.
pub fn main(options: &Options, called: Called) -> ExitCode {
    match run(options, called) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn measure(options: &Options, called: Called) -> Result<(), BenchError> {
    let binaries = arena::binaries(options, called)?;
    let mut stages = options.stages()?;
    if options.only.is_empty() {
        leave_out_missing(&mut stages, &binaries);
    }
    let mut checked = Vec::new();
    for stage in &stages {
        checked.push(Checked::check(options, stage, &binaries)?);
    }
    for path in options.json.iter().chain(&options.html) {
        // Better refused now than at the end; what is there already stays until then.
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(BenchError::io(format!("writing {}", path.display())))?;
    }
    let stop = Stop::on_signals()?;
    let seed = options.seed.unwrap_or(UnixNanos::now().0 / 1_000_000);
    let Some(whole) = whole(&stages) else { return Ok(()) };
    let orders: Vec<_> = stages.iter().map(|stage| stage.plan.order(seed)).collect();
    let steps = orders.iter().flatten();
    let expected: Duration = steps.clone().map(|step| step.guess(whole.seconds)).sum();
    let names: Vec<_> = whole.targets.iter().map(|kind| kind.to_string()).collect();
    eprintln!(
        "targets {}; {} steps, about {}; seed {seed}",
        names.join(", "),
        steps.clone().count(),
        minutes(expected)
    );
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: the relay and the load generator are slower than they should be");
    }
    let mut progress = Progress::new(steps.count(), expected);
    let (mut results, mut setting) = (Results::new(), None);
    for ((stage, checked), order) in stages.iter().zip(checked).zip(&orders) {
        let mut arena = Arena::open(checked, options, stage, stop.clone())?;
        setting.get_or_insert_with(|| json::setting(options, &whole, &arena, seed));
        arena.start_targets(&stage.plan)?;
        let ran =
            run_steps(&mut arena, &stage.plan, order, options.load_threads, &mut progress, &mut results);
        progress.clear();
        ran?;
    }
    match setting {
        Some(report) => finish(options, &whole, report, &results),
        None => Ok(()),
    }
}

/// Says what came out.
fn finish(options: &Options, plan: &Plan, mut report: Report, results: &Results) -> Result<(), BenchError> {
    report.steps = json::steps(results);
    report.beside = options.scenario.map(|scenario| beside::text(scenario, plan, results));
    say(&table::report(&report))?;
    say(report.beside.as_deref().unwrap_or_default())?;
    if let Some(path) = &options.json {
        write(path, &report.to_json())?;
    }
    match &options.html {
        Some(path) => write(path, &report::page(&report)),
        None => Ok(()),
    }
}

/// What nobody asked for by name need not be installed.
fn leave_out_missing(stages: &mut [Stage], binaries: &Binaries) {
    let Some(first) = stages.first() else { return };
    let mut missing = Vec::new();
    for &kind in &first.plan.targets {
        if let Err(why) = binaries.check(kind) {
            eprintln!("{kind} is left out: {why}");
            missing.push(kind);
        }
    }
    for stage in stages {
        stage.plan.targets.retain(|kind| !missing.contains(kind));
    }
}

/// All stages as one plan, for the report.
fn whole(stages: &[Stage]) -> Option<Plan> {
    let mut whole = stages.first()?.plan.clone();
    whole.loads = stages.iter().flat_map(|stage| stage.plan.loads.iter().copied()).collect();
    Some(whole)
}

fn run_steps(
    arena: &mut Arena,
    plan: &Plan,
    steps: &[Step],
    load_threads: usize,
    progress: &mut Progress,
    results: &mut Results,
) -> Result<(), BenchError> {
    for &step in steps {
        let what = format!("round {}: {}, {}", step.round + 1, step.load.title(), step.target);
        progress.begin(results.len(), &what);
        let outcome = load::run(arena, plan, step, load_threads)?;
        progress.end(step.guess(plan.seconds));
        results.push((step, outcome));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(BenchError::io(format!("writing {}", path.display())))
}

/// A reader that has seen enough of it (`| head`) is no error.
fn say(text: &str) -> Result<(), BenchError> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(BenchError::io("writing")(error)),
        _ => Ok(()),
    }
}

fn play(role: &Role) -> Result<(), BenchError> {
    match role {
        Role::Compare { before, after, fail_on_regression } => {
            let comparison = compare::compare(&Report::read(before)?, &Report::read(after)?);
            say(&compare::text(&comparison))?;
            match comparison.count(compare::Verdict::Worse) {
                worse if worse > 0 && *fail_on_regression => Err(BenchError::Regression { worse }),
                _ => Ok(()),
            }
        }
        Role::Html { file } => say(&report::page(&Report::read(file)?)),
        Role::ServeCanned { port, threads } => {
            canned::serve(&listen(*port)?, *threads).map_err(BenchError::io("serving canned replies"))
        }
        Role::ServeRelay { io_uring, routes } => {
            let routes = routes.iter().map(|route| parse_route(route)).collect::<Result<_, _>>()?;
            relay::serve(routes, *io_uring).map_err(BenchError::io("relaying"))
        }
    }
}

fn parse_route(text: &str) -> Result<Route, BenchError> {
    let refuse = || BenchError::Options(format!("{text:?} is not LISTEN=HOST:PORT"));
    let (from, to) = text.split_once('=').ok_or_else(refuse)?;
    let from = from.parse().map_err(|_| refuse())?;
    let server = to.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(refuse)?;
    Ok(Route { listener: listen(from)?, server })
}

fn listen(port: u16) -> Result<TcpListener, BenchError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(BenchError::io(format!("listening at port {port}")))
}
