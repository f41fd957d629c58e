//! One type for the three kinds of connection to a server. Knows nothing of what goes over them.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::ClientConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

/// A connection to a server.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The TLS state, if there is TLS.
    pub(crate) fn tls(&self) -> Option<&ClientConnection> {
        match self {
            Stream::Tls(stream) => Some(stream.get_ref().1),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// Takes the connection from the runtime: the socket stays in non-blocking mode.
    pub(crate) fn into_parts(self) -> io::Result<(OwnedFd, Option<Box<ClientConnection>>)> {
        Ok(match self {
            Stream::Tcp(stream) => (stream.into_std()?.into(), None),
            Stream::Unix(stream) => (stream.into_std()?.into(), None),
            Stream::Tls(stream) => {
                let (socket, tls) = stream.into_inner();
                (socket.into_std()?.into(), Some(Box::new(tls)))
            }
        })
    }
}

macro_rules! each {
    ($self:expr, $stream:ident => $does:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $does,
            Stream::Unix($stream) => $does,
            Stream::Tls($stream) => $does,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}
