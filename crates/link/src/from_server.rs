//! What becomes of each message of the server.
//!
//! The common ones are forwarded from their header alone. Everything is held against the ledger: a message
//! that is not owed ends the server, and never reaches a client that did not ask for it.

use std::sync::Arc;

use client::Client;
use model::{Moment, PoolMode, Refusal};
use server::{Broken, Check, Entry, Instead, Owed, Passes, Retry, Server};
use wire::Header;
use wire::server::{ErrorFields, TransactionStatus, tag};

use crate::link::Link;
use crate::out::{Out, Tally};
use crate::progress::{Progress, Then};
use crate::route::ELSEWHERE;
use crate::stale;
use crate::state::State;

/// Bodies that must be read are not waited for beyond this size, in bytes. Of a longer error that much is
/// read: its severity and code come first.
const READ_BYTES_MAX: u64 = 64 << 10;

/// Writes the replies of our own whose turn has come; never into the middle of a message of the server.
#[inline]
pub(crate) fn emit_made(server: &mut Server, client: Option<&mut Client>, out: &mut Out) {
    if server.receiving == 0 && server.ledger.is_made_due() {
        emit_due(server, client, out);
    }
}

#[cold]
fn emit_due(server: &mut Server, mut client: Option<&mut Client>, out: &mut Out) {
    while let Some((made, entry)) = server.ledger.pop_made() {
        let Some(client) = &mut client else { continue };
        let bytes = match made {
            server::Made::ParseComplete => wire::encode::PARSE_COMPLETE,
            server::Made::CloseComplete => wire::encode::CLOSE_COMPLETE,
        };
        out.to_client.make(|out| out.extend_from_slice(&bytes));
        if entry.marks.client_name {
            client.settle_name();
        }
    }
}

/// Longer bodies, in bytes, are looked at one by one.
const SKIMMED_BYTES_MAX: u32 = 16 << 10;

/// Whether a CommandComplete says no more than that rows were read or changed.
fn is_plain_command(message: &[u8]) -> bool {
    matches!(message.get(5..8), Some(b"SEL" | b"INS" | b"UPD" | b"DEL"))
}

/// What is done with a server's message.
pub(crate) enum Fate {
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
        let mut ear = Ear::new(server, Some(&mut self.client), Some(&mut self.state), out);
        ear.rides_out = self.policy.rides_out;
        let (consumed, is_sound) = ear.run(input);
        let Ear { told, became_ready, heard_ready, left_doubts, .. } = ear;
        if std::mem::take(&mut server.renews) {
            self.statements.renew();
        }
        if !is_sound {
            return Progress { consumed, then: Then::ServerGone(told) };
        }
        if left_doubts {
            self.resolve_doubt(out);
        }
        if became_ready {
            self.after_ready(now, heard_ready, &mut out.tally);
            if self.state.is_some() {
                self.heed_state(now, out);
            }
            if self.policy.mode == PoolMode::Statement && self.is_in_transaction() {
                let refusal = Box::new(Refusal::TransactionInStatementMode);
                return Progress { consumed, then: Then::Close(Some(refusal)) };
            }
        }
        Progress { consumed, then: Then::Read }
    }

    /// A COPY that failed may have eaten a Sync, and so the server may still owe an answer or not. An empty
    /// query shows which, so that a client which says no more does not hold the server.
    fn resolve_doubt(&mut self, out: &mut Out) {
        let Some(server) = &mut self.server else { return };
        if server.ledger.only_doubts_left() && server.sending == 0 {
            server.owe_query();
            out.to_server.make(|bytes| wire::encode::query(bytes, b""));
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| server.ledger.is_empty() && server.status != TransactionStatus::Idle)
    }

    /// A ReadyForQuery has come: the preparation is over, or a query, or a transaction.
    fn after_ready(&mut self, now: Moment, heard_ready: bool, tally: &mut Tally) {
        let Some(server) = &mut self.server else { return };
        self.quiet_since = now;
        if heard_ready {
            self.carrying = false;
        }
        if !server.ledger.is_empty() {
            return;
        }
        if std::mem::take(&mut self.preparing) {
            self.is_proven |= std::mem::take(&mut self.carrying);
            if *server.parameters == *self.client.parameters {
                server.parameters = Arc::clone(&self.client.parameters);
            }
            return;
        }
        if !heard_ready {
            return;
        }
        if server.query_since != Moment::NEVER {
            tally.queries += 1;
            tally.query_us += now.micros_since(server.query_since);
            server.query_since = Moment::NEVER;
        }
        if server.status == TransactionStatus::Idle {
            tally.transactions += 1;
            tally.transaction_us += now.micros_since(server.transaction_since);
        }
    }
}

