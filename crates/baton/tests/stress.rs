//! The same races as under loom, with threads of the platform and its own memory order.
#![cfg(not(loom))]
// Races need threads.
#![allow(clippy::disallowed_methods)]

mod world;

use std::sync::atomic::{AtomicU32, AtomicU64};

use baton::Gate;

mod sync {
    pub use std::sync::atomic::{AtomicUsize, Ordering};
    pub use std::sync::{Arc, Mutex};
    pub use std::thread::spawn;
}

use sync::Ordering;

const ROUNDS: usize = 300;

#[test]
fn races_leave_nothing_lost() {
    for race in world::races() {
        eprintln!("{}", race.name);
        for _ in 0..ROUNDS {
            race.run();
        }
    }
}

#[test]
fn gate_counts_every_post() {
    let gate = Gate::new();
    let posted = [const { AtomicU32::new(0) }; 4];
    let done = AtomicU64::new(0);
    let at_work = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (gate, posted, done, at_work) = (&gate, &posted, &done, &at_work);
            scope.spawn(move || {
                for _ in 0..20_000 {
                    posted[worker].fetch_add(1, Ordering::SeqCst);
                    if !gate.post(1 << worker) {
                        continue;
                    }
                    while let news @ 1.. = gate.news() {
                        assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0, "two are at work");
                        for (bit, count) in posted.iter().enumerate() {
                            if news & (1 << bit) != 0 {
                                done.fetch_add(u64::from(count.swap(0, Ordering::SeqCst)), Ordering::SeqCst);
                            }
                        }
                        at_work.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(done.load(Ordering::SeqCst), 4 * 20_000, "a post was not seen");
}
