//! The end of a login: what was proved, and what a client is told before it may send queries. Does not know
//! limits or pools; until both have agreed nothing here says that the login succeeded.

use auth::Password;
use auth::scram::ScramLogin;
use wire::encode::{self, Severity};

use super::{Login, Requested};

/// A client that is who it says.
#[derive(Debug)]
pub struct Authenticated {
    /// What it showed, for logins to servers in its name.
    pub evidence: Evidence,
    /// The parameters of its startup message: to be settled now.
    pub requested: Requested,
}

/// What a client showed of its secret.
#[derive(Debug)]
pub enum Evidence {
    /// Nothing that would log in elsewhere.
    None,
    /// Its password.
    Password(Password),
    /// The keys of its SCRAM proof: they log in to a server that stores the same verifier.
    Scram(ScramLogin),
}

/// The client has proved itself and does not know it yet.
#[derive(Debug)]
pub struct AwaitAcceptance {
    takes_long_keys: bool,
}

/// AuthenticationOk was sent.
#[derive(Debug)]
pub struct AwaitWelcome {
    takes_long_keys: bool,
}

/// What a client is told about its session.
#[derive(Debug)]
pub struct Welcome<'a, P> {
    /// Names and values of what the server reported, with the client's own values where it has some.
    pub parameters: P,
    /// The number before the cancel key.
    pub process_id: u32,
    /// 4 bytes, or up to 32 if [`super::Identity::takes_long_keys`].
    pub key: &'a [u8],
    /// Said before the client's first query (`login_notify_message`).
    pub notices: &'a [&'a str],
}

impl AwaitAcceptance {
    pub(super) fn new(takes_long_keys: bool) -> AwaitAcceptance {
        AwaitAcceptance { takes_long_keys }
    }

    /// The client may come in: no limit, no missing database stands against it. (If one does, its refusal is
    /// sent instead, and this state is dropped.)
    pub fn accepted(self, out: &mut Vec<u8>) -> AwaitWelcome {
        encode::auth_ok(out);
        AwaitWelcome { takes_long_keys: self.takes_long_keys }
    }
}

impl AwaitWelcome {
    /// Ends the login: all but ReadyForQuery is in `out`.
    pub fn welcome<'a, P>(self, welcome: Welcome<'_, P>, out: &mut Vec<u8>)
    where
        P: IntoIterator<Item = (&'a [u8], &'a [u8])>,
    {
        debug_assert!(self.takes_long_keys || welcome.key.len() == 4, "protocol 3.0 has keys of 4 bytes");
        for (name, value) in welcome.parameters {
            encode::parameter_status(out, name, value);
        }
        encode::backend_key(out, welcome.process_id, welcome.key);
        for notice in welcome.notices {
            encode::report(out, Severity::Notice, wire::sqlstate::SUCCESSFUL_COMPLETION, notice, None);
        }
    }
}

impl From<AwaitAcceptance> for Login {
    fn from(state: AwaitAcceptance) -> Login {
        Login::Acceptance(state)
    }
}

impl From<AwaitWelcome> for Login {
    fn from(state: AwaitWelcome) -> Login {
        Login::Welcome(state)
    }
}
