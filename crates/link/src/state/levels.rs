//! What a transaction's settings go back to: one level for the transaction, one for each savepoint in it.
//!
//! Levels are kept from the first change of a setting on. So a savepoint that has none is older than every change,
//! and to roll back to it is to roll back to where the transaction began. Settings that the server reports are not
//! touched here: it reports them again when they go back.

use std::sync::Arc;

use client::Client;
use model::Parameters;
use server::Server;

use crate::channels::Channel;

#[derive(Debug)]
struct Level {
    /// Of the savepoint; empty for the transaction itself.
    name: Box<[u8]>,
    client: Arc<Parameters>,
    server: Arc<Parameters>,
    channels: Option<Arc<Vec<Channel>>>,
}

/// More savepoints than this that are open at once are not told apart.
const LEVELS_MAX: usize = 1024;

/// The levels of the transaction under way, the outermost first.
#[derive(Debug, Default)]
pub(crate) struct Levels(Vec<Level>);

impl Levels {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A setting is about to change.
    pub(crate) fn touch(&mut self, client: &mut Client, server: &Server) {
        client.note_new_set();
        if self.0.is_empty() {
            self.push(Box::default(), client, server);
        }
    }

    pub(crate) fn savepoint(&mut self, name: Box<[u8]>, client: &Client, server: &Server) {
        if !self.0.is_empty() && self.0.len() < LEVELS_MAX {
            self.push(name, client, server);
        }
    }

    /// Gives how many levels are left.
    pub(crate) fn rollback_to(&mut self, name: &[u8], client: &mut Client, server: &mut Server) -> usize {
        let at = self.find(name);
        self.0.truncate(at + 1);
        if let Some(level) = self.0.last() {
            level.restore(client, server);
        }
        self.0.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Its changes are those of the level around it from now on.
    pub(crate) fn release(&mut self, name: &[u8]) {
        let at = self.find(name);
        self.0.truncate(at.max(1));
    }

    /// The transaction is rolled back.
    pub(crate) fn undo_all(&mut self, client: &mut Client, server: &mut Server) {
        if let Some(level) = self.0.first() {
            level.restore(client, server);
        }
        self.0.clear();
    }

    /// The server's settings once its transaction is rolled back.
    pub(crate) fn before(&self) -> Option<&Arc<Parameters>> {
        self.0.first().map(|level| &level.server)
    }

    /// The client's channels as they were before the transaction, if it changes anything.
    pub(crate) fn channels_before(&self) -> Option<&[Channel]> {
        self.0.first().map(|level| level.channels.as_ref().map_or(&[][..], |own| own))
    }

    fn push(&mut self, name: Box<[u8]>, client: &Client, server: &Server) {
        let (settings, server) = (Arc::clone(&client.parameters), Arc::clone(&server.parameters));
        self.0.push(Level { name, client: settings, server, channels: client.channels.clone() });
    }

    /// Where the newest savepoint of this name stands, or the transaction.
    fn find(&self, name: &[u8]) -> usize {
        self.0.iter().rposition(|level| *level.name == *name).unwrap_or(0)
    }
}

impl Level {
    fn restore(&self, client: &mut Client, server: &mut Server) {
        client.note_new_set();
        client.parameters = restored(&client.parameters, &self.client);
        client.channels.clone_from(&self.channels);
        server.parameters = restored(&server.parameters, &self.server);
    }
}

/// What the server reports as it is now, the rest as it was.
pub(crate) fn restored(now: &Arc<Parameters>, then: &Arc<Parameters>) -> Arc<Parameters> {
    if Arc::ptr_eq(now, then) {
        return Arc::clone(now);
    }
    let merged = now.with_unreported_of(then);
    if merged == **then { Arc::clone(then) } else { Arc::new(merged) }
}

pub(crate) fn is_reported(name: &[u8], server: &Server) -> bool {
    server.parameters.entry(name).is_some_and(|parameter| parameter.reported)
}

/// Who the session is: reset by no RESET ALL, and in an order of its own.
pub(crate) fn is_identity(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"role") || name.eq_ignore_ascii_case(b"session_authorization")
}

/// Changes a shared set.
pub(crate) fn edit(parameters: &mut Arc<Parameters>, change: impl FnOnce(&mut Parameters)) {
    change(Arc::make_mut(parameters));
}

/// Both sides have a setting from now on. What the server reports it has reported, or will.
pub(crate) fn set(name: &[u8], value: &[u8], written: bool, client: &mut Client, server: &mut Server) {
    if name == b"session_authorization" {
        for parameters in [&mut client.parameters, &mut server.parameters] {
            if parameters.value(b"role").is_some() {
                edit(parameters, |parameters| parameters.remove(b"role"));
            }
        }
    }
    if is_reported(name, server) {
        return;
    }
    let had = Arc::ptr_eq(&client.parameters, &server.parameters);
    edit(&mut client.parameters, |parameters| parameters.set_as(name, value, written));
    if had {
        server.parameters = Arc::clone(&client.parameters);
    } else {
        edit(&mut server.parameters, |parameters| parameters.set_as(name, value, written));
    }
}

/// Every setting that one of the two has.
pub(crate) fn all_names(client: &Client, server: &Server) -> Vec<Arc<[u8]>> {
    let mut names: Vec<Arc<[u8]>> = server.parameters.iter().map(|p| Arc::clone(&p.name)).collect();
    for parameters in [&client.parameters, &client.login] {
        for parameter in parameters.iter() {
            if server.parameters.entry(&parameter.name).is_none()
                && !names.iter().any(|name| name.eq_ignore_ascii_case(&parameter.name))
            {
                names.push(Arc::clone(&parameter.name));
            }
        }
    }
    names
}
