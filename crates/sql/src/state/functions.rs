//! The functions that make, end or read session state: one table, and a filter that lets other words pass quickly.

use FunctionKind as Kind;

/// What calling a function does to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `set_config(name, value, is_local)`.
    SetConfig,
    /// Sets a parameter that its arguments do not name.
    HiddenSet,
    /// Takes session advisory locks, or tries to.
    LockTake,
    /// Gives one session advisory lock back.
    LockRelease,
    /// Gives all session advisory locks back.
    LockReleaseAll,
    /// Gives the session a last value of a sequence.
    SequenceAdvance,
    /// Reads what this session last had of a sequence.
    SequenceRead,
    /// Works on a large object's descriptor, which PostgreSQL closes at the end of the transaction.
    LargeObject,
    /// Opens a connection of dblink that stays with the session.
    ConnectionOpen,
    /// Closes one.
    ConnectionClose,
    /// May make a replication slot that lives as long as the session.
    SlotCreate,
    /// Drops a replication slot.
    SlotDrop,
    /// Begins a base backup, which must end in the same session.
    BackupStart,
    /// Ends a base backup.
    BackupStop,
    /// Ties the session to a replication origin.
    OriginSetup,
    /// Unties it.
    OriginReset,
    /// Seeds this session's random numbers.
    Seed,
    /// Runs SQL that it is given as text.
    RunsText,
    /// Like NOTIFY: no state.
    Notify,
    /// Tells on which channels the session listens: no state, but a question about some.
    ListenRead,
    /// One that the caller named: state of a kind that is not known here.
    Named,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// In lower case.
    pub name: &'static str,
    /// What it does.
    pub kind: FunctionKind,
    /// The first major version of PostgreSQL that has it, 0 for all that are supported.
    pub since: u16,
    /// The last one, or `u16::MAX`. A name that a server does not have is an error there, and no state.
    pub until: u16,
}

const fn always(name: &'static str, kind: FunctionKind) -> Function {
    Function { name, kind, since: 0, until: u16::MAX }
}

const fn between(name: &'static str, kind: FunctionKind, since: u16, until: u16) -> Function {
    Function { name, kind, since, until }
}

/// All that PostgreSQL and its own extensions have, whatever the version.
///
/// Not here, for they end with the transaction: `pg_advisory_xact_lock` and its kin, `pg_export_snapshot`,
/// `pg_replication_origin_xact_setup`.
pub const FUNCTIONS: [Function; 51] = [
    always("set_config", Kind::SetConfig),
    // pg_trgm
    always("set_limit", Kind::HiddenSet),
    always("pg_advisory_lock", Kind::LockTake),
    always("pg_advisory_lock_shared", Kind::LockTake),
    always("pg_try_advisory_lock", Kind::LockTake),
    always("pg_try_advisory_lock_shared", Kind::LockTake),
    always("pg_advisory_unlock", Kind::LockRelease),
    always("pg_advisory_unlock_shared", Kind::LockRelease),
    always("pg_advisory_unlock_all", Kind::LockReleaseAll),
    always("nextval", Kind::SequenceAdvance),
    always("setval", Kind::SequenceAdvance),
    always("currval", Kind::SequenceRead),
    always("lastval", Kind::SequenceRead),
    always("lo_open", Kind::LargeObject),
    always("lo_close", Kind::LargeObject),
    always("lo_lseek", Kind::LargeObject),
    always("lo_lseek64", Kind::LargeObject),
    always("lo_tell", Kind::LargeObject),
    always("lo_tell64", Kind::LargeObject),
    always("lo_truncate", Kind::LargeObject),
    always("lo_truncate64", Kind::LargeObject),
    always("loread", Kind::LargeObject),
    always("lowrite", Kind::LargeObject),
    // dblink
    always("dblink_connect", Kind::ConnectionOpen),
    always("dblink_connect_u", Kind::ConnectionOpen),
    always("dblink_disconnect", Kind::ConnectionClose),
    always("pg_create_logical_replication_slot", Kind::SlotCreate),
    always("pg_create_physical_replication_slot", Kind::SlotCreate),
    between("pg_copy_logical_replication_slot", Kind::SlotCreate, 12, u16::MAX),
    between("pg_copy_physical_replication_slot", Kind::SlotCreate, 12, u16::MAX),
    always("pg_drop_replication_slot", Kind::SlotDrop),
    between("pg_start_backup", Kind::BackupStart, 0, 14),
    between("pg_stop_backup", Kind::BackupStop, 0, 14),
    between("pg_backup_start", Kind::BackupStart, 15, u16::MAX),
    between("pg_backup_stop", Kind::BackupStop, 15, u16::MAX),
    always("pg_replication_origin_session_setup", Kind::OriginSetup),
    always("pg_replication_origin_session_reset", Kind::OriginReset),
    always("setseed", Kind::Seed),
    always("query_to_xml", Kind::RunsText),
    always("query_to_xmlschema", Kind::RunsText),
    always("query_to_xml_and_xmlschema", Kind::RunsText),
    always("ts_stat", Kind::RunsText),
    always("ts_rewrite", Kind::RunsText),
    // tablefunc and xml2
    always("crosstab", Kind::RunsText),
    always("crosstab2", Kind::RunsText),
    always("crosstab3", Kind::RunsText),
    always("crosstab4", Kind::RunsText),
    always("connectby", Kind::RunsText),
    always("xpath_table", Kind::RunsText),
    always("pg_notify", Kind::Notify),
    always("pg_listening_channels", Kind::ListenRead),
];

