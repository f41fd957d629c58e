//! What the names in one text come to, statement by statement, as PostgreSQL would come upon them.

use std::ops::Range;
use std::sync::Arc;

use client::Client;
use model::{Parameters, Statement, Statements};
use server::Instead;
use server::prepared::Prepared;
use sql::name::Name;
use sql::state::{Effect, Effects};

use super::{DROPS, Shift};
use crate::policy::Policy;
use crate::prepared::SERVER_NAME_PREFIX;

/// Fails in any session, with words of which ours can take the place: no server has such a statement.
const FAILS: &str = "EXECUTE howdah_0";

/// What becomes of a text with names when it is run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renamed {
    /// Are prepared by it, each with the number of its statement; must not be on the server.
    pub(crate) statements: Vec<(usize, Arc<Statement>)>,
    /// By how much what stands behind each name has moved, in characters.
    pub(crate) shifts: Vec<Shift>,
}

/// What stands for the names in a text, and what that needs.
#[derive(Debug, Default)]
pub(crate) struct Names {
    edits: Vec<(Range<usize>, Box<str>)>,
    /// Must be on the server.
    pub(crate) needs: Vec<Arc<Statement>>,
    pub(crate) made: Renamed,
    /// Are prepared by it and then dropped.
    pub(crate) drops_own: Vec<(usize, u64)>,
    /// How many statements it drops in the place of others.
    pub(crate) drops: usize,
    /// From this statement on it is refused, about this name.
    pub(crate) refusal: Option<(usize, Instead, Box<[u8]>)>,
    /// What one of them means is not certain yet.
    pub(crate) is_open: bool,
}

impl Names {
    /// Of a portal that prepares this.
    pub(crate) fn making(made: Renamed) -> Names {
        Names { made, ..Names::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The text as the server is to have it.
    pub(crate) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut rewritten = Vec::with_capacity(text.len() + 16 * self.edits.len());
        let mut at = 0;
        for (range, instead) in &self.edits {
            rewritten.extend_from_slice(&text[at..range.start]);
            rewritten.extend_from_slice(instead.as_bytes());
            at = range.end;
        }
        rewritten.extend_from_slice(&text[at..]);
        rewritten
    }

    fn shifts(&self, text: &[u8], is_unicode: bool) -> Vec<Shift> {
        let length = |bytes: &[u8]| match is_unicode {
            true => bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count(),
            false => bytes.len(),
        };
        let edits = self.edits.iter();
        edits
            .map(|(range, instead)| Shift {
                from: length(&text[..range.start]),
                was: length(&text[range.clone()]),
                is: instead.len(),
            })
            .collect()
    }
}

/// What is dropped in the place of a statement that others may use.
pub(crate) fn drop_name(number: usize) -> String {
    format!("{DROPS}{number}")
}

pub(super) struct Resolver<'a> {
    pub(super) client: &'a Client,
    pub(super) prepared: &'a Prepared,
    pub(super) statements: &'a Statements,
    /// The settings of the server by itself.
    pub(super) usual: &'a Parameters,
    pub(super) batch: u64,
    /// The transaction has failed: nothing can be prepared.
    pub(super) has_failed: bool,
    /// What PREPARE makes goes with the client.
    pub(super) carries: bool,
    /// Names that the server knows as the client wrote them.
    pub(super) is_taken: &'a dyn Fn(&[u8]) -> bool,
    pub(super) policy: &'a Policy,
    pub(super) text: &'a [u8],
    /// Characters are those of UTF-8.
    pub(super) is_unicode: bool,
    /// What the text itself has given and taken so far.
    pub(super) said: Vec<(Vec<u8>, Option<Arc<Statement>>)>,
    /// It has dropped all.
    pub(super) is_cleared: bool,
    pub(super) names: Names,
}

