//! Where a query string asks to be run: a hint in its first comment, or a transaction that it declares to be read-only.
//!
//! For texts whose strings and bytes mean what they mean to nearly everybody; others are not asked about. What is not
//! understood declares nothing.

use crate::lexer::{Lexer, Token};
use crate::state::{self, Options};

/// What a comment at the start of a statement says: `/* howdah: standby */`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It is to run on the primary.
    Primary,
    /// It may run on a standby.
    Standby,
}

/// What a query string declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// It opens a transaction that is read-only; nothing in the string ends it, or declares it anew.
    ReadOnly,
    /// It opens a transaction of the kind that is the session's default.
    Default,
    /// It is one statement that returns rows and is no utility: in a session that reads by default, a read.
    Query,
    /// Nothing that matters here.
    Nothing,
}

/// Reads the hint.
pub fn hint(text: &[u8]) -> Option<Hint> {
    let inner = text.trim_ascii_start().strip_prefix(b"/*")?;
    let end = inner.windows(2).position(|pair| pair == b"*/")?;
    let inner = inner[..end].trim_ascii();
    let (name, value) = inner.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    let value = value.trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    if value.eq_ignore_ascii_case(b"standby") {
        Some(Hint::Standby)
    } else if value.eq_ignore_ascii_case(b"primary") {
        Some(Hint::Primary)
    } else {
        None
    }
}

/// Reads what the string declares.
pub fn declared(text: &[u8]) -> Declared {
    if !may_declare(text) {
        return Declared::Nothing;
    }
    let mut statements = state::scan(text, Options::default()).statements().map(|statement| statement.text);
    let Some(first) = statements.next() else { return Declared::Nothing };
    let Some(mut modes) = opening(first) else {
        let is_query = first_word_is(first, &QUERIES) && statements.next().is_none();
        return if is_query { Declared::Query } else { Declared::Nothing };
    };
    let mut rest = statements.peekable();
    if let Some(more) = rest.peek().and_then(|statement| set_transaction(statement)) {
        let _taken = rest.next();
        modes = Modes { reads: more.reads.or(modes.reads), is_known: modes.is_known && more.is_known };
    }
    if !modes.is_known || !rest.all(|statement| first_word_is(statement, &WITHIN)) {
        return Declared::Nothing;
    }
    match modes.reads {
        Some(true) => Declared::ReadOnly,
        Some(false) => Declared::Nothing,
        None => Declared::Default,
    }
}

/// Whether a transaction that was declared read-only stays so with this string in it, or ends with its end.
pub fn stays_reading(text: &[u8]) -> bool {
    let mut is_over = false;
    state::scan(text, Options::default()).statements().all(|statement| {
        let goes_on = !is_over && first_word_is(statement.text, &WITHIN);
        let ends = !is_over && first_word_is(statement.text, &ENDS);
        is_over |= ends;
        goes_on || ends
    })
}

/// The cheapest test first: most strings begin with none of these letters.
fn may_declare(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|byte| b"bBsSwWvVtT/-".contains(byte))
}

/// What is said of a transaction.
#[derive(Clone, Copy)]
struct Modes {
    /// READ ONLY, or READ WRITE.
    reads: Option<bool>,
    /// All of it was understood, and a standby can do it: SERIALIZABLE it cannot.
    is_known: bool,
}

fn opening(statement: &[u8]) -> Option<Modes> {
    let mut lexer = Lexer::new(statement, true);
    let first = lexer.next()?;
    if first.is_word("start") {
        return lexer.next()?.is_word("transaction").then(|| modes(lexer));
    }
    if !first.is_word("begin") {
        return None;
    }
    let mut ahead = lexer;
    if ahead.next().is_some_and(|token| token.is_word("work") || token.is_word("transaction")) {
        lexer = ahead;
    }
    Some(modes(lexer))
}

fn set_transaction(statement: &[u8]) -> Option<Modes> {
    let mut lexer = Lexer::new(statement, true);
    let is_it = lexer.next()?.is_word("set") && lexer.next()?.is_word("transaction");
    is_it.then(|| modes(lexer))
}

