//! A scripted client: it sends what it is told to, and says what it has seen.
//!
//! It has no opinion on what should come next; the calls that wait panic after a limit, with all that was seen.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::login::Login;
use crate::message::{self, Message, letters};
use crate::os;
use crate::stream::{Address, Stream, Tls};

/// One connection to a server or a pooler.
pub struct Raw {
    stream: Stream,
    address: Address,
    inbox: Vec<u8>,
    read: usize,
    ended: Option<End>,
    seen: Vec<String>,
    limit: Duration,
    /// What ParameterStatus has said last of each name.
    pub parameters: BTreeMap<String, String>,
    /// The key to cancel with, from BackendKeyData.
    pub key: Option<CancelKey>,
}

/// BackendKeyData.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelKey {
    pub pid: u32,
    pub secret: Vec<u8>,
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In order.
    Closed,
    /// By a reset.
    Reset,
}

/// What came, or did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Message(Message),
    End(End),
    /// Nothing within the time given.
    Silence,
}

/// The fields of an error that a server has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub severity: String,
    pub sqlstate: String,
    pub text: String,
}

/// A row by its columns: name and value (`None` is NULL).
pub type Row = Vec<Option<String>>;

impl Raw {
    /// Opens the connection and sends nothing.
    #[track_caller]
    pub fn connect(address: impl Into<Address>) -> Raw {
        let address = address.into();
        Raw::try_connect(&address).unwrap_or_else(|error| panic!("cannot connect to {address:?}: {error}"))
    }

    /// As [`Raw::connect`], for servers that may not be there.
    pub fn try_connect(address: &Address) -> std::io::Result<Raw> {
        Ok(Raw {
            stream: Stream::connect(address)?,
            address: address.clone(),
            inbox: Vec::new(),
            read: 0,
            ended: None,
            seen: Vec::new(),
            limit: Duration::from_secs(20),
            parameters: BTreeMap::new(),
            key: None,
        })
    }

    /// Connects and logs in up to the first ReadyForQuery; panics if that is refused.
    #[track_caller]
    pub fn login(address: impl Into<Address>, login: &Login) -> Raw {
        Raw::try_login(address, login).unwrap_or_else(|refusal| panic!("login refused: {refusal:?}"))
    }

    /// As [`Raw::login`]; the server's refusal is an answer.
    #[track_caller]
    pub fn try_login(address: impl Into<Address>, login: &Login) -> Result<Raw, Refusal> {
        let mut raw = Raw::connect(address);
        login.run(&mut raw)?;
        Ok(raw)
    }

