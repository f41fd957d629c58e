//! Names of prepared statements in SQL: one namespace with those of the protocol, as in PostgreSQL.
//!
//! Names are the client's, and servers know statements by other ones. So PREPARE, EXECUTE and DEALLOCATE are sent with the
//! server's name in the place of the client's, behind the statements that the server does not have yet. What a name
//! means is settled by the answer to the statement that gave or took it: whatever comes after it waits for that.

use std::sync::Arc;

use model::Statement;
use server::{Entry, Owed};
use sql::state::Effects;
use wire::client::tag;
use wire::encode;
use wire::server::TransactionStatus;

use crate::from_client::{FLUSH, Message, Pair, Step};
use crate::noted::Noted;
use crate::prepared::{EMPTY, Found};
use crate::state::scan::scan;

pub(crate) mod names;
mod words;

pub(crate) use names::{Names, Renamed};
pub(crate) use words::Shift;

/// What a DEALLOCATE drops in the place of a statement that others may use, with a number behind it.
const DROPS: &str = "howdah_drops";
/// Our own statement and portal that run a PREPARE within a batch.
const PREPARES: &[u8] = b"howdah_prepares";

impl Pair<'_> {
    /// Whether what a name means depends on a statement that is not answered yet.
    #[inline]
    pub(crate) fn names_are_open(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.gives_names())
    }

    /// The answer is waited for. Within a batch the server must be asked to send it.
    #[cold]
    pub(crate) fn await_names(&mut self) -> Step {
        if self.server.ledger.is_unsynced() {
            self.out.to_server.make(|bytes| bytes.extend_from_slice(&FLUSH));
        }
        Step::Wait
    }

    /// What stands for the names in a simple query. Nothing if there is none.
    #[cold]
    pub(crate) fn named_by_sql(
        &mut self,
        text: &[u8],
        effects: &Effects<'_>,
    ) -> Result<Option<Names>, Noted> {
        if !effects.names_statements() {
            return Ok(None);
        }
        if self.names_are_open() {
            let _waits = self.await_names();
            return Err(Noted::Awaited);
        }
        // In the middle of a batch nothing can be prepared first.
        let is_within = self.server.ledger.is_unsynced();
        let has_failed = self.server.status == TransactionStatus::Failed;
        let names = self.names_in(text, effects, !is_within, has_failed);
        if names.is_open || (!is_within && !self.server.is_quiet()) {
            return Err(Noted::Awaited);
        }
        Ok((!names.is_empty() && (!is_within || names.refusal.is_some())).then_some(names))
    }

    /// `has_failed`: the transaction has, and what is sent first could not be done. Within a batch it would fail where it
    /// stands, as the client's own message would.
    fn names_in(&mut self, text: &[u8], effects: &Effects<'_>, may_prepare: bool, has_failed: bool) -> Names {
        self.part_from_others();
        names::Resolver {
            client: self.client,
            prepared: &self.server.prepared,
            statements: self.statements,
            usual: &self.server.login,
            batch: self.server.ledger.batch(),
            has_failed,
            carries: may_prepare && self.policy.carries_prepare(),
            is_taken: &|name: &[u8]| self.state.as_ref().is_some_and(|state| state.has_prepared(name)),
            policy: self.policy,
            text,
            is_unicode: self.is_unicode(),
            said: Vec::new(),
            is_cleared: false,
            names: Names::default(),
        }
        .run(effects)
    }

    /// The rest of a Parse with the names that the server knows, behind the statements that it does not have yet.
    #[cold]
    pub(crate) fn renamed_rest(&mut self, rest: &[u8]) -> Found<(Vec<u8>, Names)> {
        let text = rest.split(|&byte| byte == 0).next().unwrap_or_default();
        let policy = self.policy;
        let effects = scan(text, self.client.dialect, policy);
        if !effects.names_statements() {
            return Found::Nothing;
        }
        if self.names_are_open() {
            return Found::Open;
        }
        let names = self.names_in(text, &effects, true, false);
        if names.is_open {
            return Found::Open;
        }
        // What is refused is refused when it is run.
        if names.is_empty() || names.refusal.is_some() {
            return Found::Nothing;
        }
        let mut renamed = names.apply(text);
        renamed.extend_from_slice(&rest[text.len()..]);
        Found::Statement((renamed, names))
    }

    /// A statement of the protocol whose text names others, with the server's names for them: another statement. With
    /// it, what it prepares.
    #[cold]
    pub(crate) fn stand_in(&mut self, statement: &Arc<Statement>) -> Found<(Arc<Statement>, Names)> {
        if statement.sql().is_some() {
            return Found::Nothing;
        }
        match self.renamed_rest(&statement.rest) {
            Found::Open => Found::Open,
            Found::Nothing => Found::Nothing,
            Found::Statement((rest, names)) => {
                self.place_needed(&names.needs);
                self.needed = names.needs.len();
                let meaning = self.client.meaning(&self.server.login);
                let other = self.statements.intern(&rest, &meaning);
                match self.server.prepared.is_certain(other.id, self.server.ledger.batch()) {
                    true => Found::Statement((other, names)),
                    false => Found::Open,
                }
            }
        }
    }

    /// What a statement needs, all of it at once: no one may be closed to make room for another.
    pub(crate) fn place_needed(&mut self, needs: &[Arc<Statement>]) {
        let mut has_sent = false;
        for statement in needs {
            if !self.server.prepared.touch(statement.id) {
                self.place(statement, true, false);
                has_sent = true;
            }
        }
        if has_sent {
            self.make_room(self.policy.prepared_max.max(needs.len()));
        }
    }

    /// What is made must not be there yet, and there must be room for it.
    fn clear_for(&mut self, made: &Renamed, needs: usize) {
        let makes = &made.statements;
        if makes.is_empty() {
            return;
        }
        for (_, statement) in makes {
            if self.server.prepared.touch(statement.id) {
                self.send_close(statement);
            }
        }
        let most = self.policy.prepared_max.max(makes.len() + needs);
        self.make_room(most - makes.len());
    }

    /// Gives the server empty statements for DEALLOCATE to drop.
    fn place_drops(&mut self, count: usize) {
        for number in 0..count {
            let name = names::drop_name(number);
            self.out.to_server.make(|bytes| {
                encode::target(bytes, tag::CLOSE, b'S', name.as_bytes());
                encode::parse(bytes, name.as_bytes(), EMPTY);
            });
            for owed in [Owed::Close, Owed::Parse] {
                self.server.ledger.push(Entry { swallow: true, ..Entry::about(owed, 0) });
            }
        }
    }

    /// Runs a PREPARE of ours, wherever the client is.
    pub(crate) fn send_prepare(&mut self, statement: &Statement, sql: &[u8]) {
        self.run_within_batch(PREPARES, sql, statement.id);
    }

    /// Runs something of ours that is about a statement, or about number 0, which is none.
    pub(crate) fn run_within_batch(&mut self, name: &[u8], sql: &[u8], statement: u64) {
        let rest = [sql, EMPTY].concat();
        self.out.to_server.make(|bytes| {
            // One that failed is still there.
            encode::target(bytes, tag::CLOSE, b'S', name);
            encode::parse(bytes, name, &rest);
            encode::bind_text(bytes, name, name, &[]);
            encode::execute(bytes, name);
            encode::target(bytes, tag::CLOSE, b'P', name);
            encode::target(bytes, tag::CLOSE, b'S', name);
        });
        for owed in [Owed::Close, Owed::Parse, Owed::Bind, Owed::Execute, Owed::Close, Owed::Close] {
            // Number 0 is no shared statement's.
            let about = if owed == Owed::Execute { statement } else { 0 };
            self.server.ledger.push(Entry { swallow: true, ..Entry::about(owed, about) });
        }
    }

    /// Sends the query with the names that the server knows, behind what it needs for that.
    #[cold]
    pub(crate) fn run_renamed(
        &mut self,
        message: Message<'_>,
        names: &Names,
        has_deeds: bool,
        mut entry: Entry,
    ) -> Step {
        let text = wire::client::query(message.body).unwrap_or_default();
        if !self.server.ledger.is_unsynced() {
            let before = self.server.ledger.len();
            self.clear_for(&names.made, names.needs.len());
            self.place_needed(&names.needs);
            self.place_drops(names.drops);
            if self.server.ledger.len() > before {
                self.out.to_server.make(encode::sync);
                self.server.ledger.push(Entry::ours(Owed::Sync));
            }
        }
        if let Some(state) = self.state {
            state.excuse = None;
        }
        if let Some((_, instead, name)) = &names.refusal {
            self.client.push_misused(name);
            entry.marks.refusal = Some(*instead);
        }
        entry.marks.renamed = true;
        entry.marks.state = has_deeds;
        self.server.ledger.push(entry);
        let rewritten = names.apply(text);
        self.out.to_server.make(|bytes| encode::query(bytes, &rewritten));
        self.discard(message);
        Step::Done
    }

    /// A portal is run whose statement names others: what must be there is put there, what must not is closed. What becomes
    /// of the message if it may not be run.
    #[cold]
    pub(crate) fn ready_to_run(
        &mut self,
        message: Message<'_>,
        effects: &Effects<'_>,
        made: &Renamed,
    ) -> Option<Step> {
        if !effects.names_statements() {
            return None;
        }
        if self.names_are_open() {
            return Some(self.await_names());
        }
        let names = self.names_in(effects.text(), effects, true, false);
        if names.is_open {
            return Some(Step::Wait);
        }
        if let Some((_, instead, name)) = &names.refusal {
            self.client.push_misused(name);
            return Some(self.refuse_in_place(message, Owed::Bind, *instead));
        }
        self.clear_for(made, 0);
        self.place_drops(names.drops);
        None
    }

    /// Whether a statement will fail for a name in it when it is run: that is what its client is told then.
    #[cold]
    pub(crate) fn misuses_names(&mut self, effects: &Effects<'_>) -> bool {
        self.policy.carries_prepare()
            && effects.names_statements()
            && !self.names_are_open()
            && self.names_in(effects.text(), effects, true, false).refusal.is_some()
    }

    /// What stands for the statement that a Bind or Describe is about.
    pub(crate) fn named_in(&mut self, statement: &Arc<Statement>) -> Found<(Arc<Statement>, Names)> {
        match self.does_something(statement) {
            true => self.stand_in(statement),
            false => Found::Nothing,
        }
    }

    /// What the client's unnamed statement is on this server, if it names others: parsed anew, since they may mean something
    /// else by now. False if that is open.
    #[cold]
    pub(crate) fn renew_unnamed(&mut self) -> bool {
        let Some(unnamed) = self.client.unnamed.take() else { return true };
        let found = self.renamed_rest(&unnamed.rest);
        self.client.unnamed = Some(unnamed);
        match found {
            Found::Open => false,
            Found::Nothing => true,
            Found::Statement((rest, names)) => {
                self.place_needed(&names.needs);
                self.out.to_server.make(|bytes| encode::parse(bytes, b"", &rest));
                self.server.ledger.push(Entry::ours(Owed::Parse));
                let serial = self.client.unnamed_serial;
                self.server.unnamed = Some(server::UnnamedOf { client: self.client.id, serial });
                self.state.get_or_insert_default().unnamed_made = names.made;
                true
            }
        }
    }

    /// Whether the client's unnamed statement must be parsed anew for this message.
    pub(crate) fn unnamed_names_others(&self) -> bool {
        if self.client.unnamed.is_none() {
            return false;
        }
        let text = self.state.as_ref().and_then(|state| state.text(b""));
        text.is_some_and(|text| scan(&text, self.client.dialect, self.policy).names_statements())
    }
}
