//! The side that logs in to a server: RFC 5802's client. The server is not trusted: all it sends is bounded, and
//! the login counts only when its signature is right. Does not know which server, nor where the keys come from.
//!
//! Order: [`begin`] gives SASLInitialResponse; AuthenticationSASLContinue goes into [`AwaitServerFirst::handle`];
//! the caller finds keys that [`NeedKeys::fits`], or makes them (slow) with [`NeedKeys::salt`] and
//! [`NeedKeys::iterations`]; [`NeedKeys::prove`] gives SASLResponse; AuthenticationSASLFinal goes into
//! [`AwaitServerFinal::handle`]. AuthenticationOk before that is a server that knows no password: close it.

use std::num::NonZeroU32;

use subtle::ConstantTimeEq;

use super::keys::{AuthMessage, ScramLogin};
use super::message::{
    BINDING_TYPE, Mechanism, Mechanisms, Nonce, Parts, checked_nonce, decoded_iterations, decoded_key,
    decoded_salt, encoded,
};
use crate::{ScramFault, ServerErrorValue};

/// What an exchange begins with.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    /// What the server offers.
    pub offered: Mechanisms,
    /// The connection's `tls-server-end-point` data, if it has TLS and we care for binding.
    pub binding: Option<&'a [u8]>,
    /// Fail rather than go on without channel binding.
    pub binding_required: bool,
    /// The largest iteration count to compute for this server: [`super::ITERATIONS_MAX`] or less.
    pub iterations_max: u32,
    /// From the shell's random source.
    pub nonce: Nonce,
}

/// What goes into SASLInitialResponse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFirst {
    /// The mechanism chosen.
    pub mechanism: Mechanism,
    /// client-first-message.
    pub message: Vec<u8>,
}

/// SASLInitialResponse has been sent.
#[derive(Debug)]
pub struct AwaitServerFirst {
    /// What `c=` will say, before base64.
    binding: Vec<u8>,
    client_first_bare: String,
    nonce: String,
    iterations_max: u32,
}

/// The server told its salt and iteration count; keys made with them are needed.
#[derive(Debug)]
pub struct NeedKeys {
    binding: Vec<u8>,
    client_first_bare: String,
    server_first: Vec<u8>,
    nonce_both: Vec<u8>,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

/// The proof has been sent.
#[derive(Debug)]
pub struct AwaitServerFinal {
    signature_expected: [u8; 32],
}

/// Chooses the mechanism and writes the first message.
pub fn begin(start: Begin<'_>) -> Result<(AwaitServerFirst, ClientFirst), ScramFault> {
    let Begin { offered, binding, binding_required, iterations_max, nonce } = start;
    let (mechanism, header, data) = match binding {
        Some(data) if offered.plus => (Mechanism::Sha256Plus, format!("p={BINDING_TYPE},,"), data),
        _ if binding_required => return Err(ScramFault::BindingRequired),
        _ if !offered.plain => return Err(ScramFault::MechanismsUnknown),
        // `y`: we could have, so a server that did offer it sees that the offer was taken away on the way.
        Some(_) => (Mechanism::Sha256, "y,,".to_owned(), b"".as_slice()),
        None => (Mechanism::Sha256, "n,,".to_owned(), b"".as_slice()),
    };
    let nonce = nonce.text();
    // The name is empty: the server takes the one in the startup message.
    let client_first_bare = format!("n=,r={nonce}");
    let message = format!("{header}{client_first_bare}").into_bytes();
    let binding = [header.as_bytes(), data].concat();
    let next = AwaitServerFirst { binding, client_first_bare, nonce, iterations_max };
    Ok((next, ClientFirst { mechanism, message }))
}

impl AwaitServerFirst {
    /// Takes AuthenticationSASLContinue's data.
    pub fn handle(self, message: &[u8]) -> Result<NeedKeys, ScramFault> {
        let mut parts = Parts::new(message)?;
        let nonce_both = checked_nonce(parts.value('r')?)?;
        let added = nonce_both.strip_prefix(self.nonce.as_bytes());
        if added.is_none_or(<[u8]>::is_empty) {
            return Err(ScramFault::NonceNotExtended);
        }
        let salt = decoded_salt(parts.value('s')?)?;
        let iterations = decoded_iterations(parts.value('i')?, self.iterations_max)?;
        parts.extensions()?;
        Ok(NeedKeys {
            binding: self.binding,
            client_first_bare: self.client_first_bare,
            server_first: message.to_vec(),
            nonce_both: nonce_both.to_vec(),
            salt,
            iterations,
        })
    }
}

impl NeedKeys {
    /// The salt to make keys with.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// The iteration count to make keys with.
    pub fn iterations(&self) -> NonZeroU32 {
        self.iterations
    }

    /// Whether these keys were made with the server's salt and iteration count.
    pub fn fits(&self, login: &ScramLogin) -> bool {
        login.salt() == self.salt && login.iterations() == self.iterations
    }

    /// Gives the next state and client-final-message, for SASLResponse.
    pub fn prove(self, login: &ScramLogin) -> Result<(AwaitServerFinal, Vec<u8>), ScramFault> {
        if !self.fits(login) {
            return Err(ScramFault::KeysForOtherSalt);
        }
        let binding = encoded(&self.binding);
        let mut message = [b"c=", binding.as_bytes(), b",r=", &self.nonce_both].concat();
        let signed = AuthMessage {
            client_first_bare: self.client_first_bare.as_bytes(),
            server_first: &self.server_first,
            client_final_bare: &message,
        };
        let proof = signed.proof(login.keys());
        let signature_expected = signed.server_signature(&login.keys().server_key);
        message.extend_from_slice(b",p=");
        message.extend_from_slice(encoded(&proof).as_bytes());
        Ok((AwaitServerFinal { signature_expected }, message))
    }
}

impl AwaitServerFinal {
    /// Takes AuthenticationSASLFinal's data; only now is the server known to be the right one.
    pub fn handle(self, message: &[u8]) -> Result<(), ScramFault> {
        let mut parts = Parts::new(message)?;
        match parts.next()? {
            Some(('e', value)) => Err(ScramFault::ServerError(ServerErrorValue::parse(value))),
            Some(('v', value)) => {
                parts.extensions()?;
                let signature = decoded_key(value).ok_or(ScramFault::SignatureMalformed)?;
                let same: bool = signature.ct_eq(&self.signature_expected).into();
                if same { Ok(()) } else { Err(ScramFault::SignatureWrong) }
            }
            Some(_) | None => Err(ScramFault::AttributeMissing('v')),
        }
    }
}

#[cfg(test)]
mod tests;
