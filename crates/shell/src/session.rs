//! One client's session: its gate, its mail, and what only the one behind the gate may touch.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use baton::{Bits, Gate};
use client::login::{Identity, Replication};
use hub::ListenerId;
use link::{Link, Policy};
use mio::Token;
use model::{ClientId, Moment, Refusal, WorkerId};
use parking_lot::Mutex;
use pool::{Grant, Ticket};
use volley::Miss;

use crate::admin::Admin;
use crate::entering::Entering;
use crate::fanout::Notes;
use crate::home::Home;
use crate::leftover::Leftover;
use crate::moored::{Moored, ServerSide};
use crate::outbox::Outbox;
use crate::outlive::Sent;
use crate::pins::Noted;
use crate::socket::Stream;

/// What can be posted at a session's gate.
pub mod news {
    use baton::Bits;

    /// The client's socket may have something to read.
    pub const CLIENT_READABLE: Bits = 1;
    /// The client's socket takes bytes again.
    pub const CLIENT_WRITABLE: Bits = 2;
    /// The client has closed its side.
    pub const CLIENT_HUNG_UP: Bits = 4;
    /// The server's socket has an edge.
    pub const SERVER_EDGE: Bits = 8;
    /// There is mail.
    pub const MAIL: Bits = 16;
    /// A deadline may have passed.
    pub const TIMER: Bits = 32;
    /// It had more to do than one turn allows.
    pub const AGAIN: Bits = 64;
}

/// What others tell a session.
pub enum Letter {
    /// How the client must prove itself.
    Challenge(client::login::Challenge),
    /// The outcome of a slow check of a password.
    Checked(client::login::Checked),
    /// The session ends with this.
    End(Refusal),
    /// The client asked to stop what its session does.
    Cancel,
    /// What the console answers.
    Reply(Box<console::Reply>),
    /// The settings have changed.
    Terms(Arc<Policy>),
    /// This server must not be heard any more.
    Cut(model::ServerId),
    /// What a server says to a client that logs in there itself.
    Asked(crate::connect::Said),
    /// This server is to have no more work: if it is the session's own, the session ends with its transaction.
    Leave(model::ServerId),
    /// The server that it alone may use is connected, or could not be.
    Dedicated(Result<Arc<Moored>, Refusal>),
    /// The channels that it waits for are heard, or will not be.
    Listening(bool),
    /// The standby that it waits for is out: it is in no queue any more.
    Reroute,
}

/// A server that the pool has granted.
pub struct Granted {
    /// The server.
    pub server: Arc<Moored>,
    /// It must show that it lives.
    pub check: bool,
    /// The client may keep it for its session state.
    pub pinned: bool,
    /// How long the client waited for it, in microseconds; the most that fits, if it was more than an hour.
    pub waited_us: u32,
}

impl Granted {
    /// What the pool has given to a client that waited.
    pub fn after(grant: Grant<Arc<Moored>>, waited: Duration) -> Granted {
        let Grant { server, check, pinned, .. } = grant;
        Granted { server, check, pinned, waited_us: u32::try_from(waited.as_micros()).unwrap_or(u32::MAX) }
    }
}

/// What waits to be seen by whoever works on the session next.
#[derive(Default)]
pub struct Mail {
    /// Apart from the letters, because it comes with each hand-over and must not allocate.
    pub granted: Option<Granted>,
    /// Everything else; most clients never get any.
    #[expect(clippy::box_collection, reason = "nearly every client has none, and a record must be small")]
    letters: Option<Box<Vec<Letter>>>,
    /// Notifications that it was not told yet.
    pub notes: Option<Box<Notes>>,
    /// Who the client is, once it is let in: here because others ask, and a lock of its own would be a word more.
    pub who: Option<Arc<ClientFacts>>,
}

impl Mail {
    /// The letters, taken out.
    pub fn take_letters(&mut self) -> Vec<Letter> {
        self.letters.take().map_or_else(Vec::new, |letters| *letters)
    }
}

/// A session's place in the table of its worker, until it is taken away.
pub struct Place(AtomicUsize);

/// No place of a table.
const NOWHERE: usize = usize::MAX;

impl Default for Place {
    /// None yet.
    fn default() -> Place {
        Place(AtomicUsize::new(NOWHERE))
    }
}

impl Place {
    /// It is there.
    pub fn put(&self, token: Token) {
        self.0.store(token.0, Ordering::Release);
    }