fn modes(mut lexer: Lexer<'_>) -> Modes {
    let mut modes = Modes { reads: None, is_known: true };
    while let Some(token) = lexer.next() {
        let is_understood = if token.is_word("read") {
            let next = lexer.next();
            let is = |word| next.is_some_and(|token: Token<'_>| token.is_word(word));
            modes.reads = if is("only") { Some(true) } else { Some(false) };
            is("only") || is("write")
        } else if token.is_word("isolation") {
            lexer.next().is_some_and(|token| token.is_word("level")) && takes_level(&mut lexer)
        } else {
            token.is_word("deferrable") || token.is_word("not") || token.is_symbol(b',')
        };
        if !is_understood {
            return Modes { is_known: false, ..modes };
        }
    }
    modes
}

/// The level of isolation, if it is one that a standby has.
fn takes_level(lexer: &mut Lexer<'_>) -> bool {
    let (first, second) = (lexer.next(), lexer.next());
    let is = |token: Option<Token<'_>>, word| token.is_some_and(|token| token.is_word(word));
    (is(first, "repeatable") && is(second, "read"))
        || (is(first, "read") && (is(second, "committed") || is(second, "uncommitted")))
}

fn first_word_is(statement: &[u8], words: &[&str]) -> bool {
    let first = Lexer::new(statement, true).next();
    first.is_some_and(|token| words.iter().any(|word| token.is_word(word)))
}

const NAME: &[u8] = b"howdah";
/// One of these alone is a read where the session reads.
const QUERIES: [&str; 5] = ["select", "with", "values", "table", "show"];
/// Statements that leave a transaction what it is.
const WITHIN: [&str; 10] =
    ["select", "with", "values", "table", "show", "explain", "declare", "fetch", "move", "close"];
/// Statements that may end it, or go back within it; SET would have to follow to make anything else of it.
const ENDS: [&str; 4] = ["commit", "end", "rollback", "abort"];

#[cfg(test)]
mod tests {
    use super::{Declared, Hint, declared, hint, stays_reading};

    #[track_caller]
    fn check(text: &str, wanted: Declared) {
        assert_eq!(declared(text.as_bytes()), wanted, "{text}");
    }

    #[test]
    fn a_hint_is_the_first_comment_and_nothing_else() {
        assert_eq!(hint(b"/* howdah: standby */ select 1"), Some(Hint::Standby));
        assert_eq!(hint(b" \n/*HOWDAH:primary*/insert into t values (1)"), Some(Hint::Primary));
        for text in [
            "select /* howdah: standby */ 1",
            "-- howdah: standby\nselect 1",
            "/* howdah: elsewhere */ select 1",
            "/* howdah standby */ select 1",
            "/* howdah: standby",
            "/* x */ /* howdah: standby */ select 1",
            "/**/",
            "",
        ] {
            assert_eq!(hint(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn transactions_that_are_declared_read_only_are_known() {
        for text in [
            "begin read only",
            "BEGIN TRANSACTION READ ONLY;",
            "begin work isolation level repeatable read, read only",
            "start transaction read only, isolation level read committed",
            "start transaction read only not deferrable",
            "/* x */ begin read only -- y",
            "begin; set transaction read only",
            "begin; set transaction isolation level repeatable read read only; select 1",
            "begin read only; select 1; fetch all from c",
        ] {
            check(text, Declared::ReadOnly);
        }
        check("begin", Declared::Default);
        check("start transaction isolation level repeatable read", Declared::Default);
    }

    #[test]
    fn what_may_write_or_is_not_understood_declares_nothing() {
        for text in [
            "begin read write",
            "begin read only; set transaction read write",
            "begin isolation level serializable read only",
            "begin read only isolation level serializable",
            "begin read only; commit; insert into t values (1)",
            "begin read only; rollback",
            "begin read only; set transaction_read_only = off",
            "begin read only; insert into t values (1)",
            "begin read",
            "begin something",
            "set transaction read only",
            "insert into t values (1)",
            "select 1; select 2",
            "",
            ";",
            "begin read only, read write",
        ] {
            check(text, Declared::Nothing);
        }
        check("select 1", Declared::Query);
        check(" table t;", Declared::Query);
    }

    #[test]
    fn a_reading_transaction_is_changed_by_set_and_by_what_follows_its_end() {
        for text in
            ["select 1", "commit", "end;", "select 1; rollback", "rollback to a", "fetch 10 from c", ""]
        {
            assert!(stays_reading(text.as_bytes()), "{text}");
        }
        for text in [
            "set transaction read write",
            "reset all",
            "commit; select f()",
            "insert into t values (1)",
            "commit; begin",
            "do $$begin end$$",
            "execute x",
            "'",
        ] {
            assert!(!stays_reading(text.as_bytes()), "{text}");
        }
    }
}
