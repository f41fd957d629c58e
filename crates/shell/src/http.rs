//! Asking others over HTTP: one request, one answer of a bounded size, and the connection is closed.
//!
//! The time is bounded by whoever asks; the deadline here is for sharing it among addresses. Follows no redirection and keeps nothing.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use settings::Url;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::connect::{ConnectError, Deadline, Endpoint, Stream, reach};
use crate::dns::Dns;
use crate::sockopt::TcpOptions;
use crate::tls::{ServerTls, server_name};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum HttpFault {
    /// No connection.
    Connect(ConnectError),
    /// Not in HTTP's words, or broken off.
    Protocol(hyper::Error),
    /// Another status than 200.
    Status(StatusCode),
    /// The body is too long, or was broken off.
    Body,
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpFault::Connect(error) => error.fmt(f),
            // hyper tells what happened, and by its source why.
            HttpFault::Protocol(error) => match error.source() {
                Some(source) => write!(f, "no HTTP: {error}: {source}"),
                None => write!(f, "no HTTP: {error}"),
            },
            HttpFault::Status(status) => write!(f, "HTTP status {}", status.as_u16()),
            HttpFault::Body => f.write_str("an answer that is too long or was broken off"),
        }
    }
}

/// Bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;

/// The body of an answer to a GET; `tls` is for URLs that want it.
pub(crate) async fn get(
    url: &Url,
    path: &str,
    (bytes_max, deadline): (usize, Deadline),
    (tls, dns): (&ServerTls, &Dns),
) -> Result<Bytes, HttpFault> {
    let reached = reach(&url.host, url.port, &TcpOptions::DEFAULT, deadline, dns).await;
    let reached = reached.map_err(HttpFault::Connect)?;
    match (reached.stream, url.tls.then_some(tls.config.as_ref()).flatten()) {
        (Stream::Tcp(stream), Some(config)) => {
            let address = match &reached.remote {
                Endpoint::Tcp(address) => address.ip(),
                Endpoint::Unix(..) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            };
            let name = server_name(&url.host.to_string(), address);
            let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
            let stream = stream.map_err(|error| HttpFault::Connect(ConnectError::TlsHandshake(error)))?;
            ask(stream, url, path, bytes_max).await
        }
        (_, None) if url.tls => Err(HttpFault::Connect(ConnectError::TlsRefused)),
        (stream, _) => ask(stream, url, path, bytes_max).await,
    }
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    url: &Url,
    path: &str,
    bytes_max: usize,
) -> Result<Bytes, HttpFault> {
    let request = Request::get(path)
        .header(HOST, url.authority())
        .header(USER_AGENT, "howdah")
        .header(ACCEPT, "application/json")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new());
    // Only what we wrote ourselves is in it.
    let request = request.map_err(|_| HttpFault::Body)?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(HttpFault::Protocol)?;
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(HttpFault::Protocol)?;
        if response.status() != StatusCode::OK {
            return Err(HttpFault::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), bytes_max).collect().await;
        body.map(|body| body.to_bytes()).map_err(|_| HttpFault::Body)
    };
    // The connection is what carries the exchange, and is over when that has let go of it.
    tokio::pin!(exchange);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}
