//! What the experiments measure, and what it may be: printed, and left for `cargo xtask experiments`.
//!
//! Only that command runs them at their full length and holds times against limits; as tests they are short, and assert
//! conditions alone.
#![allow(dead_code)] // each file of tests uses a part of it

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

/// Names the file that figures are appended to.
const FILE: &str = "HOWDAH_EXPERIMENTS";

/// Whether the experiments are to have their full length.
pub fn is_full() -> bool {
    std::env::var_os(FILE).is_some()
}

/// One value for the tests, another for the experiments.
pub fn sized<T>(short: T, full: T) -> T {
    if is_full() { full } else { short }
}

/// The figures of one experiment.
pub struct Figures {
    experiment: &'static str,
    start: Instant,
}

impl Figures {
    pub fn new(experiment: &'static str) -> Figures {
        Figures { experiment, start: Instant::now() }
    }

    /// Says how far it is.
    pub fn say(&self, what: &str) {
        println!("[{}] {:5.1} s: {what}", self.experiment, self.start.elapsed().as_secs_f64());
    }

    /// A time, and what it may be at most.
    pub fn time(&self, what: &str, time: Duration, most: Option<Duration>) {
        let most = most.map(|most| format!("{:.3}", most.as_secs_f64()));
        self.put(what, &format!("{:.3}", time.as_secs_f64()), "s", ("", &most.unwrap_or_default()));
    }

    /// How many, and how many there may be at most.
    pub fn count(&self, what: &str, count: usize, most: Option<usize>) {
        let most = most.map(|most| most.to_string());
        self.put(what, &count.to_string(), "", ("", &most.unwrap_or_default()));
    }

    /// A part of a whole in percent, and what it must be within.
    pub fn share(&self, what: &str, (part, whole): (usize, usize), (least, most): (u32, u32)) {
        let share = 100.0 * part as f64 / whole.max(1) as f64;
        self.put(what, &format!("{share:.1}"), "%", (&least.to_string(), &most.to_string()));
    }

    /// Goes on for a while, saying so, and only in experiments: tests wait for conditions.
    pub fn go_on(&self, what: &str, span: Duration) {
        if !is_full() {
            return;
        }
        let until = Instant::now() + span;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.say(&format!("{what}: {} s more", left.as_secs_f64().ceil()));
            std::thread::sleep(left.min(Duration::from_secs(5)));
        }
    }

    fn put(&self, what: &str, value: &str, unit: &str, (least, most): (&str, &str)) {
        let bounds = [(least, "at least"), (most, "at most")];
        let bounds = bounds.iter().filter(|(bound, _)| !bound.is_empty());
        let bounds: Vec<String> = bounds.map(|(bound, words)| format!("{words} {bound}")).collect();
        let bounds = if bounds.is_empty() { String::new() } else { format!(" ({})", bounds.join(", ")) };
        self.say(&format!("{what}: {value} {unit}{bounds}"));
        if let Some(path) = std::env::var_os(FILE) {
            let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file to write");
            let line = [self.experiment, what, value, unit, least, most].join("\t");
            writeln!(file, "{line}").expect("room for a line");
        }
    }
}
