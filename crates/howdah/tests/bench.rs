//! `howdah bench`: a tiny run against the real peers, what it says of bad use, and that nothing stays behind.
#![allow(clippy::disallowed_methods)] // tests start programs and read files

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use testkit::{Signal, Version, eventually, install, os};

/// The benchmark needs a PostgreSQL with TLS and all client tools, and its figures do not depend on the version.
fn suits() -> bool {
    Version::wanted() == Version::V15
}

fn bench(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_howdah"));
    command.arg("bench").arg("--pg-bin").arg(Version::V15.programs()).args(words).stdin(Stdio::null());
    command
}

/// What runs with the files of the benchmark of that pid.
fn left_behind(pid: u32) -> Vec<String> {
    let mark = format!("howdah-bench-{pid}/");
    let running = fs::read_dir("/proc").expect("Linux").flatten();
    running
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&mark))
        .collect()
}

fn leaves_nothing(pid: u32) {
    eventually(Duration::from_secs(20), || left_behind(pid).is_empty());
    let directory = std::env::temp_dir().join(format!("howdah-bench-{pid}"));
    assert!(!directory.exists(), "{} is still there", directory.display());
}

fn ran(mut command: Command) -> (u32, Output) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the pooler starts");
    let pid = child.id();
    (pid, child.wait_with_output().expect("it ends"))
}

#[test]
fn a_tiny_run_measures_every_target() {
    if !suits() {
        return;
    }
    let peers = ["haproxy", "pgpool", "pgbouncer"].map(|name| format!("/usr/sbin/{name}"));
    if !peers.iter().all(|path| fs::exists(path).unwrap_or(false)) {
        install::say("the peers of the benchmark are not installed (cargo xtask ci does that): not tested");
        return;
    }
    let file = std::env::temp_dir().join(format!("howdah-smoke-{}.json", std::process::id()));
    let mut command = bench(&["--only", "direct,relay,pgbouncer,haproxy,pgpool2,howdah-1", "--scale", "1"]);
    command.args(["--load", "pgbench,connect,canned", "--mode", "simple", "--login", "tls"]);
    command.args(["--clients", "4", "--rounds", "1", "--seconds", "1", "--json"]).arg(&file);
    let (pid, output) = ran(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = fs::read_to_string(&file).expect("the report was written");
    let _ = fs::remove_file(&file);
    // Six targets under two loads, and all but pgpool2 under the third, none with an error.
    assert_eq!(report.matches("\"transactions\": ").count(), 17, "{report}");
    let troubles = (1..=9).map(|digit| format!("\"errors\": {digit}")).chain(["\"failed\"".to_owned()]);
    for trouble in troubles {
        assert!(!report.contains(&trouble), "{trouble}: {report}");
    }
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for heading in ["pgbench -S simple, 4 clients", "through TLS, 4 clients", "canned replies, 4 clients"] {
        assert!(table.contains(heading), "{heading}: {table}");
    }
    leaves_nothing(pid);
}

/// One line, exit code 2, and nothing is started.
#[track_caller]
fn refused(words: &[&str], expected: &str) {
    let (pid, output) = ran(bench(words));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{words:?}: {said}");
    assert!(said.contains(expected), "{words:?}: {said}");
    leaves_nothing(pid);
}

#[test]
fn bad_use_gets_one_line_and_starts_nothing() {
    if !suits() {
        return;
    }
    refused(&["--only", "pgcat"], "no target is called \"pgcat\"");
    refused(&["--only", "haproxy", "--haproxy", "/nowhere"], "haproxy is not there (/nowhere): install");
    refused(&["--only", "direct", "--load", "sysbench", "--sysbench", "/nowhere"], "sysbench is not there");
    refused(&["--only", "direct", "--target", "x=postgres://me:secret@127.0.0.1:1/db"], "refused");
    refused(&["--only", "direct", "--postgres", "postgres://me@127.0.0.1:1/db"], "refused");
    refused(&["--only", "direct", "--postgres", "nonsense"], "does not begin with postgres://");
    refused(&["--only", "direct", "--rounds", "0"], "must be at least 1");
}

#[test]
fn a_missing_pgbench_is_named() {
    if !suits() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_howdah"));
    command.args(["bench", "--only", "direct", "--pg-bin", "/nowhere"]).stdin(Stdio::null());
    let (_, output) = ran(command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("is not there (/nowhere/"), "{said}");
}

#[test]
fn a_port_in_use_is_named() {
    if !suits() {
        return;
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    refused(&["--only", "direct", "--base-port", &port], &format!("port {port} is in use"));
}

/// While everything runs: by a signal that can be heard, and by one that cannot.
#[test]
fn a_run_that_is_stopped_or_killed_leaves_no_process() {
    if !suits() {
        return;
    }
    let only = "direct,relay,pgbouncer,pgpool2,howdah-1";
    for signal in [Signal::Terminate, Signal::Kill] {
        let mut command = bench(&["--only", only, "--scale", "1", "--load", "pgbench", "--clients", "2"]);
        command.args(["--seconds", "600"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the pooler starts");
        let pid = child.id();
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        assert!(said.any(|line| line.starts_with("[1/")), "it began");
        eventually(Duration::from_secs(60), || left_behind(pid).iter().any(|line| line.contains("pgbench")));
        os::send_signal(pid, signal).expect("it runs");
        let status = child.wait().expect("it ends");
        assert!(!status.success());
        eventually(Duration::from_secs(20), || left_behind(pid).is_empty());
        if signal == Signal::Kill {
            // Nobody was left to remove it; the next run would.
            let _ = fs::remove_dir_all(std::env::temp_dir().join(format!("howdah-bench-{pid}")));
        } else {
            assert_eq!(status.code(), Some(130));
            leaves_nothing(pid);
        }
    }
}
