//! What the pooler's side is made of: sessions, server connections, pools; as the shell has them, without sockets.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use baton::{Berth, Gate};
use hub::ListenerId;
use link::{Link, Policy, Side};
use model::{Moment, Parameters, PoolMode, Refusal, StateMode, Statements};
use pool::{Limits, Pool, Slot, Ticket};
use server::Server;
use wire::server::TransactionStatus;

use crate::client::Client;
use crate::net::{Net, Received};
use crate::notes::Notes;
use crate::script::Traits;
use crate::script::sequences;

/// What can be posted at a session's gate.
pub(crate) mod news {
    use baton::Bits;

    pub(crate) const CLIENT_READABLE: Bits = 1;
    pub(crate) const CLIENT_WRITABLE: Bits = 2;
    pub(crate) const CLIENT_HUNG_UP: Bits = 4;
    pub(crate) const SERVER_EDGE: Bits = 8;
    pub(crate) const MAIL: Bits = 16;
    pub(crate) const TIMER: Bits = 32;
    pub(crate) const AGAIN: Bits = 64;
}

/// A socket as the pooler holds it, with what it did not take yet.
#[derive(Debug)]
pub(crate) struct Stream {
    from: u32,
    to: u32,
    backlog: Vec<u8>,
    broken: bool,
}

impl Stream {
    pub(crate) fn new(from: u32, to: u32) -> Stream {
        Stream { from, to, backlog: Vec::new(), broken: false }
    }

    pub(crate) fn receive(&self, net: &mut Net, into: &mut [u8]) -> Received {
        net.read(self.from, into)
    }

    pub(crate) fn has_news(&self, net: &Net) -> bool {
        net.has_news(self.from)
    }

    pub(crate) fn is_backed_up(&self) -> bool {
        !self.backlog.is_empty()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(crate) fn send(&mut self, net: &mut Net, side: &Side, input: &[u8]) {
        for span in side.spans() {
            self.send_bytes(net, side.bytes(input, *span));
        }
    }

    pub(crate) fn send_bytes(&mut self, net: &mut Net, bytes: &[u8]) {
        if self.broken {
            return;
        }
        if !self.backlog.is_empty() {
            self.backlog.extend_from_slice(bytes);
            return;
        }
        match net.write(self.to, bytes) {
            Some(count) => self.backlog.extend_from_slice(&bytes[count..]),
            None => self.broken = true,
        }
    }

    /// True if nothing is left to write.
    pub(crate) fn flush(&mut self, net: &mut Net) -> bool {
        let backlog = std::mem::take(&mut self.backlog);
        if !backlog.is_empty() {
            self.send_bytes(net, &backlog);
        }
        self.backlog.is_empty()
    }

    /// Nothing more is sent, and nothing more should be read.
    pub(crate) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Closes it; what was written before is still delivered.
    pub(crate) fn close(&mut self, net: &mut Net) {
        net.end(self.to);
        net.pipes[self.from as usize].broken = true;
    }
}

/// The half of a server connection that does I/O.
#[derive(Debug)]
pub(crate) struct ServerSide {
    pub(crate) stream: Stream,
    pub(crate) pending: Vec<u8>,
    pub(crate) readable: bool,
}

/// Both halves.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) side: Box<ServerSide>,
    pub(crate) machine: Box<Server>,
}

/// A server connection's place.
pub(crate) struct Moored {
    pub(crate) home: usize,
    pub(crate) slot: Slot,
    pub(crate) berth: Berth<u32, Conn>,
    pub(crate) open: bool,
    /// Which session has it, as far as the checkers know.
    pub(crate) leased_to: Option<u32>,
    /// Which client had it last.
    pub(crate) last_client: u64,
    /// It is kept by a client that could not be asked first.
    pub(crate) is_beyond: bool,
}

/// A server that the pool has granted.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) server: u32,
    pub(crate) check: bool,
    pub(crate) pinned: bool,
}

/// What others tell a session.
#[derive(Debug)]
pub(crate) enum Letter {
    End(Refusal),
    Cancel,
    /// The channels that it waits for are heard, or will not be.
    Listening(bool),
    Policy(Arc<Policy>),
    /// This server must not be heard any more.
    Cut(u32),
}

/// The server that a session has.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) moored: u32,
    pub(crate) side: Box<ServerSide>,
}

