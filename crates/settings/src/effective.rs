//! Which of several settings holds: the user's goes before the database's, and that before the general one.
//!
//! Client timeouts are asked for the user who logged in, query and transaction timeouts for the server's
//! user.

use std::time::Duration;

use model::{PoolMode, StateMode};

use crate::share::Share;
use crate::table::{Database, General, User};
use crate::words::LoadBalance;

/// The three places a setting can stand, most particular last.
#[derive(Clone, Copy, Debug)]
pub struct Effective<'a> {
    /// `[pgbouncer]`.
    pub general: &'a General,
    /// The entry in `[databases]`.
    pub database: Option<&'a Database>,
    /// The entry in `[users]`.
    pub user: Option<&'a User>,
}

impl<'a> Effective<'a> {
    /// User, then database, then general.
    pub fn pool_mode(&self) -> PoolMode {
        self.of_user(|user| user.pool_mode)
            .or(self.of_database(|database| database.pool_mode))
            .unwrap_or(self.general.pool_mode)
    }

    /// User, then database, then `default_pool_size`; `None` is no limit.
    pub fn pool_size(&self) -> Option<u32> {
        limit(
            self.of_user(|user| user.pool_size)
                .or(self.of_database(|database| database.pool_size))
                .unwrap_or(self.general.default_pool_size),
        )
    }

    /// User, then database, then general.
    pub fn reserve_pool_size(&self) -> u32 {
        self.of_user(|user| user.reserve_pool_size)
            .or(self.of_database(|database| database.reserve_pool_size))
            .unwrap_or(self.general.reserve_pool_size)
    }

    /// User, then database, then general.
    pub fn session_state(&self) -> StateMode {
        self.of_user(|user| user.session_state)
            .or(self.of_database(|database| database.session_state))
            .unwrap_or(self.general.session_state)
    }

    /// User, then database, then general, of the pool's size; `None` is no limit.
    pub fn max_pinned(&self) -> Option<u32> {
        let share: Share = self
            .of_user(|user| user.max_pinned)
            .or(self.of_database(|database| database.max_pinned))
            .unwrap_or(self.general.max_pinned);
        share.of(self.pool_size())
    }

    /// Database, then general; never more than the pool's size.
    pub fn min_pool_size(&self) -> u32 {
        let wanted =
            self.of_database(|database| database.min_pool_size).unwrap_or(self.general.min_pool_size);
        self.pool_size().map_or(wanted, |size| wanted.min(size))
    }

    /// Database if above 0, else general; `None` is no limit.
    pub fn max_db_connections(&self) -> Option<u32> {
        let own = self.of_database(|database| database.max_db_connections);
        own.and_then(limit).or(limit(self.general.max_db_connections))
    }

    /// Database if above 0, else general; `None` is no limit.
    pub fn max_db_client_connections(&self) -> Option<u32> {
        let own = self.of_database(|database| database.max_db_client_connections);
        own.and_then(limit).or(limit(self.general.max_db_client_connections))
    }

    /// User if above 0, else general; `None` is no limit.
    pub fn max_user_connections(&self) -> Option<u32> {
        let own = self.of_user(|user| user.max_user_connections);
        own.and_then(limit).or(limit(self.general.max_user_connections))
    }

    /// User if above 0, else general; `None` is no limit.
    pub fn max_user_client_connections(&self) -> Option<u32> {
        let own = self.of_user(|user| user.max_user_client_connections);
        own.and_then(limit).or(limit(self.general.max_user_client_connections))
    }

    /// User, then database, then general; zero is off wherever it stands.
    pub fn query_wait_timeout(&self) -> Duration {
        self.of_user(|user| user.query_wait_timeout)
            .or(self.of_database(|database| database.query_wait_timeout))
            .unwrap_or(self.general.query_wait_timeout)
    }

    /// User if above 0, else general: a user cannot switch it off.
    pub fn query_timeout(&self) -> Duration {
        self.user_time(|user| user.query_timeout, self.general.query_timeout)
    }

    /// User if above 0, else general.
    pub fn idle_transaction_timeout(&self) -> Duration {
        self.user_time(|user| user.idle_transaction_timeout, self.general.idle_transaction_timeout)
    }

    /// User if above 0, else general.
    pub fn transaction_timeout(&self) -> Duration {
        self.user_time(|user| user.transaction_timeout, self.general.transaction_timeout)
    }

    /// User if above 0, else general.
    pub fn client_idle_timeout(&self) -> Duration {
        self.user_time(|user| user.client_idle_timeout, self.general.client_idle_timeout)
    }

    /// Database if above 0, else general; zero is one use only.
    pub fn server_lifetime(&self) -> Duration {
        self.of_database(|database| database.server_lifetime)
            .filter(|lifetime| !lifetime.is_zero())
            .unwrap_or(self.general.server_lifetime)
    }

    /// The database's; there is no general one.
    pub fn load_balance_hosts(&self) -> LoadBalance {
        self.database.map_or(LoadBalance::RoundRobin, |database| database.load_balance_hosts)
    }

    /// Database, then general; zero is for ever.
    pub fn failover_timeout(&self) -> Duration {
        self.of_database(|database| database.failover_timeout).unwrap_or(self.general.failover_timeout)
    }

    /// The role that the monitor logs in as: the database's, the general one, or else whoever is known to have a
    /// password there.
    pub fn monitor_user(&self) -> Option<&'a str> {
        let own = self.database.and_then(|own| own.monitor_user.as_deref());
        let forced = self.database.and_then(|own| own.user.as_deref());
        own.or(self.general.monitor_user.as_deref()).or(forced).or(self.auth_user())
    }

    /// The database that the monitor connects to, if it is said.
    pub fn monitor_dbname(&self) -> Option<&'a str> {
        let own = self.database.and_then(|own| own.monitor_dbname.as_deref());
        own.or(self.general.monitor_dbname.as_deref())
    }

    /// Database, then general.
    pub fn auth_user(&self) -> Option<&'a str> {
        self.database.and_then(|own| own.auth_user.as_deref()).or(self.general.auth_user.as_deref())
    }

    /// Database, then general.
    pub fn auth_query(&self) -> &'a str {
        self.database.and_then(|own| own.auth_query.as_deref()).unwrap_or(&self.general.auth_query)
    }

    /// Database, then general; `None` is the database that the client asked for.
    pub fn auth_dbname(&self) -> Option<&'a str> {
        self.database.and_then(|own| own.auth_dbname.as_deref()).or(self.general.auth_dbname.as_deref())
    }

    /// The user that logs in to the server: the database's forced one, else the client's.
    pub fn server_user<'b>(&self, client_user: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.database.and_then(|own| own.user.as_deref()).unwrap_or(client_user)
    }

    /// The database's name on the server, for the name that the client asked for.
    pub fn server_dbname<'b>(&self, asked: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.database.and_then(|own| own.dbname.as_deref()).unwrap_or(asked)
    }

    fn of_user<T>(&self, field: impl Fn(&User) -> Option<T>) -> Option<T> {
        self.user.and_then(field)
    }

    fn of_database<T>(&self, field: impl Fn(&Database) -> Option<T>) -> Option<T> {
        self.database.and_then(field)
    }

    fn user_time(&self, field: impl Fn(&User) -> Option<Duration>, general: Duration) -> Duration {
        self.of_user(field).filter(|time| !time.is_zero()).unwrap_or(general)
    }
}

/// In the file, a limit of 0 is none.
fn limit(count: u32) -> Option<u32> {
    (count > 0).then_some(count)
}
