//! What a client's statements do to its session, and what follows for its server.
//!
//! A statement's text is scanned when it is sent. One that does nothing to the session leaves no trace. Of another
//! its [`Deed`]s are kept behind a mark on its ledger entry; they take hold when the server completes the statement,
//! and are dropped where it answers an error. Settings are the client's: `Levels` undoes them with the transaction
//! or savepoint that set them, by what the server said of its end. All else is the server's to tell: it is asked
//! once it is outside a transaction (`census`), and what it has keeps the client on it ([`Pins`]).

pub(crate) mod bind;
pub(crate) mod deed;
pub(crate) mod levels;
pub(crate) mod pins;
pub(crate) mod refusal;
pub(crate) mod scan;

use std::collections::VecDeque;
use std::sync::Arc;

use client::Client;
use server::{Left, Owed, Server};
use sql::state::{Discard, Reason};
use wire::server::TransactionStatus;

use crate::by_sql::{Renamed, Shift};
use crate::census::Census;
use crate::channels::Channel;
use deed::{Deed, Kinds, Pending};
use levels::Levels;
use pins::Held;

/// So many names that SQL has given are known of one client.
const PREPARED_MAX: usize = 4096;

/// What a client whose statements do something to its session has to keep. Clients whose statements do not have none.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What the statements will have done that were sent and are not answered, in order.
    pub(crate) pending: VecDeque<Pending>,
    /// What the transaction under way goes back to.
    pub(crate) levels: Levels,
    /// The server has reported an error since it was ready last.
    failed: bool,
    /// Portals of statements that do something.
    pub(crate) portals: Vec<scan::Portal>,
    /// Texts of statements that do something and are known by a name to the server alone; "" is the unnamed one.
    pub(crate) texts: Vec<(Box<[u8]>, Arc<[u8]>)>,
    /// What the server is to be asked once it is outside a transaction.
    pub(crate) doubts: Kinds,
    /// Settings whose values it is to be asked for.
    pub(crate) unknown: Vec<Box<[u8]>>,
    /// Channels on which the server listens, and need not.
    pub(crate) unlisten: Vec<Channel>,
    /// Names of statements that SQL has prepared and that are not carried; they keep the server.
    prepared: Vec<Box<[u8]>>,
    /// What the server's unnamed statement, which is the client's, prepares by SQL.
    pub(crate) unnamed_made: Renamed,
    /// By how much pieces of the statement that has failed had moved in its text.
    pub(crate) shifts: Vec<Shift>,
    /// Why a statement that it needs could not be prepared.
    pub(crate) excuse: Option<Box<[u8]>>,
    /// How often in a row the server did not answer.
    pub(crate) failures: u8,
    /// The question under way.
    pub(crate) census: Option<Census>,
    /// Reported settings that the client is to have back as it logged in with them, once the server is ready; at
    /// how many levels each was reset.
    restoring: Vec<(Box<[u8]>, usize)>,
    /// Every setting was reset in the transaction under way.
    has_reset_all: bool,
    /// The server's settings are not the client's any more.
    pub(crate) differs: bool,
    pub(crate) held: Held,
}

impl State {
    /// Whether another client may have the server, as far as this client's state goes.
    pub(crate) fn is_free(&self) -> bool {
        self.pending.is_empty()
            && self.doubts.is_empty()
            && self.unknown.is_empty()
            && self.unlisten.is_empty()
            && self.census.is_none()
            && self.held.is_empty()
    }

    /// Whether all there is to be done to the server is that it listens no more.
    pub(crate) fn is_only_listening(&self) -> bool {
        self.pending.is_empty() && self.is_nothing_lost()
    }

    /// Whether nothing of the session that the client believes in is on the server, as far as it is known, and nothing is
    /// in doubt. What is not answered yet, the client does not believe in.
    pub(crate) fn is_nothing_lost(&self) -> bool {
        self.doubts.is_empty()
            && self.unknown.is_empty()
            && self.census.as_ref().is_none_or(Census::asks_nothing)
            && self.held.is_empty()
    }

