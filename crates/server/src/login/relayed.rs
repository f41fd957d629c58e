//! A login whose secret is a client's: what the server asks goes to the client, and what that answers to the server.
//!
//! Decides what may be passed on, and sees the end of it. Nothing of an answer is kept. Once the server has said yes,
//! the rest is an ordinary [`Login`]'s.
//!
//! One thing cannot be passed on: SCRAM that is bound to a TLS connection, because there are two of those. So the
//! server's offer of it is left out, unless both have the same certificate, which is all that it is bound to.

use wire::HEADER_SIZE;
use wire::server::{Authentication, Mechanisms, tag};

use super::credential::{Method, Methods};
use super::fault::{LoginError, LoginFailed, LoginFault};
use super::frame::Message;
use super::state::{Admitted, Login, LoginOrder, State, Terms, authentication, begin};

/// The login, as long as the server asks.
#[derive(Debug)]
pub struct Relayed {
    terms: Box<Terms>,
    /// The client's TLS connection is bound to what the server's is bound to.
    may_bind: bool,
    has_negotiated: bool,
    /// The client has been asked.
    is_asked: bool,
    /// The server offered what was left out.
    has_left_out: bool,
    rounds_left: u8,
}

/// What comes next.
#[derive(Debug)]
pub enum RelayStep {
    /// The server's next message goes here.
    Next(Relayed),
    /// This message is the client's. If it is a question, [`Relayed::answered`] comes before it goes on.
    Put {
        /// The whole message.
        message: Box<[u8]>,
        /// The client answers it.
        is_question: bool,
        /// Where its answer, or the server's next message, goes.
        next: Relayed,
    },
    /// The client is let in.
    LetIn(Login),
}

impl Relayed {
    /// Writes the startup message; the secret in `order` is not used. `may_bind`: the client has the same binding data
    /// as the server.
    ///
    /// # Errors
    /// A startup message that is too long.
    pub fn begin(order: LoginOrder, may_bind: bool, out: &mut Vec<u8>) -> Result<Relayed, LoginFault> {
        let Login { terms, .. } = begin(order, out)?;
        Ok(Relayed {
            terms,
            may_bind,
            has_negotiated: false,
            is_asked: false,
            has_left_out: false,
            rounds_left: ROUNDS_MAX,
        })
    }

    /// Takes the server's next message.
    ///
    /// # Errors
    /// The server's no, and whatever does not belong here.
    pub fn handle(mut self, message: Message<'_>) -> Result<RelayStep, LoginError> {
        let size = HEADER_SIZE + message.body.len();
        self.terms.bytes_left = self.terms.bytes_left.checked_sub(size).ok_or(LoginFault::TooMuch)?;
        match message.tag {
            tag::NOTICE_RESPONSE => return Ok(RelayStep::Next(self)),
            tag::ERROR_RESPONSE => return Err(LoginError::Failed(LoginFailed::read(message.body))),
            tag::NEGOTIATE_PROTOCOL_VERSION if !self.has_negotiated => {
                self.terms.negotiate(message)?;
                self.has_negotiated = true;
                return Ok(RelayStep::Next(self));
            }
            _ if self.is_asked => return Err(LoginFault::Unexpected(message.tag).into()),
            _ => {}
        }
        let is_question = match authentication(message)? {
            Authentication::Ok => {
                let terms = self.terms;
                return Ok(RelayStep::LetIn(Login { terms, state: State::Admitted(Admitted) }));
            }
            Authentication::Sasl(offered) => return self.offer(offered),
            Authentication::SaslFinal(_) => false,
            Authentication::CleartextPassword => {
                self.terms.allow(Method::Cleartext)?;
                true
            }
            Authentication::Md5Password { .. } => {
                self.terms.allow(Method::Md5)?;
                true
            }
            Authentication::SaslContinue(_) => true,
            Authentication::Unsupported(kind @ (GSS | GSS_CONTINUE | SSPI)) => {
                if self.terms.allowed != Methods::ALL {
                    return Err(LoginFault::MethodUnknown(kind).into());
                }
                true
            }
            Authentication::Unsupported(kind) => return Err(LoginFault::MethodUnknown(kind).into()),
        };
        self.put(message.body, is_question)
    }

