//! Timeouts, age, limits.

use super::*;

#[test]
fn waiting_client_is_expired_after_its_wait_limit() {
    let mut bench = Bench::new(LIMITS);
    let deadline = bench.now + Duration::from_secs(120);
    let _ = bench.queue_until('a', deadline);
    let _ = bench.queue('b');
    assert!(bench.pool.next_tick() <= deadline);
    bench.now = deadline;
    let due = bench.pool.tick(bench.now);
    let waited = Duration::from_secs(120);
    assert_eq!(due.expired, [Expired { client: 'a', waited, pinned: false, held: false }]);
    assert_eq!(bench.pool.waiting(), 1);
}

#[test]
fn shorter_wait_limit_ends_first() {
    let mut bench = Bench::new(LIMITS);
    let now = bench.now;
    let _ = bench.queue_until('a', now + Duration::from_secs(9));
    let _ = bench.queue_until('b', now + Duration::from_secs(3));
    assert_eq!(bench.pool.next_tick(), now + Duration::from_secs(3));
    bench.pass(3);
    assert_eq!(bench.pool.tick(bench.now).expired[0].client, 'b');
}

#[test]
fn deadlines_of_who_no_longer_waits_do_not_pile_up() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let mut slot = bench.grant('a').slot;
    for _ in 0..10_000 {
        let _ = bench.queue_until('b', bench.now + Duration::from_secs(120));
        match bench.release(slot) {
            After::Handover { grant, .. } => slot = grant.slot,
            other => panic!("b waits, not {other:?}"),
        }
    }
    bench.pool.assert_consistent(bench.now);
}

#[test]
fn idle_server_is_closed_in_time() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    assert_eq!(bench.pool.next_tick().since(bench.now), Duration::from_secs(600));
    bench.pass(600);
    let due = bench.pool.tick(bench.now);
    assert_eq!(due.close[0].server, 1);
    assert_eq!(bench.pool.state(due.close[0].slot), State::Closing);
}

#[test]
fn min_size_is_kept_from_the_idle_timeout() {
    let mut bench = Bench::with_idle(Limits { min_size: 1, ..LIMITS }, 2);
    bench.pass(601);
    assert_eq!(bench.pool.tick(bench.now).close.len(), 1);
    assert!(bench.pool.next_tick().since(bench.now) > Duration::from_secs(2000));
}

#[test]
fn zero_idle_timeout_is_never() {
    let bench = Bench::with_idle(Limits { idle_timeout: Duration::ZERO, ..LIMITS }, 1);
    assert_eq!(bench.pool.next_tick().since(bench.now), LIMITS.lifetime);
}

#[test]
fn old_servers_are_closed_one_by_one() {
    let limits = Limits { size: 4, idle_timeout: Duration::ZERO, ..LIMITS };
    let mut bench = Bench::with_idle(limits, 4);
    for gap in [3600, 900, 900, 900] {
        assert_eq!(bench.pool.next_tick().since(bench.now), Duration::from_secs(gap));
        bench.pass(gap);
        assert_eq!(bench.pool.tick(bench.now).close.len(), 1);
    }
}

#[test]
fn old_server_is_closed_when_released() {
    let mut bench = Bench::with_idle(LIMITS, 2);
    let (one, two) = (bench.grant('a'), bench.grant('b'));
    bench.pass(3600);
    assert_eq!(bench.release(one.slot), After::Close);
    assert_eq!(bench.release(two.slot), After::Idle, "not all at once");
}

#[test]
fn zero_lifetime_closes_after_one_use_and_not_before() {
    let mut bench =
        Bench::new(Limits { lifetime: Duration::ZERO, min_size: 1, idle_timeout: Duration::ZERO, ..LIMITS });
    let mut open = bench.pool.keep_min(bench.now, true);
    assert_eq!(bench.open(open.next().unwrap()), After::Idle);
    assert_eq!(bench.pool.next_tick(), Moment::NEVER);
    let slot = bench.grant('a').slot;
    assert_eq!(bench.release(slot), After::Close);
}

#[test]
fn shrinking_closes_idle_servers_now_and_others_when_released() {
    let mut bench = Bench::with_idle(Limits { size: 4, ..LIMITS }, 4);
    let grants = [bench.grant('a'), bench.grant('b')];
    let due = bench.pool.set_limits(bench.now, Limits { size: 1, ..LIMITS });
    assert_eq!(due.close.len(), 2);
    assert_eq!(bench.release(grants[0].slot), After::Close);
    assert_eq!(bench.release(grants[1].slot), After::Idle);
}

#[test]
fn growing_opens_for_who_waits() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let _ = bench.grant('a');
    let _ = bench.queue('b');
    assert_eq!(bench.pool.set_limits(bench.now, LIMITS).open.len(), 1);
}

#[test]
fn shorter_lifetime_is_noticed_by_idle_servers() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let due = bench.pool.set_limits(bench.now, Limits { lifetime: Duration::from_secs(10), ..LIMITS });
    assert!(due.is_empty());
    assert_eq!(bench.pool.next_tick().since(bench.now), Duration::from_secs(10));
}

#[test]
fn longest_idle_is_evicted() {
    let mut bench = Bench::with_idle(LIMITS, 2);
    assert_eq!(bench.pool.oldest_idle(), Some(bench.now));
    assert_eq!(bench.pool.evict_idle().unwrap().server, 1);
}
