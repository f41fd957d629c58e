//! Prepared statements as clients share them: one text, one number, however many names, until a change of the
//! schema; and what clients were told of its parameters and its result.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::Parameters;

/// A description in short. Who could choose one that collides with another owns the table, and can put into its
/// rows what he likes; and a description kept in full would be a client's cheap way to fill our memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Digest(hasher.finish())
    }
}

/// The text and parameter types of a Parse message or of a PREPARE, and the number by which servers know them.
#[derive(Debug)]
pub struct Statement {
    /// Unique in the process; the server's name is made of it.
    pub id: u64,
    /// The body of the Parse message after the statement's name: text, zero, types. Of a PREPARE, its text after the
    /// name.
    ///
    /// The whole of it is compared, never a hash alone: two statements that collide must not be one.
    pub rest: Box<[u8]>,
    /// Where in `rest` of a PREPARE begins what it prepares.
    body_at: Option<u32>,
    /// What settings made of it when it was prepared; nothing if nobody shares it.
    meaning: Option<Box<[u8]>>,
    /// Written once: every Bind says it.
    server_name: Box<str>,
    /// The newest generation in which a server has shown it as clients were told.
    generation: AtomicU64,
    /// What it is on a server that does not have it yet, nobody can say.
    disputed: AtomicBool,
    /// A server has refused its old plan since.
    refused: AtomicBool,
    /// Whether its text does something to the session of who runs it.
    makes_state: OnceLock<bool>,
    /// Whether its text may draw from a sequence that it does not name.
    may_draw: OnceLock<bool>,
    parameters: OnceLock<Digest>,
    columns: OnceLock<Digest>,
}

impl Statement {
    /// A statement that nobody was told of yet.
    pub fn new(id: u64, rest: &[u8], generation: u64) -> Statement {
        Statement {
            id,
            rest: rest.into(),
            body_at: None,
            meaning: None,
            server_name: format!("howdah_{id}").into(),
            generation: AtomicU64::new(generation),
            disputed: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            makes_state: OnceLock::new(),
            may_draw: OnceLock::new(),
            parameters: OnceLock::new(),
            columns: OnceLock::new(),
        }
    }

    /// The name by which servers know it.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Whether who has these settings may prepare it for all who share it: they would read it alike.
    pub fn may_be_prepared_as(&self, meaning: impl FnOnce() -> Vec<u8>) -> bool {
        self.meaning.as_ref().is_none_or(|own| **own == *meaning())
    }

    /// Its text; of a PREPARE, of what that prepares.
    pub fn text(&self) -> &[u8] {
        match self.body_at {
            Some(at) => self.rest.get(at as usize..).unwrap_or_default(),
            None => self.rest.split(|&byte| byte == 0).next().unwrap_or_default(),
        }
    }

    /// The PREPARE that makes it under the server's name, if it is not made by a Parse.
    pub fn sql(&self) -> Option<Vec<u8>> {
        self.body_at.map(|_| [b"PREPARE ", self.server_name.as_bytes(), &*self.rest].concat())
    }

    /// Whether it does something to the session of who runs it: `scan` is asked once.
    pub fn makes_state(&self, scan: impl FnOnce(&[u8]) -> bool) -> bool {
        *self.makes_state.get_or_init(|| scan(self.text()))
    }

    /// Whether it may draw from a sequence that it does not name: `scan` is asked once.
    pub fn may_draw(&self, scan: impl FnOnce(&[u8]) -> bool) -> bool {
        *self.may_draw.get_or_init(|| scan(self.text()))
    }

    /// A server has described it. Says whether that is what was told before, if anything was; what was not
    /// told yet is told now. `parameters` is `None` where a portal was described.
    pub fn tell(&self, parameters: Option<Digest>, columns: Digest) -> bool {
        let is_same = |told: &OnceLock<Digest>, now: Digest| *told.get_or_init(|| now) == now;
        is_same(&self.columns, columns) && parameters.is_none_or(|now| is_same(&self.parameters, now))
    }

    /// Whether some client may rely on a description of its result.
    pub fn is_told(&self) -> bool {
        self.columns.get().is_some()
    }

    /// The newest generation of which it is known to be what clients were told.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// It was compared in this generation, and is what clients were told.
    pub fn confirm(&self, generation: u64) {
        self.refused.store(false, Ordering::Release);
        self.generation.fetch_max(generation, Ordering::AcqRel);
    }

    /// A server has refused to run its old plan. Says whether that is news.
    pub fn refuse(&self) -> bool {
        !self.refused.swap(true, Ordering::AcqRel)
    }

    /// Its clients do not agree on what it is, or were never told and it has changed. Says whether that is news.
    pub fn dispute(&self) -> bool {
        !self.disputed.swap(true, Ordering::AcqRel)
    }

    /// Whether no server may be given it any more.
    pub fn is_disputed(&self) -> bool {
        self.disputed.load(Ordering::Acquire)
    }
}

fn bit(name: &[u8]) -> u64 {
    1 << (Digest::of(name).0 & 63)
}

