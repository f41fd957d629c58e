//! Nothing that a fixture has started outlives the test process, even one that crashes.
#![allow(clippy::disallowed_methods)] // processes are what is looked at

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::{PostgresOptions, Version, eventually};

const MARK: &str = "HOWDAH_TEST_CRASH";

/// Not a test by itself: the other one runs this program again, with the mark, so that this one crashes.
#[test]
fn process_with_a_server_crashes_when_told_to() {
    if std::env::var_os(MARK).is_some() {
        let server = PostgresOptions::new(Version::V18).start();
        println!("server {}", server.pid());
        std::process::abort();
    }
}

#[test]
fn server_ends_with_a_process_that_crashes() {
    let this = std::env::current_exe().expect("this program");
    let output = Command::new(this)
        .args(["--exact", "process_with_a_server_crashes_when_told_to", "--nocapture"])
        .env(MARK, "1")
        .output()
        .expect("this program runs");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let pid = text.split("server ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let pid: u32 = pid.and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("no pid in {text}"));
    let process = format!("/proc/{pid}");
    eventually(Duration::from_secs(20), || !Path::new(&process).exists());
}
