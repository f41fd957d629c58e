//! Clients that keep their server, and those that wait until they may.

use super::*;

const TWO_OF_FOUR: Limits = Limits { size: 4, pinned_max: 2, ..LIMITS };

/// A pool of four with two servers kept, and the slots of those.
fn full() -> (Bench, [Slot; 2]) {
    let mut bench = Bench::with_idle(TWO_OF_FOUR, 4);
    let slots = [bench.grant('a').slot, bench.grant('b').slot];
    assert!(slots.iter().all(|slot| bench.pool.pin(*slot)));
    (bench, slots)
}

fn queue_pinned(bench: &mut Bench, client: char, deadline: Moment) -> Ticket {
    match bench.pool.checkout_pinned(bench.now, W0, &client, deadline) {
        Checkout::Queued { ticket, open } => {
            assert!(open.is_empty(), "a server is no help to who may not keep it");
            ticket
        }
        other => panic!("{client} waits, not {other:?}"),
    }
}

#[test]
fn share_is_kept_for_the_others() {
    let (mut bench, _) = full();
    let third = bench.grant('c');
    assert!(!bench.pool.pin(third.slot));
    assert_eq!(bench.release(third.slot), After::Idle);
    let _ = queue_pinned(&mut bench, 'c', Moment::NEVER);
    for client in ['d', 'e'] {
        assert!(!bench.grant(client).pinned, "who keeps nothing does not wait behind who would");
    }
    assert_eq!(bench.pool.counts(bench.now).pinned, 2);
    assert_eq!(bench.pool.counts(bench.now).waiting, 1);
}

#[test]
fn who_waits_to_keep_a_server_gets_the_one_that_frees_a_place() {
    let (mut bench, [first, _]) = full();
    let _ = queue_pinned(&mut bench, 'c', Moment::NEVER);
    bench.pass(2);
    let _ = queue_pinned(&mut bench, 'd', Moment::NEVER);
    match bench.release(first) {
        After::Handover { client: 'c', grant, waited } => {
            assert!(grant.pinned && waited == Duration::from_secs(2));
        }
        other => panic!("c has waited longest, not {other:?}"),
    }
    assert_eq!(bench.pool.counts(bench.now).pinned, 2);
}

#[test]
fn newcomer_does_not_overtake_who_waits() {
    let (mut bench, [first, _]) = full();
    let _ = queue_pinned(&mut bench, 'c', Moment::NEVER);
    let fourth = bench.grant('d').slot;
    assert_eq!(bench.pool.release(bench.now, first, W0, Released::Close), After::Close);
    assert!(!bench.pool.pin(fourth), "the place that is free is c's");
}

#[test]
fn place_freed_by_a_close_is_given_at_the_next_tick() {
    let (mut bench, [first, _]) = full();
    let _ = queue_pinned(&mut bench, 'c', Moment::NEVER);
    assert_eq!(bench.pool.release(bench.now, first, W0, Released::Close), After::Close);
    assert!(bench.pool.next_tick() <= bench.now);
    let due = bench.pool.tick(bench.now);
    assert_eq!(due.handovers.iter().map(|handover| handover.client).collect::<Vec<_>>(), ['c']);
    assert!(bench.pool.next_tick() > bench.now);
}

#[test]
fn higher_limit_lets_in_who_waits() {
    let (mut bench, _) = full();
    let _ = queue_pinned(&mut bench, 'c', Moment::NEVER);
    let due = bench.pool.set_limits(bench.now, Limits { pinned_max: 0, ..TWO_OF_FOUR });
    assert!(due.handovers[0].grant.pinned);
}

#[test]
fn server_that_is_cleaned_after_its_client_still_counts() {
    let (mut bench, [first, second]) = full();
    let _ = queue_pinned(&mut bench, 'c', Moment::NEVER);
    assert!(bench.pool.detach(first) && bench.pool.detach(second));
    assert_eq!(bench.pool.counts(bench.now).pinned, 2);
    assert_eq!(client_of(bench.release(first)), 'c');
    assert_eq!(bench.release(second), After::Idle);
    assert_eq!(bench.pool.counts(bench.now).pinned, 1);
}

#[test]
fn who_is_in_a_transaction_is_counted_beyond_the_limit() {
    let (mut bench, [first, _]) = full();
    let third = bench.grant('c').slot;
    bench.pool.pin_beyond(third);
    bench.pool.pin_beyond(third);
    assert!(bench.pool.pin(third), "it has what it asks for");
    assert_eq!(bench.pool.counts(bench.now).pinned, 3);
    let _ = queue_pinned(&mut bench, 'd', Moment::NEVER);
    assert_eq!(bench.release(first), After::Idle, "still as many as may be");
    assert_eq!(client_of(bench.release(third)), 'd');
}

#[test]
fn wait_to_keep_a_server_ends_at_its_deadline_and_says_what_for() {
    let (mut bench, _) = full();
    let deadline = bench.now + Duration::from_secs(9);
    let _ = queue_pinned(&mut bench, 'c', deadline);
    assert_eq!(bench.pool.next_tick(), deadline);
    bench.pass(9);
    let due = bench.pool.tick(bench.now);
    let expired = Expired { client: 'c', waited: Duration::from_secs(9), pinned: true, held: false };
    assert_eq!(due.expired, [expired]);
}

