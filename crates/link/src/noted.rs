//! What each message of the client will do to its session is noted here, and what the server's answers make of it.

use std::sync::Arc;

use model::{Moment, Parameters, PoolMode, Refusal, StateMode, Statement};
use server::{Entry, Instead, Owed};
use sql::state::{Effect, Effects, FunctionKind};
use wire::client::{BindHead, Parse, tag};
use wire::encode;
use wire::server::TransactionStatus;

use crate::by_sql::{Names, Renamed};
use crate::channels::{Hearing, Hears};
use crate::from_client::{Message, Pair, Step};
use crate::from_server::Ear;
use crate::link::{Link, Permit};
use crate::out::Out;
use crate::state::deed::{Deed, Kinds, Pending};
use crate::state::scan::{Portal, Reading, scan};
use crate::state::{State, Told, refusal};

/// What was found in a message.
pub(crate) enum Noted {
    /// It does nothing to the session.
    Nothing,
    /// What it does waits for its answer.
    Deeds,
    /// It is not to be done, and the client is told this.
    Refused(Instead),
    /// It names statements that the server has under another name; whether what it does waits for its answer.
    Renamed(Box<Names>, bool),
    /// It keeps its server, and may not yet.
    Asks,
    /// It cannot be sent yet: somebody must listen first, or it depends on an answer.
    Awaited,
}

/// What is to be done about a Parse beside sending it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// Nothing.
    Plain,
    /// It names statements that the server may have under another name.
    Names,
    /// Somebody must be asked first.
    Asks,
}

/// Fails in any session: no server has such a statement.
const FAILS: &[u8] = b"EXECUTE howdah_0";
/// Our own statement and portal within a client's batch.
const RESTORES: &[u8] = b"howdah_restores";
/// A text of which nothing is known.
const UNREAD: &[u8] = b"\"";
/// So many texts and portals are kept of one client.
const KEPT_MAX: usize = 256;

/// So many databases are named in one go: a string of statements makes or drops none.
const DATABASES_MAX: usize = 4;

