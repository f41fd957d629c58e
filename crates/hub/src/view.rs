//! What the console shows of databases, pools and users.

use console::{DatabaseRow, PoolRow, UserRow};
use model::Moment;
use settings::{Database, Effective};

use crate::cell::PoolKey;
use crate::entry::Entry;
use crate::hub::{Hub, Record};

impl<C: Clone, S: Clone> Hub<C, S> {
    /// `SHOW POOLS`, without the console's own.
    pub fn pool_rows(&self, now: Moment) -> Vec<PoolRow> {
        let mut records: Vec<_> = self.pools.values().filter(|record| !record.is_orphan).collect();
        records.sort_by(|one, other| one.cell.key.cmp(&other.cell.key));
        records.into_iter().map(|record| self.pool_row(now, record)).collect()
    }

    /// `SHOW DATABASES`, without the console's own.
    pub fn database_rows(&self) -> Vec<DatabaseRow> {
        let rows = self.entries.iter();
        rows.filter_map(|(name, entry)| {
            Some(self.database_row(name, entry, self.database(&self.settings, name)?))
        })
        .collect()
    }

    /// `SHOW USERS`: all that are configured, found, or in use.
    pub fn user_rows(&self) -> Vec<UserRow> {
        let listed = self.secrets.userlist().users.keys();
        let configured = listed.chain(self.settings.users.keys()).map(String::as_str);
        let mut names: Vec<&str> = configured.chain(self.users.keys().map(|name| &**name)).collect();
        names.sort();
        names.dedup();
        names.into_iter().map(|name| self.user_row(name)).collect()
    }

    fn pool_row(&self, now: Moment, record: &Record<C, S>) -> PoolRow {
        let key = &record.cell.key;
        let effective = self.effective(&self.settings, key);
        let counts = record.cell.lock().counts(now);
        PoolRow {
            database: key.database.clone(),
            user: key.user.clone(),
            // A lookup of a user waits without being a client.
            clients_active: u64::from(record.clients.saturating_sub(counts.waiting)),
            clients_waiting: u64::from(counts.waiting),
            clients_active_cancel: u64::from(counts.active_cancel),
            clients_waiting_cancel: 0,
            servers_active: u64::from(counts.active),
            servers_active_cancel: u64::from(counts.active_cancel),
            servers_being_canceled: u64::from(counts.being_canceled),
            servers_idle: u64::from(counts.idle),
            servers_used: u64::from(counts.used),
            servers_tested: u64::from(counts.tested),
            servers_login: u64::from(counts.login),
            wait_max: counts.maxwait,
            pool_mode: effective.pool_mode(),
            load_balance_hosts: effective.database.and_then(load_balance),
            servers_pinned: u64::from(counts.pinned),
            standby: key.reader.as_ref().map(ToString::to_string),
        }
    }

    fn database_row(&self, name: &str, entry: &Entry, database: &Database) -> DatabaseRow {
        let key = PoolKey {
            database: name.to_owned(),
            user: database.user.clone().unwrap_or_default(),
            reader: None,
        };
        // The row is about the entry, not about one of its users.
        let effective = Effective { user: None, ..self.effective(&self.settings, &key) };
        let hosts: Vec<String> = database.hosts.iter().map(ToString::to_string).collect();
        let number = |limit: Option<u32>| u64::from(limit.unwrap_or(0));
        DatabaseRow {
            name: name.to_owned(),
            host: (!hosts.is_empty()).then(|| hosts.join(",")),
            port: database.ports.of(0),
            database: database.dbname.clone().unwrap_or_else(|| name.to_owned()),
            force_user: database.user.clone(),
            pool_size: number(effective.pool_size()),
            min_pool_size: u64::from(effective.min_pool_size()),
            reserve_pool_size: u64::from(effective.reserve_pool_size()),
            server_lifetime: effective.server_lifetime(),
            pool_mode: database.pool_mode,
            load_balance_hosts: load_balance(database),
            servers_max: number(effective.max_db_connections()),
            servers: u64::from(entry.servers),
            clients_max: number(effective.max_db_client_connections()),
            clients: u64::from(entry.clients),
            paused: entry.is_paused,
            disabled: entry.is_disabled,
        }
    }

    fn user_row(&self, name: &str) -> UserRow {
        let own = self.settings.users.get(name);
        let effective = self.settings.effective_user(name);
        let counts = self.user_counts(name);
        let number = |limit: Option<u32>| u64::from(limit.unwrap_or(0));
        UserRow {
            name: name.to_owned(),
            pool_size: own.and_then(|own| own.pool_size).map(u64::from),
            reserve_pool_size: own.and_then(|own| own.reserve_pool_size).map(u64::from),
            pool_mode: own.and_then(|own| own.pool_mode),
            servers_max: number(effective.max_user_connections()),
            servers: u64::from(counts.servers),
            clients_max: number(effective.max_user_client_connections()),
            clients: u64::from(counts.clients),
        }
    }
}

fn load_balance(database: &Database) -> Option<&'static str> {
    (database.hosts.len() > 1).then(|| database.load_balance_hosts.name())
}
