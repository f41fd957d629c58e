//! A list of steps: each with a heading, its time and its count, and a table of all at the end.

use std::time::{Duration, Instant};

use crate::process::Count;

/// The steps so far.
pub struct Steps {
    start: Instant,
    done: Vec<(String, Duration, Count)>,
}

impl Steps {
    pub fn new() -> Steps {
        Steps { start: Instant::now(), done: Vec::new() }
    }

    /// Runs one step; a failure does not keep the next from being run.
    pub fn run(&mut self, name: &str, work: impl FnOnce() -> Count) -> Count {
        println!("\n=== {} {name}", self.done.len() + 1);
        let start = Instant::now();
        let count = work();
        let time = start.elapsed();
        let verdict = if count.failed == 0 { "ok" } else { "FAILED" };
        println!("=== {verdict} in {}", seconds(time));
        self.done.push((name.to_owned(), time, count));
        count
    }

    /// Prints the table and the sum; the sum is the last line.
    pub fn finish(self) -> Result<(), String> {
        println!("\n{:<44} {:>8} {:>8} {:>8}", "step", "time", "passed", "failed");
        let mut sum = Count::default();
        for (name, time, count) in &self.done {
            let mark = if count.failed == 0 { ' ' } else { '!' };
            println!("{mark}{name:<43} {:>8} {:>8} {:>8}", seconds(*time), count.passed, count.failed);
            sum = sum.plus(*count);
        }
        println!("\ntotal time {}", seconds(self.start.elapsed()));
        println!("{} passed, {} failed", sum.passed, sum.failed);
        if sum.failed == 0 { Ok(()) } else { Err(String::new()) }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
