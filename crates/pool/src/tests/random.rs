//! Random sequences of calls against a naive model: lists in the order in which things happened.

use std::time::Duration;

use model::{Moment, WorkerId};
use proptest::prelude::*;

use crate::*;

#[derive(Clone, Debug)]
enum Step {
    Checkout { worker: u16, wait_s: u64 },
    Return { age_s: u64 },
    Forget(usize),
    Release { at: usize, clean: bool, worker: u16 },
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
    Limits { size: u32, min: u32, reserve: u32, round_robin: bool, lifetime_s: u64 },
    Pause,
    Resume,
    Reconnect,
    Kill,
    Evict,
    Dedicated,
    KeepMin(bool),
    OldName(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0usize..64;
    let step = prop_oneof![
        12 => (0u16..3, 0u64..20).prop_map(|(worker, wait_s)| Step::Checkout { worker, wait_s }),
        1 => (0u64..5).prop_map(|age_s| Step::Return { age_s }),
        2 => at.clone().prop_map(Step::Forget),
        10 => (at.clone(), prop::bool::weighted(0.9), 0u16..3)
            .prop_map(|(at, clean, worker)| Step::Release { at, clean, worker }),
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
        1 => (0u32..5, 0u32..3, 0u32..3, any::<bool>(), 0u64..40).prop_map(
            |(size, min, reserve, round_robin, lifetime_s)| Step::Limits { size, min, reserve, round_robin, lifetime_s }
        ),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Kill),
        1 => Just(Step::Evict),
        1 => Just(Step::Dedicated),
        1 => any::<bool>().prop_map(Step::KeepMin),
        1 => at.prop_map(Step::OldName),
    ];
    prop::collection::vec(step, 1..120)
}

/// What the model knows of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    slot: Slot,
    server: u32,
    worker: u16,
    /// Lent to a client; else it is being tested.
    active: bool,
    dedicated: bool,
    /// From before a reconnect: it must not be reused.
    old: bool,
    connected: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    client: u32,
    deadline: Moment,
    ticket: Ticket,
}

struct World {
    pool: Pool<u32, u32>,
    now: Moment,
    ids: u32,
    waiting: Vec<Waiting>,
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
    failed_last: bool,
}

fn pick<T>(list: &[T], at: usize) -> Option<usize> {
    if list.is_empty() { None } else { Some(at % list.len()) }
}

impl World {
    fn new() -> World {
        let limits = Limits { size: 3, ..super::LIMITS };
        World {
            pool: Pool::new(limits),
            now: Moment(5_000_000),
            ids: 0,
            waiting: Vec::new(),
            idle: Vec::new(),
            held: Vec::new(),
            canceling: Vec::new(),
            closing: Vec::new(),
            opening: Vec::new(),
            cancels: Vec::new(),
            gone: Vec::new(),
            paused: false,
            failed_last: false,
        }
    }

    fn id(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }

