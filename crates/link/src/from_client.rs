//! What becomes of each message of the client.
//!
//! Decided from its header where that is enough. A small message is forwarded only when it is whole, so that
//! a client which stops in the middle holds no server; a large one streams.

use std::borrow::Cow;

use client::{Client, Rest};
use model::{Moment, Refusal, Statements};
use server::ledger::OWED_MAX;
use server::{Entry, Owed, Retry, Server};
use wire::Header;
use wire::client::{Target, tag};

use crate::channels::Channels;
use crate::link::{Link, Permit};
use crate::noted::Noted;
use crate::out::Out;
use crate::policy::Policy;
use crate::prepared::Found;
use crate::progress::{Progress, Then};
use crate::state::State;
use crate::state::deed::{Deed, Kinds, Pending};

/// Messages up to this size, in bytes, are forwarded only when whole.
const WHOLE_BYTES_MAX: u64 = 16 << 10;
/// Flush.
pub(crate) const FLUSH: [u8; 5] = [tag::FLUSH, 0, 0, 0, 4];
/// A Bind whose two names are not found within this many bytes is refused.
const NAMES_BYTES_MAX: usize = 64 << 10;

/// A message that begins at `at` in the bytes given.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) header: Header,
    pub(crate) at: usize,
    /// What of its body is here.
    pub(crate) body: &'a [u8],
    pub(crate) is_whole: bool,
    /// The type of the message behind it, if that is here too.
    pub(crate) next: Option<u8>,
}

impl Message<'_> {
    /// Whether a Parse is followed by a Bind, as far as can be seen: else it is prepared for later.
    pub(crate) fn may_be_bound_next(self) -> bool {
        matches!(self.next, None | Some(tag::BIND))
    }
}

/// What a message comes to.
pub(crate) enum Step {
    /// The message is dealt with as far as it is here.
    Done,
    /// More of it is needed first.
    More,
    /// What it comes to depends on answers of the server that have not come.
    Wait,
    /// It makes state that will keep the server, and somebody must be asked first.
    Pin,
    /// The session ends.
    Close(Option<Box<Refusal>>),
}

/// Both sides of a link that has a server, borrowed for the length of one call.
pub(crate) struct Pair<'a> {
    pub(crate) client: &'a mut Client,
    pub(crate) server: &'a mut Server,
    pub(crate) policy: &'a Policy,
    pub(crate) statements: &'a Statements,
    pub(crate) state: &'a mut Option<Box<State>>,
    pub(crate) permit: &'a mut Permit,
    /// Nothing was sent before this call; in it, nothing but what is set for the client.
    pub(crate) is_fresh: bool,
    /// How many statements the one that is spoken of needs beside itself.
    pub(crate) needed: usize,
    pub(crate) channels: &'a mut Option<Box<Channels>>,
    pub(crate) out: &'a mut Out,
}

impl Link {
    /// Bytes from the client, behind what an earlier call left. Only when `wants_client_bytes`.
    pub fn on_client(&mut self, now: Moment, input: &[u8], out: &mut Out) -> Progress {
        if self.state.is_some() {
            self.correct_now(out);
        }
        let put_off = if self.carry_due { self.carry_now(input, out) } else { None };
        if self.channels.is_some() {
            self.show_channels(input, out);
        }
        let Some(server) = self.server.as_deref_mut() else {
            return Progress { consumed: 0, then: Then::Wait };
        };
        let mut pair = Pair {
            client: &mut self.client,
            server,
            policy: &self.policy,
            statements: &self.statements,
            state: &mut self.state,
            permit: &mut self.permit,
            is_fresh: put_off.is_some(),
            needed: 0,
            channels: &mut self.channels,
            out,
        };
        let progress = pair.run(input);
        if pair.server.query_since == Moment::NEVER && !pair.server.is_quiet() {
            pair.server.query_since = now;
            if pair.server.status == wire::server::TransactionStatus::Idle {
                pair.server.transaction_since = now;
            }
        }
        // What waits for a permit, or for an answer to what is ours, was not heard yet: the server is kept for it. Not
        // for what waits for a listener, which may have to be connected first.
        let is_put_off = progress.then == Then::Pin;
        if is_put_off && put_off.is_some() {
            pair.server.query_since = Moment::NEVER;
        }
        let waits_for_ours =
            progress.then == Then::Wait && pair.server.ledger.iter().all(|entry| entry.swallow);
        self.unheard = is_put_off || (waits_for_ours && !self.awaits_channels());
        if is_put_off && let Some(before) = put_off {
            self.take_back(before, out);
        }
        self.quiet_since = now;
        progress
    }

