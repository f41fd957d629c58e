//! Whether a query string may be sent a second time, when the server that had it first is gone.

use crate::lexer::{Lexer, Token};
use crate::state::{self, Options};

/// What must be known of the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repeat {
    /// Nothing: all it does is to open a transaction, which ends with its server.
    Always,
    /// That it was aborted before any of its statements was complete: they cannot commit by themselves.
    IfAborted,
    /// It may not.
    Never,
}

/// Statements that leave nothing behind when they are aborted. A procedure can commit half of what it does.
const ABORTABLE: [&str; 11] =
    ["select", "insert", "update", "delete", "merge", "values", "table", "with", "set", "show", "explain"];

/// Reads a query string; what is not understood is never repeated.
pub fn repeat(text: &[u8]) -> Repeat {
    // What a backslash means depends on the session, and what a byte is, on its encoding.
    if text.contains(&b'\\') || !text.is_ascii() {
        return Repeat::Never;
    }
    let statements = state::scan(text, Options::default()).statements();
    statements.map(|statement| of_statement(statement.text)).max().unwrap_or(Repeat::IfAborted)
}

fn of_statement(text: &[u8]) -> Repeat {
    let Some(token @ Token::Word(_)) = Lexer::new(text, true).next() else { return Repeat::Never };
    if ["begin", "start"].iter().any(|word| token.is_word(word)) {
        Repeat::Always
    } else if ABORTABLE.iter().any(|word| token.is_word(word)) {
        Repeat::IfAborted
    } else {
        Repeat::Never
    }
}

#[cfg(test)]
mod tests {
    use super::{Repeat, repeat};

    #[track_caller]
    fn check(text: &str, wanted: Repeat) {
        assert_eq!(repeat(text.as_bytes()), wanted, "{text}");
    }

    #[test]
    fn only_the_opening_of_a_transaction_is_always_repeated() {
        check("begin", Repeat::Always);
        check(" START TRANSACTION isolation level serializable;", Repeat::Always);
        check("begin; select 1", Repeat::IfAborted);
    }

    #[test]
    fn what_cannot_commit_by_itself_is_repeated_if_it_was_aborted() {
        for text in
            ["select 1", "/* x */ INSERT into t values (1)", "with x as (select 1) select 2", "set a=1"]
        {
            check(text, Repeat::IfAborted);
        }
        check("select ';commit'; update t set a = 2", Repeat::IfAborted);
        check("", Repeat::IfAborted);
    }

    #[test]
    fn what_can_commit_or_is_not_understood_is_never_repeated() {
        for text in [
            "commit",
            "call p()",
            "do $$begin end$$",
            "vacuum",
            "execute x",
            "copy t from stdin",
            "(select 1)",
        ] {
            check(text, Repeat::Never);
        }
        check("select 1; call p()", Repeat::Never);
        check(r"select E'\'; commit; --'", Repeat::Never);
        check("select 'ü'", Repeat::Never);
    }
}