    /// The client has answered; the answer may go to the server.
    ///
    /// # Errors
    /// A proof that would be refused there for what only we can know.
    pub fn answered(&mut self, message: &[u8]) -> Result<(), LoginFault> {
        self.is_asked = false;
        let choice = std::mem::take(&mut self.has_left_out).then_some(message).and_then(bound);
        if choice == Some(b'y') { Err(LoginFault::BindingLost) } else { Ok(()) }
    }

    fn offer(mut self, offered: Mechanisms<'_>) -> Result<RelayStep, LoginError> {
        let allowed = self.terms.allowed;
        let mut body = SASL.to_be_bytes().to_vec();
        let before = body.len();
        for name in offered.names() {
            let is_fit = match name {
                PLUS if !self.may_bind => {
                    self.has_left_out = true;
                    false
                }
                PLUS => allowed.allows(Method::ScramPlus),
                SCRAM => allowed.allows(Method::Scram),
                _ => allowed == Methods::ALL,
            };
            if is_fit {
                body.extend_from_slice(name);
                body.push(0);
            }
        }
        if body.len() == before {
            return Err(LoginFault::MethodNotAllowed(Method::Scram).into());
        }
        body.push(0);
        self.terms.allow(Method::Scram)?;
        self.put(&body, true)
    }

    fn put(mut self, body: &[u8], is_question: bool) -> Result<RelayStep, LoginError> {
        self.rounds_left = self.rounds_left.checked_sub(1).ok_or(LoginFault::TooMuch)?;
        self.is_asked = is_question;
        let mut message = Vec::with_capacity(HEADER_SIZE + body.len());
        message.push(tag::AUTHENTICATION);
        // Its length was checked when it was cut out.
        message.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
        message.extend_from_slice(body);
        Ok(RelayStep::Put { message: message.into(), is_question, next: self })
    }
}

/// Of a SASLInitialResponse for plain SCRAM the letter that says what the client thinks of channel binding.
fn bound(message: &[u8]) -> Option<u8> {
    let body = message.get(HEADER_SIZE..)?;
    let rest = body.strip_prefix(SCRAM)?.strip_prefix(b"\0")?;
    rest.get(4).copied()
}

const SCRAM: &[u8] = b"SCRAM-SHA-256";
const PLUS: &[u8] = b"SCRAM-SHA-256-PLUS";
const SASL: u32 = 10;
const GSS: u32 = 7;
const GSS_CONTINUE: u32 = 8;
const SSPI: u32 = 9;
/// SCRAM takes three, Kerberos a few more.
const ROUNDS_MAX: u8 = 32;

#[cfg(test)]
mod tests {
    use auth::LoginSecret;
    use auth::scram::Nonce;
    use wire::startup::Version;

    use super::*;

    fn begin(allowed: Methods, may_bind: bool) -> Relayed {
        let order = LoginOrder {
            version: Version::V3_0,
            user: "ann@host".into(),
            database: "app".into(),
            parameters: vec![(b"application_name".as_slice().into(), b"x".as_slice().into())],
            secret: LoginSecret::None,
            allowed,
            binding: None,
            nonce: Nonce([0; 18]),
            connect_query: None,
        };
        let mut out = Vec::new();
        let relayed = Relayed::begin(order, may_bind, &mut out).expect("it is short");
        assert!(out.windows(9).any(|part| part == b"ann@host\0"));
        relayed
    }

    fn says(relayed: Relayed, tag: u8, body: &[u8]) -> Result<RelayStep, LoginError> {
        relayed.handle(Message { tag, body })
    }

    fn asks(relayed: Relayed, kind: u32, rest: &[u8]) -> Result<RelayStep, LoginError> {
        says(relayed, b'R', &[&kind.to_be_bytes(), rest].concat())
    }

