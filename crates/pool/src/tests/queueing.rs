//! Checkout, queue, release, cancel.

use super::*;

#[test]
fn first_client_waits_and_a_server_is_opened() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    let slot = open.next().unwrap();
    assert!(open.is_empty());
    assert_eq!(client_of(bench.open(slot)), 'a');
    assert_eq!(bench.pool.counts(bench.now).active, 1);
}

#[test]
fn idle_server_is_granted_at_once() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let grant = bench.grant('a');
    assert_eq!((grant.server, grant.check), (1, false));
}

#[test]
fn latest_released_goes_first() {
    let mut bench = Bench::with_idle(LIMITS, 2);
    assert_eq!(bench.grant('a').server, 2);
}

#[test]
fn longest_idle_goes_first_with_round_robin() {
    let mut bench = Bench::with_idle(Limits { round_robin: true, ..LIMITS }, 2);
    assert_eq!(bench.grant('a').server, 1);
}

#[test]
fn own_server_goes_before_a_later_one_of_another_worker() {
    let mut bench = Bench::with_idle(LIMITS, 2);
    let (two, one) = (bench.grant('a'), bench.grant('b'));
    assert_eq!(bench.pool.release(bench.now, one.slot, W1, Released::Clean), After::Idle);
    assert_eq!(bench.pool.release(bench.now, two.slot, W0, Released::Clean), After::Idle);
    let Checkout::Granted(grant) = bench.pool.checkout(bench.now, W1, &'c', Moment::NEVER) else {
        panic!("two are idle");
    };
    assert_eq!(grant.server, one.server);
}

#[test]
fn own_server_far_down_the_list_is_not_looked_for() {
    let mut bench = Bench::with_idle(Limits { size: 0, ..LIMITS }, 9);
    let grants: Vec<_> = (0..9).map(|_| bench.grant('a')).collect();
    for (at, grant) in grants.iter().enumerate() {
        let worker = if at == 0 { W1 } else { W0 };
        assert_eq!(bench.pool.release(bench.now, grant.slot, worker, Released::Clean), After::Idle);
    }
    let Checkout::Granted(grant) = bench.pool.checkout(bench.now, W1, &'c', Moment::NEVER) else {
        panic!("nine are idle");
    };
    assert_eq!(grant.server, grants[8].server);
}

#[test]
fn released_server_goes_to_the_oldest_waiter() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let grant = bench.grant('a');
    let (_, open) = bench.queue('b');
    assert!(open.is_empty(), "the pool is full");
    bench.pass(3);
    let _ = bench.queue('c');
    match bench.release(grant.slot) {
        After::Handover { client: 'b', grant: next, waited } => {
            assert_eq!((next.server, waited), (grant.server, Duration::from_secs(3)));
        }
        other => panic!("b is the oldest, not {other:?}"),
    }
    assert_eq!(client_of(bench.release(grant.slot)), 'c');
    assert_eq!(bench.release(grant.slot), After::Idle);
}

#[test]
fn who_left_the_queue_is_passed_over() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let grant = bench.grant('a');
    let (ticket, _) = bench.queue('b');
    let _ = bench.queue('c');
    assert!(bench.pool.forget(ticket));
    assert!(!bench.pool.forget(ticket));
    assert_eq!(client_of(bench.release(grant.slot)), 'c');
}

#[test]
fn who_was_served_can_no_longer_leave_the_queue() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let grant = bench.grant('a');
    let (ticket, _) = bench.queue('b');
    assert_eq!(client_of(bench.release(grant.slot)), 'b');
    let _ = bench.queue('c');
    assert!(!bench.pool.forget(ticket), "the place in memory is c's now");
    assert_eq!(bench.pool.waited(bench.now, ticket), None);
    assert_eq!(bench.pool.waiting(), 1);
}

#[test]
fn client_with_a_dead_server_keeps_its_turn() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let grant = bench.grant('a');
    let since = bench.now;
    let _ = bench.queue('b');
    bench.pass(2);
    let _ = bench.pool.checkout_first(bench.now, W0, &'a', since, Moment::NEVER);
    match bench.release(grant.slot) {
        After::Handover { client: 'a', waited, .. } => assert_eq!(waited, Duration::from_secs(2)),
        other => panic!("a comes before b, not {other:?}"),
    }
}

#[test]
fn long_idle_server_is_checked_first() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    bench.pass(30);
    let counts = bench.pool.counts(bench.now);
    assert_eq!((counts.idle, counts.used), (0, 1));
    assert!(bench.grant('a').check);
}

