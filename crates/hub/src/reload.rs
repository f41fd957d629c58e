//! New settings and files put in force, without a restart.

use std::sync::Arc;

use model::{Moment, Refusal};
use settings::{Changes, Settings};

use crate::entry::Entry;
use crate::hub::{Hub, Inputs};
use crate::policy::pool_limits;
use crate::work::Work;

/// What a reload changed, and what is to be done about it.
#[derive(Debug)]
#[must_use]
pub struct Reload<C, S> {
    /// How the settings differ. Policies of sessions may have changed too: ask [`Hub::policy`] again.
    pub changes: Changes,
    /// What is to be done.
    pub work: Work<C, S>,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// `RELOAD`: puts newly read files in force. Keys that need a restart keep their value.
    pub fn reload(&mut self, now: Moment, inputs: Inputs) -> Reload<C, S> {
        let mut settings = inputs.settings;
        self.fill_members(&mut settings);
        let reloaded = settings::reload(&self.settings, settings);
        self.hba = inputs.hba;
        self.idents = inputs.idents;
        self.secrets.set_userlist(inputs.userlist);
        let work = self.apply(now, reloaded.settings, &reloaded.changes);
        Reload { changes: reloaded.changes, work }
    }

    /// `SET`: puts changed settings in force until the next reload.
    pub fn set(&mut self, now: Moment, settings: Settings) -> Reload<C, S> {
        let changes = Changes::between(&self.settings, &settings);
        let work = self.apply(now, settings, &changes);
        Reload { changes, work }
    }

    fn apply(&mut self, now: Moment, settings: Settings, changes: &Changes) -> Work<C, S> {
        let old = std::mem::replace(&mut self.settings, Arc::new(settings));
        let mut work = self.remove_databases();
        self.replace_forced(&old, &mut work);
        for name in self.settings.databases.keys() {
            self.entries.entry(name.clone()).or_default().is_auto = false;
        }
        for name in &changes.databases_dirty {
            let names: Vec<String> = if name == "*" { self.auto_names() } else { vec![name.clone()] };
            for name in names {
                let renewed = self.renew(Some(&name));
                work.close.extend(renewed.close);
            }
        }
        self.policies.clear();
        let settings = Arc::clone(&self.settings);
        for cell in self.cells(None) {
            let limits = pool_limits(&self.effective(&settings, &cell.key));
            let due = cell.lock().set_limits(now, limits);
            work.due(&cell, due);
        }
        let started = self.start(now);
        work.extend(started);
        self.hold_or_not(now, &mut work);
        work
    }

    /// Ends the databases that are no longer in the settings, with their clients.
    fn remove_databases(&mut self) -> Work<C, S> {
        let mut work = Work::none();
        let is_kept = |name: &str, entry: &Entry| match entry.is_auto {
            true => self.settings.autodb.is_some() || self.settings.databases.contains_key(name),
            false => self.settings.databases.contains_key(name),
        };
        let entries = self.entries.iter();
        let gone: Vec<String> =
            entries.filter(|(name, entry)| !is_kept(name, entry)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.end_entry(&name, &Refusal::DatabaseRemoved, &mut work);
        }
        work
    }

    /// A database whose forced user is another one now has other pools; clients of the old ones are sent away.
    fn replace_forced(&mut self, old: &Settings, work: &mut Work<C, S>) {
        let names: Vec<String> = self.entries.keys().cloned().collect();
        for name in names {
            let user_of =
                |settings: &Settings| settings.find(&name).and_then(|found| found.database.user.clone());
            if user_of(old) != user_of(&self.settings) {
                let state =
                    self.entries.get(&name).map(|entry| (entry.is_auto, entry.is_paused, entry.is_disabled));
                self.end_entry(&name, &Refusal::DatabaseChanged, work);
                if let Some((is_auto, is_paused, is_disabled)) = state {
                    self.entries.insert(name, Entry { is_auto, is_paused, is_disabled, ..Entry::default() });
                }
            }
        }
    }

    fn end_entry(&mut self, name: &str, refusal: &Refusal, work: &mut Work<C, S>) {
        let ended = self.end_all(Some(name), refusal);
        work.close.extend(ended.close);
        work.disconnect.extend(ended.disconnect);
        self.drop_entry(name);
    }

    fn auto_names(&self) -> Vec<String> {
        self.entries.iter().filter(|(_, entry)| entry.is_auto).map(|(name, _)| name.clone()).collect()
    }
}
