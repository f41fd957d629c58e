//! One server connection after its login: what it owes, what it has, and whether it may be shared again.
//!
//! It does not know who its client is, how it is reached or which pool it belongs to.

use std::sync::Arc;

use model::{ClientId, Digest, Moment, Parameters, ServerId};
use wire::server::TransactionStatus;

use crate::ledger::{Entry, Ledger, Owed};
use crate::prepared::Prepared;

/// Whose unnamed statement a server holds: the client and that client's count of unnamed Parses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnnamedOf {
    /// Whose it is.
    pub client: ClientId,
    /// Which of the client's.
    pub serial: u32,
}

/// Why a server connection is at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It sent a header that is none.
    BadHeader,
    /// It sent what it did not owe: the message's type.
    Unexpected(u8),
    /// It ended the session itself: SQLSTATE and message.
    Fatal(Box<str>, Box<str>),
    /// A message's body was not what its type demands.
    Malformed(u8),
    /// A statement of our own failed: SQLSTATE and message.
    OursFailed(Box<str>, Box<str>),
    /// A prepared statement is not what its client was told, and may have run.
    ResultChanged,
}

/// Whether a statement that was prepared before is still what its clients were told, on a server that has just
/// been given it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Nobody waits for an answer.
    #[default]
    None,
    /// Its description is owed, and its client waits for that.
    Asked {
        /// The statement.
        id: u64,
        /// In which generation it was asked for.
        generation: u64,
    },
    /// This one is not.
    Differs(u64),
}

/// What a client that is gone has left in a session, beside settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Nothing.
    #[default]
    Nothing,
    /// What DISCARD ALL clears.
    Discardable,
    /// What nothing clears but the session's end.
    Forever,
}

/// Whether what a server refuses may be sent to another one, as if this had never had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// It may not: the client has heard something of the answer, or there is no other.
    #[default]
    No,
    /// It may.
    May,
    /// It has been refused: nothing more of this answer is for the client.
    Due {
        /// It will be, whenever it is asked: what was asked is not for a standby.
        for_good: bool,
    },
}

impl Retry {
    /// Whether it has been refused.
    #[inline]
    pub fn is_due(self) -> bool {
        matches!(self, Retry::Due { .. })
    }
}

/// A portal of a statement that nobody has described yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undescribed {
    /// The statement.
    pub statement: u64,
    /// The portal's name.
    pub portal: Box<[u8]>,
}

/// The state of one server connection.
#[derive(Debug)]
pub struct Server {
    /// Its name in logs and tables.
    pub id: ServerId,
    /// What it owes.
    pub ledger: Ledger,
    /// What its last ReadyForQuery said. Never computed: PostgreSQL's versions differ.
    pub status: TransactionStatus,
    /// What it reported, and what was set on it for a client.
    pub parameters: Arc<Parameters>,
    /// What it reported at its login: what a RESET goes back to there.
    pub login: Arc<Parameters>,
    /// How somebody logged in, and the names of what is set there that is not so in our login.
    foreign: Option<(Arc<Parameters>, Arc<Vec<Arc<[u8]>>>)>,
    /// Named statements it has.
    pub prepared: Prepared,
    /// Whose unnamed statement it has.
    pub unnamed: Option<UnnamedOf>,
    /// Whether a statement is compared with what was told of it.
    pub check: Check,
    /// Whether what it refuses may be sent to another.
    pub retry: Retry,
    /// The portal that was bound last, if its description is of interest.
    pub undescribed: Option<Undescribed>,
    /// The first half of a description: the parameters.
    pub described: Option<Digest>,
    /// The transaction under way has changed the schema.
    pub altering: bool,
    /// The schema may have changed, and that is not made known yet.
    pub renews: bool,
    /// It may remember what others have drawn from sequences: somebody has had it at whose draws nobody looks.
    pub may_remember: bool,
    /// Bytes of a message to it that are still to be sent.
    pub sending: u64,
    /// Bytes of a message from it that are still to come.
    pub receiving: u64,
    /// The message that is coming is not for the client.
    pub swallowing: bool,
    /// The process id in its BackendKeyData.
    pub process_id: u32,
    /// The key in its BackendKeyData.
    pub cancel_key: Box<[u8]>,
    /// The session may hold state that a reset must clear before another client gets it.
    pub soiled: bool,
    /// What must be cleared in every mode before another client gets it.
    pub left: Left,
    /// Why it is at its end, once it is.
    pub broken: Option<Broken>,
    /// When it was connected.
    pub since: Moment,
    /// When it was last given to a client.
    pub requested_at: Moment,
    /// Since when its client's query runs. What only a client with a server has stands here, so that the many without one need no
    /// room for it.
    pub query_since: Moment,
    /// Since when its client's transaction is under way.
    pub transaction_since: Moment,
}

