//! One client of the load generator: a socket that never blocks, and what it has heard. It knows no measurement.

use crate::protocol::{Reply, ReplyScanner, TERMINATE};
use crate::trouble::Trouble;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// A client.
#[derive(Debug)]
pub struct Visitor {
    stream: TcpStream,
    scanner: ReplyScanner,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// There was something to read.
    pub got: bool,
    /// A ReadyForQuery was in it.
    pub ready: bool,
    /// There may be more at once. A short read has emptied the socket: what comes later has an edge of its own.
    pub more: bool,
}

/// Why a client is lost, in words.
pub type Lost = String;

impl Visitor {
    /// Begins to connect.
    pub fn connect(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Visitor> {
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Visitor { stream, scanner: ReplyScanner::default() })
    }

    /// Whether the connection stands by now.
    pub fn is_connected(&self) -> Result<bool, Lost> {
        match self.stream.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(error.to_string()),
        }
        if self.stream.peer_addr().is_err() {
            return Ok(false);
        }
        // It only costs latency where it is refused.
        let _ = self.stream.set_nodelay(true);
        Ok(true)
    }

    /// Sends a short message into a socket whose buffer is empty: it fits, or the connection is lost.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        match self.stream.write(bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err("the socket took half a message".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads once; errors of the server are trouble.
    pub fn hear(&mut self, scratch: &mut [u8], trouble: &mut Trouble) -> Result<Heard, Lost> {
        let count = loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err("the connection was closed".to_owned()),
                Ok(count) => break count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Heard { got: false, ready: false, more: false });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        };
        let (mut ready, mut nonsense) = (false, false);
        self.scanner.scan(&scratch[..count], |reply| match reply {
            Reply::Ready => ready = true,
            Reply::Error(error) => trouble.add(|| error.to_string()),
            Reply::Nonsense => nonsense = true,
        });
        if nonsense {
            return Err("a message of an impossible length".to_owned());
        }
        Ok(Heard { got: true, ready, more: count == scratch.len() })
    }

    /// A polite end; the close that follows says the same.
    pub fn say_goodbye(&mut self) {
        let _ = self.stream.write(&TERMINATE);
    }

    /// Closes the connection, and keeps the descriptor.
    pub fn shut_down(&mut self) {
        // It may be closed already; nothing depends on the answer.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
