//! Every error that the console itself tells: the fact, its SQLSTATE and its words.
//!
//! Where PgBouncer has the error, its words and its `08P01` are kept: tools match them.

use std::fmt;

use wire::sqlstate;

/// Bytes of a refused command that are repeated to its sender: PgBouncer cuts the whole text at 127.
const ECHO_SIZE_MAX: usize = 93;

/// Why a command or message was not carried out. The session lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The named database is the console's own. Made by [`crate::Command::on_admin_database`].
    AdminDatabase(AdminVerb, String),
    /// The role does not allow it.
    AdminNeeded,
    /// `PAUSE` or `KILL` while all is paused.
    AlreadyPaused,
    /// A word is longer than any that could be meant, or a key is empty.
    BadArguments,
    /// A message does not have the shape of its type, given by name.
    BrokenMessage(&'static str),
    /// A cancel request ended the wait. (It also resumes, as PgBouncer does.)
    Canceled,
    /// `KILL_CLIENT`: no client has the id.
    ClientNotFound,
    /// `RESUME db` of what is not paused.
    DatabaseNotPaused(String),
    /// `DISABLE` or `ENABLE` without a name.
    DatabaseRequired,
    /// A Bind for a portal's name that is in use.
    DuplicatePortal(String),
    /// A Parse for a statement's name that is in use.
    DuplicateStatement(String),
    /// `SHOW FDS`.
    FdsNotShown,
    /// A FunctionCall message.
    FunctionCall,
    /// `KILL_CLIENT` with what is not an id.
    InvalidClientPointer,
    /// No command has this text. Made by [`Failure::invalid_command`].
    InvalidCommand(String),
    /// A format code other than 0 and 1, or the wrong number of them.
    InvalidFormats,
    /// No database has the name.
    NoSuchDatabase(String),
    /// `DRAIN NODE` or `UNDRAIN NODE`: no cluster has the host.
    NoSuchNode(String),
    /// No portal has the name.
    NoSuchPortal(String),
    /// No prepared statement has the name.
    NoSuchStatement(String),
    /// `RESUME` when nothing is paused.
    NotPaused,
    /// A statement with parameters, or values for them.
    ParametersNotTaken,
    /// A portal that has run is executed again.
    PortalDone(String),
    /// `RELOAD` met a mistake in a file; what it is, if an administrator may be told.
    ReloadFailed(Option<String>),
    /// `SET` of an unknown key, or to a value it cannot have; what is wrong with it.
    SetFailed(Option<String>),
    /// `RESUME` while shutting down.
    ShuttingDown,
    /// `SUSPEND`.
    SuspendNotBuilt,
    /// More prepared statements or portals than a session may keep.
    TooManyObjects,
}

/// What cannot be done to the console's own database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AdminVerb {
    Disable,
    Enable,
    Kill,
    Pause,
    Reconnect,
    WaitIn,
}

impl Failure {
    /// The text is no command. As much of it is kept as PgBouncer would repeat.
    pub fn invalid_command(text: &str) -> Failure {
        let fits = |&end: &usize| text.is_char_boundary(end);
        let end = (0..=text.len().min(ECHO_SIZE_MAX)).rev().find(fits).unwrap_or(0);
        Failure::InvalidCommand(text[..end].to_owned())
    }

