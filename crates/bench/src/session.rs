//! One blocking session, for what prepares and watches a run. Not for load.

use crate::protocol::{self, ServerError};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Why a session is over.
#[derive(Debug)]
pub enum Failure {
    /// The server wants a password; the bench sets up trust everywhere.
    AsksForPassword,
    /// A message of an impossible length.
    Nonsense,
    /// The connection broke.
    Lost(io::Error),
    /// The server's own words.
    Refused(ServerError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::AsksForPassword => write!(f, "asks for a password"),
            Failure::Nonsense => write!(f, "sent a message of an impossible length"),
            Failure::Lost(error) => write!(f, "{error}"),
            Failure::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Lost(error)
    }
}

const LIMIT: Duration = Duration::from_secs(30);
const BODY_LENGTH_MAX: usize = 1 << 20;

/// A logged-in session.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
}

impl Session {
    /// Logs in.
    pub fn open(address: SocketAddr, user: &str, database: &str) -> Result<Session, Failure> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut session = Session { stream };
        session.stream.write_all(&protocol::startup(user, database))?;
        session.until_ready()?;
        Ok(session)
    }

    /// Runs one statement; gives the first column of its rows.
    pub fn query(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        self.stream.write_all(&protocol::query(sql))?;
        self.until_ready()
    }

    fn until_ready(&mut self) -> Result<Vec<String>, Failure> {
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => return refused.map_or(Ok(rows), |error| Err(Failure::Refused(error))),
                b'D' => rows.extend(first_column(&body)),
                b'R' if body != [0; 4] => return Err(Failure::AsksForPassword),
                b'E' => {
                    let error = ServerError::parse(&body);
                    // After a fatal one nothing follows.
                    if body.starts_with(b"SFATAL\0") {
                        return Err(Failure::Refused(error));
                    }
                    refused = Some(error);
                }
                _ => {}
            }
        }
    }

    fn message(&mut self) -> Result<(u8, Vec<u8>), Failure> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header)?;
        let [kind, a, b, c, d] = header;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=BODY_LENGTH_MAX).contains(&length) {
            return Err(Failure::Nonsense);
        }
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The other side may be gone already.
        let _ = self.stream.write_all(&protocol::TERMINATE);
    }
}

fn first_column(row: &[u8]) -> Option<String> {
    let length = u32::from_be_bytes(row.get(2..6)?.try_into().ok()?) as usize;
    let value = row.get(6..)?.get(..length)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests;
