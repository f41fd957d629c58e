//! The five bytes before every message after login: a type and a length.
//!
//! The length is compared with the limit of its type before anything is done about the body, so that
//! no declared length ever drives an allocation or a wait.

use std::fmt;

/// Type byte and length word.
pub const HEADER_SIZE: usize = 5;

/// PostgreSQL's limit for messages that carry data (`PQ_LARGE_MESSAGE_LIMIT`): 1 GB less one byte.
const LARGE_LIMIT: u32 = 0x3fff_ffff;
/// PostgreSQL's limit for messages that do not (`PQ_SMALL_MESSAGE_LIMIT`).
const SMALL_LIMIT: u32 = 10_000;
/// What a server's message may have that carries neither data nor descriptions nor words.
const SERVER_SMALL_LIMIT: u32 = 65_535;
/// What a password or SASL message may have (`PG_MAX_AUTH_TOKEN_LENGTH`).
const PASSWORD_LIMIT: u32 = 65_535;

/// A message's type and its length, which counts itself but not the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type byte.
    pub tag: u8,
    /// Bytes after the type, the length word included: at least 4 in a sound message.
    pub length: u32,
}

/// Why a header is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// The length is under the 4 bytes of itself, or negative.
    BadLength,
    /// The length is over the limit of the message's type, in bytes.
    TooLong(u32),
    /// No client message has this type.
    UnknownType,
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderFault::BadLength => f.write_str("bad packet header: invalid message length"),
            HeaderFault::TooLong(limit) => {
                write!(f, "bad packet header: message is longer than the {limit} bytes allowed")
            }
            HeaderFault::UnknownType => f.write_str("unknown pkt: invalid message type"),
        }
    }
}

impl Header {
    /// Reads a header if `bytes` holds a whole one. Checks nothing.
    #[inline]
    pub fn peek(bytes: &[u8]) -> Option<Header> {
        let head = bytes.first_chunk::<HEADER_SIZE>()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        Some(Header { tag: head[0], length })
    }

    /// Bytes of the whole message with its type; at most 1 + `u32::MAX`.
    #[inline]
    pub fn total(self) -> u64 {
        1 + u64::from(self.length)
    }

    /// Bytes of the body alone.
    #[inline]
    pub fn body(self) -> u64 {
        u64::from(self.length).saturating_sub(4)
    }

    /// Whether a client may send this after login; the limit is that of PostgreSQL for the type.
    #[inline]
    pub fn check_client(self) -> Result<(), HeaderFault> {
        let limit = match self.tag {
            b'Q' | b'P' | b'B' | b'd' | b'F' => LARGE_LIMIT,
            b'p' => PASSWORD_LIMIT,
            b'E' | b'S' | b'H' | b'C' | b'D' | b'X' | b'c' | b'f' => SMALL_LIMIT,
            _ => return Err(HeaderFault::UnknownType),
        };
        self.check_length(limit)
    }

    /// Whether a server may send this: any type, a length that the type can have.
    #[inline]
    pub fn check_server(self) -> Result<(), HeaderFault> {
        let limit = match self.tag {
            b'D' | b'd' | b'T' | b't' | b'E' | b'N' | b'V' | b'A' => i32::MAX as u32,
            _ => SERVER_SMALL_LIMIT,
        };
        self.check_length(limit)
    }

    #[inline]
    fn check_length(self, limit: u32) -> Result<(), HeaderFault> {
        if self.length < 4 || self.length > i32::MAX as u32 {
            Err(HeaderFault::BadLength)
        } else if self.length - 4 > limit {
            Err(HeaderFault::TooLong(limit))
        } else {
            Ok(())
        }
    }
}
