//! Prepared statements in transaction mode: names are the client's, statements are shared.
//!
//! Where PostgreSQL would raise an error about a name, the server is made to raise it, so that it aborts the
//! transaction and skips to the Sync just as it would for a client of its own; only the words are ours.

use std::sync::Arc;

use client::Unnamed;
use model::Statement;
use server::{Check, Entry, Instead, Made, Marks, Owed, Undescribed, UnnamedOf};
use wire::client::{BindHead, Parse, tag};
use wire::encode;
use wire::server::TransactionStatus;

use crate::by_sql::{Names, Renamed};
use crate::from_client::{FLUSH, Message, Pair, Step, may_grow, target_owed, violation};
use crate::noted::Parsed;
use crate::state::deed::Pending;

/// Every name that a server knows a statement by begins so; no client may say such a name to it.
pub(crate) const SERVER_NAME_PREFIX: &[u8] = b"howdah_";
/// A name that no server has: binding it raises the error whose words are then replaced, closing it does
/// nothing.
const NOBODY: &[u8] = b"howdah_0";
/// A statement without text or parameters, as the rest of a Parse.
pub(crate) const EMPTY: &[u8] = &[0, 0, 0];
/// What of an unnamed statement is kept for another server, in bytes; a larger one lives on one server.
const UNNAMED_BYTES_MAX: usize = 1 << 20;

/// What a client's name means.
pub(crate) enum Found<T> {
    Statement(T),
    /// The client never gave the name.
    Nothing,
    /// It depends on whether an earlier batch succeeds.
    Open,
}

