//! A server without a database: it lets everyone in and answers every query with the same row. What is
//! measured against it is the pooler and the kernel, without PostgreSQL's own cost.
//!
//! `Talk` decides what is answered and knows no socket; the rest is event loops.

use crate::protocol::{self, STARTUP_LENGTH_MAX};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};

/// One session as the server sees it: bytes in, bytes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Talk {
    /// Before a startup packet was taken.
    #[default]
    Startup,
    /// Logged in.
    Queries,
}

/// The session is over: a Terminate, a cancel request, or nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HangUp;

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
/// No client of ours sends longer ones.
const QUERY_LENGTH_MAX: usize = 1 << 20;

impl Talk {
    /// Takes the whole messages at the head of `bytes`, adds the answers to `out`, and says how many
    /// bytes it took; the rest is the start of a message and must come again with more behind it.
    pub fn hear(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, HangUp> {
        let mut taken = 0;
        while let Some(length) = match self {
            Talk::Startup => self.startup(&bytes[taken..], out)?,
            Talk::Queries => Self::message(&bytes[taken..], out)?,
        } {
            taken += length;
        }
        Ok(taken)
    }

    fn startup(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, HangUp> {
        let (Some(length), Some(code)) = (number(bytes, 0), number(bytes, 4)) else { return Ok(None) };
        let length = length as usize;
        if !(8..=STARTUP_LENGTH_MAX).contains(&length) {
            return Err(HangUp);
        }
        if bytes.len() < length {
            return Ok(None);
        }
        match code {
            TLS | GSS => out.push(b'N'),
            CANCEL => return Err(HangUp),
            _ => {
                greet(&bytes[8..length], out);
                *self = Talk::Queries;
            }
        }
        Ok(Some(length))
    }

    fn message(bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, HangUp> {
        let (Some(&kind), Some(length)) = (bytes.first(), number(bytes, 1)) else { return Ok(None) };
        let length = length as usize;
        if !(4..=QUERY_LENGTH_MAX).contains(&length) {
            return Err(HangUp);
        }
        let Some(body) = bytes.get(5..length + 1) else { return Ok(None) };
        match kind {
            b'Q' if speaks_for_the_pooler(body) => set(body, out),
            b'Q' => out.extend(ROW_SET),
            b'P' => out.extend([b'1', 0, 0, 0, 4]),
            b'B' => out.extend([b'2', 0, 0, 0, 4]),
            b'C' => out.extend([b'3', 0, 0, 0, 4]),
            // A statement is described with its parameters, of which it has none, a portal without.
            b'D' if body.first() == Some(&b'S') => {
                out.extend([b't', 0, 0, 0, 6, 0, 0]);
                out.extend(&ROW_SET[..DESCRIPTION]);
            }
            b'D' => out.extend(&ROW_SET[..DESCRIPTION]),
            b'E' => out.extend(&ROW_SET[DESCRIPTION..ROW_SET.len() - READY.len()]),
            b'S' => out.extend(READY),
            b'X' => return Err(HangUp),
            _ => {}
        }
        Ok(Some(length + 1))
    }
}

/// What poolers send on their own account; everything else gets the row.
fn speaks_for_the_pooler(sql: &[u8]) -> bool {
    [&b"set"[..], b"reset", b"discard", b"begin", b"commit", b"rollback", b"deallocate"]
        .iter()
        .any(|word| sql.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))
}

/// Answers such statements without rows. A parameter that is set is reported, as PostgreSQL does with
/// those that poolers follow: a pooler that hears nothing sets it again before every transaction.
fn set(sql: &[u8], out: &mut Vec<u8>) {
    let sql = String::from_utf8_lossy(sql);
    for statement in sql.trim_end_matches('\0').split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let assignment =
            statement.split_once(char::is_whitespace).filter(|(word, _)| word.eq_ignore_ascii_case("set"));
        let ends = |symbol: char| symbol == '=' || symbol.is_whitespace();
        if let Some((name, value)) = assignment.and_then(|(_, rest)| rest.trim().split_once(ends)) {
            let value = value.trim_start_matches(ends);
            let value = value.strip_prefix("TO ").or(value.strip_prefix("to ")).unwrap_or(value).trim();
            report(name.trim(), value.trim_matches('\''), out);
        }
        out.extend(STATEMENT_DONE);
    }
    out.extend(READY);
}

fn report(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend(protocol::message(b'S', &[name.as_bytes(), &[0], value.as_bytes(), &[0]]));
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The answer to a startup packet: trust, the parameters as asked for or usual, a key, ready.
fn greet(wishes: &[u8], out: &mut Vec<u8>) {
    out.extend([b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
    let wishes: Vec<_> = wishes.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
    let wished = |wanted: &str| wishes.chunks_exact(2).find(|pair| pair[0] == wanted).map(|pair| &*pair[1]);
    let parameters = [
        ("server_version", "15.0"),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("application_name", ""),
        ("is_superuser", "off"),
        ("session_authorization", "bench"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
    ];
    for (name, usual) in parameters {
        report(name, wished(name).unwrap_or(usual), out);
    }
    out.extend(protocol::message(b'K', &[&[0, 0, 0, 1, 0, 0, 0, 2]]));
    out.extend(READY);
}

const READY: [u8; 6] = [b'Z', 0, 0, 0, 5, b'I'];
/// The length of ROW_SET's first message.
const DESCRIPTION: usize = 34;
/// A row set of one int4 column `abalance` and one row, as `pgbench -S` gets it.
const ROW_SET: &[u8] = b"T\0\0\0\x21\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
      D\0\0\0\x0b\0\x01\0\0\0\x010\
      C\0\0\0\x0dSELECT 1\0\
      Z\0\0\0\x05I";
const STATEMENT_DONE: &[u8] = b"C\0\0\0\x08SET\0";

/// Serves for ever: accepts here, and deals the connections out to `threads` event loops in turn.
pub fn serve(listener: &TcpListener, threads: usize) -> io::Result<()> {
    let mut hands = Vec::new();
    for _ in 0..threads.max(1) {
        let (sender, inbox) = channel();
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        std::thread::spawn(move || Loop { poll, inbox, connections: HashMap::new(), next: 0 }.run());
        hands.push((sender, waker));
    }
    let mut turns = hands.iter().cycle();
    loop {
        let (stream, _) = match listener.accept() {
            Ok(accepted) => accepted,
            // The peer went away first, or we are out of descriptors for now.
            Err(_) => {
                std::thread::yield_now();
                continue;
            }
        };
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        if let Some((sender, waker)) = turns.next() {
            hand_over(sender, waker, stream)?;
        }
    }
}

fn hand_over(
    sender: &Sender<std::net::TcpStream>,
    waker: &Waker,
    stream: std::net::TcpStream,
) -> io::Result<()> {
    sender.send(stream).map_err(|_| io::Error::other("an event loop of the canned-reply server is gone"))?;
    waker.wake()
}

const WAKER: Token = Token(usize::MAX);

struct Loop {
    poll: Poll,
    inbox: Receiver<std::net::TcpStream>,
    connections: HashMap<usize, Connection>,
    next: usize,
}

struct Connection {
    stream: TcpStream,
    talk: Talk,
    unheard: Vec<u8>,
    unsent: Vec<u8>,
}

impl Loop {
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1_024);
        let mut scratch = vec![0; 1 << 16];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                if event.token() == WAKER {
                    self.take_in()?;
                } else if let Some(connection) = self.connections.get_mut(&event.token().0)
                    && connection.turn(&mut scratch, event.is_read_closed()).is_err()
                {
                    self.connections.remove(&event.token().0);
                }
            }
        }
    }

    fn take_in(&mut self) -> io::Result<()> {
        while let Ok(stream) = self.inbox.try_recv() {
            let mut stream = TcpStream::from_std(stream);
            let token = Token(self.next);
            self.next += 1;
            self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
            let connection =
                Connection { stream, talk: Talk::default(), unheard: Vec::new(), unsent: Vec::new() };
            self.connections.insert(token.0, connection);
        }
        Ok(())
    }
}

impl Connection {
    /// Sends what waits, then reads and answers until there is no more.
    fn turn(&mut self, scratch: &mut [u8], drain: bool) -> Result<(), HangUp> {
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            self.send(&unsent)?;
        }
        loop {
            let count = match self.stream.read(scratch) {
                Ok(0) => return Err(HangUp),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(HangUp),
            };
            let mut answers = Vec::new();
            if self.unheard.is_empty() {
                let taken = self.talk.hear(&scratch[..count], &mut answers)?;
                self.unheard.extend_from_slice(&scratch[taken..count]);
            } else {
                self.unheard.extend_from_slice(&scratch[..count]);
                let taken = self.talk.hear(&self.unheard, &mut answers)?;
                self.unheard.drain(..taken);
            }
            self.send(&answers)?;
            // A short read emptied the socket: more will come with an edge of its own.
            if count < scratch.len() && !drain {
                return Ok(());
            }
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), HangUp> {
        while self.unsent.is_empty() && !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(HangUp),
            }
        }
        self.unsent.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
