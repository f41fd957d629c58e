//! One client of the console: messages in, messages and asks out.
//!
//! Knows the protocol's order, simple and extended. What a command means is the asker's business.

mod extended;

use model::Column;
use wire::client::tag;
use wire::encode::Severity;
use wire::server::TransactionStatus;
use wire::{Header, HeaderFault, encode, sqlstate};

use crate::command::Command;
use crate::failure::Failure;
use crate::grammar;
use crate::render;
use crate::render::Formats;
use crate::reply::Reply;
use crate::role::Role;
use extended::{Extended, Rows};

/// Bytes of the longest message that the console reads: far more than any command has.
pub const MESSAGE_SIZE_MAX: u32 = 16_384;

/// A console session after login.
///
/// Feed it with [`Session::on_bytes`], or with whole messages by [`Session::on_message`]. When that returns
/// [`Ask::Execute`], carry the command out and call [`Session::answer`], which may be much later (`PAUSE`
/// waits); feed nothing in between. `SHUTDOWN` at once is never answered. After [`Ask::Close`], send what
/// is in `out` and close.
pub struct Session {
    role: Role,
    phase: Phase,
    extended: Extended,
}

/// What a session wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Close the connection.
    Close,
    /// Carry out a command that the session's role allows, and answer. For `SHOW`, make a snapshot of what
    /// the table reads and answer with [`crate::show::table`].
    Execute(Command),
}

/// How far [`Session::on_bytes`] came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are done with. The rest is to be fed again with more behind it, or after the answer.
    pub consumed: usize,
    /// What to do now.
    pub ask: Option<Ask>,
}

enum Phase {
    Ready,
    /// After an error in the extended protocol: everything up to Sync is skipped.
    Skipping,
    Asked(Command, Asker),
    Closed,
}

/// Which message the answer is for.
enum Asker {
    Query,
    Execute(Rows),
}

impl Session {
    /// A session of somebody who has logged in and been sent the [`crate::welcome`] and ReadyForQuery.
    pub fn new(role: Role) -> Session {
        Session { role, phase: Phase::Ready, extended: Extended::default() }
    }

