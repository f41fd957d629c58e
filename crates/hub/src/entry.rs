//! Database entries: what is counted and steered for each name, and those made on demand from `*`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Moment, PoolId};

use crate::clusters::Place;
use crate::hub::Hub;

/// So many entries may be made from `*`: names come from clients.
pub(crate) const AUTO_ENTRIES_MAX: usize = 2048;

/// One database entry.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// Made from `*`.
    pub(crate) is_auto: bool,
    /// `PAUSE db` or `KILL db` was said.
    pub(crate) is_paused: bool,
    /// `DISABLE db` was said.
    pub(crate) is_disabled: bool,
    /// Clients that entered it.
    pub(crate) clients: u32,
    /// Servers of all its pools.
    pub(crate) servers: u32,
    /// By server user, and by standby.
    pub(crate) pools: BTreeMap<(String, Option<Place>), PoolId>,
    /// Which host the next server goes to first.
    pub(crate) host_next: usize,
    /// Since when it has neither client nor server.
    pub(crate) unused_since: Moment,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// Sees to it that a name has an entry, if it may have one.
    pub(crate) fn ensure_entry(&mut self, now: Moment, name: &str) -> bool {
        if self.entries.contains_key(name) {
            return true;
        }
        if self.settings.autodb.is_none() {
            return false;
        }
        if self.entries.values().filter(|entry| entry.is_auto).count() >= AUTO_ENTRIES_MAX {
            let unused = |entry: &Entry| entry.is_auto && entry.is_unused();
            let candidates = self.entries.iter().filter(|(_, entry)| unused(entry));
            let oldest = candidates.min_by_key(|(_, entry)| entry.unused_since).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { return false };
            self.drop_entry(&oldest);
        }
        let entry = Entry { is_auto: true, unused_since: now, ..Entry::default() };
        self.entries.insert(name.to_owned(), entry);
        true
    }

    /// Forgets entries made from `*` that were not used for `autodb_idle_timeout`.
    pub(crate) fn drop_unused_entries(&mut self, now: Moment) {
        let due = |entry: &Entry| self.entry_due(entry) <= now;
        let gone: Vec<String> =
            self.entries.iter().filter(|(_, entry)| due(entry)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.drop_entry(&name);
        }
    }

    /// When the first unused entry is to be forgotten.
    pub(crate) fn entries_due(&self) -> Moment {
        self.entries.values().map(|entry| self.entry_due(entry)).min().unwrap_or(Moment::NEVER)
    }

    fn entry_due(&self, entry: &Entry) -> Moment {
        let keep: Duration = self.settings.general.autodb_idle_timeout;
        if entry.is_auto && entry.is_unused() { entry.unused_since.deadline(keep) } else { Moment::NEVER }
    }

    /// Takes an entry out; its pools end with their last server and client.
    pub(crate) fn drop_entry(&mut self, name: &str) {
        let Some(entry) = self.entries.remove(name) else { return };
        for id in entry.pools.values() {
            if let Some(record) = self.pools.get_mut(id) {
                record.is_orphan = true;
                // Whoever still holds it opens nothing more. Its idle servers were taken out before.
                let _ = record.cell.lock().pause();
            }
            self.drop_pool_if_over(*id);
        }
        self.secrets.forget_database(name);
    }

    /// Forgets a pool of a dropped entry, or of a user whom nobody knows, when nothing is left of it.
    pub(crate) fn drop_pool_if_over(&mut self, id: PoolId) {
        let over = |record: &crate::hub::Record<C, S>| {
            (record.is_orphan || record.is_unproved)
                && record.clients == 0
                && record.servers == 0
                && record.cell.lock().is_empty()
        };
        if self.pools.get(&id).is_some_and(over) {
            self.drop_pool(id);
        }
    }

    /// Forgets a pool.
    pub(crate) fn drop_pool(&mut self, id: PoolId) {
        let Some(record) = self.pools.remove(&id) else { return };
        if !record.is_orphan
            && let Some(entry) = self.entries.get_mut(&record.cell.key.database)
        {
            let key = &record.cell.key;
            entry.pools.remove(&(key.user.clone(), key.reader.clone()));
        }
        self.policies.retain(|(pool, _), _| *pool != id);
    }
}

impl Entry {
    pub(crate) fn is_unused(&self) -> bool {
        self.clients == 0 && self.servers == 0 && !self.is_paused && !self.is_disabled
    }
}
