//! The pair itself: who is in it, what it waits for, and when the server is free.
//!
//! Call order. `granted` gives it a server; if it answers [`Granted::Preparing`], the client's bytes wait
//! until `wants_client_bytes`. Then `on_client` and `on_server` are called with whatever arrives, in any
//! order; after each call the spans in `out` are written, and `release_due` says whether `release` is next.
//! Whatever ends the client, `take_server` comes last, and [`crate::unpaired`] deals with what it gives.

use std::sync::Arc;

use client::Client;
use model::{Moment, PoolMode, Refusal, Statements};
use server::{Broken, Retry, Server};
use wire::server::TransactionStatus;

use crate::channels::Channels;
use crate::out::Out;
use crate::policy::Policy;
use crate::state::State;
use crate::state::levels::restored;
use crate::state::pins::Pins;

/// What a link makes of the server that it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// The client's bytes may follow at once.
    Ready,
    /// Bytes of our own go first, and the client's wait for their answer.
    Preparing,
}

/// What may be done with the server of a link as things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The client keeps it.
    Kept,
    /// It is free for another client.
    Free,
    /// The client is done with it, and nobody else may have it: it is to be taken and closed.
    Spoilt,
}

/// Whether the client may make state that keeps its server, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Nobody was asked.
    None,
    /// It may.
    Given,
    /// It is in the middle of something: so it does without being asked, which nobody was told yet.
    Taken,
}

/// One client and at most one server.
#[derive(Debug)]
pub struct Link {
    /// The client's side.
    pub client: Client,
    pub(crate) server: Option<Box<Server>>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) statements: Arc<Statements>,
    /// What the client's statements did to its session, if they did anything.
    pub(crate) state: Option<Box<State>>,
    pub(crate) permit: Permit,
    /// Our own messages must be answered before the client's may follow.
    pub(crate) preparing: bool,
    /// What goes before the client's first bytes sets what it relies on.
    pub(crate) carrying: bool,
    /// That is still to be sent.
    pub(crate) carry_due: bool,
    /// A server has taken the client's settings as they are, or each of them.
    pub(crate) is_proven: bool,
    /// It is known which settings of its login servers do not have by themselves.
    pub(crate) knows_own: bool,
    /// The client has not been heard since the server was granted.
    pub(crate) unheard: bool,
    /// What it has to do with channels.
    pub(crate) channels: Option<Box<Channels>>,
    /// The client has been told, in the batch under way, that its server is lost.
    pub(crate) has_told_loss: bool,
    /// When the client or the server last said something that counts for a limit of idleness.
    pub(crate) quiet_since: Moment,
}

impl Link {
    /// A link without a server.
    pub fn new(client: Client, policy: Arc<Policy>, statements: Arc<Statements>, now: Moment) -> Link {
        Link {
            client,
            server: None,
            policy,
            statements,
            state: None,
            permit: Permit::None,
            preparing: false,
            carrying: false,
            carry_due: false,
            is_proven: false,
            knows_own: false,
            unheard: false,
            channels: None,
            has_told_loss: false,
            quiet_since: now,
        }
    }

