//! One client after its login: what it is in the middle of sending, and what it relies on.
//!
//! It does not know which server it has, or whether it has one.

use std::sync::Arc;

use model::{ClientId, Parameters, Statement};

use crate::names::Names;

/// What becomes of the rest of a message whose beginning is dealt with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// It goes to the server.
    #[default]
    Forward,
    /// It goes nowhere.
    Discard,
}

/// A client's unnamed statement, kept because it outlives the lease of the server that parsed it.
#[derive(Debug)]
pub struct Unnamed {
    /// Which of the client's unnamed statements this is.
    pub serial: u32,
    /// The body of its Parse after the name.
    pub rest: Box<[u8]>,
}

/// What the text of a statement means to the server's lexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// `standard_conforming_strings`.
    pub standard_conforming_strings: bool,
    /// False where a byte of ASCII may be the end of another character (`client_encoding`).
    pub is_ascii_safe: bool,
}

impl Dialect {
    fn of(parameters: &Parameters) -> Dialect {
        Dialect {
            standard_conforming_strings: parameters.value(b"standard_conforming_strings") != Some(b"off"),
            is_ascii_safe: parameters
                .value(b"client_encoding")
                .is_none_or(sql::state::encoding_is_ascii_safe),
        }
    }

    /// Whether texts mean what they mean to nearly every client.
    pub fn is_usual(self) -> bool {
        self.standard_conforming_strings && self.is_ascii_safe
    }
}

/// The state of one client.
#[derive(Debug)]
pub struct Client {
    /// Its name in logs and tables.
    pub id: ClientId,
    /// The settings it relies on.
    pub parameters: Arc<Parameters>,
    /// Those that it logged in with: what a RESET goes back to.
    pub login: Arc<Parameters>,
    /// How its statements are to be read.
    pub dialect: Dialect,
    changed: Changed,
    /// Names of the settings that it logged in with and that servers do not have by themselves. Shared, because most
    /// clients of a pool log in alike, and a list of its own would be an eighth of what an idle client costs.
    own: Option<Arc<Vec<Arc<[u8]>>>>,
    /// The channels it listens on where somebody else listens for it; of a transaction under way, as that has them.
    pub channels: Option<Arc<Vec<Arc<[u8]>>>>,
    /// Bytes of the message it is sending that are still to come.
    pub sending: u64,
    /// What becomes of them.
    pub rest: Rest,
    names: Option<Box<Names>>,
    /// Its unnamed statement, where it may be needed on another server.
    pub unnamed: Option<Box<Unnamed>>,
    /// How many unnamed statements it has parsed.
    pub unnamed_serial: u32,
}

/// Settings that are part of what a statement means.
const OF_MEANING: [&[u8]; 8] = [
    b"search_path",
    b"role",
    b"session_authorization",
    b"client_encoding",
    b"standard_conforming_strings",
    b"DateStyle",
    b"IntervalStyle",
    b"TimeZone",
];

/// Whether a setting is part of what a statement means: where names are looked up, how constants are read.
pub fn is_of_meaning(name: &[u8]) -> bool {
    OF_MEANING.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Whether a client's settings have changed since its login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    Never,
    /// But not since it last gave a server back.
    Before,
    Now,
}

impl Client {
    /// A client that has just logged in.
    pub fn new(id: ClientId, parameters: Arc<Parameters>) -> Client {
        Client {
            id,
            login: Arc::clone(&parameters),
            dialect: Dialect::of(&parameters),
            changed: Changed::Never,
            own: None,
            parameters,
            channels: None,
            sending: 0,
            rest: Rest::Forward,
            names: None,
            unnamed: None,
            unnamed_serial: 0,
        }
    }

    /// Names of the settings that it logged in with and that servers do not have by themselves, as far as known.
    pub fn own(&self) -> &[Arc<[u8]>] {
        self.own.as_ref().map_or(&[], |own| own)
    }

    /// Sets those.
    pub fn set_own(&mut self, own: Arc<Vec<Arc<[u8]>>>) {
        self.own = (!own.is_empty()).then_some(own);
    }

    /// The statement that it calls `name`.
    pub fn statement(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        self.names.as_ref()?.find(name)
    }

