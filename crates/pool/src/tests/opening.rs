//! When servers are opened, and what failures do.

use super::*;

fn count_after(limits: Limits, clients: usize) -> usize {
    let mut bench = Bench::new(limits);
    (0..clients).map(|_| bench.queue('a').1.len()).sum()
}

#[test]
fn as_many_are_opened_as_wait_within_the_size() {
    assert_eq!(count_after(LIMITS, 1), 1);
    assert_eq!(count_after(LIMITS, 5), 2);
    assert_eq!(count_after(Limits { size: 5, ..LIMITS }, 5), 5);
}

#[test]
fn openings_at_a_time_are_bounded() {
    assert_eq!(count_after(Limits { size: 100, ..LIMITS }, 50), OPENING_MAX);
    assert_eq!(count_after(Limits { size: 0, ..LIMITS }, 50), OPENING_MAX);
}

#[test]
fn next_is_opened_when_one_has_logged_in() {
    let mut bench = Bench::new(Limits { size: 100, ..LIMITS });
    let opens: Vec<Slot> = (0..20).flat_map(|_| bench.queue('a').1).collect();
    let opened = bench.pool.opened(bench.now, opens[0], 1, W0);
    assert_eq!(opened.open.len(), 1);
}

#[test]
fn failed_connect_keeps_clients_waiting_and_is_retried_with_growing_pauses() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    let mut slot = open.next().unwrap();
    for pause in [250u64, 500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
        assert!(bench.fail(slot, Failure::Connect).is_empty());
        let due = bench.pool.next_tick();
        assert_eq!(due.since(bench.now), Duration::from_millis(pause));
        bench.now = due;
        let mut open = bench.pool.tick(due).open;
        slot = open.next().unwrap();
        assert!(open.is_empty());
    }
    assert_eq!(client_of(bench.open(slot)), 'a');
}

#[test]
fn one_at_a_time_is_opened_while_they_fail() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    assert!(bench.fail(open.next().unwrap(), Failure::NotNow).is_empty());
    let (_, open) = bench.queue('b');
    assert!(open.is_empty(), "the pause is on");
    bench.pass(1);
    assert_eq!(bench.pool.tick(bench.now).open.len(), 1);
}

#[test]
fn attempts_that_fail_together_count_once() {
    let mut bench = Bench::new(Limits { size: 8, ..LIMITS });
    let opens: Vec<Slot> = (0..8).flat_map(|_| bench.queue('a').1).collect();
    for slot in opens {
        assert!(bench.fail(slot, Failure::Connect).is_empty());
    }
    assert_eq!(bench.pool.next_tick().since(bench.now), Duration::from_millis(250));
}

#[test]
fn zero_login_retry_does_not_spin() {
    let mut bench = Bench::new(Limits { login_retry: Duration::ZERO, ..LIMITS });
    let (_, mut open) = bench.queue('a');
    assert!(bench.fail(open.next().unwrap(), Failure::Connect).is_empty());
    assert!(bench.pool.next_tick() > bench.now);
}

#[test]
fn failed_login_refuses_who_waits() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    let first = open.next().unwrap();
    let (_, mut open) = bench.queue('b');
    assert!(bench.fail(first, login_error()).is_empty(), "another attempt is under way");
    assert_eq!(bench.fail(open.next().unwrap(), login_error()), ['a', 'b']);
}

#[test]
fn failed_login_refuses_who_comes_before_the_next_attempt() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    assert_eq!(bench.fail(open.next().unwrap(), login_error()), ['a']);
    let Checkout::Refused(error) = bench.checkout('b') else { panic!("the error is cached") };
    assert_eq!(error.cached_refusal().sqlstate(), "28P01");
    assert_eq!(
        error.cached_refusal().to_string(),
        "server login has been failing, cached error: no (server_login_retry)"
    );
    bench.pass(1);
    let (_, mut open) = bench.queue('c');
    assert_eq!(client_of(bench.open(open.next().unwrap())), 'c');
}

#[test]
fn refusal_that_is_forgotten_refuses_nobody() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    assert_eq!(bench.fail(open.next().unwrap(), login_error()), ['a']);
    assert!(bench.pool.forget_refusal(bench.now).is_empty(), "nobody waits");
    let (_, mut open) = bench.queue('b');
    assert_eq!(client_of(bench.open(open.next().unwrap())), 'b');
    let (_, mut open) = bench.queue('c');
    assert!(bench.fail(open.next().unwrap(), Failure::Connect).is_empty());
    assert!(bench.pool.forget_refusal(bench.now).is_empty(), "who was not reached was not refused");
}

