//! Changes of the schema as a link sees them, and what servers say of statements that were prepared before.
//!
//! It decides whether a statement is still what its clients were told; what becomes of a client's message where
//! it is not, `prepared` decides.

use model::Digest;
use server::{Broken, Check, Entry};
use wire::Header;
use wire::server::{ErrorFields, tag};

use crate::from_server::{Ear, Fate};

/// What PostgreSQL says when a prepared statement's result has changed its form since it was prepared.
pub(crate) const STALE_PLAN: &str = "cached plan must not change result type";
/// Where it says so, in every language.
const STALE_PLAN_ROUTINE: &[u8] = b"RevalidateCachedQuery";
/// Of a longer description nothing is kept, in bytes.
const DESCRIPTION_BYTES_MAX: u64 = 64 << 10;

/// Whether this is PostgreSQL's refusal of a plan whose result has changed.
pub(crate) fn is_stale_plan(error: ErrorFields<'_>) -> bool {
    error.code == Some(wire::sqlstate::FEATURE_NOT_SUPPORTED.as_bytes())
        && (error.routine == Some(STALE_PLAN_ROUTINE) || error.message == Some(STALE_PLAN.as_bytes()))
}

/// Whether a command of this tag may change what a prepared statement returns. `CREATE VIEW` may replace one.
pub(crate) fn may_change_results(command_tag: &[u8]) -> bool {
    command_tag.starts_with(b"ALTER ") || command_tag.starts_with(b"DROP ") || command_tag == b"CREATE VIEW\0"
}

impl Ear<'_> {
    /// A command that may change the schema is done, for this session at least.
    pub(crate) fn altered(&mut self) {
        self.server.altering = true;
        self.server.renews = true;
    }

    /// Its transaction is over: what was prepared meanwhile has seen it, or has seen what was rolled back.
    pub(crate) fn altered_for_all(&mut self) {
        self.server.altering = false;
        self.server.renews = true;
    }

    /// ParameterDescription, RowDescription or NoData. Of a shared statement it is compared with what was told
    /// of it before.
    pub(crate) fn description(&mut self, header: Header, body: &[u8], is_whole: bool) -> Fate {
        self.drop_eaten_syncs();
        let entry = self.server.ledger.front().copied();
        let Some((entry, id)) = entry.and_then(|entry| Some((entry, entry.description()?))) else {
            return self.reply(header, body);
        };
        if !is_whole && header.body() <= DESCRIPTION_BYTES_MAX {
            return Fate::More;
        }
        let fate = self.reply(header, body);
        if matches!(fate, Fate::Forward | Fate::Swallow) {
            self.described(id, entry, header.tag, is_whole.then_some(body));
        }
        fate
    }

    fn described(&mut self, id: u64, entry: Entry, tag: u8, body: Option<&[u8]>) {
        if tag == tag::PARAMETER_DESCRIPTION {
            self.server.described = body.map(Digest::of);
            return;
        }
        let parameters = self.server.described.take();
        let columns = body.map(|body| match wire::server::row_shape(body) {
            Ok(shape) if tag == tag::ROW_DESCRIPTION => Digest::of(&shape),
            _ => Digest::of(body),
        });
        let asked = match self.server.check {
            Check::Asked { id: asked, generation } if asked == id && entry.swallow => Some(generation),
            _ => None,
        };
        if asked.is_some() {
            self.server.check = Check::None;
        }
        let Some(statement) = self.server.prepared.find(id) else { return };
        let is_same = columns.is_some_and(|columns| statement.tell(parameters, columns));
        match asked {
            Some(generation) if is_same => statement.confirm(generation),
            Some(_) => self.server.check = Check::Differs(id),
            None if is_same || !statement.is_told() => {}
            None if entry.swallow => {
                self.server.renews = true;
                self.server.broken = Some(Broken::ResultChanged);
            }
            None => {
                // This client is told something else than others were.
                self.server.renews |= statement.dispute();
            }
        }
    }

    /// The server has a plan whose result has changed, and refuses to run it. It is kept: what is prepared from
    /// now on is another statement.
    pub(crate) fn found_stale(&mut self, front: Entry) {
        if self.server.altering {
            // Only this session sees the change so far, and it may be rolled back.
            return;
        }
        let statement = front.marks.statement.and_then(|id| self.server.prepared.find(id));
        let Some(statement) = statement else { return };
        // Once: a client that tries for ever must not make everybody prepare anew for ever.
        self.server.renews |= statement.refuse();
        if !statement.is_told() {
            // Nothing to compare with.
            statement.dispute();
        }
    }
}
