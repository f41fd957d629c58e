//! Random sequences of calls against a naive model: lists in the order in which things happened.

use std::time::Duration;

use model::{Moment, WorkerId};
use proptest::prelude::*;

use crate::*;

/// How long clients of a held pool wait.
const FAILOVER: Duration = Duration::from_secs(12);

#[derive(Clone, Debug)]
enum Step {
    Checkout { worker: u16, settings: u64, wait_s: u64, pins: bool },
    Return { age_s: u64, pins: bool },
    Pin(usize),
    PinBeyond(usize),
    Forget(usize),
    Release { at: usize, clean: bool, worker: u16, settings: u64 },
    Detach(usize),
    TakeIdle(usize),
    CancelSent(usize),
    CancelDone(usize),
    Opened(usize),
    Failed(usize, u8),
    Forbidden(usize),
    Poke,
    Closed(usize),
    Dies(usize),
    Pass(u64),
    Tick,
    Limits { size: u32, min: u32, reserve: u32, round_robin: bool, lifetime_s: u64, pinned: u32 },
    Pause,
    Resume,
    Reconnect,
    Kill,
    Evict,
    Dedicated,
    KeepMin(bool),
    OldName(usize),
    Hold,
    Unhold,
    Retire(usize),
    Cut(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0usize..64;
    let step = prop_oneof![
        12 => (0u16..3, 0u64..3, 0u64..20, prop::bool::weighted(0.2))
            .prop_map(|(worker, settings, wait_s, pins)| Step::Checkout { worker, settings, wait_s, pins }),
        1 => (0u64..5, any::<bool>()).prop_map(|(age_s, pins)| Step::Return { age_s, pins }),
        3 => at.clone().prop_map(Step::Pin),
        1 => at.clone().prop_map(Step::PinBeyond),
        2 => at.clone().prop_map(Step::Forget),
        10 => (at.clone(), prop::bool::weighted(0.9), 0u16..3, 0u64..3)
            .prop_map(|(at, clean, worker, settings)| Step::Release { at, clean, worker, settings }),
        2 => at.clone().prop_map(Step::Detach),
        1 => at.clone().prop_map(Step::TakeIdle),
        2 => at.clone().prop_map(Step::CancelSent),
        2 => at.clone().prop_map(Step::CancelDone),
        8 => at.clone().prop_map(Step::Opened),
        2 => (at.clone(), 0u8..3).prop_map(|(at, kind)| Step::Failed(at, kind)),
        1 => at.clone().prop_map(Step::Forbidden),
        1 => Just(Step::Poke),
        4 => at.clone().prop_map(Step::Closed),
        1 => at.clone().prop_map(Step::Dies),
        3 => (0u64..10).prop_map(Step::Pass),
        3 => Just(Step::Tick),
        1 => (0u32..5, 0u32..3, 0u32..3, any::<bool>(), 0u64..40, 0u32..4).prop_map(
            |(size, min, reserve, round_robin, lifetime_s, pinned)| {
                Step::Limits { size, min, reserve, round_robin, lifetime_s, pinned }
            }
        ),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Kill),
        1 => Just(Step::Evict),
        1 => Just(Step::Dedicated),
        1 => any::<bool>().prop_map(Step::KeepMin),
        1 => at.clone().prop_map(Step::OldName),
        1 => Just(Step::Hold),
        2 => Just(Step::Unhold),
        1 => at.clone().prop_map(Step::Retire),
        1 => at.prop_map(Step::Cut),
    ];
    prop::collection::vec(step, 1..120)
}

/// What the model knows of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    slot: Slot,
    server: u32,
    worker: u16,
    settings: u64,
    /// Lent to a client; else it is being tested.
    active: bool,
    /// Kept for its client's state.
    pinned: bool,
    dedicated: bool,
    /// From before a reconnect: it must not be reused.
    old: bool,
    connected: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    client: u32,
    since: Moment,
    settings: u64,
    passed: u32,
    order: i64,
    deadline: Moment,
    ticket: Ticket,
}

