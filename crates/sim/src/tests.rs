//! The checkers see what they are there for, and nothing else.

use crate::{PLANTS, Plant, run};

const STEPS: u64 = 3_000;
/// A planted fault must be seen within so many seeds.
const SEEDS: u64 = 1_500;

/// How many seeds it takes to see a fault.
fn seeds_until_caught(plant: Plant) -> Option<u64> {
    (1..=SEEDS).find(|&seed| run(seed, STEPS, plant, false).fault.is_some())
}

#[test]
fn every_planted_fault_is_caught() {
    for (name, plant) in PLANTS {
        assert!(seeds_until_caught(plant).is_some(), "{name} is not seen in {SEEDS} seeds");
    }
}

#[test]
fn every_planted_fault_has_a_name_of_its_own() {
    for (name, plant) in PLANTS {
        assert_eq!(Plant::named(name), Some(plant));
    }
    assert_eq!(Plant::named("nothing"), None);
}

#[test]
fn pooler_as_it_is_shows_no_fault() {
    for seed in 100_000..100_300 {
        let verdict = run(seed, STEPS, Plant::Nothing, false);
        assert_eq!(verdict.fault, None, "seed {seed}");
    }
}

#[test]
fn same_seed_makes_the_same_run() {
    for seed in 1..20 {
        assert_eq!(run(seed, STEPS, Plant::Nothing, false), run(seed, STEPS, Plant::Nothing, false));
    }
}

#[test]
fn limit_fault_is_called_by_its_name() {
    let fault = (1..=SEEDS).find_map(|seed| run(seed, STEPS, Plant::LimitOffByOne, false).fault);
    assert!(fault.is_some_and(|fault| fault.contains("are allowed")), "the limit is what is wrong");
}
