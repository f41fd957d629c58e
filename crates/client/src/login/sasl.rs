//! SCRAM as it travels in SASL messages. The exchange itself is `auth::scram`'s.

use auth::scram::{AwaitClientFinal, AwaitClientFirst};
use wire::client::SaslInitial;
use wire::encode;

use super::challenge::Claim;
use super::{Evidence, Login, Next, Step, answer};

/// AuthenticationSASL was sent.
#[derive(Debug)]
pub struct AwaitSaslFirst {
    claim: Claim,
    exchange: AwaitClientFirst,
}

/// AuthenticationSASLContinue was sent.
#[derive(Debug)]
pub struct AwaitSaslFinal {
    claim: Claim,
    exchange: AwaitClientFinal,
}

impl AwaitSaslFirst {
    pub(super) fn new(claim: Claim, exchange: AwaitClientFirst) -> AwaitSaslFirst {
        AwaitSaslFirst { claim, exchange }
    }

    pub(super) fn handle(self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let (body, consumed) = match answer(input) {
            Ok(Some(whole)) => whole,
            Ok(None) => return Step::unread(Login::SaslFirst(self)),
            Err(unfit) => return Step { consumed: 0, next: unfit.into() },
        };
        // Both mechanisms begin with the client's own message, so an initial response without one is as wrong
        // as one that cannot be read.
        let Ok(SaslInitial { mechanism, data: Some(data) }) = SaslInitial::parse(body) else {
            return Step { consumed, next: Next::violation("malformed SASLInitialResponse message") };
        };
        let next = match self.exchange.handle(mechanism, data) {
            Ok((exchange, server_first)) => {
                encode::auth_sasl_continue(out, &server_first);
                Next::Read(Login::SaslFinal(AwaitSaslFinal { claim: self.claim, exchange }))
            }
            Err(fault) => self.claim.failed(fault.into()),
        };
        Step { consumed, next }
    }
}

impl AwaitSaslFinal {
    pub(super) fn handle(self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let (body, consumed) = match answer(input) {
            Ok(Some(whole)) => whole,
            Ok(None) => return Step::unread(Login::SaslFinal(self)),
            Err(unfit) => return Step { consumed: 0, next: unfit.into() },
        };
        let next = match self.exchange.handle(body) {
            Ok(verified) => {
                encode::auth_sasl_final(out, &verified.server_final);
                self.claim.proved(Evidence::Scram(verified.login))
            }
            Err(fault) => self.claim.failed(fault.into()),
        };
        Step { consumed, next }
    }
}