struct World {
    pool: Pool<u32, u32>,
    now: Moment,
    ids: u32,
    waiting: Vec<Waiting>,
    /// Those who want to keep a server.
    pinning: Vec<Waiting>,
    /// In the order of release.
    idle: Vec<Held>,
    held: Vec<Held>,
    canceling: Vec<Held>,
    closing: Vec<Slot>,
    /// With whether it is a dedicated one, and from before a reconnect.
    opening: Vec<(Slot, bool, bool)>,
    cancels: Vec<Slot>,
    gone: Vec<Slot>,
    paused: bool,
    /// Since when there is nowhere to open a server.
    nowhere: Option<Moment>,
    failed_last: bool,
    places: (i64, i64),
}

fn pick<T>(list: &[T], at: usize) -> Option<usize> {
    if list.is_empty() { None } else { Some(at % list.len()) }
}

impl World {
    fn new() -> World {
        let limits = Limits { size: 3, failover_timeout: FAILOVER, ..super::LIMITS };
        World {
            pool: Pool::new(limits),
            now: Moment(5_000_000),
            ids: 0,
            waiting: Vec::new(),
            places: (0, 0),
            pinning: Vec::new(),
            idle: Vec::new(),
            held: Vec::new(),
            canceling: Vec::new(),
            closing: Vec::new(),
            opening: Vec::new(),
            cancels: Vec::new(),
            gone: Vec::new(),
            paused: false,
            nowhere: None,
            failed_last: false,
        }
    }

    fn id(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }

    fn opens(&mut self, opens: Opens) {
        let may_open = !self.paused && self.nowhere.is_none();
        assert!(opens.is_empty() || may_open, "a pool that is paused or held opens nothing");
        self.opening.extend(opens.map(|slot| (slot, false, false)));
        let shared = self.opening.iter().filter(|(_, dedicated, _)| !dedicated).count();
        assert!(shared <= OPENING_MAX);
    }

    fn ended(&mut self, ended: Ended<u32>) {
        for list in [&mut self.idle, &mut self.held, &mut self.canceling] {
            if let Some(at) = list.iter().position(|held| held.slot == ended.slot) {
                assert_eq!(list.remove(at).server, ended.server);
                self.closing.push(ended.slot);
                return;
            }
        }
        panic!("{ended:?} was not there");
    }

    fn checkout(&mut self, near: Near, wait_s: u64, pins: bool, age_s: Option<u64>) {
        let client = self.id();
        let deadline = self.now.deadline(Duration::from_secs(wait_s));
        let since = self.now - Duration::from_secs(age_s.unwrap_or(0));
        let pool = &mut self.pool;
        let answer = match (age_s, pins) {
            (None, false) => pool.checkout(self.now, near, &client, deadline),
            (None, true) => pool.checkout_pinned(self.now, near, &client, deadline),
            (Some(_), false) => pool.checkout_first(self.now, near, &client, since, deadline),
            (Some(_), true) => pool.checkout_pinned_first(self.now, near, &client, since, deadline),
        };
        match answer {
            Checkout::Granted(grant) => {
                assert_eq!(grant.pinned, pins);
                self.granted(&grant, near);
            }
            Checkout::Queued { ticket, open } => {
                assert!(self.idle.is_empty() || (pins && (!self.may_pin() || !self.pinning.is_empty())));
                let settings = near.settings;
                let order = self.place(age_s.is_some(), pins);
                let waiting = Waiting { client, since, settings, passed: 0, order, deadline, ticket };
                let list = if pins { &mut self.pinning } else { &mut self.waiting };
                list.insert(if age_s.is_some() { 0 } else { list.len() }, waiting);
                self.opens(open);
            }
            Checkout::Refused(_) => {
                assert!(self.held.is_empty() && self.canceling.is_empty());
                assert!(self.idle.is_empty() && self.failed_last && !self.paused && self.nowhere.is_none());
            }
        }
    }

    /// Of those who wait for nothing else: how they came, before all others or behind them.
    fn place(&mut self, is_first: bool, pins: bool) -> i64 {
        let count = i64::from(!pins);
        let (first, last) = &mut self.places;
        if is_first {
            *first -= count;
            return *first;
        }
        *last += count;
        *last - 1
    }

