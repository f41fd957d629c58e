//! New server connections: from a host's name to a logged-in, non-blocking socket.
//!
//! Runs on the control plane's runtime. Decides the order of the steps (name, address, TLS, login) and that one
//! deadline holds for all of them. Does not know pools: it is handed one order and gives one connection or one
//! error. What the bytes of a login mean is `server::login`'s.

mod fault;
mod line;
mod lookup;
mod negotiate;
mod probe;
mod reach;
mod relayed;
mod stream;
mod talk;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use auth::LoginSecret;
use auth::scram::Nonce;
use rustls::ClientConnection;
use server::login::{LoggedIn, LoginOrder, Method, Methods, Parameter};
use settings::Host;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wire::startup::Version;

use crate::dns::Dns;
use crate::sockopt::TcpOptions;
use crate::tls::{ServerTls, channel_binding, describe};

pub use self::fault::{ConnectError, Stage};
pub use self::line::{Heard, Line, LineError};
pub use self::lookup::{LookupFailure, Lookups};
pub(crate) use self::negotiate::negotiate;
pub use self::probe::{Kept, ProbeError, RowFailure, probe};
pub(crate) use self::reach::{reach, reach_again};
pub use self::relayed::{Other, Said, connect as connect_relayed};
pub(crate) use self::stream::Stream;

/// Where to connect, as whom, and on which conditions.
#[derive(Clone, Debug)]
pub struct ConnectOrder {
    /// A name, an address, or the directory of a Unix socket.
    pub host: Host,
    /// The port, also in a Unix socket's name.
    pub port: u16,
    /// The database on the server.
    pub database: String,
    /// The role.
    pub user: String,
    /// Our secret.
    pub secret: LoginSecret,
    /// Startup parameters besides user, database and replication.
    pub parameters: Vec<Parameter>,
    /// For a replication connection; then `connect_query` is not run.
    pub replication: Option<Replication>,
    /// The protocol version to ask for.
    pub version: Version,
    /// TLS; Unix sockets have none.
    pub tls: ServerTls,
    /// For TCP.
    pub tcp: TcpOptions,
    /// What the server may ask for (`server_auth_allowed`).
    pub allowed: Methods,
    /// What the server's role must be, if that matters: `true` for a standby.
    pub in_recovery: Option<bool>,
    /// SQL to run first.
    pub connect_query: Option<Box<[u8]>>,
    /// `server_connect_timeout`, for all steps together; zero for none.
    pub timeout: Duration,
}

/// The kind of a replication connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// `replication=true`.
    Physical,
    /// `replication=database`.
    Logical,
}

/// What all connections of the process share.
#[derive(Clone)]
pub struct ConnectContext {
    /// The names.
    pub dns: Dns,
    /// Keeps the hashing of passwords from taking every core.
    hashing: Arc<Semaphore>,
}

impl ConnectContext {
    /// As many passwords are hashed at a time as there are cores, less one.
    pub fn new(dns: Dns) -> ConnectContext {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        ConnectContext { dns, hashing: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))) }
    }
}

/// One end of a connection, for `SHOW SERVERS` and the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket of this name in the file system (or abstract, with `@`), and the port in it.
    Unix(String, u16),
}

impl Endpoint {
    /// The column `addr`.
    pub fn address(&self) -> String {
        match self {
            Endpoint::Tcp(address) => address.ip().to_string(),
            Endpoint::Unix(..) => "unix".to_owned(),
        }
    }

    /// The column `port`.
    pub fn port(&self) -> u16 {
        match self {
            Endpoint::Tcp(address) => address.port(),
            Endpoint::Unix(_, port) => *port,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(_, port) => write!(f, "unix:{port}"),
        }
    }
}

/// A server connection that is ready.
#[derive(Debug)]
pub struct Connected {
    /// In non-blocking mode, and with nothing unread.
    pub socket: OwnedFd,
    /// The TLS state, with nothing unread in it either.
    pub tls: Option<Box<ClientConnection>>,
    /// What the server told about itself.
    pub login: LoggedIn,
    /// The server's end: cancel requests go to the same one.
    pub remote: Endpoint,
    /// Our end.
    pub local: Endpoint,
    /// `TLSv1.3/TLS_AES_256_GCM_SHA384` or the like, if there is TLS.
    pub tls_description: Option<String>,
}

/// Makes a connection.
pub async fn connect(order: &ConnectOrder, context: &ConnectContext) -> Result<Connected, ConnectError> {
    finish(open(order, context).await?, order).await
}

