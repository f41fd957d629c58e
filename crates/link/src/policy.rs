//! What the settings demand of one link, as plain values.

use std::sync::Arc;
use std::time::Duration;

use model::{PoolMode, StateMode};
use sql::state::Functions;

/// Settings of one (database, user), shared by all its links and replaced as a whole on reload.
#[derive(Clone, Debug)]
pub struct Policy {
    /// When the server goes back.
    pub mode: PoolMode,
    /// How many named statements a server may have; 0 passes names through as they are.
    pub prepared_max: usize,
    /// The largest statement that is kept, in bytes.
    pub statement_bytes_max: u64,
    /// The most that one client's statements may keep alive, in bytes.
    pub client_statement_bytes_max: usize,
    /// Misuse of a statement's name closes the connection, as PgBouncer does, instead of being an ERROR.
    pub misuse_closes: bool,
    /// Simple queries are refused.
    pub disable_pqexec: bool,
    /// The server is this client's for life: replication, and session mode without any reset.
    pub dedicated: bool,
    /// What is done to a session on a server may be on another one, or gone, behind the transaction: a pooler of others
    /// stands there.
    pub servers_forget: bool,
    /// Run on a server that its client has left; empty for none.
    pub reset_query: Arc<[u8]>,
    /// Reset in every mode, not in session mode alone.
    pub reset_always: bool,
    /// Run on a server that was idle for long; `Some` of an empty text is an empty query.
    pub check_query: Option<Arc<[u8]>>,
    /// What is done about session state.
    pub state: StateMode,
    /// The functions that make state.
    pub functions: Arc<Functions>,
    /// Somebody else listens for clients.
    pub listen_fanout: bool,
    /// A client that is pinned is told so.
    pub notify_pins: bool,
    /// The client outlives the loss of its server, where nothing of its session is lost with it.
    pub rides_out: bool,
    /// Its reads may go to other servers than its writes: for whoever asks for one.
    pub splits: bool,
    /// Limits of time; zero is off.
    pub query_timeout: Duration,
    /// Idle within a transaction.
    pub idle_transaction_timeout: Duration,
    /// From a transaction's first message to its end.
    pub transaction_timeout: Duration,
    /// Without a server and silent.
    pub client_idle_timeout: Duration,
    /// Waiting for a server: for whoever asks for one.
    pub query_wait_timeout: Duration,
    /// After so long a wait the client is told that it waits.
    pub query_wait_notify: Duration,
}

impl Policy {
    /// Whether names of statements are mapped, so that servers can be shared.
    pub(crate) fn maps_statements(&self) -> bool {
        self.prepared_max > 0 && self.mode != PoolMode::Session && !self.dedicated
    }

    /// Whether what PREPARE makes goes with its client.
    pub(crate) fn carries_prepare(&self) -> bool {
        self.maps_statements()
            && !self.servers_forget
            && matches!(self.state, StateMode::Carry | StateMode::Refuse)
    }

    /// Whether statements are looked at for what they do to the session.
    #[inline]
    pub(crate) fn scans(&self) -> bool {
        self.state != StateMode::Off && self.mode != PoolMode::Session && !self.dedicated
    }

    /// Whether a server must be reset when its client is done with it.
    pub(crate) fn resets(&self) -> bool {
        !self.reset_query.is_empty() && (self.mode == PoolMode::Session || self.reset_always)
    }
}

impl Default for Policy {
    /// Transaction mode with PgBouncer's defaults.
    fn default() -> Policy {
        Policy {
            mode: PoolMode::Transaction,
            prepared_max: 200,
            statement_bytes_max: 16 << 20,
            client_statement_bytes_max: 64 << 20,
            misuse_closes: false,
            disable_pqexec: false,
            dedicated: false,
            servers_forget: false,
            reset_query: Arc::from(&b"DISCARD ALL"[..]),
            reset_always: false,
            check_query: Some(Arc::from(&b""[..])),
            state: StateMode::Off,
            functions: Arc::new(Functions::default()),
            listen_fanout: false,
            notify_pins: false,
            rides_out: false,
            splits: false,
            query_timeout: Duration::ZERO,
            idle_transaction_timeout: Duration::ZERO,
            transaction_timeout: Duration::ZERO,
            client_idle_timeout: Duration::ZERO,
            query_wait_timeout: Duration::ZERO,
            query_wait_notify: Duration::ZERO,
        }
    }
}
