//! A small PostgreSQL: one session that reads a client's messages and answers them.
//!
//! It is used twice. Behind the pooler it is the server. Beside each client it is the ideal: what the client
//! would be answered if it were alone with a server of its own, which is what the pooler must look like.
//! It works in small steps, so that the one can sleep and be canceled, and the other be asked what comes next.

mod census;
mod extended;
mod prepared;
mod sequences;
mod settings;
mod sql;
mod state;
mod text;
mod transaction;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use wire::Header;
use wire::encode::{self, Severity};
use wire::server::TransactionStatus;

pub(crate) use census::Tongue;
use prepared::Prepared;
pub(crate) use prepared::apart;
use sequences::Draws;
pub(crate) use settings::is_reported;
pub(crate) use text::unquoted;
use transaction::Undoable;

/// A session's settings.
pub(crate) type Settings = BTreeMap<Vec<u8>, Vec<u8>>;

/// SQLSTATE of what the pooler refuses.
pub(crate) const REFUSED: &str = "0A000";

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was done.
    Done,
    /// More bytes are needed.
    Hungry,
    /// A statement runs for so many microseconds; then, or at a cancel, [`Postgres::finish`] is due.
    Runs(u64),
    /// The client said goodbye, or what it sent is no message.
    Over,
}

#[derive(Debug)]
struct Portal {
    text: Rc<[u8]>,
    value: Vec<u8>,
    /// Rows that it has given.
    sent: usize,
}

#[derive(Debug)]
struct Copying {
    tag: Vec<u8>,
    rows: usize,
}

