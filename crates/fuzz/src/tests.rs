//! Every decoder stands ten thousand mutations, and the judge sees what it is there for.

use std::time::Duration;

use crate::{Fault, Meter, Rng, TARGETS, Target, judge, mutate};

const MUTATIONS: u64 = 10_000;

fn check(target: &Target) {
    let corpus = (target.corpus)();
    for input in &corpus {
        assert_eq!(judge(target, input, None), Ok(()), "{} on sound input {input:?}", target.name);
    }
    let mut rng = Rng::new(1);
    for _ in 0..MUTATIONS {
        let input = mutate(&mut rng, &corpus, target.dictionary);
        assert_eq!(judge(target, &input, None), Ok(()), "{} on {}", target.name, input.escape_ascii());
    }
}

#[test]
fn every_target_stands_ten_thousand_mutations() {
    for target in &TARGETS {
        check(target);
    }
}

#[test]
fn every_target_is_found_by_its_name() {
    for target in &TARGETS {
        assert!(Target::named(target.name).is_some_and(|found| found.name == target.name));
    }
}

#[test]
fn same_seed_makes_the_same_inputs() {
    let corpus = vec![b"sound".to_vec(), b"another".to_vec()];
    let make = || -> Vec<Vec<u8>> {
        let mut rng = Rng::new(7);
        (0..100).map(|_| mutate(&mut rng, &corpus, &[b"word"])).collect()
    };
    assert_eq!(make(), make());
}

struct Slow(Duration, usize);

impl Meter for Slow {
    fn begin(&self) {}

    fn end(&self) -> (usize, Duration) {
        (self.1, self.0)
    }
}

#[test]
fn judge_sees_panic_memory_and_time() {
    let panics = Target { name: "", corpus: Vec::new, dictionary: &[], run: |_| panic!("here") };
    let works = Target { name: "", corpus: Vec::new, dictionary: &[], run: |_| {} };
    assert_eq!(judge(&panics, b"", None), Err(Fault::Panic("here".to_owned())));
    let slow = Slow(Duration::from_secs(1), 0);
    assert_eq!(judge(&works, b"", Some(&slow)), Err(Fault::Time(Duration::from_secs(1))));
    let large = Slow(Duration::ZERO, 1 << 30);
    assert_eq!(judge(&works, b"", Some(&large)), Err(Fault::Memory(1 << 30)));
    let fine = Slow(Duration::ZERO, 0);
    assert_eq!(judge(&works, b"", Some(&fine)), Ok(()));
}
