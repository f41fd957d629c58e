//! Claims about `watch`, each as small as it can be.

use super::*;

fn seen() -> Seen {
    let sample = |at: u64, cpu: u64| {
        let total = Duration::from_nanos(cpu);
        (UnixNanos(at), Cpu { total, user: total, system: Duration::ZERO })
    };
    Seen { samples: vec![sample(100, 0), sample(200, 50), sample(300, 150)], ..Seen::default() }
}

fn check(from: u64, until: u64, nanos: u64) {
    let cpu = seen().cpu_between(UnixNanos(from), UnixNanos(until)).unwrap();
    assert_eq!((cpu.total, cpu.user), (Duration::from_nanos(nanos), Duration::from_nanos(nanos)));
}

#[test]
fn time_between_samples_is_shared_out() {
    check(100, 300, 150);
    check(150, 250, 75);
    check(200, 200, 0);
}

#[test]
fn outside_the_samples_nothing_is_invented() {
    check(0, 1_000, 150);
    assert_eq!(Seen::default().cpu_between(UnixNanos(0), UnixNanos(1)), None);
}

#[test]
fn a_process_is_seen_from_begin_to_end() {
    let seen = Watch::begin(Watched { pid: Some(std::process::id()), servers: None }).end();
    assert!(!seen.samples.is_empty());
    assert!(seen.rss_peak_kib.is_some());
    assert_eq!(seen.servers_max, None);
}