    /// Takes it away: who gets it is the one to free it.
    pub fn take(&self) -> Option<Token> {
        Some(self.0.swap(NOWHERE, Ordering::AcqRel)).filter(|&token| token != NOWHERE).map(Token)
    }
}

/// Where a client came from: a socket address without what only wastes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Unix socket.
    Unix,
    /// TCP over IPv4.
    V4([u8; 4], [u8; 2]),
    /// TCP over IPv6.
    V6([u8; 16], [u8; 2]),
}

impl Origin {
    /// An address, or none for a Unix socket.
    pub fn of(peer: Option<SocketAddr>) -> Origin {
        match peer {
            None => Origin::Unix,
            Some(SocketAddr::V4(peer)) => Origin::V4(peer.ip().octets(), peer.port().to_ne_bytes()),
            Some(SocketAddr::V6(peer)) => Origin::V6(peer.ip().octets(), peer.port().to_ne_bytes()),
        }
    }

    /// The address again; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match *self {
            Origin::Unix => None,
            Origin::V4(ip, port) => Some((ip, u16::from_ne_bytes(port)).into()),
            Origin::V6(ip, port) => Some((ip, u16::from_ne_bytes(port)).into()),
        }
    }
}

/// The server that a session has.
pub struct Lease {
    /// Its place.
    pub moored: Arc<Moored>,
    /// Its I/O; the machine is in the link.
    pub side: Box<ServerSide>,
}

impl Lease {
    /// Whether nothing is left between us and the server.
    pub fn is_through(&mut self, outbox: &mut Outbox) -> bool {
        self.side.stream.settle(outbox);
        self.side.pending.is_empty() && !self.side.stream.is_backed_up()
    }
}

/// A client that is logged in.
pub struct Steady {
    /// The pair of machines.
    pub link: Link,
    /// Its pool: the one that it entered, or where its reads may go elsewhere, the one that it asks or has asked last.
    pub home: Arc<Home>,
    /// Its place in the queue, while it waits.
    pub ticket: Option<Ticket>,
    /// Since when it waits.
    pub waiting_since: Moment,
    /// It has been told that it is queued.
    pub told_queued: bool,
    /// It is sure to have something to wait for.
    pub is_sure: bool,
    /// It asks for a server to keep.
    pub wants_pin: bool,
    /// It keeps its server, and is counted for that.
    pub pinned: Option<Box<Noted>>,
    /// Its server.
    pub lease: Option<Lease>,
    /// Who listens for it.
    pub listener: Option<ListenerId>,
    /// The link wants no more of the client before the server has answered.
    pub stalled: bool,
    /// Whole messages of the client are in `pending`: they can be dealt with without a read.
    pub unread: bool,
    /// It has said goodbye, and what it asked before is still being answered; if it has closed its socket too,
    /// until this moment. Never, if it has not.
    pub leaves_at: Moment,
    /// What it has sent since it got its server, where that may have to be sent again.
    pub sent: Option<Box<Sent>>,
    /// Its server is lost, and it has not said yet to what that is to be the answer.
    pub is_orphan: bool,
    /// It ends with its transaction: its server, which is its own, is to have no more work.
    pub is_leaving: bool,
    /// It has half a message of a server that is gone: any word more would be read as part of it.
    pub is_mid_message: bool,
}

impl Steady {
    /// Takes note of whether the client is in the middle of a message of its server.
    pub fn note_mid_message(&mut self) {
        let half = self.link.server().is_some_and(|server| server.receiving > 0 && !server.swallowing);
        self.is_mid_message |= half;
    }
}

/// Where a session stands. A login's things are many and soon gone; those of a client stay for as long as it does,
/// and lie in the session itself, so that its end leaves no hole that nothing fits into.
#[allow(clippy::large_enum_variant, reason = "see above; it is below the limit or not by a field")]
pub enum Phase {
    /// Not let in yet.
    Entering(Box<Entering>),
    /// A client of a pool.
    Steady(Steady),
    /// A user of the console.
    Admin(Box<Admin>),
    /// At its end.
    Closed,
}

/// What only the one behind the gate touches.
pub struct Core {
    /// The client's socket.
    pub stream: Stream,
    /// What was read from it and is not dealt with.
    pub pending: Leftover,
    /// There may be something to read.
    pub readable: bool,
    /// The client has closed its side.
    pub hung_up: bool,
    /// The client has said goodbye, or is gone: it waits for no last words.
    pub has_left: bool,
    /// Where the session stands.
    pub phase: Phase,
    /// The earliest moment at which a timer will wake it.
    pub armed: Moment,
    /// When it last sent something, for tables.
    pub requested_at: Moment,
}

