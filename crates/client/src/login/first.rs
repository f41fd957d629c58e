//! The first packet: a startup message, or one of the requests that may stand before it. Decides whether TLS is
//! begun, and that nothing sent before it counts as sent through it. Does not know certificates or handshakes.

use model::Refusal;
use wire::startup::{self, First, Startup, StartupFault};

use super::startup::Opening;
use super::{AwaitChallenge, Closed, Login, Next, Step};

/// How the client's bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In clear text, and TLS cannot be had: a Unix socket, or TLS is off.
    Plain,
    /// In clear text; TLS may be had.
    PlainTlsOffered,
    /// In clear text; TLS must be had before the startup message.
    PlainTlsRequired,
    /// Through TLS.
    Tls,
}

/// Nothing was read, or only requests that were answered.
#[derive(Debug)]
pub struct AwaitFirst {
    transport: Transport,
    tls_asked: bool,
    gss_asked: bool,
}

/// `S` was answered to SSLRequest.
#[derive(Debug)]
pub struct AwaitTls(());

impl AwaitTls {
    /// The handshake is done: what comes now comes through TLS.
    pub fn established(self) -> Login {
        Login::First(AwaitFirst::new(Transport::Tls))
    }
}

impl From<AwaitTls> for Login {
    fn from(state: AwaitTls) -> Login {
        Login::Tls(state)
    }
}

impl AwaitFirst {
    pub(super) fn new(transport: Transport) -> AwaitFirst {
        // PostgreSQL takes neither request inside TLS.
        let inside = transport == Transport::Tls;
        AwaitFirst { transport, tls_asked: inside, gss_asked: inside }
    }

    pub(super) fn handle(self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let length = match startup::length(input) {
            Ok(Some(length)) if length <= input.len() => length,
            Ok(_) => return Step::unread(Login::First(self)),
            Err(fault) => return Step { consumed: 0, next: Next::Close(Closed::BadFirstPacket(fault)) },
        };
        let (packet, rest) = input.split_at(length);
        let next = match First::parse(packet) {
            Ok(First::SslRequest) => self.ssl_request(rest, out),
            Ok(First::GssEncRequest) => self.gss_request(rest, out),
            Ok(First::CancelRequest { process_id, key }) => Next::Cancel { process_id, key: key.into() },
            Ok(First::Startup(message)) => self.startup(message, out),
            Err(StartupFault::UnsupportedVersion(version)) => {
                Next::Refuse(Refusal::UnsupportedVersion(version.major, version.minor))
            }
            Err(fault @ StartupFault::BadLayout) => Next::violation(fault.to_string()),
            Err(fault) => Next::Close(Closed::BadFirstPacket(fault)),
        };
        Step { consumed: length, next }
    }

    fn ssl_request(mut self, rest: &[u8], out: &mut Vec<u8>) -> Next {
        if self.tls_asked {
            return Next::Refuse(Refusal::UnsupportedVersion(1234, 5679));
        }
        // Bytes behind the request came in clear text. Kept, they would count as sent through TLS: whoever sits
        // between the two ends could put a startup message or a query there.
        if !rest.is_empty() {
            return Next::violation("received unencrypted data after SSL request");
        }
        self.tls_asked = true;
        match self.transport {
            Transport::PlainTlsOffered | Transport::PlainTlsRequired => {
                out.push(b'S');
                Next::StartTls(AwaitTls(()))
            }
            Transport::Plain | Transport::Tls => {
                out.push(b'N');
                Next::Read(Login::First(self))
            }
        }
    }

    fn gss_request(mut self, rest: &[u8], out: &mut Vec<u8>) -> Next {
        if self.gss_asked {
            return Next::Refuse(Refusal::UnsupportedVersion(1234, 5680));
        }
        if !rest.is_empty() {
            return Next::violation("received unencrypted data after GSSAPI encryption request");
        }
        self.gss_asked = true;
        out.push(b'N');
        Next::Read(Login::First(self))
    }

    fn startup(self, message: Startup<'_>, out: &mut Vec<u8>) -> Next {
        if self.transport == Transport::PlainTlsRequired {
            return Next::Refuse(Refusal::SslRequired);
        }
        match Opening::read(message) {
            Ok(opening) => {
                opening.negotiate(out);
                let Opening { identity, requested, .. } = opening;
                let waiting = AwaitChallenge::new(&identity, requested);
                Next::Identify(identity, waiting)
            }
            Err(refusal) => Next::Refuse(refusal),
        }
    }
}
