//! The verdicts and their reasons, in words for counters and reports.

use sql::fingerprint::{FIRST_WORD_BYTES, Unfit, first_word};

/// Where a statement may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// To a standby: it writes nothing, and means the same there, as of what the standby has replayed.
    Read,
    /// To the primary alone.
    Primary(Why),
}

macro_rules! whys {
    ($($(#[doc = $doc:literal])+ $name:ident = $words:literal,)+) => {
        /// Why a statement goes to the primary.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Why {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Why {
            /// All of them, each at its [`Why::index`].
            pub const ALL: &[Why] = &[$(Why::$name),+];

            /// A few words.
            pub fn words(self) -> &'static str {
                match self {
                    $(Why::$name => $words,)+
                }
            }
        }
    };
}

whys! {
    /// It is being found out: the next one like it will have a verdict.
    Undecided = "not decided yet",
    /// It writes: INSERT, UPDATE, DELETE, MERGE, SELECT INTO, or any command that is not a query.
    Write = "write",
    /// A query with INSERT, UPDATE, DELETE or MERGE within.
    WriteWithin = "data-modifying WITH",
    /// FOR UPDATE, NO KEY UPDATE, SHARE or KEY SHARE.
    Lock = "row lock",
    /// More than one statement in a string.
    Several = "several statements",
    /// SET, SHOW, LISTEN, PREPARE, EXECUTE, DECLARE, FETCH and their like.
    Session = "session command",
    /// BEGIN, COMMIT and their like.
    Transaction = "transaction control",
    /// COPY.
    Copy = "COPY",
    /// DO or CALL.
    Code = "DO or CALL",
    /// Not read: no SQL, or the text means another thing by the session's settings or encoding.
    Unreadable = "not readable",
    /// Longer, deeper or with more names than what is looked at.
    TooLong = "too long",
    /// Part of the grammar that has not been proved to be harmless.
    Syntax = "syntax not followed",
    /// A function that is volatile, by its own mark or that of a function of an aggregate.
    Volatile = "volatile function",
    /// No function of that name, or one whose defaults are not followed.
    UnknownFunction = "unknown function",
    /// A function that tells of its server, its session or its transaction numbers.
    System = "system function",
    /// An advisory lock: it is local to its server.
    AdvisoryLock = "advisory lock",
    /// nextval, currval, setval, lastval, or a sequence that is read.
    Sequence = "sequence",
    /// An operator whose function is volatile, or that is not known.
    Operator = "operator",
    /// A type whose input is volatile, a domain that checks, or a type that is not known.
    Type = "type",
    /// The database has casts, operators or types by which anything could be volatile without being named.
    Implicit = "volatile cast or operator in the database",
    /// No table of that name.
    UnknownRelation = "unknown table",
    /// A table that is not in the write-ahead log of all, as temporary ones are.
    Temporary = "temporary table",
    /// An unlogged table: empty on a standby, and not to be read there.
    Unlogged = "unlogged table",
    /// A foreign table.
    Foreign = "foreign table",
    /// A table of the system's: it may tell of its server.
    Catalog = "system catalog",
    /// It was judged a read, and a standby has refused it for good: the catalog says too little of it.
    Refuted = "refused by a standby before",
}

impl Why {
    /// Its place in [`Why::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Why a text that has no fingerprint goes to the primary. For counters and reports: it looks at the first word again.
#[inline]
pub fn unfit(text: &[u8], unfit: Unfit) -> Why {
    match unfit {
        Unfit::Several => Why::Several,
        Unfit::TooLong => Why::TooLong,
        Unfit::Unreadable => Why::Unreadable,
        Unfit::Command => of_command(text),
    }
}

fn of_command(text: &[u8]) -> Why {
    match first_word(text, &mut [0; FIRST_WORD_BYTES]) {
        b"begin" | b"start" | b"commit" | b"end" | b"rollback" | b"abort" | b"savepoint" | b"release" => {
            Why::Transaction
        }
        b"set" | b"reset" | b"show" | b"listen" | b"unlisten" | b"notify" | b"prepare" | b"execute"
        | b"deallocate" | b"declare" | b"fetch" | b"move" | b"close" | b"discard" | b"load" | b"lock"
        | b"checkpoint" | b"cluster" => Why::Session,
        b"copy" => Why::Copy,
        b"do" | b"call" => Why::Code,
        _ => Why::Write,
    }
}
