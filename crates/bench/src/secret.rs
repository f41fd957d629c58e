//! The password of a run's roles: drawn anew each time, so that a database that is lent to us is not left open
//! to whoever knows this program.

use crate::error::BenchError;
use crate::session::login::random;
use auth::Password;
use auth::scram::ScramVerifier;
use std::fmt;
use std::num::NonZeroU32;

/// A password, and the verifier that servers and poolers keep of it.
#[derive(Clone)]
pub struct Secret {
    /// As clients know it.
    pub password: String,
    /// As it is kept: `SCRAM-SHA-256$...`.
    pub verifier: String,
}

/// Few: pgbench hashes as often as the verifier says, at every login, and on the same cores.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(64).unwrap();

impl Secret {
    /// A new one.
    pub fn new() -> Result<Secret, BenchError> {
        let doing = || BenchError::io("drawing a password");
        let (secret, salt) = (random::<12>().map_err(doing())?, random::<16>().map_err(doing())?);
        let password: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let verifier = ScramVerifier::from_password(&Password::new(password.as_str()), &salt, ITERATIONS);
        let verifier = String::from_utf8_lossy(verifier.to_text().reveal()).into_owned();
        Ok(Secret { password, verifier })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
