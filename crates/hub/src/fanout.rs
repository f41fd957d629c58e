//! Who listens on what: one connection of its own listens in a database for all clients that do.
//!
//! It decides what that connection is told, who waits until it hears a channel, and who is given a notification.
//! It moves handles; it knows no client's transaction, no socket and no words of the protocol.
//!
//! The life of a listener, as calls of whoever holds its connection:
//!
//! ```text
//! join -> Joined::Waits { begin: true }     somebody wants it: begin to ask `next`
//!   next -> Next::Connect                   then `opened`, or `failed`
//!   next -> Next::Say(command)              then `done`, or `lost`
//!   next -> Next::Check                     it was silent for long: it shows that it lives, or `lost`
//!   next -> Next::Rest(until)               ask again then, or when somebody has joined or left
//!   next -> Next::End                       nobody listens any more, and it is forgotten
//! ```

mod listener;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::clusters::Place;
use console::ListenerRow;
use model::{ClientId, Moment, PoolId};

use self::listener::{Added, Listener};

/// The name of a channel, as PostgreSQL knows it: folded, and of 63 bytes at most.
pub type Channel = Arc<[u8]>;

/// What makes clients share a listener: all that reaches the same database, and the encoding they read.
///
/// The user is not part of it: PostgreSQL asks no permission for LISTEN, and whoever may connect hears the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where the database is.
    pub places: Vec<Place>,
    /// The database's name on the server.
    pub dbname: String,
    /// `client_encoding`: channels and payloads come in it.
    pub encoding: Box<[u8]>,
}

/// A listener's number, never used again. They are counted from one, so that a client without a listener needs no
/// room to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(NonZeroU64);

impl ListenerId {
    /// The first one's.
    pub const FIRST: ListenerId = ListenerId(NonZeroU64::MIN);

    fn next(self) -> ListenerId {
        ListenerId(self.0.saturating_add(1))
    }
}

impl std::fmt::Display for ListenerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutLimits {
    /// Listeners in all.
    pub listeners: usize,
    /// Channels of one client.
    pub channels: usize,
}

/// What became of a client's wish to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The channels will be heard: [`Fanout::done`] or [`Fanout::failed`] names the client.
    Waits {
        /// The listener, which has something to say now.
        listener: ListenerId,
        /// It is new: somebody must begin to look after it.
        begin: bool,
    },
    /// A limit is reached: the client must listen by itself.
    Refused(FanoutLimit),
}

/// The limit that a client has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanoutLimit {
    /// Of listeners in all.
    Listeners,
    /// Of channels of one client.
    Channels,
}

/// What a listener's connection is to be told, in one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Channels to LISTEN on.
    pub listen: Vec<Channel>,
    /// Channels to UNLISTEN.
    pub unlisten: Vec<Channel>,
}

/// What is next for a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Connect, as a server of this pool would.
    Connect(PoolId),
    /// Tell it this.
    Say(Command),
    /// Ask it whether it lives.
    Check,
    /// Nothing until then, unless something happens.
    Rest(Moment),
    /// It is forgotten: close its connection.
    End,
}

/// The server at the other end of a listener's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEnd {
    /// Its address.
    pub addr: String,
    /// Its port.
    pub port: u16,
    /// The process id of the session.
    pub process_id: u32,
}

/// What came of a command that is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<C> {
    /// All that these clients wait for is heard.
    pub heard: Vec<C>,
    /// These listened when an earlier connection was lost, and may have missed something.
    pub missed: Vec<C>,
}

/// What a change of the settings means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retargeted<C> {
    /// Listeners that are to connect anew.
    pub renew: Vec<ListenerId>,
    /// Clients whose listener is elsewhere than their servers.
    pub strays: Vec<C>,
}

/// All listeners and who they listen for. `C` is the caller's handle of a client.
pub struct Fanout<C> {
    limits: FanoutLimits,
    listeners: BTreeMap<ListenerId, Listener<C>>,
    next_id: ListenerId,
}

impl<C: Clone> Fanout<C> {
    /// Nobody listens.
    pub fn new(limits: FanoutLimits) -> Fanout<C> {
        Fanout { limits, listeners: BTreeMap::new(), next_id: ListenerId::FIRST }
    }

    /// Other limits, from now on.
    pub fn set_limits(&mut self, limits: FanoutLimits) {
        self.limits = limits;
    }

    /// A client is about to listen on these channels: from the moment that it is told they are heard, nothing that
    /// is sent on them passes it by. Those it has already are kept.
    ///
    /// `at` is the listener that it has, if it has one: a client has one at most.
    pub fn join(
        &mut self,
        now: Moment,
        at: Option<ListenerId>,
        target: impl FnOnce() -> Target,
        member: (ClientId, C, PoolId),
        channels: &[Channel],
    ) -> (Option<ListenerId>, Joined) {
        let at = at.filter(|id| self.listeners.contains_key(id));
        let (id, is_new) = match at.map_or_else(|| self.find_or_make(now, target()), |id| Some((id, false))) {
            Some(found) => found,
            None => return (None, Joined::Refused(FanoutLimit::Listeners)),
        };
        let limit = self.limits.channels;
        let Some(listener) = self.listeners.get_mut(&id) else {
            return (None, Joined::Refused(FanoutLimit::Listeners));
        };
        match listener.add(member, channels, limit) {
            Added::Waits => (Some(id), Joined::Waits { listener: id, begin: is_new }),
            Added::TooMany if is_new => {
                self.listeners.remove(&id);
                (None, Joined::Refused(FanoutLimit::Channels))
            }
            Added::TooMany => (at, Joined::Refused(FanoutLimit::Channels)),
        }
    }

