//! A held pool: nothing is opened, nobody's own deadline counts, and all goes on afterwards.

use super::*;

#[test]
fn held_pool_opens_nothing_and_serves_at_once_afterwards() {
    let mut bench = Bench::new(LIMITS);
    bench.pool.hold(bench.now);
    let (_, open) = bench.queue('a');
    assert!(open.is_empty());
    bench.pass(60);
    assert!(bench.pool.tick(bench.now).is_empty());
    let open: Vec<Slot> = bench.pool.unhold(bench.now).collect();
    assert_eq!(open.len(), 1);
    assert_eq!(client_of(bench.open(open[0])), 'a');
    bench.pool.assert_consistent(bench.now);
}

#[test]
fn time_in_a_held_pool_counts_for_no_deadline() {
    let mut bench = Bench::new(LIMITS);
    let _ = bench.queue_until('a', bench.now + Duration::from_secs(10));
    bench.pass(4);
    bench.pool.hold(bench.now);
    let _ = bench.queue_until('b', bench.now + Duration::from_secs(10));
    bench.pass(100);
    assert!(bench.pool.tick(bench.now).expired.is_empty());
    let _ = bench.pool.unhold(bench.now);
    bench.pool.assert_consistent(bench.now);
    bench.pass(5);
    assert!(bench.pool.tick(bench.now).expired.is_empty());
    bench.pass(1);
    assert_eq!(bench.pool.tick(bench.now).expired[0].client, 'a');
    bench.pass(4);
    let expired = bench.pool.tick(bench.now).expired;
    assert_eq!((expired[0].client, expired[0].held), ('b', false));
}

#[test]
fn client_of_a_held_pool_is_told_in_the_end() {
    let mut bench = Bench::new(LIMITS);
    let _ = bench.queue('a');
    bench.pass(50);
    bench.pool.hold(bench.now);
    bench.pass(100);
    let _ = bench.queue('b');
    assert!(bench.pool.tick(bench.now).expired.is_empty());
    bench.pass(20);
    assert!(bench.pool.next_tick() <= bench.now);
    let expired = bench.pool.tick(bench.now).expired;
    assert_eq!((expired.len(), expired[0].client, expired[0].held), (1, 'a', true));
    bench.pass(100);
    assert_eq!(bench.pool.tick(bench.now).expired[0].client, 'b');
}

#[test]
fn failures_before_do_not_delay_what_is_opened_afterwards() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    for _ in 0..6 {
        let slot = open.next().expect("one is tried");
        let _ = bench.fail(slot, Failure::Connect);
        bench.pass(15);
        open = bench.pool.tick(bench.now).open;
    }
    let slot = open.next().expect("one is tried");
    let _ = bench.fail(slot, Failure::Connect);
    bench.pool.hold(bench.now);
    assert_eq!(bench.pool.unhold(bench.now).len(), 1);
}

#[test]
fn retired_server_goes_when_it_is_free() {
    let mut bench = Bench::with_idle(LIMITS, 2);
    let grant = bench.grant('a');
    assert_eq!(bench.pool.retire(grant.slot), None);
    let idle = bench.grant('b');
    assert_eq!(bench.release(idle.slot), After::Idle);
    assert_eq!(bench.pool.retire(idle.slot).map(|ended| ended.server), Some(idle.server));
    assert_eq!(bench.release(grant.slot), After::Close);
    bench.pool.assert_consistent(bench.now);
}

#[test]
fn cut_server_goes_whatever_it_does() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let grant = bench.grant('a');
    assert_eq!(bench.pool.cut(grant.slot).map(|ended| ended.server), Some(grant.server));
    assert_eq!(bench.pool.state(grant.slot), State::Closing);
    assert_eq!(bench.release(grant.slot), After::Close);
    // One that is being opened is closed when it is.
    let (_, mut open) = bench.queue('b');
    let slot = open.next().expect("there is room for one");
    assert_eq!(bench.pool.cut(slot), None);
    assert_eq!(bench.open(slot), After::Close);
    bench.pool.assert_consistent(bench.now);
}