    /// The five characters of PostgreSQL's appendix A.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Failure::AdminDatabase(..)
            | Failure::AdminNeeded
            | Failure::AlreadyPaused
            | Failure::BadArguments
            | Failure::BrokenMessage(_)
            | Failure::ClientNotFound
            | Failure::DatabaseNotPaused(_)
            | Failure::DatabaseRequired
            | Failure::InvalidClientPointer
            | Failure::InvalidCommand(_)
            | Failure::InvalidFormats
            | Failure::NoSuchDatabase(_)
            | Failure::NoSuchNode(_)
            | Failure::NotPaused
            | Failure::SetFailed(_)
            | Failure::ShuttingDown => sqlstate::PROTOCOL_VIOLATION,
            Failure::Canceled => sqlstate::QUERY_CANCELED,
            Failure::DuplicatePortal(_) => "42P03",
            Failure::DuplicateStatement(_) => sqlstate::DUPLICATE_PREPARED_STATEMENT,
            Failure::FdsNotShown
            | Failure::FunctionCall
            | Failure::ParametersNotTaken
            | Failure::SuspendNotBuilt => sqlstate::FEATURE_NOT_SUPPORTED,
            Failure::NoSuchPortal(_) => "34000",
            Failure::NoSuchStatement(_) => sqlstate::INVALID_SQL_STATEMENT_NAME,
            Failure::PortalDone(_) => "55000",
            Failure::ReloadFailed(_) => sqlstate::CONFIG_FILE_ERROR,
            Failure::TooManyObjects => sqlstate::PROGRAM_LIMIT_EXCEEDED,
        }
    }

    /// What else there is to say.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Failure::ReloadFailed(detail) | Failure::SetFailed(detail) => detail.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    // long: table
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Failure::AdminDatabase(verb, name) => return write!(f, "cannot {verb} admin db: {name}"),
            Failure::AdminNeeded => "admin access needed",
            Failure::AlreadyPaused => "already suspended/paused",
            Failure::BadArguments => "bad arguments",
            Failure::BrokenMessage(name) => return write!(f, "broken {name} packet"),
            Failure::Canceled => "canceling statement due to user request",
            Failure::ClientNotFound => "client not found",
            Failure::DatabaseNotPaused(name) => return write!(f, "database {name} is not paused"),
            Failure::DatabaseRequired => "a database is required",
            Failure::DuplicatePortal(name) => return write!(f, "cursor \"{name}\" already exists"),
            Failure::DuplicateStatement(name) => {
                return write!(f, "prepared statement \"{name}\" already exists");
            }
            Failure::FdsNotShown => "SHOW FDS is not supported: it exposes passwords and cancel keys",
            Failure::FunctionCall => "function calls are not supported by admin console",
            Failure::InvalidClientPointer => "invalid client pointer supplied",
            Failure::InvalidCommand(text) => {
                return write!(f, "invalid command '{text}', use SHOW HELP;");
            }
            Failure::InvalidFormats => "invalid result format codes",
            Failure::NoSuchDatabase(name) => return write!(f, "no such database: {name}"),
            Failure::NoSuchNode(name) => return write!(f, "no such node: {name}, use SHOW NODES;"),
            Failure::NoSuchPortal(name) => return write!(f, "portal \"{name}\" does not exist"),
            Failure::NoSuchStatement(name) if name.is_empty() => "unnamed prepared statement does not exist",
            Failure::NoSuchStatement(name) => {
                return write!(f, "prepared statement \"{name}\" does not exist");
            }
            Failure::NotPaused => "pooler is not paused/suspended",
            Failure::ParametersNotTaken => "statement parameters are not supported by admin console",
            Failure::PortalDone(name) => return write!(f, "portal \"{name}\" cannot be run"),
            Failure::ReloadFailed(_) => "RELOAD failed, see logs for additional details",
            Failure::SetFailed(_) => "SET failed",
            Failure::ShuttingDown => "pooler is shutting down",
            Failure::SuspendNotBuilt => "SUSPEND is not supported, use PAUSE",
            Failure::TooManyObjects => "too many prepared statements or portals in one admin console session",
        };
        f.write_str(text)
    }
}

impl fmt::Display for AdminVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdminVerb::Disable => "disable",
            AdminVerb::Enable => "enable",
            AdminVerb::Kill => "kill",
            AdminVerb::Pause => "pause",
            AdminVerb::Reconnect => "reconnect",
            AdminVerb::WaitIn => "wait in",
        })
    }
}
