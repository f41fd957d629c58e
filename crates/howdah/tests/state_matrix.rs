//! What a client leaves in its session, as PostgreSQL itself would keep it: every kind of state, every ending, every
//! protocol, in transaction mode.
//!
//! `HOWDAH_TEST_KIND` names a part of the kinds' names, to play only those.
#![allow(clippy::disallowed_methods)] // tests run threads

mod matrix;
mod oracle;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use matrix::cell::{Cell, Mode, check};
use matrix::kind::{ENDINGS, Ending, Kind, PROTOCOLS, Protocol};
use matrix::report::{Outcome, judge};
use matrix::sides::{Lane, View};
use matrix::stage::{LANES, Stage};
use matrix::{kinds, report};

/// The cells of a kind: all in transaction mode; in session mode those that would show a fault of the matrix itself.
fn cells(kind: &'static Kind) -> Vec<Cell> {
    let mut cells = Vec::new();
    for ending in ENDINGS {
        for protocol in PROTOCOLS {
            cells.push(Cell { kind, ending, protocol, mode: Mode::Transaction });
        }
    }
    // In session mode RESET leads to the server's own settings, and no query unloads a library.
    if kind.startup.is_empty() && !kind.make.starts_with("load") {
        for ending in [Ending::Alone, Ending::Commit, Ending::ServerKilled] {
            cells.push(Cell { kind, ending, protocol: Protocol::Extended, mode: Mode::Session });
        }
    }
    cells.retain(Cell::makes_sense);
    cells
}

fn play(stage: &Stage, lane: &mut Lane, kind: &'static Kind) -> Vec<Outcome> {
    let alone = View::alone(stage, lane, kind);
    let mut outcomes = Vec::new();
    for cell in cells(kind) {
        let result = match &alone {
            Ok(alone) => catch_unwind(AssertUnwindSafe(|| check(stage, lane, cell, alone)))
                .unwrap_or_else(|_| Err("a panic, printed above".into())),
            Err(why) => Err(format!("alone: {why}")),
        };
        let result = match result {
            Ok(()) => Ok(()),
            Err(why) => {
                Err(lane.sweep().err().map_or(why.clone(), |more| format!("{why}\n  and then {more}")))
            }
        };
        outcomes.push(Outcome { cell, result });
    }
    outcomes
}

#[test]
fn state_stays_with_its_owner_and_is_seen_by_nobody_else() {
    let part = std::env::var("HOWDAH_TEST_KIND").unwrap_or_default();
    let kinds: Vec<&'static Kind> =
        kinds::all().into_iter().filter(|kind| kind.name.contains(&part)).collect();
    let stage = Stage::new();
    let start = std::time::Instant::now();
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for number in 0..LANES {
            let (stage, kinds, next, outcomes) = (&stage, &kinds, &next, &outcomes);
            scope.spawn(move || {
                let mut lane = Lane::new(stage, number);
                while let Some(&kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = play(stage, &mut lane, kind);
                    outcomes.lock().expect("no thread panics here").extend(played);
                }
            });
        }
    });
    println!("{:.1} s", start.elapsed().as_secs_f64());
    let outcomes: Vec<report::Outcome> = outcomes.into_inner().expect("no thread panics here");
    if let Err(why) = judge(&outcomes) {
        panic!("{why}");
    }
}