    fn pinned(&self) -> u32 {
        self.held.iter().filter(|held| held.pinned).count() as u32
    }

    fn may_pin(&self) -> bool {
        let most = self.pool.limits().pinned_max;
        most == 0 || self.pinned() < most
    }

    /// At the start of a transaction; who may not keep its server gives it back and waits.
    fn pin(&mut self, at: usize) {
        let Some(at) = pick(&self.held, at) else { return };
        let held = self.held[at];
        let may = held.active && (held.pinned || (self.may_pin() && self.pinning.is_empty()));
        assert_eq!(self.pool.pin(held.slot), may);
        self.held[at].pinned |= may;
        if held.active && !may {
            self.release(at, true, near(held));
            self.checkout(near(held), 5, true, None);
        }
    }

    fn pin_beyond(&mut self, at: usize) {
        let Some(at) = pick(&self.held, at) else { return };
        self.pool.pin_beyond(self.held[at].slot);
        self.held[at].pinned |= self.held[at].active;
        assert_eq!(self.pool.is_pinned(self.held[at].slot), self.held[at].pinned);
    }

    fn granted(&mut self, grant: &Grant<u32>, asked: Near) {
        let at = self.idle.iter().position(|held| held.slot == grant.slot).expect("it was idle");
        let round_robin = self.pool.limits().round_robin;
        let score = |held: &Held| {
            let same_worker = round_robin || held.worker == asked.worker.0;
            (held.settings == asked.settings, same_worker)
        };
        let looked_at: Vec<&Held> = match round_robin {
            true => self.idle.iter().take(8).collect(),
            false => self.idle.iter().rev().take(8).collect(),
        };
        let best = looked_at.iter().map(|held| score(held)).max().expect("one is idle");
        let first = looked_at.iter().find(|held| score(held) == best).expect("the best is there");
        assert_eq!(first.slot, grant.slot, "settings go before workers, and both before the order");
        let held = self.idle.remove(at);
        assert_eq!(held.server, grant.server);
        self.held.push(Held { active: true, pinned: grant.pinned, ..held });
    }

    /// Who is next for a free server: the one who has waited longest of those who wait for nothing else.
    fn next_waiter(&mut self, pinned: bool, settings: u64) -> Waiting {
        let may = self.may_pin();
        let pin = self.pinning.first().filter(|_| may).map(|waiting| waiting.since);
        let other = self.waiting.first().map(|waiting| waiting.since);
        let is_pin = pin.is_some_and(|pin| other.is_none_or(|other| pin <= other));
        assert_eq!(pinned, is_pin, "who waits longest is next");
        if pinned {
            return self.pinning.remove(0);
        }
        let servers = self.pool.servers();
        let is_patient = self.waiting[0].passed < 8.max(2 * servers);
        let near = self.waiting.iter().position(|waiting| waiting.settings == settings);
        let near = near
            .filter(|&at| self.waiting[at].order - self.waiting[0].order <= 16.max(12 * i64::from(servers)));
        let at = near.filter(|_| is_patient).unwrap_or(0);
        self.waiting[0].passed += u32::from(at > 0);
        self.waiting.remove(at)
    }

    fn after(&mut self, held: Held, after: After<u32, u32>) {
        let held = Held { pinned: false, ..held };
        match after {
            After::Handover { client, grant, .. } => {
                assert_eq!((grant.slot, grant.server), (held.slot, held.server));
                assert_eq!(
                    self.next_waiter(grant.pinned, held.settings).client,
                    client,
                    "first come, first served"
                );
                self.held.push(Held { active: true, pinned: grant.pinned, ..held });
            }
            After::Idle => {
                assert!(self.waiting.is_empty(), "nobody waits while a server is idle");
                assert!(self.pinning.is_empty() || !self.may_pin(), "but for who may not keep one");
                self.idle.push(held);
            }
            After::Canceling => {
                assert!(self.cancels.contains(&held.slot));
                self.canceling.push(held);
                return;
            }
            After::Dedicated => {
                assert!(held.dedicated);
                self.held.push(Held { active: true, ..held });
                return;
            }
            After::Close => {
                self.closing.push(held.slot);
                return;
            }
        }
        assert!(!held.old && !held.dedicated && !self.paused, "{held:?} must not be used again");
        assert!(!self.cancels.contains(&held.slot), "a cancel is in flight to it");
    }

