//! The side that checks a client's password: RFC 5802's server. Does not know which user it is, nor how the
//! verifier was found.
//!
//! Order: [`AwaitClientFirst::mechanisms`] into AuthenticationSASL; SASLInitialResponse into
//! [`AwaitClientFirst::handle`], whose answer goes into AuthenticationSASLContinue; SASLResponse into
//! [`AwaitClientFinal::handle`], whose [`Verified::server_final`] goes into AuthenticationSASLFinal.

use super::keys::{AuthMessage, ScramLogin};
use super::message::{BINDING_TYPE, Mechanism, Nonce, Parts, checked_nonce, decoded_key, encoded};
use super::verifier::Credential;
use crate::ScramFault;

/// The mechanisms have been offered.
#[derive(Debug)]
pub struct AwaitClientFirst {
    credential: Credential,
    binding: Option<Vec<u8>>,
    nonce: Nonce,
}

/// Our nonce, salt and iteration count have been sent.
#[derive(Debug)]
pub struct AwaitClientFinal {
    credential: Credential,
    /// What `c=` must say, before base64.
    binding_expected: Vec<u8>,
    client_first_bare: Vec<u8>,
    server_first: Vec<u8>,
    nonce_both: Vec<u8>,
}

/// The client knows the password.
#[derive(Debug)]
pub struct Verified {
    /// For AuthenticationSASLFinal.
    pub server_final: Vec<u8>,
    /// The keys that the proof revealed: they log in to any server that stores the same verifier.
    pub login: ScramLogin,
}

impl AwaitClientFirst {
    /// `binding` is the connection's `tls-server-end-point` data; with it SCRAM-SHA-256-PLUS is offered too.
    pub fn new(credential: Credential, binding: Option<&[u8]>, nonce: Nonce) -> AwaitClientFirst {
        AwaitClientFirst { credential, binding: binding.map(<[u8]>::to_vec), nonce }
    }

    /// What to offer, in order of preference.
    pub fn mechanisms(&self) -> &'static [Mechanism] {
        match self.binding {
            Some(_) => &[Mechanism::Sha256Plus, Mechanism::Sha256],
            None => &[Mechanism::Sha256],
        }
    }

    /// Takes SASLInitialResponse's mechanism and message; gives the next state and server-first-message.
    pub fn handle(self, mechanism: &[u8], message: &[u8]) -> Result<(AwaitClientFinal, Vec<u8>), ScramFault> {
        let mechanism = Mechanism::parse(mechanism)
            .filter(|chosen| self.mechanisms().contains(chosen))
            .ok_or(ScramFault::MechanismUnknown)?;
        let mut parts = Parts::new(message)?;
        let flag = parts.text()?;
        let data = self.bound_data(mechanism, flag)?;
        match parts.text()? {
            b"" => {}
            [b'a', b'=', ..] => return Err(ScramFault::AuthorizationIdentity),
            _ => return Err(ScramFault::Malformed),
        }
        let bare = parts.rest();
        // The user was named in the startup message; PostgreSQL ignores the name here, and so do we.
        parts.value('n')?;
        let client_nonce = checked_nonce(parts.value('r')?)?;
        parts.extensions()?;

        let binding_expected = [flag, b",,", data].concat();
        let nonce_both = [client_nonce, self.nonce.text().as_bytes()].concat();
        let verifier = &self.credential.verifier;
        let salt_and_count = format!(",s={},i={}", encoded(verifier.salt()), verifier.iterations());
        let server_first = [b"r=", nonce_both.as_slice(), salt_and_count.as_bytes()].concat();
        let next = AwaitClientFinal {
            credential: self.credential,
            binding_expected,
            client_first_bare: bare.to_vec(),
            server_first: server_first.clone(),
            nonce_both,
        };
        Ok((next, server_first))
    }

    /// The data that the client must repeat under this flag; the fault if flag and mechanism contradict.
    fn bound_data(&self, mechanism: Mechanism, flag: &[u8]) -> Result<&[u8], ScramFault> {
        match (flag, mechanism, &self.binding) {
            ([b'p', b'=', kind @ ..], Mechanism::Sha256Plus, Some(data)) => {
                if kind == BINDING_TYPE.as_bytes() { Ok(data) } else { Err(ScramFault::BindingTypeUnknown) }
            }
            ([b'p', b'=', ..], _, _) => Err(ScramFault::BindingUnasked),
            (b"n" | b"y", Mechanism::Sha256Plus, _) => Err(ScramFault::BindingMissing),
            // `y` says: I could bind, but you did not offer it. We did, so somebody took the offer away.
            (b"y", Mechanism::Sha256, Some(_)) => Err(ScramFault::Downgraded),
            (b"n" | b"y", Mechanism::Sha256, _) => Ok(b""),
            _ => Err(ScramFault::BindingFlagUnknown),
        }
    }
}

impl AwaitClientFinal {
    /// Takes SASLResponse's message. All the work is done before the answer is known, for every user alike.
    pub fn handle(self, message: &[u8]) -> Result<Verified, ScramFault> {
        let mut parts = Parts::new(message)?;
        let binding = parts.value('c')?;
        let nonce = parts.value('r')?;
        let proof = parts.last_value('p')?;
        if binding != encoded(&self.binding_expected).as_bytes() {
            return Err(ScramFault::BindingDiffers);
        }
        if nonce != self.nonce_both {
            return Err(ScramFault::NonceDiffers);
        }
        // The proof is the last part, so what is signed ends before its `,p=`.
        let bare_bytes = message.len() - proof.len() - ",p=".len();
        let proof = decoded_key(proof).ok_or(ScramFault::ProofMalformed)?;

        let signed = AuthMessage {
            client_first_bare: &self.client_first_bare,
            server_first: &self.server_first,
            client_final_bare: &message[..bare_bytes],
        };
        let verifier = &self.credential.verifier;
        let client_key = signed.client_key(&proof, verifier.stored_key());
        let signature = signed.server_signature(verifier.server_key());
        let login = ScramLogin::pass_through(verifier, client_key);
        match login {
            Some(login) if !self.credential.doomed => {
                let server_final = format!("v={}", encoded(&signature)).into_bytes();
                Ok(Verified { server_final, login })
            }
            _ => Err(ScramFault::ProofWrong),
        }
    }
}

#[cfg(test)]
mod tests;
