//! What becomes of each message of the server.
//!
//! The common ones are forwarded from their header alone. Everything is held against the ledger: a message
//! that is not owed ends the server, and never reaches a client that did not ask for it.

use std::sync::Arc;

use client::Client;
use model::{Moment, PoolMode, Refusal};
use server::{Broken, Entry, Instead, Server};
use wire::Header;
use wire::server::{ErrorFields, TransactionStatus, tag};

use crate::link::Link;
use crate::out::{Out, Tally};
use crate::progress::{Progress, Then};

/// Bodies that must be read are not waited for beyond this size, in bytes.
const READ_BYTES_MAX: u64 = 64 << 10;
/// `DISCARD ALL` and `DEALLOCATE ALL` with their zeros: only tags of these lengths are read.
const TAG_LENGTHS: [u64; 2] = [12, 15];

/// What is done with a server's message.
enum Fate {
    Forward,
    Swallow,
    /// The body is needed first.
    More,
    Broken(Broken),
}

impl Link {
    /// Bytes from the server, behind what an earlier call left.
    pub fn on_server(&mut self, now: Moment, input: &[u8], out: &mut Out) -> Progress {
        let Some(server) = self.server.as_deref_mut() else {
            return Progress { consumed: input.len(), then: Then::Wait };
        };
        let mut ear = Ear { server, client: Some(&mut self.client), out, told: false, became_ready: false };
        let (consumed, is_sound) = ear.run(input);
        let (told, became_ready) = (ear.told, ear.became_ready);
        if !is_sound {
            return Progress { consumed, then: Then::ServerGone(told) };
        }
        if became_ready {
            self.after_ready(now, &mut out.tally);
            if self.policy.mode == PoolMode::Statement && self.is_in_transaction() {
                return Progress { consumed, then: Then::Close(Some(Refusal::TransactionInStatementMode)) };
            }
        }
        Progress { consumed, then: Then::Read }
    }

    fn is_in_transaction(&self) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| server.ledger.is_empty() && server.status != TransactionStatus::Idle)
    }

    /// A ReadyForQuery has come: the preparation is over, or a query, or a transaction.
    fn after_ready(&mut self, now: Moment, tally: &mut Tally) {
        let Some(server) = &mut self.server else { return };
        self.quiet_since = now;
        if !server.ledger.is_empty() {
            return;
        }
        if std::mem::take(&mut self.preparing) {
            if *server.parameters == *self.client.parameters {
                server.parameters = Arc::clone(&self.client.parameters);
            }
            return;
        }
        if self.query_since != Moment::NEVER {
            tally.queries += 1;
            tally.query_time += now.since(self.query_since);
            self.query_since = Moment::NEVER;
        }
        if server.status == TransactionStatus::Idle {
            tally.transactions += 1;
            tally.transaction_time += now.since(self.transaction_since);
        }
    }
}

/// Who listens to a server: its client, or nobody while it is being cleaned.
pub(crate) struct Ear<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) client: Option<&'a mut Client>,
    pub(crate) out: &'a mut Out,
    /// The client has been sent an error that ends its session.
    pub(crate) told: bool,
    /// A ReadyForQuery was among the messages.
    pub(crate) became_ready: bool,
}