    /// Bytes from a client that has no server and may need none: it hung up, or is saying goodbye.
    ///
    /// `Then::Read` with nothing consumed means that a server is needed.
    pub fn on_client_alone(&mut self, input: &[u8]) -> Progress {
        let mut at = 0;
        loop {
            let Some(header) = Header::peek(&input[at..]) else {
                return Progress { consumed: at, then: Then::Read };
            };
            if let Err(fault) = header.check_client() {
                return Progress { consumed: at, then: Then::Close(Some(violation(fault.to_string()))) };
            }
            match header.tag {
                tag::TERMINATE => return Progress { consumed: input.len(), then: Then::Close(None) },
                tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL
                    if header.total() <= (input.len() - at) as u64 =>
                {
                    at += header.total() as usize;
                }
                _ => return Progress { consumed: at, then: Then::Read },
            }
        }
    }
}

/// Functions of large objects, which drivers call by their numbers; what they open ends with the transaction.
const LARGE_OBJECT_FUNCTIONS: [u32; 13] =
    [715, 764, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171];

impl Pair<'_> {
    /// A function called by its number.
    pub(crate) fn call(&mut self, message: Message<'_>) -> Step {
        let mut entry = Entry::client(Owed::FunctionCall);
        let number = message.body.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
        let is_known = LARGE_OBJECT_FUNCTIONS.contains(&number);
        let is_asked = self.policy.scans() && !self.policy.servers_forget;
        if is_asked && !is_known && !self.server.ledger.is_skipping() {
            let mut pending = Pending::default();
            pending.push(0, Deed::Doubt(Kinds::ALL));
            self.state.get_or_insert_default().pending.push_back(pending);
            entry.marks.state = true;
        }
        self.server.ledger.push(entry);
        self.forward(message, 0);
        Step::Done
    }
}

