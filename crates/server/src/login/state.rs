//! The states of a login and which messages each of them takes. A message that a state does not name is a
//! fault. Does not know how SCRAM works inside; that is `auth`'s.

use auth::LoginSecret;
use auth::scram::Nonce;
use wire::server::{Authentication, TransactionStatus, tag};
use wire::startup::{FIRST_PACKET_MAX, Version};

use super::credential::{Method, Methods};
use super::fault::{LoginError, LoginFailed, LoginFault};
use super::frame::Message;
use super::scram::{self, NeedsKeys, SaslFinal, SaslFirst};

/// A parameter's name and value.
pub type Parameter = (Box<[u8]>, Box<[u8]>);

/// What to log in as, with what, and on which conditions.
#[derive(Clone, Debug)]
pub struct LoginOrder {
    /// The version asked for: 3.0 or 3.2. A server may answer with any minor version down to 0.
    pub version: Version,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// All other startup parameters, in the order in which to send them.
    pub parameters: Vec<Parameter>,
    /// Our secret.
    pub secret: LoginSecret,
    /// What the server may ask for. If SCRAM is in it only with channel binding, that is required.
    pub allowed: Methods,
    /// The TLS connection's `tls-server-end-point` data, if there is TLS.
    pub binding: Option<Box<[u8]>>,
    /// For SCRAM; never used before.
    pub nonce: Nonce,
    /// SQL to run before the connection is used. Its errors are kept and otherwise ignored.
    pub connect_query: Option<Box<[u8]>>,
}

/// A server connection that is ready, and what the server said about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedIn {
    /// What ParameterStatus reported, each name once with its last value, in the order of first mention.
    pub parameters: Vec<Parameter>,
    /// The server process, 0 if it was not told.
    pub process_id: u32,
    /// 4 to 256 bytes to cancel with, or none if it was not told.
    pub cancel_key: Box<[u8]>,
    /// The minor protocol version that both sides speak: 0 or 2.
    pub minor: u16,
    /// How the server let us in.
    pub method: Option<Method>,
    /// What came of `connect_query`, if it failed.
    pub connect_query_error: Option<LoginFailed>,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// The next message goes here.
    Next(Login),
    /// Keys must be made first.
    NeedsKeys(NeedsKeys),
    /// The server is ready.
    Done(LoggedIn),
}

/// A login under way; see the module for the order of calls.
#[derive(Debug)]
pub struct Login {
    pub(super) terms: Box<Terms>,
    pub(super) state: State,
}

/// What all states share.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) user: String,
    pub(super) secret: LoginSecret,
    pub(super) allowed: Methods,
    pub(super) binding: Option<Box<[u8]>>,
    pub(super) nonce: Nonce,
    connect_query: Option<Box<[u8]>>,
    parameter_bytes: usize,
    pub(super) bytes_left: usize,
    result: LoggedIn,
}

#[derive(Debug)]
pub(super) enum State {
    Asked(Asked),
    Answered(Answered),
    SaslFirst(SaslFirst),
    SaslFinal(SaslFinal),
    Admitted(Admitted),
    Querying(Querying),
}

/// What a state makes of a message.
pub(super) enum Next {
    State(State),
    NeedsKeys(auth::scram::NeedKeys),
    Done,
}

/// Writes the startup message.
pub fn begin(order: LoginOrder, out: &mut Vec<u8>) -> Result<Login, LoginFault> {
    let start = out.len();
    let named = [(&b"user"[..], order.user.as_bytes()), (b"database", order.database.as_bytes())];
    let others = order.parameters.iter().map(|(name, value)| (&**name, &**value));
    let framed = wire::encode::startup(out, order.version, named.into_iter().chain(others));
    if !framed || out.len() - start > FIRST_PACKET_MAX as usize {
        out.truncate(start);
        return Err(LoginFault::StartupTooLong);
    }
    let result = LoggedIn { minor: order.version.minor, ..LoggedIn::default() };
    let terms = Terms {
        user: order.user,
        secret: order.secret,
        allowed: order.allowed,
        binding: order.binding,
        nonce: order.nonce,
        connect_query: order.connect_query.filter(|query| !query.is_empty()),
        parameter_bytes: 0,
        bytes_left: LOGIN_BYTES_MAX,
        result,
    };
    Ok(Login { terms: Box::new(terms), state: State::Asked(Asked { negotiated: false }) })
}

