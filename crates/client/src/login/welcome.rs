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

/// What clients are told about their sessions, all but their keys: the same bytes for all that come alike.
#[derive(Debug, Default)]
pub struct Greeting {
    before_key: Box<[u8]>,
    after_key: Box<[u8]>,
}

impl Greeting {
    /// `parameters`: names and values of what the server reported, with the client's own values where it has
    /// some. `notices`: said before the client's first query (`login_notify_message`).
    pub fn new<'a>(parameters: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, notices: &[&str]) -> Greeting {
        let (mut before_key, mut after_key) = (Vec::new(), Vec::new());
        for (name, value) in parameters {
            encode::parameter_status(&mut before_key, name, value);
        }
        for notice in notices {
            let code = wire::sqlstate::SUCCESSFUL_COMPLETION;
            encode::report(&mut after_key, Severity::Notice, code, notice, None);
        }
        Greeting { before_key: before_key.into(), after_key: after_key.into() }
    }
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
    /// Ends the login: all but ReadyForQuery is in `out`. `key`: 4 bytes, or up to 32 if
    /// [`super::Identity::takes_long_keys`]; `process_id` is the number before it.
    pub fn welcome(self, greeting: &Greeting, process_id: u32, key: &[u8], out: &mut Vec<u8>) {
        debug_assert!(self.takes_long_keys || key.len() == 4, "protocol 3.0 has keys of 4 bytes");
        out.reserve(greeting.before_key.len() + greeting.after_key.len() + 64);
        out.extend_from_slice(&greeting.before_key);
        encode::backend_key(out, process_id, key);
        out.extend_from_slice(&greeting.after_key);
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
