//! Every interleaving of the locking protocol, tried by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p baton --release --test loom --target-dir target/loom`
#![cfg(loom)]
// Races need threads.
#![allow(clippy::disallowed_methods)]

mod world;

use baton::Gate;

mod sync {
    pub use loom::sync::atomic::{AtomicUsize, Ordering};
    pub use loom::sync::{Arc, Mutex};
    pub use loom::thread::spawn;
}

use sync::{Arc, AtomicUsize, Mutex, Ordering};

/// So many times may a thread be stopped in the middle: two already find nearly everything (CHESS, 2008).
const PREEMPTIONS_MAX: usize = 3;

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(test);
}

#[test]
fn gate_loses_no_news_and_lets_nobody_in_beside_another() {
    model(|| {
        let gate = Arc::new((Gate::new(), Mutex::new(0_u32), AtomicUsize::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|bit| {
                let gate = Arc::clone(&gate);
                sync::spawn(move || {
                    let (gate, seen, at_work) = &*gate;
                    if !gate.post(1 << bit) {
                        return;
                    }
                    assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0, "somebody is at work already");
                    loop {
                        // Leaving is a part of asking for news: from then on another may come.
                        at_work.fetch_sub(1, Ordering::SeqCst);
                        let news = gate.news();
                        if news == 0 {
                            return;
                        }
                        assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0, "somebody came in beside");
                        *seen.try_lock().expect("two are at work") |= news;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*gate.1.lock().unwrap(), 0b111, "news were lost");
        assert!(gate.0.post(1), "somebody never left the gate");
    });
}

#[test]
fn server_changes_hands_without_losing_an_edge_or_a_waiter() {
    for race in world::races() {
        eprintln!("{}", race.name);
        model(move || race.run());
    }
}
