//! The first word of a statement: every command that PostgreSQL has. A word that is none of them is not read.

/// What a statement begins with, as far as a session cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// No state but by the functions that it calls, and SELECT INTO.
    Plain,
    Alter,
    Begin,
    Call,
    Close,
    Commit,
    Create,
    Deallocate,
    Declare,
    Discard,
    Do,
    Drop,
    Execute,
    Explain,
    Listen,
    Load,
    Notify,
    Prepare,
    Release,
    Reset,
    Rollback,
    Savepoint,
    Set,
    Unlisten,
    Unknown,
}

const LONGEST: usize = 12;

impl Verb {
    pub(super) fn of(word: &[u8]) -> Verb {
        let mut lower = [0_u8; LONGEST];
        if word.len() > LONGEST {
            return Verb::Unknown;
        }
        for (to, from) in lower.iter_mut().zip(word) {
            *to = from | 0x20;
        }
        match &lower[..word.len()] {
            b"select" | b"insert" | b"update" | b"delete" | b"with" | b"values" | b"table" | b"merge" => {
                Verb::Plain
            }
            b"copy" | b"fetch" | b"move" | b"show" | b"lock" | b"truncate" => Verb::Plain,
            b"analyze" | b"analyse" | b"checkpoint" | b"cluster" | b"comment" | b"grant" | b"import"
            | b"reassign" | b"refresh" | b"reindex" | b"repack" | b"revoke" | b"security" | b"vacuum"
            | b"wait" => Verb::Plain,
            b"begin" | b"start" => Verb::Begin,
            b"commit" | b"end" => Verb::Commit,
            b"rollback" | b"abort" => Verb::Rollback,
            b"alter" => Verb::Alter,
            b"call" => Verb::Call,
            b"close" => Verb::Close,
            b"create" => Verb::Create,
            b"deallocate" => Verb::Deallocate,
            b"declare" => Verb::Declare,
            b"discard" => Verb::Discard,
            b"do" => Verb::Do,
            b"drop" => Verb::Drop,
            b"execute" => Verb::Execute,
            b"explain" => Verb::Explain,
            b"listen" => Verb::Listen,
            b"load" => Verb::Load,
            b"notify" => Verb::Notify,
            b"prepare" => Verb::Prepare,
            b"release" => Verb::Release,
            b"reset" => Verb::Reset,
            b"savepoint" => Verb::Savepoint,
            b"set" => Verb::Set,
            b"unlisten" => Verb::Unlisten,
            _ => Verb::Unknown,
        }
    }
}
