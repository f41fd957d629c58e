//! One run of `auth_query`: who is this user, and what do we recognise him by? Does not know which connection
//! it runs on, and keeps nothing of one run for the next.
//!
//! Order of calls: [`Lookup::begin`] writes the whole question; each message of the server goes into
//! [`Lookup::handle`] until it is done. The user's name is only ever a parameter.

use std::fmt;

use auth::Password;
use wire::server::{TransactionStatus, tag};

use super::fault::{LoginFailed, Tag};
use super::frame::Message;

/// The row that an auth_query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name, as the query gives it.
    pub user: Box<[u8]>,
    /// The secret; `None` for NULL, which no password matches.
    pub secret: Option<Password>,
}

/// A question that is being answered.
#[derive(Debug)]
pub struct Lookup {
    seen: Seen,
    found: Option<Found>,
    bytes_left: usize,
}

/// How far the server has come in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Parsed,
    Bound,
    Described,
    Completed,
}

/// What comes next.
#[derive(Debug)]
pub enum LookupStep {
    /// The next message goes here.
    Next(Lookup),
    /// The answer; `None` for no row. The connection can be used again.
    Done(Option<Found>),
}

/// Why there is no answer. After any of these the connection must not be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The server's own words about the query.
    Failed(LoginFailed),
    /// The answer is not one to such a query.
    Fault(LookupFault),
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupFault {
    /// Another number of columns than two.
    ColumnsNotTwo(u16),
    /// A message of this type has a body of another form than the protocol's.
    Malformed(u8),
    /// The server is in a transaction afterwards.
    NotIdle,
    /// The query is longer than a message can be.
    QueryTooLong,
    /// More than one row.
    TooManyRows,
    /// The server never comes to an end.
    TooMuch,
    /// A message of this type does not belong where it came.
    Unexpected(u8),
    /// The user's name is NULL, or longer than a name can be.
    UserInvalid,
    /// The secret is longer than a secret can be.
    SecretTooLong,
}

impl Lookup {
    /// Writes the question: `query` with `user` as its `$1`.
    pub fn begin(query: &str, user: &str, out: &mut Vec<u8>) -> Result<Lookup, LookupError> {
        let start = out.len();
        let mut rest = Vec::with_capacity(query.len() + 3);
        wire::encode::cstr(&mut rest, query.as_bytes());
        // No parameter types: the server takes `$1` for what the query compares it with, so that the index on
        // `rolname`, which is of type name, serves.
        rest.extend_from_slice(&0_u16.to_be_bytes());
        let whole = wire::encode::parse(out, b"", &rest)
            && wire::encode::bind_text(out, b"", b"", &[Some(user.as_bytes())])
            && wire::encode::target(out, b'D', b'P', b"")
            && wire::encode::execute(out, b"");
        if !whole {
            out.truncate(start);
            return Err(LookupFault::QueryTooLong.into());
        }
        wire::encode::sync(out);
        Ok(Lookup { seen: Seen::Nothing, found: None, bytes_left: LOOKUP_BYTES_MAX })
    }

