//! One server connection as the data plane holds it: in its berth, or moved out into a client's session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use baton::Berth;
use mio::Token;
use model::{ServerId, WorkerId};
use server::Server;

use crate::connect::Endpoint;
use crate::home::Home;
use crate::leftover::Leftover;
use crate::session::Session;
use crate::socket::Stream;

/// The half of a server connection that does I/O.
pub struct ServerSide {
    /// Its socket.
    pub stream: Stream,
    /// What was read and is not whole yet.
    pub pending: Leftover,
    /// There may be something to read.
    pub readable: bool,
}

/// Both halves: what is moved between berth and session.
pub struct Conn {
    /// The half that does I/O.
    pub side: Box<ServerSide>,
    /// The half that decides.
    pub machine: Box<Server>,
}

/// Where a server is and how it is reached, for tables, logs and cancel requests.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// The server's end.
    pub remote: Endpoint,
    /// Our end.
    pub local: Endpoint,
    /// Version and cipher; empty without TLS.
    pub tls: String,
    /// The process id in its BackendKeyData.
    pub process_id: u32,
    /// Seconds since 1970 at which it was connected.
    pub connected_unix: u64,
}

/// A server connection's place, from its login to its end.
pub struct Moored {
    /// Its name.
    pub id: ServerId,
    /// Its pool.
    pub home: Arc<Home>,
    /// Its place in the pool.
    pub slot: pool::Slot,
    /// The worker whose poll watches it.
    pub worker: WorkerId,
    /// Its place in that worker's table.
    pub token: parking_lot::Mutex<Option<Token>>,
    /// Where it is.
    pub facts: ServerFacts,
    /// The node of its cluster, if that is monitored.
    pub node: Option<hub::NodeRef>,
    /// How a cancel request gets there.
    pub cancel: crate::cancel::Target,
    /// Its peer has closed: there is an end to be read behind the last bytes.
    pub hung_up: AtomicBool,
    /// Since when somebody looks after it without a client, as a moment; 0 if nobody does.
    pub kept_since: AtomicU64,
    /// Where it lies while no client has it.
    pub berth: Berth<Arc<Session>, Conn>,
}
