//! A connection to which a client logs in itself: made as any other, and then the login's messages go to and fro
//! between the server and whoever holds the client.

use std::io;

use client::login::Answer;
use server::login::{LoggedIn, Login, LoginOrder, RelayStep, Relayed, Step};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::UnboundedReceiver;

use super::talk::Received;
use super::{
    ConnectContext, ConnectError, ConnectOrder, Connected, Deadline, Ready, Stage, Stream, finish,
    login_order, negotiate, reach,
};

/// A message of the server's for the client.
#[derive(Debug)]
pub struct Said {
    /// The whole message.
    pub message: Box<[u8]>,
    /// The client answers it.
    pub is_question: bool,
}

/// The client at the other end.
pub struct Other {
    /// Its answers: one to each question. Closed when the client is gone.
    pub answers: UnboundedReceiver<Answer>,
    /// What the client's TLS connection can be bound to.
    pub binding: Option<Box<[u8]>>,
    /// Passes a message to it.
    pub tell: Box<dyn Fn(Said) + Send + Sync>,
    /// It has been told something: from then on no other server can take the place of the one that asked.
    pub was_told: bool,
}

impl Other {
    /// Whether the client is gone.
    pub fn is_gone(&mut self) -> bool {
        use tokio::sync::mpsc::error::TryRecvError;
        matches!(self.answers.try_recv(), Err(TryRecvError::Disconnected))
    }

    /// The client's next answer.
    async fn answer(&mut self) -> Result<Answer, ConnectError> {
        self.answers.recv().await.ok_or(ConnectError::ClientGone)
    }
}

/// Makes a connection.
///
/// # Errors
/// Whatever stands in the way, the end of the client among it.
pub async fn connect(
    order: &ConnectOrder,
    context: &ConnectContext,
    other: &mut Other,
) -> Result<Connected, ConnectError> {
    let deadline = Deadline::after(order.timeout);
    let way = async {
        let reached = reach(&order.host, order.port, &order.tcp, deadline, &context.dns).await?;
        let (remote, local) = (reached.remote, reached.local);
        let stream = negotiate(reached.stream, &order.host, &remote, &order.tls);
        Ok::<_, ConnectError>((deadline.within(Stage::Tls, stream).await?, remote, local))
    };
    let (stream, remote, local) = tokio::select! {
        way = way => way?,
        // It is asked nothing yet.
        _ = other.answers.recv() => return Err(ConnectError::ClientGone),
    };
    let login = login_order(order, &stream)?;
    let (stream, login) = log_in(stream, login, other, order).await?;
    finish(Ready { stream, login, remote, local }, order).await
}

async fn log_in(
    mut stream: Stream,
    login: LoginOrder,
    other: &mut Other,
    order: &ConnectOrder,
) -> Result<(Stream, LoggedIn), ConnectError> {
    let fault = |fault| ConnectError::Login(server::login::LoginError::Fault(fault));
    let mut out = Vec::new();
    let mut received = Received::default();
    // What a server with another certificate is bound to, no client can know.
    let may_bind = login.binding.is_some() && login.binding == other.binding;
    let mut state = Relayed::begin(login, may_bind, &mut out).map_err(fault)?;
    let mut is_asked = false;
    let mut state = loop {
        if is_asked {
            let answer = tokio::select! {
                answer = other.answer() => answer?,
                // Its own patience has an end.
                said = received.more(&mut stream) => {
                    said.map_err(|error| ConnectError::Io(Stage::Login, error))?;
                    return Err(last_words(state, &received));
                }
            };
            state.answered(answer.message()).map_err(fault)?;
            write(&mut stream, answer.message(), order).await?;
            is_asked = false;
        }
        write(&mut stream, &std::mem::take(&mut out), order).await?;
        let Some((message, size)) = received.next().map_err(fault)? else {
            tokio::select! {
                more = read(&mut received, &mut stream, order) => more?,
                _ = other.answers.recv() => return Err(ConnectError::ClientGone),
            }
            continue;
        };
        let step = state.handle(message)?;
        received.taken(size);
        state = match step {
            RelayStep::Next(next) => next,
            RelayStep::Put { message, is_question, next } => {
                other.was_told = true;
                (other.tell)(Said { message, is_question });
                is_asked = is_question;
                next
            }
            RelayStep::LetIn(login) => break login,
        };
    };
    loop {
        write(&mut stream, &std::mem::take(&mut out), order).await?;
        let Some((message, size)) = received.next().map_err(fault)? else {
            read(&mut received, &mut stream, order).await?;
            continue;
        };
        let step = Login::handle(state, message, &mut out)?;
        received.taken(size);
        state = match step {
            Step::Next(next) => next,
            Step::Done(login) if received.is_empty() => return Ok((stream, login)),
            Step::Done(_) | Step::NeedsKeys(_) => return Err(ConnectError::BytesAfterLogin),
        };
    }
}

/// What a server said that did not wait for the answer.
fn last_words(mut state: Relayed, received: &Received) -> ConnectError {
    let mut bytes = received.bytes();
    while let Ok(Some((message, size))) = server::login::next_message(bytes) {
        match state.handle(message) {
            Ok(RelayStep::Next(next)) => (state, bytes) = (next, &bytes[size..]),
            Ok(_) => break,
            Err(error) => return error.into(),
        }
    }
    ConnectError::Closed(Stage::Login)
}

async fn read(
    received: &mut Received,
    stream: &mut Stream,
    order: &ConnectOrder,
) -> Result<(), ConnectError> {
    let more = async { received.more(stream).await.map_err(|error| ConnectError::Io(Stage::Login, error)) };
    match Deadline::after(order.timeout).within(Stage::Login, more).await? {
        0 => Err(ConnectError::Closed(Stage::Login)),
        _ => Ok(()),
    }
}

async fn write(stream: &mut Stream, bytes: &[u8], order: &ConnectOrder) -> Result<(), ConnectError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let sent = async {
        let sent = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        sent.await.map_err(|error: io::Error| ConnectError::Io(Stage::Login, error))
    };
    Deadline::after(order.timeout).within(Stage::Login, sent).await
}
