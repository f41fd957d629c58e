//! What a client is let in to: the console, or a pool and the rules of its session there.

use std::sync::Arc;
use std::time::Duration;

use client::login::{Carried, UnknownParameter};
use hub::ClientPolicy;
use link::Policy;
use model::Refusal;

use crate::home::Home;

/// What a client of a pool lives by.
#[derive(Clone)]
pub struct Terms {
    /// For its link.
    pub policy: Arc<Policy>,
    /// How long it may wait for a server.
    pub query_wait_timeout: Duration,
    /// When it is told that it waits.
    pub query_wait_notify: Duration,
    /// Its protocol has cancel keys of more than four bytes.
    pub takes_long_keys: bool,
}

impl Terms {
    /// Settings in, terms out.
    pub fn of(policy: &ClientPolicy, is_dedicated: bool, takes_long_keys: bool) -> Terms {
        Terms {
            policy: Arc::new(link_policy(policy, is_dedicated)),
            query_wait_timeout: policy.query_wait_timeout,
            query_wait_notify: policy.query_wait_notify,
            takes_long_keys,
        }
    }
}

/// A client that may come in.
pub enum Entry {
    /// Into the console.
    Console(console::Role),
    /// Into a pool.
    Pool {
        /// Which.
        home: Arc<Home>,
        /// By what rules.
        policy: Arc<ClientPolicy>,
        /// The same for its link.
        terms: Terms,
        /// It wants a server of its own.
        is_replication: bool,
    },
}

impl Entry {
    /// The pool.
    pub fn home(&self) -> Option<Arc<Home>> {
        match self {
            Entry::Console(_) => None,
            Entry::Pool { home, .. } => Some(Arc::clone(home)),
        }
    }

    /// The rules of its session.
    pub fn terms(&self) -> Option<Terms> {
        match self {
            Entry::Console(_) => None,
            Entry::Pool { terms, .. } => Some(terms.clone()),
        }
    }

    /// Whether it wants a server of its own.
    pub fn is_replication(&self) -> bool {
        matches!(self, Entry::Pool { is_replication: true, .. })
    }

    /// What becomes of the parameters of its startup message. The console takes any and heeds none.
    ///
    /// # Errors
    /// A parameter that nobody would apply.
    pub fn settle(&self, requested: client::login::Requested) -> Result<Carried, Refusal> {
        let (ignored, tracked, unknown) = match self {
            Entry::Console(_) => (Vec::new(), Vec::new(), UnknownParameter::Carry),
            Entry::Pool { policy, .. } => {
                let unknown = if policy.is_compat_pgbouncer {
                    UnknownParameter::Refuse
                } else {
                    UnknownParameter::Carry
                };
                (policy.ignore_startup_parameters.clone(), tracked(policy), unknown)
            }
        };
        requested.settle(&client::login::Policy { ignored: &ignored, tracked: &tracked, unknown })
    }
}

/// Parameters that every client has of its own, as in PgBouncer.
const TRACKED: [&str; 5] =
    ["DateStyle", "client_encoding", "TimeZone", "standard_conforming_strings", "application_name"];

fn tracked(policy: &ClientPolicy) -> Vec<String> {
    let extra = policy.track_extra_parameters.iter().cloned();
    TRACKED.iter().map(|&name| name.to_owned()).chain(extra).collect()
}

/// Settings in, a link's policy out.
pub fn link_policy(policy: &ClientPolicy, is_dedicated: bool) -> Policy {
    Policy {
        mode: policy.pool_mode,
        prepared_max: policy.max_prepared_statements as usize,
        statement_bytes_max: u64::from(policy.prepared_statement_size_max),
        misuse_closes: policy.is_compat_pgbouncer,
        disable_pqexec: policy.disable_pqexec,
        dedicated: is_dedicated,
        reset_query: policy.server_reset_query.as_bytes().into(),
        reset_always: policy.server_reset_query_always,
        check_query: policy.server_check_query.as_ref().map(|text| text.as_bytes().into()),
        query_timeout: policy.query_timeout,
        idle_transaction_timeout: policy.idle_transaction_timeout,
        transaction_timeout: policy.transaction_timeout,
        client_idle_timeout: policy.client_idle_timeout,
        ..Policy::default()
    }
}
