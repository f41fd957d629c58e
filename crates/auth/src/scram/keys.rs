//! The keys of SCRAM and how they come from one another. Does not know messages or who holds which key.
//!
//! ```text
//! password --PBKDF2(salt, iterations)--> SaltedPassword --> ClientKey --> StoredKey
//!                                                      \--> ServerKey
//! ```

use std::fmt;
use std::num::NonZeroU32;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::verifier::ScramVerifier;
use crate::Password;

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Zeroizing<[u8; 32]>);

        impl $name {
            /// From its bytes.
            pub fn new(bytes: [u8; 32]) -> $name {
                $name(Zeroizing::new(bytes))
            }

            /// The bytes themselves.
            pub fn reveal(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.0.ct_eq(other.0.as_slice()).into()
            }
        }

        impl Eq for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

key! {
    /// The password after PBKDF2: the slow step's result.
    SaltedPassword
}
key! {
    /// What proves to a server that one knows the password. Whoever has it can log in.
    ClientKey
}
key! {
    /// The digest of [`ClientKey`]: recognises a proof, cannot make one.
    StoredKey
}
key! {
    /// What proves to a client that the server knows the verifier.
    ServerKey
}

impl ClientKey {
    /// The key by which this one is recognised.
    pub fn stored_key(&self) -> StoredKey {
        StoredKey::new(Sha256::digest(self.reveal()).into())
    }
}

/// **Slow**: PBKDF2 with as many rounds as `iterations` says; never on a thread that does I/O.
pub fn salted_password(password: &Password, salt: &[u8], iterations: NonZeroU32) -> SaltedPassword {
    let prepared = prepared(password);
    let mut salted = SaltedPassword::new([0; 32]);
    pbkdf2::pbkdf2_hmac::<Sha256>(&prepared, salt, iterations.get(), salted.0.as_mut_slice());
    salted
}

/// SASLprep, or the bytes as they are where it cannot be applied; PostgreSQL does the same on both sides.
fn prepared(password: &Password) -> Zeroizing<Vec<u8>> {
    let raw = password.reveal();
    let prepared = std::str::from_utf8(raw).ok().and_then(|text| stringprep::saslprep(text).ok());
    match prepared {
        Some(text) if !text.is_empty() => Zeroizing::new(text.into_owned().into_bytes()),
        _ => Zeroizing::new(raw.to_vec()),
    }
}

/// All keys of one password under one salt and iteration count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramKeys {
    /// Makes proofs.
    pub client_key: ClientKey,
    /// Recognises proofs.
    pub stored_key: StoredKey,
    /// Makes and recognises the server's signature.
    pub server_key: ServerKey,
}

impl ScramKeys {
    /// Quick: three digests.
    pub fn from_salted(salted: &SaltedPassword) -> ScramKeys {
        let client_key = ClientKey::new(keyed_digest(salted.reveal(), &[b"Client Key"]));
        let stored_key = client_key.stored_key();
        let server_key = ServerKey::new(keyed_digest(salted.reveal(), &[b"Server Key"]));
        ScramKeys { client_key, stored_key, server_key }
    }
}

/// Keys together with the salt and iteration count they belong to: what a login to a server is made of, and
/// what is worth caching. They come from a password, or from a client's own login (pass-through).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramLogin {
    pub(super) keys: ScramKeys,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: NonZeroU32,
}

impl ScramLogin {
    /// **Slow**: from a password, by [`salted_password`].
    pub fn derive(password: &Password, salt: &[u8], iterations: NonZeroU32) -> ScramLogin {
        let keys = ScramKeys::from_salted(&salted_password(password, salt, iterations));
        ScramLogin { keys, salt: salt.to_vec(), iterations }
    }

    /// From the key that a client's proof revealed and the verifier it matched; `None` if they do not belong
    /// together.
    pub fn pass_through(verifier: &ScramVerifier, client_key: ClientKey) -> Option<ScramLogin> {
        if client_key.stored_key() != *verifier.stored_key() {
            return None;
        }
        let keys = ScramKeys {
            client_key,
            stored_key: verifier.stored_key().clone(),
            server_key: verifier.server_key().clone(),
        };
        Some(ScramLogin { keys, salt: verifier.salt().to_vec(), iterations: verifier.iterations() })
    }

    /// The keys.
    pub fn keys(&self) -> &ScramKeys {
        &self.keys
    }

    /// The salt they were made with.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// The iteration count they were made with.
    pub fn iterations(&self) -> NonZeroU32 {
        self.iterations
    }

    /// What a server would store to recognise these keys.
    pub fn verifier(&self) -> ScramVerifier {
        ScramVerifier {
            iterations: self.iterations,
            salt: self.salt.clone(),
            stored_key: self.keys.stored_key.clone(),
            server_key: self.keys.server_key.clone(),
        }
    }
}

/// The three texts that both sides sign, joined by commas.
pub(super) struct AuthMessage<'a> {
    pub(super) client_first_bare: &'a [u8],
    pub(super) server_first: &'a [u8],
    pub(super) client_final_bare: &'a [u8],
}

impl AuthMessage<'_> {
    fn signed_by(&self, key: &[u8; 32]) -> [u8; 32] {
        keyed_digest(key, &[self.client_first_bare, b",", self.server_first, b",", self.client_final_bare])
    }

    /// The proof that hides the client key.
    pub(super) fn proof(&self, keys: &ScramKeys) -> [u8; 32] {
        xor(keys.client_key.reveal(), &self.signed_by(keys.stored_key.reveal()))
    }

    /// The client key hidden in a proof; whether it is the right one is for the caller to compare.
    pub(super) fn client_key(&self, proof: &[u8; 32], stored_key: &StoredKey) -> ClientKey {
        ClientKey::new(xor(proof, &self.signed_by(stored_key.reveal())))
    }

    /// The server's answer to a right proof.
    pub(super) fn server_signature(&self, server_key: &ServerKey) -> [u8; 32] {
        self.signed_by(server_key.reveal())
    }
}

pub(super) fn keyed_digest(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of every length, so this cannot fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of 32 bytes");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn xor(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| left[at] ^ right[at])
}

/// What PostgreSQL and PgBouncer make verifiers with unless told otherwise.
pub const ITERATIONS_DEFAULT: NonZeroU32 = NonZeroU32::new(4096).unwrap();

/// More than this we do not compute for anybody: a lying server could keep a thread busy for ever.
pub const ITERATIONS_MAX: u32 = 1_000_000;
