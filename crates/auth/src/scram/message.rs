//! The grammar that all SCRAM messages share: `name=value` parts with commas between them, nonces, mechanisms,
//! and how long each may be. Does not know which part belongs into which message.

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::ScramFault;

/// The two mechanisms of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Without channel binding.
    Sha256,
    /// Bound to the TLS connection by `tls-server-end-point`.
    Sha256Plus,
}

impl Mechanism {
    /// As it stands in AuthenticationSASL and SASLInitialResponse.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha256 => "SCRAM-SHA-256",
            Mechanism::Sha256Plus => "SCRAM-SHA-256-PLUS",
        }
    }

    /// By that name.
    pub fn parse(name: &[u8]) -> Option<Mechanism> {
        [Mechanism::Sha256, Mechanism::Sha256Plus].into_iter().find(|known| known.name().as_bytes() == name)
    }
}

/// Which mechanisms a server offers; names we do not know are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mechanisms {
    /// SCRAM-SHA-256.
    pub plain: bool,
    /// SCRAM-SHA-256-PLUS.
    pub plus: bool,
}

impl Mechanisms {
    /// From the names in AuthenticationSASL.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Mechanisms {
        let mut offered = Mechanisms::default();
        for name in names {
            match Mechanism::parse(name) {
                Some(Mechanism::Sha256) => offered.plain = true,
                Some(Mechanism::Sha256Plus) => offered.plus = true,
                None => {}
            }
        }
        offered
    }
}

/// Eighteen bytes that never were and never will be used again, from the shell's random source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; 18]);

impl Nonce {
    /// As it stands in a message: 24 printable characters.
    pub(super) fn text(self) -> String {
        STANDARD.encode(self.0)
    }
}

/// Reads the parts of one message from left to right.
pub(super) struct Parts<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// Refuses what is too long for any honest message, and NUL bytes.
    pub(super) fn new(message: &'a [u8]) -> Result<Parts<'a>, ScramFault> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(ScramFault::MessageTooLong);
        }
        if message.contains(&0) {
            return Err(ScramFault::Malformed);
        }
        Ok(Parts { rest: Some(message) })
    }

    /// The text up to the next comma, whatever it is.
    pub(super) fn text(&mut self) -> Result<&'a [u8], ScramFault> {
        let rest = self.rest.ok_or(ScramFault::Malformed)?;
        match rest.iter().position(|byte| *byte == b',') {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Ok(&rest[..at])
            }
            None => {
                self.rest = None;
                Ok(rest)
            }
        }
    }

    /// What has not been read; empty at the end.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or_default()
    }

    /// The value of the attribute that must stand here.
    pub(super) fn value(&mut self, name: char) -> Result<&'a [u8], ScramFault> {
        match self.next()? {
            Some((found, value)) if found == name => Ok(value),
            Some(('m', _)) => Err(ScramFault::MandatoryExtension),
            Some(_) | None => Err(ScramFault::AttributeMissing(name)),
        }
    }

    /// The next attribute, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(char, &'a [u8])>, ScramFault> {
        if self.rest.is_none() {
            return Ok(None);
        }
        match self.text()? {
            [name, b'=', value @ ..] if name.is_ascii_alphabetic() => Ok(Some((char::from(*name), value))),
            _ => Err(ScramFault::Malformed),
        }
    }

    /// Passes over optional extensions until the end of the message; they are signed with the rest.
    pub(super) fn extensions(&mut self) -> Result<(), ScramFault> {
        while let Some((name, _)) = self.next()? {
            refuse_known(name)?;
        }
        Ok(())
    }

    /// Passes over optional extensions until the attribute `last`, which must end the message.
    pub(super) fn last_value(&mut self, last: char) -> Result<&'a [u8], ScramFault> {
        while let Some((name, value)) = self.next()? {
            if name != last {
                refuse_known(name)?;
            } else if self.rest.is_some() {
                return Err(ScramFault::Malformed);
            } else {
                return Ok(value);
            }
        }
        Err(ScramFault::AttributeMissing(last))
    }
}

/// The names of RFC 5802 are no extensions.
fn refuse_known(name: char) -> Result<(), ScramFault> {
    match name {
        'm' => Err(ScramFault::MandatoryExtension),
        'a' | 'c' | 'e' | 'i' | 'n' | 'p' | 'r' | 's' | 'v' => Err(ScramFault::AttributeUnexpected(name)),
        _ => Ok(()),
    }
}

/// A nonce as the other side may send it: printable, not empty, not too long.
pub(super) fn checked_nonce(nonce: &[u8]) -> Result<&[u8], ScramFault> {
    if nonce.len() > NONCE_BYTES_MAX {
        Err(ScramFault::NonceTooLong)
    } else if nonce.is_empty() || !nonce.iter().all(u8::is_ascii_graphic) {
        Err(ScramFault::NonceMalformed)
    } else {
        Ok(nonce)
    }
}

/// A salt in base64, bounded before it is decoded.
pub(super) fn decoded_salt(text: &[u8]) -> Result<Vec<u8>, ScramFault> {
    if text.len() > SALT_BYTES_MAX.div_ceil(3) * 4 {
        return Err(ScramFault::SaltTooLong);
    }
    let salt = STANDARD.decode(text).map_err(|_| ScramFault::SaltMalformed)?;
    match salt.len() {
        0 => Err(ScramFault::SaltMalformed),
        1..=SALT_BYTES_MAX => Ok(salt),
        _ => Err(ScramFault::SaltTooLong),
    }
}

/// An iteration count: plain decimal digits, between 1 and `most`.
pub(super) fn decoded_iterations(text: &[u8], most: u32) -> Result<NonZeroU32, ScramFault> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(ScramFault::IterationsMalformed);
    }
    // Ten digits hold every count that fits, so a longer text is out of range without being read.
    let number = std::str::from_utf8(text).ok().filter(|text| text.len() <= 10);
    let number = number.and_then(|text| text.parse::<NonZeroU32>().ok());
    number.filter(|count| count.get() <= most).ok_or(ScramFault::IterationsOutOfRange)
}

/// A key, proof or signature in base64; `None` unless it is exactly 32 bytes.
pub(super) fn decoded_key(text: &[u8]) -> Option<[u8; 32]> {
    // 32 bytes are 44 characters, so nothing longer is decoded.
    if text.len() != 44 {
        return None;
    }
    STANDARD.decode(text).ok()?.try_into().ok()
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The one kind of channel binding that PostgreSQL knows.
pub(super) const BINDING_TYPE: &str = "tls-server-end-point";

/// The longest message read; it holds the longest nonce, salt and binding with room for a long user name.
pub const MESSAGE_BYTES_MAX: usize = 8192;

/// The longest nonce taken from the other side.
pub const NONCE_BYTES_MAX: usize = 1024;

/// The longest salt taken from the other side.
pub const SALT_BYTES_MAX: usize = 1024;

/// How long the salts are that PostgreSQL makes, and ours.
pub const SALT_BYTES_DEFAULT: usize = 16;
