//! Every error that Howdah itself tells a client: the fact, its SQLSTATE and its words, in one place.
//!
//! The words are PgBouncer's where it has them, because people's tools match them; the SQLSTATE is the one
//! that PostgreSQL's appendix A has for the fact, where PgBouncer says `08P01` to everything.
//! What the log says about the same fact is the log's own business.

use std::borrow::Cow;
use std::fmt;

/// Why a client is refused, disconnected or answered with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An administrator ended the session.
    AdminForcedDisconnect,
    /// The auth_query could not be run, or the entry is misconfigured. The log says what is wrong.
    BouncerConfigError,
    /// The client's certificate does not prove the user.
    CertificateFailed,
    /// Nothing came from the client for `client_idle_timeout`.
    ClientIdleTimeout,
    /// The login took longer than `client_login_timeout`; `true` if it waited for the pool's first server.
    ClientLoginTimeout(bool),
    /// `connect timeout`: no server could be reached.
    ConnectFailed,
    /// A Parse for a name that is in use (42P05).
    DuplicateStatement(String),
    /// The database entry was changed by a reload.
    DatabaseChanged,
    /// The database was disabled on the console.
    DatabaseDisabled(String),
    /// The database entry is gone, or was killed on the console.
    DatabaseRemoved,
    /// An empty password.
    EmptyPassword,
    /// No server of the cluster was what the database wants for `failover_timeout`.
    FailoverTimeout,
    /// Idle in a transaction for `idle_transaction_timeout`.
    IdleTransactionTimeout,
    /// The server refused a parameter that the client relies on.
    InvalidServerParameter,
    /// A rule of the HBA file says `reject`.
    LoginRejected,
    /// `max_client_conn` is reached.
    MaxClientConn,
    /// `max_db_client_connections` is reached.
    MaxDbClientConnections,
    /// `max_user_client_connections` is reached.
    MaxUserClientConnections,
    /// No HBA rule matches.
    NoAuthenticationMethod,
    /// The user may not use the console.
    NotAllowed,
    /// Notifications that the client did not take exceed `notify_queue_size_max`, in bytes.
    NotificationsUnread(u64),
    /// The connection that listened for the client was lost, and what came meanwhile nobody knows.
    NotificationsLost,
    /// The database is not known; told only to who has the right password.
    NoSuchDatabase(String),
    /// The user is not known and need not prove anything.
    NoSuchUser,
    /// No user in the startup message.
    NoUserName,
    /// The server was lost, and what became of the transaction cannot be known.
    OutcomeUnknown,
    /// A wrong password, an unknown user, an unusable secret.
    PasswordFailed(String),
    /// A client waited for longer than `query_wait_timeout` until it may keep a server for its session state.
    PinWaitTimeout,
    /// `disable_pqexec` is on.
    PqExecDisallowed,
    /// Bytes that are not the protocol, with what is wrong about them.
    ProtocolViolation(Cow<'static, str>),
    /// A query ran longer than `query_timeout`.
    QueryTimeout,
    /// A query waited for a server longer than `query_wait_timeout`.
    QueryWaitTimeout,
    /// A cancel request reached the client while it waited.
    QueryCanceled,
    /// SASL did not prove the user.
    SaslFailed,
    /// The server is to have no more work: the session that had it alone ends between two transactions.
    OwnServerLeaves,
    /// The server that the session had alone is lost, and its login cannot be repeated.
    OwnServerLost,
    /// The server connection was lost in the middle.
    ServerCrashed,
    /// The server's own words at login: SQLSTATE and message.
    ServerLoginFailed(String, String),
    /// A SHUTDOWN WAIT_FOR_SERVERS is under way.
    ServerShuttingDown,
    /// The pooler takes no more clients.
    ShuttingDown,
    /// A statement would make session state, and may not: what and why.
    SessionState(String),
    /// The server was lost, and with it session state that only it had: what, and the server's last words.
    StateLost(String, String),
    /// Plain text where TLS is required.
    SslRequired,
    /// A prepared statement is larger than may be kept, in bytes.
    StatementTooLarge(u64),
    /// A transaction ran longer than `transaction_timeout`.
    TransactionTimeout,
    /// A transaction block in statement mode.
    TransactionInStatementMode,
    /// The user does not exist, and `trust` asks for no proof.
    TrustFailed,
    /// A name that no prepared statement has (26000).
    UnknownStatement(String),
    /// A Unix socket's peer is not the user.
    UnixLoginRejected,
    /// A startup parameter that nobody would apply.
    UnsupportedStartupParameter(String),
    /// A major protocol version other than 3.
    UnsupportedVersion(u16, u16),
    /// A user name over 127 bytes.
    UserNameTooLong,
}

