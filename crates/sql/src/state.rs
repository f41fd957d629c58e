//! What a query string does to its session, statement by statement: borrowed, and found without allocation.
//!
//! It reads text alone. Whether a statement succeeds, and whether its transaction commits, is for the wire to say:
//! PostgreSQL parses a whole string before it runs any of it, and answers each statement with one
//! CommandComplete, in the order of [`Effects::statements`].

mod calls;
mod commands;
mod cursor;
mod databases;
mod effect;
mod functions;
mod quick;
mod set;
mod split;
mod verb;

pub use effect::{Argument, Class, Discard, Effect, Opaque, Reason, Set, SetConfig, Transaction, Value};
pub use functions::{BUILT_IN, FUNCTIONS, Function, FunctionKind, Functions};
pub use split::{Statement, Statements};

/// What the text's meaning depends on.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The parameter of this name, as the server last reported it: it rules the whole string.
    pub standard_conforming_strings: bool,
    /// False for a client_encoding in which a byte of ASCII can be the end of a longer character.
    pub is_ascii_safe: bool,
    /// The functions that count.
    pub functions: &'a Functions,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { standard_conforming_strings: true, is_ascii_safe: true, functions: &BUILT_IN }
    }
}

/// [`Options::is_ascii_safe`] for a client_encoding, as the server reports it.
pub fn encoding_is_ascii_safe(name: &[u8]) -> bool {
    let unsafe_ones = ["SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB"];
    !unsafe_ones.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// Whether a search_path, as it is written or shown, may name the session's own schema.
pub fn names_temp_schema(path: &[u8]) -> bool {
    effect::has_temp(path)
}

/// How much there is to do about a query string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Plain,
    Transaction,
    State,
}

/// What a query string does.
#[derive(Clone, Copy, Debug)]
pub struct Effects<'a> {
    text: &'a [u8],
    options: Options<'a>,
    weight: Weight,
}

/// Reads a query string: once and quickly if it is an ordinary one.
pub fn scan<'a>(text: &'a [u8], options: Options<'a>) -> Effects<'a> {
    let mut effects = Effects { text, options, weight: Weight::Plain };
    effects.weight = quick::weight(text, options).unwrap_or_else(|| effects.exact_weight());
    effects
}

impl<'a> Effects<'a> {
    /// No effect at all: neither on the session nor on its transaction.
    pub fn is_plain(&self) -> bool {
        self.weight == Weight::Plain
    }

    /// No effect but on the transaction, which the wire reports too.
    pub fn is_stateless(&self) -> bool {
        self.weight < Weight::State
    }

    /// The statements, in order: PostgreSQL completes each with one CommandComplete.
    pub fn statements(&self) -> Statements<'a> {
        Statements::new(self.text, self.options)
    }

    /// Gives each effect with the number of its statement, from 0, in order.
    pub fn each(&self, mut visit: impl FnMut(usize, Effect<'a>)) {
        for (number, statement) in self.statements().enumerate() {
            statement.each(&mut |effect| visit(number, effect));
        }
    }

    /// Whether one of the statements may draw from a sequence that it does not name.
    pub fn may_draw(&self) -> bool {
        self.statements().any(|statement| statement.may_draw())
    }

    /// What was read.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Whether a prepared statement is named in it.
    pub fn names_statements(&self) -> bool {
        let mut names = false;
        if !self.is_stateless() {
            self.each(|_, effect| names |= effect.names_statement());
        }
        names
    }

    /// All effects, each with the number of its statement. It allocates.
    pub fn list(&self) -> Vec<(usize, Effect<'a>)> {
        let mut list = Vec::new();
        self.each(|number, effect| list.push((number, effect)));
        list
    }

    fn exact_weight(&self) -> Weight {
        let mut weight = Weight::Plain;
        self.each(|_, effect| {
            weight = weight.max(match effect {
                Effect::Transaction(_) | Effect::SetTransaction => Weight::Transaction,
                _ => Weight::State,
            });
        });
        weight
    }
}

#[cfg(test)]
mod tests;
