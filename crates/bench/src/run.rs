//! A whole run, from the command line to the report.

use crate::arena::{Arena, Checked};
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
use crate::summary::Results;
use crate::table;
use crate::usage::UnixNanos;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

/// Does what the command line says.
pub fn run(options: Options) -> Result<(), BenchError> {
    match &options.role {
        Some(role) => play(role),
        None => measure(&options),
    }
}

fn measure(options: &Options) -> Result<(), BenchError> {
    let plan = options.plan()?;
    let checked = Checked::check(options, &plan)?;
    for path in options.json.iter().chain(&options.html) {
        // Better refused now than at the end; what is there already stays until then.
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(BenchError::io(format!("writing {}", path.display())))?;
    }
    let stop = Stop::on_signals()?;
    let seed = options.seed.unwrap_or(UnixNanos::now().0 / 1_000_000);
    let steps = plan.order(seed);
    let expected: Duration = steps.iter().map(|step| step.load.guess(plan.seconds)).sum();
    let names: Vec<_> = plan.targets.iter().map(|kind| kind.to_string()).collect();
    eprintln!(
        "targets {}; {} steps, about {}; seed {seed}",
        names.join(", "),
        steps.len(),
        minutes(expected)
    );
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: the relay and the load generator are slower than they should be");
    }
    let mut arena = Arena::open(checked, options, &plan, stop)?;
    let mut report = json::setting(options, &plan, &arena, seed);
    arena.start_targets(&plan)?;
    let results = results(&mut arena, &plan, &steps, expected, options.load_threads)?;
    report.steps = json::steps(&plan, &results);
    print!("{}", table::report(&report));
    if let Some(path) = &options.json {
        write(path, &report.to_json())?;
    }
    if let Some(path) = &options.html {
        write(path, &report::page(&report))?;
    }
    Ok(())
}

fn results(
    arena: &mut Arena,
    plan: &Plan,
    steps: &[Step],
    expected: Duration,
    load_threads: usize,
) -> Result<Results, BenchError> {
    let mut progress = Progress::new(steps.len(), expected);
    let mut results = Results::new();
    for (number, &step) in steps.iter().enumerate() {
        let what = format!("round {}: {}, {}", step.round + 1, step.load.title(plan.mode), step.target);
        progress.begin(number, &what);
        let ran = load::run(arena, plan, step, load_threads);
        progress.end(step.load.guess(plan.seconds));
        match ran {
            Ok(outcome) => results.push((step, outcome)),
            Err(error) => {
                progress.clear();
                return Err(error);
            }
        }
    }
    progress.clear();
    Ok(results)
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
        Role::ServeRelay { routes } => {
            let routes = routes.iter().map(|route| parse_route(route)).collect::<Result<_, _>>()?;
            relay::serve(routes).map_err(BenchError::io("relaying"))
        }
    }
}

fn parse_route(text: &str) -> Result<Route, BenchError> {
    let ports = text.split_once('=').and_then(|(from, to)| from.parse().ok().zip(to.parse::<u16>().ok()));
    let Some((from, to)) = ports else {
        return Err(BenchError::Options(format!("{text:?} is not LISTEN=CONNECT")));
    };
    Ok(Route { listener: listen(from)?, server: (Ipv4Addr::LOCALHOST, to).into() })
}

fn listen(port: u16) -> Result<TcpListener, BenchError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(BenchError::io(format!("listening at port {port}")))
}
