//! One blocking session, for what prepares and watches a run. Not for load.

pub mod login;
mod tls;

use crate::access::Access;
use crate::protocol::{self, Reply, ReplyScanner, ServerError};
use login::Login;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Why a session is over.
#[derive(Debug)]
pub enum Failure {
    /// The server wants a password that we do not have, or in a way we do not know.
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
            Failure::AsksForPassword => write!(f, "asks for a password that it was not given"),
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
    stream: Stream,
}

/// What it speaks over.
#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<tls::Tls>),
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(into),
            Stream::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

impl Session {
    /// Logs in where no password is asked for.
    pub fn open(address: SocketAddr, user: &str, database: &str) -> Result<Session, Failure> {
        Session::log_in(Stream::Plain(connect(address)?), (user, None), database)
    }

    /// Logs in.
    pub fn enter(access: &Access) -> Result<Session, Failure> {
        let stream = Stream::Plain(connect(address(access)?)?);
        Session::log_in(stream, (&access.user, access.password.as_deref()), &access.database)
    }

    /// Logs in through TLS.
    pub fn enter_by_tls(access: &Access) -> Result<Session, Failure> {
        let stream = Stream::Tls(Box::new(tls::begin(connect(address(access)?)?)?));
        Session::log_in(stream, (&access.user, access.password.as_deref()), &access.database)
    }

    fn log_in(
        stream: Stream,
        (user, password): (&str, Option<&str>),
        database: &str,
    ) -> Result<Session, Failure> {
        let mut session = Session { stream };
        session.stream.write_all(&protocol::startup(user, database))?;
        let mut login = Login::new(user, password);
        loop {
            let (kind, body) = session.message()?;
            match kind {
                b'Z' => return Ok(session),
                b'R' => login.answer(&body, &mut session)?,
                b'E' => return Err(Failure::Refused(ServerError::parse(&body))),
                _ => {}
            }
        }
    }

    /// Runs one statement; gives the first column of its rows.
    pub fn query(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        self.stream.write_all(&protocol::query(sql))?;
        self.until_ready()
    }

    /// Runs a COPY to the client; gives the bytes of its data.
    pub fn copy_out(&mut self, sql: &str) -> Result<u64, Failure> {
        self.send(b'Q', &[sql.as_bytes(), &[0]])?;
        let (mut scanner, mut scratch) = (ReplyScanner::default(), vec![0; 1 << 16]);
        let (mut count, mut refused, mut over) = (0, None, false);
        while !over {
            let read = self.stream.read(&mut scratch)?;
            if read == 0 {
                return Err(refused
                    .map_or_else(|| io::Error::from(ErrorKind::UnexpectedEof).into(), Failure::Refused));
            }
            count += read as u64;
            let mut nonsense = false;
            scanner.scan(&scratch[..read], |reply| match reply {
                Reply::Ready => over = true,
                Reply::Error(error) => refused = Some(error),
                Reply::Nonsense => nonsense = true,
            });
            if nonsense {
                return Err(Failure::Nonsense);
            }
        }
        refused.map_or(Ok(count), |error| Err(Failure::Refused(error)))
    }

    /// Runs a COPY from the client, of `times` the same chunk of lines.
    pub fn copy_in(&mut self, sql: &str, chunk: &[u8], times: u64) -> Result<(), Failure> {
        self.send(b'Q', &[sql.as_bytes(), &[0]])?;
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'G' => break,
                b'E' => {
                    let error = ServerError::parse(&body);
                    // Its ReadyForQuery is nobody's any more: the session is over.
                    return Err(Failure::Refused(error));
                }
                _ => {}
            }
        }
        let data = protocol::message(b'd', &[chunk]);
        for _ in 0..times {
            self.stream.write_all(&data)?;
        }
        self.send(b'c', &[])?;
        self.until_ready().map(drop)
    }

    fn send(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), Failure> {
        Ok(self.stream.write_all(&protocol::message(kind, parts))?)
    }

    fn until_ready(&mut self) -> Result<Vec<String>, Failure> {
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => return refused.map_or(Ok(rows), |error| Err(Failure::Refused(error))),
                b'D' => rows.extend(first_column(&body)),
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

fn address(access: &Access) -> Result<SocketAddr, Failure> {
    access.address().map_err(|error| Failure::Lost(io::Error::other(error.to_string())))
}

fn connect(address: SocketAddr) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

fn first_column(row: &[u8]) -> Option<String> {
    let length = u32::from_be_bytes(row.get(2..6)?.try_into().ok()?) as usize;
    let value = row.get(6..)?.get(..length)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests;
