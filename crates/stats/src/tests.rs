//! Counting, summing and averaging.

use std::time::Duration;

use super::*;

fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn each_counter_has_its_own_place_in_the_totals() {
    let counters = Counters::default();
    let adders: [fn(&Counters, u64); COUNTERS] = [
        Counters::add_server_assignment_count,
        Counters::add_xact_count,
        Counters::add_query_count,
        Counters::add_received_bytes,
        Counters::add_sent_bytes,
        Counters::add_xact_time_us,
        Counters::add_query_time_us,
        Counters::add_wait_time_us,
        Counters::add_client_parse_count,
        Counters::add_server_parse_count,
        Counters::add_bind_count,
        Counters::add_client_login_count,
        Counters::add_pin_count,
    ];
    for (place, add) in adders.iter().enumerate() {
        for _ in 0..=place {
            add(&counters, 10);
        }
    }
    assert_eq!(counters.totals().values(), std::array::from_fn(|place| 10 * (place as u64 + 1)));
}

#[test]
fn counters_of_two_workers_never_share_a_cache_line() {
    assert_eq!(align_of::<Counters>(), 128);
    assert_eq!(size_of::<Counters>() % 128, 0);
}

#[test]
fn totals_of_workers_are_summed() {
    let a = Totals { xact_count: 1, sent_bytes: 5, ..Totals::default() };
    let b = Totals { xact_count: 2, bind_count: 7, ..Totals::default() };
    let sum = Totals { xact_count: 3, sent_bytes: 5, bind_count: 7, ..Totals::default() };
    assert_eq!([a, b].into_iter().sum::<Totals>(), sum);
}

#[test]
fn counts_are_averaged_per_second_and_times_per_event() {
    let earlier = Totals { xact_count: 100, ..Totals::default() };
    let later = Totals {
        server_assignment_count: 20,
        xact_count: 200,
        query_count: 400,
        received_bytes: 5_000,
        sent_bytes: 15_000,
        xact_time_us: 1_000_000,
        query_time_us: 2_000,
        wait_time_us: 60,
        client_parse_count: 30,
        server_parse_count: 10,
        bind_count: 50,
        client_login_count: 9,
        pin_count: 40,
    };
    let averages = Averages::between(&earlier, &later, second(10));
    assert_eq!(averages.values(), [2, 10, 40, 500, 1500, 10_000, 5, 3, 3, 1, 5, 0, 4]);
}

#[test]
fn no_time_and_no_events_average_to_zero() {
    let later = Totals { xact_count: 5, ..Totals::default() };
    assert_eq!(Averages::between(&Totals::default(), &later, Duration::ZERO), Averages::default());
    let timed = Totals { wait_time_us: 5, ..Totals::default() };
    assert_eq!(Averages::between(&Totals::default(), &timed, second(1)), Averages::default());
}

#[test]
fn totals_that_shrink_with_a_dropped_pool_average_to_zero() {
    let earlier = Totals { xact_count: 50, ..Totals::default() };
    assert_eq!(Averages::between(&earlier, &Totals::default(), second(1)), Averages::default());
}

#[test]
fn extreme_counts_do_not_overflow() {
    let later = Totals { sent_bytes: u64::MAX, ..Totals::default() };
    let averages = Averages::between(&Totals::default(), &later, Duration::from_micros(1));
    assert_eq!(averages.sent_bytes_per_s, u64::MAX);
}

#[test]
fn averages_reach_back_to_the_snapshot_before_the_last() {
    let xacts = |count| Totals { xact_count: count, ..Totals::default() };
    let mut history = History::new(second(0));
    history.roll(second(60), xacts(600));
    history.roll(second(120), xacts(1200));
    assert_eq!(history.averages(second(150), &xacts(1500)).xacts_per_s, 10);
    history.roll(second(180), xacts(1200));
    assert_eq!(history.averages(second(180), &xacts(1200)).xacts_per_s, 0);
}

#[test]
fn first_moments_of_a_process_are_averaged_over_a_second() {
    let history = History::new(second(7));
    let live = Totals { xact_count: 3, ..Totals::default() };
    assert_eq!(history.averages(Duration::from_millis(7_001), &live).xacts_per_s, 3);
}

#[test]
fn log_line_has_the_words_that_tools_match() {
    let averages = Averages {
        server_assignments_per_s: 99,
        xacts_per_s: 1,
        queries_per_s: 2,
        client_parses_per_s: 3,
        server_parses_per_s: 4,
        binds_per_s: 5,
        client_logins_per_s: 6,
        pins_per_s: 99,
        received_bytes_per_s: 7,
        sent_bytes_per_s: 8,
        xact_time_us: 9,
        query_time_us: 10,
        wait_time_us: 11,
    };
    assert_eq!(
        averages.to_string(),
        "stats: 1 xacts/s, 2 queries/s, 3 client parses/s, 4 server parses/s, 5 binds/s, \
         6 client logins/s, in 7 B/s, out 8 B/s, xact 9 us, query 10 us, wait 11 us"
    );
}