impl Pair<'_> {
    /// Whether statements are looked at. Of a client that has its server for itself only those that reset may matter,
    /// and only where it logged in with settings of its own.
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        self.policy.scans()
            || (!self.client.own().is_empty() && !self.policy.dedicated && self.keeps_its_server())
    }

    pub(crate) fn keeps_its_server(&self) -> bool {
        self.policy.mode == PoolMode::Session
    }

    /// What follows a RESET must find what the client logged in with. Within a batch that is set at once; behind it
    /// the server's answer comes first.
    #[cold]
    pub(crate) fn waits_for_reset(&mut self, tag_byte: u8) -> bool {
        let runs = !matches!(tag_byte, tag::SYNC | tag::FLUSH | tag::TERMINATE)
            && !matches!(tag_byte, tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL);
        let (Some(state), true) = (&mut *self.state, runs) else { return false };
        let ledger = &self.server.ledger;
        if ledger.is_skipping() {
            return false;
        }
        match state.pending.iter_mut().find(|pending| pending.awaits) {
            Some(_) if !ledger.is_unsynced() => return true,
            Some(pending) => {
                (pending.awaits, pending.is_followed) = (false, true);
                let login = Arc::clone(&self.client.login);
                self.restore_within_batch(&login);
            }
            // It was answered meanwhile.
            None if !state.differs || ledger.is_empty() && !ledger.is_unsynced() => return false,
            None if !ledger.is_unsynced() => return true,
            None => {
                state.differs = false;
                let wanted = Arc::clone(&self.client.parameters);
                self.restore_within_batch(&wanted);
            }
        }
        false
    }

    /// Sets what is the client's own as it is in `wanted`.
    fn restore_within_batch(&mut self, wanted: &Parameters) {
        let own = self.client.own();
        let text = crate::carry::restoring_query(own, wanted);
        let rest = [&text[..], &[0, 0, 0]].concat();
        self.out.to_server.make(|bytes| {
            encode::parse(bytes, RESTORES, &rest);
            encode::bind_text(bytes, RESTORES, RESTORES, &[]);
            encode::message(bytes, tag::EXECUTE, |bytes| {
                encode::cstr(bytes, RESTORES);
                bytes.extend_from_slice(&[0; 4]);
            });
            encode::target(bytes, tag::CLOSE, b'P', RESTORES);
            encode::target(bytes, tag::CLOSE, b'S', RESTORES);
        });
        let mut pending = Pending::default();
        for parameter in own.iter().filter_map(|name| wanted.entry(name)).filter(|p| !p.written) {
            let (name, value) = (parameter.name.to_ascii_lowercase().into(), (&*parameter.value).into());
            pending.push(0, Deed::Set { name, value, written: parameter.written });
        }
        for owed in [Owed::Parse, Owed::Bind, Owed::Execute, Owed::Close, Owed::Close] {
            // Number 0 is no shared statement's, and this is not the client's unnamed one.
            let mut entry = Entry { swallow: true, ..Entry::about(owed, 0) };
            entry.marks.state = owed == Owed::Execute;
            self.server.ledger.push(entry);
        }
        if let Some(state) = self.state {
            state.pending.push_back(pending);
        }
    }

    /// A simple query: nearly every one leaves no trace.
    #[inline]
    pub(crate) fn note_query(&mut self, message: Message<'_>) -> Noted {
        let text = match message.body {
            [text @ .., 0] if message.is_whole => text,
            text => text,
        };
        let policy = self.policy;
        let effects = scan(text, self.client.dialect, policy);
        if effects.is_plain() && message.is_whole && !self.draws(&effects) {
            return Noted::Nothing;
        }
        if effects.is_stateless() || !self.policy.maps_statements() || !message.is_whole {
            return self.note(&effects, &[], message.is_whole, &Names::default());
        }
        let names = match self.named_by_sql(text, &effects) {
            Ok(names) => names.map(Box::new),
            Err(noted) => return noted,
        };
        let Some(names) = names else { return self.note(&effects, &[], true, &Names::default()) };
        match self.note(&effects, &[], true, &names) {
            Noted::Nothing => Noted::Renamed(names, false),
            Noted::Deeds => Noted::Renamed(names, true),
            noted => noted,
        }
    }

    #[cold]
    fn note(&mut self, effects: &Effects<'_>, values: &[u8], is_whole: bool, names: &Names) -> Noted {
        self.show(effects);
        let is_touched = self.state.as_ref().is_some_and(|state| state.is_touched());
        if effects.is_stateless() && !is_touched && is_whole && !self.draws(effects) {
            return Noted::Nothing;
        }
        if self.hear(effects) == Hearing::Awaited {
            return Noted::Awaited;
        }
        self.learn(effects, names);
        let heard = self.channels.as_ref().map_or(&[][..], |channels| channels.heard());
        let mut pending = self.pending(effects, values, Hears::These(heard), names);
        if self.policy.state == StateMode::Refuse
            && let Some(words) = refusal::words(&pending, effects, self.policy.servers_forget)
        {
            self.client.push_misused(words.as_bytes());
            return Noted::Refused(Instead::State);
        }
        if self.policy.servers_forget {
            // Whoever is asked may be another than whoever did it.
            pending.keep_settings_only();
        }
        if self.must_ask(&pending) {
            return Noted::Asks;
        }
        self.heard();
        self.forget_others_draws(effects);
        if !is_whole && !self.keeps_its_server() && !self.policy.servers_forget {
            pending.push(usize::MAX, Deed::Doubt(Kinds::ALL));
        }
        pending.shifts.clone_from(&names.made.shifts);
        if pending.is_empty() && pending.shifts.is_empty() {
            return Noted::Nothing;
        }
        pending.awaits = pending.resets(self.client.own());
        self.state.get_or_insert_default().pending.push_back(pending);
        Noted::Deeds
    }

    pub(crate) fn pending(
        &self,
        effects: &Effects<'_>,
        values: &[u8],
        hears: Hears<'_>,
        names: &Names,
    ) -> Pending {
        let texts = self.state.as_ref().map_or(&[][..], |state| &state.texts);
        let reading = Reading {
            mode: self.policy.state,
            is_touched: self.state.as_ref().is_some_and(|state| state.is_touched()),
            sequences_are_read: self.remembers_sequences(),
            values,
            texts,
            makes: &names.made.statements,
            drops: &names.drops_own,
            ends_at: names.refusal.as_ref().map_or(usize::MAX, |(number, ..)| *number),
            client: self.client,
            hears,
            is_unicode: self.is_unicode(),
            dialect: self.client.dialect,
            policy: self.policy,
        };
        let mut pending = reading.pending(effects);
        if self.keeps_its_server() {
            pending.keep_settings_only();
        }
        pending
    }

    /// What a text says of those that will come.
    fn learn(&mut self, effects: &Effects<'_>, names: &Names) {
        let (policy, dialect) = (self.policy, self.client.dialect);
        effects.each(|number, effect| match effect {
            Effect::Prepare { .. } if names.made.statements.iter().any(|(of, _)| *of == number) => {}
            Effect::Call { kind: FunctionKind::SequenceRead, .. } => {
                let name = self.client.parameters.value(b"application_name").unwrap_or_default();
                self.statements.note_sequences_are_read(name);
            }
            Effect::Prepare { name, body } if !scan(body, dialect, policy).is_stateless() => {
                keep_text(self.state, &name.to_vec(), Some(body));
            }
            Effect::Prepare { name, .. } => keep_text(self.state, &name.to_vec(), None),
            Effect::Database(name) if self.out.databases.len() < DATABASES_MAX => {
                self.out.databases.push(name.to_vec().into());
            }
            _ => {}
        });
    }

    /// Whether somebody must be asked before this is sent: only while the server could still be given back.
    fn must_ask(&mut self, pending: &Pending) -> bool {
        if *self.permit != Permit::None || refusal::pins(pending).is_none() {
            return false;
        }
        let is_fresh = self.is_fresh && self.server.ledger.iter().all(|entry| entry.swallow);
        let is_clean = (is_fresh || self.server.is_shareable())
            && self.state.as_ref().is_none_or(|state| state.is_free());
        if !is_clean {
            *self.permit = Permit::Taken;
        }
        is_clean
    }

    /// A query that fails at once goes to the server in its place.
    #[cold]
    pub(crate) fn refuse_query(&mut self, message: Message<'_>, instead: Instead, mut entry: Entry) -> Step {
        entry.marks.refusal = Some(instead);
        self.server.ledger.push(entry);
        self.out.to_server.make(|bytes| encode::query(bytes, FAILS));
        self.discard(message);
        Step::Done
    }

    /// A Parse whose statement is known to the server by the client's own name: the unnamed one, or any where names
    /// are passed through.
    #[inline]
    pub(crate) fn note_parse(&mut self, message: Message<'_>) -> Parsed {
        if !self.looks() {
            return Parsed::Plain;
        }
        let Ok(parse) = Parse::read(message.body) else {
            if !message.is_whole {
                self.note_long_parse(message.body);
            }
            return Parsed::Plain;
        };
        let text = parse.query();
        let policy = self.policy;
        let effects = scan(text, self.client.dialect, policy);
        if !effects.is_plain() || self.draws(&effects) {
            if message.may_be_bound_next() && self.asks_at_parse(&effects) {
                return Parsed::Asks;
            }
            keep_text(self.state, parse.name, Some(text));
            if policy.maps_statements() && message.is_whole && effects.names_statements() {
                return Parsed::Names;
            }
        } else if self.state.is_some() {
            keep_text(self.state, parse.name, None);
        }
        Parsed::Plain
    }

    /// What is parsed is run, as a rule: at its Bind it would be too late to give the server back.
    #[cold]
    pub(crate) fn asks_at_parse(&mut self, effects: &Effects<'_>) -> bool {
        if *self.permit != Permit::None || self.policy.state == StateMode::Refuse {
            return false;
        }
        if effects.is_stateless() && !self.draws(effects) {
            return false;
        }
        let pending = self.pending(effects, &[], Hears::Any, &self.foreseen(effects));
        // Later in a transaction it is asked for when it is run.
        (self.is_fresh || self.server.is_shareable()) && self.must_ask(&pending)
    }

    /// What will be prepared by a text is not known before it is run, but that it keeps no server.
    fn foreseen(&self, effects: &Effects<'_>) -> Names {
        let mut names = Names::default();
        if self.policy.carries_prepare() {
            effects.each(|number, effect| {
                if let Effect::Prepare { body, .. } = effect {
                    names.made.statements.push((number, Arc::new(Statement::new(0, body, 0))));
                }
            });
        }
        names
    }

    #[cold]
    fn note_long_parse(&mut self, body: &[u8]) {
        let name = body.split(|&byte| byte == 0).next().unwrap_or_default();
        keep_text(self.state, name, Some(UNREAD));
    }

    /// A Bind: its portal does what its statement does. What becomes of it if that may not be.
    #[inline]
    pub(crate) fn note_bind(
        &mut self,
        message: Message<'_>,
        head: BindHead<'_>,
        statement: Option<&Arc<Statement>>,
        made: Renamed,
    ) -> Option<Step> {
        if !self.looks() {
            return None;
        }
        let text: Option<Arc<[u8]>> = match statement {
            Some(statement) => self.does_something(statement).then(|| statement.text().into()),
            None => self.state.as_ref().and_then(|state| state.text(head.statement)),
        };
        match text {
            Some(text) => self.note_portal(message, head, text, made),
            None => {
                if let Some(state) = self.state {
                    state.portals.retain(|portal| *portal.name != *head.portal);
                }
                None
            }
        }
    }

    /// Whether a shared statement does anything to a session, or to its transaction.
    #[inline]
    pub(crate) fn does_something(&self, statement: &Statement) -> bool {
        let (policy, dialect) = (self.policy, self.client.dialect);
        if !self.looks() {
            return false;
        }
        let scanned = |text: &[u8]| !scan(text, dialect, policy).is_plain();
        let draws = |text: &[u8]| scan(text, dialect, policy).may_draw();
        match dialect.is_usual() {
            _ if self.is_to_forget() => true,
            true => statement.makes_state(scanned) || self.remembers_sequences() && statement.may_draw(draws),
            false => scanned(statement.text()) || self.remembers_sequences() && draws(statement.text()),
        }
    }

    #[cold]
    fn note_portal(
        &mut self,
        message: Message<'_>,
        head: BindHead<'_>,
        text: Arc<[u8]>,
        made: Renamed,
    ) -> Option<Step> {
        let policy = self.policy;
        let effects = scan(&text, self.client.dialect, policy);
        self.show(&effects);
        let values = &message.body[head.size()..];
        let names = Names::making(made);
        if policy.state == StateMode::Refuse
            && let Some(words) = self.refused(&effects, values, &names)
            && !self.misuses_names(&effects)
        {
            self.client.push_misused(words.as_bytes());
            return Some(self.refuse_in_place(message, Owed::Bind, Instead::State));
        }
        if self.asks_at_parse(&effects) {
            return Some(Step::Pin);
        }
        let state = self.state.get_or_insert_default();
        state.portals.retain(|portal| *portal.name != *head.portal);
        let (values, made) = (values.into(), names.made);
        if state.portals.len() < KEPT_MAX {
            state.portals.push(Portal { name: head.portal.into(), text, values, made });
        } else {
            state.portals.push(Portal {
                name: head.portal.into(),
                text: UNREAD.into(),
                values: Box::default(),
                made,
            });
            state.portals.swap_remove(0);
        }
        None
    }

    /// An Execute of a client that has state: of what portal?
    pub(crate) fn execute(&mut self, message: Message<'_>) -> Step {
        let mut entry = Entry::client(Owed::Execute);
        let name = message.body.split(|&byte| byte == 0).next().unwrap_or_default();
        let state = self.state.as_ref().filter(|_| self.looks() && !self.server.ledger.is_skipping());
        let portal = state.and_then(|state| state.portals.iter().find(|portal| *portal.name == *name));
        if let Some(portal) = portal.cloned() {
            let policy = self.policy;
            let effects = scan(&portal.text, self.client.dialect, policy);
            if policy.maps_statements()
                && let Some(step) = self.ready_to_run(message, &effects, &portal.made)
            {
                return step;
            }
            let names = Names::making(portal.made);
            match self.note(&effects, &portal.values, true, &names) {
                Noted::Nothing | Noted::Refused(_) | Noted::Renamed(..) => {}
                Noted::Deeds => {
                    entry.marks.state = true;
                    entry.marks.renamed = !names.made.shifts.is_empty();
                }
                Noted::Asks => return Step::Pin,
                Noted::Awaited => return Step::Wait,
            }
        }
        self.server.ledger.push(entry);
        self.forward(message, 0);
        Step::Done
    }
}

