//! Changes of the schema as a link sees them, and what servers say of statements that were prepared before.
//!
//! It decides whether a statement is still what its clients were told; what becomes of a client's message where
//! it is not, `prepared` decides.

use model::Digest;
use server::{Broken, Check, Entry};
use wire::server::{ErrorFields, tag};

use crate::from_server::Ear;

/// What PostgreSQL says when a prepared statement's result has changed its form since it was prepared.
pub(crate) const STALE_PLAN: &str = "cached plan must not change result type";
/// Where it says so, in every language.
const STALE_PLAN_ROUTINE: &[u8] = b"RevalidateCachedQuery";

/// Whether this is PostgreSQL's refusal of a plan whose result has changed.
pub(crate) fn is_stale_plan(error: ErrorFields<'_>) -> bool {
    error.code == Some(wire::sqlstate::FEATURE_NOT_SUPPORTED.as_bytes())
        && (error.routine == Some(STALE_PLAN_ROUTINE) || error.message == Some(STALE_PLAN.as_bytes()))
}

/// Whether a command of this tag may change what a prepared statement returns, or what is proved of a statement: it
/// may put a view, a function or a rule for rows in the place of another, or beside one of the same name.
pub(crate) fn may_change_results(command_tag: &[u8]) -> bool {
    const CREATES: [&[u8]; 6] =
        [b"VIEW\0", b"FUNCTION\0", b"AGGREGATE\0", b"OPERATOR\0", b"CAST\0", b"POLICY\0"];
    command_tag.starts_with(b"ALTER ")
        || command_tag.starts_with(b"DROP ")
        || command_tag.strip_prefix(b"CREATE ").is_some_and(|what| CREATES.contains(&what))
}

/// What FETCH gives is its cursor's, which may not be declared yet: PostgreSQL does not hold it to anything either.
fn is_fetch(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"fetch"))
}

impl Ear<'_> {
    /// A command that may change the schema is done, for this session at least.
    #[cold]
    pub(crate) fn altered(&mut self) {
        self.server.altering = true;
        self.server.renews = true;
    }

    /// Its transaction is over: what was prepared meanwhile has seen it, or has seen what was rolled back.
    #[cold]
    pub(crate) fn altered_for_all(&mut self) {
        self.server.altering = false;
        self.server.renews = true;
    }

    /// The entry whose reply describes a shared statement, if a message of this type is that.
    #[inline]
    pub(crate) fn awaited_description(&self, tag: u8) -> Option<Entry> {
        let describes = matches!(tag, tag::PARAMETER_DESCRIPTION | tag::ROW_DESCRIPTION | tag::NO_DATA);
        let front = if describes { self.server.ledger.front() } else { None };
        front.copied().filter(|entry| entry.description().is_some())
    }

    /// ParameterDescription, RowDescription or NoData of a shared statement: held against what was told of it
    /// before. `None`: it is too long.
    #[cold]
    pub(crate) fn described(&mut self, entry: Entry, tag: u8, body: Option<&[u8]>) {
        let Some(id) = entry.description() else { return };
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
        let found = self.server.prepared.find(id);
        let Some(statement) = found.filter(|found| !is_fetch(found.text())) else { return };
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
