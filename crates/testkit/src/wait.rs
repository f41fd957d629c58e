//! Waiting for a condition with a limit: the only waiting that tests do.

use std::time::{Duration, Instant};

/// Asks `condition` again and again until it holds; panics, at the caller's line, after `limit`.
#[track_caller]
pub fn eventually(limit: Duration, condition: impl FnMut() -> bool) {
    assert!(holds_within(limit, condition), "the condition did not hold within {limit:?}");
}

/// As [`eventually`], but answers in place of panicking.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Asks until there is a value; panics, at the caller's line, after `limit`.
#[track_caller]
pub fn eventually_some<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    eventually(limit, || {
        found = ask();
        found.is_some()
    });
    // `eventually` has panicked unless there is one.
    found.expect("found above")
}
