//! A worker of the data plane: one thread, one poll, one scratch buffer.
//!
//! The poll only decides who wakes. Whoever is woken does the work, for any client and any server. A worker that can
//! be spared leaves its poll to another ([`crate::duty`]).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use baton::News;
use link::Out;
use mio::{Events, Poll, Token, Waker};
use model::{Moment, WorkerId};
use parking_lot::Mutex;
use settings::IoBackend;

use crate::accept::Listeners;
use crate::digests::Digests;
use crate::duty::{self, Duty};
use crate::moored::Moored;
use crate::outbox::Outbox;
use crate::session::{Phase, Session, news};
use crate::shared::Shared;
use crate::sources::{RESERVED, Source, Sources};
use crate::timer::Timers;
use crate::{admin, enter, keeper, lease, relay};

/// The size of the scratch buffer, in bytes: the largest single read.
pub const SCRATCH_BYTES: usize = 64 << 10;
const EVENTS_MAX: usize = 256;
/// Sessions that wait for the volley at once: with more of them, what was written first would wait too long, and
/// the gain is had.
const HELD_MAX: usize = 32;
const WAKER: Token = Token(RESERVED);
/// Listeners have the tokens from here on.
pub const LISTENERS: usize = RESERVED + 2048;

/// What polls have told: whose socket it is, and what happened.
pub type Batch = Vec<(Source, u32)>;

/// What other threads ask of a worker.
pub enum Errand {
    /// Work on this session: its gate is already ours.
    Run(Arc<Session>),
    /// Look at this server: it may have an edge that nobody saw.
    Look(Arc<Moored>),
    /// See after this server, which its holder had to let go: it must show that it lives.
    Check(Arc<Moored>),
    /// Close this server, which the pool has already given up, for this reason.
    Close(Arc<Moored>, &'static str),
    /// Close this server, which does not answer while it is cleaned or checked.
    Overdue(Arc<Moored>),
    /// Try to accept again: there were no descriptors, and there may be some now.
    Accept,
    /// Stop listening.
    Deafen,
    /// The process ends.
    Stop,
}

/// What other threads see of a worker.
pub struct Handle {
    /// Its number.
    pub id: WorkerId,
    /// Its sockets.
    pub sources: Sources,
    /// What it has been asked.
    pub errands: Mutex<Vec<Errand>>,
    waker: Waker,
    /// Locked by the worker for as long as it is on duty, else by its stand-in for each look.
    poll: Mutex<Poll>,
    poll_fd: RawFd,
    thread: OnceLock<Thread>,
}

impl Handle {
    /// Asks something of it. Costs a wake-up: never on the way of a query.
    pub fn ask(&self, errand: Errand) {
        self.errands.lock().push(errand);
        // It can fail only if the process has no memory left for a counter; the errand is seen later then.
        let _ = self.waker.wake();
        self.rouse();
    }

    /// Ends the sleep of a worker that rests: this one, or its next.
    pub fn rouse(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The thread that is this worker.
    pub fn is_run_by(&self, thread: Thread) {
        // It is told once.
        let _ = self.thread.set(thread);
    }

    /// The descriptor of its poll, for another's to watch.
    pub fn poll_fd(&self) -> RawFd {
        self.poll_fd
    }

    /// Adds what its poll tells of, for its stand-in. Its own thread may be back already: then that one is told.
    pub fn look_into(&self, events: &mut Events, batch: &mut Batch) {
        // An error is told again, because what is not taken goes on being told.
        if let Some(mut poll) = self.poll.try_lock()
            && poll.poll(events, Some(Duration::ZERO)).is_ok()
        {
            self.add_sources(events, batch);
        }
    }

    /// Adds those of its sockets that have events. Whether it has been asked something, and whether new clients wait.
    fn add_sources(&self, events: &Events, batch: &mut Batch) -> Told {
        let mut told = Told::default();
        let sockets = events.iter().filter_map(|event| {
            let token = event.token();
            if token.0 < RESERVED {
                return Some((token, bits(event)));
            }
            told.is_asked |= token == WAKER;
            told.is_called |= token.0 >= LISTENERS;
            told.has_wards |= duty::is_ward(token);
            None
        });
        self.sources.look_up(sockets, batch);
        told
    }
}

/// What a poll tells beside the sockets of clients and servers.
#[derive(Clone, Copy, Default)]
struct Told {
    is_asked: bool,
    is_called: bool,
    has_wards: bool,
}

/// The thread's own things.
pub struct Worker {
    /// Its number.
    pub id: WorkerId,
    /// What all threads share.
    pub shared: Arc<Shared>,
    /// Every read goes here first.
    pub scratch: Box<[u8]>,
    /// What a link wants written.
    pub out: Out,
    /// Of the settings that clients and servers have.
    pub digests: Digests,
    /// Sessions whose gate is ours.
    pub runnable: VecDeque<Arc<Session>>,
    /// Where what is written goes.
    pub outbox: Outbox,
    /// Sessions that have something in the outbox: their gates are ours until it is sent.
    held: Vec<Arc<Session>>,
    /// Deadlines of sessions that this worker last worked on.
    pub timers: Timers<Session>,
    /// Read once for each batch of events.
    pub now: Moment,
    /// Where new clients come.
    pub listeners: Listeners,
    /// Whether it is needed.
    pub duty: Duty,
}

/// Makes the poll of a worker, and what the others see of it.
///
/// # Errors
/// Those of `epoll_create` and `eventfd`.
pub fn prepare(id: WorkerId) -> io::Result<Handle> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    let sources = Sources::new(poll.registry().try_clone()?);
    let poll_fd = poll.as_raw_fd();
    let (errands, thread) = (Mutex::default(), OnceLock::new());
    Ok(Handle { id, sources, errands, waker, poll: Mutex::new(poll), poll_fd, thread })
}

impl Worker {
    /// A worker about to run.
    pub fn new(id: WorkerId, shared: Arc<Shared>, listeners: Listeners) -> Worker {
        let now = shared.clock.now();
        Worker {
            id,
            shared,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            out: Out::default(),
            digests: Digests::default(),
            runnable: VecDeque::new(),
            outbox: Outbox::direct(),
            held: Vec::with_capacity(HELD_MAX),
            timers: Timers::default(),
            now,
            listeners,
            duty: Duty::always(),
        }
    }

