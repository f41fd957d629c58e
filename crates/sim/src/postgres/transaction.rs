//! What a transaction can undo, to its beginning or to a savepoint.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Postgres, Settings};

/// A temporary table.
#[derive(Clone, Debug)]
pub(super) struct Temp {
    pub(super) value: Vec<u8>,
    /// It ends with its transaction.
    pub(super) is_short: bool,
}

/// A cursor that SQL has declared.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) value: Vec<u8>,
    pub(super) is_held: bool,
    /// How often it was fetched from.
    pub(super) fetched: usize,
}

/// What is neither a setting nor there to stay whatever becomes of its transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) temps: BTreeMap<Vec<u8>, Temp>,
    pub(super) cursors: BTreeMap<Vec<u8>, Cursor>,
    pub(super) channels: BTreeSet<Vec<u8>>,
    /// Channels and payloads of NOTIFY.
    pub(super) notes: Vec<(Vec<u8>, Vec<u8>)>,
    /// What INSERT has written.
    pub(super) written: Vec<Vec<u8>>,
}

/// What goes back with a transaction. Cheap to copy: most transactions change nothing of it.
#[derive(Clone, Debug)]
pub(super) struct Undoable {
    /// As statements see them.
    pub(super) settings: Rc<Settings>,
    /// As they will be after the transaction: without what SET LOCAL did.
    pub(super) lasting: Rc<Settings>,
    /// What was set since the login.
    pub(super) own: Rc<BTreeSet<Vec<u8>>>,
    pub(super) objects: Rc<Objects>,
}

impl Undoable {
    pub(super) fn new(settings: &Rc<Settings>) -> Undoable {
        Undoable {
            settings: Rc::clone(settings),
            lasting: Rc::clone(settings),
            own: Rc::default(),
            objects: Rc::default(),
        }
    }

    pub(super) fn objects(&mut self) -> &mut Objects {
        Rc::make_mut(&mut self.objects)
    }

    /// What ends with a transaction that is committed.
    fn end(&mut self) {
        self.settings = Rc::clone(&self.lasting);
        let is_over = self.objects.temps.values().any(|temp| temp.is_short)
            || self.objects.cursors.values().any(|cursor| !cursor.is_held);
        if is_over {
            let objects = self.objects();
            objects.temps.retain(|_, temp| !temp.is_short);
            objects.cursors.retain(|_, cursor| cursor.is_held);
        }
    }
}

impl Postgres {
    /// A transaction begins with what comes next, if none is under way.
    pub(super) fn save(&mut self) {
        if self.saved.is_none() {
            self.saved = Some(self.now.clone());
        }
    }

    pub(super) fn commit(&mut self) {
        self.saved = None;
        self.savepoints.clear();
        self.portals.clear();
        self.now.end();
        if !self.now.objects.written.is_empty() {
            self.committed.append(&mut self.now.objects().written);
        }
        if !self.now.objects.notes.is_empty() {
            let objects = self.now.objects();
            let sent = std::mem::take(&mut objects.notes);
            let heard = sent.iter().filter(|(channel, _)| objects.channels.contains(channel));
            self.heard.extend(heard.cloned());
            self.notified.extend(sent);
        }
    }

    /// What it listens on, as far as that is committed.
    pub(crate) fn channels(&self) -> &BTreeSet<Vec<u8>> {
        &self.saved.as_ref().unwrap_or(&self.now).objects.channels
    }

    pub(crate) fn hears(&self, channel: &[u8]) -> bool {
        self.channels().contains(channel)
    }

    /// Another session has notified: it is told of between two transactions.
    pub(crate) fn notify(&mut self, channel: &[u8], payload: &[u8]) {
        self.heard.push((channel.to_vec(), payload.to_vec()));
        if !self.is_busy() {
            self.tell_notes();
        }
    }

    pub(super) fn tell_notes(&mut self) {
        for (channel, payload) in std::mem::take(&mut self.heard) {
            wire::encode::notification(&mut self.out, 0, &channel, &payload);
        }
    }

    pub(super) fn roll_back(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.now = saved;
        }
        self.savepoints.clear();
        self.portals.clear();
    }

    /// After an error: back to the newest savepoint, or to the beginning.
    pub(super) fn undo_newest(&mut self) {
        let level = self.savepoints.last().map(|(_, level)| level).or(self.saved.as_ref());
        if let Some(level) = level {
            self.now = level.clone();
        }
    }

    pub(super) fn savepoint(&mut self, name: &[u8]) {
        self.savepoints.push((name.to_vec(), self.now.clone()));
    }

    /// False if there is no such savepoint.
    pub(super) fn roll_back_to(&mut self, name: &[u8]) -> bool {
        let Some(at) = self.savepoints.iter().rposition(|(other, _)| other == name) else { return false };
        self.savepoints.truncate(at + 1);
        self.undo_newest();
        true
    }

    /// False if there is no such savepoint.
    pub(super) fn release(&mut self, name: &[u8]) -> bool {
        let Some(at) = self.savepoints.iter().rposition(|(other, _)| other == name) else { return false };
        self.savepoints.truncate(at);
        true
    }
}