    /// The server, if it has one.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_deref()
    }

    /// The policy in force.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Replaces the policy after a reload. A mode that changed holds from the next server on.
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
    }

    /// The pool gives a server. `check`: it was idle for long and must show that it lives.
    #[inline]
    pub fn granted(&mut self, now: Moment, mut server: Box<Server>, check: bool, out: &mut Out) -> Granted {
        debug_assert!(self.server.is_none() && server.is_shareable());
        server.requested_at = now;
        if self.policy.servers_forget {
            server.prepared.clear();
            server.unnamed = None;
        }
        (server.query_since, server.transaction_since) = (Moment::NEVER, now);
        if check && let Some(text) = &self.policy.check_query {
            server.owe_query();
            out.to_server.make(|bytes| wire::encode::query(bytes, text));
        }
        if !self.knows_own {
            self.learn_own(&mut server);
        }
        server.may_remember |= !self.remembers_sequences();
        self.carrying = !self.policy.dedicated
            && !Arc::ptr_eq(&self.client.parameters, &server.parameters)
            && *self.client.parameters != *server.parameters;
        // What a server has taken before goes with the client's first bytes, and nobody waits for its answer.
        self.carry_due = self.carrying && server.ledger.is_empty() && self.may_go_together(&server);
        if self.carrying && !self.carry_due {
            self.carrying = self.carry_parameters(&mut server, out);
        }
        self.preparing = !server.ledger.is_empty();
        self.unheard = true;
        self.server = Some(server);
        if self.preparing { Granted::Preparing } else { Granted::Ready }
    }

    /// Whether what is under way sets what the client relies on, and does not only check the server.
    pub fn has_carried(&self) -> bool {
        self.carrying
    }

    /// Whether there is something of the client's own that a cancel request could stop.
    pub fn is_running(&self) -> bool {
        let front = self.server.as_ref().and_then(|server| server.ledger.front());
        !self.preparing && front.is_some_and(|entry| !entry.swallow)
    }

    /// Whether the client's bytes may be read now.
    #[inline]
    pub fn wants_client_bytes(&self) -> bool {
        self.server.is_some() && !self.preparing
    }

    /// Whether the client is in the middle of a message that already went to the server.
    pub fn is_mid_message(&self) -> bool {
        self.client.sending > 0
    }

    /// Whether the server is free for another client, or for nobody: asked after every read.
    #[inline]
    pub fn standing(&self) -> Standing {
        // Nearly every client that is asked about is waiting for an answer.
        match &self.server {
            Some(server) if server.ledger.is_empty() => {}
            _ => return Standing::Kept,
        }
        if self.release_due() {
            Standing::Free
        } else if self.is_spoilt() {
            Standing::Spoilt
        } else {
            Standing::Kept
        }
    }

    /// Whether the server is free for another client: never before `on_client` or `client_is_silent` was called,
    /// because it was granted for what the client has to say.
    #[inline]
    pub fn release_due(&self) -> bool {
        self.policy.mode != PoolMode::Session
            && !self.policy.dedicated
            && !self.unheard
            && self.client.sending == 0
            && self.state.as_ref().is_none_or(|state| state.is_free())
            && self.server.as_ref().is_some_and(|server| server.is_shareable())
    }

    /// The client may make state that keeps this server.
    pub fn permit(&mut self) {
        self.permit = Permit::Given;
    }

    /// Whether the client has, since the last time this was asked, made such state without [`Link::permit`].
    pub fn has_pinned_unasked(&mut self) -> bool {
        let is_news = self.permit == Permit::Taken
            || (self.permit == Permit::None && self.state.is_some() && self.pins().is_some());
        if is_news {
            self.permit = Permit::Given;
        }
        is_news
    }

    /// Why the client keeps its server between transactions, if it does.
    pub fn pins(&self) -> Option<&Pins> {
        self.state.as_ref()?.held.pins()
    }

    /// What the client is told when it loses a server that it kept.
    pub fn state_lost(&self) -> Option<Refusal> {
        let reasons: Vec<&str> = self.pins()?.reasons().map(|reason| reason.says().0).collect();
        let words = match &self.server.as_ref()?.broken {
            Some(Broken::Fatal(_, words)) => words.to_string(),
            _ => String::new(),
        };
        Some(Refusal::StateLost(reasons.join(", "), words))
    }

    /// Whether the client has asked nothing that is not answered, and has no transaction open.
    pub fn is_between_transactions(&self) -> bool {
        self.client.sending == 0 && self.server.as_ref().is_some_and(|server| server.is_shareable())
    }

    /// Whether all that the client has asked is answered.
    pub fn is_answered(&self) -> bool {
        self.server.as_ref().is_none_or(|server| !server.ledger.owes_ready())
    }

    /// Whether the client is done with its server, and nobody else may have it: it is to be taken and closed.
    #[inline]
    pub fn is_spoilt(&self) -> bool {
        self.policy.mode != PoolMode::Session
            && !self.policy.dedicated
            && self.client.sending == 0
            && self.server.as_ref().is_some_and(|server| {
                server.is_quiet() && server.status == TransactionStatus::Idle && server.ledger.is_spoilt()
            })
    }

    /// The client has nothing to say after all: a server that it was granted may go to another.
    pub fn client_is_silent(&mut self) {
        self.unheard = false;
    }

    /// Gives the server back. Only when `release_due`, or when the client is gone.
    #[inline]
    pub fn take_server(&mut self, now: Moment) -> Option<Box<Server>> {
        (self.preparing, self.carrying, self.carry_due) = (false, false, false);
        self.has_told_loss = false;
        self.quiet_since = now;
        let mut server = self.server.take()?;
        server.retry = Retry::No;
        server.may_remember |= !self.remembers_sequences();
        self.permit = Permit::None;
        if let Some(state) = self.state.take() {
            leave(&state, &mut server);
            self.state = state.without_server();
        }
        if self.client.take_new_set() {
            self.client.parameters = match self.client.parameters == self.client.login {
                true => Arc::clone(&self.client.login),
                false => self.statements.share(&self.client.parameters),
            };
        }
        // Sides that agree share one set, so that the next comparison is one of pointers.
        if !Arc::ptr_eq(&self.client.parameters, &server.parameters)
            && *self.client.parameters == *server.parameters
        {
            server.parameters = Arc::clone(&self.client.parameters);
        }
        Some(server)
    }

    /// Whether the client keeps a server that has nothing to do.
    fn is_idly_pinned(&self) -> bool {
        self.pins().is_some()
            && self
                .server
                .as_ref()
                .is_some_and(|server| server.query_since == Moment::NEVER && server.is_shareable())
    }

    /// The moment at which `on_timeout` has something to say, as things stand.
    #[inline]
    pub fn poll_timeout(&self) -> Moment {
        let policy = &self.policy;
        let Some(server) = &self.server else {
            return self.quiet_since.deadline(policy.client_idle_timeout);
        };
        if self.is_idly_pinned() {
            return self.quiet_since.deadline(policy.client_idle_timeout);
        }
        let query = if server.query_since == Moment::NEVER {
            Moment::NEVER
        } else {
            server.query_since.deadline(policy.query_timeout)
        };
        let in_transaction = server.status != TransactionStatus::Idle || server.ledger.is_unsynced();
        let idle = if in_transaction && server.ledger.is_empty() {
            self.quiet_since.deadline(policy.idle_transaction_timeout)
        } else {
            Moment::NEVER
        };
        let transaction = if in_transaction || server.query_since != Moment::NEVER {
            server.transaction_since.deadline(policy.transaction_timeout)
        } else {
            Moment::NEVER
        };
        query.min(idle).min(transaction)
    }

    /// What limit is passed, if one is.
    pub fn on_timeout(&self, now: Moment) -> Option<Refusal> {
        if now < self.poll_timeout() {
            return None;
        }
        let policy = &self.policy;
        let Some(server) = self.server.as_ref().filter(|_| !self.is_idly_pinned()) else {
            return Some(Refusal::ClientIdleTimeout);
        };
        if server.query_since != Moment::NEVER && server.query_since.deadline(policy.query_timeout) <= now {
            Some(Refusal::QueryTimeout)
        } else if server.ledger.is_empty()
            && self.quiet_since.deadline(policy.idle_transaction_timeout) <= now
        {
            Some(Refusal::IdleTransactionTimeout)
        } else {
            Some(Refusal::TransactionTimeout)
        }
    }
}

/// What the client has done to the session is for whoever cleans the server to know.
#[cold]
fn leave(state: &State, server: &mut Server) {
    server.left = server.left.max(state.leaves());
    if server.status != TransactionStatus::Idle
        && let Some(before) = state.levels.before()
    {
        // Its transaction will be rolled back.
        server.parameters = restored(&server.parameters, before);
    }
}
