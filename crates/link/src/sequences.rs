//! What a session has last drawn from sequences: of interest only where somebody of the pool asks for it, and then told
//! to nobody but who drew.

use model::StateMode;
use server::Owed;
use sql::state::{Effect, Effects, FunctionKind};
use wire::encode;
use wire::server::TransactionStatus;

use crate::from_client::Pair;

/// What others have had of sequences is nobody's business.
const FORGETS: &[u8] = b"DISCARD SEQUENCES";

impl Pair<'_> {
    /// Whether what sequences give is of interest, and a statement may draw from one out of sight.
    #[inline]
    pub(crate) fn draws(&self, effects: &Effects<'_>) -> bool {
        self.remembers_sequences() && effects.may_draw()
    }

    #[inline]
    pub(crate) fn remembers_sequences(&self) -> bool {
        let name = || self.client.parameters.value(b"application_name").unwrap_or_default();
        self.statements.sequences_are_read(name) && self.policy.state != StateMode::Refuse
    }

    /// Whoever asks his session for what it last had of a sequence, and did not draw in it, is not told what others had.
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
        if !reads
            || is_own
            || !is_first
            || self.server.status != TransactionStatus::Idle
            || self.keeps_its_server()
        {
            return;
        }
        if !ledger.is_unsynced() {
            self.server.owe_query();
            self.out.to_server.make(|bytes| encode::query(bytes, FORGETS));
            return;
        }
        self.run_within_batch(b"howdah_forgets", FORGETS, 0);
    }
}