    /// How long the calls that wait do so; 20 seconds at first.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Writes bytes; panics if the connection is broken.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        if let Err(error) = self.stream.write_all(bytes.as_ref()) {
            panic!("cannot send: {error}; seen so far: {}", self.seen());
        }
    }

    /// Writes bytes; a broken connection is an answer.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// The next message; panics at the end, or when nothing comes.
    #[track_caller]
    pub fn recv(&mut self) -> Message {
        match self.next(self.limit) {
            Event::Message(message) => message,
            other => panic!("expected a message, got {other:?}; seen so far: {}", self.seen()),
        }
    }

    /// The next message, the end or silence.
    pub fn next(&mut self, limit: Duration) -> Event {
        let deadline = Instant::now() + limit;
        loop {
            if let Some((message, taken)) = message::split(&self.inbox[self.read..]) {
                self.read += taken;
                self.note(&message);
                return Event::Message(message);
            }
            if let Some(event) = self.fill(deadline) {
                return event;
            }
        }
    }

    /// The tag and the body's length of the next message, whose body is read and dropped piece by piece.
    #[track_caller]
    pub fn skim(&mut self) -> (u8, usize) {
        let tag = self.recv_byte();
        let length = [(); 4].map(|()| self.recv_byte());
        let length =
            usize::try_from(i32::from_be_bytes(length)).ok().and_then(|length| length.checked_sub(4));
        let length = length.unwrap_or_else(|| panic!("impossible length; seen so far: {}", self.seen()));
        let mut left = length;
        while left > 0 {
            self.recv_byte();
            let here = (self.inbox.len() - self.read).min(left - 1);
            self.read += here;
            left -= 1 + here;
        }
        (tag, length)
    }

    /// One byte without any frame, as in the answer to SSLRequest.
    #[track_caller]
    pub fn recv_byte(&mut self) -> u8 {
        let deadline = Instant::now() + self.limit;
        while self.read == self.inbox.len() {
            if let Some(event) = self.fill(deadline) {
                panic!("expected a byte, got {event:?}; seen so far: {}", self.seen());
            }
        }
        self.read += 1;
        self.inbox[self.read - 1]
    }

    /// All messages up to and with the next ReadyForQuery.
    #[track_caller]
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            messages.push(self.recv());
            if messages.last().is_some_and(|message| message.tag == b'Z') {
                return messages;
            }
        }
    }

    /// What came up to the given number of ReadyForQuery, in short form; `EOF` or `RST` if the end came before.
    #[track_caller]
    pub fn answers(&mut self, readies: usize) -> String {
        let (mut messages, mut left) = (Vec::new(), readies);
        while left > 0 {
            match self.next(self.limit) {
                Event::Message(message) => {
                    left -= usize::from(message.tag == b'Z');
                    messages.push(message);
                }
                Event::End(end) => {
                    let end = if end == End::Closed { "EOF" } else { "RST" };
                    return format!("{} {end}", letters(&messages)).trim_start().to_owned();
                }
                Event::Silence => panic!("{left} ReadyForQuery missing; seen so far: {}", self.seen()),
            }
        }
        letters(&messages)
    }

    /// Sends, and then [`Raw::answers`] up to one ReadyForQuery.
    #[track_caller]
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.send(bytes);
        self.answers(1)
    }

    /// Runs SQL by the simple protocol and returns its rows; panics on an error.
    #[track_caller]
    pub fn sql(&mut self, sql: &str) -> Vec<Row> {
        self.try_sql(sql).unwrap_or_else(|refusal| panic!("{sql}: {refusal:?}"))
    }

    /// Runs SQL by the simple protocol; the first error is an answer.
    #[track_caller]
    pub fn try_sql(&mut self, sql: &str) -> Result<Vec<Row>, Refusal> {
        self.send(message::query(sql));
        let mut messages = Vec::new();
        loop {
            match self.next(self.limit) {
                Event::Message(message) if message.tag == b'Z' => break,
                Event::Message(message) => messages.push(message),
                // A fatal error is followed by the end and no ReadyForQuery.
                Event::End(_) if messages.iter().any(|message| message.tag == b'E') => break,
                other => panic!("{sql}: {other:?}; seen so far: {}", self.seen()),
            }
        }
        match messages.iter().find(|message| message.tag == b'E') {
            Some(error) => Err(Refusal::from(error)),
            None => Ok(message::rows(&messages)),
        }
    }

    /// The first column of the first row.
    #[track_caller]
    pub fn value(&mut self, sql: &str) -> String {
        let first = self.sql(sql).into_iter().next().and_then(|row| row.into_iter().next());
        first.flatten().unwrap_or_else(|| panic!("{sql}: no value"))
    }

    /// Runs SQL that gives one table; a row is its columns' names with their values (NULL is empty).
    #[track_caller]
    pub fn table(&mut self, sql: &str) -> Vec<Vec<(String, String)>> {
        self.send(message::query(sql));
        let messages = self.until_ready();
        if let Some(error) = messages.iter().find(|message| message.tag == b'E') {
            panic!("{sql}: {:?}", Refusal::from(error));
        }
        let columns = messages.iter().find(|message| message.tag == b'T').map(Message::columns);
        let columns = columns.unwrap_or_default();
        let named = |row: Row| {
            columns.iter().cloned().zip(row.into_iter().map(Option::unwrap_or_default)).collect::<Vec<_>>()
        };
        message::rows(&messages).into_iter().map(named).collect()
    }

    /// Panics if anything comes, even the end, within this time.
    #[track_caller]
    pub fn expect_silence(&mut self, time: Duration) {
        let event = self.next(time);
        assert_eq!(event, Event::Silence, "expected silence; seen so far: {}", self.seen());
    }

    /// Waits for the end, skipping messages; returns those, in short form.
    #[track_caller]
    pub fn expect_closed(&mut self) -> String {
        let mut messages = Vec::new();
        loop {
            match self.next(self.limit) {
                Event::Message(message) => messages.push(message),
                Event::End(_) => return letters(&messages),
                Event::Silence => panic!("expected the end; seen so far: {}", self.seen()),
            }
        }
    }

    /// Closes the writing half; reading goes on.
    pub fn half_close(&mut self) {
        // A peer that is gone already makes this fail, which is as good.
        let _ = self.stream.shut_write();
    }

    /// Closes with a reset.
    pub fn reset(self) {
        if let Some(socket) = self.stream.tcp() {
            os::reset_at_close(socket).expect("an open socket");
        }
    }

    /// Says goodbye and closes.
    pub fn close(mut self) {
        // A peer that is gone already needs no goodbye.
        let _ = self.stream.write_all(&message::terminate());
    }

    /// Sends SSLRequest and, if that is granted, does the handshake; panics otherwise.
    #[track_caller]
    pub fn start_tls(&mut self, tls: &Tls) {
        self.send(message::ssl_request());
        let answer = self.recv_byte();
        assert_eq!(answer, b'S', "TLS refused with {:?}", char::from(answer));
        self.start_direct_tls(tls).expect("a TLS handshake");
    }

    /// Begins with the handshake at once, as `sslnegotiation=direct` does.
    pub fn start_direct_tls(&mut self, tls: &Tls) -> std::io::Result<()> {
        self.stream.start_tls(tls)
    }

    /// The connection itself.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Our own port, to find the connection in tables.
    pub fn local_port(&self) -> u16 {
        let address = self.stream.tcp().and_then(|socket| socket.local_addr().ok());
        address.map_or(0, |address| address.port())
    }

    /// Sends a CancelRequest for this session over a connection of its own, and waits for its end.
    #[track_caller]
    pub fn cancel(&self) {
        let key = self.key.as_ref().expect("logged in");
        send_cancel(&self.address, key);
    }

    /// All messages so far, in short form.
    pub fn seen(&self) -> String {
        let skipped = self.seen.len().saturating_sub(60);
        let dots = if skipped > 0 { "... " } else { "" };
        format!("{dots}{}{}", self.seen[skipped..].join(" "), self.leftover())
    }

    fn leftover(&self) -> String {
        let bytes = &self.inbox[self.read..];
        if bytes.is_empty() {
            return String::new();
        }
        format!(
            " and {} bytes of no whole message: {}",
            bytes.len(),
            bytes[..bytes.len().min(80)].escape_ascii()
        )
    }

    /// Reads once; an event if there is nothing more to be had before the deadline.
    fn fill(&mut self, deadline: Instant) -> Option<Event> {
        if let Some(end) = self.ended {
            return Some(Event::End(end));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(Event::Silence);
        }
        // What was taken is dropped before more is added.
        self.inbox.drain(..self.read);
        self.read = 0;
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer, left) {
            Ok(None) => None,
            Ok(Some(0)) => {
                self.ended = Some(End::Closed);
                Some(Event::End(End::Closed))
            }
            Ok(Some(count)) => {
                self.inbox.extend_from_slice(&buffer[..count]);
                None
            }
            Err(error) => {
                let end = if error.kind() == ErrorKind::ConnectionReset { End::Reset } else { End::Closed };
                self.ended = Some(end);
                Some(Event::End(end))
            }
        }
    }

    fn note(&mut self, message: &Message) {
        match message.tag {
            b'S' => {
                if let [name, value] = message.strings().as_slice() {
                    self.parameters.insert(name.clone(), value.clone());
                }
            }
            b'K' => {
                if let Some((pid, secret)) = message.body.split_first_chunk::<4>() {
                    self.key = Some(CancelKey { pid: u32::from_be_bytes(*pid), secret: secret.to_vec() });
                }
            }
            _ => {}
        }
        self.seen.push(message.letter());
        // A long result must not fill the memory.
        if self.seen.len() > 2000 {
            self.seen.drain(..1000);
        }
    }
}

/// Sends a CancelRequest and waits until the server has closed the connection.
#[track_caller]
pub fn send_cancel(address: &Address, key: &CancelKey) {
    let mut raw = Raw::connect(address);
    raw.send(message::cancel_request(key.pid, &key.secret));
    raw.expect_closed();
}

impl From<&Message> for Refusal {
    fn from(error: &Message) -> Refusal {
        Refusal {
            severity: error.field(b'V').or_else(|| error.field(b'S')).unwrap_or_default(),
            sqlstate: error.sqlstate(),
            text: error.text(),
        }
    }
}
