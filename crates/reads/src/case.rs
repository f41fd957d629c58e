//! One statement on its way to a verdict: what is known of it, and what must still be asked.
//!
//! What a view or a policy adds is read and asked for as if it stood in the statement. Does not know the server.

use std::collections::BTreeSet;
use std::fmt;

use crate::grammar::{Origin, read_from};
use crate::names::{Name, Needs};
use crate::question::{self, Fact};
use crate::verdict::{Verdict, Why};

/// A row of the answer; `None` for NULL.
type Columns = [Option<Box<[u8]>>];

/// So many times the catalog is asked about one statement: once, and once for each depth of views in views.
const ROUNDS_MAX: usize = 8;
/// So many names in all.
const NAMES_MAX: usize = 500;

/// One statement that is being judged.
#[derive(Debug)]
pub struct Case {
    seen: Needs,
    open: Needs,
    rounds: usize,
}

/// What came of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The verdict.
    Done(Verdict),
    /// There is another question.
    More,
}

/// The answer is not one to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear;

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the catalog's answer is not one to the question")
    }
}

impl std::error::Error for Unclear {}

impl Case {
    /// Begins with a text as [`sql::fingerprint::masked`] gives it.
    ///
    /// # Errors
    /// Why it goes to the primary, whatever the catalog says.
    pub fn open(masked: &str) -> Result<Case, Why> {
        let needs = read_from(masked, Origin::Client)?;
        let mut case = Case { seen: Needs::default(), open: Needs::default(), rounds: 0 };
        case.open = case.seen.merge(needs);
        if case.open.count() > NAMES_MAX { Err(Why::TooLong) } else { Ok(case) }
    }

    /// What to ask the catalog; a row of text is the answer. The session's `search_path` must be `pg_catalog` alone.
    pub fn question(&self) -> String {
        question::question(&self.open)
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// It is none.
    pub fn answer(&mut self, row: &Columns) -> Result<Judged, Unclear> {
        let [implicit, functions, operators, types, relations, fields, definitions] = row else {
            return Err(Unclear);
        };
        let open = std::mem::take(&mut self.open);
        match implicit.as_deref() {
            Some(b"f") => {}
            Some(b"t") => return Ok(Judged::Done(Verdict::Primary(Why::Implicit))),
            _ => return Err(Unclear),
        }
        let names: BTreeSet<Name> = open.fields.iter().map(Name::bare).collect();
        let ctes = &self.seen.ctes;
        let checks: [(&Option<Box<[u8]>>, &BTreeSet<Name>, &dyn Fn(&Name, Fact) -> Option<Why>); 5] = [
            (relations, &open.relations, &|name, fact| of_relation(ctes, name, fact)),
            (functions, &open.functions, &|_, fact| of_function(fact)),
            (operators, &open.operators, &|_, fact| (fact != Fact::Fine).then_some(Why::Operator)),
            (types, &open.types, &|_, fact| (fact != Fact::Fine).then_some(Why::Type)),
            (fields, &names, &|_, fact| (fact != Fact::Fine).then_some(Why::Volatile)),
        ];
        for (digits, names, why) in checks {
            let digits = digits.as_deref().filter(|digits| digits.len() == names.len()).ok_or(Unclear)?;
            for (name, &digit) in names.iter().zip(digits) {
                if let Some(why) = why(name, Fact::read(digit).ok_or(Unclear)?) {
                    return Ok(Judged::Done(Verdict::Primary(why)));
                }
            }
        }
        Ok(match self.add(definitions.as_deref()) {
            Err(why) => Judged::Done(Verdict::Primary(why)),
            Ok(()) if self.open == Needs::default() => Judged::Done(Verdict::Read),
            Ok(()) => Judged::More,
        })
    }

    /// Reads what views and policies add.
    fn add(&mut self, definitions: Option<&[u8]>) -> Result<(), Why> {
        let definitions = definitions.ok_or(Why::TooLong)?;
        self.rounds += 1;
        for definition in definitions.split(|&byte| byte == question::BETWEEN).filter(|text| !text.is_empty())
        {
            let masked = sql::fingerprint::masked(definition).map_err(|_| Why::Unreadable)?;
            let added = self.seen.merge(read_from(&masked, Origin::Catalog)?);
            // Nothing that is asked already comes back from this.
            let _ = self.open.merge(added);
        }
        let is_too_much = self.seen.count() > NAMES_MAX || self.rounds >= ROUNDS_MAX && self.open.count() > 0;
        if is_too_much { Err(Why::TooLong) } else { Ok(()) }
    }
}

fn of_relation(ctes: &BTreeSet<String>, name: &Name, fact: Fact) -> Option<Why> {
    match fact {
        Fact::Fine => None,
        Fact::Temporary => Some(Why::Temporary),
        Fact::Unlogged => Some(Why::Unlogged),
        Fact::Sequence => Some(Why::Sequence),
        Fact::Foreign => Some(Why::Foreign),
        Fact::Catalog => Some(Why::Catalog),
        Fact::Unknown if name.schema.is_none() && ctes.contains(&name.name) => None,
        Fact::Unknown | Fact::Volatile | Fact::Defaults => Some(Why::UnknownRelation),
    }
}

fn of_function(fact: Fact) -> Option<Why> {
    match fact {
        Fact::Fine => None,
        Fact::Volatile => Some(Why::Volatile),
        _ => Some(Why::UnknownFunction),
    }
}
