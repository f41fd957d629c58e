//! A worker on duty and at rest: how its poll is left to another worker and taken back.
//!
//! A poll is a descriptor like any other: the stand-in's poll watches it, and looks into it when it tells. The
//! thread that rests only does what is asked of it alone, and sees to its own deadlines.

use std::sync::Arc;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Token};
use model::{Moment, WorkerId};
use settings::WorkersAwake;

use crate::crew::{Crew, Effort};
use crate::level::{self, Wakes};
use crate::sources::RESERVED;
use crate::worker::{Batch, Handle, Worker};

/// The polls of workers that rest have the tokens from here on; there are fewer than listeners' tokens begin at.
const WARDS: usize = RESERVED + 1;

/// A worker's part in the crew.
pub struct Duty {
    /// Whether it may rest at all.
    may_rest: bool,
    /// It is to rest now.
    is_spare: bool,
    effort: Effort,
    /// For what the polls of others tell.
    events: Events,
}

impl Duty {
    /// On duty for good.
    pub fn always() -> Duty {
        let effort = Effort::new(Moment::default());
        Duty { may_rest: false, is_spare: false, effort, events: Events::with_capacity(1) }
    }

    /// Whether the worker's time is to be watched.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.may_rest
    }
}

/// The worker's thread begins. All but the first rest until they are needed.
pub fn begin(worker: &mut Worker, own: &Handle) {
    own.is_run_by(std::thread::current());
    let wanted = worker.shared.settings().general.workers_awake;
    if wanted == WorkersAwake::All || worker.shared.workers.len() < 2 || !level::HAS_LEVELS {
        return;
    }
    let effort = Effort::new(worker.shared.clock.now());
    worker.duty = Duty { may_rest: true, effort, is_spare: false, events: Events::with_capacity(256) };
    if worker.id.0 > 0 {
        let shared = Arc::clone(&worker.shared);
        leave(worker, own, &mut shared.crew.lock(), WorkerId(0));
    }
}

/// Adds what a poll that the worker watches for another tells of.
#[cold]
pub fn stand_in(worker: &mut Worker, token: Token, batch: &mut Batch) {
    if let Some(ward) = worker.shared.workers.get(token.0 - WARDS) {
        ward.look_into(&mut worker.duty.events, batch);
    }
}

/// Whether a token is that of a worker's poll.
#[inline]
pub fn is_ward(token: Token) -> bool {
    (WARDS..crate::worker::LISTENERS).contains(&token.0)
}

/// The worker slept since then. True if it may rest now. If it has too much to do, another comes back.
#[inline]
pub fn take_stock(worker: &mut Worker, own: &Handle, since: Moment) -> bool {
    match worker.duty.effort.slept(since, worker.now) {
        Some(share) => conclude(worker, own, share),
        None => false,
    }
}

fn conclude(worker: &mut Worker, own: &Handle, share: u32) -> bool {
    let shared = Arc::clone(&worker.shared);
    // Somebody is at it: the next window is soon enough.
    let Some(mut crew) = shared.crew.try_lock() else { return false };
    crew.report(worker.id, share);
    if let Some(back) = crew.relief(worker.id) {
        let ward = &shared.workers[usize::from(back.0)];
        tracing::debug!("worker {} comes back: worker {} is awake for {share}/1000", back.0, worker.id.0);
        let _ = own.sources.registry().deregister(&mut SourceFd(&ward.poll_fd()));
        crew.come_back(back);
        ward.rouse();
    }
    let can_be_spared = crew.successor(worker.id).is_some();
    worker.duty.is_spare = worker.duty.effort.is_spare(worker.now, can_be_spared);
    worker.duty.is_spare
}

/// Rests, if it is spare, until it is needed. True if the process ends.
pub fn rest(worker: &mut Worker, own: &Handle) -> bool {
    let shared = Arc::clone(&worker.shared);
    if std::mem::take(&mut worker.duty.is_spare) {
        let mut crew = shared.crew.lock();
        if let Some(stand_in) = crew.successor(worker.id) {
            leave(worker, own, &mut crew, stand_in);
        }
    }
    let mut has_rested = false;
    while shared.crew.lock().stand_in(worker.id).is_some() {
        has_rested = true;
        worker.now = shared.clock.now();
        if worker.attend(own) {
            return true;
        }
        // An errand, or the end of its rest, that came meanwhile ends the next sleep at once.
        match worker.patience() {
            None => std::thread::park(),
            Some(Duration::ZERO) => {}
            Some(patience) => std::thread::park_timeout(patience),
        }
    }
    if has_rested {
        worker.listeners.look_after_rest(own.sources.registry());
    }
    worker.duty.effort = Effort::new(shared.clock.now());
    false
}

/// Leaves the worker's poll to another, with those that it watched for others. If that cannot be, it stays.
fn leave(worker: &mut Worker, own: &Handle, crew: &mut Crew, stand_in: WorkerId) {
    let workers = &worker.shared.workers;
    let registry = workers[usize::from(stand_in.0)].sources.registry();
    worker.listeners.rest(own.sources.registry());
    let watch = |ward: WorkerId| {
        let fd = workers[usize::from(ward.0)].poll_fd();
        level::watch(registry, fd, Token(WARDS + usize::from(ward.0)), Wakes::All)
    };
    if let Err(error) = watch(worker.id) {
        tracing::warn!("worker {} cannot rest: {error}", worker.id.0);
        worker.listeners.look_after_rest(own.sources.registry());
        return;
    }
    for ward in crew.wards(worker.id) {
        let handle = &workers[usize::from(ward.0)];
        let _ = own.sources.registry().deregister(&mut SourceFd(&handle.poll_fd()));
        if watch(ward).is_ok() {
            crew.hand_over(ward, stand_in);
        } else {
            crew.come_back(ward);
            handle.rouse();
        }
    }
    tracing::debug!("worker {} rests: worker {} stands in", worker.id.0, stand_in.0);
    crew.rest(worker.id, stand_in);
}