impl Login {
    /// Takes the server's next message; what it answers is appended to `out`.
    pub fn handle(self, message: Message<'_>, out: &mut Vec<u8>) -> Result<Step, LoginError> {
        let Login { mut terms, state } = self;
        let size = wire::HEADER_SIZE + message.body.len();
        terms.bytes_left = terms.bytes_left.checked_sub(size).ok_or(LoginFault::TooMuch)?;
        let next = match (message.tag, state) {
            (tag::NOTICE_RESPONSE, state) => Next::State(state),
            (_, State::Querying(state)) => state.handle(&mut terms, message)?,
            (tag::ERROR_RESPONSE, _) => return Err(LoginError::Failed(LoginFailed::read(message.body))),
            (_, State::Asked(state)) => state.handle(&mut terms, message, out)?,
            (_, State::Answered(state)) => state.handle(message)?,
            (_, State::SaslFirst(state)) => state.handle(message)?,
            (_, State::SaslFinal(state)) => state.handle(message)?,
            (_, State::Admitted(state)) => state.handle(&mut terms, message, out)?,
        };
        Ok(match next {
            Next::State(state) => Step::Next(Login { terms, state }),
            Next::NeedsKeys(needed) => scram::keys_at_hand(terms, needed, out)?,
            Next::Done => Step::Done(terms.result),
        })
    }
}

/// The startup message is sent; the server has not asked for anything yet.
#[derive(Debug)]
pub(super) struct Asked {
    /// NegotiateProtocolVersion has come.
    negotiated: bool,
}

impl Asked {
    fn handle(self, terms: &mut Terms, message: Message<'_>, out: &mut Vec<u8>) -> Result<Next, LoginError> {
        if message.tag == tag::NEGOTIATE_PROTOCOL_VERSION && !self.negotiated {
            terms.negotiate(message)?;
            return Ok(Next::State(State::Asked(Asked { negotiated: true })));
        }
        match authentication(message)? {
            Authentication::Ok => {
                terms.allow(Method::Trust)?;
                Ok(Next::State(State::Admitted(Admitted)))
            }
            Authentication::CleartextPassword => {
                terms.allow(Method::Cleartext)?;
                let password = terms.secret.cleartext().ok_or(LoginFault::NoSecret(Method::Cleartext))?;
                wire::encode::password(out, password.reveal());
                Ok(Next::State(State::Answered(Answered)))
            }
            Authentication::Md5Password { salt } => {
                terms.allow(Method::Md5)?;
                let answer = terms.secret.md5(&terms.user, salt);
                let answer = answer.ok_or(LoginFault::NoSecret(Method::Md5))?;
                wire::encode::password(out, answer.as_bytes());
                Ok(Next::State(State::Answered(Answered)))
            }
            Authentication::Sasl(offered) => scram::begin(terms, offered, out),
            Authentication::Unsupported(number) => Err(LoginFault::MethodUnknown(number).into()),
            Authentication::SaslContinue(_) | Authentication::SaslFinal(_) => {
                Err(LoginFault::Unexpected(message.tag).into())
            }
        }
    }
}

/// Everything the server asked for is sent; it says yes or no.
#[derive(Debug)]
pub(super) struct Answered;

impl Answered {
    fn handle(self, message: Message<'_>) -> Result<Next, LoginError> {
        match authentication(message)? {
            Authentication::Ok => Ok(Next::State(State::Admitted(Admitted))),
            _ => Err(LoginFault::Unexpected(message.tag).into()),
        }
    }
}

/// We are in; the server tells about itself until it is ready.
#[derive(Debug)]
pub(super) struct Admitted;

impl Admitted {
    fn handle(self, terms: &mut Terms, message: Message<'_>, out: &mut Vec<u8>) -> Result<Next, LoginError> {
        match message.tag {
            tag::PARAMETER_STATUS => terms.parameter(message)?,
            tag::BACKEND_KEY_DATA if terms.result.cancel_key.is_empty() => {
                let (process_id, key) =
                    wire::server::backend_key(message.body).map_err(malformed(message))?;
                terms.result.process_id = process_id;
                terms.result.cancel_key = key.into();
            }
            tag::READY_FOR_QUERY => {
                idle(message)?;
                let Some(query) = terms.connect_query.take() else { return Ok(Next::Done) };
                wire::encode::query(out, &query);
                terms.bytes_left = QUERY_BYTES_MAX;
                return Ok(Next::State(State::Querying(Querying)));
            }
            _ => return Err(LoginFault::Unexpected(message.tag).into()),
        }
        Ok(Next::State(State::Admitted(self)))
    }
}

