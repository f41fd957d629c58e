//! The login of one client, from its first byte to just before ReadyForQuery: a struct per state, consumed by
//! the input that ends it, so that an illegal order does not compile.
//!
//! It decides what a client may say before it is let in, and checks what it proves. It does not know sockets,
//! clocks, where secrets are kept, who may enter which pool, or what the log says.
//!
//! # How it is driven
//!
//! Bytes (already decrypted) go into [`Login::handle`], answers are appended to `out`, and [`Step::next`] says
//! what is wanted. Whoever drives the login flushes `out` and then:
//!
//! | next | is answered by |
//! |---|---|
//! | [`Next::Read`] | [`Login::handle`] with what was not consumed and at least one byte more |
//! | [`Next::StartTls`] | [`AwaitTls::established`] after the handshake |
//! | [`Next::Identify`] | [`AwaitChallenge::identified`] with the [`Challenge`] for that user |
//! | [`Next::CheckPassword`] | [`AwaitVerdict::checked`] with what [`PasswordCheck::run`] gave; that is slow |
//! | [`Next::Relayed`] | [`AwaitServer::said`] with each question, [`AwaitServer::let_in`] in the end |
//! | [`Next::Answer`] | the same: the answer goes to the server |
//! | [`Next::Authenticated`] | [`AwaitAcceptance::accepted`], then [`AwaitWelcome::welcome`], then ReadyForQuery |
//! | [`Next::Cancel`] | the request is passed on and the connection closes |
//! | [`Next::Refuse`] | [`crate::refuse::encode`], and the connection closes |
//! | [`Next::Close`] | the connection closes without a word |
//!
//! A state that waits for such an answer takes no bytes: they stay where they are. What a client has sent
//! behind its last password message is left for the session that follows.
//!
//! The time limit of the whole login, and the places among the clients that are not logged in yet, are counted
//! by whoever drives it.

mod challenge;
mod first;
mod options;
mod password;
mod relayed;
mod sasl;
mod startup;
mod welcome;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::Refusal;
use wire::client::tag;
use wire::startup::StartupFault;
use wire::{HEADER_SIZE, Header};

pub use challenge::{AwaitChallenge, Challenge, Expected};
pub use first::{AwaitFirst, AwaitTls, Transport};
pub use password::{AwaitMd5, AwaitPassword, AwaitVerdict, Checked, PasswordCheck};
pub use relayed::{Answer, AwaitAnswer, AwaitServer};
pub use sasl::{AwaitSaslFinal, AwaitSaslFirst};
pub use startup::{
    Carried, DATABASE_NAME_BYTES_MAX, Identity, Parameter, Policy, Replication, Requested,
    USER_NAME_BYTES_MAX, UnknownParameter,
};
pub use welcome::{Authenticated, AwaitAcceptance, AwaitWelcome, Evidence, Greeting};

/// Where a login stands.
#[derive(Debug)]
pub enum Login {
    /// Reads the startup message, or a request in its place.
    First(AwaitFirst),
    /// Waits for the TLS handshake.
    Tls(AwaitTls),
    /// Waits to be told how this user must prove himself.
    Challenge(AwaitChallenge),
    /// Reads a password in clear text.
    Password(AwaitPassword),
    /// Waits for the outcome of a slow check of a password.
    Verdict(AwaitVerdict),
    /// Reads the answer to an md5 salt.
    Md5(AwaitMd5),
    /// Reads SASLInitialResponse.
    SaslFirst(AwaitSaslFirst),
    /// Reads SASLResponse.
    SaslFinal(AwaitSaslFinal),
    /// Waits for a server that asks the client, or lets it in.
    Server(AwaitServer),
    /// Reads an answer for that server.
    Answer(AwaitAnswer),
    /// Waits for the word that the client may come in.
    Acceptance(AwaitAcceptance),
    /// Waits for what the client is told about its session.
    Welcome(AwaitWelcome),
}

/// What one call has done.
#[derive(Debug)]
pub struct Step {
    /// Bytes of the input that are done with. Of no meaning where the connection closes.
    pub consumed: usize,
    /// What is wanted now.
    pub next: Next,
}

