//! Claims about `usage`, each as small as it can be.

use super::*;
use std::time::Instant;

#[test]
fn ticks_are_found_behind_any_name() {
    let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 123 45 0 0 20 0 1 0 5 6 7";
    assert_eq!(ticks(stat), Some((Duration::from_millis(1_230), Duration::from_millis(450))));
    assert_eq!(ticks("42 (x) S 1"), None);
}

#[test]
fn a_value_is_found_by_its_whole_name() {
    let text = "VmHWMX:  1 kB\nVmHWM:\t  5124 kB\nRssAnon:\t 12 kB\n";
    assert_eq!(kib(text, "VmHWM:"), Some(5_124));
    assert_eq!(kib(text, "Anonymous:"), None);
}

#[test]
fn our_own_work_is_seen() {
    let mut meter = CpuMeter::new(std::process::id());
    let before = meter.read().unwrap().total;
    let limit = Instant::now() + Duration::from_secs(20);
    while meter.read().unwrap().total < before + Duration::from_millis(20) {
        assert!(Instant::now() < limit, "20 s of work were not seen");
    }
    assert!(rss_peak_kib(std::process::id()).unwrap() > 100);
    assert!(anonymous_kib(std::process::id()).unwrap() > 10);
}

#[test]
fn a_process_that_is_not_there_has_no_usage() {
    assert_eq!(CpuMeter::new(u32::MAX).read(), None);
}