/// Facts about a client that never change after its login.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientFacts {
    /// The database entry it asked for.
    pub database: String,
    /// The name it logged in with.
    pub user: String,
    /// `none`, `logical` or `physical`.
    pub replication: &'static str,
    /// Its server has let it in, and is its own.
    pub is_passthrough: bool,
    /// Version and cipher; empty without TLS.
    pub tls: String,
}

impl ClientFacts {
    /// Of a client that says who it is, and where it goes by that.
    pub fn of(stream: &Stream, (identity, seat): &(Identity, hub::Seat)) -> ClientFacts {
        ClientFacts {
            is_passthrough: seat.is_passthrough(),
            database: identity.database.clone(),
            user: seat.user().to_owned(),
            replication: match identity.replication {
                Replication::No => "none",
                Replication::Logical => "logical",
                Replication::Physical => "physical",
            },
            tls: stream.tls().map(|tls| crate::tls::describe(tls)).unwrap_or_default(),
        }
    }
}

/// A client, from accept to close.
pub struct Session {
    /// Its name.
    pub id: ClientId,
    /// The worker whose poll watches it.
    pub worker: WorkerId,
    /// Its place in that worker's table.
    pub token: Place,
    /// Where it came from.
    pub origin: Origin,
    /// Seconds since 1970 at which it was accepted.
    pub connected_unix: u32,
    /// Its login no longer counts as one under way.
    pub is_proved: AtomicBool,
    /// What it counted for was given back.
    pub is_gone: AtomicBool,
    /// Who works on it.
    pub gate: Gate,
    /// What waits for it.
    pub mail: Mutex<Mail>,
    /// Locked by whoever is behind the gate, and for a look by the console.
    pub core: Mutex<Core>,
}

impl Session {
    /// Leaves a letter. True if the caller must see to it that somebody works on the session now.
    #[must_use]
    pub fn send(&self, letter: Letter) -> bool {
        self.mail.lock().letters.get_or_insert_default().push(letter);
        self.gate.post(news::MAIL)
    }

    /// Leaves a grant. True if the caller must work on the session now.
    #[must_use]
    pub fn grant(&self, granted: Granted) -> bool {
        self.mail.lock().granted = Some(granted);
        self.gate.post(news::MAIL)
    }

    /// What is known about who it is.
    pub fn who(&self) -> Option<Arc<ClientFacts>> {
        self.mail.lock().who.clone()
    }
}

impl Core {
    /// Keeps what a volley could not send to one of its sockets. False if it has no such socket.
    pub fn keep_missed(&mut self, miss: &Miss) -> bool {
        let server = match &mut self.phase {
            Phase::Steady(steady) => steady.lease.as_mut().map(|lease| &mut lease.side.stream),
            _ => None,
        };
        let mut streams = [Some(&mut self.stream), server].into_iter().flatten();
        let stream = streams.find(|stream| stream.socket().fd() == miss.fd);
        stream.map(|stream| stream.keep_missed(&miss.rest)).is_some()
    }

    /// Takes note of what happened to the client's socket.
    pub fn note(&mut self, bits: Bits) {
        if bits & (news::CLIENT_READABLE | news::CLIENT_HUNG_UP) != 0 {
            self.readable = true;
        }
        if bits & news::CLIENT_HUNG_UP != 0 {
            self.hung_up = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entering::Entering;

    /// What an idle client without TLS costs in user space is to stay below 512 bytes. With its share of tables:
    ///
    /// | bytes | what |
    /// |---|---|
    /// | 400 | the session (at most 376), its counts of references (16), the allocator's 8, rounded up to 16 |
    /// | 56 | its record at the hub |
    /// | 16 | the two tables that find that, at a middle fill |
    /// | 24 | its place in its worker's table |
    /// | 16 | its login's timer, until it fires |
    #[test]
    fn an_idle_client_is_one_small_record() {
        let session = size_of::<Session>();
        assert!(session <= 376, "a session of {session} bytes");
        assert_eq!(size_of::<Granted>(), 16);
        assert_eq!(size_of::<Stream>(), 32);
        assert_eq!(size_of::<crate::leftover::Leftover>(), 8);
        assert_eq!(size_of::<crate::sources::Place>(), 24);
        // What only a login needs is gone with it.
        assert!(size_of::<Entering>() > session);
    }
}