#[test]
fn both_queues_take_turns_by_age() {
    let mut bench = Bench::with_idle(Limits { size: 1, pinned_max: 1, ..LIMITS }, 1);
    let slot = bench.grant('a').slot;
    for (client, pins) in [('b', false), ('c', true), ('d', false), ('e', true)] {
        bench.pass(1);
        if pins {
            let _ = queue_pinned(&mut bench, client, Moment::NEVER);
        } else {
            let _ = bench.queue(client);
        }
    }
    for client in ['b', 'c', 'd', 'e'] {
        assert_eq!(client_of(bench.release(slot)), client);
    }
}

#[test]
fn who_may_keep_a_server_has_one_opened() {
    let mut bench = Bench::new(TWO_OF_FOUR);
    match bench.pool.checkout_pinned(bench.now, W0, &'a', Moment::NEVER) {
        Checkout::Queued { mut open, .. } => assert_eq!(client_of(bench.open(open.next().unwrap())), 'a'),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.pool.counts(bench.now).pinned, 1);
}

#[test]
fn ticket_of_one_queue_finds_nothing_in_the_other() {
    let (mut bench, _) = full();
    let pinned = queue_pinned(&mut bench, 'c', Moment::NEVER);
    let [_, _] = [bench.grant('d'), bench.grant('e')];
    let (plain, _) = bench.queue('f');
    assert!(bench.pool.forget(plain) && !bench.pool.forget(plain));
    assert_eq!(bench.pool.waiting(), 1);
    assert!(bench.pool.forget(pinned) && !bench.pool.forget(pinned));
}

#[test]
fn waiter_whose_settings_a_server_has_goes_first_but_not_for_ever() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let mut slot = bench.grant('z').slot;
    let near = |settings| Near { worker: W0, settings };
    let _ = bench.pool.checkout(bench.now, near(1), &'a', Moment::NEVER);
    let mut passed = 0;
    loop {
        let _ = bench.pool.checkout(bench.now, near(2), &'b', Moment::NEVER);
        match bench.pool.release(bench.now, slot, near(2), Released::Clean) {
            After::Handover { client: 'b', grant, .. } => (slot, passed) = (grant.slot, passed + 1),
            After::Handover { client: 'a', .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(passed, 8);
}

/// Each frees its server as soon as the others have freed theirs, and comes again: in a pool of ten there is a server
/// for each of five kinds before a client of that kind has had to wait for long.
#[test]
fn servers_keep_their_settings_where_clients_of_all_kinds_wait() {
    const SERVERS: usize = 10;
    const KINDS: u64 = 5;
    let mut bench = Bench::with_idle(Limits { size: SERVERS as u32, ..LIMITS }, SERVERS);
    let near = |settings| Near { worker: W0, settings };
    let kind_of = |client: char| u64::from(client as u32) % KINDS + 1;
    let mut held: std::collections::VecDeque<(Slot, char)> =
        ('A'..).take(SERVERS).map(|client| (bench.grant(client).slot, client)).collect();
    for client in ('a'..).take(10 * SERVERS) {
        let _ = bench.pool.checkout(bench.now, near(kind_of(client)), &client, Moment::NEVER);
    }
    let mut changes = 0;
    for turn in 0..40 * SERVERS {
        let (slot, client) = held.pop_front().unwrap();
        let _ = bench.pool.checkout(bench.now, near(kind_of(client)), &client, Moment::NEVER);
        let after = bench.pool.release(bench.now, slot, near(kind_of(client)), Released::Clean);
        let After::Handover { client: next, grant, .. } = after else { panic!("{after:?}") };
        changes += usize::from(turn >= 20 * SERVERS && kind_of(next) != kind_of(client));
        held.push_back((grant.slot, next));
    }
    assert_eq!(changes, 0);
}

#[test]
fn nobody_is_overtaken_by_who_came_long_after() {
    let mut bench = Bench::with_idle(Limits { size: 1, ..LIMITS }, 1);
    let slot = bench.grant('z').slot;
    let near = |settings| Near { worker: W0, settings };
    let _ = bench.pool.checkout(bench.now, near(1), &'a', Moment::NEVER);
    for _ in 0..16 {
        let _ = bench.pool.checkout(bench.now, near(1), &'b', Moment::NEVER);
    }
    let _ = bench.pool.checkout(bench.now, near(2), &'c', Moment::NEVER);
    let after = bench.pool.release(bench.now, slot, near(2), Released::Clean);
    assert!(matches!(after, After::Handover { client: 'a', .. }), "{after:?}");
    // Now it is one of the sixteen behind the head.
    let After::Handover { grant, .. } = after else { return };
    let after = bench.pool.release(bench.now, grant.slot, near(2), Released::Clean);
    assert!(matches!(after, After::Handover { client: 'c', .. }), "{after:?}");
}

#[test]
fn server_with_the_clients_settings_goes_before_one_of_the_same_worker() {
    let mut bench = Bench::with_idle(Limits { size: 3, ..LIMITS }, 3);
    let near = |worker, settings| Near { worker, settings };
    let slots: Vec<Slot> = (0..3).map(|_| bench.grant('a').slot).collect();
    for (slot, near) in slots.iter().zip([near(W0, 7), near(W1, 9), near(W0, 8)]) {
        assert_eq!(bench.pool.release(bench.now, *slot, near, Released::Clean), After::Idle);
    }
    for (asked, expected) in [(near(W1, 7), slots[0]), (near(W0, 9), slots[1]), (near(W1, 1), slots[2])] {
        match bench.pool.checkout(bench.now, asked, &'a', Moment::NEVER) {
            Checkout::Granted(grant) => assert_eq!(grant.slot, expected, "{asked:?}"),
            other => panic!("{other:?}"),
        }
    }
}