/// What only the one behind the gate touches.
#[derive(Debug)]
pub(crate) struct Steady {
    pub(crate) stream: Stream,
    pub(crate) pending: Vec<u8>,
    pub(crate) readable: bool,
    pub(crate) hung_up: bool,
    pub(crate) armed: Moment,
    pub(crate) link: Link,
    pub(crate) home: usize,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) waiting_since: Moment,
    pub(crate) lease: Option<Lease>,
    pub(crate) stalled: bool,
    pub(crate) unread: bool,
    pub(crate) query_wait: Duration,
    /// Who listens for it.
    pub(crate) listener: Option<ListenerId>,
    /// It asks for a server to keep.
    pub(crate) wants_pin: bool,
    /// Its server is lost, and it has not said yet to what that is to be the answer.
    pub(crate) is_orphan: bool,
    /// It has half a message of a server that is gone.
    pub(crate) is_mid_message: bool,
    /// What may have to be sent again.
    pub(crate) sent: crate::sent::Sent,
    pub(crate) is_over: bool,
}

impl Steady {
    /// Where it stands, for a reader.
    pub(crate) fn summary(&self) -> String {
        let words = [
            (self.readable, "readable"),
            (self.hung_up, "hung up"),
            (self.unread, "unread"),
            (self.stalled, "stalled"),
            (self.ticket.is_some(), "waiting"),
            (self.link.wants_client_bytes(), "listening"),
            (self.wants_pin, "wants to keep"),
            (self.is_orphan, "orphan"),
            (self.link.awaits_channels(), "awaits channels"),
            (self.link.pins().is_some(), "keeps"),
            (self.is_over, "over"),
        ];
        let words: Vec<&str> = words.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| *word).collect();
        let server = self.lease.as_ref().map_or("none".to_owned(), |lease| lease.moored.to_string());
        format!("{}, {} bytes kept, server {server}", words.join(" "), self.pending.len())
    }
}

/// A client as the pooler sees it.
pub(crate) struct Session {
    pub(crate) gate: Gate,
    pub(crate) granted: Option<Granted>,
    pub(crate) letters: Vec<Letter>,
    pub(crate) notes: Option<Notes>,
    /// `None` once it is closed, and while somebody works on it.
    pub(crate) steady: Option<Box<Steady>>,
    pub(crate) is_over: bool,
    /// What the cancel keys of this session lead to.
    pub(crate) last_server: Option<u32>,
}

/// A pool and what belongs to it.
pub(crate) struct Home {
    pub(crate) pool: Pool<u32, u32>,
    /// What the pool is told.
    pub(crate) limits: Limits,
    pub(crate) policy: Arc<Policy>,
    pub(crate) traits: Traits,
    /// The pool's statements.
    pub(crate) statements: Arc<Statements>,
    /// Applications of which somebody has asked what was drawn from a sequence.
    pub(crate) askers: HashSet<Vec<u8>>,
    pub(crate) query_wait: Duration,
    pub(crate) welcome: Arc<Parameters>,
    /// Servers that are being opened or open, counted apart from the pool.
    pub(crate) alive: u32,
    /// As many as there may be: the limit, or what there was when it was lowered.
    pub(crate) allowed: u32,
    /// As many as may be kept: as above.
    pub(crate) pins_allowed: u32,
    /// When there was a node to open servers on again.
    pub(crate) unheld_at: Moment,
    /// The earliest tick that will come.
    pub(crate) tick_at: Moment,
}

impl Home {
    /// A client is about to say something: are its draws looked at?
    pub(crate) fn note_draws(&self, client: &mut Client, bytes: &[u8]) {
        let application = client.ideal.shown(b"application_name").unwrap_or_default();
        let is_own = self.policy.mode == PoolMode::Session;
        let is_looked_at =
            is_own || (self.askers.contains(&application) && self.policy.state != StateMode::Refuse);
        if client.ideal.status == TransactionStatus::Idle {
            client.drawn.is_known = is_looked_at;
        }
        if sequences::draws(bytes) {
            client.drawn.draw(is_looked_at);
        }
        if sequences::asks(bytes) {
            client.asks_as = Some(application);
        }
    }

    /// A client is answered: if it has asked, it is known that its application does.
    pub(crate) fn note_answered(&mut self, client: &mut Client) {
        self.askers.extend(client.asks_as.take());
    }
}

/// A server connection being opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) home: usize,
    pub(crate) slot: Slot,
    /// The node that it was to be on.
    pub(crate) node: u32,
}

/// A cancel request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancel {
    pub(crate) server: u32,
    pub(crate) slot: Option<Slot>,
    pub(crate) meant_for: u64,
}