impl Ear<'_> {
    /// Deals with all that is whole; says how many bytes that were and whether the server is still sound.
    pub(crate) fn run(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        loop {
            if self.server.receiving > 0 {
                at = self.go_on(input, at);
            }
            let here = &input[at..];
            let Some(header) = Header::peek(here) else { return (at, true) };
            if header.check_server().is_err() {
                self.server.broken = Some(Broken::BadHeader);
                return (at, false);
            }
            let total = header.total();
            let end = total.min(here.len() as u64) as usize;
            let body = &here[5..end];
            match self.message(header, body, total == end as u64) {
                Fate::Forward => {
                    self.out.to_client.input(at, at + end);
                    self.server.swallowing = false;
                }
                Fate::Swallow => self.server.swallowing = true,
                Fate::More => return (at, true),
                Fate::Broken(broken) => {
                    self.server.broken = Some(broken);
                    return (at, false);
                }
            }
            self.server.receiving = total - end as u64;
            at += end;
            self.emit_made();
            if self.server.broken.is_some() {
                return (at, false);
            }
        }
    }

    fn go_on(&mut self, input: &[u8], at: usize) -> usize {
        let take = self.server.receiving.min((input.len() - at) as u64) as usize;
        self.server.receiving -= take as u64;
        if !self.server.swallowing {
            self.out.to_client.input(at, at + take);
        }
        at + take
    }

    #[inline]
    fn message(&mut self, header: Header, body: &[u8], is_whole: bool) -> Fate {
        let must_read = match header.tag {
            tag::READY_FOR_QUERY | tag::PARAMETER_STATUS | tag::ERROR_RESPONSE => true,
            tag::COMMAND_COMPLETE => TAG_LENGTHS.contains(&header.body()),
            _ => false,
        };
        if must_read && !is_whole {
            return if header.body() <= READ_BYTES_MAX {
                Fate::More
            } else {
                Fate::Broken(Broken::BadHeader)
            };
        }
        match header.tag {
            tag::READY_FOR_QUERY => self.ready(body),
            tag::ERROR_RESPONSE => self.error(body),
            tag::PARAMETER_STATUS => self.parameter(body),
            tag::NOTICE_RESPONSE | tag::NOTIFICATION_RESPONSE => self.aside(),
            tag::BACKEND_KEY_DATA | tag::AUTHENTICATION | tag::NEGOTIATE_PROTOCOL_VERSION => {
                Fate::Broken(Broken::Unexpected(header.tag))
            }
            _ => self.reply(header, body),
        }
    }

    fn reply(&mut self, header: Header, body: &[u8]) -> Fate {
        let reply = match self.server.ledger.on_reply(header.tag) {
            Ok(reply) => reply,
            Err(unexpected) => return Fate::Broken(Broken::Unexpected(unexpected.0)),
        };
        if header.tag == tag::COMMAND_COMPLETE && TAG_LENGTHS.contains(&header.body()) {
            self.command(body);
        }
        if let Some(entry) = reply.done {
            self.settle(entry, header.tag);
        }
        if reply.swallow { Fate::Swallow } else { Fate::Forward }
    }

    /// An entry was answered: what was assumed when it was sent is now true.
    fn settle(&mut self, entry: Entry, tag_byte: u8) {
        if entry.marks.client_name
            && let Some(client) = &mut self.client
        {
            client.settle_name();
        }
        if let (tag::CLOSE_COMPLETE, Some(id)) = (tag_byte, entry.marks.statement) {
            self.server.prepared.closed(id);
        }
    }

    fn command(&mut self, body: &[u8]) {
        let is_discard = match body {
            b"DISCARD ALL\0" => true,
            b"DEALLOCATE ALL\0" => false,
            _ => return,
        };
        self.server.prepared.clear();
        self.server.unnamed = None;
        if is_discard {
            // What was set on this server for a client is gone too; what the server reports, it reports.
            let server = &mut *self.server;
            let unreported: Vec<Arc<[u8]>> =
                server.parameters.iter().filter(|p| !p.reported).map(|p| Arc::clone(&p.name)).collect();
            if !unreported.is_empty() {
                let parameters = Arc::make_mut(&mut server.parameters);
                unreported.iter().for_each(|name| parameters.remove(name));
            }
        }
        if let Some(client) = &mut self.client {
            client.clear_names();
        }
    }

    fn ready(&mut self, body: &[u8]) -> Fate {
        let Ok(status) = wire::server::ready_for_query(body) else {
            return Fate::Broken(Broken::Malformed(tag::READY_FOR_QUERY));
        };
        match self.server.ledger.on_ready() {
            Ok(swallow) => {
                self.server.status = status;
                self.became_ready = true;
                if swallow { Fate::Swallow } else { Fate::Forward }
            }
            Err(unexpected) => Fate::Broken(Broken::Unexpected(unexpected.0)),
        }
    }

    fn parameter(&mut self, body: &[u8]) -> Fate {
        let Ok((name, value)) = wire::server::parameter_status(body) else {
            return Fate::Broken(Broken::Malformed(tag::PARAMETER_STATUS));
        };
        self.server.set_parameter(name, value, true);
        let Some(client) = &mut self.client else { return Fate::Swallow };
        let is_news = client.parameters.value(name) != Some(value);
        client.set_parameter(name, value);
        if is_news { Fate::Forward } else { Fate::Swallow }
    }

    /// A notice or notification answers nothing; while the server does something for us, it is ours.
    fn aside(&mut self) -> Fate {
        let is_ours = self.client.is_none() || self.server.ledger.front().is_some_and(|entry| entry.swallow);
        if is_ours { Fate::Swallow } else { Fate::Forward }
    }

    fn error(&mut self, body: &[u8]) -> Fate {
        let fields = ErrorFields::parse(body);
        let text = |field: Option<&[u8]>| String::from_utf8_lossy(field.unwrap_or_default()).into_owned();
        let (code, words) = (text(fields.code), text(fields.message));
        if fields.is_fatal() {
            self.server.broken = Some(Broken::Fatal(code.into(), words.into()));
            self.told = true;
            return if self.client.is_some() { Fate::Forward } else { Fate::Swallow };
        }
        let mut undone = Undone::default();
        let server = &mut *self.server;
        let prepared = &mut server.prepared;
        let mut misused = None;
        let front = server.ledger.on_error(|entry| undone.note(entry, prepared));
        if let Some(client) = &mut self.client {
            client.undo_names(undone.names);
            // The one at the front is told below; those behind it are skipped and never told.
            let told = front.is_some_and(|entry| entry.marks.refusal == Some(Instead::DuplicateStatement));
            let name = told.then(|| client.take_misused());
            (usize::from(told)..undone.misused).for_each(|_| drop(client.take_misused()));
            misused = name;
        }
        let Some(front) = front else { return Fate::Broken(Broken::Unexpected(tag::ERROR_RESPONSE)) };
        if undone.unnamed {
            server.unnamed = None;
        }
        if front.swallow && front.owed == server::Owed::Query {
            // A check, a reset or a carried setting was refused: nothing may follow it on this server.
            self.server.broken = Some(Broken::OursFailed(code.into(), words.into()));
            return Fate::Swallow;
        }
        match front.marks.refusal {
            Some(instead) if code == wire::sqlstate::INVALID_SQL_STATEMENT_NAME => {
                self.say_instead(instead, &misused.unwrap_or_default())
            }
            _ => Fate::Forward,
        }
    }

    /// The error that the server was made to raise, in the words that PostgreSQL has for the real one.
    fn say_instead(&mut self, instead: Instead, name: &[u8]) -> Fate {
        let (code, text) = match instead {
            Instead::DuplicateStatement => {
                let refusal = Refusal::DuplicateStatement(String::from_utf8_lossy(name).into_owned());
                (refusal.sqlstate().to_owned(), refusal.to_string())
            }
            Instead::StatementTooLarge => {
                let text = "prepared statement is larger than may be kept (prepared_statement_size_max)";
                (wire::sqlstate::PROGRAM_LIMIT_EXCEEDED.to_owned(), text.to_owned())
            }
            Instead::NoUnnamedStatement => (
                wire::sqlstate::INVALID_SQL_STATEMENT_NAME.to_owned(),
                "unnamed prepared statement does not exist".to_owned(),
            ),
        };
        self.out
            .to_client
            .make(|bytes| wire::encode::report(bytes, wire::encode::Severity::Error, &code, &text, None));
        Fate::Swallow
    }

    /// Writes the replies of our own whose turn has come.
    fn emit_made(&mut self) {
        while let Some((made, entry)) = self.server.ledger.pop_made() {
            let Some(client) = &mut self.client else { continue };
            let bytes = match made {
                server::Made::ParseComplete => wire::encode::PARSE_COMPLETE,
                server::Made::CloseComplete => wire::encode::CLOSE_COMPLETE,
            };
            self.out.to_client.make(|out| out.extend_from_slice(&bytes));
            if entry.marks.client_name {
                client.settle_name();
            }
        }
    }
}

/// What an error undid of what had been assumed.
#[derive(Default)]
struct Undone {
    names: usize,
    misused: usize,
    unnamed: bool,
}

impl Undone {
    fn note(&mut self, entry: Entry, prepared: &mut server::prepared::Prepared) {
        self.names += usize::from(entry.marks.client_name);
        self.misused += usize::from(entry.marks.refusal == Some(Instead::DuplicateStatement));
        match (entry.owed, entry.marks.statement) {
            (server::Owed::Parse, Some(id)) => prepared.undo_parse(id),
            (server::Owed::Close, Some(id)) => prepared.undo_close(id),
            // A Parse of the unnamed statement, which drops the old one even where it fails.
            (server::Owed::Parse, None) => self.unnamed = true,
            _ => {}
        }
    }
}