impl Server {
    /// A server that has just logged in.
    pub fn new(
        id: ServerId,
        parameters: Arc<Parameters>,
        process_id: u32,
        cancel_key: Box<[u8]>,
        now: Moment,
    ) -> Server {
        Server {
            id,
            ledger: Ledger::default(),
            status: TransactionStatus::Idle,
            login: Arc::clone(&parameters),
            parameters,
            foreign: None,
            prepared: Prepared::default(),
            unnamed: None,
            check: Check::None,
            retry: Retry::No,
            undescribed: None,
            described: None,
            altering: false,
            renews: false,
            may_remember: false,
            sending: 0,
            receiving: 0,
            swallowing: false,
            process_id,
            cancel_key,
            soiled: false,
            left: Left::Nothing,
            broken: None,
            since: now,
            requested_at: now,
            query_since: Moment::NEVER,
            transaction_since: Moment::NEVER,
        }
    }

    /// Names of the settings that a client logged in with and that this server does not have by itself; none if their logins
    /// are the same. The answer is kept: the next client has probably logged in as this one did, and may share it.
    pub fn foreign_to(&mut self, login: &Arc<Parameters>) -> Option<Arc<Vec<Arc<[u8]>>>> {
        if Arc::ptr_eq(login, &self.login) || *login == self.login {
            return None;
        }
        if let Some((of, names)) = &self.foreign
            && Arc::ptr_eq(of, login)
        {
            return Some(Arc::clone(names));
        }
        let difference = model::parameters::difference(login, &self.login);
        let names = difference.set.iter().map(|parameter| Arc::clone(&parameter.name)).collect();
        let names: Arc<Vec<_>> = Arc::new(names);
        self.foreign = Some((Arc::clone(login), Arc::clone(&names)));
        Some(names)
    }

    /// Whether no message is half sent, half received or unanswered, and no batch is without its Sync.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.ledger.is_empty() && !self.ledger.is_unsynced() && self.sending == 0 && self.receiving == 0
    }

    /// Whether another client may have it: quiet, outside a transaction, sound, and nothing in doubt.
    #[inline]
    pub fn is_shareable(&self) -> bool {
        self.left == Left::Nothing
            && self.is_quiet()
            && self.status == TransactionStatus::Idle
            && self.broken.is_none()
            && !self.ledger.is_doubtful()
            && !self.ledger.is_copying()
    }

    /// Whether the client's unnamed statement is here.
    pub fn has_unnamed(&self, of: UnnamedOf) -> bool {
        self.unnamed == Some(of)
    }

    /// A query of our own is sent. It destroys the unnamed statement, as every simple query does.
    pub fn owe_query(&mut self) {
        self.ledger.push(Entry::ours(Owed::Query));
        self.unnamed = None;
    }

    /// A parameter was reported by the server or set by us.
    pub fn set_parameter(&mut self, name: &[u8], value: &[u8], reported: bool) {
        if self.parameters.value(name) != Some(value) {
            Arc::make_mut(&mut self.parameters).set(name, value, reported);
        }
    }
}
