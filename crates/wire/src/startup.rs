//! What a client may send first: a startup message or one of the three requests that wear its clothes.

use std::fmt;

use crate::cursor::Cursor;

/// The largest first packet, as PostgreSQL's `MAX_STARTUP_PACKET_LENGTH`.
pub const FIRST_PACKET_MAX: u32 = 10_000;
/// The longest cancel key that protocol 3.2 allows.
pub const CANCEL_KEY_MAX: usize = 256;

const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// A protocol version: major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 3 is the only one spoken.
    pub major: u16,
    /// 0, or 2 with PostgreSQL 18.
    pub minor: u16,
}

impl Version {
    /// What every server since 7.4 speaks.
    pub const V3_0: Version = Version { major: 3, minor: 0 };
    /// Long cancel keys; PostgreSQL 18.
    pub const V3_2: Version = Version { major: 3, minor: 2 };
}

/// A client's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<'a> {
    /// "May we speak TLS?"
    SslRequest,
    /// "May we speak GSSAPI encryption?"
    GssEncRequest,
    /// "Stop what the session with this key does."
    CancelRequest {
        /// The number before the key.
        process_id: u32,
        /// 4 to 256 bytes.
        key: &'a [u8],
    },
    /// "Let me in."
    Startup(Startup<'a>),
}

/// A startup message with its parameters unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Startup<'a> {
    /// The version asked for.
    pub version: Version,
    parameters: &'a [u8],
}

/// Why a first packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartupFault {
    /// The length word is under 8 or over [`FIRST_PACKET_MAX`].
    BadLength,
    /// A cancel key under 4 or over 256 bytes.
    BadCancelKey,
    /// A major version other than 3.
    UnsupportedVersion(Version),
    /// The parameters are not name/value pairs that end with one zero byte.
    BadLayout,
}

impl fmt::Display for StartupFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartupFault::BadLength => write!(f, "invalid length of startup packet"),
            StartupFault::BadCancelKey => write!(f, "invalid cancel request"),
            StartupFault::UnsupportedVersion(v) => {
                write!(f, "unsupported frontend protocol {}.{}: server supports 3.0 to 3.2", v.major, v.minor)
            }
            StartupFault::BadLayout => {
                write!(f, "invalid startup packet layout: expected terminator as last byte")
            }
        }
    }
}

/// Bytes of the whole first packet once its length word is there and sound.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, StartupFault> {
    let Some(word) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*word);
    if (8..=FIRST_PACKET_MAX).contains(&length) {
        Ok(Some(length as usize))
    } else {
        Err(StartupFault::BadLength)
    }
}

impl<'a> First<'a> {
    /// Reads one whole first packet: `packet` is exactly as long as [`length`] said.
    pub fn parse(packet: &'a [u8]) -> Result<First<'a>, StartupFault> {
        let mut cursor = Cursor::new(packet);
        let (Ok(_), Ok(code)) = (cursor.u32(), cursor.u32()) else { return Err(StartupFault::BadLength) };
        match code {
            SSL_REQUEST if cursor.is_empty() => Ok(First::SslRequest),
            GSSENC_REQUEST if cursor.is_empty() => Ok(First::GssEncRequest),
            SSL_REQUEST | GSSENC_REQUEST => Err(StartupFault::BadLength),
            CANCEL_REQUEST => {
                let process_id = cursor.u32().map_err(|_| StartupFault::BadCancelKey)?;
                let key = cursor.rest();
                if !(4..=CANCEL_KEY_MAX).contains(&key.len()) {
                    return Err(StartupFault::BadCancelKey);
                }
                Ok(First::CancelRequest { process_id, key })
            }
            _ => {
                let version = Version { major: (code >> 16) as u16, minor: code as u16 };
                if version.major != 3 {
                    return Err(StartupFault::UnsupportedVersion(version));
                }
                let startup = Startup { version, parameters: cursor.rest() };
                startup.check()?;
                Ok(First::Startup(startup))
            }
        }
    }
}

impl<'a> Startup<'a> {
    /// Names and values in the order sent.
    pub fn parameters(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut cursor = Cursor::new(self.parameters);
        std::iter::from_fn(move || {
            let name = cursor.cstr().ok().filter(|name| !name.is_empty())?;
            Some((name, cursor.cstr().ok()?))
        })
    }

    fn check(self) -> Result<(), StartupFault> {
        let mut cursor = Cursor::new(self.parameters);
        loop {
            let name = cursor.cstr().map_err(|_| StartupFault::BadLayout)?;
            if name.is_empty() {
                return if cursor.is_empty() { Ok(()) } else { Err(StartupFault::BadLayout) };
            }
            cursor.cstr().map_err(|_| StartupFault::BadLayout)?;
        }
    }
}
