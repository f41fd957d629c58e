//! How a refusal becomes bytes for the client. What is refused, and why, others decide; the words and the
//! SQLSTATE are `model::Refusal`'s own.

use model::{Outcome, Refusal};
use wire::encode::{self, Severity};

/// Appends the ErrorResponse for `refusal`: FATAL where the connection closes after it, else ERROR.
pub fn encode(out: &mut Vec<u8>, refusal: &Refusal) {
    let severity = match refusal.outcome() {
        Outcome::Closes => Severity::Fatal,
        Outcome::Lives => Severity::Error,
    };
    encode::report(out, severity, refusal.sqlstate(), &refusal.to_string(), None);
}

/// What a client is told when the exchange by which it should prove itself as `user` failed.
///
/// A wrong password and an unknown user are one answer; so is a secret of ours that nobody can match. A name
/// that stands for another user is taken as a certificate's: for the peer of a Unix socket the caller says
/// [`Refusal::UnixLoginRejected`] itself.
pub fn of_auth(cause: auth::Refusal, user: &str) -> Refusal {
    match cause {
        auth::Refusal::IdentityDiffers | auth::Refusal::IdentityMissing => Refusal::CertificateFailed,
        auth::Refusal::MethodUnsupported => Refusal::BouncerConfigError,
        auth::Refusal::NoRule => Refusal::NoAuthenticationMethod,
        auth::Refusal::PasswordEmpty => Refusal::EmptyPassword,
        auth::Refusal::PasswordWrong | auth::Refusal::SecretTooCostly => {
            Refusal::PasswordFailed(user.to_owned())
        }
        auth::Refusal::Rejected => Refusal::LoginRejected,
        auth::Refusal::Scram(auth::ScramFault::MechanismUnknown) => {
            Refusal::ProtocolViolation("client selected an invalid SASL authentication mechanism".into())
        }
        auth::Refusal::Scram(fault) => match fault.blame() {
            auth::Blame::Protocol => Refusal::ProtocolViolation(fault.to_string().into()),
            auth::Blame::Password | auth::Blame::Policy => Refusal::SaslFailed,
        },
        auth::Refusal::UserUnknown => Refusal::TrustFailed,
    }
}