    /// Whether the ends of transactions and savepoints matter.
    pub(crate) fn is_touched(&self) -> bool {
        !self.levels.is_empty() || self.pending.iter().any(Pending::sets)
    }

    /// What must be done to the server once the client is gone.
    pub(crate) fn leaves(&self) -> Left {
        let asks = !self.doubts.is_empty()
            || !self.unknown.is_empty()
            || !self.unlisten.is_empty()
            || self.census.is_some();
        if self.pending.iter().any(|pending| !pending.is_empty()) || self.held.is_forever() {
            Left::Forever
        } else if asks || !self.held.is_empty() {
            Left::Discardable
        } else {
            Left::Nothing
        }
    }

    /// What the client takes along when it has no server.
    pub(crate) fn without_server(mut self: Box<State>) -> Option<Box<State>> {
        let texts = std::mem::take(&mut self.texts);
        (!texts.is_empty()).then(|| Box::new(State { texts, ..State::default() }))
    }

    /// A statement of the entry at the front is complete.
    pub(crate) fn complete(&mut self, tag: &[u8], client: &mut Client, server: &mut Server) {
        let Some(pending) = self.pending.front_mut() else { return };
        let verb = pending.verb.clone();
        let deeds = pending.complete();
        let is_followed = pending.is_followed;
        for deed in deeds {
            self.take_hold(deed, tag, &verb, client, server);
        }
        self.differs &= !is_followed;
    }

    /// The server has reported an error. What does not go back with a transaction may have been done all the same.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// The rest of an entry with a mark was refused, because its transaction had failed before.
    pub(crate) fn skip_front(&mut self) {
        let Some(pending) = self.pending.front_mut() else { return };
        self.shifts = std::mem::take(&mut pending.shifts);
        pending.complete_all();
    }

    /// As `fail`, of an entry with a mark: it stays until it is through.
    pub(crate) fn fail_front(&mut self) {
        let Some(pending) = self.pending.front_mut() else { return };
        let (deeds, verb) = (pending.complete(), pending.verb.clone());
        self.shifts = std::mem::take(&mut pending.shifts);
        pending.complete_all();
        for deed in deeds {
            match deed {
                Deed::Doubt(kinds) => self.doubt(kinds, &verb),
                Deed::Pin(reason) if reason != Reason::Setting => self.held.add(reason, &verb),
                _ => {}
            }
        }
    }

    /// The entry at the front is through, with all of its statements or without.
    pub(crate) fn finish_front(&mut self) {
        let Some(mut pending) = self.pending.pop_front() else { return };
        if !self.failed && !pending.complete_all().is_empty() {
            // The server has found fewer statements in the text than were found here.
            self.doubt(Kinds::ALL, &pending.verb);
        }
    }

    /// The server is ready.
    pub(crate) fn ready(
        &mut self,
        status: TransactionStatus,
        client: &mut Client,
        server: &mut Server,
    ) -> Told {
        let failed = std::mem::take(&mut self.failed);
        let is_idle = status == TransactionStatus::Idle;
        if is_idle && failed {
            self.undo(client, server);
        }
        let told = match status {
            TransactionStatus::Failed => Told::default(),
            _ => self.restore_reported(client),
        };
        if !is_idle {
            return told;
        }
        if server.is_quiet() {
            // Else a portal that was bound since may be meant.
            self.portals.clear();
        }
        self.levels.clear();
        if std::mem::take(&mut self.has_reset_all) {
            self.held.take_all(&[Reason::Setting, Reason::UnreadSetting]);
        }
        let path = client.parameters.value(b"search_path").unwrap_or_default();
        self.held.note_temp_path(sql::state::names_temp_schema(path));
        told
    }

    /// What was reset and the server reports: the client has it as it logged in with it from now on.
    fn restore_reported(&mut self, client: &mut Client) -> Told {
        let mut told = Told::default();
        for (name, _) in self.restoring.drain(..) {
            let Some(wanted) = client.login.entry(&name).cloned() else { continue };
            if client.parameters.value(&name) != Some(&wanted.value) {
                client.set_parameter(&wanted.name, &wanted.value);
                told.parameters.push((wanted.name, wanted.value));
            }
        }
        told
    }

