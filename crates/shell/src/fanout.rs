//! Notifications on their way to the clients that listen by a connection of Howdah's own.
//!
//! It decides nothing about who listens (`hub::Fanout`) or when a client may be told (`link`): it takes notes to
//! sessions, within a limit, and has them written once they may be.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hub::{Channel, Fanout, FanoutLimit, FanoutLimits, Joined, ListenerId, Next, Target};
use model::{ClientId, Moment, PoolId, Refusal};
use parking_lot::{Mutex, MutexGuard};
use settings::Settings;
use tokio::sync::Notify;

use crate::control::Order;
use crate::home::ClientRef;
use crate::journal::ClientName;
use crate::session::{Core, Letter, Phase, Session, Steady};
use crate::worker::Worker;

/// So many bytes of notes are written at once: one that does not read is not given more than that to keep.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// One message for clients that listen, shared by all of them.
pub struct Note {
    /// On which channel it came; `None` is for whoever listens at all.
    pub channel: Option<Channel>,
    /// The whole message.
    pub message: Box<[u8]>,
}

impl Note {
    /// What it takes while it waits. Clients share it, but each may be the last to let it go.
    fn size(&self) -> usize {
        self.message.len() + size_of::<Note>()
    }
}

/// What waits for one client.
#[derive(Default)]
pub struct Notes {
    queue: VecDeque<Arc<Note>>,
    bytes: usize,
}

impl Notes {
    /// False if that would be more than `most` bytes.
    fn push(&mut self, note: Arc<Note>, most: usize) -> bool {
        let bytes = self.bytes + note.size();
        if bytes > most {
            return false;
        }
        self.bytes = bytes;
        self.queue.push_back(note);
        true
    }

    fn retain(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        self.queue.retain(|note| note.channel.as_ref().is_none_or(|channel| is_kept(channel)));
        self.bytes = self.queue.iter().map(|note| note.size()).sum();
    }

    fn pop(&mut self) -> Option<Arc<Note>> {
        let note = self.queue.pop_front()?;
        self.bytes -= note.size();
        Some(note)
    }
}

impl Session {
    /// Leaves a note. True if the caller must see to it that somebody works on the session now.
    #[must_use]
    pub fn notify(&self, note: Arc<Note>, most: usize) -> bool {
        let mut mail = self.mail.lock();
        let notes = mail.notes.get_or_insert_default();
        if notes.push(note, most) {
            drop(mail);
            return self.gate.post(crate::session::news::MAIL);
        }
        // Nothing may be left out, so this is its end; what waits is nobody's any more.
        mail.notes = None;
        drop(mail);
        self.send(Letter::End(Refusal::NotificationsUnread(most as u64)))
    }
}

/// The listeners, and how to wake who looks after each.
pub struct Listeners(Mutex<Inner>);

struct Inner {
    fanout: Fanout<ClientRef>,
    wakers: HashMap<ListenerId, Arc<Waker>>,
}

impl Inner {
    fn renew(&self, listeners: &[ListenerId]) {
        for waker in listeners.iter().filter_map(|id| self.wakers.get(id)) {
            waker.renew.store(true, Ordering::Release);
            waker.changed.notify_one();
        }
    }
}

/// Tells a listener's keeper that there is something to do.
#[derive(Default)]
pub struct Waker {
    /// Something changed.
    pub changed: Notify,
    /// Its connection must be made anew.
    pub renew: AtomicBool,
    /// Nodes are not as before: it may have to go, or have somewhere to go.
    pub nodes_changed: AtomicBool,
}

impl Listeners {
    /// None yet.
    pub fn new(settings: &Settings) -> Listeners {
        Listeners(Mutex::new(Inner { fanout: Fanout::new(limits(settings)), wakers: HashMap::new() }))
    }

    /// The limits of these settings hold from now on.
    pub fn configure(&self, settings: &Settings) {
        self.0.lock().fanout.set_limits(limits(settings));
    }

    /// The registry, locked. Held for as short as it takes to decide, and with nothing else locked meanwhile.
    pub fn fanout(&self) -> impl std::ops::DerefMut<Target = Fanout<ClientRef>> {
        MutexGuard::map(self.0.lock(), |inner| &mut inner.fanout)
    }

    /// A client is about to listen. Answers its listener, what became of its wish, and a listener that must be looked
    /// after from now on.
    pub fn join(
        &self,
        now: Moment,
        at: Option<ListenerId>,
        target: Target,
        member: (ClientId, ClientRef, PoolId),
        channels: &[Channel],
    ) -> (Option<ListenerId>, Joined, Option<(ListenerId, Arc<Waker>)>) {
        let mut inner = self.0.lock();
        let (at, joined) = inner.fanout.join(now, at, || target, member, channels);
        let Joined::Waits { listener, begin } = joined else { return (at, joined, None) };
        let waker = Arc::clone(inner.wakers.entry(listener).or_default());
        if begin {
            return (at, joined, Some((listener, waker)));
        }
        waker.changed.notify_one();
        (at, joined, None)
    }

    /// A client's channels are these now.
    pub fn settle(&self, now: Moment, at: ListenerId, client: ClientId, channels: &[Channel]) {
        let mut inner = self.0.lock();
        if inner.fanout.settle(now, at, client, channels)
            && let Some(waker) = inner.wakers.get(&at)
        {
            waker.changed.notify_one();
        }
    }