/// Who listens to a server: its client, or nobody while it is being cleaned.
pub(crate) struct Ear<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) client: Option<&'a mut Client>,
    /// What the client's statements do to the session.
    pub(crate) state: Option<&'a mut Option<Box<State>>>,
    pub(crate) out: &'a mut Out,
    /// The client has been sent an error that ends its session.
    pub(crate) told: bool,
    /// A ReadyForQuery was among the messages.
    pub(crate) became_ready: bool,
    /// One that answers the client.
    heard_ready: bool,
    /// The client outlives a server that goes: it is not shown the server's last words.
    rides_out: bool,
    /// After that nothing was owed but Syncs that a COPY may have eaten, and no error followed.
    left_doubts: bool,
}

impl<'a> Ear<'a> {
    pub(crate) fn new(
        server: &'a mut Server,
        client: Option<&'a mut Client>,
        state: Option<&'a mut Option<Box<State>>>,
        out: &'a mut Out,
    ) -> Ear<'a> {
        Ear {
            server,
            client,
            state,
            out,
            told: false,
            became_ready: false,
            heard_ready: false,
            rides_out: false,
            left_doubts: false,
        }
    }

    /// Deals with all that is whole; says how many bytes that were and whether the server is still sound.
    pub(crate) fn run(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        loop {
            if self.server.receiving > 0 {
                at = self.go_on(input, at);
            }
            self.emit_made();
            at = self.skim(input, at);
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
            if self.server.broken.is_some() {
                return (at, false);
            }
        }
    }

    /// Forwards the whole messages that nearly every answer is made of, as long as nothing about them can matter.
    #[inline]
    fn skim(&mut self, input: &[u8], from: usize) -> usize {
        let passes = self.server.ledger.passes();
        if passes == Passes::Nothing {
            return from;
        }
        let mut at = from;
        while let Some(header) = Header::peek(&input[at..]) {
            let is_plain = match header.tag {
                tag::DATA_ROW => true,
                tag::ROW_DESCRIPTION => passes == Passes::Results,
                tag::COMMAND_COMPLETE => passes == Passes::Results && is_plain_command(&input[at..]),
                _ => false,
            };
            let end = at + header.length as usize + 1;
            if !is_plain || header.length.wrapping_sub(4) > SKIMMED_BYTES_MAX || end > input.len() {
                break;
            }
            at = end;
        }
        if at > from {
            self.out.to_client.input(from, at);
            self.server.swallowing = false;
        }
        at
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
        let must_read = matches!(
            header.tag,
            tag::READY_FOR_QUERY | tag::PARAMETER_STATUS | tag::ERROR_RESPONSE | tag::COMMAND_COMPLETE
        );
        if must_read && !is_whole {
            if header.body() <= READ_BYTES_MAX {
                return Fate::More;
            }
            if header.tag != tag::ERROR_RESPONSE {
                return Fate::Broken(Broken::BadHeader);
            }
            if (body.len() as u64) < READ_BYTES_MAX {
                return Fate::More;
            }
        }
        match header.tag {
            tag::READY_FOR_QUERY => self.ready(body),
            tag::ERROR_RESPONSE => self.error(body),
            tag::PARAMETER_STATUS => self.parameter(body),
            tag::NOTIFICATION_RESPONSE
                if self.client.as_ref().is_some_and(|client| client.channels.is_some()) =>
            {
                if !is_whole && header.body() <= READ_BYTES_MAX {
                    return Fate::More;
                }
                self.notification(body)
            }
            tag::NOTIFICATION_RESPONSE => self.heard(),
            tag::NOTICE_RESPONSE if self.server.retry == Retry::May => {
                if !is_whole && header.body() <= READ_BYTES_MAX {
                    return Fate::More;
                }
                self.aside_elsewhere(body)
            }
            tag::NOTICE_RESPONSE => self.aside(),
            tag::BACKEND_KEY_DATA | tag::AUTHENTICATION | tag::NEGOTIATE_PROTOCOL_VERSION => {
                Fate::Broken(Broken::Unexpected(header.tag))
            }
            tag::DATA_ROW if self.server.ledger.front().is_some_and(|entry| entry.marks.census) => {
                if !is_whole && header.body() <= READ_BYTES_MAX {
                    return Fate::More;
                }
                self.counted(is_whole.then_some(body));
                self.reply(header, body)
            }
            _ => {
                let awaited = self.awaited_description(header.tag);
                if awaited.is_some() && !is_whole && header.body() <= READ_BYTES_MAX {
                    return Fate::More;
                }
                let fate = self.reply(header, body);
                if let Some(entry) = awaited
                    && matches!(fate, Fate::Forward | Fate::Swallow)
                {
                    self.described(entry, header.tag, is_whole.then_some(body));
                }
                fate
            }
        }
    }

    #[inline(always)]
    fn reply(&mut self, header: Header, body: &[u8]) -> Fate {
        self.drop_eaten_syncs();
        let ends_statement = matches!(header.tag, tag::COMMAND_COMPLETE | tag::PORTAL_SUSPENDED);
        let is_stateful = ends_statement && self.server.ledger.front().is_some_and(|entry| entry.marks.state);
        let reply = match self.server.ledger.on_reply(header.tag) {
            Ok(reply) => reply,
            Err(unexpected) => return Fate::Broken(Broken::Unexpected(unexpected.0)),
        };
        // Most commands are SELECT, INSERT and UPDATE, and change nothing that is known here.
        if header.tag == tag::COMMAND_COMPLETE && !matches!(body.first(), Some(b'S' | b'I' | b'U')) {
            self.command(body, reply.swallow || is_stateful);
        }
        if is_stateful {
            self.took_hold(body);
        }
        if let Some(entry) = reply.done {
            if entry.marks.refusal.is_some() {
                // What was sent to fail has not.
                return Fate::Broken(Broken::Unexpected(header.tag));
            }
            self.settle(entry);
        }
        if reply.swallow { Fate::Swallow } else { Fate::Forward }
    }

    #[inline]
    fn drop_eaten_syncs(&mut self) {
        if self.server.ledger.is_doubtful() {
            self.server.ledger.drop_eaten_syncs();
            self.emit_made();
        }
    }

    /// An entry was answered: what was assumed when it was sent is now true.
    fn settle(&mut self, entry: Entry) {
        if entry.marks.client_name
            && let Some(client) = &mut self.client
        {
            client.settle_name();
        }
        if entry.marks.state {
            self.finish_front();
        }
        if let Some((id, is_parse)) = entry.change() {
            self.server.prepared.answered(id, is_parse);
        }
    }

    fn command(&mut self, body: &[u8], is_known: bool) {
        match body {
            // A preparation resets single parameters, and has entered that; so does what is known of a statement.
            b"RESET\0" if is_known && self.client.is_some() => {}
            b"RESET\0" => self.forget_unreported(),
            b"DISCARD ALL\0" => {
                self.forget_unreported();
                self.deallocated_all();
            }
            b"DEALLOCATE ALL\0" => self.deallocated_all(),
            _ if stale::may_change_results(body) => self.altered(),
            _ => {}
        }
    }

    fn deallocated_all(&mut self) {
        self.server.prepared.clear();
        // What was parsed behind it is still to come.
        let keeps_unnamed = self.server.ledger.iter().any(is_unnamed_parse);
        if !keeps_unnamed {
            self.server.unnamed = None;
        }
        if let Some(client) = &mut self.client {
            let unnamed = client.unnamed.take();
            client.clear_names();
            client.unnamed = unnamed.filter(|_| keeps_unnamed);
        }
    }

    /// What was set on this server for a client may be gone; what the server reports, it reports.
    fn forget_unreported(&mut self) {
        let parameters = &mut self.server.parameters;
        let unreported: Vec<Arc<[u8]>> =
            parameters.iter().filter(|p| !p.reported).map(|p| Arc::clone(&p.name)).collect();
        if !unreported.is_empty() {
            let parameters = Arc::make_mut(parameters);
            unreported.iter().for_each(|name| parameters.remove(name));
        }
    }

    fn ready(&mut self, body: &[u8]) -> Fate {
        let Ok(status) = wire::server::ready_for_query(body) else {
            return Fate::Broken(Broken::Malformed(tag::READY_FOR_QUERY));
        };
        let front = self.server.ledger.front().copied();
        match self.server.ledger.on_ready() {
            Ok(swallow) => {
                self.server.status = status;
                self.became_ready = true;
                self.heard_ready |= !swallow;
                if let (Some(Some(_)), Some(front)) = (&self.state, front) {
                    self.session_is_ready(front);
                }
                if self.server.altering && status == TransactionStatus::Idle {
                    self.altered_for_all();
                }
                self.left_doubts = self.server.ledger.only_doubts_left();
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
        if let Some(Some(state)) = &self.state
            && state.is_restoring(name)
        {
            return Fate::Swallow;
        }
        // After a RESET the session is somebody else, until the client's role is set again.
        let is_another = name == b"is_superuser"
            && client.has_own(b"role")
            && self.server.parameters.value(b"role") != client.parameters.value(b"role");
        if is_another {
            return Fate::Swallow;
        }
        let is_news = client.parameters.value(name) != Some(value);
        client.set_parameter(name, value);
        if is_news { Fate::Forward } else { Fate::Swallow }
    }

    /// A notification for a client that somebody listens for: what that one hears, the client is told by it.
    #[cold]
    fn notification(&mut self, body: &[u8]) -> Fate {
        let name = body.get(4..).and_then(|text| text.split(|&byte| byte == 0).next()).unwrap_or_default();
        match &self.client {
            Some(client) if client.listens_on(name) => Fate::Swallow,
            _ => self.heard(),
        }
    }

    /// A notification is the client's that keeps the server because it listens, also while the server does something
    /// for us: it is sent only once.
    fn heard(&self) -> Fate {
        if self.client.is_none() { Fate::Swallow } else { Fate::Forward }
    }

    /// A notice answers nothing; while the server does something for us, it is ours.
    fn aside(&mut self) -> Fate {
        let is_ours = self.client.is_none() || self.server.ledger.front().is_some_and(|entry| entry.swallow);
        if is_ours { Fate::Swallow } else { Fate::Forward }
    }

    /// As `aside`, where another server may still give the answer: that this one goes is then nobody's business, and a
    /// client that had heard of it could not be answered by another.
    #[cold]
    fn aside_elsewhere(&mut self, body: &[u8]) -> Fate {
        let code = ErrorFields::parse(body).code;
        let goes =
            code.is_some_and(|code| crate::outlive::GOING.iter().any(|going| going.as_bytes() == code));
        if goes { Fate::Swallow } else { self.aside() }
    }

    fn error(&mut self, body: &[u8]) -> Fate {
        let fields = ErrorFields::parse(body);
        let text = |field: Option<&[u8]>| String::from_utf8_lossy(field.unwrap_or_default()).into_owned();
        let (code, words) = (text(fields.code), text(fields.message));
        self.drop_eaten_syncs();
        self.left_doubts = false;
        if fields.is_fatal() {
            // While the server does something for us alone, its end is no business of the client's.
            let mut owed = self.server.ledger.iter();
            let is_ours = !self.server.ledger.is_empty() && owed.all(|entry| entry.swallow);
            let is_pinned = matches!(&self.state, Some(Some(state)) if state.held.pins().is_some());
            // It is told what it has lost, and these words with that.
            let is_survived = (self.rides_out || is_pinned) && crate::outlive::GOING.contains(&&*code);
            self.server.broken = Some(Broken::Fatal(code.into(), words.into()));
            self.told = !is_ours && !is_survived && self.client.is_some();
            return if self.told { Fate::Forward } else { Fate::Swallow };
        }
        let mut undone = Vec::new();
        let Some(front) = self.server.ledger.on_error(|entry| undone.push(entry)) else {
            return Fate::Broken(Broken::Unexpected(tag::ERROR_RESPONSE));
        };
        if stale::is_stale_plan(fields) {
            self.found_stale(front);
        }
        let misused = self.undo(front, &undone);
        if let Some(Some(_)) = &self.state
            && self.session_has_failed(front, &undone, &code)
        {
            return Fate::Swallow;
        }
        if front.swallow && front.owed == Owed::Query {
            // A check, a reset or a carried setting was refused: nothing may follow it on this server.
            self.server.broken = Some(Broken::OursFailed(code.into(), words.into()));
            return Fate::Swallow;
        }
        if front.swallow && self.server.ledger.front().is_some_and(|sync| sync.swallow) {
            // What fails is ours to its end; where the Sync is the client's, the client must know.
            self.keep_excuse(body);
            return Fate::Swallow;
        }
        if self.server.retry == Retry::May && ELSEWHERE.contains(&&*code) {
            self.take_back(&code);
            return Fate::Swallow;
        }
        match front.marks.refusal {
            // Another statement of the same query may have failed.
            Some(instead)
                if code == wire::sqlstate::INVALID_SQL_STATEMENT_NAME
                    && (!front.marks.renamed || words.contains("howdah_0")) =>
            {
                self.say_instead(instead, &misused)
            }
            _ if self.says_otherwise(body, &code, front) => Fate::Swallow,
            _ => Fate::Forward,
        }
    }

    /// Takes back what was assumed of the messages that failed or are skipped. Gives the name that the first
    /// of them misused.
    fn undo(&mut self, front: Entry, undone: &[Entry]) -> Box<[u8]> {
        let Server { ledger, prepared, .. } = &mut *self.server;
        let owed = ledger.iter().filter_map(|entry| entry.change());
        prepared.undo(undone.iter().filter_map(|entry| entry.change().map(|(id, _)| id)), owed);
        if matches!(self.server.check, Check::Asked { .. }) {
            self.server.check = Check::None;
        }
        // Perhaps it was to forget what it remembers.
        self.server.may_remember |= undone.iter().any(|entry| entry.swallow && entry.owed == Owed::Execute);
        let lost_unnamed = undone.iter().rfind(|entry| is_unnamed_parse(entry));
        // A later one, sent behind a Sync, is not touched.
        let lost_unnamed = lost_unnamed.filter(|_| !self.server.ledger.iter().any(is_unnamed_parse));
        if lost_unnamed.is_some() {
            // Parse drops the old unnamed statement even where it fails.
            self.server.unnamed = None;
        }
        let Some(client) = &mut self.client else { return Box::default() };
        // Ours may stand behind the client's.
        if lost_unnamed.is_some() && undone.iter().any(|entry| is_unnamed_parse(entry) && !entry.swallow) {
            client.unnamed = None;
        }
        client.undo_names(undone.iter().filter(|entry| entry.marks.client_name).count());
        let has_misused = |entry: &Entry| {
            matches!(
                entry.marks.refusal,
                Some(Instead::DuplicateStatement | Instead::UnknownStatement | Instead::State)
            )
        };
        // The one at the front is told; those behind it are skipped and never told.
        let told = if has_misused(&front) { client.take_misused() } else { Box::default() };
        let untold = undone.iter().skip(1).filter(|entry| has_misused(entry)).count();
        (0..untold).for_each(|_| drop(client.take_misused()));
        told
    }

    /// Writes the replies of our own whose turn has come: never within a message of the server.
    #[inline]
    fn emit_made(&mut self) {
        emit_made(self.server, self.client.as_deref_mut(), self.out);
    }
}

/// Of the unnamed statement; those of named ones say which.
fn is_unnamed_parse(entry: &Entry) -> bool {
    entry.owed == Owed::Parse && entry.marks.statement.is_none()
}
