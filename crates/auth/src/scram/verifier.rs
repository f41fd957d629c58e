//! What a client's proof is checked against: a stored verifier, or a made-up one for a user who has none. Does
//! not know the exchange, nor where verifiers are stored.

use std::fmt;
use std::num::NonZeroU32;

use zeroize::Zeroizing;

use super::keys::{ScramKeys, ServerKey, StoredKey, keyed_digest, salted_password};
use super::message::{SALT_BYTES_DEFAULT, decoded_iterations, decoded_key, decoded_salt, encoded};
use crate::Password;

/// A SCRAM-SHA-256 secret as PostgreSQL stores it: recognises the password, cannot log in with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramVerifier {
    pub(super) iterations: NonZeroU32,
    pub(super) salt: Vec<u8>,
    pub(super) stored_key: StoredKey,
    pub(super) server_key: ServerKey,
}

impl ScramVerifier {
    /// How the text of every verifier begins.
    pub const PREFIX: &'static [u8] = b"SCRAM-SHA-256$";

    /// **Slow**: makes a verifier, by [`salted_password`].
    pub fn from_password(password: &Password, salt: &[u8], iterations: NonZeroU32) -> ScramVerifier {
        let ScramKeys { stored_key, server_key, .. } =
            ScramKeys::from_salted(&salted_password(password, salt, iterations));
        ScramVerifier { iterations, salt: salt.to_vec(), stored_key, server_key }
    }

    /// Reads `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
    pub fn parse(text: &[u8]) -> Option<ScramVerifier> {
        let rest = text.strip_prefix(ScramVerifier::PREFIX)?;
        let (iterations, rest) = split(rest, b':')?;
        let (salt, rest) = split(rest, b'$')?;
        let (stored_key, server_key) = split(rest, b':')?;
        Some(ScramVerifier {
            // As many as PostgreSQL stores; what is too slow for us to compute is refused where it is computed.
            iterations: decoded_iterations(iterations, i32::MAX.unsigned_abs()).ok()?,
            salt: decoded_salt(salt).ok()?,
            stored_key: StoredKey::new(decoded_key(stored_key)?),
            server_key: ServerKey::new(decoded_key(server_key)?),
        })
    }

    /// Writes it as [`ScramVerifier::parse`] reads it.
    pub fn to_text(&self) -> Password {
        let stored_key = Zeroizing::new(encoded(self.stored_key.reveal()));
        let server_key = Zeroizing::new(encoded(self.server_key.reveal()));
        let salt = encoded(&self.salt);
        let head = format!("SCRAM-SHA-256${}:{salt}$", self.iterations);
        Password::new([head.as_str(), stored_key.as_str(), ":", server_key.as_str()].concat())
    }

    /// How often the password was hashed.
    pub fn iterations(&self) -> NonZeroU32 {
        self.iterations
    }

    /// The salt; every client that asks is told it.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// Recognises proofs.
    pub fn stored_key(&self) -> &StoredKey {
        &self.stored_key
    }

    /// Makes the server's signature.
    pub fn server_key(&self) -> &ServerKey {
        &self.server_key
    }
}

/// A key of this process, from the shell's random source, that salts for users without a verifier are made
/// from: each user has his own, and it stays the same from login to login, as a real one does.
#[derive(Clone)]
pub struct MockKey(Zeroizing<[u8; 32]>);

impl MockKey {
    /// From 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> MockKey {
        MockKey(Zeroizing::new(bytes))
    }

    /// The salt of a user who has no verifier of his own: one who does not exist, or one with a clear-text
    /// password whose verifier is made when it is first needed.
    pub fn salt(&self, user: &str) -> [u8; SALT_BYTES_DEFAULT] {
        let digest = keyed_digest(&self.0, &[b"salt", user.as_bytes()]);
        std::array::from_fn(|at| digest[at])
    }

    fn verifier(&self, user: &str, iterations: NonZeroU32) -> ScramVerifier {
        ScramVerifier {
            iterations,
            salt: self.salt(user).to_vec(),
            stored_key: StoredKey::new(keyed_digest(&self.0, &[b"stored key", user.as_bytes()])),
            server_key: ServerKey::new(keyed_digest(&self.0, &[b"server key", user.as_bytes()])),
        }
    }
}

impl fmt::Debug for MockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MockKey(..)")
    }
}

/// What one exchange with a client is checked against. It does not show which of the two it is.
#[derive(Clone, Debug)]
pub struct Credential {
    pub(super) verifier: ScramVerifier,
    pub(super) doomed: bool,
}

impl Credential {
    /// A verifier that was stored, or made from a stored password.
    pub fn stored(verifier: ScramVerifier) -> Credential {
        Credential { verifier, doomed: false }
    }

    /// For a user without one: the exchange runs to its end, and no proof is right.
    pub fn mock(key: &MockKey, user: &str, iterations: NonZeroU32) -> Credential {
        Credential { verifier: key.verifier(user, iterations), doomed: true }
    }
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = text.iter().position(|byte| *byte == at)?;
    Some((&text[..position], &text[position + 1..]))
}
