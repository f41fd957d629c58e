//! The monitor's connection to one node: made, kept, and asked one thing.
//!
//! Connecting, logging in and asking have a limit each. Does not know what is asked.

use std::time::Duration;
use std::{fmt, io};

use server::login::{Columns, LoginFailed, QuestionError};

use super::{
    ConnectContext, ConnectError, ConnectOrder, Deadline, Stage, Stream, login_order, negotiate, reach, talk,
};

/// A connection that is logged in, for the next question.
pub struct Kept(Stream);

/// Why a row was not given.
#[derive(Debug)]
pub enum RowFailure {
    /// The connection was lost.
    Lost(io::Error),
    /// The answer was another one.
    Question(QuestionError),
}

/// Why a node did not answer.
#[derive(Debug)]
pub enum ProbeError {
    /// There is no connection.
    Connect(ConnectError),
    /// The question was not answered.
    Row(RowFailure),
    /// The question was not answered in time.
    Silent,
}

impl ProbeError {
    /// The server's own words.
    pub fn words(&self) -> Option<&LoginFailed> {
        match self {
            ProbeError::Connect(error) => error.refusal(),
            ProbeError::Row(RowFailure::Question(QuestionError::Failed(failed))) => Some(failed),
            ProbeError::Row(_) | ProbeError::Silent => None,
        }
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Connect(error) => error.fmt(f),
            ProbeError::Row(RowFailure::Lost(error)) => write!(f, "connection lost: {error}"),
            ProbeError::Row(RowFailure::Question(error)) => error.fmt(f),
            ProbeError::Silent => f.write_str("no answer to a query in time"),
        }
    }
}

/// Asks a node, on the connection that was kept or on a new one.
///
/// # Errors
/// Whatever stands in the way; a connection on which that happened is closed.
pub async fn probe(
    kept: Option<Kept>,
    order: &ConnectOrder,
    context: &ConnectContext,
    question: &str,
    limit: Duration,
) -> Result<(Columns, Kept), ProbeError> {
    let mut stream = match kept {
        Some(Kept(stream)) => stream,
        None => connect(order, context, limit).await.map_err(ProbeError::Connect)?,
    };
    let asked = async { Ok(talk::ask_row(&mut stream, question).await) };
    match Deadline::after(limit).within(Stage::Login, asked).await {
        Ok(Ok(row)) => Ok((row, Kept(stream))),
        Ok(Err(failure)) => Err(ProbeError::Row(failure)),
        Err(_) => Err(ProbeError::Silent),
    }
}

async fn connect(
    order: &ConnectOrder,
    context: &ConnectContext,
    limit: Duration,
) -> Result<Stream, ConnectError> {
    let reached = reach(&order.host, order.port, &order.tcp, Deadline::after(limit), &context.dns).await?;
    let deadline = Deadline::after(limit);
    let remote = reached.remote;
    let stream =
        deadline.within(Stage::Tls, negotiate(reached.stream, &order.host, &remote, &order.tls)).await?;
    let login = login_order(order, &stream)?;
    let (stream, _) = deadline.within(Stage::Login, talk::log_in(stream, login, &context.hashing)).await?;
    Ok(stream)
}

/// Asks a connection that has just logged in and is not handed over yet.
pub(super) async fn ask(stream: &mut Stream, question: &str) -> Result<Columns, ConnectError> {
    talk::ask_row(stream, question).await.map_err(|failure| match failure {
        RowFailure::Lost(error) => ConnectError::Io(Stage::Login, error),
        RowFailure::Question(QuestionError::Failed(failed)) => {
            ConnectError::Login(server::login::LoginError::Failed(failed))
        }
        RowFailure::Question(_) => ConnectError::BytesAfterLogin,
    })
}
