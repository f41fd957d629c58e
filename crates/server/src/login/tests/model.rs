//! Servers to log in to: one that follows a script and one that knows passwords.

use std::num::NonZeroU32;

use auth::md5::{Md5Secret, check_md5};
use auth::scram::{AwaitClientFinal, AwaitClientFirst, Credential, Nonce, ScramVerifier};
use auth::{LoginSecret, Password, StoredSecret};
use wire::encode;
use wire::server::TransactionStatus;
use wire::startup::Version;

use crate::login::*;

pub const PASSWORD: &[u8] = b"open sesame";
pub const BINDING: &[u8] = b"thirty-two bytes of a hash, say.";

pub fn order() -> LoginOrder {
    LoginOrder {
        version: Version::V3_0,
        user: "ann".into(),
        database: "shop".into(),
        parameters: Vec::new(),
        secret: LoginSecret::Clear(Password::new(PASSWORD)),
        allowed: Methods::ALL,
        binding: None,
        nonce: Nonce([1; 18]),
        connect_query: None,
    }
}

/// What a server says that lets everybody in.
pub fn welcome() -> Vec<u8> {
    let mut out = Vec::new();
    encode::auth_ok(&mut out);
    after_auth(&mut out);
    out
}

fn after_auth(out: &mut Vec<u8>) {
    encode::parameter_status(out, b"server_version", b"15.1");
    encode::report(out, encode::Severity::Notice, "00000", "hello", None);
    encode::parameter_status(out, b"TimeZone", b"UTC");
    encode::backend_key(out, 77, b"abcd");
    encode::ready_for_query(out, TransactionStatus::Idle);
}

/// Something that answers what the login sends.
pub trait Server {
    fn answer(&mut self, sent: &[u8]) -> Vec<u8>;
}

/// Says its lines one by one, whatever it is told.
pub struct Answering {
    lines: std::vec::IntoIter<Vec<u8>>,
    pub received: Vec<Vec<u8>>,
}

impl Answering {
    pub fn new(lines: Vec<Vec<u8>>) -> Answering {
        Answering { lines: lines.into_iter(), received: Vec::new() }
    }
}

impl Server for Answering {
    fn answer(&mut self, sent: &[u8]) -> Vec<u8> {
        self.received.push(sent.to_vec());
        self.lines.next().unwrap_or_default()
    }
}

/// Asks for the password as PostgreSQL does.
pub struct Asking {
    step: AskingStep,
}

enum AskingStep {
    Begin(Ask),
    Cleartext,
    Md5,
    ScramFirst(Box<AwaitClientFirst>),
    ScramFinal(Box<AwaitClientFinal>),
    Over,
}

#[derive(Clone, Copy)]
pub enum Ask {
    Cleartext,
    Md5,
    Scram,
    ScramPlus,
}

impl Asking {
    pub fn new(ask: Ask) -> Asking {
        Asking { step: AskingStep::Begin(ask) }
    }
}

pub fn verifier() -> ScramVerifier {
    ScramVerifier::from_password(&Password::new(PASSWORD), b"salt", NonZeroU32::new(16).unwrap())
}

impl Server for Asking {
    fn answer(&mut self, sent: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let body = sent.get(5..).unwrap_or_default();
        let admitted = |out: &mut Vec<u8>, right: bool| {
            if right {
                encode::auth_ok(out);
                after_auth(out);
            } else {
                encode::report(out, encode::Severity::Fatal, "28P01", "wrong", None);
            }
        };
        self.step = match std::mem::replace(&mut self.step, AskingStep::Over) {
            AskingStep::Begin(Ask::Cleartext) => {
                encode::auth_cleartext(&mut out);
                AskingStep::Cleartext
            }
            AskingStep::Begin(Ask::Md5) => {
                encode::auth_md5(&mut out, *b"salt");
                AskingStep::Md5
            }
            AskingStep::Begin(ask @ (Ask::Scram | Ask::ScramPlus)) => {
                let binding = matches!(ask, Ask::ScramPlus).then_some(BINDING);
                let state = AwaitClientFirst::new(Credential::stored(verifier()), binding, Nonce([2; 18]));
                let names: Vec<_> = state.mechanisms().iter().map(|mechanism| mechanism.name()).collect();
                encode::auth_sasl(&mut out, &names);
                AskingStep::ScramFirst(Box::new(state))
            }
            AskingStep::Cleartext => {
                admitted(&mut out, wire::client::password(body) == Ok(PASSWORD));
                AskingStep::Over
            }
            AskingStep::Md5 => {
                let given = wire::client::password(body).unwrap();
                let stored = StoredSecret::Md5(Md5Secret::from_password(&Password::new(PASSWORD), "ann"));
                admitted(&mut out, check_md5(Some(&stored), "ann", *b"salt", given).is_ok());
                AskingStep::Over
            }
            AskingStep::ScramFirst(state) => {
                let first = wire::client::SaslInitial::parse(body).unwrap();
                let (next, message) = state.handle(first.mechanism, first.data.unwrap()).unwrap();
                encode::auth_sasl_continue(&mut out, &message);
                AskingStep::ScramFinal(Box::new(next))
            }
            AskingStep::ScramFinal(state) => {
                match state.handle(body) {
                    Ok(verified) => {
                        encode::auth_sasl_final(&mut out, &verified.server_final);
                        admitted(&mut out, true);
                    }
                    Err(_) => admitted(&mut out, false),
                }
                AskingStep::Over
            }
            AskingStep::Over => AskingStep::Over,
        };
        out
    }
}

/// The login has ended without an end: the script was too short.
pub const UNFINISHED: LoginError = LoginError::Fault(LoginFault::Unexpected(0));

/// Logs in to a server that says these lines.
pub fn script(order: LoginOrder, lines: &[Vec<u8>]) -> Result<LoggedIn, LoginError> {
    play(order, &mut Answering::new(lines.to_vec()))
}

/// Logs in to a server.
pub fn play(order: LoginOrder, server: &mut dyn Server) -> Result<LoggedIn, LoginError> {
    let mut out = Vec::new();
    let mut login = begin(order, &mut out)?;
    let mut received = Vec::new();
    loop {
        let sent = std::mem::take(&mut out);
        received.extend(server.answer(&sent));
        // What was sent is answered; now all messages at hand are taken.
        while let Some((message, size)) = next_message(&received)? {
            let step = login.handle(message, &mut out)?;
            received.drain(..size);
            login = match step {
                Step::Next(login) => login,
                Step::NeedsKeys(needs) => {
                    let keys = needs.work().run();
                    needs.keys(&keys, &mut out)?
                }
                Step::Done(logged_in) => return Ok(logged_in),
            };
        }
        if out.is_empty() {
            return Err(UNFINISHED);
        }
    }
}