    fn release(&mut self, at: usize, clean: bool, near: Near) {
        let Some(at) = pick(&self.held, at) else { return };
        let held = Held { worker: near.worker.0, settings: near.settings, ..self.held.remove(at) };
        let how = if clean { Released::Clean } else { Released::Close };
        let after = self.pool.release(self.now, held.slot, near, how);
        if !clean {
            assert_eq!(after, After::Close);
        }
        if let After::Close = after
            && clean
        {
            let limits = self.pool.limits();
            let old = self.now.since(held.connected) >= limits.lifetime;
            let shrunk = self.pool.servers() as usize - self.closing.len() > limits.most() as usize;
            assert!(self.paused || held.old || held.dedicated || old || shrunk, "closed for no reason");
        }
        self.after(held, after);
    }

    fn opened(&mut self, at: usize) {
        let Some(at) = pick(&self.opening, at) else { return };
        let (slot, dedicated, old) = self.opening.remove(at);
        let server = self.id();
        let connected = self.now;
        let held = Held {
            slot,
            server,
            worker: 0,
            settings: 0,
            active: false,
            pinned: false,
            dedicated,
            old,
            connected,
        };
        let opened = self.pool.opened(self.now, slot, server, WorkerId(0));
        self.failed_last = false;
        self.after(held, opened.after);
        self.opens(opened.open);
    }

    fn failed(&mut self, at: usize, kind: u8) {
        let Some(at) = pick(&self.opening, at) else { return };
        let (slot, dedicated, _) = self.opening.remove(at);
        let failure = match kind {
            0 => Failure::Connect,
            1 => Failure::NotNow,
            _ => super::login_error(),
        };
        let failed = self.pool.open_failed(self.now, slot, failure);
        if !failed.refused.is_empty() {
            assert!(kind == 2 && !dedicated && self.nowhere.is_none());
            assert!(self.held.is_empty() && self.idle.is_empty() && self.canceling.is_empty());
            let all = self.waiting.drain(..).chain(self.pinning.drain(..));
            let waiting: Vec<u32> = all.map(|waiting| waiting.client).collect();
            assert_eq!(waiting, failed.refused, "all are told, in order");
        }
        if !dedicated {
            self.failed_last = kind == 2;
        }
        self.opens(failed.open);
    }

    fn due(&mut self, due: Due<u32, u32>) {
        for ended in due.close {
            self.ended(ended);
        }
        for expired in due.expired {
            let list = if expired.pinned { &mut self.pinning } else { &mut self.waiting };
            let at = list.iter().position(|waiting| waiting.client == expired.client).expect("it waited");
            let waiting = list.remove(at);
            assert_eq!(expired.held, self.nowhere.is_some());
            assert!(self.is_over(&waiting), "told too early");
        }
        for Handover { client, grant, .. } in due.handovers {
            assert!(grant.pinned && self.may_pin() && self.waiting.is_empty());
            assert_eq!(self.pinning.remove(0).client, client);
            let at = self.idle.iter().position(|held| held.slot == grant.slot).expect("it was idle");
            let held = self.idle.remove(at);
            self.held.push(Held { active: true, pinned: true, ..held });
        }
        self.opens(due.open);
    }

    /// Whether a wait is over: by its own limit, or where there are no servers by the pool's.
    fn is_over(&self, waiting: &Waiting) -> bool {
        match self.nowhere {
            Some(from) => from.max(waiting.since) + FAILOVER <= self.now,
            None => waiting.deadline <= self.now,
        }
    }

    fn unhold(&mut self) -> Opens {
        if let Some(from) = self.nowhere.take() {
            self.failed_last = false;
            let all = self.waiting.iter_mut().chain(&mut self.pinning);
            for waiting in all.filter(|waiting| waiting.deadline != Moment::NEVER) {
                waiting.deadline = waiting.deadline + self.now.since(from.max(waiting.since));
            }
        }
        self.pool.unhold(self.now)
    }

