//! The hub: what it holds, and how the parts are found. What it decides stands in the other files.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::hba::Hba;
use auth::ident::IdentMaps;
use auth::scram::MockKey;
use auth::userlist::Userlist;
use model::{ClientId, Moment, PoolId};
use pool::Pool;
use settings::{Effective, Settings};

use crate::admission::Admission;
use crate::cell::{PoolCell, PoolKey};
use crate::clusters::{Clusters, Place};
use crate::drain::State;
use crate::entry::Entry;
use crate::policy::{ClientPolicy, pool_limits};
use crate::residents::Residents;
use crate::secrets::Secrets;
use crate::topology::Topologies;
use crate::vacancy::Vacancy;
use crate::work::Work;

/// The contents of all files that the settings name, read and parsed.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// pgbouncer.ini.
    pub settings: Settings,
    /// `auth_file`.
    pub userlist: Userlist,
    /// `auth_hba_file`.
    pub hba: Hba,
    /// `auth_ident_file`.
    pub idents: IdentMaps,
}

/// What all clients share. `C` and `S` are the caller's handles of a client and of a server.
pub struct Hub<C, S> {
    pub(crate) settings: Arc<Settings>,
    pub(crate) hba: Hba,
    pub(crate) idents: IdentMaps,
    pub(crate) secrets: Secrets,
    /// Those of the settings, and those made from `*`.
    pub(crate) entries: BTreeMap<String, Entry>,
    pub(crate) users: BTreeMap<Arc<str>, UserCounts>,
    pub(crate) pools: BTreeMap<PoolId, Record<C, S>>,
    pub(crate) policies: BTreeMap<(PoolId, String), Arc<ClientPolicy>>,
    pub(crate) clients: Residents<C>,
    pub(crate) admission: Admission,
    pub(crate) clusters: Clusters,
    pub(crate) topologies: Topologies,
    pub(crate) state: State,
    pub(crate) vacancies: Vec<Vacancy>,
    pub(crate) pool_id_last: u32,
}

/// How many of the user's connections there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserCounts {
    /// Clients that logged in as it.
    pub(crate) clients: u32,
    /// Servers that we log in to as it.
    pub(crate) servers: u32,
}

/// A pool and what is counted about it.
pub(crate) struct Record<C, S> {
    pub(crate) cell: Arc<PoolCell<C, S>>,
    pub(crate) clients: u32,
    pub(crate) servers: u32,
    /// Since when it has no client.
    pub(crate) unused_since: Moment,
    /// A limit of its database or user keeps it from opening a server.
    pub(crate) is_blocked: bool,
    /// Its database entry is gone: it ends with its last server and client.
    pub(crate) is_orphan: bool,
    /// Its user's name was only said, and no server has let it in yet: it ends with its last server and client, so that
    /// names which come from strangers are not kept.
    pub(crate) is_unproved: bool,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// A hub with the databases of the settings and no pool. `mock_key` is made of 32 random bytes.
    pub fn new(inputs: Inputs, mock_key: MockKey) -> Hub<C, S> {
        let entries = inputs.settings.databases.keys().map(|name| (name.clone(), Entry::default())).collect();
        Hub {
            settings: Arc::new(inputs.settings),
            hba: inputs.hba,
            idents: inputs.idents,
            secrets: Secrets::new(inputs.userlist, mock_key),
            entries,
            users: BTreeMap::new(),
            pools: BTreeMap::new(),
            policies: BTreeMap::new(),
            clients: Residents::default(),
            admission: Admission::default(),
            clusters: Clusters::default(),
            topologies: Topologies::default(),
            state: State::default(),
            vacancies: Vec::new(),
            pool_id_last: 0,
        }
    }

    /// Makes the pools that exist without any client: those of databases with a forced user and a `min_pool_size`.
    pub fn start(&mut self, now: Moment) -> Work<C, S> {
        let mut work = Work::none();
        self.renew_clusters(now, &mut work);
        self.mark_members(now, &mut work);
        let settings = Arc::clone(&self.settings);
        for (name, database) in &settings.databases {
            let Some(user) = &database.user else { continue };
            if settings.effective(database, user).min_pool_size() > 0 {
                let cell = self.pool_of(now, name, user);
                let open = cell.lock().keep_min(now, true);
                work.open_all(&cell, open);
            }
        }
        work
    }

    /// The settings in force.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// A pool by its number.
    pub fn pool(&self, id: PoolId) -> Option<&Arc<PoolCell<C, S>>> {
        self.pools.get(&id).map(|record| &record.cell)
    }