/// Keeps the text of a statement that is known by this name, or forgets it.
#[cold]
fn keep_text(state: &mut Option<Box<State>>, name: &[u8], text: Option<&[u8]>) {
    if state.is_none() && text.is_none() {
        return;
    }
    let texts = &mut state.get_or_insert_default().texts;
    texts.retain(|(other, _)| **other != *name);
    let Some(text) = text else { return };
    if texts.len() >= KEPT_MAX {
        texts.remove(0);
    }
    texts.push((name.into(), text.into()));
}

impl State {
    pub(crate) fn text(&self, name: &[u8]) -> Option<Arc<[u8]>> {
        self.texts.iter().find(|(other, _)| **other == *name).map(|(_, text)| Arc::clone(text))
    }
}

impl Link {
    /// The server is ready: what its answers say of the session.
    #[cold]
    pub(crate) fn heed_state(&mut self, now: Moment, out: &mut Out) {
        self.heed_answer(now, out);
        self.ask(out);
        self.correct(out);
    }

    /// After a RESET the server has its own settings, where the client is to have those it logged in with.
    fn correct(&mut self, out: &mut Out) {
        let (Some(state), Some(server)) = (&self.state, &self.server) else { return };
        // To be released it needs no correction: who gets it next sets what it needs.
        let is_kept = server.status == TransactionStatus::InTransaction
            || !state.is_free()
            || self.policy.mode == PoolMode::Session;
        if is_kept {
            self.correct_now(out);
        }
    }