#[test]
fn failed_login_beside_a_live_server_refuses_nobody() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let grant = bench.grant('a');
    let (_, mut open) = bench.queue('b');
    assert!(bench.fail(open.next().unwrap(), login_error()).is_empty());
    let _ = bench.queue('c');
    assert_eq!(client_of(bench.release(grant.slot)), 'b');
}

#[test]
fn opening_that_a_limit_forbids_waits_for_a_poke() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    bench.pool.open_refused(bench.now, open.next().unwrap());
    assert_eq!(bench.pool.servers(), 0);
    assert!(bench.queue('b').1.is_empty());
    assert_eq!(bench.pool.poke(bench.now).len(), 2);
}

#[test]
fn opening_that_a_limit_forbids_is_tried_again_after_a_while() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    bench.pool.open_refused(bench.now, open.next().unwrap());
    bench.now = bench.pool.next_tick();
    assert_eq!(bench.pool.tick(bench.now).open.len(), 1);
}

#[test]
fn reserve_is_for_who_waited_long() {
    let mut bench = Bench::with_idle(Limits { size: 1, reserve_size: 1, ..LIMITS }, 1);
    let _ = bench.grant('a');
    assert!(bench.queue('b').1.is_empty());
    let _ = bench.queue('c');
    assert_eq!(bench.pool.next_tick().since(bench.now), Duration::from_secs(5));
    bench.pass(5);
    let mut open = bench.pool.tick(bench.now).open;
    assert_eq!(open.len(), 1);
    assert_eq!(client_of(bench.open(open.next().unwrap())), 'b');
    assert_eq!(bench.pool.next_tick(), Moment::NEVER, "the reserve is used up");
}

#[test]
fn zero_reserve_timeout_switches_the_reserve_off() {
    let limits = Limits { size: 1, reserve_size: 1, reserve_timeout: Duration::ZERO, ..LIMITS };
    let mut bench = Bench::with_idle(limits, 1);
    let _ = bench.grant('a');
    let _ = bench.queue('b');
    assert_eq!(bench.pool.next_tick(), Moment::NEVER);
}

#[test]
fn min_size_is_filled_only_when_asked_for() {
    let mut bench = Bench::new(Limits { size: 5, min_size: 3, ..LIMITS });
    assert_eq!(bench.pool.next_tick(), Moment::NEVER);
    assert_eq!(bench.pool.keep_min(bench.now, true).len(), 3);
}

#[test]
fn min_size_is_never_above_the_size() {
    let mut bench = Bench::new(Limits { size: 2, min_size: 3, ..LIMITS });
    assert_eq!(bench.pool.keep_min(bench.now, true).len(), 2);
}

#[test]
fn server_below_min_size_is_replaced() {
    let mut bench = Bench::with_idle(Limits { size: 1, min_size: 1, ..LIMITS }, 1);
    assert!(bench.pool.keep_min(bench.now, true).is_empty());
    let slot = bench.grant('a').slot;
    assert_eq!(bench.pool.closed(bench.now, slot).len(), 1);
}

#[test]
fn dedicated_server_counts_and_is_never_reused() {
    let mut bench = Bench::new(Limits { size: 1, ..LIMITS });
    let slot = bench.pool.reserve_dedicated().unwrap().slot;
    assert!(bench.pool.reserve_dedicated().is_none(), "the pool is full");
    assert!(bench.queue('b').1.is_empty(), "the pool is full");
    assert_eq!(bench.open(slot), After::Dedicated);
    assert_eq!(bench.release(slot), After::Close);
    assert_eq!(bench.pool.closed(bench.now, slot).len(), 1);
}

#[test]
fn dedicated_server_takes_the_place_of_an_idle_one() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let dedicated = bench.pool.reserve_dedicated().unwrap();
    assert_eq!(dedicated.evicted.unwrap().server, 1);
    assert_eq!(bench.pool.servers(), 1);
    bench.pool.assert_consistent(bench.now);
}

#[test]
fn failed_dedicated_login_concerns_nobody_else() {
    let mut bench = Bench::new(Limits { size: 1, ..LIMITS });
    let slot = bench.pool.reserve_dedicated().unwrap().slot;
    let _ = bench.queue('b');
    let failed = bench.pool.open_failed(bench.now, slot, login_error());
    assert!(failed.refused.is_empty());
    assert_eq!(failed.open.len(), 1);
}
