//! The line that says where the run is and how long it will still take.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows progress on standard error: one line rewritten on a terminal, a line now and then elsewhere.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    steps: usize,
    expected: Duration,
    done: Duration,
    terminal: bool,
    said: Option<Instant>,
}

/// Away from a terminal, at most a line in so long.
const SELDOM: Duration = Duration::from_secs(15);

impl Progress {
    /// For so many steps, which are guessed to take so long.
    pub fn new(steps: usize, expected: Duration) -> Progress {
        let terminal = io::stderr().is_terminal();
        Progress { started: Instant::now(), steps, expected, done: Duration::ZERO, terminal, said: None }
    }

    /// Says that step `number`, from 0, begins.
    pub fn begin(&mut self, number: usize, what: &str) {
        let left = time_left(self.started.elapsed(), self.done, self.expected);
        let line = format!("[{}/{}] {} left  {what}", number + 1, self.steps, minutes(left));
        let now = Instant::now();
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[2K{line}");
            let _ = io::stderr().flush();
        } else if self.said.is_none_or(|said| now - said >= SELDOM) {
            self.said = Some(now);
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// Counts a step as done that was guessed to take so long.
    pub fn end(&mut self, guess: Duration) {
        self.done += guess;
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

/// What is left of the guess, corrected by how the guess has held so far.
fn time_left(elapsed: Duration, done: Duration, expected: Duration) -> Duration {
    let left = expected.saturating_sub(done);
    if done.is_zero() {
        return left;
    }
    left.mul_f64((elapsed.as_secs_f64() / done.as_secs_f64()).clamp(0.5, 10.0))
}

/// As words: "4 min 05 s" or "12 s".
pub fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {:02} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests;
