//! Settings turned into the plain values that a pool and a client's session are given.

use std::sync::Arc;
use std::time::Duration;

use model::{PoolId, PoolMode, StateMode};
use settings::{Compat, Effective, General, ReadSplit};

use crate::hub::Hub;

/// What the settings demand of the sessions of one login user in one pool. Shared by all of them, never changed:
/// after a reload, [`Hub::policy`] answers another one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientPolicy {
    /// When the server goes back.
    pub pool_mode: PoolMode,
    /// The longest wait for a server; zero is for ever.
    pub query_wait_timeout: Duration,
    /// After how long a waiting client is told so; zero is never.
    pub query_wait_notify: Duration,
    /// The longest query; zero is any.
    pub query_timeout: Duration,
    /// The longest pause within a transaction; zero is any.
    pub idle_transaction_timeout: Duration,
    /// The longest transaction; zero is any.
    pub transaction_timeout: Duration,
    /// The longest silence of a client without a server; zero is any.
    pub client_idle_timeout: Duration,
    /// Named statements that a server keeps; zero passes names through.
    pub max_prepared_statements: u32,
    /// The longest statement that is kept, in bytes.
    pub prepared_statement_size_max: u32,
    /// Misuse of a statement's name closes the connection, as it does in PgBouncer.
    pub is_compat_pgbouncer: bool,
    /// Run when a client leaves a server; empty for none.
    pub server_reset_query: String,
    /// In every mode, not in session mode alone.
    pub server_reset_query_always: bool,
    /// Run on a server that was idle for long: `None` is no check, empty text an empty query.
    pub server_check_query: Option<String>,
    /// Sessions end with their transaction when their server is to be closed.
    pub server_fast_close: bool,
    /// Another pooler stands in front of its servers: they keep nothing beyond a transaction.
    pub servers_forget: bool,
    /// Its servers are those of a cluster: clients outlive them where they can.
    pub rides_out: bool,
    /// Its reads may go to standbys.
    pub splits: bool,
    /// Simple queries are refused.
    pub disable_pqexec: bool,
    /// Parameters that are kept for each client besides the five that always are.
    pub track_extra_parameters: Vec<String>,
    /// Startup parameters that are dropped without a word.
    pub ignore_startup_parameters: Vec<String>,
    /// The client's address is added to its application_name.
    pub application_name_add_host: bool,
    /// Told to a client at its login; empty for nothing.
    pub login_notify_message: String,
    /// The longest message, in bytes.
    pub max_packet_size: u32,
    /// What becomes of session state.
    pub session_state: StateMode,
    /// Functions besides PostgreSQL's that make session state.
    pub state_functions: Vec<String>,
    /// A client is told when it keeps its server.
    pub notify_pins: bool,
    /// Somebody else listens for clients.
    pub listen_fanout: bool,
}

impl ClientPolicy {
    /// `server` is what holds for the pool and its server user, `login` what holds for the login user.
    fn new(general: &General, server: &Effective<'_>, login: &Effective<'_>) -> ClientPolicy {
        let servers_forget = server.database.is_some_and(|database| !database.server_keeps_session);
        ClientPolicy {
            pool_mode: server.pool_mode(),
            query_wait_timeout: login.query_wait_timeout(),
            query_wait_notify: general.query_wait_notify,
            query_timeout: server.query_timeout(),
            idle_transaction_timeout: server.idle_transaction_timeout(),
            transaction_timeout: server.transaction_timeout(),
            client_idle_timeout: login.client_idle_timeout(),
            max_prepared_statements: general.max_prepared_statements,
            prepared_statement_size_max: general.prepared_statement_size_max,
            is_compat_pgbouncer: general.compat == Compat::PgBouncer,
            server_reset_query: general.server_reset_query.clone(),
            server_reset_query_always: general.server_reset_query_always,
            server_check_query: check_query(general),
            server_fast_close: general.server_fast_close,
            servers_forget,
            // What a pooler says is not what a server says of what it has done.
            rides_out: !servers_forget
                && server.database.is_some_and(|database| database.target_session_attrs.is_some()),
            splits: server.database.is_some_and(|database| database.read_write_split != ReadSplit::Off)
                && !matches!(server.pool_mode(), PoolMode::Session | PoolMode::Passthrough),
            disable_pqexec: general.disable_pqexec,
            track_extra_parameters: general.track_extra_parameters.clone(),
            ignore_startup_parameters: general.ignore_startup_parameters.clone(),
            application_name_add_host: general.application_name_add_host,
            login_notify_message: general.login_notify_message.clone(),
            max_packet_size: general.max_packet_size,
            session_state: if servers_forget { StateMode::Refuse } else { login.session_state() },
            state_functions: general.state_functions.clone(),
            notify_pins: general.notify_pins,
            listen_fanout: general.listen_fanout && !servers_forget,
        }
    }
}

/// The limits of a pool.
pub(crate) fn pool_limits(effective: &Effective<'_>) -> pool::Limits {
    let general = effective.general;
    pool::Limits {
        size: effective.pool_size().unwrap_or(0),
        // Nobody but a client can log in there.
        min_size: match effective.pool_mode() {
            PoolMode::Passthrough => 0,
            _ => effective.min_pool_size(),
        },
        reserve_size: effective.reserve_pool_size(),
        reserve_timeout: general.reserve_pool_timeout,
        lifetime: effective.server_lifetime(),
        idle_timeout: general.server_idle_timeout,
        check_delay: check_query(general).map(|_| general.server_check_delay),
        login_retry: general.server_login_retry,
        failover_timeout: effective.failover_timeout(),
        round_robin: general.server_round_robin,
        pinned_max: effective.max_pinned().unwrap_or(0),
    }
}

/// `<empty>` is the word for an empty query, because an empty setting means none.
fn check_query(general: &General) -> Option<String> {
    match general.server_check_query.as_str() {
        "" => None,
        "<empty>" => Some(String::new()),
        query => Some(query.to_owned()),
    }
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// What holds now for sessions of a login user in a pool; `None` if the pool is gone.
    pub fn policy(&mut self, pool: PoolId, login_user: &str) -> Option<Arc<ClientPolicy>> {
        let key = &self.pools.get(&pool)?.cell.key;
        if let Some(policy) = self.policies.get(&(pool, login_user.to_owned())) {
            return Some(Arc::clone(policy));
        }
        let settings = Arc::clone(&self.settings);
        let server = self.effective(&settings, key);
        let login = Effective { user: settings.users.get(login_user), ..server };
        let policy = Arc::new(ClientPolicy::new(&settings.general, &server, &login));
        self.policies.insert((pool, login_user.to_owned()), Arc::clone(&policy));
        Some(policy)
    }
}
