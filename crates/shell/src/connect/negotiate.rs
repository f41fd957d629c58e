//! TLS before the login: the question, its one-byte answer, and the handshake.

use std::net::{IpAddr, Ipv4Addr};

use settings::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::{ConnectError, Endpoint, Stage, Stream};
use crate::tls::{ServerTls, server_name};

/// Makes a TCP connection a TLS one, as far as the mode wants it; a Unix socket stays as it is.
pub(crate) async fn negotiate(
    stream: Stream,
    host: &Host,
    remote: &Endpoint,
    tls: &ServerTls,
) -> Result<Stream, ConnectError> {
    let io = |error| ConnectError::Io(Stage::Tls, error);
    let (mut stream, config) = match (stream, &tls.config) {
        (Stream::Tcp(stream), Some(config)) => (stream, config),
        (stream, _) => return Ok(stream),
    };
    stream.write_all(&wire::encode::SSL_REQUEST).await.map_err(io)?;
    // One byte and not one more: what somebody has put behind it must not count as sent over TLS.
    let mut answer = [0];
    if stream.read(&mut answer).await.map_err(io)? == 0 {
        return Err(ConnectError::Closed(Stage::Tls));
    }
    match answer[0] {
        b'S' => {}
        b'N' if tls.is_required() => return Err(ConnectError::TlsRefused),
        b'N' => return Ok(Stream::Tcp(stream)),
        byte => return Err(ConnectError::TlsBadAnswer(byte)),
    }
    let address = match remote {
        Endpoint::Tcp(address) => address.ip(),
        Endpoint::Unix(..) => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let name = server_name(&host.to_string(), address);
    let connector = TlsConnector::from(std::sync::Arc::clone(config));
    let stream = connector.connect(name, stream).await.map_err(ConnectError::TlsHandshake)?;
    Ok(Stream::Tls(Box::new(stream)))
}
