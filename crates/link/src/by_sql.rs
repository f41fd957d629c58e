//! Names of prepared statements in SQL: one namespace with those of the protocol, as in PostgreSQL.
//!
//! What a client has prepared by the protocol has another name on servers. So `EXECUTE name` is rewritten to that, and
//! `PREPARE name` of a name in use is refused as PostgreSQL refuses it.

use std::ops::Range;
use std::sync::Arc;

use model::Statement;
use server::{Entry, Instead, Owed};
use sql::state::{Effect, Effects};
use wire::client::Parse;
use wire::encode;
use wire::server::TransactionStatus;

use crate::from_client::{Message, Pair, Step};
use crate::noted::Noted;
use crate::prepared::{EMPTY, Found};
use crate::state::scan::scan;

/// A query whose names are to be replaced.
pub(crate) struct Renamed {
    /// Where each name stands in the text, in order, and what it means.
    pub(crate) names: Vec<(Range<usize>, Arc<Statement>)>,
    /// What it does waits for its answer.
    pub(crate) has_deeds: bool,
}

/// The names in a text.
#[derive(Default)]
struct Names {
    /// Those that are executed, where they stand, with what the protocol has prepared by them.
    names: Vec<(Range<usize>, Arc<Statement>)>,
    /// What one of them means is not certain yet.
    is_open: bool,
    /// One that is to be prepared, and is by the protocol already.
    in_use: Option<Vec<u8>>,
}

impl Pair<'_> {
    /// Looks for names that were given by the protocol.
    #[cold]
    pub(crate) fn named_by_sql(
        &mut self,
        text: &[u8],
        effects: &Effects<'_>,
    ) -> Result<Option<Renamed>, Noted> {
        let Names { names, is_open, in_use } = self.names_in(text, effects);
        let is_quiet = self.server.is_quiet();
        if is_open || (!is_quiet && !self.server.ledger.is_unsynced() && !names.is_empty()) {
            return Err(Noted::Awaited);
        }
        if let Some(name) = in_use {
            self.client.push_misused(&name);
            return Err(Noted::Refused(Instead::DuplicateStatement));
        }
        // In the middle of a batch, and in a transaction that has failed, nothing can be prepared first.
        let can_prepare = is_quiet && self.server.status != TransactionStatus::Failed;
        Ok((can_prepare && !names.is_empty()).then_some(Renamed { names, has_deeds: false }))
    }

    fn names_in(&self, text: &[u8], effects: &Effects<'_>) -> Names {
        let (client, batch) = (&*self.client, self.server.ledger.batch());
        let mut found = Names::default();
        effects.each(|_, effect| {
            let (Effect::Execute(name) | Effect::Prepare { name, .. }) = effect else { return };
            let known = name.to_vec();
            found.is_open |= !client.is_certain(&known, batch);
            let Some(statement) = client.statement(&known) else { return };
            let written = name.as_written();
            let start = (written.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
            match effect {
                Effect::Execute(_) if text.get(start..start + written.len()) == Some(written) => {
                    found.names.push((start..start + written.len(), Arc::clone(statement)));
                }
                Effect::Prepare { .. } => found.in_use = Some(known),
                _ => {}
            }
        });
        found
    }

    /// The rest of a Parse of the unnamed statement, with the names that the server knows, behind the statements that it
    /// does not have yet.
    #[cold]
    pub(crate) fn renamed_parse(&mut self, message: Message<'_>) -> Found<Vec<u8>> {
        let Ok(parse) = Parse::read(message.body) else { return Found::Nothing };
        let policy = self.policy;
        let effects = scan(parse.query(), self.client.dialect, policy);
        if effects.is_stateless() {
            return Found::Nothing;
        }
        let Names { names, is_open, .. } = self.names_in(parse.query(), &effects);
        if is_open {
            return Found::Open;
        }
        if names.is_empty() || self.server.status == TransactionStatus::Failed {
            return Found::Nothing;
        }
        let mut rest = self.rename(parse.query(), &names).0;
        rest.extend_from_slice(&parse.rest[parse.query().len()..]);
        Found::Statement(rest)
    }

    /// `DEALLOCATE name` in a batch: the server is given an empty statement of that name first.
    pub(crate) fn deallocate_within_batch(&mut self, effects: &Effects<'_>, entry: &mut Entry) -> bool {
        let mut name = None;
        effects.each(|_, effect| {
            if let Effect::Deallocate(of) = effect {
                name = Some(of.to_vec());
            }
        });
        let Some(name) = name else { return true };
        let batch = self.server.ledger.batch();
        if !self.client.is_certain(&name, batch) {
            return false;
        }
        if self.client.statement(&name).is_some() && self.policy.maps_statements() {
            self.out.to_server.make(|bytes| encode::parse(bytes, &name, EMPTY));
            self.server.ledger.push(Entry { swallow: true, ..Entry::about(Owed::Parse, 0) });
            self.client.names().remove(&name, batch);
            entry.marks.client_name = true;
        }
        true
    }

    /// The text with the servers' names; whether a statement was prepared for it.
    fn rename(&mut self, text: &[u8], names: &[(Range<usize>, Arc<Statement>)]) -> (Vec<u8>, bool) {
        let mut rewritten = Vec::with_capacity(text.len() + 16);
        let (mut at, mut prepares) = (0, false);
        for (range, statement) in names {
            if !self.server.prepared.touch(statement.id) {
                self.send_parse(statement, true, false);
                prepares = true;
            }
            rewritten.extend_from_slice(&text[at..range.start]);
            rewritten.extend_from_slice(statement.server_name().as_bytes());
            at = range.end;
        }
        rewritten.extend_from_slice(&text[at..]);
        (rewritten, prepares)
    }

    /// Sends the query with the names that the server knows, behind the statements that it does not have yet.
    #[cold]
    pub(crate) fn run_renamed(&mut self, message: Message<'_>, renamed: &Renamed, mut entry: Entry) -> Step {
        let text = wire::client::query(message.body).unwrap_or_default();
        let (rewritten, prepares) = self.rename(text, &renamed.names);
        if prepares {
            self.out.to_server.make(encode::sync);
            self.server.ledger.push(Entry::ours(Owed::Sync));
        }
        entry.marks.state = renamed.has_deeds;
        self.server.ledger.push(entry);
        self.out.to_server.make(|bytes| encode::query(bytes, &rewritten));
        self.discard(message);
        Step::Done
    }
}
