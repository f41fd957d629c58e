//! Passwords in clear text and md5 answers to a salt. Does not know SCRAM, nor which thread runs a slow check.

use auth::{Password, md5, method};

use super::challenge::Claim;
use super::{Evidence, Expected, Login, Next, Step, answer};

/// AuthenticationCleartextPassword was sent.
#[derive(Debug)]
pub struct AwaitPassword {
    claim: Claim,
    expected: Expected,
}

/// A password is being checked elsewhere.
#[derive(Debug)]
pub struct AwaitVerdict {
    claim: Claim,
}

/// AuthenticationMD5Password was sent.
#[derive(Debug)]
pub struct AwaitMd5 {
    claim: Claim,
    expected: Expected,
    salt: [u8; 4],
}

/// A password and what it is to be compared with. Can be sent to the thread that has the time.
#[derive(Debug)]
pub struct PasswordCheck {
    user: String,
    expected: Expected,
    given: Password,
}

/// The outcome of one [`PasswordCheck`]: the password, if it is the right one.
#[derive(Debug)]
pub struct Checked(Result<Password, auth::Refusal>);

impl AwaitPassword {
    pub(super) fn new(claim: Claim, expected: Expected) -> AwaitPassword {
        AwaitPassword { claim, expected }
    }

    pub(super) fn handle(self, input: &[u8]) -> Step {
        let (body, consumed) = match answer(input) {
            Ok(Some(whole)) => whole,
            Ok(None) => return Step::unread(Login::Password(self)),
            Err(unfit) => return Step { consumed: 0, next: unfit.into() },
        };
        let Ok(given) = wire::client::password(body) else {
            return Step { consumed, next: Next::violation(BAD_PACKET) };
        };
        let given = Password::new(given);
        let slow = self.expected.secret().check_is_slow();
        if slow && self.expected.was_shown(&given) {
            let waiting = AwaitVerdict { claim: self.claim };
            return Step { consumed, next: waiting.checked(Checked(Ok(given))) };
        }
        let user = self.claim.user.clone();
        let check = PasswordCheck { user, expected: self.expected, given };
        let waiting = AwaitVerdict { claim: self.claim };
        let next = if slow { Next::CheckPassword(check, waiting) } else { waiting.checked(check.run()) };
        Step { consumed, next }
    }
}

impl PasswordCheck {
    /// **Slow**: as many rounds of PBKDF2 as the stored secret asks for.
    pub fn run(self) -> Checked {
        let outcome = method::check_plain(Some(self.expected.secret()), &self.user, &self.given);
        Checked(self.expected.judge(outcome).map(|()| self.given))
    }
}

impl AwaitVerdict {
    /// Takes the outcome of the check that came with this state.
    pub fn checked(self, outcome: Checked) -> Next {
        match outcome.0 {
            Ok(password) => self.claim.proved(Evidence::Password(password)),
            Err(cause) => self.claim.failed(cause),
        }
    }
}

impl AwaitMd5 {
    pub(super) fn new(claim: Claim, expected: Expected, salt: [u8; 4]) -> AwaitMd5 {
        AwaitMd5 { claim, expected, salt }
    }

    pub(super) fn handle(self, input: &[u8]) -> Step {
        let (body, consumed) = match answer(input) {
            Ok(Some(whole)) => whole,
            Ok(None) => return Step::unread(Login::Md5(self)),
            Err(unfit) => return Step { consumed: 0, next: unfit.into() },
        };
        let Ok(given) = wire::client::password(body) else {
            return Step { consumed, next: Next::violation(BAD_PACKET) };
        };
        let secret = Some(self.expected.secret());
        let outcome = self.expected.judge(md5::check_md5(secret, &self.claim.user, self.salt, given));
        let next = match outcome {
            Ok(()) => self.claim.proved(Evidence::None),
            Err(cause) => self.claim.failed(cause),
        };
        Step { consumed, next }
    }
}

impl From<AwaitVerdict> for Login {
    fn from(state: AwaitVerdict) -> Login {
        Login::Verdict(state)
    }
}

/// PostgreSQL's words for a password message without one zero byte, at its end.
const BAD_PACKET: &str = "invalid password packet size";