    /// Takes the server's next message.
    pub fn handle(mut self, message: Message<'_>) -> Result<LookupStep, LookupError> {
        let size = wire::HEADER_SIZE + message.body.len();
        self.bytes_left = self.bytes_left.checked_sub(size).ok_or(LookupFault::TooMuch)?;
        self.seen = match (message.tag, self.seen) {
            (tag::NOTICE_RESPONSE | tag::NOTIFICATION_RESPONSE | tag::PARAMETER_STATUS, seen) => seen,
            (tag::ERROR_RESPONSE, _) => {
                return Err(LookupError::Failed(LoginFailed::read(message.body)));
            }
            (tag::PARSE_COMPLETE, Seen::Nothing) => Seen::Parsed,
            (tag::BIND_COMPLETE, Seen::Parsed) => Seen::Bound,
            (tag::ROW_DESCRIPTION, Seen::Bound) => {
                let mut reader = Reader(message);
                match reader.u16()? {
                    2 => Seen::Described,
                    count => return Err(LookupFault::ColumnsNotTwo(count).into()),
                }
            }
            (tag::NO_DATA, Seen::Bound) => return Err(LookupFault::ColumnsNotTwo(0).into()),
            (tag::DATA_ROW, Seen::Described) => {
                if self.found.is_some() {
                    return Err(LookupFault::TooManyRows.into());
                }
                self.found = Some(row(message)?);
                Seen::Described
            }
            (tag::COMMAND_COMPLETE, Seen::Described) => Seen::Completed,
            (tag::READY_FOR_QUERY, Seen::Completed) => {
                return match wire::server::ready_for_query(message.body) {
                    Ok(TransactionStatus::Idle) => Ok(LookupStep::Done(self.found)),
                    Ok(_) => Err(LookupFault::NotIdle.into()),
                    Err(_) => Err(LookupFault::Malformed(message.tag).into()),
                };
            }
            _ => return Err(LookupFault::Unexpected(message.tag).into()),
        };
        Ok(LookupStep::Next(self))
    }
}

fn row(message: Message<'_>) -> Result<Found, LookupFault> {
    let mut reader = Reader(message);
    let count = reader.u16()?;
    if count != 2 {
        return Err(LookupFault::ColumnsNotTwo(count));
    }
    let user = reader.value()?.filter(|user| user.len() <= USER_BYTES_MAX).ok_or(LookupFault::UserInvalid)?;
    let secret = reader.value()?;
    if !reader.0.body.is_empty() {
        return Err(LookupFault::Malformed(message.tag));
    }
    if secret.is_some_and(|secret| secret.len() > SECRET_BYTES_MAX) {
        return Err(LookupFault::SecretTooLong);
    }
    Ok(Found { user: user.into(), secret: secret.map(Password::new) })
}

/// What of a body is unread.
struct Reader<'a>(Message<'a>);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], LookupFault> {
        let malformed = LookupFault::Malformed(self.0.tag);
        let (head, rest) = self.0.body.split_at_checked(count).ok_or(malformed)?;
        self.0.body = rest;
        Ok(head)
    }

    fn u16(&mut self) -> Result<u16, LookupFault> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A column's value, or `None` for NULL.
    fn value(&mut self) -> Result<Option<&'a [u8]>, LookupFault> {
        let bytes = self.bytes(4)?;
        match i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| LookupFault::Malformed(self.0.tag))?;
                self.bytes(length).map(Some)
            }
        }
    }
}

impl From<LookupFault> for LookupError {
    fn from(fault: LookupFault) -> LookupError {
        LookupError::Fault(fault)
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Failed(failed) => write!(f, "error in auth_query: {failed}"),
            LookupError::Fault(fault) => write!(f, "auth_query: {fault}"),
        }
    }
}

impl std::error::Error for LookupError {}

impl fmt::Display for LookupFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupFault::ColumnsNotTwo(count) => write!(f, "expected 2 columns, not {count}"),
            LookupFault::Malformed(tag) => write!(f, "malformed message {} from server", Tag(*tag)),
            LookupFault::NotIdle => f.write_str("it leaves a transaction open"),
            LookupFault::QueryTooLong => f.write_str("the query is too long"),
            LookupFault::TooManyRows => f.write_str("expected 1 row at most"),
            LookupFault::TooMuch => f.write_str("server sends more than belongs in an answer"),
            LookupFault::Unexpected(tag) => write!(f, "unexpected message {} from server", Tag(*tag)),
            LookupFault::UserInvalid => f.write_str("the user's name is NULL or too long"),
            LookupFault::SecretTooLong => f.write_str("the secret is too long"),
        }
    }
}

/// All that a server may send in answer.
const LOOKUP_BYTES_MAX: usize = 1 << 20;
/// PgBouncer's `MAX_USERNAME`, without its zero byte.
const USER_BYTES_MAX: usize = 127;
/// PgBouncer's `MAX_PASSWORD`, without its zero byte.
const SECRET_BYTES_MAX: usize = 2047;