    /// All pools.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<PoolCell<C, S>>> {
        self.pools.values().map(|record| &record.cell)
    }

    /// The handle of a client that has entered: for KILL_CLIENT.
    pub fn client(&self, id: ClientId) -> Option<&C> {
        self.clients.get(id).map(|resident| &resident.handle)
    }

    /// All clients that have entered.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, &C)> {
        self.clients.iter().map(|resident| (resident.id, &resident.handle))
    }

    /// The entry's settings: its own, or those of `*`.
    pub(crate) fn database<'a>(&self, settings: &'a Settings, name: &str) -> Option<&'a settings::Database> {
        match self.entries.get(name) {
            Some(entry) if entry.is_auto => settings.autodb.as_ref(),
            _ => settings.databases.get(name),
        }
    }

    /// What holds for a pool of this name.
    pub(crate) fn effective<'a>(&self, settings: &'a Settings, key: &PoolKey) -> Effective<'a> {
        match self.database(settings, &key.database) {
            Some(database) => settings.effective(database, &key.user),
            None => settings.effective_user(&key.user),
        }
    }

    /// The pool of a database entry, which must exist, and a server user; it is made if there is none.
    pub(crate) fn pool_of(&mut self, now: Moment, database: &str, user: &str) -> Arc<PoolCell<C, S>> {
        self.pool_at(now, database, user, None)
    }

    /// The same, of those for reads on one standby.
    pub(crate) fn pool_at(
        &mut self,
        now: Moment,
        database: &str,
        user: &str,
        reader: Option<Place>,
    ) -> Arc<PoolCell<C, S>> {
        let place = (user.to_owned(), reader);
        let existing = self.entries.get(database).and_then(|entry| entry.pools.get(&place));
        if let Some(record) = existing.and_then(|id| self.pools.get(id)) {
            return Arc::clone(&record.cell);
        }
        let key = PoolKey { database: database.to_owned(), user: place.0.clone(), reader: place.1.clone() };
        let settings = Arc::clone(&self.settings);
        let is_forced =
            self.database(&settings, database).is_some_and(|own| own.user.as_deref() == Some(user));
        let mut pool = Pool::new(pool_limits(&self.effective(&settings, &key)));
        if self.is_paused(database) {
            // It holds no server yet.
            let _ = pool.pause();
        }
        if !self.has_node(&key) {
            pool.hold(now);
        }
        self.pool_id_last += 1;
        let id = PoolId(self.pool_id_last);
        let cell = Arc::new(PoolCell::new(id, key, is_forced, pool));
        let record = Record {
            cell: Arc::clone(&cell),
            clients: 0,
            servers: 0,
            unused_since: now,
            is_blocked: false,
            is_orphan: false,
            is_unproved: false,
        };
        self.pools.insert(id, record);
        self.entries.entry(database.to_owned()).or_default().pools.insert(place, id);
        cell
    }

    /// All clients of pools, with their pools.
    pub fn members(&self) -> impl Iterator<Item = (PoolId, &C)> {
        self.clients.iter().filter_map(|resident| Some((resident.pool?, &resident.handle)))
    }

    /// The pools of one database, or of all.
    pub(crate) fn cells(&self, database: Option<&str>) -> Vec<Arc<PoolCell<C, S>>> {
        let wanted = |record: &&Record<C, S>| {
            !record.is_orphan && database.is_none_or(|name| record.cell.key.database == name)
        };
        self.pools.values().filter(wanted).map(|record| Arc::clone(&record.cell)).collect()
    }

    pub(crate) fn count_user(&mut self, user: &str, count: impl FnOnce(&mut UserCounts)) {
        if let Some(counts) = self.users.get_mut(user) {
            count(counts);
            if *counts == UserCounts::default() {
                // Names come from clients: only those that are in use are kept.
                self.users.remove(user);
            }
            return;
        }
        let mut counts = UserCounts::default();
        count(&mut counts);
        if counts != UserCounts::default() {
            self.users.insert(user.into(), counts);
        }
    }

    /// A user's name, shared with all who have it too.
    pub(crate) fn user_name(&self, user: &str) -> Arc<str> {
        self.users.get_key_value(user).map_or_else(|| user.into(), |(name, _)| Arc::clone(name))
    }

    pub(crate) fn user_counts(&self, user: &str) -> UserCounts {
        self.users.get(user).copied().unwrap_or_default()
    }
}
