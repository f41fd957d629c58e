//! The command line of the simulation.
//!
//! `sim [--seeds N] [--start S] [--steps K] [--plant NAME]` runs the seeds that failed before, then N seeds;
//! `sim --seed X -v` runs one and says what happens.
#![forbid(unsafe_code)]
// Tier 4: it reads arguments and a file, measures time and uses all cores.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sim::{PLANTS, Plant, run};

/// Seeds that failed once.
const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions.txt");
const SEEDS: u64 = 5_000;
const STEPS: u64 = 3_000;

struct Options {
    seeds: u64,
    start: u64,
    steps: u64,
    only: Option<u64>,
    plant: Plant,
    verbose: bool,
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { seeds: SEEDS, start: 1, steps: STEPS, only: None, plant: Plant::Nothing, verbose: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "-v" {
            options.verbose = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} wants a number, not {value}"));
        match word.as_str() {
            "--seeds" => options.seeds = number()?,
            "--start" => options.start = number()?,
            "--steps" => options.steps = number()?,
            "--seed" => options.only = Some(number()?),
            "--plant" => {
                options.plant = Plant::named(&value).ok_or_else(|| {
                    let names: Vec<&str> = PLANTS.iter().map(|(name, _)| *name).collect();
                    format!("no such fault: {value}; there are {}", names.join(", "))
                })?;
            }
            _ => return Err(format!("unknown option {word}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(fault) => {
            eprintln!("sim: {fault}");
            return ExitCode::from(2);
        }
    };
    // A panic is a fault like others, told with its seed.
    if options.only.is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let jobs = match options.only {
        Some(seed) => vec![(seed, options.steps)],
        None => {
            let mut jobs = if options.plant == Plant::Nothing { regressions() } else { Vec::new() };
            jobs.extend(
                (options.start..options.start.saturating_add(options.seeds))
                    .map(|seed| (seed, options.steps)),
            );
            jobs
        }
    };
    let failed = run_all(&options, &jobs);
    for (seed, steps, fault) in &failed {
        println!("seed {seed} failed: {fault}");
        println!("  replay: cargo run --release -p sim -- --seed {seed} --steps {steps} -v");
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    if options.only.is_none() && options.plant == Plant::Nothing {
        remember(&failed);
    }
    ExitCode::FAILURE
}

fn run_all(options: &Options, jobs: &[(u64, u64)]) -> Vec<(u64, u64, String)> {
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let events = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len().max(1));
    let done = || (next.load(Ordering::Relaxed) as usize).min(jobs.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    while let Some(&(seed, steps)) = jobs.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                        let verdict = run(seed, steps, options.plant, options.verbose);
                        events.fetch_add(verdict.events, Ordering::Relaxed);
                        if let (Some(fault), Ok(mut failed)) = (verdict.fault, failed.lock()) {
                            failed.push((seed, steps, fault));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut told = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                if told.elapsed() > Duration::from_secs(1) && jobs.len() > 1 {
                    told = Instant::now();
                    eprint!("\r{} of {} seeds", done(), jobs.len());
                }
            }
        });
        // A worker's panics are caught seed by seed.
        threads.into_iter().for_each(|thread| drop(thread.join()));
        is_over.store(true, Ordering::Relaxed);
    });
    if jobs.len() > 1 {
        eprintln!("\r{} of {} seeds", jobs.len(), jobs.len());
    }
    let took = begun.elapsed().as_secs_f64();
    let failed = failed.into_inner().unwrap_or_default();
    println!(
        "{} seeds, {} events, {} failed, {:.0} seeds/s",
        jobs.len(),
        events.load(Ordering::Relaxed),
        failed.len(),
        jobs.len() as f64 / took
    );
    failed
}

/// Seeds and steps of earlier failures, one a line; what follows a `#` is for readers.
fn regressions() -> Vec<(u64, u64)> {
    let text = fs::read_to_string(REGRESSIONS).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            let seed = words.next()?.parse().ok()?;
            Some((seed, words.next().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS)))
        })
        .collect()
}

fn remember(failed: &[(u64, u64, String)]) {
    let known = regressions();
    let Ok(mut file) = fs::OpenOptions::new().append(true).create(true).open(REGRESSIONS) else { return };
    for (seed, steps, fault) in failed.iter().take(10) {
        if !known.contains(&(*seed, *steps)) {
            let fault: String = fault.chars().take(120).collect();
            // If it cannot be kept, it has still been printed.
            let _ = writeln!(file, "{seed} {steps} # {fault}");
        }
    }
}
