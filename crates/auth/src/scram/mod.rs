//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677) with PostgreSQL's own rules: the user name inside
//! the messages is ignored, and a password that SASLprep refuses is used as its raw bytes.
//!
//! Two sides, named after what they do, since "client" and "server" are the pooler's words for its neighbours:
//! - [`AwaitClientFirst`], [`AwaitClientFinal`]: we **verify** a client;
//! - [`begin`], [`AwaitServerFirst`], [`NeedKeys`], [`AwaitServerFinal`]: we **prove** ourselves to a server.
//!
//! Each state is consumed by its `handle`, so no message can be taken out of order or twice. Nonces and channel
//! binding data are arguments. Only [`salted_password`], [`ScramVerifier::from_password`] and
//! [`ScramLogin::derive`] are slow: they run PBKDF2.

mod keys;
mod message;
mod prove;
mod verifier;
mod verify;

pub use keys::{
    ClientKey, ITERATIONS_DEFAULT, ITERATIONS_MAX, SaltedPassword, ScramKeys, ScramLogin, ServerKey,
    StoredKey, salted_password,
};
pub use message::{
    MESSAGE_BYTES_MAX, Mechanism, Mechanisms, NONCE_BYTES_MAX, Nonce, SALT_BYTES_DEFAULT, SALT_BYTES_MAX,
};
pub use prove::{AwaitServerFinal, AwaitServerFirst, Begin, ClientFirst, NeedKeys, begin};
pub use verifier::{Credential, MockKey, ScramVerifier};
pub use verify::{AwaitClientFinal, AwaitClientFirst, Verified};

#[cfg(test)]
mod tests;
