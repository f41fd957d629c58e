//! The command line of the fuzzer.
//!
//! `fuzz [--seconds S] [--seed X] [--target NAME]` shares S seconds among all targets, or gives them to one;
//! `fuzz --target NAME --replay FILE` gives it one input again.
#![deny(unsafe_code)]
// Tier 4: it reads arguments, measures time and memory, and keeps what failed.
#![allow(clippy::disallowed_methods)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use fuzz::{Fault, Meter, Rng, TARGETS, Target, judge, mutate};

/// What failed is kept here; every run begins with it.
const CRASHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crashes");
/// The seconds of a run that does not say.
const SECONDS: u64 = 10;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static BEGUN: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The system's allocator, counting what each thread holds.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    // A thread at its end has no counters any more, and nobody asks.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`, and the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What this thread has used of a processor: a busy machine makes nothing slow.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // A clock that counts from a thread's beginning is never negative.
    Duration::try_from(time).unwrap_or_default()
}

struct Clock;

impl Meter for Clock {
    fn begin(&self) {
        MOST.set(LIVE.get());
        BEGUN.set(thread_time());
        // From here on `LIVE` counts what the target holds.
        LIVE.set(0);
        MOST.set(0);
    }

    fn end(&self) -> (usize, Duration) {
        let time = thread_time().saturating_sub(BEGUN.get());
        (usize::try_from(MOST.get()).unwrap_or(0), time)
    }
}

struct Options {
    seconds: u64,
    seed: u64,
    only: Option<&'static Target>,
    replay: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seconds: SECONDS, seed: 1, only: None, replay: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} wants a number, not {value}"));
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--replay" => options.replay = Some(value),
            "--target" => {
                options.only = Some(Target::named(&value).ok_or_else(|| {
                    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                    format!("no such target: {value}; there are {}", names.join(", "))
                })?);
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
            eprintln!("fuzz: {fault}");
            return ExitCode::from(2);
        }
    };
    if let Some(path) = &options.replay {
        return replay(&options, path);
    }
    // A panic is a fault like others, told with its input.
    std::panic::set_hook(Box::new(|_| {}));
    let targets: Vec<&Target> =
        TARGETS.iter().filter(|target| options.only.is_none_or(|only| only.name == target.name)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    let share = Duration::from_secs(options.seconds).mul_f64(workers as f64 / targets.len() as f64);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(0_usize);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_sound = run(target, options.seed, share);
                    if let (false, Ok(mut failed)) = (is_sound, failed.lock()) {
                        *failed += 1;
                    }
                }
            });
        }
    });
    if failed.into_inner().is_ok_and(|failed| failed == 0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Gives a target mutated inputs for a while. False if one failed.
fn run(target: &Target, seed: u64, share: Duration) -> bool {
    let mut corpus = (target.corpus)();
    corpus.extend(kept(target));
    let begun = Instant::now();
    let mut count = 0_u64;
    while !count.is_multiple_of(64) || begun.elapsed() < share {
        // A seed for each input, so that one number brings it back.
        let own = seed.wrapping_mul(1 << 32).wrapping_add(count);
        let input = match corpus.get(count as usize) {
            Some(sound) => sound.clone(),
            None => mutate(&mut Rng::new(own), &corpus, target.dictionary),
        };
        count += 1;
        if let Err(fault) = judge(target, &input, Some(&Clock)) {
            report(target, own, &input, &fault);
            return false;
        }
    }
    let speed = count as f64 / begun.elapsed().as_secs_f64();
    println!("{:<16} {count:>9} inputs {speed:>9.0} exec/s", target.name);
    true
}

/// What failed for this target in earlier runs.
fn kept(target: &Target) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(CRASHES) else { return Vec::new() };
    let mut paths: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            // A target's name may be the beginning of another's.
            let name = entry.file_name().to_string_lossy().into_owned();
            name.rsplit_once('-').is_some_and(|(of, _)| of == target.name)
        })
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

fn report(target: &Target, seed: u64, input: &[u8], fault: &Fault) {
    let path = format!("{CRASHES}/{}-{seed}", target.name);
    let kept = fs::create_dir_all(CRASHES).and_then(|()| fs::write(&path, input));
    println!("{} failed on {} bytes: {fault:?}", target.name, input.len());
    match kept {
        Ok(()) => {
            println!("  replay: cargo run --release -p fuzz -- --target {} --replay {path}", target.name)
        }
        Err(error) => println!("  {path} could not be written: {error}; the input: {}", input.escape_ascii()),
    }
}

fn replay(options: &Options, path: &str) -> ExitCode {
    let Some(target) = options.only else {
        eprintln!("fuzz: --replay wants a --target");
        return ExitCode::from(2);
    };
    let input = match fs::read(path) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("fuzz: {path}: {error}");
            return ExitCode::from(2);
        }
    };
    match judge(target, &input, Some(&Clock)) {
        Ok(()) => {
            println!("{}: no fault", target.name);
            ExitCode::SUCCESS
        }
        Err(fault) => {
            println!("{}: {fault:?}", target.name);
            ExitCode::FAILURE
        }
    }
}
