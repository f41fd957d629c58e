//! Answers a server that asks for a password: in clear, md5 or SCRAM. Where a run begins and for what
//! watches it; the load generator only goes where nobody asks.

use crate::session::{Failure, Session};
use auth::Password;
use auth::md5::Md5Secret;
use auth::scram::{AwaitServerFinal, AwaitServerFirst, Begin, Mechanisms, Nonce, ScramLogin};
use std::fs::File;
use std::io::Read;

const OK: u32 = 0;
const CLEAR: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// A login under way.
pub struct Login<'a> {
    user: &'a str,
    password: Option<&'a str>,
    scram: Scram,
}

/// Where its SCRAM exchange stands.
enum Scram {
    None,
    Begun(AwaitServerFirst),
    Proven(AwaitServerFinal),
}

impl<'a> Login<'a> {
    /// As that user.
    pub fn new(user: &'a str, password: Option<&'a str>) -> Login<'a> {
        Login { user, password, scram: Scram::None }
    }

    /// Takes the body of an Authentication message, and answers it.
    pub fn answer(&mut self, body: &[u8], session: &mut Session) -> Result<(), Failure> {
        let (Some(code), data) = (body.first_chunk::<4>(), body.get(4..).unwrap_or_default()) else {
            return Err(Failure::Nonsense);
        };
        let code = u32::from_be_bytes(*code);
        if code == OK {
            return Ok(());
        }
        let password = self.password.ok_or(Failure::AsksForPassword)?;
        let secret = Password::new(password);
        match (code, std::mem::replace(&mut self.scram, Scram::None)) {
            (CLEAR, _) => session.send(b'p', &[password.as_bytes(), &[0]]),
            (MD5, _) => {
                let salt = data.first_chunk::<4>().ok_or(Failure::Nonsense)?;
                let response = Md5Secret::from_password(&secret, self.user).response(*salt);
                session.send(b'p', &[response.as_bytes(), &[0]])
            }
            (SASL, _) => {
                let offered = Mechanisms::from_names(data.split(|&byte| byte == 0));
                let nonce = Nonce(random().map_err(Failure::Lost)?);
                let begin = Begin {
                    offered,
                    binding: None,
                    binding_required: false,
                    iterations_max: auth::scram::ITERATIONS_MAX,
                    nonce,
                };
                let (next, first) = auth::scram::begin(begin).map_err(|_| Failure::AsksForPassword)?;
                self.scram = Scram::Begun(next);
                let length = (first.message.len() as u32).to_be_bytes();
                session.send(b'p', &[first.mechanism.name().as_bytes(), &[0], &length, &first.message])
            }
            (SASL_CONTINUE, Scram::Begun(state)) => {
                let needs = state.handle(data).map_err(|_| Failure::Nonsense)?;
                let keys = ScramLogin::derive(&secret, needs.salt(), needs.iterations());
                let (next, last) = needs.prove(&keys).map_err(|_| Failure::Nonsense)?;
                self.scram = Scram::Proven(next);
                session.send(b'p', &[&last])
            }
            (SASL_FINAL, Scram::Proven(state)) => state.handle(data).map_err(|_| Failure::Nonsense),
            _ => Err(Failure::AsksForPassword),
        }
    }
}

/// From the system's random source.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
