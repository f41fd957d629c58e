//! The names in a statement that only the catalog can explain.

use std::collections::BTreeSet;

/// A name, with its schema if that is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The schema; `None` for whatever the search path finds, so for any.
    pub schema: Option<String>,
    /// The name, folded and cut as PostgreSQL does it.
    pub name: String,
}

/// What must be known to judge a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Functions that are called.
    pub functions: BTreeSet<Name>,
    /// Operators.
    pub operators: BTreeSet<Name>,
    /// Types of casts.
    pub types: BTreeSet<Name>,
    /// Tables, views and whatever else stands in FROM.
    pub relations: BTreeSet<Name>,
    /// Names behind a point, `a.b`: the column of a, or the function of that name with a as its argument.
    pub fields: BTreeSet<String>,
    /// Names that WITH gives within the statement.
    pub ctes: BTreeSet<String>,
}

impl Name {
    /// Of any schema.
    pub fn bare(name: impl Into<String>) -> Name {
        Name { schema: None, name: name.into() }
    }

    /// Of this schema.
    pub fn of(schema: impl Into<String>, name: impl Into<String>) -> Name {
        Name { schema: Some(schema.into()), name: name.into() }
    }
}

impl Needs {
    /// How many names there are that must be asked for.
    pub fn count(&self) -> usize {
        let Needs { functions, operators, types, relations, fields, ctes: _ } = self;
        functions.len() + operators.len() + types.len() + relations.len() + fields.len()
    }

    /// Takes over those of another; what was there before is not in what is returned.
    pub(crate) fn merge(&mut self, other: Needs) -> Needs {
        let Needs { functions, operators, types, relations, fields, ctes } = other;
        self.ctes.extend(ctes);
        Needs {
            functions: new(&mut self.functions, functions),
            operators: new(&mut self.operators, operators),
            types: new(&mut self.types, types),
            relations: new(&mut self.relations, relations),
            fields: new(&mut self.fields, fields),
            ctes: BTreeSet::new(),
        }
    }
}

fn new<T: Ord + Clone>(known: &mut BTreeSet<T>, others: BTreeSet<T>) -> BTreeSet<T> {
    others.into_iter().filter(|other| known.insert(other.clone())).collect()
}