    /// Whether it is certain what `name` means in this batch of its messages.
    pub fn is_certain(&self, name: &[u8], batch: u64) -> bool {
        self.names.as_ref().is_none_or(|names| names.is_certain(name, batch))
    }

    /// Whether it has named statements, or may have again if a change of them is undone.
    pub fn has_names(&self) -> bool {
        self.names.as_ref().is_some_and(|names| !names.is_empty())
    }

    /// How many named statements it has.
    pub fn statement_count(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.len())
    }

    /// What its named statements keep alive, in bytes.
    pub fn statement_bytes(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.bytes())
    }

    /// Its name of the statement with this number, if it has one.
    pub fn name_of(&self, id: u64) -> Option<&[u8]> {
        self.names.as_ref()?.name_of(id)
    }

    /// Its names, to be changed.
    pub fn names(&mut self) -> &mut Names {
        self.names.get_or_insert_default()
    }

    /// The oldest change of a name was answered.
    pub fn settle_name(&mut self) {
        if let Some(names) = &mut self.names {
            names.settle();
        }
    }

    /// The oldest changes of names will never be answered.
    pub fn undo_names(&mut self, count: usize) {
        if let Some(names) = self.names.as_mut().filter(|_| count > 0) {
            names.undo(count);
        }
    }

    /// A Parse of a name in use was made to fail.
    pub fn push_misused(&mut self, name: &[u8]) {
        self.names().push_misused(name);
    }

    /// The name of the oldest such Parse that has not been told.
    pub fn take_misused(&mut self) -> Box<[u8]> {
        self.names.as_mut().map(|names| names.take_misused()).unwrap_or_default()
    }

    /// All statements are gone on the server: named and unnamed.
    pub fn clear_names(&mut self) {
        self.unnamed = None;
        if let Some(names) = &mut self.names {
            names.clear();
            if names.is_empty() {
                self.names = None;
            }
        }
    }

    /// A parameter was reported while the client had the server: the client relies on it from now on.
    pub fn set_parameter(&mut self, name: &[u8], value: &[u8]) {
        if self.parameters.value(name) != Some(value) {
            Arc::make_mut(&mut self.parameters).set(name, value, true);
            self.dialect = Dialect::of(&self.parameters);
            self.note_new_set();
        }
    }

    /// Whether somebody listens for it on a channel.
    pub fn listens_on(&self, channel: &[u8]) -> bool {
        self.channels.as_ref().is_some_and(|own| own.iter().any(|own| **own == *channel))
    }

    /// It listens on a channel.
    pub fn listen(&mut self, channel: Arc<[u8]>) {
        if !self.listens_on(&channel) {
            Arc::make_mut(self.channels.get_or_insert_default()).push(channel);
        }
    }

    /// It listens on a channel no more.
    pub fn unlisten(&mut self, channel: &[u8]) {
        if self.listens_on(channel)
            && let Some(own) = &mut self.channels
        {
            Arc::make_mut(own).retain(|own| **own != *channel);
            self.channels.take_if(|own| own.is_empty());
        }
    }

    /// Its settings are not what they were when it last gave a server back.
    pub fn note_new_set(&mut self) {
        self.changed = Changed::Now;
    }

    /// Whether that is so; from now on it is not.
    pub fn take_new_set(&mut self) -> bool {
        let is_new = self.changed == Changed::Now;
        if is_new {
            self.changed = Changed::Before;
        }
        is_new
    }

    /// Whether its settings were, at some time, not those that it logged in with.
    #[inline]
    pub fn has_set(&self) -> bool {
        self.changed != Changed::Never
    }

    /// Whether it logged in with a setting that servers do not have by themselves.
    pub fn has_own(&self, name: &[u8]) -> bool {
        self.own().iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// What its settings make of a statement's text: where names are looked up, and as whom; how its constants are
    /// read. Empty if that is as on a server by itself, where `usual` is what that has.
    pub fn meaning(&self, usual: &Parameters) -> Vec<u8> {
        let mut meaning = Vec::new();
        for name in OF_MEANING {
            let value = self.parameters.value(name).filter(|value| usual.value(name) != Some(value));
            if let Some(value) = value {
                meaning.extend_from_slice(name);
                meaning.push(0);
                meaning.extend_from_slice(value);
                meaning.push(0);
            }
        }
        meaning
    }
}
