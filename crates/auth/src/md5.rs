//! The md5 exchange, both sides: `md5(md5(password + user) + salt)`. Does not know which user may use it.
//!
//! The inner digest is all that either side needs, so a stored md5 secret logs in as well as a password does.

use std::fmt;

use ::md5::{Digest, Md5};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{Password, Refusal, StoredSecret};

/// How many bytes an md5 secret or response has: `md5` and 32 hexadecimal digits.
pub const MD5_TEXT_BYTES: usize = 35;

/// The inner digest, md5(password + user), as 32 hexadecimal digits: as good as the password for this exchange.
#[derive(Clone)]
pub struct Md5Secret(Zeroizing<[u8; 32]>);

impl Md5Secret {
    /// From the password and the name of the user it belongs to.
    pub fn from_password(password: &Password, user: &str) -> Md5Secret {
        Md5Secret(hex_digest(password.reveal(), user.as_bytes()))
    }

    /// From `md5` and 32 lower-case hexadecimal digits; `None` for any other text.
    pub fn parse(text: &[u8]) -> Option<Md5Secret> {
        let digits: [u8; 32] = text.strip_prefix(b"md5")?.try_into().ok()?;
        let digits = Zeroizing::new(digits);
        digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(Md5Secret(digits))
    }

    /// What a client answers to this salt, as it stands in PasswordMessage before its NUL.
    pub fn response(&self, salt: [u8; 4]) -> Md5Response {
        let digest = hex_digest(self.0.as_slice(), &salt);
        let mut text = [0; MD5_TEXT_BYTES];
        text[..3].copy_from_slice(b"md5");
        text[3..].copy_from_slice(digest.as_slice());
        Md5Response(text)
    }

    /// The secret as PostgreSQL stores it: `md5` and the digits.
    pub fn to_text(&self) -> Password {
        Password::new([b"md5", self.0.as_slice()].concat())
    }
}

impl PartialEq for Md5Secret {
    fn eq(&self, other: &Md5Secret) -> bool {
        self.0.ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for Md5Secret {}

impl fmt::Debug for Md5Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Md5Secret(..)")
    }
}

/// The answer to one salt, `md5` and 32 hexadecimal digits.
#[derive(Clone)]
pub struct Md5Response([u8; MD5_TEXT_BYTES]);

impl Md5Response {
    /// The text for PasswordMessage, without a NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Md5Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Md5Response(..)")
    }
}

/// Checks a client's answer to `salt`. `stored` is `None` for an unknown user: the same work, the same refusal.
pub fn check_md5(
    stored: Option<&StoredSecret>,
    user: &str,
    salt: [u8; 4],
    given: &[u8],
) -> Result<(), Refusal> {
    if given.is_empty() {
        return Err(Refusal::PasswordEmpty);
    }
    let mock = || Md5Secret::from_password(&Password::new(Vec::new()), user);
    let (secret, known) = match stored {
        Some(StoredSecret::Clear(password)) if !password.is_empty() => {
            (Md5Secret::from_password(password, user), true)
        }
        Some(StoredSecret::Md5(secret)) => (secret.clone(), true),
        Some(StoredSecret::Clear(_) | StoredSecret::Scram(_) | StoredSecret::Unusable) | None => {
            (mock(), false)
        }
    };
    // A slice of another length differs at once: the length of a response is no secret.
    let same: bool = secret.response(salt).as_bytes().ct_eq(given).into();
    if same && known { Ok(()) } else { Err(Refusal::PasswordWrong) }
}

fn hex_digest(first: &[u8], second: &[u8]) -> Zeroizing<[u8; 32]> {
    let digest = Md5::new().chain_update(first).chain_update(second).finalize();
    let mut digits = Zeroizing::new([0; 32]);
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    digits
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests;
