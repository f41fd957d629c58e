//! Views of what a server sends. Each takes the body without the header.
//!
//! A server is a stranger too: every field of an error is optional, and no length is believed.

use crate::cursor::{Cursor, Malformed};

/// Message types of a server.
pub mod tag {
    #![allow(missing_docs)]
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN_RESPONSE: u8 = b'G';
    pub const COPY_OUT_RESPONSE: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
    pub const ERROR_RESPONSE: u8 = b'E';
    pub const FUNCTION_CALL_RESPONSE: u8 = b'V';
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE_RESPONSE: u8 = b'N';
    pub const NOTIFICATION_RESPONSE: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// The transaction status that ReadyForQuery tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// `I`: not in a transaction.
    Idle,
    /// `T`: in a transaction.
    InTransaction,
    /// `E`: in a transaction that has failed.
    Failed,
}

impl TransactionStatus {
    /// Reads the byte of a ReadyForQuery.
    pub fn from_byte(byte: u8) -> Result<TransactionStatus, Malformed> {
        match byte {
            b'I' => Ok(TransactionStatus::Idle),
            b'T' => Ok(TransactionStatus::InTransaction),
            b'E' => Ok(TransactionStatus::Failed),
            _ => Err(Malformed),
        }
    }

    /// The byte of a ReadyForQuery.
    pub fn byte(self) -> u8 {
        match self {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InTransaction => b'T',
            TransactionStatus::Failed => b'E',
        }
    }
}

/// Reads a ReadyForQuery body.
pub fn ready_for_query(body: &[u8]) -> Result<TransactionStatus, Malformed> {
    match body {
        [byte] => TransactionStatus::from_byte(*byte),
        _ => Err(Malformed),
    }
}

/// Reads a ParameterStatus body: name and value.
pub fn parameter_status(body: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut cursor = Cursor::new(body);
    let pair = (cursor.cstr()?, cursor.cstr()?);
    if cursor.is_empty() { Ok(pair) } else { Err(Malformed) }
}

/// Reads a CommandComplete body: the command tag, such as `SELECT 1`.
pub fn command_tag(body: &[u8]) -> Result<&[u8], Malformed> {
    let mut cursor = Cursor::new(body);
    let tag = cursor.cstr()?;
    if cursor.is_empty() { Ok(tag) } else { Err(Malformed) }
}

/// Reads a NotificationResponse body: the process that sent it, the channel and the payload.
pub fn notification(body: &[u8]) -> Result<(u32, &[u8], &[u8]), Malformed> {
    let mut cursor = Cursor::new(body);
    let parts = (cursor.u32()?, cursor.cstr()?, cursor.cstr()?);
    if cursor.is_empty() { Ok(parts) } else { Err(Malformed) }
}

/// Reads a BackendKeyData body: process id and a key of 4 to 256 bytes.
pub fn backend_key(body: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let mut cursor = Cursor::new(body);
    let process_id = cursor.u32()?;
    let key = cursor.rest();
    if (4..=crate::startup::CANCEL_KEY_MAX).contains(&key.len()) {
        Ok((process_id, key))
    } else {
        Err(Malformed)
    }
}

/// What a RowDescription body says of the values alone: names, types and lengths of the columns, and not from
/// which table they come or in which format.
pub fn row_shape(body: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut cursor = Cursor::new(body);
    let count = cursor.u16()?;
    let mut shape = count.to_be_bytes().to_vec();
    for _ in 0..count {
        shape.extend_from_slice(cursor.cstr()?);
        shape.push(0);
        let _table_and_column = cursor.bytes(6)?;
        shape.extend_from_slice(cursor.bytes(10)?);
        let _format = cursor.bytes(2)?;
    }
    if cursor.is_empty() { Ok(shape) } else { Err(Malformed) }
}

/// What an Authentication message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// Nothing more.
    Ok,
    /// The password as it is.
    CleartextPassword,
    /// The password hashed with this salt.
    Md5Password {
        /// Four random bytes.
        salt: [u8; 4],
    },
    /// One of these SASL mechanisms.
    Sasl(Mechanisms<'a>),
    /// The next SASL message.
    SaslContinue(&'a [u8]),
    /// The last SASL message.
    SaslFinal(&'a [u8]),
    /// A method that nobody here speaks (Kerberos, GSSAPI, SSPI), by its number.
    Unsupported(u32),
}

/// The list of SASL mechanisms that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms<'a>(&'a [u8]);

impl<'a> Mechanisms<'a> {
    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|&b| b == 0).filter(|name| !name.is_empty())
    }

    /// Whether the server offers this one.
    pub fn offers(self, mechanism: &str) -> bool {
        self.0.split(|&b| b == 0).any(|offered| offered == mechanism.as_bytes())
    }
}

/// Reads an Authentication body.
pub fn authentication(body: &[u8]) -> Result<Authentication<'_>, Malformed> {
    let mut cursor = Cursor::new(body);
    let kind = cursor.u32()?;
    let rest = cursor.rest();
    Ok(match kind {
        0 if rest.is_empty() => Authentication::Ok,
        3 if rest.is_empty() => Authentication::CleartextPassword,
        5 => Authentication::Md5Password { salt: rest.try_into().map_err(|_| Malformed)? },
        10 => Authentication::Sasl(Mechanisms(rest)),
        11 => Authentication::SaslContinue(rest),
        12 => Authentication::SaslFinal(rest),
        0 | 3 => return Err(Malformed),
        other => Authentication::Unsupported(other),
    })
}

/// The fields of an ErrorResponse or NoticeResponse that matter here. All are optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorFields<'a> {
    /// `V`, or `S` where the server is too old to send it: `ERROR`, `FATAL`, `PANIC`...
    pub severity: Option<&'a [u8]>,
    /// `C`: the SQLSTATE.
    pub code: Option<&'a [u8]>,
    /// `M`: the primary message.
    pub message: Option<&'a [u8]>,
    /// `R`: the function of the server's source. Unlike the message it is in no language.
    pub routine: Option<&'a [u8]>,
}

impl<'a> ErrorFields<'a> {
    /// Reads as much as is well formed; a body without end gives what came before its fault.
    pub fn parse(body: &'a [u8]) -> ErrorFields<'a> {
        let mut fields = ErrorFields::default();
        let mut cursor = Cursor::new(body);
        while let Ok(kind) = cursor.u8() {
            let Ok(text) = cursor.cstr() else { break };
            match kind {
                b'V' => fields.severity = Some(text),
                b'S' => fields.severity = fields.severity.or(Some(text)),
                b'C' => fields.code = Some(text),
                b'M' => fields.message = Some(text),
                b'R' => fields.routine = Some(text),
                0 => break,
                _ => {}
            }
        }
        fields
    }

    /// Whether the session ends with this error.
    pub fn is_fatal(self) -> bool {
        matches!(self.severity, Some(b"FATAL" | b"PANIC"))
    }
}

/// Reads a NegotiateProtocolVersion body: the newest minor version and how many options were not known.
pub fn negotiate_protocol_version(body: &[u8]) -> Result<(u32, u32), Malformed> {
    let mut cursor = Cursor::new(body);
    Ok((cursor.u32()?, cursor.u32()?))
}