    fn find_or_make(&mut self, now: Moment, target: Target) -> Option<(ListenerId, bool)> {
        if let Some((id, _)) = self.listeners.iter().find(|(_, listener)| listener.target == target) {
            return Some((*id, false));
        }
        if self.listeners.len() >= self.limits.listeners {
            return None;
        }
        let id = self.next_id;
        self.next_id = id.next();
        self.listeners.insert(id, Listener::new(now, target));
        Some((id, true))
    }

    /// The client's transaction is over: these are its channels now, and no others. True if the listener has
    /// something to say now.
    pub fn settle(&mut self, now: Moment, at: ListenerId, client: ClientId, channels: &[Channel]) -> bool {
        self.listeners.get_mut(&at).is_some_and(|listener| listener.settle(now, client, channels))
    }

    /// The client is gone. True if the listener has something to say now.
    pub fn leave(&mut self, now: Moment, at: ListenerId, client: ClientId) -> bool {
        self.settle(now, at, client, &[])
    }

    /// What is next for a listener.
    pub fn next(&mut self, now: Moment, id: ListenerId) -> Next {
        let Some(listener) = self.listeners.get_mut(&id) else { return Next::End };
        let next = listener.next(now);
        if next == Next::End {
            self.listeners.remove(&id);
        }
        next
    }

    /// It is connected, to this server.
    pub fn opened(&mut self, now: Moment, id: ListenerId, end: ServerEnd) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.opened(now, end);
        }
    }

    /// What it was told or asked last is answered.
    pub fn done(&mut self, now: Moment, id: ListenerId) -> Done<C> {
        let done = self.listeners.get_mut(&id).map(|listener| listener.done(now));
        done.unwrap_or(Done { heard: Vec::new(), missed: Vec::new() })
    }

    /// It could not be connected, or was refused a channel. Answers the clients that waited: they must listen by
    /// themselves.
    pub fn failed(&mut self, now: Moment, id: ListenerId) -> Vec<C> {
        self.listeners.get_mut(&id).map_or_else(Vec::new, |listener| listener.failed(now))
    }

    /// Its connection is gone. Who listens stays. Who waits waits for the next connection; if that is lost soon, too,
    /// they are answered as by [`Fanout::failed`].
    pub fn lost(&mut self, now: Moment, id: ListenerId) -> Vec<C> {
        self.listeners.get_mut(&id).map_or_else(Vec::new, |listener| listener.lost(now))
    }

    /// A notification has come. Answers the channel as it is shared, and calls `give` for each client that may be
    /// listening on it; nobody knows here which of them are in a transaction.
    pub fn notified(
        &mut self,
        now: Moment,
        id: ListenerId,
        channel: &[u8],
        mut give: impl FnMut(&Channel, &C),
    ) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        listener.notified(now);
        if let Some((channel, clients)) = listener.clients_of(channel) {
            clients.for_each(|client| give(channel, client));
        }
    }

    /// One that has no connection tries again now.
    pub fn retry(&mut self, now: Moment, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.retry(now);
        }
    }

    /// The settings have changed: where do the pools lead now? Answers the listeners that are to connect anew because
    /// they lead elsewhere, and clients whose pool leads elsewhere while others' do not.
    pub fn retarget(&mut self, leads: impl Fn(PoolId) -> Option<Target>) -> Retargeted<C> {
        let mut retargeted = Retargeted { renew: Vec::new(), strays: Vec::new() };
        for (id, listener) in &mut self.listeners {
            if listener.retarget(&leads, &mut retargeted.strays) {
                retargeted.renew.push(*id);
            }
        }
        retargeted
    }

    /// The listeners of clients of a pool: for a database that is to be reached anew.
    pub fn of_pools(&self, is_meant: impl Fn(PoolId) -> bool) -> Vec<ListenerId> {
        let meant = |listener: &Listener<C>| listener.pools().any(&is_meant);
        self.listeners.iter().filter(|(_, listener)| meant(listener)).map(|(id, _)| *id).collect()
    }

    /// A database is to be left, whatever the encoding: no connection stays there for clients that may come. Answers
    /// the listeners that end now.
    pub fn leave_database(&mut self, target: &Target) -> Vec<ListenerId> {
        let is_there = |other: &Target| (&other.places, &other.dbname) == (&target.places, &target.dbname);
        let there = self.listeners.iter_mut().filter(|(_, listener)| is_there(&listener.target));
        there.filter_map(|(id, listener)| listener.dismiss().then_some(*id)).collect()
    }

    /// What a listener reaches.
    pub fn target(&self, id: ListenerId) -> Option<&Target> {
        self.listeners.get(&id).map(|listener| &listener.target)
    }

    /// `SHOW LISTENERS`.
    pub fn rows(&self) -> Vec<ListenerRow> {
        self.listeners.iter().map(|(id, listener)| listener.row(*id)).collect()
    }
}
