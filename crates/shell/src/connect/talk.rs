//! Sends and receives for the machines of `server::login`. Does not know what they say.

use std::io;

use rustls::ClientConnection;
use server::login::{
    self, Columns, LoggedIn, LoginOrder, Lookup, LookupError, LookupStep, Message, Question, QuestionError,
    QuestionStep, Step,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use super::lookup::LookupFailure;
use super::probe::RowFailure;
use super::{ConnectError, Stage, Stream};

/// Logs in. The stream comes back with nothing unread.
pub(super) async fn log_in(
    mut stream: Stream,
    order: LoginOrder,
    hashing: &Semaphore,
) -> Result<(Stream, LoggedIn), ConnectError> {
    let io = |error| ConnectError::Io(Stage::Login, error);
    let fault = |fault| ConnectError::Login(login::LoginError::Fault(fault));
    let mut out = Vec::new();
    let mut received = Received::default();
    let mut state = login::begin(order, &mut out).map_err(fault)?;
    loop {
        send(&mut stream, &mut out).await.map_err(io)?;
        let Some((message, size)) = received.next().map_err(fault)? else {
            if received.more(&mut stream).await.map_err(io)? == 0 {
                return Err(ConnectError::Closed(Stage::Login));
            }
            continue;
        };
        let step = state.handle(message, &mut out)?;
        received.taken(size);
        state = match step {
            Step::Next(state) => state,
            Step::NeedsKeys(needs) => {
                // Never closed, so this only waits.
                let permit = hashing.acquire().await;
                let work = needs.work();
                let keys = tokio::task::spawn_blocking(move || work.run()).await;
                drop(permit);
                let keys = keys.map_err(|error| io(io::Error::other(error)))?;
                needs.keys(&keys, &mut out)?
            }
            Step::Done(_) if !received.is_empty() => return Err(ConnectError::BytesAfterLogin),
            Step::Done(logged_in) => return Ok((stream, logged_in)),
        };
    }
}

/// Asks one question on a connection that is logged in; afterwards it can be used again, unless this fails.
pub(super) async fn ask(
    stream: &mut Stream,
    query: &str,
    user: &str,
) -> Result<Option<login::Found>, LookupFailure> {
    let lost = LookupFailure::Lost;
    let mut out = Vec::new();
    let mut received = Received::default();
    let mut state = Lookup::begin(query, user, &mut out).map_err(LookupFailure::Query)?;
    send(stream, &mut out).await.map_err(lost)?;
    loop {
        let next = received.next().map_err(|_| LookupFailure::Query(unframed()))?;
        let Some((message, size)) = next else {
            if received.more(stream).await.map_err(lost)? == 0 {
                return Err(lost(io::ErrorKind::UnexpectedEof.into()));
            }
            continue;
        };
        let step = state.handle(message).map_err(LookupFailure::Query)?;
        received.taken(size);
        state = match step {
            LookupStep::Next(state) => state,
            LookupStep::Done(_) if !received.is_empty() => return Err(LookupFailure::Query(unframed())),
            LookupStep::Done(found) => return Ok(found),
        };
    }
}

/// Asks for one row on a connection that is logged in; afterwards it can be used again, unless this fails.
pub(super) async fn ask_row(stream: &mut Stream, text: &str) -> Result<Columns, RowFailure> {
    let mut out = Vec::new();
    let mut received = Received::default();
    let mut state = Question::begin(text, &mut out);
    send(stream, &mut out).await.map_err(RowFailure::Lost)?;
    loop {
        let next = received.next().map_err(|_| RowFailure::Question(QuestionError::NotOneRow))?;
        let Some((message, size)) = next else {
            if received.more(stream).await.map_err(RowFailure::Lost)? == 0 {
                return Err(RowFailure::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
            continue;
        };
        let step = state.handle(message).map_err(RowFailure::Question)?;
        received.taken(size);
        state = match step {
            QuestionStep::Next(state) => state,
            QuestionStep::Done(_) if !received.is_empty() => {
                return Err(RowFailure::Question(QuestionError::NotOneRow));
            }
            QuestionStep::Done(row) => return Ok(row),
        };
    }
}

fn unframed() -> LookupError {
    LookupError::Fault(login::LookupFault::TooMuch)
}

/// A TLS connection that is handed over must hold nothing back.
pub(super) fn check_empty(connection: &ClientConnection) -> Result<(), ConnectError> {
    if connection.wants_write() || !connection.wants_read() {
        // `wants_read` is false while plain text is left to be read.
        return Err(ConnectError::BytesAfterLogin);
    }
    Ok(())
}

pub(super) async fn send(stream: &mut Stream, out: &mut Vec<u8>) -> io::Result<()> {
    if !out.is_empty() {
        stream.write_all(out).await?;
        stream.flush().await?;
        out.clear();
    }
    Ok(())
}

/// What was received and is not yet a whole message: never more than the longest message and one read.
#[derive(Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    start: usize,
}

impl Received {
    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn next(&self) -> Result<Option<(Message<'_>, usize)>, login::LoginFault> {
        login::next_message(self.bytes())
    }

    pub(super) fn taken(&mut self, size: usize) {
        self.start += size;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Zero at the end of the stream.
    pub(super) async fn more(&mut self, stream: &mut Stream) -> io::Result<usize> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.reserve(READ_BYTES);
        match stream.read_buf(&mut self.bytes).await {
            // A server that goes without a TLS farewell is gone all the same.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

const READ_BYTES: usize = 4096;
