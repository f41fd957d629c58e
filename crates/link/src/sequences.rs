//! What a session has last drawn from sequences: of interest only where somebody of the pool asks for it, and then told
//! to nobody but who drew.

use client::Client;
use model::{StateMode, Statements};
use server::Owed;
use sql::state::{Effect, Effects, FunctionKind};
use wire::encode;
use wire::server::TransactionStatus;

use crate::from_client::Pair;
use crate::link::Link;

/// What others have had of sequences is nobody's business.
const FORGETS: &[u8] = b"DISCARD SEQUENCES";

/// Whether somebody of the client's application asks for what sequences have given.
#[inline]
fn are_read(client: &Client, statements: &Statements) -> bool {
    statements.sequences_are_read(|| client.parameters.value(b"application_name").unwrap_or_default())
}

impl Link {
    /// Whether it is looked at what the client draws from sequences.
    #[inline]
    pub(crate) fn remembers_sequences(&self) -> bool {
        are_read(&self.client, &self.statements)
            && self.policy.scans()
            && self.policy.state != StateMode::Refuse
    }
}

impl Pair<'_> {
    /// Whether what sequences give is of interest, and a statement may draw from one out of sight; or find what another has
    /// drawn.
    #[inline]
    pub(crate) fn draws(&self, effects: &Effects<'_>) -> bool {
        self.is_to_forget() || self.remembers_sequences() && effects.may_draw()
    }

    /// As `draws`, of a statement that is scanned only where it must be.
    #[inline]
    pub(crate) fn is_to_forget(&self) -> bool {
        self.server.may_remember && are_read(self.client, self.statements) && !self.keeps_its_server()
    }

    #[inline]
    pub(crate) fn remembers_sequences(&self) -> bool {
        are_read(self.client, self.statements) && self.policy.state != StateMode::Refuse
    }

    /// Whoever asks his session for what it last had of a sequence, and did not draw in it, is not told what others had;
    /// nor is whoever may ask later, when it is too late.
    #[cold]
    pub(crate) fn forget_others_draws(&mut self, effects: &Effects<'_>) {
        let mut reads = false;
        effects.each(|_, effect| {
            reads |= matches!(effect, Effect::Call { kind: FunctionKind::SequenceRead, .. });
        });
        let is_own = self.state.as_ref().is_some_and(|state| state.may_have_drawn());
        let ledger = &self.server.ledger;
        let is_first =
            ledger.iter().all(|entry| entry.swallow || !matches!(entry.owed, Owed::Execute | Owed::Query));
        if !(reads || self.is_to_forget())
            || is_own
            || !(is_first || self.server.may_remember)
            || self.server.status != TransactionStatus::Idle
            || self.keeps_its_server()
        {
            return;
        }
        let is_batch = ledger.is_unsynced();
        self.server.may_remember &= !self.remembers_sequences();
        if !is_batch {
            self.server.owe_query();
            self.out.to_server.make(|bytes| encode::query(bytes, FORGETS));
            return;
        }
        self.run_within_batch(b"howdah_forgets", FORGETS, 0);
    }
}