    fn opens(&mut self, opens: Opens) {
        assert!(opens.is_empty() || !self.paused, "a paused pool opens nothing");
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

    fn checkout(&mut self, worker: u16, wait_s: u64, age_s: Option<u64>) {
        let client = self.id();
        let deadline = self.now.deadline(Duration::from_secs(wait_s));
        let answer = match age_s {
            None => self.pool.checkout(self.now, WorkerId(worker), &client, deadline),
            Some(age) => {
                let since = self.now - Duration::from_secs(age);
                self.pool.checkout_first(self.now, WorkerId(worker), &client, since, deadline)
            }
        };
        match answer {
            Checkout::Granted(grant) => self.granted(&grant, worker),
            Checkout::Queued { ticket, open } => {
                assert!(self.idle.is_empty(), "nobody waits while a server is idle");
                let waiting = Waiting { client, deadline, ticket };
                match age_s {
                    None => self.waiting.push(waiting),
                    Some(_) => self.waiting.insert(0, waiting),
                }
                self.opens(open);
            }
            Checkout::Refused(_) => {
                assert!(self.idle.is_empty() && self.held.is_empty() && self.canceling.is_empty());
                assert!(self.failed_last && !self.paused);
            }
        }
    }

    fn granted(&mut self, grant: &Grant<u32>, worker: u16) {
        let at = self.idle.iter().position(|held| held.slot == grant.slot).expect("it was idle");
        if self.pool.limits().round_robin {
            assert_eq!(at, 0, "the longest idle goes first");
        } else {
            let near = self.idle.len() - at <= 8 && self.idle[at].worker == worker;
            assert!(near || at + 1 == self.idle.len(), "the latest goes first, or one's own");
        }
        let held = self.idle.remove(at);
        assert_eq!(held.server, grant.server);
        self.held.push(Held { active: true, ..held });
    }

    fn after(&mut self, held: Held, after: After<u32, u32>) {
        match after {
            After::Handover { client, grant, .. } => {
                assert_eq!((grant.slot, grant.server), (held.slot, held.server));
                assert_eq!(self.waiting.remove(0).client, client, "first come, first served");
                self.held.push(Held { active: true, ..held });
            }
            After::Idle => {
                assert!(self.waiting.is_empty(), "nobody waits while a server is idle");
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

    fn release(&mut self, at: usize, clean: bool, worker: u16) {
        let Some(at) = pick(&self.held, at) else { return };
        let held = Held { worker, ..self.held.remove(at) };
        let how = if clean { Released::Clean } else { Released::Close };
        let after = self.pool.release(self.now, held.slot, WorkerId(worker), how);
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
        let held = Held { slot, server, worker: 0, active: false, dedicated, old, connected };
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
            assert!(kind == 2 && !dedicated);
            assert!(self.held.is_empty() && self.idle.is_empty() && self.canceling.is_empty());
            let waiting: Vec<u32> = self.waiting.drain(..).map(|waiting| waiting.client).collect();
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
            let at =
                self.waiting.iter().position(|waiting| waiting.client == expired.client).expect("it waited");
            assert!(self.waiting.remove(at).deadline <= self.now);
        }
        self.opens(due.open);
    }

    fn tick(&mut self) {
        let due = self.pool.tick(self.now);
        self.due(due);
        assert!(
            self.waiting.iter().all(|waiting| waiting.deadline > self.now),
            "nobody waits past the deadline"
        );
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
            Step::Checkout { worker, wait_s } => self.checkout(worker, wait_s, None),
            Step::Return { age_s } => self.checkout(0, 0, Some(age_s)),
            Step::Forget(at) => {
                if let Some(at) = pick(&self.waiting, at) {
                    let ticket = self.waiting.remove(at).ticket;
                    assert!(self.pool.forget(ticket));
                    assert!(!self.pool.forget(ticket));
                }
            }
            Step::Release { at, clean, worker } => self.release(at, clean, worker),
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
            Step::KeepMin(keep) => self.pool.keep_min(self.now, keep),
            Step::Resume => {
                self.paused = false;
                self.pool.resume(self.now)
            }
            Step::Limits { size, min, reserve, round_robin, lifetime_s } => {
                let limits = Limits {
                    size,
                    min_size: min,
                    reserve_size: reserve,
                    round_robin,
                    lifetime: Duration::from_secs(lifetime_s),
                    ..*self.pool.limits()
                };
                let due = self.pool.set_limits(self.now, limits);
                self.due(due);
                Opens::NONE
            }
            Step::Dedicated => {
                if let Some(dedicated) = self.pool.reserve_dedicated() {
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
                assert_eq!(killed.clients.len(), self.waiting.len());
                self.waiting.clear();
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
        assert_eq!(counts.waiting as usize, self.waiting.len(), "waiting");
        assert_eq!(counts.active_cancel as usize, self.cancels.len(), "cancels");
        let servers = self.pool.servers();
        let most = self.pool.limits().most();
        assert!(servers <= most || servers <= servers_before, "{servers} servers where {most} may be");
        assert_eq!(self.pool.is_paused(), self.paused);
        let old =
            [&self.held, &self.canceling, &self.idle].into_iter().flatten().filter(|held| held.old).count();
        assert!(self.pool.close_needed_left() as usize >= old, "what must go is counted");
    }

    /// From any state: if all goes well from now on, every wait ends and the pool has its full size again.
    fn assert_recovers(&mut self) {
        self.command(&Step::Resume);
        self.command(&Step::Poke);
        for round in 0.. {
            assert!(round < 200, "{} wait for ever", self.waiting.len());
            while !self.cancels.is_empty() {
                self.cancel_done(0);
            }
            while !self.held.is_empty() {
                self.release(0, true, 0);
            }
            while !self.closing.is_empty() {
                self.closed(0);
            }
            if !self.opening.is_empty() {
                self.opened(0);
            } else if self.waiting.is_empty() {
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
            self.checkout(0, 0, None);
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
