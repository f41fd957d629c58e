//! Whole conversations with one client, in its bytes; whoever drives the login is played by [`hear`].

mod conversations;
mod first_packets;
mod hostile;
mod parameters;
mod relayed;

use std::num::NonZeroU32;

use auth::md5::Md5Secret;
use auth::scram::{self, AwaitClientFirst, Begin, Credential, Mechanisms, MockKey, Nonce, ScramVerifier};
use auth::{Password, StoredSecret};
use wire::encode;
use wire::startup::Version;

use super::{
    Challenge, Evidence, Expected, Greeting, Identity, Login, Next, Parameter, Requested, Transport,
};

const USER: &str = "ann";
const PASSWORD: &[u8] = b"s3cr3t-canary";
const SALT: [u8; 4] = [1, 2, 3, 4];
const BINDING: &[u8] = b"digest of the certificate";
const ONE: NonZeroU32 = NonZeroU32::new(1).unwrap();

/// All that came of one conversation.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    /// Messages and asks in order, as words.
    words: Vec<String>,
    /// Every byte sent to the client.
    sent: Vec<u8>,
    /// What was left of the client's bytes.
    rest: Vec<u8>,
    identity: Option<Identity>,
    requested: Option<Requested>,
    /// Debug output of everything that came by.
    debug: String,
}

/// Feeds the segments one by one; every ask is answered at once. Ends where the login ends.
fn hear<'a>(
    transport: Transport,
    challenge: &dyn Fn() -> Challenge,
    segments: impl IntoIterator<Item = &'a [u8]>,
) -> Heard {
    let mut heard = Heard::default();
    let mut login = Some(Login::new(transport));
    for segment in segments {
        heard.rest.extend_from_slice(segment);
        while let Some(state) = login.take() {
            assert!(state.reads());
            let mut out = Vec::new();
            let mut step = state.handle(&heard.rest, &mut out);
            heard.rest.drain(..step.consumed);
            heard.sent(&out);
            let mut asked = false;
            login = loop {
                heard.debug.push_str(&format!("{:?}", step.next));
                match heard.answer(step.next, challenge) {
                    Ok(Next::Read(login)) => break Some(login),
                    Ok(next) => step.next = next,
                    Err(()) => break None,
                }
                asked = true;
            };
            if step.consumed == 0 && !asked {
                break;
            }
        }
    }
    heard
}

impl Heard {
    /// Plays the driver; `Err` is the end.
    fn answer(&mut self, next: Next, challenge: &dyn Fn() -> Challenge) -> Result<Next, ()> {
        let mut out = Vec::new();
        let word = match next {
            Next::Read(login) => return Ok(Next::Read(login)),
            Next::StartTls(waiting) => {
                assert!(self.rest.is_empty(), "nothing may come before the handshake");
                self.words.push("tls".to_owned());
                return Ok(Next::Read(waiting.established()));
            }
            Next::Identify(identity, waiting) => {
                self.words.push("who".to_owned());
                self.identity = Some(identity);
                let next = waiting.identified(challenge(), &mut out);
                self.sent(&out);
                return Ok(next);
            }
            Next::CheckPassword(check, waiting) => {
                self.words.push("check".to_owned());
                return Ok(waiting.checked(check.run()));
            }
            Next::Authenticated(authenticated, _) => {
                self.requested = Some(authenticated.requested);
                match authenticated.evidence {
                    Evidence::None => "in".to_owned(),
                    Evidence::Password(password) => {
                        assert_eq!(password.reveal(), PASSWORD);
                        "in by password".to_owned()
                    }
                    Evidence::Scram(_) => "in by keys".to_owned(),
                }
            }
            Next::Relayed(..) | Next::Answer(..) => "passed on".to_owned(),
            Next::Cancel { process_id, key } => format!("cancel {process_id} {}", key.escape_ascii()),
            Next::Refuse(refusal) => format!("refused {} {refusal}", refusal.sqlstate()),
            Next::Close(closed) => format!("{closed:?}"),
        };
        self.words.push(word);
        Err(())
    }

    /// Names the messages that went out.
    fn sent(&mut self, out: &[u8]) {
        self.sent.extend_from_slice(out);
        let mut rest = out;
        while let Some((&tag, tail)) = rest.split_first() {
            let Some(length) = tail.first_chunk::<4>() else {
                assert!(tail.is_empty() && matches!(tag, b'S' | b'N'), "{out:?}");
                self.words.push(char::from(tag).to_string());
                return;
            };
            let length = u32::from_be_bytes(*length) as usize;
            self.words.push(match tag {
                b'R' => format!("R{}", tail[7]),
                _ => char::from(tag).to_string(),
            });
            rest = &tail[length..];
        }
    }

    fn story(&self) -> String {
        self.words.join(", ")
    }
}

fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    startup_of(Version::V3_0, parameters)
}

fn startup_of(version: Version, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let pairs = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    assert!(encode::startup(&mut out, version, pairs));
    out
}

fn hello() -> Vec<u8> {
    startup(&[("user", USER), ("database", "shop"), ("DateStyle", "ISO")])
}

fn password(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(encode::password(&mut out, text));
    out
}

fn clear() -> StoredSecret {
    StoredSecret::Clear(Password::new(PASSWORD))
}

fn md5_answer(text: &[u8]) -> Vec<u8> {
    password(Md5Secret::from_password(&Password::new(text), USER).response(SALT).as_bytes())
}

fn verifier() -> ScramVerifier {
    ScramVerifier::from_password(&Password::new(PASSWORD), &MockKey::new([7; 32]).salt(USER), ONE)
}

fn exchange(credential: Credential, binding: Option<&[u8]>) -> AwaitClientFirst {
    AwaitClientFirst::new(credential, binding, Nonce([9; 18]))
}

fn stored_exchange(binding: Option<&[u8]>) -> AwaitClientFirst {
    exchange(Credential::stored(verifier()), binding)
}

fn mock_exchange() -> AwaitClientFirst {
    exchange(Credential::mock(&MockKey::new([7; 32]), USER, ONE), None)
}

/// Both SASL messages of a client that knows `text`, answering to what `server` would say.
fn sasl(text: &[u8], server: AwaitClientFirst, binding: Option<&[u8]>) -> [Vec<u8>; 2] {
    let offered = Mechanisms { plain: true, plus: binding.is_some() };
    let (client, first) = scram::begin(Begin {
        offered,
        binding,
        binding_required: false,
        iterations_max: 1,
        nonce: Nonce([5; 18]),
    })
    .expect("a mechanism in common");
    let name = first.mechanism.name();
    let (_, server_first) = server.handle(name.as_bytes(), &first.message).expect("a sound message");
    let keys_wanted = client.handle(&server_first).expect("a sound answer");
    let login = scram::ScramLogin::derive(&Password::new(text), keys_wanted.salt(), keys_wanted.iterations());
    let (_, proof) = keys_wanted.prove(&login).expect("fitting keys");
    let (mut initial, mut response) = (Vec::new(), Vec::new());
    assert!(encode::sasl_initial(&mut initial, name, &first.message));
    assert!(encode::sasl_response(&mut response, &proof));
    [initial, response]
}