    /// The client has more to say, or will have, on this server.
    pub(crate) fn correct_now(&mut self, out: &mut Out) {
        let (Some(state), Some(server)) = (&mut self.state, &self.server) else { return };
        if !state.differs || !server.is_quiet() || self.client.sending > 0 {
            return;
        }
        if server.status == TransactionStatus::Failed {
            return;
        }
        state.differs = false;
        if let Some(mut server) = self.server.take() {
            self.carry_parameters(&mut server, out);
            self.server = Some(server);
        }
    }
}

impl Ear<'_> {
    /// A statement with a mark is complete.
    #[cold]
    pub(crate) fn took_hold(&mut self, tag: &[u8]) {
        let Some(client) = self.client.as_deref_mut() else { return };
        let Some(Some(state)) = &mut self.state else { return };
        state.complete(tag, client, self.server);
    }

    /// An entry with a mark is through.
    #[cold]
    pub(crate) fn finish_front(&mut self) {
        if let Some(Some(state)) = &mut self.state {
            state.finish_front();
        }
    }

    /// The server is ready, and the client has state.
    #[cold]
    pub(crate) fn session_is_ready(&mut self, front: Entry) {
        let Some(Some(state)) = &mut self.state else { return };
        if front.marks.census {
            // Before what was answered behind it takes hold: that may end what it has shown.
            if let Some(census) = state.census.take()
                && let Some(client) = self.client.as_deref_mut()
            {
                state.conclude(census, client, self.server);
            }
            return;
        }
        if front.marks.state {
            state.finish_front();
        }
        if let Some(client) = self.client.as_deref_mut().filter(|_| !front.swallow) {
            state.ready(self.server.status, client, self.server).write(self.out);
        }
    }

    /// The server has reported an error, and the client has state. True if the error answers a question of our own.
    #[cold]
    pub(crate) fn session_has_failed(&mut self, front: Entry, undone: &[Entry], code: &str) -> bool {
        let Some(Some(state)) = &mut self.state else { return false };
        if front.marks.census {
            if let Some(census) = &mut state.census {
                census.fail(code);
            }
            return true;
        }
        state.fail();
        match (front.marks.state, code) {
            (false, _) => {}
            // It was not even begun.
            (true, "25P02") => state.skip_front(),
            (true, _) => state.fail_front(),
        }
        for _ in undone.iter().filter(|entry| entry.marks.state) {
            state.finish_front();
        }
        false
    }
}

impl Told {
    pub(crate) fn write(&self, out: &mut Out) {
        for (name, value) in &self.parameters {
            out.to_client.make(|bytes| encode::parameter_status(bytes, name, value));
        }
    }
}

/// What a client is told instead of the error that its refused statement was replaced by.
pub(crate) fn refused(words: &[u8]) -> (String, String) {
    let refusal = Refusal::SessionState(String::from_utf8_lossy(words).into_owned());
    (refusal.sqlstate().to_owned(), refusal.to_string())
}
