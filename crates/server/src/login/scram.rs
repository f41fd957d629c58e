//! The SCRAM part of a login: our conditions, the keys, and which SASL message may come when. The exchange
//! itself is `auth::scram`'s.

use std::num::NonZeroU32;

use auth::scram::{
    AwaitServerFinal, AwaitServerFirst, Begin, ITERATIONS_MAX, Mechanism, Mechanisms, NeedKeys, ScramLogin,
};
use auth::{LoginSecret, Password};
use wire::server::Authentication;

use super::credential::Method;
use super::fault::{LoginError, LoginFault};
use super::frame::Message;
use super::state::{Answered, Login, Next, State, Step, Terms, authentication};

/// The server told its salt; the login goes on with the keys of our password under it.
#[derive(Debug)]
pub struct NeedsKeys {
    terms: Box<Terms>,
    needed: NeedKeys,
    password: Password,
}

/// The making of keys, free of the login so that it can be sent to another thread.
#[derive(Debug)]
pub struct KeyWork {
    password: Password,
    salt: Box<[u8]>,
    iterations: NonZeroU32,
}

impl KeyWork {
    /// **Slow**: up to a million rounds of PBKDF2.
    pub fn run(self) -> ScramLogin {
        ScramLogin::derive(&self.password, &self.salt, self.iterations)
    }
}

impl NeedsKeys {
    /// What has to be made.
    pub fn work(&self) -> KeyWork {
        KeyWork {
            password: self.password.clone(),
            salt: self.needed.salt().into(),
            iterations: self.needed.iterations(),
        }
    }

    /// Goes on with what [`KeyWork::run`] made; keys of another salt are a fault.
    pub fn keys(self, keys: &ScramLogin, out: &mut Vec<u8>) -> Result<Login, LoginError> {
        prove(self.terms, self.needed, keys, out)
    }
}

/// The server offered these mechanisms.
pub(super) fn begin(
    terms: &mut Terms,
    offered: wire::server::Mechanisms<'_>,
    out: &mut Vec<u8>,
) -> Result<Next, LoginError> {
    let plain_allowed = terms.allowed.allows(Method::Scram);
    let plus_allowed = terms.allowed.allows(Method::ScramPlus);
    if !plain_allowed && !plus_allowed {
        return Err(LoginFault::MethodNotAllowed(Method::Scram).into());
    }
    if !terms.secret.serves_scram() {
        return Err(LoginFault::NoSecret(Method::Scram).into());
    }
    let start = Begin {
        offered: Mechanisms {
            plain: plain_allowed && offered.offers(Mechanism::Sha256.name()),
            plus: plus_allowed && offered.offers(Mechanism::Sha256Plus.name()),
        },
        // Data that we would not use must not be hinted at: the server would see a downgrade.
        binding: terms.binding.as_deref().filter(|_| plus_allowed),
        binding_required: !plain_allowed,
        iterations_max: ITERATIONS_MAX,
        nonce: terms.nonce,
    };
    let (exchange, first) = auth::scram::begin(start)?;
    terms.allow(match first.mechanism {
        Mechanism::Sha256 => Method::Scram,
        Mechanism::Sha256Plus => Method::ScramPlus,
    })?;
    wire::encode::sasl_initial(out, first.mechanism.name(), &first.message);
    Ok(Next::State(State::SaslFirst(SaslFirst { exchange })))
}

/// Goes on at once if the secret is keys already.
pub(super) fn keys_at_hand(
    terms: Box<Terms>,
    needed: NeedKeys,
    out: &mut Vec<u8>,
) -> Result<Step, LoginError> {
    match &terms.secret {
        LoginSecret::Scram(keys) => {
            let keys = keys.clone();
            prove(terms, needed, &keys, out).map(Step::Next)
        }
        LoginSecret::Clear(password) => {
            let password = password.clone();
            Ok(Step::NeedsKeys(NeedsKeys { terms, needed, password }))
        }
        LoginSecret::None | LoginSecret::Md5(_) => Err(LoginFault::NoSecret(Method::Scram).into()),
    }
}

fn prove(
    terms: Box<Terms>,
    needed: NeedKeys,
    keys: &ScramLogin,
    out: &mut Vec<u8>,
) -> Result<Login, LoginError> {
    let (exchange, message) = needed.prove(keys)?;
    wire::encode::sasl_response(out, &message);
    Ok(Login { terms, state: State::SaslFinal(SaslFinal { exchange }) })
}

/// SASLInitialResponse is sent.
#[derive(Debug)]
pub(super) struct SaslFirst {
    exchange: AwaitServerFirst,
}

impl SaslFirst {
    pub(super) fn handle(self, message: Message<'_>) -> Result<Next, LoginError> {
        match authentication(message)? {
            Authentication::SaslContinue(data) => Ok(Next::NeedsKeys(self.exchange.handle(data)?)),
            // AuthenticationOk too: a server that has proved nothing does not let us in.
            _ => Err(LoginFault::Unexpected(message.tag).into()),
        }
    }
}

/// Our proof is sent.
#[derive(Debug)]
pub(super) struct SaslFinal {
    exchange: AwaitServerFinal,
}

impl SaslFinal {
    pub(super) fn handle(self, message: Message<'_>) -> Result<Next, LoginError> {
        match authentication(message)? {
            Authentication::SaslFinal(data) => {
                self.exchange.handle(data)?;
                Ok(Next::State(State::Answered(Answered)))
            }
            _ => Err(LoginFault::Unexpected(message.tag).into()),
        }
    }
}