impl Pair<'_> {
    fn run(&mut self, input: &[u8]) -> Progress {
        let mut at = 0;
        let then = loop {
            if self.client.sending > 0 {
                at = self.go_on(input, at);
            }
            let Some(header) = Header::peek(&input[at..]) else { break Then::Read };
            if self.server.ledger.len() >= OWED_MAX {
                // The answers that we wait for may lie in the server's buffer until somebody asks for them.
                self.out.to_server.make(|bytes| bytes.extend_from_slice(&FLUSH));
                break Then::Wait;
            }
            if let Err(fault) = header.check_client() {
                break Then::Close(Some(violation(fault.to_string())));
            }
            let here = &input[at..];
            let is_whole = header.total() <= here.len() as u64;
            if !is_whole && header.total() <= WHOLE_BYTES_MAX {
                break Then::Read;
            }
            let end = if is_whole { header.total() as usize } else { here.len() };
            let message = Message { header, at, body: &here[5..end], is_whole, next: here.get(end).copied() };
            match self.message(message) {
                Step::Done => at += end,
                Step::More => break Then::Read,
                Step::Wait => break Then::Wait,
                Step::Pin => break Then::Pin,
                Step::Close(refusal) => break Then::Close(refusal),
            }
        };
        // Where the server may still refuse all of it, the client hears nothing before the server has spoken.
        if self.server.retry == Retry::No {
            self.emit_made();
        }
        Progress { consumed: at, then }
    }

    /// The next piece of a message that began in an earlier call.
    fn go_on(&mut self, input: &[u8], at: usize) -> usize {
        let take = self.client.sending.min((input.len() - at) as u64) as usize;
        self.client.sending -= take as u64;
        if self.client.rest == Rest::Forward {
            self.server.sending = self.client.sending;
            self.out.to_server.input(at, at + take);
        }
        at + take
    }

    fn message(&mut self, message: Message<'_>) -> Step {
        if self.state.is_some() && self.waits_for_reset(message.header.tag) {
            return Step::Wait;
        }
        match message.header.tag {
            tag::QUERY => return self.query(message),
            tag::PARSE => {
                if self.channels.is_some() {
                    self.show_parsed(message);
                }
                return self.parse(message);
            }
            tag::BIND => return self.bind(message),
            tag::DESCRIBE | tag::CLOSE => return self.target(message),
            tag::EXECUTE if self.state.is_some() => return self.execute(message),
            tag::EXECUTE => self.pass(message, Some(Owed::Execute)),
            tag::SYNC => {
                if self.policy.servers_forget {
                    self.server.unnamed = None;
                }
                self.pass(message, Some(Owed::Sync));
            }
            tag::FLUSH => self.pass(message, None),
            tag::FUNCTION_CALL => {
                self.server.soiled = true;
                return self.call(message);
            }
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL => {
                // Outside a COPY the server would ignore these: so a late one needs no server at all.
                self.emit_made();
                if self.server.ledger.is_empty() && !self.policy.dedicated {
                    self.discard(message);
                } else {
                    let ends = message.header.tag != tag::COPY_DATA;
                    self.pass(message, ends.then_some(Owed::CopyEnd));
                }
            }
            tag::TERMINATE => return Step::Close(None),
            _ => return Step::Close(Some(violation("unexpected message type after login"))),
        }
        Step::Done
    }

    #[inline]
    fn query(&mut self, message: Message<'_>) -> Step {
        if self.policy.disable_pqexec {
            return Step::Close(Some(Box::new(Refusal::PqExecDisallowed)));
        }
        // PostgreSQL 18 runs it in the implicit transaction of the batch before it, and fails the next query of the
        // session with an internal error: that must not be another client's.
        let mut entry = Entry::client(Owed::Query);
        entry.marks.spoils = self.server.ledger.is_unsynced();
        if !self.server.ledger.is_skipping() {
            match self.deallocated(message) {
                Found::Open => return Step::Wait,
                Found::Statement(name) => self.deallocate(&name),
                Found::Nothing => {}
            }
            if self.looks() {
                match self.note_query(message) {
                    Noted::Nothing => {}
                    Noted::Deeds => entry.marks.state = true,
                    Noted::Refused(instead) => return self.refuse_query(message, instead, entry),
                    Noted::Renamed(names, has_deeds) => {
                        self.client.unnamed = None;
                        self.server.unnamed = None;
                        self.server.soiled = true;
                        return self.run_renamed(message, &names, has_deeds, entry);
                    }
                    Noted::Asks => return Step::Pin,
                    Noted::Awaited => return Step::Wait,
                }
            }
            // A simple query destroys the unnamed statement.
            self.client.unnamed = None;
            self.server.unnamed = None;
        }
        self.server.soiled = true;
        self.server.ledger.push(entry);
        self.forward(message, 0);
        Step::Done
    }

    fn target(&mut self, message: Message<'_>) -> Step {
        if !message.is_whole {
            return Step::More;
        }
        let Ok((target, name)) = wire::client::target(message.body) else {
            let text = if message.header.tag == tag::CLOSE {
                "broken Close packet"
            } else {
                "broken Describe packet"
            };
            return Step::Close(Some(violation(text)));
        };
        let is_statement = target == Target::Statement;
        if is_statement && self.policy.maps_statements() && !self.server.ledger.is_skipping() {
            return if message.header.tag == tag::CLOSE {
                self.close_statement(message, name)
            } else {
                self.describe_statement(message, name)
            };
        }
        if !is_statement && message.header.tag == tag::DESCRIBE && !self.server.ledger.is_skipping() {
            self.describe_portal(message, name);
        } else {
            self.pass(message, Some(target_owed(message.header.tag, is_statement)));
        }
        Step::Done
    }

    /// Forwards a message as it is, as far as it is here.
    pub(crate) fn pass(&mut self, message: Message<'_>, owed: Option<Owed>) {
        if let Some(owed) = owed {
            self.server.ledger.push(Entry::client(owed));
        }
        self.forward(message, 0);
    }

    /// Forwards a message without its first `skip` bytes of header and body.
    #[inline]
    pub(crate) fn forward(&mut self, message: Message<'_>, skip: usize) {
        let end = message.at + 5 + message.body.len();
        self.out.to_server.input(message.at + skip, end);
        self.client.sending = message.header.total() - (end - message.at) as u64;
        self.client.rest = Rest::Forward;
        self.server.sending = self.client.sending;
    }

    /// Takes a message away from the stream.
    pub(crate) fn discard(&mut self, message: Message<'_>) {
        self.client.sending = message.header.body() - message.body.len() as u64;
        self.client.rest = Rest::Discard;
    }

    /// Writes the replies of our own whose turn has come: never within a message of the server.
    pub(crate) fn emit_made(&mut self) {
        crate::from_server::emit_made(self.server, Some(self.client), self.out);
    }
}

/// Whether a message of which `here` bytes are here would be sent, as far as they are.
pub(crate) fn is_sendable(header: Header, here: usize) -> bool {
    header.total() <= here as u64 || header.total() > WHOLE_BYTES_MAX
}

/// Whether more of a Bind should be waited for to see its names.
pub(crate) fn may_grow(message: Message<'_>) -> bool {
    !message.is_whole && message.body.len() < NAMES_BYTES_MAX
}

pub(crate) fn target_owed(tag_byte: u8, is_statement: bool) -> Owed {
    match (tag_byte, is_statement) {
        (tag::CLOSE, _) => Owed::Close,
        (_, true) => Owed::DescribeStatement,
        (_, false) => Owed::DescribePortal,
    }
}

pub(crate) fn violation(text: impl Into<Cow<'static, str>>) -> Box<Refusal> {
    Box::new(Refusal::ProtocolViolation(text.into()))
}