/// What all tables of statements of a process share.
#[derive(Debug, Default)]
struct Common {
    last_id: AtomicU64,
    generation: AtomicU64,
}

/// All statements that some client or server of one pool still holds.
#[derive(Debug, Default)]
pub struct Statements {
    common: Arc<Common>,
    /// A bit for each application that asks what its session last had of a sequence, by a hash of its name.
    sequence_readers: AtomicU64,
    inner: Mutex<Inner>,
    /// Those that PREPARE makes: the same bytes would be something else in a Parse.
    by_sql: Mutex<Inner>,
    sets: Mutex<Sets>,
}

/// Sets of settings that clients came to by themselves.
#[derive(Debug, Default)]
struct Sets {
    known: HashSet<Arc<Parameters>>,
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Inner {
    known: HashMap<Box<[u8]>, Weak<Statement>>,
    sweep_at: usize,
}

impl Statements {
    /// An empty table for another pool: the same text may mean another table there. Numbers stay unique, and
    /// a change of the schema is one for all, because the owner of a table seldom is the one who reads it.
    pub fn beside(&self) -> Statements {
        let common = Arc::clone(&self.common);
        Statements { common, ..Statements::default() }
    }

    /// The statement with this text and these types, made if nobody holds it or the schema has changed since.
    /// Settings that are part of what it means are `meaning`.
    ///
    /// Forgotten ones are swept out each time the table has doubled, so that it never holds more than twice
    /// what is in use.
    pub fn intern(&self, rest: &[u8], meaning: &[u8]) -> Arc<Statement> {
        // A Parse tells its own length: so nothing behind it makes it another one.
        let joined = if meaning.is_empty() { Vec::new() } else { [rest, meaning].concat() };
        let key = if meaning.is_empty() { rest } else { &joined };
        self.find_or_make(&self.inner, key, |id, generation| Statement {
            meaning: Some(meaning.into()),
            ..Statement::new(id, rest, generation)
        })
    }

    /// As `intern`, for a PREPARE: its text behind the name, and where in that begins what is prepared.
    pub fn intern_sql(&self, rest: &[u8], body_at: u32, meaning: &[u8]) -> Arc<Statement> {
        // No text has a zero in it.
        let key = [rest, &[0], meaning].concat();
        self.find_or_make(&self.by_sql, &key, |id, generation| Statement {
            body_at: Some(body_at),
            meaning: Some(meaning.into()),
            ..Statement::new(id, rest, generation)
        })
    }

    /// A statement of the same text, of which the same was told, that nobody shares.
    pub fn apart(&self, statement: &Statement) -> Arc<Statement> {
        let id = self.common.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let other = Statement::new(id, &statement.rest, statement.generation());
        let (parameters, columns) = (statement.parameters.clone(), statement.columns.clone());
        Arc::new(Statement { body_at: statement.body_at, parameters, columns, ..other })
    }

    fn find_or_make(
        &self,
        table: &Mutex<Inner>,
        key: &[u8],
        make: impl FnOnce(u64, u64) -> Statement,
    ) -> Arc<Statement> {
        let mut inner = table.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generation();
        let known = inner.known.get(key).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.generation() >= generation && !known.is_disputed()) {
            return known;
        }
        let id = self.common.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let statement = Arc::new(make(id, generation));
        inner.known.insert(key.into(), Arc::downgrade(&statement));
        if inner.known.len() > inner.sweep_at.max(1024) {
            inner.known.retain(|_, statement| statement.strong_count() > 0);
            inner.sweep_at = inner.known.len() * 2;
        }
        statement
    }

    /// The one set for all that are like this one. Those that nobody has any more are swept out each time the table
    /// has doubled.
    pub fn share(&self, set: &Arc<Parameters>) -> Arc<Parameters> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sets.known.get(&**set) {
            return Arc::clone(known);
        }
        sets.known.insert(Arc::clone(set));
        if sets.known.len() > sets.sweep_at.max(64) {
            sets.known.retain(|set| Arc::strong_count(set) > 1);
            sets.sweep_at = sets.known.len() * 2;
        }
        Arc::clone(set)
    }

    /// Somebody of this application asks his session for what it last had of a sequence.
    pub fn note_sequences_are_read(&self, application: &[u8]) {
        self.sequence_readers.fetch_or(bit(application), Ordering::Relaxed);
    }

    /// Whether anybody of this application does.
    #[inline]
    pub fn sequences_are_read<'a>(&self, application: impl FnOnce() -> &'a [u8]) -> bool {
        let readers = self.sequence_readers.load(Ordering::Relaxed);
        readers != 0 && readers & bit(application()) != 0
    }

    /// The schema may have changed: a text that is prepared from now on is a new statement.
    pub fn renew(&self) {
        self.common.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// How often the schema may have changed.
    pub fn generation(&self) -> u64 {
        self.common.generation.load(Ordering::Acquire)
    }

    /// How many are known, those about to be swept included.
    pub fn len(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).known.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