/// Takes a connection that is logged in from the runtime, if it is what it should be.
async fn finish(mut ready: Ready, order: &ConnectOrder) -> Result<Connected, ConnectError> {
    if let Some(wanted) = order.in_recovery {
        check_role(&mut ready, wanted, order.timeout).await?;
    }
    let tls_description = ready.stream.tls().map(|tls| describe(tls));
    let (socket, tls) = ready.stream.into_parts().map_err(|error| ConnectError::Io(Stage::Login, error))?;
    if let Some(connection) = &tls {
        talk::check_empty(connection)?;
    }
    let Ready { login, remote, local, .. } = ready;
    Ok(Connected { socket, tls, login, remote, local, tls_description })
}

/// A connection that is logged in and still the runtime's.
pub(crate) struct Ready {
    pub(crate) stream: Stream,
    login: LoggedIn,
    remote: Endpoint,
    local: Endpoint,
}

pub(crate) async fn open(order: &ConnectOrder, context: &ConnectContext) -> Result<Ready, ConnectError> {
    let deadline = Deadline::after(order.timeout);
    let reached = reach(&order.host, order.port, &order.tcp, deadline, &context.dns).await?;
    let (remote, local) = (reached.remote, reached.local);
    let stream =
        deadline.within(Stage::Tls, negotiate(reached.stream, &order.host, &remote, &order.tls)).await?;
    let login = login_order(order, &stream)?;
    let (stream, login) =
        deadline.within(Stage::Login, talk::log_in(stream, login, &context.hashing)).await?;
    Ok(Ready { stream, login, remote, local })
}

/// No server whose role is another one is ever handed over. Since PostgreSQL 14 it is told at login; an older one is
/// asked.
async fn check_role(ready: &mut Ready, wanted: bool, limit: Duration) -> Result<(), ConnectError> {
    let told = ready.login.parameters.iter().find(|(name, _)| **name == *b"in_hot_standby");
    let is_standby = match told {
        Some((_, value)) => **value == *b"on",
        None => {
            let asked = probe::ask(&mut ready.stream, "select pg_catalog.pg_is_in_recovery()");
            let row = Deadline::after(limit).within(Stage::Login, asked).await?;
            row.first().is_some_and(|column| column.as_deref() == Some(b"t"))
        }
    };
    if is_standby == wanted { Ok(()) } else { Err(ConnectError::RoleDiffers(is_standby)) }
}

fn login_order(order: &ConnectOrder, stream: &Stream) -> Result<LoginOrder, ConnectError> {
    let mut nonce = [0; 18];
    getrandom::fill(&mut nonce)
        .map_err(|error| ConnectError::Io(Stage::Login, io::Error::other(error.to_string())))?;
    let mut parameters = order.parameters.clone();
    if let Some(kind) = order.replication {
        let value: &[u8] = match kind {
            Replication::Physical => b"true",
            Replication::Logical => b"database",
        };
        parameters.push((b"replication".as_slice().into(), value.into()));
    }
    let certificate = stream.tls().and_then(|tls| tls.peer_certificates()).and_then(<[_]>::first);
    let binding = certificate.and_then(|certificate| channel_binding(certificate));
    Ok(LoginOrder {
        version: order.version,
        user: order.user.clone(),
        database: order.database.clone(),
        parameters,
        secret: order.secret.clone(),
        allowed: order.allowed,
        binding: binding.filter(|_| order.allowed.allows(Method::ScramPlus)),
        nonce: Nonce(nonce),
        connect_query: order.connect_query.clone().filter(|_| order.replication.is_none()),
    })
}

/// When all steps must be done, if there is such a time.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Zero is no deadline.
    pub(crate) fn after(span: Duration) -> Deadline {
        Deadline((!span.is_zero()).then(|| Instant::now() + span))
    }

    /// Whether no time is left.
    pub(crate) fn is_over(self) -> bool {
        self.0.is_some_and(|end| end <= Instant::now())
    }

    /// The part of the time left that one of `count` attempts may take.
    pub(crate) fn share(self, count: usize) -> Deadline {
        Deadline(self.0.map(|end| {
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            now + left / u32::try_from(count.max(1)).unwrap_or(u32::MAX)
        }))
    }

    /// Runs one step, but not longer than until the deadline.
    pub(crate) async fn within<T>(
        self,
        stage: Stage,
        step: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        match self.0 {
            None => step.await,
            Some(end) => {
                tokio::time::timeout_at(end, step).await.unwrap_or(Err(ConnectError::Timeout(stage)))
            }
        }
    }
}
