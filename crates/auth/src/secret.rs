//! Secrets that cannot be printed by accident: no `Display`, a `Debug` without the value, wiped when dropped,
//! compared in constant time. Does not know what a secret is used for, nor where it came from.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::md5::Md5Secret;
use crate::scram::ScramVerifier;

/// A password in clear text, or another text that must not be shown.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes the bytes over; they are wiped when the password is dropped.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Password {
        Password(Zeroizing::new(bytes.into()))
    }

    /// The bytes themselves. Every use of this is a place where a secret could leak.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    /// True for a password of no bytes, which never matches anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compares digests, so that the time taken does not tell where, or whether only the lengths, differ.
impl PartialEq for Password {
    fn eq(&self, other: &Password) -> bool {
        Sha256::digest(self.reveal()).ct_eq(&Sha256::digest(other.reveal())).into()
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// What we keep to recognise a user by: the second field of auth_file, or the second column of auth_query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredSecret {
    /// The password itself.
    Clear(Password),
    /// `md5` and 32 hexadecimal digits.
    Md5(Md5Secret),
    /// A SCRAM-SHA-256 verifier.
    Scram(ScramVerifier),
    /// The user exists and no password is right: an empty secret, a NULL, or a broken verifier.
    Unusable,
}

impl StoredSecret {
    /// Tells the kinds of secret apart by their form, as PostgreSQL does: `md5` and 32 lower-case digits, a
    /// SCRAM verifier, else clear text. Unlike PostgreSQL a text that begins as a verifier and is none is
    /// unusable: taken as clear text, whoever had seen it could log in with it.
    pub fn parse(text: &[u8]) -> StoredSecret {
        if text.is_empty() {
            StoredSecret::Unusable
        } else if let Some(md5) = Md5Secret::parse(text) {
            StoredSecret::Md5(md5)
        } else if text.starts_with(ScramVerifier::PREFIX) {
            ScramVerifier::parse(text).map_or(StoredSecret::Unusable, StoredSecret::Scram)
        } else {
            StoredSecret::Clear(Password::new(text))
        }
    }

    /// True if checking a clear-text password against this secret runs PBKDF2.
    pub fn check_is_slow(&self) -> bool {
        matches!(self, StoredSecret::Scram(_))
    }
}
