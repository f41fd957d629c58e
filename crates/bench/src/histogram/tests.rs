//! Claims about `histogram`, each as small as it can be.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_bucket_is_within_one_percent_of_what_fell_into_it(nanos in 0u64..(1 << 41)) {
        let middle = middle(bucket(nanos)) as f64;
        prop_assert!((middle - nanos as f64).abs() <= nanos as f64 * 0.01, "{nanos} in {middle}");
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list(mut micros in proptest::collection::vec(1u64..1_000_000, 1..300)) {
        let mut histogram = Histogram::default();
        for &one in &micros {
            histogram.add(Duration::from_micros(one));
        }
        micros.sort_unstable();
        let p50 = micros[(micros.len() as f64 * 0.5).ceil() as usize - 1] as f64;
        let seen = histogram.percentiles().unwrap();
        prop_assert!((seen.p50.as_secs_f64() * 1e6 - p50).abs() <= p50 * 0.01);
        prop_assert_eq!(seen.max, Duration::from_micros(micros[micros.len() - 1]));
        prop_assert!(seen.p50 <= seen.p90 && seen.p90 <= seen.p99 && seen.p99 <= seen.p999 && seen.p999 <= seen.max);
    }
}

#[test]
fn nothing_counted_has_no_percentiles() {
    assert_eq!(Histogram::default().percentiles(), None);
}

#[test]
fn an_hour_and_more_is_still_counted() {
    let mut histogram = Histogram::default();
    histogram.add(Duration::from_secs(1_000_000));
    assert_eq!(histogram.count(), 1);
    assert_eq!(histogram.percentiles().map(|seen| seen.max), Some(Duration::from_secs(1_000_000)));
}

#[test]
fn merged_histograms_count_both() {
    let (mut one, mut two) = (Histogram::default(), Histogram::default());
    one.add(Duration::from_millis(1));
    two.add(Duration::from_millis(3));
    one.merge(&two);
    assert_eq!((one.count(), one.percentiles().map(|seen| seen.max)), (2, Some(Duration::from_millis(3))));
}
