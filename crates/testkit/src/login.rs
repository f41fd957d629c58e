//! Logging in: which user, how, and whatever the server asks for on the way.
//!
//! SCRAM and md5 are computed by another implementation than the pooler's own.

use std::time::Duration;

use postgres_protocol::authentication::{md5_hash, sasl};
use sha2::{Digest, Sha256};

use crate::message::{self, Message};
use crate::raw::{Event, Raw, Refusal};
use crate::stream::Tls;

/// Who logs in, and with what. Built up by its methods.
#[derive(Clone, Debug)]
pub struct Login {
    version: (u16, u16),
    parameters: Vec<(String, String)>,
    password: Option<String>,
    tls: Option<Tls>,
    direct: bool,
    binding: bool,
}

impl Login {
    pub fn new(user: &str, database: &str) -> Login {
        let parameters = vec![("user".into(), user.into()), ("database".into(), database.into())];
        Login { version: (3, 0), parameters, password: None, tls: None, direct: false, binding: false }
    }

    pub fn password(mut self, password: &str) -> Login {
        self.password = Some(password.into());
        self
    }

    /// Adds a startup parameter, e.g. `application_name`, `options` or `_pq_.something`.
    pub fn parameter(mut self, name: &str, value: &str) -> Login {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// The protocol version asked for; 3.0 if not said.
    pub fn protocol(mut self, major: u16, minor: u16) -> Login {
        self.version = (major, minor);
        self
    }

    /// With TLS by SSLRequest.
    pub fn tls(mut self, tls: Tls) -> Login {
        self.tls = Some(tls);
        self
    }

    /// With TLS from the first byte.
    pub fn direct_tls(mut self, tls: Tls) -> Login {
        self.direct = true;
        self.tls(tls)
    }

    /// With SCRAM-SHA-256-PLUS, and nothing less.
    pub fn channel_binding(mut self) -> Login {
        self.binding = true;
        self
    }

    /// Runs the whole login on a new connection, up to ReadyForQuery.
    #[track_caller]
    pub fn run(&self, raw: &mut Raw) -> Result<(), Refusal> {
        match &self.tls {
            Some(tls) if self.direct => raw.start_direct_tls(tls).map_err(|error| refused_by_tls(&error))?,
            Some(tls) => raw.start_tls(tls),
            None => {}
        }
        self.send_startup(raw);
        loop {
            let message = next(raw)?;
            match message.tag {
                b'Z' => return Ok(()),
                b'R' => self.answer(raw, &message)?,
                _ => {}
            }
        }
    }

    /// Sends the StartupMessage only.
    #[track_caller]
    pub fn send_startup(&self, raw: &mut Raw) {
        let parameters: Vec<(&str, &str)> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        raw.send(message::startup(self.version, &parameters));
    }

    fn answer(&self, raw: &mut Raw, request: &Message) -> Result<(), Refusal> {
        let password = self.password.clone().unwrap_or_default();
        match request.int32_at(0) {
            Some(0) => {}
            Some(3) => raw.send(message::password(&password)),
            Some(5) => {
                let salt: [u8; 4] = request.body[4..8].try_into().expect("four bytes");
                let user = self.parameters[0].1.as_bytes();
                raw.send(message::password(&md5_hash(user, password.as_bytes(), salt)));
            }
            Some(10) => return self.scram(raw, request, &password),
            other => panic!("unknown authentication request {other:?}"),
        }
        Ok(())
    }

    fn scram(&self, raw: &mut Raw, request: &Message, password: &str) -> Result<(), Refusal> {
        let offered = Message { tag: b'R', body: request.body[4..].to_vec() }.strings();
        let mechanism = if self.binding { "SCRAM-SHA-256-PLUS" } else { "SCRAM-SHA-256" };
        assert!(offered.iter().any(|name| name == mechanism), "{mechanism} is not among {offered:?}");
        let binding = if self.binding {
            let certificate = raw.stream().server_certificate().expect("channel binding needs TLS");
            sasl::ChannelBinding::tls_server_end_point(Sha256::digest(certificate).to_vec())
        } else {
            sasl::ChannelBinding::unsupported()
        };
        let mut scram = sasl::ScramSha256::new(password.as_bytes(), binding);
        raw.send(message::sasl_initial(mechanism, scram.message()));
        let challenge = expect_authentication(raw, 11)?;
        scram.update(&challenge.body[4..]).expect("a server's first message");
        raw.send(message::sasl_response(scram.message()));
        let last = expect_authentication(raw, 12)?;
        scram.finish(&last.body[4..]).expect("a server that knows the password");
        Ok(())
    }
}

fn expect_authentication(raw: &mut Raw, code: i32) -> Result<Message, Refusal> {
    loop {
        let message = next(raw)?;
        if message.tag == b'R' {
            assert_eq!(message.int32_at(0), Some(code), "authentication out of order: {message:?}");
            return Ok(message);
        }
    }
}

/// The next message; an error or the end is a refusal.
fn next(raw: &mut Raw) -> Result<Message, Refusal> {
    match raw.next(LIMIT) {
        Event::Message(message) if message.tag == b'E' => Err(Refusal::from(&message)),
        Event::Message(message) => Ok(message),
        Event::End(end) => Err(refused(&format!("{end:?}"))),
        Event::Silence => panic!("no answer to a login; seen so far: {}", raw.seen()),
    }
}

fn refused_by_tls(error: &std::io::Error) -> Refusal {
    refused(&format!("TLS: {error}"))
}

/// A refusal without any words from the server has no SQLSTATE.
fn refused(text: &str) -> Refusal {
    Refusal { severity: String::new(), sqlstate: String::new(), text: text.into() }
}

const LIMIT: Duration = Duration::from_secs(30);
