//! Names of prepared statements in SQL: one namespace with those of the protocol, as in PostgreSQL.
//!
//! What a client has prepared by the protocol has another name on servers. So `EXECUTE name` is rewritten to that, and
//! `PREPARE name` of a name in use is refused as PostgreSQL refuses it.

use std::ops::Range;
use std::sync::Arc;

use model::Statement;
use server::{Entry, Instead, Owed};
use sql::state::{Effect, Effects};
use wire::encode;
use wire::server::TransactionStatus;

use crate::from_client::{Message, Pair, Step};
use crate::noted::Noted;

/// A query whose names are to be replaced.
pub(crate) struct Renamed {
    /// Where each name stands in the text, in order, and what it means.
    pub(crate) names: Vec<(Range<usize>, Arc<Statement>)>,
    /// What it does waits for its answer.
    pub(crate) has_deeds: bool,
}

impl Pair<'_> {
    /// Looks for names that were given by the protocol.
    #[cold]
    pub(crate) fn named_by_sql(
        &mut self,
        text: &[u8],
        effects: &Effects<'_>,
    ) -> Result<Option<Renamed>, Noted> {
        let (client, batch) = (&*self.client, self.server.ledger.batch());
        let mut names = Vec::new();
        let (mut is_open, mut in_use) = (false, None);
        effects.each(|_, effect| {
            let (Effect::Execute(name) | Effect::Prepare { name, .. }) = effect else { return };
            let known = name.to_vec();
            is_open |= !client.is_certain(&known, batch);
            let Some(statement) = client.statement(&known) else { return };
            let written = name.as_written();
            let start = (written.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
            match effect {
                Effect::Execute(_) if text.get(start..start + written.len()) == Some(written) => {
                    names.push((start..start + written.len(), Arc::clone(statement)));
                }
                Effect::Prepare { .. } => in_use = Some(known),
                _ => {}
            }
        });
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

    /// Sends the query with the names that the server knows, behind the statements that it does not have yet.
    #[cold]
    pub(crate) fn run_renamed(&mut self, message: Message<'_>, renamed: &Renamed, mut entry: Entry) -> Step {
        let text = wire::client::query(message.body).unwrap_or_default();
        let mut rewritten = Vec::with_capacity(text.len() + 16);
        let (mut at, mut prepares) = (0, false);
        for (range, statement) in &renamed.names {
            if !self.server.prepared.touch(statement.id) {
                self.send_parse(statement, true, false);
                prepares = true;
            }
            rewritten.extend_from_slice(&text[at..range.start]);
            rewritten.extend_from_slice(statement.server_name().as_bytes());
            at = range.end;
        }
        rewritten.extend_from_slice(&text[at..]);
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