/// `connect_query` runs; its rows are of no interest.
#[derive(Debug)]
pub(super) struct Querying;

impl Querying {
    fn handle(self, terms: &mut Terms, message: Message<'_>) -> Result<Next, LoginError> {
        match message.tag {
            tag::PARAMETER_STATUS => terms.parameter(message)?,
            tag::ERROR_RESPONSE => {
                let failed = LoginFailed::read(message.body);
                // After FATAL no ReadyForQuery comes.
                if wire::server::ErrorFields::parse(message.body).is_fatal() {
                    return Err(LoginError::Failed(failed));
                }
                terms.result.connect_query_error.get_or_insert(failed);
            }
            tag::ROW_DESCRIPTION
            | tag::DATA_ROW
            | tag::COMMAND_COMPLETE
            | tag::EMPTY_QUERY_RESPONSE
            | tag::NOTIFICATION_RESPONSE => {}
            tag::READY_FOR_QUERY => {
                idle(message)?;
                return Ok(Next::Done);
            }
            _ => return Err(LoginFault::Unexpected(message.tag).into()),
        }
        Ok(Next::State(State::Querying(self)))
    }
}

impl Terms {
    /// The method, if it is allowed; it is noted as the one that was used.
    pub(super) fn allow(&mut self, method: Method) -> Result<(), LoginFault> {
        if !self.allowed.allows(method) {
            return Err(LoginFault::MethodNotAllowed(method));
        }
        self.result.method = Some(method);
        Ok(())
    }

    pub(super) fn negotiate(&mut self, message: Message<'_>) -> Result<(), LoginFault> {
        let (version, _) =
            wire::server::negotiate_protocol_version(message.body).map_err(malformed(message))?;
        // PostgreSQL sends the whole version; the manual says the minor one.
        let minor = if version >> 16 == 3 { version & 0xffff } else { version };
        match u16::try_from(minor) {
            Ok(minor) if minor <= self.result.minor => self.result.minor = minor,
            _ => return Err(LoginFault::VersionNotOffered(version)),
        }
        Ok(())
    }

    fn parameter(&mut self, message: Message<'_>) -> Result<(), LoginFault> {
        let (name, value) = wire::server::parameter_status(message.body).map_err(malformed(message))?;
        let parameters = &mut self.result.parameters;
        let known = parameters.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        let before = known.map_or(0, |at| parameters[at].0.len() + parameters[at].1.len());
        let bytes = self.parameter_bytes - before + name.len() + value.len();
        let count = parameters.len() + usize::from(known.is_none());
        if bytes > PARAMETER_BYTES_MAX || count > PARAMETERS_MAX {
            return Err(LoginFault::ParametersTooLarge);
        }
        self.parameter_bytes = bytes;
        let pair = (name.into(), value.into());
        match known {
            Some(at) => parameters[at] = pair,
            None => parameters.push(pair),
        }
        Ok(())
    }
}

/// Reads an Authentication message; every other is a fault.
pub(super) fn authentication(message: Message<'_>) -> Result<Authentication<'_>, LoginFault> {
    if message.tag != tag::AUTHENTICATION {
        return Err(LoginFault::Unexpected(message.tag));
    }
    wire::server::authentication(message.body).map_err(malformed(message))
}

fn idle(message: Message<'_>) -> Result<(), LoginFault> {
    match wire::server::ready_for_query(message.body).map_err(malformed(message))? {
        TransactionStatus::Idle => Ok(()),
        TransactionStatus::InTransaction | TransactionStatus::Failed => Err(LoginFault::NotIdle),
    }
}

fn malformed(message: Message<'_>) -> impl Fn(wire::Malformed) -> LoginFault {
    move |_| LoginFault::Malformed(message.tag)
}

/// All that a server may send before it is ready. PostgreSQL sends about 500 bytes.
const LOGIN_BYTES_MAX: usize = 1 << 20;
/// All that it may send in answer to `connect_query`.
const QUERY_BYTES_MAX: usize = 16 << 20;
/// PostgreSQL 18 reports 16 parameters.
const PARAMETERS_MAX: usize = 256;
/// Names and values of all parameters together.
const PARAMETER_BYTES_MAX: usize = 64 * 1024;