#[derive(Debug)]
struct Running {
    tag: Vec<u8>,
    micros: u64,
    is_described: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Complete,
    Suspended,
    Error(&'static str, String),
    Runs,
    Copies,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Postgres {
    input: Vec<u8>,
    at: usize,
    /// What it has to say.
    pub(crate) out: Vec<u8>,
    pub(crate) status: TransactionStatus,
    now: Undoable,
    /// Settings as the session began with them: what RESET goes back to.
    login: Rc<Settings>,
    told: Rc<Settings>,
    saved: Option<Undoable>,
    savepoints: Vec<(Vec<u8>, Undoable)>,
    /// Notifications to tell it of between two transactions.
    heard: Vec<(Vec<u8>, Vec<u8>)>,
    /// What it has committed that NOTIFY has sent, until somebody takes it.
    pub(crate) notified: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) statements: BTreeMap<Vec<u8>, Prepared>,
    /// Every TimeZone that it ever had.
    pub(crate) zones: BTreeSet<Vec<u8>>,
    /// Advisory locks of the session, each with how often it was taken.
    locks: BTreeMap<Vec<u8>, usize>,
    /// What the session last had of sequences.
    pub(crate) draws: Draws,
    /// What it has committed that INSERT has written, until somebody takes it.
    pub(crate) committed: Vec<Vec<u8>>,
    /// How it answers when it is asked for all that.
    pub(crate) tongue: Tongue,
    /// Of an ideal: what would keep its server is refused.
    pub(crate) refuses: bool,
    portals: BTreeMap<Vec<u8>, Portal>,
    skipping: bool,
    /// The statements left of a simple query.
    batch: Option<VecDeque<Vec<u8>>>,
    /// An extended message was read and no Sync since.
    unsynced: bool,
    copying: Option<Copying>,
    /// Rows were sent to it.
    pub(crate) has_copied: bool,
    running: Option<Running>,
    /// The tag of the last statement that was executed, until somebody takes it.
    pub(crate) last_tag: Option<Vec<u8>>,
    /// What no pooler may make happen.
    pub(crate) outrage: Option<String>,
    is_over: bool,
}

impl Postgres {
    /// A session that has just logged in.
    pub(crate) fn new(defaults: Rc<Settings>) -> Postgres {
        Postgres {
            input: Vec::new(),
            at: 0,
            out: Vec::new(),
            status: TransactionStatus::Idle,
            now: Undoable::new(&defaults),
            told: Rc::clone(&defaults),
            saved: None,
            savepoints: Vec::new(),
            heard: Vec::new(),
            notified: Vec::new(),
            statements: BTreeMap::new(),
            zones: defaults.get(&b"TimeZone"[..]).cloned().into_iter().collect(),
            login: defaults,
            locks: BTreeMap::new(),
            draws: Draws::default(),
            committed: Vec::new(),
            tongue: Tongue::True,
            refuses: false,
            portals: BTreeMap::new(),
            skipping: false,
            batch: None,
            unsynced: false,
            copying: None,
            has_copied: false,
            running: None,
            last_tag: None,
            outrage: None,
            is_over: false,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.at > 0 && self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// Settings from a startup message.
    pub(crate) fn begin_with(&mut self, settings: &[(&[u8], &[u8])]) {
        for (name, value) in settings {
            Rc::make_mut(&mut self.login).insert(name.to_vec(), value.to_vec());
        }
        self.now = Undoable::new(&self.login);
        self.told = Rc::clone(&self.login);
    }

    /// Its settings, as far as they are not what every session has.
    pub(crate) fn settings(&self) -> &Rc<Settings> {
        &self.now.settings
    }

    /// A setting of the server itself has changed.
    pub(crate) fn set_default(&mut self, name: &[u8], value: &[u8]) {
        let saved = self.saved.iter_mut().chain(self.savepoints.iter_mut().map(|(_, level)| level));
        let levels = saved.chain([&mut self.now]).flat_map(|level| [&mut level.settings, &mut level.lasting]);
        for settings in levels.chain([&mut self.login, &mut self.told]) {
            Rc::make_mut(settings).insert(name.to_vec(), value.to_vec());
        }
        encode::parameter_status(&mut self.out, name, value);
    }

    /// The type of the next message, once it is whole.
    pub(crate) fn next_tag(&self) -> Option<u8> {
        let header = Header::peek(&self.input[self.at..])?;
        (header.total() <= (self.input.len() - self.at) as u64).then_some(header.tag)
    }

    /// What was not read yet.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// Whether everything was read.
    pub(crate) fn is_fed_up(&self) -> bool {
        self.at == self.input.len()
    }

    /// Whether a batch, a transaction or a COPY is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.status != TransactionStatus::Idle
            || self.skipping
            || self.unsynced
            || self.batch.is_some()
            || self.copying.is_some()
            || self.running.is_some()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Whether statements of a simple query are left.
    pub(crate) fn has_batch(&self) -> bool {
        self.batch.is_some() && self.copying.is_none()
    }

    /// Whether what is under way began with a simple query.
    pub(crate) fn is_simple(&self) -> bool {
        self.batch.is_some()
    }

    /// Whether a Sync is missing.
    pub(crate) fn is_open_batch(&self) -> bool {
        self.unsynced || self.skipping
    }

    /// The tag of the COPY that waits for rows.
    pub(crate) fn copy_tag(&self) -> &[u8] {
        self.copying.as_ref().map_or(&[], |copying| &copying.tag)
    }

    pub(crate) fn step(&mut self) -> Step {
        if let Some(running) = &self.running {
            return Step::Runs(running.micros);
        }
        if self.is_over {
            return Step::Over;
        }
        if self.copying.is_none()
            && let Some(batch) = &mut self.batch
        {
            match batch.pop_front() {
                Some(text) => self.simple_statement(&text),
                None => self.end_simple(),
            }
            return self.running.as_ref().map_or(Step::Done, |running| Step::Runs(running.micros));
        }
        let Some(header) = Header::peek(&self.input[self.at..]) else { return Step::Hungry };
        if header.check_client().is_err() {
            self.outrage =
                Some(format!("a message of type {:?} and {} bytes", header.tag as char, header.length));
            self.is_over = true;
            return Step::Over;
        }
        let end = self.at + header.total() as usize;
        if end > self.input.len() {
            return Step::Hungry;
        }
        let body = self.input[self.at + 5..end].to_vec();
        self.at = end;
        self.message(header.tag, &body);
        match &self.running {
            Some(running) => Step::Runs(running.micros),
            None if self.is_over => Step::Over,
            None => Step::Done,
        }
    }

    /// The statement that runs is at its end, in its own way or by a cancel.
    pub(crate) fn finish(&mut self, canceled: bool) {
        let Some(running) = self.running.take() else { return };
        if canceled {
            let text = format!("{} canceled", String::from_utf8_lossy(&running.tag));
            return self.fail("57014", &text);
        }
        self.rows(&running.tag, 1, 0, running.is_described);
        encode::command_complete(&mut self.out, b"SELECT 1");
    }

    /// A cancel request has arrived. Gives the tag of what it stopped, if anything.
    pub(crate) fn cancel(&mut self) -> Option<Vec<u8>> {
        if let Some(running) = &self.running {
            let tag = running.tag.clone();
            self.finish(true);
            return Some(tag);
        }
        let copying = self.copying.take()?;
        let text = format!("{} canceled", String::from_utf8_lossy(&copying.tag));
        self.fail("57014", &text);
        Some(copying.tag)
    }

    /// For the ideal: the pooler has answered a cancel request before any server saw the batch.
    pub(crate) fn cancel_unseen(&mut self) {
        let Some(tag) = self.next_tag() else { return };
        encode::report(&mut self.out, Severity::Error, "57014", "canceled", None);
        if matches!(tag, b'Q' | b'F') {
            let header = Header::peek(&self.input[self.at..]).map_or(0, Header::total);
            self.at += header as usize;
            self.ready();
        } else {
            self.skipping = true;
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        if self.copying.is_some() {
            return self.copy_message(tag, body);
        }
        if self.skipping && !matches!(tag, b'S' | b'X') {
            return;
        }
        match tag {
            b'Q' => {
                self.statements.remove(&b""[..]);
                self.save();
                let text = wire::client::query(body).unwrap_or_default();
                let list = text::split(text);
                if list.is_empty() {
                    self.out.extend_from_slice(&encode::EMPTY_QUERY);
                }
                let is_refused = self.refuses && list.iter().any(|text| state::keeps_server(text));
                self.batch = Some(list);
                if is_refused {
                    self.fail(REFUSED, "session state is refused");
                }
            }
            b'F' => {
                if self.status == TransactionStatus::Failed {
                    encode::report(&mut self.out, Severity::Error, "25P02", "aborted", None);
                } else {
                    encode::message(&mut self.out, b'V', |out| {
                        out.extend_from_slice(&body[..body.len().min(8)])
                    });
                }
                self.ready();
            }
            b'S' => {
                self.skipping = false;
                self.unsynced = false;
                if self.status == TransactionStatus::Idle {
                    self.commit();
                }
                self.ready();
            }
            b'X' => self.is_over = true,
            b'd' | b'c' | b'f' | b'H' => {}
            _ => {
                self.unsynced = true;
                self.save();
                if let Err((code, text)) = self.extended(tag, body) {
                    self.fail(code, &text);
                }
            }
        }
    }

    fn simple_statement(&mut self, text: &[u8]) {
        let outcome = match self.refuse_if_failed(text) {
            Ok(()) => self.execute(text, true, 0, 0).0,
            Err((code, text)) => Outcome::Error(code, text),
        };
        if let Outcome::Error(code, text) = outcome {
            self.fail(code, &text);
        }
    }

    fn end_simple(&mut self) {
        self.batch = None;
        if self.status == TransactionStatus::Idle {
            self.commit();
        }
        self.ready();
    }

    fn copy_message(&mut self, tag: u8, body: &[u8]) {
        let Some(copying) = &mut self.copying else { return };
        match tag {
            b'd' => {
                copying.rows += 1;
                if !body.starts_with(&copying.tag) {
                    let (mine, other) =
                        (String::from_utf8_lossy(&copying.tag), String::from_utf8_lossy(body));
                    self.outrage = Some(format!("COPY of {mine} is given {other}"));
                }
            }
            b'c' => {
                let text = format!("COPY {}", copying.rows);
                self.copying = None;
                encode::command_complete(&mut self.out, text.as_bytes());
            }
            b'f' => {
                self.copying = None;
                self.fail("57014", "COPY from stdin failed");
            }
            b'S' | b'H' => {}
            b'X' => self.is_over = true,
            _ => {
                self.copying = None;
                self.fail("08P01", "unexpected message during COPY");
            }
        }
    }

    /// An error: the transaction fails, and the rest of a simple query or of an extended batch is not done.
    fn fail(&mut self, code: &str, text: &str) {
        encode::report(&mut self.out, Severity::Error, code, text, None);
        self.undo_newest();
        if self.status == TransactionStatus::Idle {
            self.roll_back();
        } else {
            self.status = TransactionStatus::Failed;
        }
        match &mut self.batch {
            Some(batch) => batch.clear(),
            None => self.skipping = true,
        }
    }

    fn refuse_if_failed(&self, text: &[u8]) -> Result<(), (&'static str, String)> {
        let ends = text.starts_with(b"COMMIT") || text.starts_with(b"ROLLBACK");
        if self.status == TransactionStatus::Failed && !ends {
            return Err(("25P02", "current transaction is aborted".to_owned()));
        }
        Ok(())
    }

    fn ready(&mut self) {
        if !Rc::ptr_eq(&self.now.settings, &self.told) {
            for (name, value) in self.now.settings.iter().filter(|(name, _)| is_reported(name)) {
                if self.told.get(name) != Some(value) {
                    encode::parameter_status(&mut self.out, name, value);
                }
            }
            self.told = Rc::clone(&self.now.settings);
        }
        if self.status == TransactionStatus::Idle {
            self.tell_notes();
        }
        encode::ready_for_query(&mut self.out, self.status);
    }
}