#[test]
fn zero_check_delay_checks_always() {
    let mut bench = Bench::with_idle(Limits { check_delay: Some(Duration::ZERO), ..LIMITS }, 1);
    assert!(bench.grant('a').check);
}

#[test]
fn no_check_query_checks_never() {
    let mut bench = Bench::with_idle(Limits { check_delay: None, ..LIMITS }, 1);
    bench.pass(599);
    assert!(!bench.grant('a').check);
}

#[test]
fn dirty_server_is_closed_and_replaced() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let grant = bench.grant('a');
    let _ = bench.queue('b');
    assert_eq!(bench.pool.release(bench.now, grant.slot, W0, Released::Close), After::Close);
    assert_eq!(bench.pool.servers(), 1, "it counts until it is closed");
    let mut open = bench.pool.closed(bench.now, grant.slot);
    assert_eq!(client_of(bench.open(open.next().unwrap())), 'b');
}

#[test]
fn old_name_of_a_server_does_nothing() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let old = bench.grant('a').slot;
    let _ = bench.pool.closed(bench.now, old);
    let (_, mut open) = bench.queue('b');
    let new = open.next().unwrap();
    assert_eq!(new.index(), old.index());
    assert_eq!(client_of(bench.open(new)), 'b');
    assert_eq!(bench.release(old), After::Close);
    assert!(bench.pool.closed(bench.now, old).is_empty());
    assert!(!bench.pool.detach(old) && !bench.pool.cancel_sent(old));
    assert_eq!(bench.pool.state(new), State::Active);
}

#[test]
fn server_released_twice_is_closed() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let grant = bench.grant('a');
    assert_eq!(bench.release(grant.slot), After::Idle);
    assert_eq!(bench.release(grant.slot), After::Close);
    bench.pool.assert_consistent(bench.now);
}

#[test]
fn detached_server_is_tested_until_it_is_released() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let grant = bench.grant('a');
    assert!(bench.pool.detach(grant.slot));
    assert!(!bench.pool.detach(grant.slot));
    assert_eq!(bench.pool.counts(bench.now).tested, 1);
    assert_eq!(bench.release(grant.slot), After::Idle);
}

#[test]
fn idle_server_that_speaks_is_taken_by_one_only() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let slot = bench.grant('a').slot;
    assert!(!bench.pool.take_idle(slot), "a has it");
    assert_eq!(bench.release(slot), After::Idle);
    assert!(bench.pool.take_idle(slot));
    assert!(!bench.pool.take_idle(slot));
    assert_eq!(bench.pool.state(slot), State::Tested);
}

#[test]
fn server_with_a_cancel_in_flight_is_kept_back_and_checked() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let slot = bench.grant('a').slot;
    assert!(bench.pool.cancel_sent(slot));
    let _ = bench.queue('b');
    assert_eq!(bench.release(slot), After::Canceling);
    let counts = bench.pool.counts(bench.now);
    assert_eq!((counts.being_canceled, counts.active_cancel), (1, 1));
    assert_eq!(bench.pool.cancel_done(slot), Some(1));
    assert_eq!(bench.pool.state(slot), State::Tested);
    assert_eq!(client_of(bench.release(slot)), 'b');
}

#[test]
fn last_cancel_to_end_frees_the_server() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let slot = bench.grant('a').slot;
    assert!(bench.pool.cancel_sent(slot) && bench.pool.cancel_sent(slot));
    assert_eq!(bench.release(slot), After::Canceling);
    assert_eq!(bench.pool.cancel_done(slot), None);
    assert_eq!(bench.pool.cancel_done(slot), Some(1));
}

#[test]
fn cancel_that_ends_in_time_changes_nothing() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let slot = bench.grant('a').slot;
    assert!(bench.pool.cancel_sent(slot));
    assert_eq!(bench.pool.cancel_done(slot), None);
    assert_eq!(bench.release(slot), After::Idle);
}

#[test]
fn cancel_is_sent_to_active_servers_only() {
    let mut bench = Bench::with_idle(LIMITS, 1);
    let slot = bench.grant('a').slot;
    assert!(bench.pool.detach(slot));
    assert!(!bench.pool.cancel_sent(slot), "its client is gone");
    assert_eq!(bench.release(slot), After::Idle);
    assert!(!bench.pool.cancel_sent(slot));
}

#[test]
fn cancels_in_flight_are_limited_by_the_pool_size() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let slot = bench.grant('a').slot;
    assert!(bench.pool.cancel_sent(slot));
    assert!(!bench.pool.cancel_sent(slot));
}