/// Whether the session goes on after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// FATAL: the connection closes.
    Closes,
    /// ERROR: the session lives.
    Lives,
}

impl Refusal {
    /// Whether the connection closes after it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Refusal::DuplicateStatement(_)
            | Refusal::UnknownStatement(_)
            | Refusal::QueryCanceled
            | Refusal::SessionState(_)
            | Refusal::OutcomeUnknown
            | Refusal::StatementTooLarge(_) => Outcome::Lives,
            _ => Outcome::Closes,
        }
    }

    /// The five characters of PostgreSQL's appendix A.
    pub fn sqlstate(&self) -> &str {
        match self {
            Refusal::AdminForcedDisconnect
            | Refusal::DatabaseChanged
            | Refusal::DatabaseRemoved
            | Refusal::OwnServerLeaves
            | Refusal::ServerShuttingDown
            | Refusal::ShuttingDown => "57P01",
            Refusal::BouncerConfigError => "F0000",
            Refusal::CertificateFailed
            | Refusal::LoginRejected
            | Refusal::NoAuthenticationMethod
            | Refusal::NoUserName
            | Refusal::SslRequired
            | Refusal::TrustFailed
            | Refusal::UnixLoginRejected
            | Refusal::UserNameTooLong => "28000",
            Refusal::ClientIdleTimeout => "57P05",
            Refusal::ClientLoginTimeout(_) => "08006",
            Refusal::ConnectFailed
            | Refusal::OwnServerLost
            | Refusal::ServerCrashed
            | Refusal::StateLost(..) => "08006",
            Refusal::DatabaseDisabled(_) | Refusal::FailoverTimeout => "57P03",
            Refusal::DuplicateStatement(_) => "42P05",
            Refusal::EmptyPassword
            | Refusal::NoSuchUser
            | Refusal::PasswordFailed(_)
            | Refusal::SaslFailed => "28P01",
            Refusal::IdleTransactionTimeout => "25P03",
            Refusal::InvalidServerParameter => "22023",
            Refusal::MaxClientConn
            | Refusal::MaxDbClientConnections
            | Refusal::MaxUserClientConnections
            | Refusal::PinWaitTimeout
            | Refusal::QueryWaitTimeout => "53300",
            Refusal::NotAllowed => "42501",
            Refusal::NotificationsLost => "08006",
            Refusal::NotificationsUnread(_) => "53400",
            Refusal::NoSuchDatabase(_) => "3D000",
            Refusal::OutcomeUnknown => "08007",
            Refusal::PqExecDisallowed | Refusal::SessionState(_) | Refusal::UnsupportedVersion(..) => "0A000",
            Refusal::ProtocolViolation(_) | Refusal::TransactionInStatementMode => "08P01",
            Refusal::QueryTimeout | Refusal::QueryCanceled => "57014",
            Refusal::ServerLoginFailed(code, _) => code,
            Refusal::StatementTooLarge(_) => "54000",
            Refusal::TransactionTimeout => "25P04",
            Refusal::UnknownStatement(_) => "26000",
            Refusal::UnsupportedStartupParameter(_) => "42704",
        }
    }
}

