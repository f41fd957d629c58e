//! What a statement can do to a session, how the pooler can treat that, and what to do instead.

use super::functions::FunctionKind;
use crate::Literal;
use crate::name::{Name, Part};

/// One thing that a statement does, if it succeeds. It borrows the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// SET of one parameter, in any of its forms: SET ROLE is `role`, SET TIME ZONE is `timezone`.
    Set(Set<'a>),
    /// RESET of one parameter, or SET of it to DEFAULT.
    Reset {
        /// Which.
        name: Name<'a>,
        /// For this transaction only.
        is_local: bool,
    },
    /// RESET ALL.
    ResetAll,
    /// A call of set_config.
    SetConfig(SetConfig<'a>),
    /// SET TRANSACTION, SET CONSTRAINTS: until the end of the transaction.
    SetTransaction,
    /// BEGIN, COMMIT and their kin.
    Transaction(Transaction<'a>),
    /// DISCARD.
    Discard(Discard),
    /// PREPARE.
    Prepare {
        /// Of the statement.
        name: Name<'a>,
        /// What is prepared: to be scanned for what each EXECUTE does. Empty if there is none.
        body: &'a [u8],
    },
    /// EXECUTE.
    Execute(Name<'a>),
    /// EXPLAIN of an EXECUTE, which is not run.
    Explain(Name<'a>),
    /// DEALLOCATE of one name.
    Deallocate(Name<'a>),
    /// DEALLOCATE ALL.
    DeallocateAll,
    /// DECLARE of a cursor.
    Declare {
        /// Of the cursor.
        name: Name<'a>,
        /// WITH HOLD: it outlives its transaction.
        hold: bool,
    },
    /// CLOSE of one cursor.
    Close(Name<'a>),
    /// CLOSE ALL.
    CloseAll,
    /// LISTEN.
    Listen(Name<'a>),
    /// UNLISTEN of one channel.
    Unlisten(Name<'a>),
    /// UNLISTEN *.
    UnlistenAll,
    /// NOTIFY, or pg_notify.
    Notify,
    /// LOAD.
    Load,
    /// A temporary table, view or sequence, or anything in the session's own schema.
    CreateTemp {
        /// Of the object.
        name: Name<'a>,
        /// ON COMMIT DROP: it ends with its transaction.
        on_commit_drop: bool,
    },
    /// DROP of one object: once for each that a statement names.
    Drop(Name<'a>),
    /// A database that is dropped, renamed, moved or copied, for which nobody may be in it; or one that comes into being.
    Database(Name<'a>),
    /// A call of a function that makes, ends or reads session state.
    Call {
        /// What it does.
        kind: FunctionKind,
        /// As it is written, without its schema.
        name: Part<'a>,
    },
    /// May do anything, out of sight.
    Opaque(Opaque),
    /// Not to be read, or no statement that is known here: to be taken for state.
    Unread,
}

/// What a SET says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<'a> {
    /// The parameter.
    pub name: Name<'a>,
    /// Its new value.
    pub value: Value<'a>,
    /// SET LOCAL.
    pub is_local: bool,
}

/// A value, such that it can be set again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// SQL that may stand behind `SET name TO`.
    Written(&'a [u8]),
    /// SQL that may stand behind `SET TIME ZONE`.
    TimeZone(&'a [u8]),
    /// Not to be known from the text.
    Unread,
}

/// A call of set_config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetConfig<'a> {
    /// The parameter's name.
    pub name: Argument<'a>,
    /// Its new value.
    pub value: Argument<'a>,
    /// Whether for the transaction only.
    pub is_local: Argument<'a>,
    /// The statement calls it exactly once if it succeeds: it stands alone in a SELECT without FROM.
    pub is_certain: bool,
}

/// An argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// The column `name` of pg_settings, the statement's only table.
    Listed,
    /// A constant.
    Literal(Literal<'a>),
    /// TRUE or FALSE.
    Boolean(bool),
    /// `$n`: Bind has it.
    Parameter(u16),
    /// An expression.
    Unread,
}

/// What a transaction command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction<'a> {
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT, END.
    Commit {
        /// AND CHAIN.
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// AND CHAIN.
        chain: bool,
    },
    /// SAVEPOINT.
    Savepoint(Name<'a>),
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo(Name<'a>),
    /// RELEASE SAVEPOINT.
    Release(Name<'a>),
    /// PREPARE TRANSACTION: it leaves the session.
    Prepare,
    /// COMMIT PREPARED, ROLLBACK PREPARED: another's transaction.
    FinishPrepared,
}

/// What is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// Everything.
    All,
    /// Cached plans: nothing that a client can see.
    Plans,
    /// What currval and lastval know.
    Sequences,
    /// Temporary objects.
    Temp,
}

/// Why something is out of sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// DO: a program.
    Do,
    /// CALL: a procedure.
    Call,
    /// A function that runs SQL which it is given as text.
    RunsText,
}

/// How the pooler is to treat an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// No state, or state that ends with the transaction.
    None,
    /// Ends state.
    Ends,
    /// Goes with the client from server to server.
    Carried,
    /// The client keeps its server.
    Pins(Reason),
    /// Cannot be known from the text: the server must be asked.
    Unseen,
}

/// Why a client keeps its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`says` has the words")]
pub enum Reason {
    TempObject,
    TempSearchPath,
    AdvisoryLock,
    HoldCursor,
    Listen,
    Sequence,
    Library,
    Connection,
    Slot,
    Backup,
    Origin,
    Seed,
    UnreadSetting,
    NamedFunction,
    Unread,
    Prepared,
    Setting,
}

impl Reason {
    /// All of them, each at the place of its number.
    pub const ALL: [Reason; 17] = [
        Reason::TempObject,
        Reason::TempSearchPath,
        Reason::AdvisoryLock,
        Reason::HoldCursor,
        Reason::Listen,
        Reason::Sequence,
        Reason::Library,
        Reason::Connection,
        Reason::Slot,
        Reason::Backup,
        Reason::Origin,
        Reason::Seed,
        Reason::UnreadSetting,
        Reason::NamedFunction,
        Reason::Unread,
        Reason::Prepared,
        Reason::Setting,
    ];

    /// What it is, until when it lasts, and how to do without it.
    pub fn says(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Reason::TempObject => ("temporary object", "DROP, DISCARD TEMP", "ON COMMIT DROP, or a CTE"),
            Reason::TempSearchPath => {
                ("pg_temp in search_path", "RESET search_path", "name pg_temp where an object is made")
            }
            Reason::AdvisoryLock => {
                ("session advisory lock", "pg_advisory_unlock", "pg_advisory_xact_lock within a transaction")
            }
            Reason::HoldCursor => {
                ("cursor WITH HOLD", "CLOSE", "a cursor within a transaction, or pages by key")
            }
            Reason::Listen => ("LISTEN", "UNLISTEN", "listen on a connection that does nothing else"),
            Reason::Sequence => ("sequence state", "DISCARD SEQUENCES", "INSERT ... RETURNING"),
            Reason::Library => ("loaded library", "end of session", "session_preload_libraries"),
            Reason::Connection => {
                ("dblink connection", "dblink_disconnect", "dblink with a connection string")
            }
            Reason::Slot => {
                ("replication slot", "pg_drop_replication_slot", "a connection that is not pooled")
            }
            Reason::Backup => ("base backup", "pg_backup_stop", "a connection that is not pooled"),
            Reason::Origin => (
                "replication origin",
                "pg_replication_origin_session_reset",
                "pg_replication_origin_xact_setup within a transaction",
            ),
            Reason::Seed => ("random seed", "end of session", "seed and use it in one transaction"),
            Reason::UnreadSetting => (
                "setting not known from the text",
                "RESET ALL",
                "SET, or set_config with constants or parameters",
            ),
            Reason::NamedFunction => ("function named in the settings", "DISCARD ALL", "see who named it"),
            Reason::Unread => ("not read", "DISCARD ALL", "write it so that it can be read"),
            Reason::Prepared => {
                ("PREPARE", "DEALLOCATE", "prepare by the protocol, as drivers do, which is carried")
            }
            Reason::Setting => ("setting", "RESET ALL", "SET LOCAL, or session_state = carry"),
        }
    }
}

impl Effect<'_> {
    /// Whether it is about a prepared statement of a name.
    pub fn names_statement(&self) -> bool {
        matches!(
            self,
            Effect::Prepare { .. } | Effect::Execute(_) | Effect::Explain(_) | Effect::Deallocate(_)
        )
    }

    /// How the pooler is to treat it.
    pub fn class(&self) -> Class {
        match self {
            Effect::Set(set) => set.class(),
            Effect::SetConfig(set) => set.class(),
            Effect::Prepare { .. } => Class::Carried,
            Effect::Execute(_) | Effect::Explain(_) => Class::None,
            Effect::Declare { hold: true, .. } => Class::Pins(Reason::HoldCursor),
            Effect::Listen(_) => Class::Pins(Reason::Listen),
            Effect::Load => Class::Pins(Reason::Library),
            Effect::CreateTemp { on_commit_drop: false, .. } => Class::Pins(Reason::TempObject),
            Effect::Call { kind, .. } => kind.class(),
            Effect::Opaque(_) => Class::Unseen,
            Effect::Unread => Class::Pins(Reason::Unread),
            Effect::Reset { is_local: false, .. }
            | Effect::ResetAll
            | Effect::Discard(_)
            | Effect::Deallocate(_)
            | Effect::DeallocateAll
            | Effect::Close(_)
            | Effect::CloseAll
            | Effect::Unlisten(_)
            | Effect::UnlistenAll
            | Effect::Drop(_) => Class::Ends,
            Effect::Reset { .. }
            | Effect::SetTransaction
            | Effect::Transaction(_)
            | Effect::Declare { .. }
            | Effect::Notify
            | Effect::Database(_)
            | Effect::CreateTemp { .. } => Class::None,
        }
    }
}

impl Set<'_> {
    fn class(&self) -> Class {
        match self.value {
            _ if self.is_local => Class::None,
            _ if self.name.is("seed") => Class::Pins(Reason::Seed),
            Value::Unread => Class::Pins(Reason::UnreadSetting),
            Value::Written(text) if self.name.is("search_path") && has_temp(text) => {
                Class::Pins(Reason::TempSearchPath)
            }
            _ => Class::Carried,
        }
    }

    /// Adds the statement that sets this for a session, without a semicolon.
    ///
    /// It means the same only where `standard_conforming_strings` is as it was. False if there is none.
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        match self.value {
            Value::Written(text) => {
                out.extend_from_slice(b"SET ");
                out.extend_from_slice(self.name.as_written());
                out.extend_from_slice(b"\nTO ");
                out.extend_from_slice(text);
            }
            Value::TimeZone(text) => {
                out.extend_from_slice(b"SET TIME ZONE ");
                out.extend_from_slice(text);
            }
            Value::Unread => return false,
        }
        true
    }
}

impl SetConfig<'_> {
    fn class(&self) -> Class {
        let is_known = |argument| !matches!(argument, Argument::Unread);
        match (self.name, self.value) {
            _ if self.is_local == Argument::Boolean(true) => Class::None,
            // A view shows what became of it.
            (Argument::Listed, _) => Class::Carried,
            (Argument::Literal(name), _) if is_plain(name, "seed") => Class::Pins(Reason::Seed),
            (Argument::Literal(name), Argument::Literal(value))
                if is_plain(name, "search_path") && has_temp(value.text) =>
            {
                Class::Pins(Reason::TempSearchPath)
            }
            (name, value)
                if self.is_certain && is_known(name) && is_known(value) && is_known(self.is_local) =>
            {
                Class::Carried
            }
            _ => Class::Pins(Reason::UnreadSetting),
        }
    }
}

fn is_plain(literal: Literal<'_>, expect: &str) -> bool {
    literal.plain.is_some_and(|text| text.eq_ignore_ascii_case(expect.as_bytes()))
}

/// Also where it could be hidden behind an escape.
pub(super) fn has_temp(text: &[u8]) -> bool {
    text.contains(&b'\\') || text.windows(7).any(|window| window.eq_ignore_ascii_case(b"pg_temp"))
}

impl FunctionKind {
    fn class(self) -> Class {
        match self {
            FunctionKind::SetConfig | FunctionKind::HiddenSet => Class::Pins(Reason::UnreadSetting),
            FunctionKind::LockTake => Class::Pins(Reason::AdvisoryLock),
            FunctionKind::SequenceAdvance | FunctionKind::SequenceRead => Class::Pins(Reason::Sequence),
            FunctionKind::ConnectionOpen => Class::Pins(Reason::Connection),
            FunctionKind::SlotCreate => Class::Pins(Reason::Slot),
            FunctionKind::BackupStart => Class::Pins(Reason::Backup),
            FunctionKind::OriginSetup => Class::Pins(Reason::Origin),
            FunctionKind::Seed => Class::Pins(Reason::Seed),
            FunctionKind::Named => Class::Pins(Reason::NamedFunction),
            FunctionKind::RunsText => Class::Unseen,
            FunctionKind::LargeObject | FunctionKind::Notify | FunctionKind::ListenRead => Class::None,
            FunctionKind::LockRelease
            | FunctionKind::LockReleaseAll
            | FunctionKind::ConnectionClose
            | FunctionKind::SlotDrop
            | FunctionKind::BackupStop
            | FunctionKind::OriginReset => Class::Ends,
        }
    }
}
