//! How a client must prove itself, as whoever knows the users answers it. Does not know where secrets are kept
//! or which rule chose the method.

use auth::scram::{AwaitClientFirst, Mechanism};
use auth::{Password, StoredSecret};
use model::Refusal;
use wire::encode;

use super::{
    Authenticated, AwaitAcceptance, AwaitMd5, AwaitPassword, AwaitSaslFirst, AwaitServer, Evidence, Identity,
    Login, Next, Requested,
};

/// What is asked of a client. What it is compared with comes from here and nowhere else, so that nothing the
/// client sends is ever compared with itself.
#[derive(Debug)]
pub enum Challenge {
    /// Nothing: `trust`, `any`, or a certificate or peer that has been found to be the user's.
    Pass,
    /// The client is out: `reject`, no rule, a certificate of another user, no entry at all.
    Refuse(Refusal),
    /// The password in clear text.
    Plain(Expected),
    /// An md5 digest of the password and this salt, which is random.
    Md5(Expected, [u8; 4]),
    /// SCRAM-SHA-256, and SCRAM-SHA-256-PLUS where the exchange was made with the connection's binding data.
    Scram(AwaitClientFirst),
    /// Whatever the server asks for that the client logs in to.
    Relay,
}

/// The secret a password is compared with.
#[derive(Clone, Debug)]
pub struct Expected {
    secret: StoredSecret,
    /// A password that was found to be right before.
    shown: Option<Password>,
    doomed: bool,
}

impl Expected {
    /// What is stored for the user.
    pub fn stored(secret: StoredSecret) -> Expected {
        Expected { secret, shown: None, doomed: false }
    }

    /// For a user who does not exist: the check runs on `decoy`, and no password is right. A decoy of the kind
    /// that most users have makes the check take the time it takes for them.
    pub fn nobody(decoy: StoredSecret) -> Expected {
        Expected { secret: decoy, shown: None, doomed: true }
    }

    /// With the password that was found to be right for this very secret before, if there is one: who sends it
    /// again is not put through a slow check again.
    #[must_use]
    pub fn or_shown(self, shown: Option<Password>) -> Expected {
        Expected { shown, ..self }
    }

    /// Whether this was found to be right before. It takes the same time for every password that was not.
    pub(super) fn was_shown(&self, given: &Password) -> bool {
        !self.doomed && !given.is_empty() && self.shown.as_ref().is_some_and(|shown| shown == given)
    }

    pub(super) fn secret(&self) -> &StoredSecret {
        &self.secret
    }

    /// Turns the outcome of a check into the answer: what was right for a decoy is wrong all the same.
    pub(super) fn judge(&self, outcome: Result<(), auth::Refusal>) -> Result<(), auth::Refusal> {
        match outcome {
            Ok(()) if self.doomed => Err(auth::Refusal::PasswordWrong),
            outcome => outcome,
        }
    }
}

/// The startup message was sound; how this user must prove himself is being found out.
#[derive(Debug)]
pub struct AwaitChallenge {
    claim: Claim,
}

/// What a login keeps until it is over: who is claimed to come, and what is wanted.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) user: String,
    pub(super) takes_long_keys: bool,
    pub(super) requested: Requested,
}

impl Claim {
    pub(super) fn proved(self, evidence: Evidence) -> Next {
        let waiting = AwaitAcceptance::new(self.takes_long_keys);
        Next::Authenticated(Authenticated { evidence, requested: self.requested }, waiting)
    }

    pub(super) fn failed(&self, cause: auth::Refusal) -> Next {
        Next::Refuse(crate::refuse::of_auth(cause, &self.user))
    }
}

impl AwaitChallenge {
    pub(super) fn new(identity: &Identity, requested: Requested) -> AwaitChallenge {
        let user = identity.user.clone();
        AwaitChallenge { claim: Claim { user, takes_long_keys: identity.takes_long_keys(), requested } }
    }

    /// Puts the challenge to the client.
    pub fn identified(self, challenge: Challenge, out: &mut Vec<u8>) -> Next {
        let claim = self.claim;
        match challenge {
            Challenge::Pass => claim.proved(Evidence::None),
            Challenge::Refuse(refusal) => Next::Refuse(refusal),
            Challenge::Relay => Next::Relayed(claim.requested, AwaitServer::new(claim.takes_long_keys)),
            Challenge::Plain(expected) => {
                encode::auth_cleartext(out);
                Next::Read(Login::Password(AwaitPassword::new(claim, expected)))
            }
            Challenge::Md5(expected, salt) => {
                encode::auth_md5(out, salt);
                Next::Read(Login::Md5(AwaitMd5::new(claim, expected, salt)))
            }
            Challenge::Scram(exchange) => {
                let names: Vec<&str> = exchange.mechanisms().iter().copied().map(Mechanism::name).collect();
                encode::auth_sasl(out, &names);
                Next::Read(Login::SaslFirst(AwaitSaslFirst::new(claim, exchange)))
            }
        }
    }
}

impl From<AwaitChallenge> for Login {
    fn from(state: AwaitChallenge) -> Login {
        Login::Challenge(state)
    }
}
