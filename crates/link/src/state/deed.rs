//! What one statement does to its session, owned, until the server has answered.

use std::collections::VecDeque;
use std::sync::Arc;

use model::Statement;
use sql::state::{Discard, Reason};

use crate::by_sql::Shift;
use crate::channels::Channel;

/// Kinds of state that a server can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const LOCKS: Kinds = Kinds(1);
    pub(crate) const TEMP: Kinds = Kinds(2);
    pub(crate) const CURSORS: Kinds = Kinds(4);
    pub(crate) const LISTEN: Kinds = Kinds(8);
    pub(crate) const PREPARED: Kinds = Kinds(16);
    pub(crate) const SETTINGS: Kinds = Kinds(32);
    pub(crate) const ALL: Kinds = Kinds(63);
    /// Of interest only where somebody reads it.
    pub(crate) const SEQUENCES: Kinds = Kinds(64);
    /// Each kind but settings, with why it keeps a server.
    pub(crate) const REASONS: [(Kinds, Reason); 6] = [
        (Kinds::LOCKS, Reason::AdvisoryLock),
        (Kinds::TEMP, Reason::TempObject),
        (Kinds::CURSORS, Reason::HoldCursor),
        (Kinds::LISTEN, Reason::Listen),
        (Kinds::PREPARED, Reason::Prepared),
        (Kinds::SEQUENCES, Reason::Sequence),
    ];

    /// Whether anything may have been done.
    pub(crate) fn is_anything(self) -> bool {
        self.0 & Kinds::ALL.0 == Kinds::ALL.0
    }

    pub(crate) fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// One thing that a statement does, if it succeeds.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// A setting for the session. `written`: the value is SQL.
    Set {
        name: Box<[u8]>,
        value: Box<[u8]>,
        written: bool,
    },
    /// A setting whose value the server must be asked for.
    Ask(Box<[u8]>),
    Reset(Box<[u8]>),
    ResetAll,
    Discard(Discard),
    /// It may have made state of these kinds.
    Doubt(Kinds),
    /// It may have ended state of this kind.
    MayEnd(Kinds),
    /// It makes state that the server does not show.
    Pin(Reason),
    /// It ends one of that.
    Unpin(Reason),
    /// It listens on a channel, and so does somebody else for the client.
    Listen(Channel),
    Unlisten(Channel),
    UnlistenAll,
    /// A statement is prepared by SQL under this name, on this server alone.
    Prepare(Box<[u8]>),
    /// A statement is prepared by SQL, and goes with the client.
    Name(Box<[u8]>, Arc<Statement>),
    Deallocate(Box<[u8]>),
    /// The server has this statement no more.
    Drop(u64),
    DeallocateAll,
    Savepoint(Box<[u8]>),
    RollbackTo(Box<[u8]>),
    Release(Box<[u8]>),
    /// It ends a transaction, in the way that its tag says.
    End,
}

/// What the statements of one message do.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    deeds: VecDeque<(usize, Deed)>,
    /// How many of its statements are complete.
    done: usize,
    /// It resets what its client logged in with, and that is still to be set again behind it.
    pub(crate) awaits: bool,
    /// That was sent within the batch.
    pub(crate) is_followed: bool,
    /// By how much pieces of its text have moved.
    pub(crate) shifts: Vec<Shift>,
    /// The first word of the statement that makes state, for people.
    pub(crate) verb: Box<str>,
}

impl Pending {
    pub(crate) fn push(&mut self, statement: usize, deed: Deed) {
        self.deeds.push_back((statement, deed));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.deeds.is_empty()
    }

    pub(crate) fn count(&self, is: impl Fn(&Deed) -> bool) -> usize {
        self.deeds.iter().filter(|(_, deed)| is(deed)).count()
    }

    /// The first that `is` finds something in, with the number of its statement.
    pub(crate) fn find<T>(&self, is: impl Fn(&Deed) -> Option<T>) -> Option<(usize, T)> {
        self.deeds.iter().find_map(|(number, deed)| Some((*number, is(deed)?)))
    }

    /// Whether it changes what a transaction can undo.
    pub(crate) fn sets(&self) -> bool {
        let sets = |deed: &Deed| {
            matches!(
                deed,
                Deed::Set { .. }
                    | Deed::Reset(_)
                    | Deed::ResetAll
                    | Deed::Ask(_)
                    | Deed::Listen(_)
                    | Deed::Unlisten(_)
                    | Deed::UnlistenAll
            )
        };
        self.deeds.iter().any(|(_, deed)| sets(deed))
    }

    /// Whether it gives or takes names of prepared statements.
    pub(crate) fn gives_names(&self) -> bool {
        self.deeds.iter().any(|(_, deed)| {
            matches!(
                deed,
                Deed::Name(..)
                    | Deed::Prepare(_)
                    | Deed::Deallocate(_)
                    | Deed::DeallocateAll
                    | Deed::Discard(Discard::All)
            )
        })
    }

    /// The name that it gives to the statement of this number.
    pub(crate) fn name_of(&self, id: u64) -> Option<&[u8]> {
        self.deeds.iter().find_map(|(_, deed)| match deed {
            Deed::Name(name, statement) if statement.id == id => Some(&**name),
            _ => None,
        })
    }

    /// Whether it resets a setting of these names.
    pub(crate) fn resets(&self, names: &[Arc<[u8]>]) -> bool {
        self.deeds.iter().any(|(_, deed)| match deed {
            Deed::Reset(name) => names.iter().any(|own| own.eq_ignore_ascii_case(name)),
            Deed::ResetAll | Deed::Discard(Discard::All) => !names.is_empty(),
            _ => false,
        })
    }

    /// Of a session that keeps its server anyway: what matters is which settings go back to what they were.
    pub(crate) fn keep_settings_only(&mut self) {
        self.deeds.retain(|(_, deed)| {
            !matches!(deed, Deed::Ask(_) | Deed::Doubt(_) | Deed::MayEnd(_) | Deed::Pin(_) | Deed::Unpin(_))
        });
    }

    /// Whether a name that is looked up after it may mean something else.
    pub(crate) fn changes_meaning(&self) -> bool {
        self.deeds.iter().any(|(_, deed)| match deed {
            Deed::Set { name, .. } | Deed::Ask(name) | Deed::Reset(name) => client::is_of_meaning(name),
            Deed::ResetAll | Deed::Discard(Discard::All) => true,
            _ => false,
        })
    }

    /// The next statement is complete: what it does.
    pub(crate) fn complete(&mut self) -> Vec<Deed> {
        let statement = self.done;
        self.done += 1;
        let mut deeds = Vec::new();
        while let Some((number, _)) = self.deeds.front()
            && *number <= statement
        {
            deeds.extend(self.deeds.pop_front().map(|(_, deed)| deed));
        }
        deeds
    }

    /// What is left.
    pub(crate) fn complete_all(&mut self) -> VecDeque<(usize, Deed)> {
        std::mem::take(&mut self.deeds)
    }
}
