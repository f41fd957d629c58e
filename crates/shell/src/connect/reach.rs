//! From a host to an open socket: every address of the name is tried in turn, each for its part of the time.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use settings::Host;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use super::{ConnectError, Deadline, Endpoint, Stage, Stream};
use crate::dns::Dns;
use crate::listen::unix_socket_name;
use crate::sockopt::TcpOptions;

/// An open socket and its two ends.
pub(crate) struct Reached {
    pub(crate) stream: Stream,
    pub(crate) remote: Endpoint,
    pub(crate) local: Endpoint,
}

/// Connects to a host.
pub(crate) async fn reach(
    host: &Host,
    port: u16,
    tcp: &TcpOptions,
    deadline: Deadline,
    dns: &Dns,
) -> Result<Reached, ConnectError> {
    let addresses = match host {
        Host::Unix(dir) => {
            let name = unix_socket_name(dir, port);
            return deadline.within(Stage::Reach, reach_unix(name, port)).await;
        }
        Host::Ip(address) => vec![*address],
        Host::Name(name) => {
            let lookup =
                async { dns.resolve(name).await.map_err(|fault| ConnectError::Dns(name.clone(), fault)) };
            deadline.within(Stage::Name, lookup).await?
        }
    };
    let count = addresses.len();
    let mut fault = ConnectError::Timeout(Stage::Reach);
    for (at, address) in addresses.into_iter().enumerate() {
        let attempt = reach_tcp((address, port).into(), tcp);
        match deadline.share(count - at).within(Stage::Reach, attempt).await {
            Ok(reached) => return Ok(reached),
            Err(next) => fault = next,
        }
    }
    Err(fault)
}

/// Connects to where another connection has gone.
pub(crate) async fn reach_again(remote: &Endpoint, tcp: &TcpOptions) -> Result<Reached, ConnectError> {
    match remote {
        Endpoint::Tcp(address) => reach_tcp(*address, tcp).await,
        Endpoint::Unix(name, port) => reach_unix(name.clone(), *port).await,
    }
}

async fn reach_tcp(address: SocketAddr, tcp: &TcpOptions) -> Result<Reached, ConnectError> {
    let connected = async {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        tcp.apply(&socket)?;
        let stream: TcpStream = socket.connect(address).await?;
        let local = stream.local_addr()?;
        // A port of our own range may happen to connect to itself while nobody listens on it.
        if local == address {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok((stream, local))
    };
    let (stream, local) = connected.await.map_err(|error| unreachable(address.to_string(), error))?;
    Ok(Reached { stream: Stream::Tcp(stream), remote: Endpoint::Tcp(address), local: Endpoint::Tcp(local) })
}

async fn reach_unix(name: String, port: u16) -> Result<Reached, ConnectError> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let mut path = name.clone().into_bytes();
    if let Some(first @ b'@') = path.first_mut() {
        *first = 0;
    }
    let mut tries_left = BUSY_TRIES_MAX;
    let stream = loop {
        match UnixStream::connect(Path::new(OsStr::from_bytes(&path))).await {
            Ok(stream) => break stream,
            // The server's queue is full; a Unix socket says so at once instead of waiting.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries_left > 0 => {
                tries_left -= 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(unreachable(name, error)),
        }
    };
    let end = Endpoint::Unix(name, port);
    Ok(Reached { stream: Stream::Unix(stream), remote: end.clone(), local: end })
}

fn unreachable(address: String, error: io::Error) -> ConnectError {
    ConnectError::Unreachable(address, error)
}

const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Ten seconds.
const BUSY_TRIES_MAX: u32 = 1000;
