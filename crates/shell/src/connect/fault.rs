//! Why there is no connection. Does not know what a client is told of it.

use std::{fmt, io};

use server::login::{LoginError, LoginFailed};

use crate::dns::DnsFault;

/// How far a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Looking up the name.
    Name,
    /// Connecting to an address.
    Reach,
    /// Asking for TLS and its handshake.
    Tls,
    /// Logging in.
    Login,
    /// After a cancel request, waiting for its end.
    Cancel,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// The server sends more than it may before it is asked.
    BytesAfterLogin,
    /// The client that was to log in is gone.
    ClientGone,
    /// The server closed the connection.
    Closed(Stage),
    /// The name has no address.
    Dns(String, DnsFault),
    /// The socket failed.
    Io(Stage, io::Error),
    /// The login failed.
    Login(LoginError),
    /// The server is a standby (`true`), or none, and should not be.
    RoleDiffers(bool),
    /// The time is up.
    Timeout(Stage),
    /// The answer to SSLRequest is neither yes nor no, but this byte. An error message (`E`) is such an answer,
    /// too: nobody knows whose words they are before there is TLS, so they are not read.
    TlsBadAnswer(u8),
    /// The handshake failed.
    TlsHandshake(io::Error),
    /// TLS is required and the server has none.
    TlsRefused,
    /// No address could be connected to; the last one and why.
    Unreachable(String, io::Error),
}

impl ConnectError {
    /// The server's own words, which a client may see: only those of a login.
    pub fn refusal(&self) -> Option<&LoginFailed> {
        match self {
            ConnectError::Login(LoginError::Failed(failed)) => Some(failed),
            _ => None,
        }
    }
}

impl Stage {
    fn words(self) -> &'static str {
        match self {
            Stage::Name => "DNS lookup",
            Stage::Reach => "connect",
            Stage::Tls => "TLS handshake",
            Stage::Login => "login",
            Stage::Cancel => "cancel request",
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::BytesAfterLogin => f.write_str("server sends unasked after its login"),
            ConnectError::ClientGone => f.write_str("the client left before it was let in"),
            ConnectError::Closed(stage) => {
                write!(f, "server conn crashed? (closed during {})", stage.words())
            }
            ConnectError::Dns(name, fault) => write!(f, "{name}: {fault}"),
            ConnectError::Io(stage, error) => write!(f, "{} failed: {error}", stage.words()),
            ConnectError::Login(error) => error.fmt(f),
            ConnectError::RoleDiffers(true) => f.write_str("the server is a standby"),
            ConnectError::RoleDiffers(false) => f.write_str("the server is no standby"),
            ConnectError::Timeout(stage) => write!(f, "connect timeout (during {})", stage.words()),
            ConnectError::TlsBadAnswer(byte) => write!(f, "bad answer to SSLRequest: {byte:#04x}"),
            ConnectError::TlsHandshake(error) => write!(f, "TLS handshake failed: {error}"),
            ConnectError::TlsRefused => f.write_str("server refused SSL"),
            ConnectError::Unreachable(address, error) => write!(f, "connect to {address} failed: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<LoginError> for ConnectError {
    fn from(error: LoginError) -> ConnectError {
        ConnectError::Login(error)
    }
}