    /// The transaction is rolled back.
    fn undo(&mut self, client: &mut Client, server: &mut Server) {
        self.levels.undo_all(client, server);
        self.restoring.clear();
        self.has_reset_all = false;
        let is_other = |name: &Arc<[u8]>| client.parameters.value(name) != server.parameters.value(name);
        self.differs |= client.own().iter().any(is_other);
    }

    /// Whether the server reports its own value of a setting that the client has back as it logged in with it.
    pub(crate) fn is_restoring(&self, name: &[u8]) -> bool {
        !self.failed && self.restoring.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// Whether something that is not answered yet gives or takes names of prepared statements.
    pub(crate) fn gives_names(&self) -> bool {
        self.pending.iter().any(Pending::gives_names)
    }

    /// The name that is about to be given to the statement of this number.
    pub(crate) fn name_of(&self, id: u64) -> Option<&[u8]> {
        self.pending.iter().find_map(|pending| pending.name_of(id))
    }

    /// Whether SQL has prepared a statement of this name here, or will have.
    pub(crate) fn has_prepared(&self, name: &[u8]) -> bool {
        let prepares = |deed: &Deed| matches!(deed, Deed::Prepare(other) if **other == *name);
        self.prepared.iter().any(|other| **other == *name)
            || self.pending.iter().any(|pending| pending.count(prepares) > 0)
    }

    /// Whether something that is not answered yet listens on a channel by somebody else.
    pub(crate) fn will_listen(&self, channel: &[u8]) -> bool {
        let listens = |deed: &Deed| matches!(deed, Deed::Listen(other) if **other == *channel);
        self.pending.iter().any(|pending| pending.count(listens) > 0)
    }

    /// A statement is closed by the protocol: one of SQL's, perhaps.
    pub(crate) fn close_prepared(&mut self, name: &[u8]) {
        if self.has_prepared(name) {
            self.prepared.retain(|other| **other != *name);
            self.doubts = self.doubts.with(Kinds::PREPARED);
        }
    }

    /// Whether the session remembers what a sequence has given to this client, as far as is known.
    pub(crate) fn may_have_drawn(&self) -> bool {
        let is_drawn = |deed: &Deed| match deed {
            Deed::Doubt(kinds) => kinds.has(Kinds::SEQUENCES),
            Deed::Pin(reason) => *reason == Reason::Sequence,
            _ => false,
        };
        self.held.has_kind(Kinds::SEQUENCES)
            || self.doubts.has(Kinds::SEQUENCES)
            || self.census.as_ref().is_some_and(Census::asks_for_sequences)
            || self.pending.iter().any(|pending| pending.count(is_drawn) > 0)
    }

    fn doubt(&mut self, kinds: Kinds, verb: &str) {
        self.doubts = self.doubts.with(kinds);
        self.held.suspect(verb);
    }

    fn take_hold(&mut self, deed: Deed, tag: &[u8], verb: &str, client: &mut Client, server: &mut Server) {
        match deed {
            Deed::Set { name, value, written } => {
                self.restoring.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
                self.levels.touch(client, server);
                levels::set(&name, &value, written, client, server);
            }
            Deed::Ask(name) => {
                if !levels::is_reported(&name, server) && !self.unknown.contains(&name) {
                    self.levels.touch(client, server);
                    self.held.suspect(verb);
                    self.unknown.push(name);
                }
            }
            Deed::Reset(name) => {
                self.levels.touch(client, server);
                self.reset(&name, client, server);
            }
            Deed::ResetAll => self.reset_all(client, server),
            Deed::Discard(what) => self.discard(what, client, server),
            Deed::Doubt(kinds) => self.doubt(kinds, verb),
            Deed::MayEnd(kind) => {
                if self.held.has_kind(kind) {
                    self.doubts = self.doubts.with(kind);
                }
            }
            Deed::Pin(reason) => self.held.add(reason, verb),
            Deed::Unpin(reason) => self.held.take(reason),
            Deed::Listen(channel) => {
                self.levels.touch(client, server);
                if !self.unlisten.contains(&channel) {
                    self.unlisten.push(Arc::clone(&channel));
                }
                client.listen(channel);
            }
            Deed::Unlisten(channel) => {
                self.levels.touch(client, server);
                client.unlisten(&channel);
            }
            Deed::UnlistenAll => {
                self.levels.touch(client, server);
                client.channels = None;
            }
            Deed::Prepare(_) | Deed::Name(..) | Deed::Drop(_) | Deed::Deallocate(_) | Deed::DeallocateAll => {
                self.take_name(deed, client, server);
            }
            Deed::Savepoint(name) => self.levels.savepoint(name, client, server),
            Deed::RollbackTo(name) => {
                let left = self.levels.rollback_to(&name, client, server);
                self.restoring.retain(|(_, depth)| *depth < left);
            }
            Deed::Release(name) => self.levels.release(&name),
            Deed::End => {
                if tag == b"ROLLBACK\0" {
                    self.undo(client, server);
                }
                self.levels.clear();
                self.failed = false;
            }
        }
    }

    /// A name of a prepared statement is given or taken by SQL.
    fn take_name(&mut self, deed: Deed, client: &mut Client, server: &mut Server) {
        match deed {
            Deed::Prepare(name) if self.prepared.len() >= PREPARED_MAX => drop(name),
            Deed::Prepare(name) => self.prepared.push(name),
            Deed::Name(name, statement) => {
                server.prepared.made(Arc::clone(&statement));
                client.names().give(&name, statement);
            }
            Deed::Drop(id) => server.prepared.dropped(id),
            Deed::Deallocate(name) => {
                self.prepared.retain(|other| *other != name);
                if client.has_names() {
                    client.names().forget(&name);
                }
            }
            Deed::DeallocateAll => self.prepared.clear(),
            _ => {}
        }
    }

    /// The server has its own value back, the client what it logged in with.
    fn reset(&mut self, name: &[u8], client: &mut Client, server: &mut Server) {
        let is_reported = levels::is_reported(name, server);
        let wanted = client.login.entry(name).cloned();
        if !is_reported {
            levels::edit(&mut server.parameters, |parameters| parameters.remove(name));
            levels::edit(&mut client.parameters, |parameters| match &wanted {
                Some(wanted) => parameters.put(wanted),
                None => parameters.remove(name),
            });
            self.differs |= wanted.is_some() && client.has_own(name);
            return;
        }
        if wanted.is_some_and(|wanted| !model::parameters::is_fixed(&wanted.name)) {
            // What the server says of it next is its own value, not the client's.
            self.restoring.push((name.into(), self.levels.len()));
            self.differs |= client.has_own(name);
        }
    }

    /// All but who one is, and what is a transaction's.
    fn reset_all(&mut self, client: &mut Client, server: &mut Server) {
        self.levels.touch(client, server);
        let names = levels::all_names(client, server);
        for name in names.iter().filter(|name| !levels::is_identity(name)) {
            self.reset(name, client, server);
        }
        self.has_reset_all = true;
    }

    fn discard(&mut self, what: Discard, client: &mut Client, server: &mut Server) {
        match what {
            Discard::Plans => {}
            Discard::Sequences => self.held.take(Reason::Sequence),
            Discard::Temp => {
                if self.held.has_kind(Kinds::TEMP) {
                    self.doubts = self.doubts.with(Kinds::TEMP);
                }
            }
            Discard::All => {
                self.reset_all(client, server);
                for name in [&b"session_authorization"[..], b"role"] {
                    self.reset(name, client, server);
                }
                client.channels = None;
                self.unlisten.clear();
                self.texts.clear();
                self.prepared.clear();
                self.doubts = Kinds::default();
                if server.ledger.front().is_none_or(|entry| entry.owed != Owed::Query) {
                    // In a batch it may still be rolled back.
                    self.doubts = self.held.kinds();
                }
                self.held.take_discardable();
            }
        }
    }
}

/// What the client is to be told beside the server's own words.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) parameters: Vec<(Arc<[u8]>, Arc<[u8]>)>,
}