    /// Its node is out: it goes when it is free, or at once.
    fn banish(&mut self, at: usize, at_once: bool) {
        let here = [&self.idle, &self.held, &self.canceling].into_iter().flatten().map(|held| held.slot);
        let slots: Vec<Slot> = here.chain(self.opening.iter().map(|(slot, ..)| *slot)).collect();
        let Some(slot) = pick(&slots, at).map(|at| slots[at]) else { return };
        let is_idle = self.idle.iter().any(|held| held.slot == slot);
        if let Some(opening) = self.opening.iter_mut().find(|(other, ..)| *other == slot) {
            opening.2 = true;
            let ended = if at_once { self.pool.cut(slot) } else { self.pool.retire(slot) };
            return assert_eq!(ended, None, "it is not there yet");
        }
        let ended = if at_once { self.pool.cut(slot) } else { self.pool.retire(slot) };
        assert_eq!(ended.is_some(), at_once || is_idle);
        if let Some(ended) = ended {
            return self.ended(ended);
        }
        for held in self.held.iter_mut().chain(&mut self.canceling).filter(|held| held.slot == slot) {
            held.old = true;
        }
        assert!(self.pool.is_close_needed(slot));
    }

    fn tick(&mut self) {
        let due = self.pool.tick(self.now);
        self.due(due);
        // In a held pool one is told after another, and who came back to the front is the first.
        let looked_at = if self.nowhere.is_some() { 1 } else { usize::MAX };
        let waiting = self.waiting.iter().take(looked_at).chain(self.pinning.iter().take(looked_at));
        assert!(waiting.into_iter().all(|waiting| !self.is_over(waiting)), "nobody waits past the deadline");
        assert!(self.pool.next_tick() > self.now, "a tick does all that is due");
    }

    fn close(&mut self, slot: Slot) {
        self.cancels.retain(|cancel| *cancel != slot);
        self.gone.push(slot);
        let opens = self.pool.closed(self.now, slot);
        self.opens(opens);
    }

    fn closed(&mut self, at: usize) {
        if let Some(at) = pick(&self.closing, at) {
            let slot = self.closing.remove(at);
            self.close(slot);
        }
    }

    /// Any server's socket is closed by the other side.
    fn dies(&mut self, at: usize) {
        let lists = [&mut self.idle, &mut self.held, &mut self.canceling];
        let slot = lists.into_iter().find_map(|list| pick(list, at).map(|at| list.remove(at).slot));
        if let Some(slot) = slot {
            self.close(slot);
        }
    }

    fn cancel_done(&mut self, at: usize) {
        let Some(at) = pick(&self.cancels, at) else { return };
        let slot = self.cancels.remove(at);
        let done = self.pool.cancel_done(slot);
        let waits = self.canceling.iter().position(|held| held.slot == slot);
        match waits.filter(|_| !self.cancels.contains(&slot)) {
            Some(at) => {
                let held = self.canceling.remove(at);
                assert_eq!(done, Some(held.server));
                self.held.push(Held { active: false, ..held });
            }
            None => assert_eq!(done, None),
        }
    }

