//! Claims about `progress`, each as small as it can be.

use super::*;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn time_left_follows_the_pace_so_far() {
    assert_eq!(time_left(secs(0), secs(0), secs(100)), secs(100));
    assert_eq!(time_left(secs(20), secs(10), secs(100)), secs(180));
    assert_eq!(time_left(secs(100), secs(100), secs(100)), secs(0));
}

#[test]
fn times_are_words() {
    assert_eq!(minutes(secs(9)), "9 s");
    assert_eq!(minutes(secs(245)), "4 min 05 s");
}
