//! Running other programs, cargo above all, and counting the tests that it reports.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// What a step has shown: tests or single checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
}

impl Count {
    /// One check that is right or wrong.
    pub fn one(passed: bool) -> Count {
        if passed { Count { passed: 1, failed: 0 } } else { Count { passed: 0, failed: 1 } }
    }

    pub fn plus(self, other: Count) -> Count {
        Count { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }

    /// Reads a line like `test result: ok. 3 passed; 1 failed; 0 ignored; ...`.
    fn in_line(line: &str) -> Option<Count> {
        let mut words =
            line.strip_prefix("test result: ")?.split([' ', ';', '.']).filter(|word| !word.is_empty());
        let _verdict = words.next()?;
        let passed = words.next()?.parse().ok()?;
        let failed = words.nth(1)?.parse().ok()?;
        Some(Count { passed, failed })
    }
}

/// A cargo command in this workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(crate::workspace::root());
    // What cargo has set for this program itself would make its children build anew.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs to the end with its output shown; right if the program says so.
pub fn check(mut command: Command) -> Count {
    say(&command);
    Count::one(command.status().is_ok_and(|status| status.success()))
}

/// Runs `cargo test` with its output shown, and adds up its results. A failure without one counts as one.
pub fn count_tests(mut command: Command) -> Count {
    say(&command);
    let child = command.stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return Count::one(false) };
    let mut sum = Count::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            sum = sum.plus(Count::in_line(&line).unwrap_or_default());
            if worth_showing(&line) {
                println!("{line}");
            }
        }
    }
    let succeeded = child.wait().is_ok_and(|status| status.success());
    if !succeeded && sum.failed == 0 { sum.plus(Count::one(false)) } else { sum }
}

/// Empty runs (of crates without that kind of test) would hide the others.
fn worth_showing(line: &str) -> bool {
    !line.is_empty() && line != "running 0 tests" && !line.starts_with("test result: ok. 0 passed; 0 failed")
}

fn say(command: &Command) {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let settings = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let settings: String = settings
        .map(|(name, value)| format!("{}={} ", name.to_string_lossy(), value.to_string_lossy()))
        .collect();
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    println!("$ {settings}{program} {}", arguments.join(" "));
}

#[cfg(test)]
mod tests;
