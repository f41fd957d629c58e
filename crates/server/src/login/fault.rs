//! Why a login ends badly. Does not know what a client is told of it, or what the log says.

use std::fmt;

use auth::ScramFault;
use wire::server::ErrorFields;

use super::credential::Method;

/// The end of a login that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginError {
    /// The server refused us in its own words.
    Failed(LoginFailed),
    /// The server does not keep to the protocol or to our conditions, or we have not what it asks for.
    Fault(LoginFault),
}

/// What a server said in an ErrorResponse. Every field of one is optional, and none is believed to be short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginFailed {
    /// `FATAL`, `ERROR`...; empty if it was not said or is no word.
    pub severity: String,
    /// Five capital letters or digits, if the server sent such.
    pub sqlstate: Option<String>,
    /// The primary message, cut at [`LoginFailed::MESSAGE_BYTES_MAX`]; empty if there is none.
    pub message: String,
}

/// What is wrong with a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginFault {
    /// A message's length word is none; with the message's type.
    BadLength(u8),
    /// A message of this type has a body of another form than the protocol's.
    Malformed(u8),
    /// A message of this type is longer than any that belongs in a login.
    MessageTooLong(u8),
    /// The server asks for a method that the settings do not allow.
    MethodNotAllowed(Method),
    /// The server asks for a method that we do not speak, by its number.
    MethodUnknown(u32),
    /// A client that it asked would bind its proof to a TLS connection that does not reach the server.
    BindingLost,
    /// The secret we have does not serve the method.
    NoSecret(Method),
    /// The server is ready, but in the middle of a transaction.
    NotIdle,
    /// Too many parameters, or too long ones.
    ParametersTooLarge,
    /// SCRAM failed.
    Scram(ScramFault),
    /// The startup message we should send is longer than a server takes.
    StartupTooLong,
    /// The server never comes to an end.
    TooMuch,
    /// A message of this type does not belong where it came.
    Unexpected(u8),
    /// The server would speak a version that we did not offer.
    VersionNotOffered(u32),
}

impl LoginFailed {
    /// As much of a server's message is kept.
    pub const MESSAGE_BYTES_MAX: usize = 1024;

    pub(crate) fn read(body: &[u8]) -> LoginFailed {
        let fields = ErrorFields::parse(body);
        let word = |text: &&[u8]| text.len() <= 16 && text.iter().all(u8::is_ascii_alphabetic);
        let code = |text: &&[u8]| text.len() == 5 && text.iter().all(u8::is_ascii_alphanumeric);
        let owned = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let message = fields.message.unwrap_or_default();
        LoginFailed {
            severity: fields.severity.filter(word).map(owned).unwrap_or_default(),
            sqlstate: fields.code.filter(code).map(owned),
            message: owned(&message[..message.len().min(LoginFailed::MESSAGE_BYTES_MAX)]),
        }
    }
}

impl From<LoginFault> for LoginError {
    fn from(fault: LoginFault) -> LoginError {
        LoginError::Fault(fault)
    }
}

impl From<ScramFault> for LoginError {
    fn from(fault: ScramFault) -> LoginError {
        LoginError::Fault(LoginFault::Scram(fault))
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginError::Failed(failed) => write!(f, "server login failed: {failed}"),
            LoginError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for LoginError {}

impl fmt::Display for LoginFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoginFailed { severity, message, .. } = self;
        let separator = if severity.is_empty() { "" } else { " " };
        let message = if message.is_empty() { "(the server did not say why)" } else { message };
        write!(f, "{severity}{separator}{message}")
    }
}

impl fmt::Display for LoginFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginFault::BadLength(tag) => write!(f, "message {} from server has no valid length", Tag(*tag)),
            LoginFault::Malformed(tag) => write!(f, "malformed message {} from server", Tag(*tag)),
            LoginFault::MessageTooLong(tag) => {
                write!(f, "message {} from server is too long for a login", Tag(*tag))
            }
            LoginFault::MethodNotAllowed(method) => {
                write!(f, "server asks for the authentication method {}, which is not allowed", method.name())
            }
            LoginFault::MethodUnknown(number) => write!(f, "unknown/unsupported auth method: {number}"),
            LoginFault::BindingLost => f.write_str(
                "SCRAM channel binding cannot pass between two TLS connections: use channel_binding=disable, or no TLS \
                 to the server, or the server's own certificate for clients",
            ),
            LoginFault::NoSecret(method) => {
                write!(f, "server asks for the authentication method {}: no secret for it", method.name())
            }
            LoginFault::NotIdle => write!(f, "server is ready in the middle of a transaction"),
            LoginFault::ParametersTooLarge => write!(f, "server reports too many parameters"),
            LoginFault::Scram(fault) => write!(f, "SASL authentication with server failed: {fault}"),
            LoginFault::StartupTooLong => write!(f, "startup parameters are too long for a server"),
            LoginFault::TooMuch => write!(f, "server sends more than belongs in a login"),
            LoginFault::Unexpected(tag) => write!(f, "unexpected message {} from server in login", Tag(*tag)),
            LoginFault::VersionNotOffered(version) => {
                write!(f, "server would speak protocol version {:#x}, which was not offered", version)
            }
        }
    }
}

impl std::error::Error for LoginFault {}

/// A message's type as it can be printed.
pub(super) struct Tag(pub(super) u8);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "'{}'", char::from(self.0))
        } else {
            write!(f, "{:#04x}", self.0)
        }
    }
}