/// Words that are no functions, at which a statement must be looked at closely.
const WORDS: [&str; 4] = ["temp", "temporary", "pg_temp", "pg_settings"];

/// The functions that count: PostgreSQL's, and those that the caller names.
#[derive(Clone, Debug)]
pub struct Functions {
    /// A bit for each hash of a word that counts: most other words are let pass by it.
    filter: [u64; 64],
    /// In lower case.
    named: Vec<Box<[u8]>>,
}

impl Default for Functions {
    fn default() -> Functions {
        BUILT_IN.clone()
    }
}

/// PostgreSQL's functions alone.
pub static BUILT_IN: Functions = Functions { filter: built_in_filter(), named: Vec::new() };

const fn built_in_filter() -> [u64; 64] {
    let mut filter = [0; 64];
    let mut at = 0;
    while at < FUNCTIONS.len() {
        let hash = hash(FUNCTIONS[at].name.as_bytes());
        filter[hash >> 6] |= 1 << (hash & 63);
        at += 1;
    }
    at = 0;
    while at < WORDS.len() {
        let hash = hash(WORDS[at].as_bytes());
        filter[hash >> 6] |= 1 << (hash & 63);
        at += 1;
    }
    filter
}

/// Twelve bits of a word's ends and length; the same for upper and lower case.
#[inline]
const fn hash(word: &[u8]) -> usize {
    let count = word.len();
    if count < 4 {
        return count;
    }
    let first = u32::from_le_bytes([word[0], word[1], word[2], word[3]]) | 0x2020_2020;
    let last = u32::from_le_bytes([word[count - 4], word[count - 3], word[count - 2], word[count - 1]]);
    let mixed = first ^ (last | 0x2020_2020).rotate_left(13) ^ (count as u32);
    (mixed.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

impl Functions {
    /// PostgreSQL's functions and these, each a bare name without a schema.
    pub fn with<'a>(names: impl IntoIterator<Item = &'a str>) -> Functions {
        let mut functions = BUILT_IN.clone();
        for name in names {
            let name = name.to_ascii_lowercase().into_bytes();
            let hash = hash(&name);
            functions.filter[hash >> 6] |= 1 << (hash & 63);
            functions.named.push(name.into());
        }
        functions
    }

    /// False if this word cannot be one that counts.
    #[inline]
    pub(crate) fn may_count(&self, word: &[u8]) -> bool {
        let hash = hash(word);
        self.filter[hash >> 6] >> (hash & 63) & 1 == 1 && self.counts(word)
    }

    fn counts(&self, word: &[u8]) -> bool {
        WORDS.iter().any(|other| word.eq_ignore_ascii_case(other.as_bytes())) || self.kind(word).is_some()
    }

    /// What the function of this name does.
    pub(crate) fn kind(&self, word: &[u8]) -> Option<FunctionKind> {
        if self.named.iter().any(|name| word.eq_ignore_ascii_case(name)) {
            return Some(Kind::Named);
        }
        FUNCTIONS
            .iter()
            .find(|known| word.eq_ignore_ascii_case(known.name.as_bytes()))
            .map(|known| known.kind)
    }
}