    /// What is next for a listener; its waker goes with it.
    pub fn next(&self, now: Moment, id: ListenerId) -> Next {
        let mut inner = self.0.lock();
        let next = inner.fanout.next(now, id);
        if next == Next::End {
            inner.wakers.remove(&id);
        }
        next
    }

    /// The settings have changed: listeners connect anew where their pools lead elsewhere. Answers clients whose listener
    /// is elsewhere than their servers.
    pub fn retarget(&self, leads: impl Fn(PoolId) -> Option<Target>) -> Vec<ClientRef> {
        let mut inner = self.0.lock();
        let retargeted = inner.fanout.retarget(leads);
        inner.renew(&retargeted.renew);
        retargeted.strays
    }

    /// Listeners for clients of these pools are to connect anew.
    pub fn renew(&self, is_meant: impl Fn(PoolId) -> bool) {
        let inner = self.0.lock();
        inner.renew(&inner.fanout.of_pools(is_meant));
    }

    /// None stays in this database for clients that may come.
    pub fn leave_database(&self, target: &hub::Target) {
        let mut inner = self.0.lock();
        let ending = inner.fanout.leave_database(target);
        for waker in ending.iter().filter_map(|id| inner.wakers.get(id)) {
            waker.changed.notify_one();
        }
    }

    /// Nodes of clusters are not as before: each keeper looks where its connection is.
    pub fn nodes_changed(&self) {
        for waker in self.0.lock().wakers.values() {
            waker.nodes_changed.store(true, Ordering::Release);
            waker.changed.notify_one();
        }
    }

    /// All of them, for a table.
    pub fn rows(&self) -> Vec<console::ListenerRow> {
        self.0.lock().fanout.rows()
    }
}

fn limits(settings: &Settings) -> FanoutLimits {
    FanoutLimits {
        listeners: settings.general.listen_connections_max as usize,
        channels: settings.general.listen_channels_max as usize,
    }
}

/// Asks for the channels that the client's next statement must not go without, if it waits for any.
#[cold]
pub fn wish(worker: &Worker, session: &Arc<Session>, core: &mut Core) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    let Some(channels) = steady.link.wished_channels().map(<[Channel]>::to_vec) else { return };
    let shared = &worker.shared;
    let pool = steady.home.cell.id;
    let encoding = steady.link.client.parameters.value(b"client_encoding").unwrap_or(b"UTF8");
    let target = shared.hub.lock().listen_target(pool, encoding);
    if steady.listener.is_none() {
        // What came too late for another time that it listened.
        session.mail.lock().notes = None;
    }
    let joined = target.map(|target| {
        let member = (session.id, Arc::clone(session), pool);
        shared.listeners.join(worker.now, steady.listener, target, member, &channels)
    });
    let Some((at, joined, begins)) = joined else { return heard(session, core, false) };
    steady.listener = at;
    if let Some((id, waker)) = begins {
        shared.order(Order::Listen { id, waker });
    }
    match joined {
        Joined::Waits { .. } => {}
        Joined::Refused(limit) => {
            let limit = match limit {
                FanoutLimit::Listeners => "listen_connections_max",
                FanoutLimit::Channels => "listen_channels_max",
            };
            tracing::warn!(socket = %ClientName(session), "{limit} is reached: the client keeps its server");
            heard(session, core, false);
        }
    }
}

/// The channels that it waits for are heard, or will not be. What has come until now on those that it does not listen on
/// yet was sent before.
pub fn heard(session: &Session, core: &mut Core, is_heard: bool) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    if let Some(notes) = &mut session.mail.lock().notes {
        notes.retain(|channel| steady.link.listened_on(channel));
    }
    steady.link.channels_heard(is_heard);
    steady.stalled = false;
}

/// Of a client that listens, at the end of a turn: what has changed is made known, and what waits is written, as far
/// as the client takes it. The rest follows when its socket takes bytes again.
#[cold]
pub fn attend(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    let Some(listener) = steady.listener else { return };
    if let Some(channels) = steady.link.settled_channels() {
        worker.shared.listeners.settle(worker.now, listener, session.id, channels);
        if channels.is_empty() {
            steady.listener = None;
            session.mail.lock().notes = None;
            return;
        }
    }
    if !steady.link.may_be_notified() {
        drop_early(session, steady);
        return;
    }
    let mut batch = Vec::new();
    while !core.stream.is_backed_up() && !core.stream.is_broken() {
        batch.clear();
        {
            let mut mail = session.mail.lock();
            let Some(notes) = &mut mail.notes else { return };
            while batch.len() < WRITE_BYTES_MAX
                && let Some(note) = notes.pop()
            {
                if note.channel.as_ref().is_none_or(|channel| steady.link.listens_on(channel)) {
                    batch.extend_from_slice(&note.message);
                }
            }
            if notes.queue.is_empty() {
                mail.notes = None;
            }
        }
        core.stream.send_bytes(&batch, &mut worker.outbox);
    }
}

/// In a transaction: what comes on a channel that only this transaction listens on was sent before the LISTEN is true.
fn drop_early(session: &Session, steady: &Steady) {
    if steady.link.is_idle_in_transaction()
        && let Some(notes) = &mut session.mail.lock().notes
    {
        notes.retain(|channel| steady.link.listened_on(channel));
    }
}

/// The session ends.
pub fn leave(worker: &Worker, session: &Arc<Session>, core: &mut Core) {
    if let Phase::Steady(steady) = &mut core.phase
        && let Some(listener) = steady.listener.take()
    {
        worker.shared.listeners.settle(worker.now, listener, session.id, &[]);
        session.mail.lock().notes = None;
    }
}
