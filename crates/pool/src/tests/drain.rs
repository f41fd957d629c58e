//! Pause, reconnect, kill.

use super::*;

#[test]
fn paused_pool_closes_what_comes_free_and_lets_clients_wait() {
    let mut bench = Bench::with_idle(LIMITS, 2);
    let grant = bench.grant('a');
    let idle = bench.pool.pause();
    assert_eq!(idle.len(), 1);
    let (_, open) = bench.queue('b');
    assert!(open.is_empty());
    assert_eq!(bench.release(grant.slot), After::Close);
    assert!(bench.pool.closed(bench.now, grant.slot).is_empty());
    assert!(!bench.pool.is_drained(), "one is still being closed");
    assert!(bench.pool.closed(bench.now, idle[0].slot).is_empty());
    assert!(bench.pool.is_drained());
    assert_eq!(bench.pool.resume(bench.now).len(), 1);
}

#[test]
fn server_that_logs_in_during_a_pause_is_closed() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    assert!(bench.pool.pause().is_empty());
    assert_eq!(bench.open(open.next().unwrap()), After::Close);
    assert_eq!(bench.pool.waiting(), 1);
}

#[test]
fn login_failure_during_a_pause_refuses_nobody() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    assert!(bench.pool.pause().is_empty());
    assert!(bench.fail(open.next().unwrap(), login_error()).is_empty());
    let _ = bench.queue('b');
}

#[test]
fn reconnect_closes_idle_now_others_when_released_and_no_new_ones() {
    let mut bench = Bench::with_idle(Limits { size: 3, ..LIMITS }, 2);
    let grant = bench.grant('a');
    let idle = bench.pool.reconnect();
    assert_eq!((idle.len(), bench.pool.close_needed_left()), (1, 2));
    assert!(bench.pool.is_close_needed(grant.slot));
    let (_, mut open) = bench.queue('b');
    let new = open.next().unwrap();
    assert_eq!(client_of(bench.open(new)), 'b');
    assert_eq!(bench.release(grant.slot), After::Close);
    let _ = bench.pool.closed(bench.now, grant.slot);
    let _ = bench.pool.closed(bench.now, idle[0].slot);
    assert_eq!(bench.pool.close_needed_left(), 0);
    assert_eq!(bench.release(new), After::Idle);
}

#[test]
fn server_being_opened_at_a_reconnect_is_closed_and_another_opened() {
    let mut bench = Bench::new(LIMITS);
    let (_, mut open) = bench.queue('a');
    let slot = open.next().unwrap();
    assert!(bench.pool.reconnect().is_empty());
    assert_eq!(bench.pool.close_needed_left(), 1);
    let opened = bench.pool.opened(bench.now, slot, 1, W0);
    assert_eq!((opened.after, opened.open.len()), (After::Close, 1));
}

#[test]
fn kill_ends_everything() {
    let mut bench = Bench::with_idle(Limits { size: 3, ..LIMITS }, 3);
    let grants = [bench.grant('a'), bench.grant('b'), bench.grant('c')];
    assert!(bench.pool.detach(grants[1].slot));
    assert_eq!(bench.release(grants[2].slot), After::Idle);
    assert!(bench.pool.cancel_sent(grants[0].slot));
    assert!(grants.iter().all(|grant| !bench.pool.has_given_up(grant.slot)));
    let killed = bench.pool.kill();
    assert_eq!((killed.servers.len(), killed.clients.len()), (3, 0));
    assert!(grants.iter().all(|grant| bench.pool.has_given_up(grant.slot)), "nobody cleans it first");
    bench.pool.assert_consistent(bench.now);
    assert_eq!(bench.release(grants[0].slot), After::Close, "its worker learns of it");
    for grant in &grants {
        let _ = bench.pool.closed(bench.now, grant.slot);
    }
    assert!(bench.pool.is_empty());
    assert_eq!(bench.pool.cancel_done(grants[0].slot), None);
    bench.pool.assert_consistent(bench.now);
}

#[test]
fn kill_empties_the_queue() {
    let mut bench = Bench::new(LIMITS);
    let (ticket, _) = bench.queue('a');
    assert_eq!(bench.pool.kill().clients, ['a']);
    assert!(!bench.pool.forget(ticket));
}