impl Resolver<'_> {
    pub(super) fn run(mut self, effects: &Effects<'_>) -> Names {
        for (number, statement) in effects.statements().enumerate() {
            if self.names.refusal.is_some() {
                break;
            }
            let range = statement.offset..statement.offset + statement.text.len();
            statement.each(&mut |effect| match effect {
                Effect::Prepare { name, body } => self.prepare(number, &name, body, range.clone()),
                Effect::Execute(name) | Effect::Explain(name) => self.execute(number, &name, range.clone()),
                Effect::Deallocate(name) => self.deallocate(number, &name, range.clone()),
                Effect::DeallocateAll => {
                    self.said.clear();
                    self.is_cleared = true;
                }
                _ => {}
            });
        }
        self.names.made.shifts = self.names.shifts(self.text, self.is_unicode);
        self.names
    }

    /// What a name means at this point of the text.
    fn find(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        if let Some((_, said)) = self.said.iter().rev().find(|(other, _)| *other == name) {
            return said.clone();
        }
        if self.is_cleared {
            return None;
        }
        self.names.is_open |= !self.client.is_certain(name, self.batch);
        let statement = self.client.statement(name)?;
        self.names.is_open |= !self.prepared.is_certain(statement.id, self.batch);
        Some(Arc::clone(statement))
    }

    /// Where a name of one part stands in the text, and what it is.
    fn place(&self, name: &Name<'_>) -> Option<(Range<usize>, Vec<u8>)> {
        let written = name.as_written();
        let start = (written.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let range = start..start.checked_add(written.len())?;
        let is_here = self.text.get(range.clone()) == Some(written);
        (is_here && name.parts().count() == 1).then(|| (range, name.to_vec()))
    }

    fn edit(&mut self, range: Range<usize>, instead: &str) {
        self.names.edits.push((range, instead.into()));
    }

    fn refuse(&mut self, number: usize, range: Range<usize>, instead: Instead, name: &[u8]) {
        // What else is said of the statement counts no more.
        self.names.edits.retain(|(edit, _)| edit.end <= range.start);
        self.edit(range, FAILS);
        self.names.refusal = Some((number, instead, name.into()));
    }

    /// A name that no client may say to a server.
    fn refuse_ours(&mut self, number: usize, range: Range<usize>, name: &[u8]) {
        if name.starts_with(SERVER_NAME_PREFIX) && self.names.refusal.is_none() {
            self.refuse(number, range, Instead::UnknownStatement, name);
        }
    }

    fn execute(&mut self, number: usize, name: &Name<'_>, range: Range<usize>) {
        let Some((place, known)) = self.place(name) else { return };
        let Some(statement) = self.find(&known) else { return self.refuse_ours(number, range, &known) };
        let is_made = self.names.made.statements.iter().any(|(_, made)| made.id == statement.id);
        if !is_made {
            if self.has_failed && !self.prepared.has(statement.id) {
                return;
            }
            if !self.names.needs.iter().any(|needed| needed.id == statement.id) {
                self.names.needs.push(Arc::clone(&statement));
            }
        }
        self.edit(place, statement.server_name());
    }

    fn prepare(&mut self, number: usize, name: &Name<'_>, body: &[u8], range: Range<usize>) {
        let Some((place, known)) = self.place(name) else { return };
        if self.find(&known).is_some() {
            return self.refuse(number, range, Instead::DuplicateStatement, &known);
        }
        if !self.carries || (self.is_taken)(&known) {
            return self.refuse_ours(number, range, &known);
        }
        let Some(statement) = self.make(&self.text[place.end..range.end], body) else {
            return self.refuse_ours(number, range, &known);
        };
        self.edit(place, statement.server_name());
        self.names.made.statements.push((number, Arc::clone(&statement)));
        self.said.push((known, Some(statement)));
    }

    /// What is prepared by this text behind the name, if it may go with the client.
    fn make(&mut self, rest: &[u8], body: &[u8]) -> Option<Arc<Statement>> {
        let body_at = u32::try_from(rest.len().checked_sub(body.len())?).ok()?;
        let is_small = rest.len() as u64 <= self.policy.statement_bytes_max
            && self.client.statement_bytes() <= self.policy.client_statement_bytes_max;
        // What a backslash means is a matter of settings that may differ when it is prepared again.
        let is_plain = self.client.dialect.is_usual() || !rest.contains(&b'\\');
        if !is_small || !is_plain || body.is_empty() || rest.contains(&0) {
            return None;
        }
        let statement = self.statements.intern_sql(rest, body_at, &self.client.meaning(self.usual));
        self.names.is_open |= !self.prepared.is_certain(statement.id, self.batch);
        let is_same = |other: &Arc<Statement>| other.id == statement.id;
        let is_used = self.names.needs.iter().any(is_same)
            || self.names.made.statements.iter().any(|(_, made)| is_same(made))
            // It could not be closed first.
            || (self.has_failed && self.prepared.has(statement.id));
        Some(if is_used { self.statements.apart(&statement) } else { statement })
    }

    fn deallocate(&mut self, number: usize, name: &Name<'_>, range: Range<usize>) {
        let Some((place, known)) = self.place(name) else { return };
        let Some(statement) = self.find(&known) else { return self.refuse_ours(number, range, &known) };
        if self.is_cleared {
            // It is of this text, and nobody else has it; what stands for others was dropped with them.
            self.edit(place, statement.server_name());
            self.names.drops_own.push((number, statement.id));
        } else {
            self.edit(place, &drop_name(self.names.drops));
            self.names.drops += 1;
        }
        self.said.push((known, None));
    }
}
