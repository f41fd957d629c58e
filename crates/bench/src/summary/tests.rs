//! Claims about `summary`, each as small as it can be.

use super::*;
use crate::usage::Cpu;
use std::time::Duration;

const LOAD: Load = Load::Canned { clients: 20 };

fn plan(rounds: usize) -> Plan {
    let targets = vec![Kind::Relay, Kind::Pgbouncer];
    Plan { targets, loads: vec![LOAD], rounds, seconds: 1 }
}

/// A result with that many microseconds of CPU a transaction.
fn used(round: usize, target: Kind, micros: u64) -> (Step, Outcome) {
    let cpu = Some(Cpu { total: Duration::from_micros(micros * 1_000), ..Cpu::default() });
    let one = Measurement { transactions: 1_000, tps: Some(1_000.0), cpu, ..Measurement::default() };
    (Step { round, load: LOAD, target }, Outcome::Measured(Box::new(one)))
}

#[test]
fn a_median_has_its_neighbours() {
    assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
    assert_eq!(Spread::of([4.0, 1.0]).map(|spread| spread.median), Some(2.5));
    assert_eq!(Spread::of([f64::NAN]), None);
}

/// The machine grows three times slower; within each round the relay needs half of pgbouncer's.
#[test]
fn ratios_are_paired_within_rounds() {
    let mut results = Vec::new();
    for (round, micros) in [10, 20, 30].into_iter().enumerate() {
        results.push(used(round, Kind::Relay, micros));
        results.push(used(round, Kind::Pgbouncer, 2 * micros));
    }
    let sections = sections(&plan(3), &results);
    let [relay, pgbouncer] = &sections[0].rows[..] else { panic!("two rows") };
    assert_eq!(relay.cpu_ratio, Some(Spread { median: 0.5, min: 0.5, max: 0.5 }));
    assert_eq!(pgbouncer.cpu_ratio.map(|ratio| ratio.median), Some(1.0));
    assert_eq!(
        relay.cpu,
        Some(Spread { median: 0.01, min: 0.01, max: 0.03 }).map(|_| Spread {
            median: 0.02,
            min: 0.01,
            max: 0.03
        })
    );
    assert!(relay.is_noisy());
}

#[test]
fn rounds_close_together_are_not_noisy() {
    let results = vec![used(0, Kind::Relay, 100), used(1, Kind::Relay, 114)];
    let sections = sections(&plan(2), &results);
    assert_eq!(sections[0].rows.len(), 1, "a target that was never run has no row");
    assert!(!sections[0].rows[0].is_noisy());
}

#[test]
fn a_failed_round_is_an_error_with_its_words_and_pairs_with_nothing() {
    let mut results = vec![used(0, Kind::Relay, 10), used(0, Kind::Pgbouncer, 10), used(1, Kind::Relay, 10)];
    let step = Step { round: 1, load: LOAD, target: Kind::Pgbouncer };
    results.push((step, Outcome::Failed("08P01 gone".to_owned())));
    let sections = sections(&plan(2), &results);
    let [relay, pgbouncer] = &sections[0].rows[..] else { panic!("two rows") };
    assert_eq!((pgbouncer.errors, pgbouncer.remark.as_deref()), (1, Some("08P01 gone")));
    assert_eq!(relay.cpu_ratio.map(|ratio| ratio.median), Some(1.0));
}

#[test]
fn a_round_with_errors_is_not_compared() {
    let mut results = vec![used(0, Kind::Relay, 10), used(0, Kind::Pgbouncer, 10)];
    let Outcome::Measured(one) = &mut results[1].1 else { panic!("measured") };
    one.trouble.add(|| "26000 no such statement".to_owned());
    let sections = sections(&plan(1), &results);
    assert!(sections[0].rows.iter().all(|row| row.cpu_ratio.is_none()));
    assert_eq!(sections[0].rows[1].errors, 1);
}
