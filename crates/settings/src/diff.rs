//! What a reload changes: which values are kept until a restart, which databases must reconnect.
//!
//! Decides by the table's [`Change`] alone; acts on nothing.

use std::collections::BTreeMap;

use crate::settings::Settings;
use crate::table::{Change, DATABASE, Database, GENERAL};
use crate::words::Compat;

/// The settings that hold after a reload, and how they differ from those before it.
#[derive(Clone, Debug)]
pub struct Reloaded {
    /// What holds now.
    pub settings: Settings,
    /// The difference.
    pub changes: Changes,
}

/// How settings differ. The entry `*` is listed under that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys of `[pgbouncer]` with a new value in force.
    pub keys: Vec<&'static str>,
    /// Keys of `[pgbouncer]` whose new value waits for a restart.
    pub kept: Vec<&'static str>,
    /// Databases that were not there.
    pub databases_added: Vec<String>,
    /// Databases that are gone: close their clients and servers.
    pub databases_removed: Vec<String>,
    /// Databases whose entry differs in any way, the dirty ones among them.
    pub databases_changed: Vec<String>,
    /// Databases whose servers are to be closed as they come free. After a change of the TLS settings to
    /// servers that is every database.
    pub databases_dirty: Vec<String>,
    /// Users added, removed or changed.
    pub users: Vec<String>,
    /// Peers added, removed or changed.
    pub peers: Vec<u32>,
    /// A `client_tls_` key changed.
    pub client_tls: bool,
    /// A `server_tls_` key changed.
    pub server_tls: bool,
}

impl Changes {
    /// Nothing that is in force changed.
    pub fn is_empty(&self) -> bool {
        *self == Changes { kept: self.kept.clone(), ..Changes::default() }
    }

    /// The difference between two settings that are both in force in turn, as for SET.
    pub fn between(old: &Settings, new: &Settings) -> Changes {
        let mut changes = Changes {
            keys: GENERAL
                .iter()
                .filter(|key| !(key.same)(&old.general, &new.general))
                .map(|key| key.spec.name)
                .collect(),
            users: differing(&old.users, &new.users),
            peers: differing(&old.peers, &new.peers),
            ..Changes::default()
        };
        let starts = |prefix: &str| changes.keys.iter().any(|key| key.starts_with(prefix));
        (changes.client_tls, changes.server_tls) = (starts("client_tls"), starts("server_tls"));
        let (before, after) = (databases(old), databases(new));
        for name in differing(&before, &after) {
            match (before.get(&name), after.get(&name)) {
                (None, _) => changes.databases_added.push(name),
                (_, None) => changes.databases_removed.push(name),
                (Some(one), Some(other)) => {
                    if is_dirty(one, other) {
                        changes.databases_dirty.push(name.clone());
                    }
                    changes.databases_changed.push(name);
                }
            }
        }
        if changes.server_tls {
            changes.databases_dirty = before.into_keys().filter(|name| after.contains_key(name)).collect();
        }
        changes
    }
}

/// Puts newly read settings in force: keys that need a restart keep their old value. Under
/// `compat = pgbouncer`, keys that have no default and are no longer in the file keep theirs too.
pub fn reload(old: &Settings, mut new: Settings) -> Reloaded {
    let mut kept = Vec::new();
    for key in GENERAL {
        if (key.same)(&old.general, &new.general) {
            continue;
        }
        if key.spec.change == Change::Restart {
            kept.push(key.spec.name);
            (key.copy)(&mut new.general, &old.general);
        }
        let is_gone = key.spec.default.is_none() && (key.show)(&new.general).is_none();
        if is_gone && new.general.compat == Compat::PgBouncer {
            (key.copy)(&mut new.general, &old.general);
        }
    }
    let changes = Changes { kept, ..Changes::between(old, &new) };
    Reloaded { settings: new, changes }
}

/// A difference that the servers connected so far do not show. Where hosts are monitored, it is known of each server
/// which one it is on: those on hosts that stay can stay.
fn is_dirty(one: &Database, other: &Database) -> bool {
    let is_monitored = one.target_session_attrs.is_some() && other.target_session_attrs.is_some();
    let counts = |name: &str| !(is_monitored && ["host", "port"].contains(&name));
    let changes = |key: &&crate::table::Key<Database>| key.spec.change == Change::Reconnect;
    DATABASE.iter().filter(changes).any(|key| counts(key.spec.name) && !(key.same)(one, other))
}

fn databases(settings: &Settings) -> BTreeMap<String, &Database> {
    let named = settings.databases.iter().map(|(name, database)| (name.clone(), database));
    named.chain(settings.autodb.iter().map(|database| ("*".to_owned(), database))).collect()
}

/// The keys whose values are not the same in both, in order.
fn differing<K: Ord + Clone, V: PartialEq>(one: &BTreeMap<K, V>, other: &BTreeMap<K, V>) -> Vec<K> {
    let mut keys: Vec<K> =
        one.iter().filter(|(key, value)| other.get(key) != Some(value)).map(first).collect();
    keys.extend(other.iter().filter(|(key, _)| !one.contains_key(key)).map(first));
    keys.sort();
    keys
}

fn first<K: Clone, V>(pair: (&K, &V)) -> K {
    pair.0.clone()
}
