//! Claims about `pgbench`, each as small as it can be.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

fn words(said: &str, status: Option<i32>) -> Run {
    let status = status.map(|code| ExitStatus::from_raw(code << 8));
    Run::from_words(&Finished { status, said: said.to_owned() }, Duration::from_secs(9))
}

#[test]
fn a_good_run_gives_its_rate() {
    let run = words(
        "pgbench (15.14)\nnumber of transactions actually processed: 61\nlatency average = 0.7 ms\n\
         initial connection time = 12.1 ms\ntps = 29289.173 (without initial connection time)\n",
        Some(0),
    );
    assert_eq!((run.tps, run.connect_mean, run.trouble.count), (Some(29_289.173), None, 0));
}

#[test]
fn with_reconnects_the_time_to_connect_is_told() {
    let run =
        words("average connection time = 0.512 ms\ntps = 900.1 (including reconnection times)\n", Some(0));
    assert_eq!((run.tps, run.connect_mean), (Some(900.1), Some(Duration::from_micros(512))));
}

#[test]
fn errors_are_counted_and_the_first_is_kept() {
    let run = words(
        "pgbench: error: client 3 script 0 aborted in command 1 query 0: ERROR:  prepared statement\n\
         pgbench: error: client 1 aborted\npgbench: error: Run was aborted; the above results are incomplete.\n",
        Some(2),
    );
    assert_eq!(run.trouble.count, 2);
    assert!(run.trouble.first.unwrap().starts_with("client 3 script 0 aborted"));
}

#[test]
fn a_failure_without_error_line_has_the_last_words() {
    assert_eq!(words("something\nodd\n", Some(1)).trouble.first.as_deref(), Some("odd"));
    assert_eq!(words("", None).trouble.first.as_deref(), Some("pgbench hung: killed after 9 s"));
}

#[test]
fn the_log_gives_latencies_and_the_window() {
    let mut run = Run::default();
    let log = "0 1 2000 0 1700000000 500000\n1 1 1000 0 1700000000 250000\n1 2 failed 0 1700000009 1\n0 2 3000 0 17000";
    run.read_log(log.as_bytes()).unwrap();
    assert_eq!(run.latencies.count(), 2);
    let base = 1_700_000_000_000_000_000;
    assert_eq!(run.window, Some((UnixNanos(base + 250_000_000), UnixNanos(base + 500_000_000))));
}