    #[track_caller]
    fn put(step: Result<RelayStep, LoginError>) -> (Vec<u8>, bool, Relayed) {
        match step {
            Ok(RelayStep::Put { message, is_question, next }) => (message.into(), is_question, next),
            other => panic!("{other:?}"),
        }
    }

    fn fault(step: Result<RelayStep, LoginError>) -> LoginFault {
        match step {
            Err(LoginError::Fault(fault)) => fault,
            other => panic!("{other:?}"),
        }
    }

    const BOTH: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";

    fn initial(flag: u8) -> Vec<u8> {
        [b"p\0\0\0\x40SCRAM-SHA-256\0\0\0\0\x20", &[flag][..], b",,n=,r=abc"].concat()
    }

    #[test]
    fn exchange_is_passed_on_as_it_comes() {
        let (message, is_question, mut next) =
            put(asks(begin(Methods::ALL, false), 10, b"SCRAM-SHA-256\0\0"));
        assert_eq!(message, b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0");
        assert!(is_question);
        next.answered(&initial(b'n')).expect("it may");
        let (message, is_question, mut next) = put(asks(next, 11, b"r=abc"));
        assert_eq!(message, b"R\0\0\0\x0d\0\0\0\x0br=abc");
        assert!(is_question);
        next.answered(b"p\0\0\0\x05x").expect("it may");
        let (_, is_question, next) = put(asks(next, 12, b"v=abc"));
        assert!(!is_question);
        assert!(matches!(asks(next, 0, b""), Ok(RelayStep::LetIn(_))));
    }

    #[test]
    fn binding_is_offered_only_where_it_can_hold() {
        let (message, ..) = put(asks(begin(Methods::ALL, true), 10, BOTH));
        assert!(message.windows(4).any(|part| part == b"PLUS"));
        let (message, _, mut next) = put(asks(begin(Methods::ALL, false), 10, BOTH));
        assert!(!message.windows(4).any(|part| part == b"PLUS"));
        // It would be refused by the server, in words that help nobody.
        assert_eq!(next.answered(&initial(b'y')), Err(LoginFault::BindingLost));
        let (.., mut next) = put(asks(begin(Methods::ALL, false), 10, b"SCRAM-SHA-256\0\0"));
        assert_eq!(next.answered(&initial(b'y')), Ok(()));
    }

    #[test]
    fn only_what_is_allowed_is_asked() {
        let scram = Methods::EMPTY.with(Method::Scram);
        let cleartext = LoginFault::MethodNotAllowed(Method::Cleartext);
        assert_eq!(fault(asks(begin(scram, false), 3, b"")), cleartext);
        assert_eq!(fault(asks(begin(scram, false), 5, b"salt")), LoginFault::MethodNotAllowed(Method::Md5));
        assert_eq!(fault(asks(begin(scram, false), 7, b"")), LoginFault::MethodUnknown(7));
        assert_eq!(fault(asks(begin(Methods::ALL, false), 6, b"")), LoginFault::MethodUnknown(6));
        assert_eq!(
            fault(asks(begin(scram, false), 10, b"OAUTHBEARER\0\0")),
            LoginFault::MethodNotAllowed(Method::Scram)
        );
        put(asks(begin(Methods::ALL, false), 10, b"OAUTHBEARER\0\0"));
    }

    #[test]
    fn server_that_does_not_wait_for_the_answer_is_none() {
        let (.., next) = put(asks(begin(Methods::ALL, false), 3, b""));
        assert_eq!(fault(asks(next, 0, b"")), LoginFault::Unexpected(b'R'));
        assert_eq!(fault(says(begin(Methods::ALL, false), b'Z', b"I")), LoginFault::Unexpected(b'Z'));
    }

    #[test]
    fn questions_come_to_an_end() {
        let mut relayed = begin(Methods::ALL, false);
        for _ in 0..ROUNDS_MAX {
            let (.., mut next) = put(asks(relayed, 3, b""));
            next.answered(b"p\0\0\0\x05\0").expect("it may");
            relayed = next;
        }
        assert_eq!(fault(asks(relayed, 3, b"")), LoginFault::TooMuch);
    }
}