/// What a login wants of whoever drives it.
#[derive(Debug)]
pub enum Next {
    /// More bytes than there were.
    Read(Login),
    /// A TLS handshake: `S` stands in `out`, and nothing came behind the request.
    StartTls(AwaitTls),
    /// How this user must prove himself.
    Identify(Identity, AwaitChallenge),
    /// A check that takes milliseconds: off the threads that do I/O.
    CheckPassword(PasswordCheck, AwaitVerdict),
    /// A server is to ask the client who it is. May the client get there?
    Relayed(Requested, AwaitServer),
    /// What the client answers to the server's question.
    Answer(Answer, AwaitServer),
    /// The client is who it says. May it come in?
    Authenticated(Authenticated, AwaitAcceptance),
    /// "Stop what the session with this key does", then close.
    Cancel {
        /// The number before the key.
        process_id: u32,
        /// 4 to 256 bytes; to be compared in constant time.
        key: Box<[u8]>,
    },
    /// What stands in `out`, then FATAL, which the login has not put there, then close.
    Refuse(Refusal),
    /// Close without a word.
    Close(Closed),
}

/// Why a connection closes without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The first bytes are not PostgreSQL's protocol, or a request in it is broken.
    BadFirstPacket(StartupFault),
    /// The client sent Terminate.
    Terminated,
}

impl Login {
    /// A login whose first byte has not been read. Direct TLS is told apart before: the transport is then
    /// [`Transport::Tls`].
    pub fn new(transport: Transport) -> Login {
        Login::First(AwaitFirst::new(transport))
    }

    /// Takes all bytes that are there and not consumed yet.
    pub fn handle(self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let mut login = self;
        let mut consumed = 0;
        loop {
            let step = login.message(&input[consumed..], out);
            consumed += step.consumed;
            match step.next {
                Next::Read(next) if step.consumed > 0 && consumed < input.len() => login = next,
                next => return Step { consumed, next },
            }
        }
    }

    /// Takes one message, or nothing.
    fn message(self, input: &[u8], out: &mut Vec<u8>) -> Step {
        match self {
            Login::First(state) => state.handle(input, out),
            Login::Password(state) => state.handle(input),
            Login::Md5(state) => state.handle(input),
            Login::SaslFirst(state) => state.handle(input, out),
            Login::SaslFinal(state) => state.handle(input, out),
            Login::Answer(state) => state.handle(input),
            waiting @ (Login::Tls(_)
            | Login::Challenge(_)
            | Login::Verdict(_)
            | Login::Server(_)
            | Login::Acceptance(_)
            | Login::Welcome(_)) => Step::unread(waiting),
        }
    }

    /// Whether bytes of the client move it on, rather than an answer of whoever drives it.
    pub fn reads(&self) -> bool {
        match self {
            Login::First(_)
            | Login::Password(_)
            | Login::Md5(_)
            | Login::SaslFirst(_)
            | Login::SaslFinal(_)
            | Login::Answer(_) => true,
            Login::Tls(_)
            | Login::Challenge(_)
            | Login::Verdict(_)
            | Login::Server(_)
            | Login::Acceptance(_)
            | Login::Welcome(_) => false,
        }
    }
}

impl Step {
    fn unread(login: Login) -> Step {
        Step { consumed: 0, next: Next::Read(login) }
    }
}

impl Next {
    fn violation(what: impl Into<Cow<'static, str>>) -> Next {
        Next::Refuse(Refusal::ProtocolViolation(what.into()))
    }
}

/// What ends a login where a password message should stand.
enum Unfit {
    /// The client leaves.
    Terminated,
    /// Another message, or one of no sound length.
    Violation(String),
}

impl From<Unfit> for Next {
    fn from(unfit: Unfit) -> Next {
        match unfit {
            Unfit::Terminated => Next::Close(Closed::Terminated),
            Unfit::Violation(what) => Next::violation(what),
        }
    }
}

/// The body of the password message at the head of the input and the size of the whole message; `None` while it
/// is not all there. Type and length are judged before the body is waited for.
fn answer(input: &[u8]) -> Result<Option<(&[u8], usize)>, Unfit> {
    let Some(header) = Header::peek(input) else { return Ok(None) };
    if !matches!(header.tag, tag::PASSWORD | tag::TERMINATE) {
        let found = header.tag;
        return Err(Unfit::Violation(format!("expected password response, got message type {found}")));
    }
    header.check_client().map_err(|fault| Unfit::Violation(fault.to_string()))?;
    if header.tag == tag::TERMINATE {
        return Err(Unfit::Terminated);
    }
    // The length was just bounded to 65,535 bytes and the four of itself.
    let total = HEADER_SIZE + header.body() as usize;
    Ok(input.get(HEADER_SIZE..total).map(|body| (body, total)))
}

/// The most bytes that must be held for a login to go on: one password message of the greatest length.
pub const INPUT_BYTES_MAX: usize = HEADER_SIZE + 65_535;