    /// Runs until the process ends.
    ///
    /// # Errors
    /// Those of `epoll_wait`, other than an interruption.
    pub fn run(mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let own = &shared.workers[usize::from(self.id.0)];
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut batch = Batch::with_capacity(EVENTS_MAX);
        self.listeners.register(own.sources.registry())?;
        self.open_outbox();
        duty::begin(&mut self, own);
        while !duty::rest(&mut self, own) && !self.serve(own, &mut events, &mut batch)? {}
        Ok(())
    }

    /// Works until it may rest, or, which is true, until the process ends.
    fn serve(&mut self, own: &Handle, events: &mut Events, batch: &mut Batch) -> io::Result<bool> {
        let mut poll = own.poll.lock();
        // What was asked while another looked into the poll is told no more.
        let mut is_over = self.attend(own);
        while !is_over {
            let slept_since = if self.duty.is_watched() { self.shared.clock.now() } else { self.now };
            match poll.poll(events, self.patience()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            self.now = self.shared.clock.now();
            let told = own.add_sources(events, batch);
            if told.has_wards {
                let wards = events.iter().map(mio::event::Event::token).filter(|token| duty::is_ward(*token));
                wards.for_each(|token| duty::stand_in(self, token, batch));
            }
            let count = batch.len();
            for (source, happened) in batch.drain(..) {
                match source {
                    Source::Client(session) => self.post(session, happened),
                    Source::Server(moored) => self.edge(&moored, happened),
                }
                self.work();
            }
            if told.is_called {
                self.accept(Listeners::share(count));
            }
            is_over = told.is_asked && self.run_errands(own);
            self.fire_timers();
            self.work();
            self.send_off();
            if self.duty.is_watched() && duty::take_stock(self, own, slept_since) {
                break;
            }
        }
        Ok(is_over)
    }

    /// Does what does not come from the poll. True if the process ends.
    pub fn attend(&mut self, own: &Handle) -> bool {
        let is_over = self.run_errands(own);
        self.fire_timers();
        self.work();
        self.send_off();
        is_over
    }

    /// A ring belongs to the thread that makes it.
    fn open_outbox(&mut self) {
        let wanted = self.shared.settings().general.io_backend;
        let (outbox, refusal) = Outbox::new(self.id, wanted);
        self.outbox = outbox;
        if self.id.0 > 0 {
            return;
        }
        let backend = if self.outbox.has_volleys() { IoBackend::IoUring } else { IoBackend::Epoll };
        let _first = self.shared.io_backend.set(backend.name());
        match refusal {
            Some(error) if wanted == IoBackend::IoUring => {
                tracing::warn!("io_backend: the kernel allows no io_uring ({error}): it is epoll");
            }
            Some(error) => tracing::info!("io_backend is epoll: the kernel allows no io_uring ({error})"),
            None if self.outbox.has_volleys() => tracing::info!("io_backend is io_uring"),
            None => tracing::info!("io_backend is epoll"),
        }
    }

    /// Sends what turns have written, and leaves the gates that were kept for it.
    #[inline]
    fn send_off(&mut self) {
        if !self.held.is_empty() {
            self.send_off_all();
        }
    }

    fn send_off_all(&mut self) {
        self.outbox.fire();
        for miss in self.outbox.take_misses() {
            let holder = self.held.iter().find(|session| session.core.lock().keep_missed(&miss));
            match holder {
                // It may have to wait, or to learn that its peer is gone.
                Some(session) => drop(session.gate.post(news::AGAIN)),
                None => tracing::error!("nobody knows the socket of a send that failed"),
            }
        }
        for session in self.held.drain(..) {
            let happened = session.gate.news();
            if happened != 0 {
                let _ours = session.gate.post(happened);
                self.runnable.push_back(session);
            }
        }
    }

    /// How long it may sleep; for ever, if it has nothing to do.
    pub fn patience(&self) -> Option<Duration> {
        if !self.runnable.is_empty() {
            return Some(Duration::ZERO);
        }
        let next = self.timers.next();
        // The poll counts in whole milliseconds and would wake just before the moment.
        (next != Moment::NEVER).then(|| next.since(self.now) + Duration::from_millis(1))
    }

    /// Tells a session; if nobody works on it, we do, at once. Only from the loop, never from within a turn.
    fn post(&mut self, session: Arc<Session>, happened: u32) {
        if session.gate.post(happened) {
            self.turn(session);
        }
    }

    fn edge(&mut self, moored: &Arc<Moored>, happened: u32) {
        if happened & news::CLIENT_HUNG_UP != 0 {
            moored.hung_up.store(true, Ordering::Relaxed);
        }
        match moored.berth.edge() {
            News::Client(session) => self.post(session, news::SERVER_EDGE),
            News::Idle | News::Kept => keeper::look(self, moored),
            News::Gone => {}
        }
    }

    /// Works on every session whose gate is ours: those that were served by others' turns, or want another.
    #[inline]
    fn work(&mut self) {
        if !self.runnable.is_empty() {
            self.work_off();
        }
    }

    fn work_off(&mut self) {
        // Each may hand its server to another; those that want another turn go to the end, and a batch of
        // events comes in between.
        for _ in 0..self.runnable.len().max(64) {
            let Some(session) = self.runnable.pop_front() else { return };
            self.turn(session);
        }
    }

    /// Does all there is to do for one session, and leaves its gate.
    fn turn(&mut self, session: Arc<Session>) {
        let mut happened = session.gate.first_news();
        self.outbox.begin_turn();
        while happened != 0 {
            let mut core = session.core.lock();
            core.note(happened);
            let again = match core.phase {
                Phase::Steady(_) => relay::drive(self, &session, &mut core, happened),
                Phase::Entering(_) => enter::drive(self, &session, &mut core, happened),
                Phase::Admin(_) => admin::drive(self, &session, &mut core),
                Phase::Closed => lease::return_grant(self, &session),
            };
            drop(core);
            if again {
                // The gate stays ours: it had its turn, and others have theirs first.
                let _ours = session.gate.post(news::AGAIN);
            }
            if self.outbox.is_used() {
                self.held.push(session);
                if self.held.len() >= HELD_MAX {
                    self.send_off();
                }
                return;
            }
            if again {
                self.runnable.push_back(session);
                return;
            }
            happened = session.gate.news();
        }
    }

    fn run_errands(&mut self, own: &Handle) -> bool {
        let errands = std::mem::take(&mut *own.errands.lock());
        let mut is_over = false;
        for errand in errands {
            match errand {
                Errand::Run(session) => self.runnable.push_back(session),
                Errand::Look(moored) => keeper::look(self, &moored),
                Errand::Check(moored) => keeper::check(self, &moored),
                Errand::Close(moored, reason) => keeper::close_given_up(self, &moored, reason),
                Errand::Overdue(moored) => keeper::close_overdue(self, &moored),
                Errand::Accept => {
                    self.listeners.look_again(own.sources.registry());
                    self.accept(1);
                }
                Errand::Deafen => self.listeners.close(own.sources.registry()),
                Errand::Stop => is_over = true,
            }
            self.work();
        }
        is_over
    }

    fn fire_timers(&mut self) {
        while let Some(session) = self.timers.due(self.now) {
            self.post(session, news::TIMER);
        }
    }

    fn accept(&mut self, most: usize) {
        for _ in 0..most {
            let Some(session) = self.listeners.accept(&self.shared, self.id) else { return };
            // TCP_DEFER_ACCEPT or luck: the startup message may be here already.
            self.post(session, news::CLIENT_READABLE);
            self.work();
        }
    }
}

fn bits(event: &mio::event::Event) -> u32 {
    let mut happened = 0;
    if event.is_readable() {
        happened |= news::CLIENT_READABLE;
    }
    if event.is_writable() {
        happened |= news::CLIENT_WRITABLE;
    }
    if event.is_read_closed() || event.is_error() {
        happened |= news::CLIENT_HUNG_UP;
    }
    happened
}
