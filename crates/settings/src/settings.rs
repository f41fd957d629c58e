//! All settings as one value: looked up, shown, and changed into a new value by SET.

use std::collections::{BTreeMap, BTreeSet};

use model::{Column, ColumnType, Table};

use crate::effective::Effective;
use crate::problem::{Place, Problem, ProblemKind};
use crate::table::{Change, Database, GENERAL, General, Key, Peer, Section, User};
use crate::topology::Topology;
use crate::url;

/// Everything that pgbouncer.ini says. It is never changed, only replaced: share it as `Arc<Settings>`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `[pgbouncer]`.
    pub general: General,
    /// `[databases]`, without `*`.
    pub databases: BTreeMap<String, Database>,
    /// `[users]`.
    pub users: BTreeMap<String, User>,
    /// `[peers]`, by number.
    pub peers: BTreeMap<u32, Peer>,
    /// The entry `*` of `[databases]`: the pattern for names that have no entry of their own.
    pub autodb: Option<Database>,
}

/// The entry that serves a database name.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The entry.
    pub database: &'a Database,
    /// It is the entry `*`.
    pub is_auto: bool,
}

impl Settings {
    /// Settings for `howdah postgres://user[:password]@host[:port]/db?sslmode=...`, with no file at all.
    ///
    /// One database entry of the URL's database name, in transaction mode, on `127.0.0.1:6432` only and with
    /// no Unix socket. Clients prove nothing (`auth_type = any`): whoever can open a connection on this
    /// machine's loopback works as the URL's user, whatever name he gives. The console is read-only.
    ///
    /// A missing database name means the user's, a missing host 127.0.0.1; a host may be a percent-encoded
    /// directory of a Unix socket. The parameters taken are those of libpq that have a meaning here: `host`,
    /// `port`, `user`, `password`, `dbname`, `sslmode`, `sslrootcert`, `sslcert`, `sslkey`,
    /// `connect_timeout`, `application_name`, `client_encoding`.
    pub fn from_url(text: &str) -> Result<Settings, Vec<Problem>> {
        url::settings(text)
    }

    /// The entry for a name that a client asks for: its own, else `*`.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        match self.databases.get(name) {
            Some(database) => Some(Found { database, is_auto: false }),
            None => self.autodb.as_ref().map(|database| Found { database, is_auto: true }),
        }
    }

    /// What holds for a database entry and a user, by precedence.
    pub fn effective<'a>(&'a self, database: &'a Database, user: &str) -> Effective<'a> {
        Effective { general: &self.general, database: Some(database), user: self.users.get(user) }
    }

    /// What holds for a user where no database is concerned.
    pub fn effective_user(&self, user: &str) -> Effective<'_> {
        Effective { general: &self.general, database: None, user: self.users.get(user) }
    }

    /// `SET key = value` in the console. As in PgBouncer, a key that needs a restart is passed over in
    /// silence, whatever the value.
    pub fn with(&self, key: &str, value: &str) -> Result<Settings, Box<Problem>> {
        let place = Place::nowhere("SET");
        let Some(found) = Key::find(GENERAL, key) else {
            let unknown = ProblemKind::unknown_key(Section::General, key);
            return Err(Box::new(place.problem(key, unknown)));
        };
        let mut changed = self.clone();
        if found.spec.change == Change::Restart || (found.set)(&mut changed.general, value) {
            return Ok(changed);
        }
        Err(Box::new(place.bad_value(&found.spec, value)))
    }

    /// The databases whose hosts are fetched, `*` among them.
    pub fn fetched(&mut self) -> impl Iterator<Item = (&str, &mut Database)> {
        let named = self.databases.iter_mut().map(|(name, database)| (name.as_str(), database));
        let all = named.chain(self.autodb.iter_mut().map(|database| ("*", database)));
        all.filter(|(_, database)| database.topology.is_some())
    }

    /// Every engine that hosts are fetched from.
    pub fn topologies(&self) -> BTreeSet<&Topology> {
        let all = self.databases.values().chain(&self.autodb);
        all.filter_map(|database| database.topology.as_ref()).collect()
    }

    /// `SHOW CONFIG`: key, value, default, changeable, by alphabet. Secrets are starred.
    pub fn show_config(&self) -> Table {
        let column = |name| Column { name, kind: ColumnType::Text };
        let mut rows: Vec<_> = GENERAL
            .iter()
            .map(|key| {
                let changeable = if key.spec.reloadable() { "yes" } else { "no" };
                vec![
                    Some(key.spec.name.to_owned()),
                    (key.show)(&self.general),
                    key.spec.default.map(str::to_owned),
                    Some(changeable.to_owned()),
                ]
            })
            .collect();
        rows.sort();
        Table { columns: ["key", "value", "default", "changeable"].map(column).to_vec(), rows }
    }

    /// The value of a key of `[pgbouncer]` as SHOW CONFIG prints it; `None` for no such key, `Some(None)` for
    /// NULL.
    pub fn show(&self, key: &str) -> Option<Option<String>> {
        Key::find(GENERAL, key).map(|found| (found.show)(&self.general))
    }
}
