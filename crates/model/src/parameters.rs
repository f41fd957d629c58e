//! A session's settings as pairs of name and value: what a server has, and what a client relies on.
//!
//! Sets are immutable and shared: thousands of clients that logged in alike hold one set, and two sides that
//! hold the same set are known to agree by one comparison of pointers. Changing a value makes a new set.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// One pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// As the server spells it where it reports it, else as the client did.
    pub name: Arc<[u8]>,
    /// In the client's encoding, as it travels.
    pub value: Arc<[u8]>,
    /// The value is not what SHOW says but SQL, such as may stand behind `SET name TO`.
    pub written: bool,
    /// Whether the server itself reports changes of this one (PostgreSQL's GUC_REPORT).
    pub reported: bool,
}

/// A sorted set of parameters. Names are compared without regard to case, as PostgreSQL does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parameters(Vec<Parameter>);

impl Parameters {
    /// The value of `name`.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.find(name).ok().map(|at| &*self.0[at].value)
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Parameter> {
        self.0.iter()
    }

    /// Sets one, in place.
    pub fn set(&mut self, name: &[u8], value: &[u8], reported: bool) {
        match self.find(name) {
            Ok(at) => {
                let parameter = &mut self.0[at];
                parameter.reported |= reported;
                parameter.written = false;
                if *parameter.value != *value {
                    parameter.value = value.into();
                }
            }
            Err(at) => {
                let (name, value) = (name.into(), value.into());
                self.0.insert(at, Parameter { name, value, written: false, reported });
            }
        }
    }

    /// Sets one that the server does not report: to what SHOW says, or to SQL.
    pub fn set_as(&mut self, name: &[u8], value: &[u8], written: bool) {
        self.set(name, value, false);
        if let Ok(at) = self.find(name) {
            self.0[at].written = written;
        }
    }

    /// Takes over one of another set as it is there.
    pub fn put(&mut self, parameter: &Parameter) {
        match self.find(&parameter.name) {
            Ok(at) => self.0[at] = Parameter { reported: self.0[at].reported, ..parameter.clone() },
            Err(at) => self.0.insert(at, Parameter { reported: false, ..parameter.clone() }),
        }
    }

    /// One of them, with all that is known of it.
    pub fn entry(&self, name: &[u8]) -> Option<&Parameter> {
        self.find(name).ok().map(|at| &self.0[at])
    }

    /// What the server reports as it is here, and what it does not report as it is in `other`.
    pub fn with_unreported_of(&self, other: &Parameters) -> Parameters {
        let mut merged = Parameters(self.0.iter().filter(|parameter| parameter.reported).cloned().collect());
        for parameter in other.0.iter().filter(|parameter| !parameter.reported) {
            if let Err(at) = merged.find(&parameter.name) {
                merged.0.insert(at, parameter.clone());
            }
        }
        merged
    }

    /// A number that is the same for sets that are, and hardly ever for others: a hint, no proof.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for Parameter { name, value, written, .. } in &self.0 {
            (name, value, written).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Takes one out.
    pub fn remove(&mut self, name: &[u8]) {
        if let Ok(at) = self.find(name) {
            self.0.remove(at);
        }
    }

    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|parameter| compare(&parameter.name, name))
    }
}

fn compare(left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    left.iter().map(u8::to_ascii_lowercase).cmp(right.iter().map(u8::to_ascii_lowercase))
}

/// What a server reports and no session can set: facts about the server, and who is logged in to it.
const FIXED: [&str; 6] = [
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "server_encoding",
    "server_version",
    "system_identifier",
];

/// Whether a parameter cannot be carried from server to server: it can only be told.
pub fn is_fixed(name: &[u8]) -> bool {
    FIXED.iter().any(|fixed| fixed.as_bytes().eq_ignore_ascii_case(name))
}

/// What differs between what a client relies on and what a server has.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference<'a> {
    /// To set on the server.
    pub set: Vec<&'a Parameter>,
    /// Names to reset on the server, which another client had set.
    pub reset: Vec<&'a [u8]>,
}

impl Difference<'_> {
    /// Whether the two agree.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.reset.is_empty()
    }
}

/// What must be done to a server that has `has` for a client that relies on `wants`. What is fixed is left out.
pub fn difference<'a>(wants: &'a Parameters, has: &'a Parameters) -> Difference<'a> {
    let mut difference = Difference::default();
    for wanted in wants.iter() {
        let is_same = |held: &Parameter| *held.value == *wanted.value && held.written == wanted.written;
        if !has.entry(&wanted.name).is_some_and(is_same) && !is_fixed(&wanted.name) {
            difference.set.push(wanted);
        }
    }
    for held in has.iter() {
        if !held.reported && wants.value(&held.name).is_none() {
            difference.reset.push(&held.name);
        }
    }
    difference
}
