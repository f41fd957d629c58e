//! What a client is let in to: the console, or a pool and the rules of its session there.

use std::sync::Arc;

use client::login::{Carried, UnknownParameter};
use hub::ClientPolicy;
use link::{Functions, Policy};
use model::{PoolMode, Refusal};

use crate::home::Home;

/// A client that may come in.
pub enum Entry {
    /// Into the console.
    Console(console::Role),
    /// Into a pool.
    Pool(Place),
}

/// A client's place in a pool.
pub struct Place {
    /// Which.
    pub home: Arc<Home>,
    /// By what rules.
    pub policy: Arc<ClientPolicy>,
    /// It wants a server of its own.
    pub is_replication: bool,
    /// It has a server of its own, to which it logs in itself.
    pub is_passthrough: bool,
}

impl Place {
    /// Whether it shares no server with anybody.
    pub fn is_dedicated(&self) -> bool {
        self.is_replication || self.is_passthrough
    }
}

impl Entry {
    /// What becomes of the parameters of its startup message. The console takes any and heeds none.
    ///
    /// # Errors
    /// A parameter that nobody would apply.
    pub fn settle(&self, requested: client::login::Requested) -> Result<Carried, Refusal> {
        let Entry::Pool(Place { policy, .. }) = self else {
            let unknown = UnknownParameter::Carry;
            return requested.settle(&client::login::Policy { ignored: &[], tracked: &[], unknown });
        };
        // What no pooler carries between us and the server would be lost on the way.
        let unknown = match policy.is_compat_pgbouncer || policy.servers_forget {
            true => UnknownParameter::Refuse,
            false => UnknownParameter::Carry,
        };
        let tracked = tracked(policy);
        let ignored = &policy.ignore_startup_parameters;
        requested.settle(&client::login::Policy { ignored, tracked: &tracked, unknown })
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
        mode: match policy.pool_mode {
            // Of who came before this was the mode.
            PoolMode::Passthrough => PoolMode::Session,
            mode => mode,
        },
        prepared_max: policy.max_prepared_statements as usize,
        statement_bytes_max: u64::from(policy.prepared_statement_size_max),
        misuse_closes: policy.is_compat_pgbouncer,
        rides_out: policy.rides_out && !is_dedicated,
        splits: policy.splits && !is_dedicated,
        disable_pqexec: policy.disable_pqexec,
        dedicated: is_dedicated,
        servers_forget: policy.servers_forget && !is_dedicated,
        reset_query: policy.server_reset_query.as_bytes().into(),
        reset_always: policy.server_reset_query_always,
        check_query: policy.server_check_query.as_ref().map(|text| text.as_bytes().into()),
        state: policy.session_state,
        functions: Arc::new(Functions::with(policy.state_functions.iter().map(String::as_str))),
        notify_pins: policy.notify_pins,
        listen_fanout: policy.listen_fanout && !is_dedicated,
        query_timeout: policy.query_timeout,
        idle_transaction_timeout: policy.idle_transaction_timeout,
        transaction_timeout: policy.transaction_timeout,
        client_idle_timeout: policy.client_idle_timeout,
        query_wait_timeout: policy.query_wait_timeout,
        query_wait_notify: policy.query_wait_notify,
        ..Policy::default()
    }
}