impl fmt::Display for Refusal {
    // long: table
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Refusal::AdminForcedDisconnect => "admin forced disconnect",
            Refusal::BouncerConfigError => "bouncer config error",
            Refusal::CertificateFailed => "certificate authentication failed",
            Refusal::ClientIdleTimeout => "client_idle_timeout",
            Refusal::ClientLoginTimeout(false) => "client_login_timeout",
            Refusal::ClientLoginTimeout(true) => "client_login_timeout (server down)",
            Refusal::ConnectFailed => "connect failed",
            Refusal::DuplicateStatement(name) => {
                return write!(f, "prepared statement \"{name}\" already exists");
            }
            Refusal::DatabaseChanged => "database configuration changed",
            Refusal::DatabaseDisabled(name) => return write!(f, "database \"{name}\" is disabled"),
            Refusal::DatabaseRemoved => "database removed",
            Refusal::EmptyPassword => "empty password returned by client",
            Refusal::FailoverTimeout => "no server of the cluster takes this (failover_timeout)",
            Refusal::IdleTransactionTimeout => "idle transaction timeout",
            Refusal::InvalidServerParameter => "invalid server parameter",
            Refusal::LoginRejected => "login rejected",
            Refusal::MaxClientConn => "no more connections allowed (max_client_conn)",
            Refusal::MaxDbClientConnections => "client connections exceeded (max_db_client_connections)",
            Refusal::MaxUserClientConnections => "client connections exceeded (max_user_client_connections)",
            Refusal::NoAuthenticationMethod => "no authentication method is found",
            Refusal::NotAllowed => "not allowed",
            Refusal::NotificationsLost => {
                "notifications may have been lost: the connection that listens was lost (listen_lost = close)"
            }
            Refusal::NotificationsUnread(limit) => {
                return write!(
                    f,
                    "notifications that were not read exceed the {limit} bytes of notify_queue_size_max"
                );
            }
            Refusal::NoSuchDatabase(name) => return write!(f, "no such database: {name}"),
            Refusal::NoSuchUser => "no such user",
            Refusal::NoUserName => "no username supplied",
            Refusal::OutcomeUnknown => {
                "the server was lost in the middle of the transaction: whether it is committed is not known"
            }
            Refusal::PasswordFailed(user) => {
                return write!(f, "password authentication failed for user \"{user}\"");
            }
            Refusal::PinWaitTimeout => {
                "query_wait_timeout (max_pinned: as many clients as may keep their server for session state)"
            }
            Refusal::PqExecDisallowed => "PQexec disallowed",
            Refusal::ProtocolViolation(what) => what,
            Refusal::QueryTimeout => "query timeout",
            Refusal::QueryWaitTimeout => "query_wait_timeout",
            Refusal::QueryCanceled => "canceling statement due to user request",
            Refusal::OwnServerLeaves => "the server of this session is to have no more work: connect again",
            Refusal::OwnServerLost => {
                "the server of this session was lost, and its login cannot be repeated: connect again"
            }
            Refusal::SaslFailed => "SASL authentication failed",
            Refusal::ServerCrashed => "server conn crashed?",
            Refusal::ServerLoginFailed(_, message) => message,
            Refusal::ServerShuttingDown => "server shutting down",
            Refusal::ShuttingDown => "pooler is shutting down",
            Refusal::SessionState(words) => words,
            Refusal::StateLost(what, words) => {
                write!(f, "the server was lost, and with it session state: {what}")?;
                return match &**words {
                    "" => Ok(()),
                    words => write!(f, " (the server said: {words})"),
                };
            }
            Refusal::SslRequired => "SSL required",
            Refusal::StatementTooLarge(limit) => {
                return write!(
                    f,
                    "prepared statement is larger than the {limit} bytes of prepared_statement_size_max"
                );
            }
            Refusal::TransactionTimeout => "transaction timeout",
            Refusal::TransactionInStatementMode => "transaction blocks not allowed in statement pooling mode",
            Refusal::TrustFailed => "\"trust\" authentication failed",
            Refusal::UnknownStatement(name) => {
                return write!(f, "prepared statement \"{name}\" does not exist");
            }
            Refusal::UnixLoginRejected => "unix socket login rejected",
            Refusal::UnsupportedStartupParameter(name) => {
                return write!(f, "unsupported startup parameter: {name}");
            }
            Refusal::UnsupportedVersion(major, minor) => {
                return write!(
                    f,
                    "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2"
                );
            }
            Refusal::UserNameTooLong => "username too long",
        };
        f.write_str(text)
    }
}