    /// Whether a command was asked for that is not yet answered.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Asked(..))
    }

    /// Takes as many whole messages as `bytes` begins with, up to the first that asks for something.
    pub fn on_bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        let mut ask = None;
        while ask.is_none() && !self.is_waiting() {
            let rest = &bytes[consumed..];
            let Some(header) = Header::peek(rest) else { break };
            let checked = header.check_client().and_then(|()| match header.body() {
                body if body > u64::from(MESSAGE_SIZE_MAX) => Err(HeaderFault::TooLong(MESSAGE_SIZE_MAX)),
                _ => Ok(()),
            });
            if let Err(fault) = checked {
                ask = Some(self.violated(fault, out));
                break;
            }
            let whole = usize::try_from(header.total()).ok().and_then(|total| rest.get(..total));
            let Some(message) = whole else { break };
            ask = self.on_message(header.tag, &message[wire::HEADER_SIZE..], out);
            consumed += message.len();
        }
        Progress { consumed, ask }
    }

    /// Takes one message: its type and its body.
    pub fn on_message(&mut self, tag: u8, body: &[u8], out: &mut Vec<u8>) -> Option<Ask> {
        debug_assert!(!self.is_waiting(), "a message was fed before the answer");
        match self.phase {
            Phase::Ready => {}
            Phase::Skipping => match tag {
                tag::SYNC | tag::TERMINATE => {}
                _ if is_known(tag) => return None,
                _ => return Some(self.violated(HeaderFault::UnknownType, out)),
            },
            Phase::Asked(..) | Phase::Closed => return Some(Ask::Close),
        }
        match tag {
            tag::QUERY => return self.query(body, out),
            tag::EXECUTE => return self.execute(body, out),
            tag::TERMINATE => {
                self.phase = Phase::Closed;
                return Some(Ask::Close);
            }
            tag::SYNC => {
                // The end of the implicit transaction, and with it of its portals.
                self.extended.close_portals();
                self.phase = Phase::Ready;
                ready(out);
            }
            tag::PARSE => self.step(out, |extended, out| extended.parse(body, out)),
            tag::BIND => self.step(out, |extended, out| extended.bind(body, out)),
            tag::DESCRIBE => self.step(out, |extended, out| extended.describe(body, out)),
            tag::CLOSE => self.step(out, |extended, out| extended.close(body, out)),
            // Everything is sent at once anyway.
            tag::FLUSH => {}
            tag::FUNCTION_CALL => {
                render::error(out, &Failure::FunctionCall);
                ready(out);
            }
            // Ignored outside of COPY, as the protocol's chapter "COPY Operations" has it: the sender may
            // not have noticed yet that there is none.
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL => {}
            _ => return Some(self.violated(HeaderFault::UnknownType, out)),
        }
        None
    }

    /// Answers the command that was asked for.
    pub fn answer(&mut self, reply: Reply, out: &mut Vec<u8>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Ready);
        let Phase::Asked(command, asker) = phase else {
            debug_assert!(false, "an answer came that was not asked for");
            self.phase = phase;
            return;
        };
        match asker {
            Asker::Query => answer_query(&command, &reply, out),
            Asker::Execute(rows) => {
                self.step(out, |extended, out| extended.answer(&rows, &command, reply, out))
            }
        }
    }

    fn query(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<Ask> {
        self.extended.forget_unnamed();
        let text = wire::client::query(body).map_err(|_| Failure::BrokenMessage("Query"));
        match text.and_then(|text| grammar::parse(&String::from_utf8_lossy(text))) {
            Ok(Some(command)) => match self.reply_at_once(&command) {
                Some(reply) => answer_query(&command, &reply, out),
                None => return Some(self.ask(command, Asker::Query)),
            },
            Ok(None) => {
                out.extend_from_slice(&encode::EMPTY_QUERY);
                ready(out);
            }
            Err(failure) => {
                render::error(out, &failure);
                ready(out);
            }
        }
        None
    }

    fn execute(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<Ask> {
        match self.extended.execute(body, out) {
            Ok(Some((command, rows))) => match self.reply_at_once(&command) {
                Some(reply) => {
                    self.step(out, |extended, out| extended.answer(&rows, &command, reply, out));
                    None
                }
                None => Some(self.ask(command, Asker::Execute(rows))),
            },
            Ok(None) => None,
            Err(failure) => {
                self.step(out, |_, _| Err(failure));
                None
            }
        }
    }

    /// One step of the extended protocol: an error in it skips the rest up to Sync.
    fn step(
        &mut self,
        out: &mut Vec<u8>,
        step: impl FnOnce(&mut Extended, &mut Vec<u8>) -> Result<(), Failure>,
    ) {
        if let Err(failure) = step(&mut self.extended, out) {
            render::error(out, &failure);
            self.phase = Phase::Skipping;
        }
    }

    fn reply_at_once(&mut self, command: &Command) -> Option<Reply> {
        if !command.is_allowed_to(Some(self.role)) {
            return Some(Reply::Failed(Failure::AdminNeeded));
        }
        if *command == Command::DiscardAll {
            self.extended.close_statements();
        }
        Reply::at_once(command)
    }

    fn ask(&mut self, command: Command, asker: Asker) -> Ask {
        self.phase = Phase::Asked(command.clone(), asker);
        Ask::Execute(command)
    }

    fn violated(&mut self, fault: HeaderFault, out: &mut Vec<u8>) -> Ask {
        let code = sqlstate::PROTOCOL_VIOLATION;
        encode::report(out, Severity::Fatal, code, &fault.to_string(), None);
        self.phase = Phase::Closed;
        Ask::Close
    }
}

fn is_known(tag: u8) -> bool {
    let header = Header { tag, length: 4 };
    tag != tag::PASSWORD && header.check_client().is_ok()
}

fn answer_query(command: &Command, reply: &Reply, out: &mut Vec<u8>) {
    if let Reply::Table(table) = reply {
        render::description(out, &table.columns, &Formats::default());
        rows(out, &table.columns, &Formats::default(), &table.rows);
    }
    match reply {
        Reply::Failed(failure) => render::error(out, failure),
        Reply::Noticed(notice) => {
            render::notice(out, *notice);
            complete(out, command);
        }
        Reply::Table(_) | Reply::Done => complete(out, command),
    }
    ready(out);
}

fn rows(out: &mut Vec<u8>, columns: &[Column], formats: &Formats, rows: &[Vec<model::Cell>]) {
    for cells in rows {
        render::row(out, columns, formats, cells);
    }
}

fn complete(out: &mut Vec<u8>, command: &Command) {
    encode::command_complete(out, command.tag().as_bytes());
}

/// The console knows no transactions.
fn ready(out: &mut Vec<u8>) {
    encode::ready_for_query(out, TransactionStatus::Idle);
}