impl Pair<'_> {
    pub(crate) fn parse(&mut self, message: Message<'_>) -> Step {
        self.server.soiled = true;
        if self.server.ledger.is_skipping() {
            self.pass(message, Some(Owed::Parse));
            return Step::Done;
        }
        if !self.policy.maps_statements() {
            if self.note_parse(message) == Parsed::Asks {
                return Step::Pin;
            }
            self.pass(message, Some(Owed::Parse));
            return Step::Done;
        }
        match message.body.first() {
            Some(0) => self.parse_unnamed(message),
            Some(_) => self.parse_named(message),
            None if !message.is_whole => Step::More,
            None => Step::Close(Some(violation("broken Parse packet"))),
        }
    }

    fn parse_unnamed(&mut self, message: Message<'_>) -> Step {
        let renamed = match self.note_parse(message) {
            Parsed::Asks => return Step::Pin,
            Parsed::Plain => None,
            Parsed::Names => match self.renamed_rest(&message.body[1..]) {
                Found::Open => return self.await_names(),
                Found::Statement(renamed) => Some(renamed),
                Found::Nothing => None,
            },
        };
        self.client.unnamed_serial = self.client.unnamed_serial.wrapping_add(1);
        let serial = self.client.unnamed_serial;
        // Bound at once, as most drivers do, it is never asked for again; else it must outlive this lease.
        let is_bound_at_once = message.next == Some(tag::BIND);
        self.client.unnamed = None;
        if message.is_whole && !is_bound_at_once && message.body.len() <= UNNAMED_BYTES_MAX {
            let rest = message.body[1..].into();
            self.client.unnamed = Some(Box::new(Unnamed { serial, rest }));
        }
        self.server.unnamed = Some(UnnamedOf { client: self.client.id, serial });
        if let Some(state) = self.state {
            state.unnamed_made = Renamed::default();
        }
        if let Some((rest, names)) = renamed {
            self.place_needed(&names.needs);
            self.state.get_or_insert_default().unnamed_made = names.made;
            self.out.to_server.make(|bytes| encode::parse(bytes, b"", &rest));
            self.server.ledger.push(Entry::client(Owed::Parse));
            self.discard(message);
            return Step::Done;
        }
        self.pass(message, Some(Owed::Parse));
        Step::Done
    }

    fn parse_named(&mut self, message: Message<'_>) -> Step {
        if message.header.body() > self.policy.statement_bytes_max {
            return self.refuse_in_place(message, Owed::Bind, Instead::StatementTooLarge);
        }
        if !message.is_whole {
            return Step::More;
        }
        let Ok(parse) = Parse::read(message.body) else {
            return Step::Close(Some(violation("broken Parse packet")));
        };
        let batch = self.server.ledger.batch();
        if self.names_are_open() {
            return self.await_names();
        }
        if !self.client.is_certain(parse.name, batch) {
            return Step::Wait;
        }
        let is_by_sql = self.state.as_ref().is_some_and(|state| state.has_prepared(parse.name));
        if is_by_sql || self.client.statement(parse.name).is_some() {
            if self.server.ledger.owes_ready() {
                // It may be a DEALLOCATE or DISCARD that is not answered yet.
                return Step::Wait;
            }
            if self.policy.misuse_closes {
                return Step::Close(Some(violation("prepared statement name is already in use")));
            }
            self.client.push_misused(parse.name);
            return self.refuse_in_place(message, Owed::Bind, Instead::DuplicateStatement);
        }
        if self.client.statement_bytes() > self.policy.client_statement_bytes_max {
            return self.refuse_in_place(message, Owed::Bind, Instead::StatementTooLarge);
        }
        if self.state.as_ref().is_some_and(|state| state.pending.iter().any(Pending::changes_meaning)) {
            return Step::Wait;
        }
        let statement = self.statements.intern(parse.rest, &self.client.meaning(&self.server.login));
        if !self.server.prepared.is_certain(statement.id, batch) {
            return Step::Wait;
        }
        if message.may_be_bound_next() && self.does_something(&statement) {
            let policy = self.policy;
            let effects = crate::state::scan::scan(statement.text(), self.client.dialect, policy);
            if self.asks_at_parse(&effects) {
                return Step::Pin;
            }
        }
        self.out.tally.client_parses += 1;
        self.client.names().insert(parse.name, Arc::clone(&statement), batch);
        let client_name = true;
        // In a failed transaction PostgreSQL refuses every Parse but that of a ROLLBACK; let it.
        let is_sound =
            self.server.status != TransactionStatus::Failed && !self.server.ledger.may_come_to_doubt();
        if is_sound && self.is_there(statement.id) {
            let marks = Marks { client_name, ..Marks::default() };
            self.server.ledger.push(Entry { owed: Owed::Ours(Made::ParseComplete), swallow: false, marks });
        } else {
            self.send_parse(&statement, false, client_name);
        }
        self.discard(message);
        Step::Done
    }

    /// Sends a Parse under the server's name, behind a Close if it has the statement already, and a Close for
    /// what must go to make room for it.
    pub(crate) fn send_parse(&mut self, statement: &Arc<Statement>, swallow: bool, client_name: bool) {
        self.place(statement, swallow, client_name);
        let needed = std::mem::take(&mut self.needed) + 1;
        self.make_room(self.policy.prepared_max.max(needed));
    }

    /// As `send_parse`, whether there is room for it or not.
    pub(crate) fn place(&mut self, statement: &Arc<Statement>, swallow: bool, client_name: bool) {
        if self.server.prepared.touch(statement.id) {
            self.send_close(statement);
        } else if self.policy.servers_forget {
            self.send_blind_close(statement);
        }
        self.out.tally.server_parses += 1;
        if let Some(sql) = statement.sql() {
            self.send_prepare(statement, &sql);
        } else {
            let name = statement.server_name();
            self.out.to_server.make(|bytes| encode::parse(bytes, name.as_bytes(), &statement.rest));
            let marks = Marks { client_name, statement: Some(statement.id), ..Marks::default() };
            self.server.ledger.push(Entry { owed: Owed::Parse, swallow, marks });
        }
        self.server.prepared.insert(Arc::clone(statement), self.server.ledger.batch());
    }

    /// Closes what must go so that the server has no more than this.
    pub(crate) fn make_room(&mut self, most: usize) {
        while let Some(oldest) = self.server.prepared.oldest_beyond(most) {
            self.send_close(&oldest);
        }
    }

    /// Whether the server has a statement for what is sent now.
    fn is_there(&mut self, id: u64) -> bool {
        let is_there = self.server.prepared.touch(id);
        // Behind a Sync it may be another server.
        is_there
            && (!self.policy.servers_forget || self.server.prepared.is_of(id, self.server.ledger.batch()))
    }

    /// The name may stand for anything there: it was given to that server for somebody else.
    fn send_blind_close(&mut self, statement: &Statement) {
        let name = statement.server_name();
        self.out.to_server.make(|bytes| encode::target(bytes, tag::CLOSE, b'S', name.as_bytes()));
        self.server.ledger.push(Entry::ours(Owed::Close));
    }

    pub(crate) fn send_close(&mut self, statement: &Statement) {
        let name = statement.server_name();
        self.out.to_server.make(|bytes| encode::target(bytes, tag::CLOSE, b'S', name.as_bytes()));
        let marks = Marks { statement: Some(statement.id), ..Marks::default() };
        self.server.ledger.push(Entry { owed: Owed::Close, swallow: true, marks });
        self.server.prepared.close(statement.id, self.server.ledger.batch());
    }

    pub(crate) fn bind(&mut self, message: Message<'_>) -> Step {
        self.server.undescribed = None;
        if self.server.ledger.is_skipping() {
            self.pass(message, Some(Owed::Bind));
            return Step::Done;
        }
        if !self.policy.maps_statements() {
            if let Some(head) = BindHead::peek(message.body)
                && let Some(step) = self.note_bind(message, head, None, Renamed::default())
            {
                return step;
            }
            self.pass(message, Some(Owed::Bind));
            return Step::Done;
        }
        let Some(head) = BindHead::peek(message.body) else {
            return if may_grow(message) {
                Step::More
            } else {
                Step::Close(Some(violation("broken Bind packet")))
            };
        };
        if head.statement.is_empty() {
            return self.bind_unnamed(message, head);
        }
        if self.names_are_open() {
            return self.await_names();
        }
        let statement = match self.find(head.statement) {
            Found::Statement(statement) => statement,
            Found::Nothing => {
                if let Some(step) = self.note_bind(message, head, None, Renamed::default()) {
                    return step;
                }
                return self.use_unknown(message, head.statement, Owed::Bind);
            }
            Found::Open => return Step::Wait,
        };
        let (stand_in, names) = match self.named_in(&statement) {
            Found::Open => return self.await_names(),
            Found::Statement((other, names)) => (Some(other), names),
            Found::Nothing => (None, Names::default()),
        };
        if let Some(step) = self.note_bind(message, head, Some(&statement), names.made) {
            return step;
        }
        let statement = stand_in.unwrap_or(statement);
        self.out.tally.binds += 1;
        let name = statement.server_name();
        let Some(length) = renamed_length(message, head.statement, name) else {
            return self.refuse_in_place(message, Owed::Bind, Instead::StatementTooLarge);
        };
        if let Some(step) = self.ensure_prepared(message, &statement, Owed::Bind) {
            return step;
        }
        self.server.undescribed = (!statement.is_told())
            .then(|| Undescribed { statement: statement.id, portal: head.portal.into() });
        self.server.ledger.push(Entry::about(Owed::Bind, statement.id));
        self.out.to_server.make(|bytes| {
            bytes.push(tag::BIND);
            bytes.extend_from_slice(&length.to_be_bytes());
            encode::cstr(bytes, head.portal);
            encode::cstr(bytes, name.as_bytes());
        });
        self.forward(message, 5 + head.size());
        Step::Done
    }

    fn bind_unnamed(&mut self, message: Message<'_>, head: BindHead<'_>) -> Step {
        if self.state.is_some() && self.unnamed_names_others() && !self.renew_unnamed() {
            return self.await_names();
        }
        let made = self.state.as_ref().map(|state| state.unnamed_made.clone()).unwrap_or_default();
        let noted = self.note_bind(message, head, None, made);
        noted.unwrap_or_else(|| self.use_unnamed(message, Owed::Bind))
    }

    /// Sees to it that the server has the statement, and that it is there what clients were told of it. What
    /// becomes of the message where that is not so, or not known yet.
    ///
    /// PostgreSQL never changes the result of a statement: it refuses to run it. A server that has it does that
    /// itself; on one that gets it now, its description is asked for. Waited for it is only where the schema is
    /// known to have changed: else a difference is as good as impossible, and ends the client and the server.
    fn ensure_prepared(
        &mut self,
        message: Message<'_>,
        statement: &Arc<Statement>,
        owed: Owed,
    ) -> Option<Step> {
        if self.server.check != Check::None {
            match std::mem::take(&mut self.server.check) {
                Check::Differs(id) if id == statement.id => {
                    self.send_close(statement);
                    return Some(self.refuse_in_place(message, owed, Instead::StalePlan));
                }
                asked @ Check::Asked { .. } => {
                    self.server.check = asked;
                    return Some(Step::Wait);
                }
                Check::Differs(_) | Check::None => {}
            }
        }
        if self.is_there(statement.id) {
            return None;
        }
        if statement.is_disputed() {
            return Some(self.refuse_in_place(message, owed, Instead::StalePlan));
        }
        let generation = self.statements.generation();
        self.send_parse(statement, true, false);
        if !statement.is_told() {
            return None;
        }
        let name = statement.server_name();
        self.out.to_server.make(|bytes| encode::target(bytes, tag::DESCRIBE, b'S', name.as_bytes()));
        let mut entry = Entry::about(Owed::DescribeStatement, statement.id);
        entry.swallow = true;
        self.server.ledger.push(entry);
        if statement.generation() >= generation {
            return None;
        }
        self.out.to_server.make(|bytes| bytes.extend_from_slice(&FLUSH));
        self.server.check = Check::Asked { id: statement.id, generation };
        Some(Step::Wait)
    }

    /// What the client's name means, and whether the server's part is certain.
    fn find(&mut self, name: &[u8]) -> Found<Arc<Statement>> {
        let batch = self.server.ledger.batch();
        if !self.client.is_certain(name, batch) {
            return Found::Open;
        }
        match self.client.statement(name) {
            Some(statement) if !self.server.prepared.is_certain(statement.id, batch) => Found::Open,
            Some(statement) => {
                let statement = Arc::clone(statement);
                if self.client.has_set() {
                    return self.find_as_set(name, statement);
                }
                Found::Statement(statement)
            }
            None => Found::Nothing,
        }
    }

    /// As `find`, for a client whose settings are no longer those that it prepared under. A server that does not have
    /// the statement would read its constants by the new ones: that is this client's own affair, so from now on it
    /// has a statement that nobody shares.
    #[cold]
    fn find_as_set(&mut self, name: &[u8], statement: Arc<Statement>) -> Found<Arc<Statement>> {
        if self.server.prepared.has(statement.id) {
            return Found::Statement(statement);
        }
        if self.state.as_ref().is_some_and(|state| state.pending.iter().any(Pending::changes_meaning)) {
            return Found::Open;
        }
        if statement.may_be_prepared_as(|| self.client.meaning(&self.server.login)) {
            return Found::Statement(statement);
        }
        let own = self.statements.apart(&statement);
        self.client.names().give(name, Arc::clone(&own));
        Found::Statement(own)
    }

    /// The same for all names, where SQL may say any of them.
    pub(crate) fn part_from_others(&mut self) {
        if !self.client.has_set() || !self.client.has_names() {
            return;
        }
        for (name, statement) in self.client.names().all() {
            let _own = self.find_as_set(&name, statement);
        }
    }

    pub(crate) fn describe_statement(&mut self, message: Message<'_>, name: &[u8]) -> Step {
        if name.is_empty() {
            if self.state.is_some() && self.unnamed_names_others() && !self.renew_unnamed() {
                return self.await_names();
            }
            return self.use_unnamed(message, Owed::DescribeStatement);
        }
        if self.names_are_open() {
            return self.await_names();
        }
        let statement = match self.find(name) {
            Found::Statement(statement) => statement,
            Found::Nothing => return self.use_unknown(message, name, Owed::DescribeStatement),
            Found::Open => return Step::Wait,
        };
        let statement = match self.named_in(&statement) {
            Found::Open => return self.await_names(),
            Found::Statement((other, _)) => other,
            Found::Nothing => statement,
        };
        if let Some(step) = self.ensure_prepared(message, &statement, Owed::DescribeStatement) {
            return step;
        }
        self.server.ledger.push(Entry::about(Owed::DescribeStatement, statement.id));
        let name = statement.server_name();
        self.out.to_server.make(|bytes| encode::target(bytes, tag::DESCRIBE, b'S', name.as_bytes()));
        self.discard(message);
        Step::Done
    }

    /// A portal's description is one of its statement too: drivers keep either.
    pub(crate) fn describe_portal(&mut self, message: Message<'_>, name: &[u8]) {
        let bound = self.server.undescribed.take().filter(|bound| *bound.portal == *name);
        let statement = bound.map(|bound| bound.statement);
        let marks = Marks { statement, ..Marks::default() };
        self.server.ledger.push(Entry { owed: Owed::DescribePortal, swallow: false, marks });
        self.forward(message, 0);
    }

    /// Only the client forgets: other clients may use the statement, and its turn to be evicted will come.
    pub(crate) fn close_statement(&mut self, message: Message<'_>, name: &[u8]) -> Step {
        if name.is_empty() {
            self.client.unnamed = None;
            self.server.unnamed = None;
            self.pass(message, Some(Owed::Close));
            return Step::Done;
        }
        if self.names_are_open() {
            return self.await_names();
        }
        let batch = self.server.ledger.batch();
        if !self.client.is_certain(name, batch) {
            return Step::Wait;
        }
        let is_known = self.client.statement(name).is_some();
        if !is_known && !name.starts_with(SERVER_NAME_PREFIX) {
            if let Some(state) = self.state {
                state.close_prepared(name);
            }
            self.pass(message, Some(target_owed(tag::CLOSE, true)));
            return Step::Done;
        }
        if is_known {
            self.client.names().remove(name, batch);
        }
        let marks = Marks { client_name: is_known, ..Marks::default() };
        let owed = if self.server.ledger.may_come_to_doubt() {
            self.out.to_server.make(|bytes| encode::target(bytes, tag::CLOSE, b'S', NOBODY));
            Owed::Close
        } else {
            Owed::Ours(Made::CloseComplete)
        };
        self.server.ledger.push(Entry { owed, swallow: false, marks });
        self.discard(message);
        Step::Done
    }

    /// Bind or Describe of the unnamed statement: the client's own, or an error, never a stranger's.
    fn use_unnamed(&mut self, message: Message<'_>, owed: Owed) -> Step {
        let mine = UnnamedOf { client: self.client.id, serial: self.client.unnamed_serial };
        if !self.server.has_unnamed(mine) {
            let Some(unnamed) = &self.client.unnamed else {
                return self.refuse_in_place(message, owed, Instead::NoUnnamedStatement);
            };
            self.out.to_server.make(|bytes| encode::parse(bytes, b"", &unnamed.rest));
            self.server.ledger.push(Entry::ours(Owed::Parse));
            self.server.unnamed = Some(mine);
        }
        self.pass(message, Some(owed));
        Step::Done
    }

    /// A name that the client never gave by Parse. It may have by PREPARE; the server knows.
    fn use_unknown(&mut self, message: Message<'_>, name: &[u8], owed: Owed) -> Step {
        if self.policy.misuse_closes {
            return Step::Close(Some(violation("prepared statement did not exist")));
        }
        if name.starts_with(SERVER_NAME_PREFIX) {
            self.client.push_misused(name);
            return self.refuse_in_place(message, owed, Instead::UnknownStatement);
        }
        self.pass(message, Some(owed));
        Step::Done
    }

    /// Replaces a message by one that fails at once, and its error by words of our own.
    pub(crate) fn refuse_in_place(&mut self, message: Message<'_>, owed: Owed, instead: Instead) -> Step {
        self.out.to_server.make(|bytes| match owed {
            Owed::DescribeStatement => encode::target(bytes, tag::DESCRIBE, b'S', NOBODY),
            _ => encode::bind_text(bytes, b"", NOBODY, &[]),
        });
        let owed = if owed == Owed::DescribeStatement { owed } else { Owed::Bind };
        let marks = Marks { refusal: Some(instead), ..Marks::default() };
        self.server.ledger.push(Entry { owed, swallow: false, marks });
        self.discard(message);
        Step::Done
    }

    /// The client's name that a simple query deallocates.
    pub(crate) fn deallocated(&self, message: Message<'_>) -> Found<Vec<u8>> {
        // Where statements are looked at, their names are.
        if self.policy.scans() || !self.policy.maps_statements() {
            return Found::Nothing;
        }
        if !message.is_whole || !self.client.has_names() {
            return Found::Nothing;
        }
        let Some(name) = wire::client::query(message.body).ok().and_then(sql::deallocated_name) else {
            return Found::Nothing;
        };
        let ledger = &self.server.ledger;
        if !self.client.is_certain(&name, ledger.batch()) {
            return Found::Open;
        }
        match self.client.statement(&name) {
            // It is sent behind a batch of our own, which may not end one of the client's.
            Some(_) if !ledger.is_empty() && !ledger.is_unsynced() => Found::Open,
            Some(_) => Found::Statement(name),
            None => Found::Nothing,
        }
    }

    /// `DEALLOCATE name` of a name given by Parse: the same namespace in PostgreSQL. The server is given an
    /// empty statement, which nothing can make fail, under the client's own name first, so that its answer is
    /// PostgreSQL's.
    pub(crate) fn deallocate(&mut self, name: &[u8]) {
        if !self.server.is_quiet() || self.server.status == TransactionStatus::Failed {
            return;
        }
        self.out.to_server.make(|bytes| {
            encode::parse(bytes, name, EMPTY);
            encode::sync(bytes);
        });
        self.server.ledger.push(Entry::ours(Owed::Parse));
        self.server.ledger.push(Entry::ours(Owed::Sync));
        self.client.names().forget(name);
    }
}

/// The length word of a Bind whose statement is renamed; `None` if it no longer fits the protocol.
fn renamed_length(message: Message<'_>, old: &[u8], new: &str) -> Option<i32> {
    let length = u64::from(message.header.length) + new.len() as u64 - old.len() as u64;
    i32::try_from(length).ok()
}