    fn make_old(&mut self) {
        for held in self.held.iter_mut().chain(&mut self.canceling).chain(&mut self.idle) {
            held.old = true;
        }
        self.opening.iter_mut().for_each(|(_, _, old)| *old = true);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Checkout { worker, settings, wait_s, pins } => {
                self.checkout(Near { worker: WorkerId(worker), settings }, wait_s, pins, None);
            }
            Step::Return { age_s, pins } => self.checkout(Near::NOBODY, 0, pins, Some(age_s)),
            Step::Pin(at) => self.pin(at),
            Step::PinBeyond(at) => self.pin_beyond(at),
            Step::Forget(at) => {
                let is_pin = self.waiting.is_empty() || at % 3 == 0;
                let list = if is_pin { &mut self.pinning } else { &mut self.waiting };
                if let Some(at) = pick(list, at) {
                    let ticket = list.remove(at).ticket;
                    assert!(self.pool.forget(ticket));
                    assert!(!self.pool.forget(ticket));
                }
            }
            Step::Release { at, clean, worker, settings } => {
                self.release(at, clean, Near { worker: WorkerId(worker), settings });
            }
            Step::Detach(at) => {
                if let Some(at) = pick(&self.held, at) {
                    assert_eq!(self.pool.detach(self.held[at].slot), self.held[at].active);
                    self.held[at].active = false;
                }
            }
            Step::TakeIdle(at) => {
                if let Some(at) = pick(&self.idle, at) {
                    let held = self.idle.remove(at);
                    assert!(self.pool.take_idle(held.slot));
                    self.held.push(Held { active: false, ..held });
                }
            }
            Step::CancelSent(at) => {
                if let Some(at) = pick(&self.held, at)
                    && self.pool.cancel_sent(self.held[at].slot)
                {
                    assert!(self.held[at].active);
                    self.cancels.push(self.held[at].slot);
                }
            }
            Step::CancelDone(at) => self.cancel_done(at),
            Step::Opened(at) => self.opened(at),
            Step::Failed(at, kind) => self.failed(at, kind),
            Step::Forbidden(at) => {
                if let Some(at) = pick(&self.opening, at) {
                    let (slot, ..) = self.opening.remove(at);
                    self.pool.open_refused(self.now, slot);
                }
            }
            Step::Closed(at) => self.closed(at),
            Step::Dies(at) => self.dies(at),
            Step::Pass(seconds) => self.now = self.now + Duration::from_secs(seconds),
            Step::Tick => self.tick(),
            Step::Hold => {
                self.pool.hold(self.now);
                self.nowhere.get_or_insert(self.now);
            }
            Step::Retire(at) => self.banish(at, false),
            Step::Cut(at) => self.banish(at, true),
            Step::OldName(at) => {
                if let Some(at) = pick(&self.gone, at) {
                    let slot = self.gone[at];
                    assert_eq!(self.pool.release(self.now, slot, WorkerId(0), Released::Clean), After::Close);
                    assert!(self.pool.closed(self.now, slot).is_empty());
                    assert!(!self.pool.detach(slot) && !self.pool.take_idle(slot));
                    assert_eq!(self.pool.cancel_done(slot), None);
                }
            }
            _ => self.command(step),
        }
    }

    fn command(&mut self, step: &Step) {
        let opens = match *step {
            Step::Poke => self.pool.poke(self.now),
            Step::Unhold => self.unhold(),
            Step::KeepMin(keep) => self.pool.keep_min(self.now, keep),
            Step::Resume => {
                self.paused = false;
                self.pool.resume(self.now)
            }
            Step::Limits { size, min, reserve, round_robin, lifetime_s, pinned } => {
                let limits = Limits {
                    size,
                    min_size: min,
                    reserve_size: reserve,
                    round_robin,
                    pinned_max: pinned,
                    lifetime: Duration::from_secs(lifetime_s),
                    ..*self.pool.limits()
                };
                let due = self.pool.set_limits(self.now, limits);
                self.due(due);
                Opens::NONE
            }
            Step::Dedicated => {
                if let Some(dedicated) = self.pool.reserve_dedicated() {
                    assert!(self.nowhere.is_none());
                    if let Some(ended) = dedicated.evicted {
                        let at =
                            self.idle.iter().position(|held| held.slot == ended.slot).expect("it was idle");
                        self.gone.push(self.idle.remove(at).slot);
                    }
                    self.opening.push((dedicated.slot, true, false));
                }
                Opens::NONE
            }
            Step::Pause => {
                self.paused = true;
                self.pool.pause().into_iter().for_each(|ended| self.ended(ended));
                Opens::NONE
            }
            Step::Reconnect => {
                self.make_old();
                self.pool.reconnect().into_iter().for_each(|ended| self.ended(ended));
                Opens::NONE
            }
            Step::Evict => {
                if let Some(ended) = self.pool.evict_idle() {
                    assert_eq!(self.idle[0].slot, ended.slot, "the longest idle goes");
                    self.ended(ended);
                }
                Opens::NONE
            }
            Step::Kill => {
                self.make_old();
                let killed = self.pool.kill();
                killed.servers.into_iter().for_each(|ended| self.ended(ended));
                assert_eq!(killed.clients.len(), self.waiting.len() + self.pinning.len());
                self.waiting.clear();
                self.pinning.clear();
                assert!(self.held.is_empty() && self.idle.is_empty() && self.canceling.is_empty());
                Opens::NONE
            }
            _ => Opens::NONE,
        };
        self.opens(opens);
    }

    fn assert_agrees(&self, servers_before: u32) {
        self.pool.assert_consistent(self.now);
        let counts = self.pool.counts(self.now);
        let active = self.held.iter().filter(|held| held.active).count();
        assert_eq!(counts.active as usize, active, "active");
        assert_eq!(counts.tested as usize, self.held.len() - active, "tested");
        assert_eq!((counts.idle + counts.used) as usize, self.idle.len(), "idle");
        assert_eq!(counts.being_canceled as usize, self.canceling.len(), "being canceled");
        assert_eq!(counts.login as usize, self.opening.len(), "login");
        assert_eq!(counts.closing as usize, self.closing.len(), "closing");
        assert_eq!(counts.waiting as usize, self.waiting.len() + self.pinning.len(), "waiting");
        assert_eq!(counts.pinned, self.pinned(), "pinned");
        assert_eq!(counts.active_cancel as usize, self.cancels.len(), "cancels");
        let servers = self.pool.servers();
        let most = self.pool.limits().most();
        assert!(servers <= most || servers <= servers_before, "{servers} servers where {most} may be");
        assert_eq!((self.pool.is_paused(), self.pool.is_held()), (self.paused, self.nowhere.is_some()));
        let old =
            [&self.held, &self.canceling, &self.idle].into_iter().flatten().filter(|held| held.old).count();
        assert!(self.pool.close_needed_left() as usize >= old, "what must go is counted");
    }

    /// From any state: if all goes well from now on, every wait ends and the pool has its full size again.
    fn assert_recovers(&mut self) {
        self.command(&Step::Resume);
        self.command(&Step::Unhold);
        self.command(&Step::Poke);
        for round in 0.. {
            assert!(round < 200, "{} wait for ever", self.pool.waiting());
            while !self.cancels.is_empty() {
                self.cancel_done(0);
            }
            while !self.held.is_empty() {
                self.release(0, true, Near::NOBODY);
            }
            while !self.closing.is_empty() {
                self.closed(0);
            }
            if !self.opening.is_empty() {
                self.opened(0);
            } else if self.waiting.is_empty() && self.pinning.is_empty() {
                break;
            } else if self.held.is_empty() && self.closing.is_empty() {
                self.now = self.now.max(self.pool.next_tick());
                assert_ne!(self.now, Moment::NEVER, "nothing will ever happen");
                self.tick();
            }
        }
        let size = self.pool.limits().size;
        // A cached login error is forgotten after a while.
        self.now = self.now + Duration::from_secs(20);
        for _ in 0..size {
            self.checkout(Near::NOBODY, 0, false, None);
            for round in 0.. {
                if self.waiting.is_empty() {
                    break;
                }
                assert!(round < 200, "the pool does not fill up");
                self.now = self.now.max(self.pool.next_tick().min(self.now + Duration::from_secs(60)));
                self.tick();
                while !self.opening.is_empty() {
                    self.opened(0);
                }
                while !self.closing.is_empty() {
                    self.closed(0);
                }
            }
        }
        let active = self.held.iter().filter(|held| held.active).count();
        assert_eq!(active, size as usize, "the pool has its full size");
    }
}

fn near(held: Held) -> Near {
    Near { worker: WorkerId(held.worker), settings: held.settings }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn pool_agrees_with_lists(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            let servers = world.pool.servers();
            world.step(step);
            world.assert_agrees(servers);
        }
        world.assert_recovers();
    }
}
