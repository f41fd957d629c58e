//! A connection that listens, as long as it lives: sends questions, hears answers and notifications.
//!
//! What they mean is `server::listening`'s; who wants to know them, others'.

use std::{fmt, io};

use hub::Command;
use server::listening::{self, Listening, Said};
use server::login::{LoginFailed, LoginFault, next_message};

use super::talk::{Received, send};
use super::{ConnectContext, ConnectError, ConnectOrder, Endpoint, Stream, open};

/// The connection.
pub struct Line {
    stream: Stream,
    received: Received,
    state: Listening,
    /// The server's end.
    pub remote: Endpoint,
    /// Our end.
    pub local: Endpoint,
    /// The process id in its BackendKeyData.
    pub process_id: u32,
}

/// What is heard.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// The question is answered.
    Ready,
    /// It was refused.
    Refused(LoginFailed),
    /// A notification.
    Notification {
        /// The name of the channel.
        channel: Vec<u8>,
        /// The whole message as it came.
        message: Box<[u8]>,
    },
}

/// Why there will be no more.
#[derive(Debug)]
pub enum LineError {
    /// It was closed, or the socket failed.
    Io(io::Error),
    /// The server said that it ends.
    Ended(LoginFailed),
    /// A message that is too long or has no valid length.
    Unframed(LoginFault),
    /// A message of this type does not belong here.
    Unfit(u8),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("server closed the connection")
            }
            LineError::Io(error) => error.fmt(f),
            LineError::Ended(failed) => failed.fmt(f),
            LineError::Unframed(fault) => fault.fmt(f),
            LineError::Unfit(tag) => write!(f, "unexpected message '{}' from server", tag.escape_ascii()),
        }
    }
}

impl Line {
    /// Connects.
    ///
    /// # Errors
    /// Those of any connection to a server.
    pub async fn open(order: &ConnectOrder, context: &ConnectContext) -> Result<Line, ConnectError> {
        let ready = open(order, context).await?;
        Ok(Line {
            stream: ready.stream,
            received: Received::default(),
            state: Listening::default(),
            remote: ready.remote,
            local: ready.local,
            process_id: ready.login.process_id,
        })
    }

    /// Sends a command, or without one an empty query.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn ask(&mut self, command: Option<&Command>) -> io::Result<()> {
        let mut out = Vec::new();
        match command {
            Some(Command { listen, unlisten }) => {
                listening::tell(
                    &mut out,
                    listen.iter().map(|name| &**name),
                    unlisten.iter().map(|name| &**name),
                );
            }
            None => listening::ask(&mut out),
        }
        self.state.asked();
        send(&mut self.stream, &mut out).await
    }

    /// The next that is of interest. May be given up at any moment and called again.
    ///
    /// # Errors
    /// The connection is at its end.
    pub async fn hear(&mut self) -> Result<Heard, LineError> {
        loop {
            while let Some((message, size)) =
                next_message(self.received.bytes()).map_err(LineError::Unframed)?
            {
                let said = self.state.handle(message).map_err(|unfit| LineError::Unfit(unfit.0))?;
                let heard = match said {
                    Said::Nothing => None,
                    Said::Ready => Some(Heard::Ready),
                    Said::Refused(failed) => Some(Heard::Refused(failed)),
                    Said::End(failed) => return Err(LineError::Ended(failed)),
                    Said::Notification { channel, .. } => {
                        let message = self.received.bytes()[..size].into();
                        Some(Heard::Notification { channel: channel.to_vec(), message })
                    }
                };
                self.received.taken(size);
                if let Some(heard) = heard {
                    return Ok(heard);
                }
            }
            if self.received.more(&mut self.stream).await.map_err(LineError::Io)? == 0 {
                return Err(LineError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}
