//! A lexer of SQL that knows just enough to see what a statement does to a session.
//!
//! It never guesses: what it does not recognise for certain, it does not recognise, and says so.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod fingerprint;
pub mod intent;
mod lexer;
pub mod name;
pub mod repeat;
pub mod state;

#[cfg(test)]
mod tests;

use lexer::{Lexer, Token};
use name::{NAME_BYTES_MAX, Part};

pub use lexer::Literal;

/// The name in a statement that is exactly `DEALLOCATE [PREPARE] name`, folded as PostgreSQL folds it.
///
/// `DEALLOCATE ALL` names nothing; a string of several statements is not taken apart.
pub fn deallocated_name(text: &[u8]) -> Option<Vec<u8>> {
    // The cheapest test first: nearly no statement begins with this letter.
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if !matches!(first, b'd' | b'D' | b'-' | b'/') {
        return None;
    }
    let mut lexer = Lexer::new(text, true);
    if !lexer.next()?.is_word("deallocate") {
        return None;
    }
    let mut token = lexer.next()?;
    let mut after = lexer.next();
    if token.is_word("prepare") && !matches!(after, None | Some(Token::Symbol(b';'))) {
        token = after?;
        after = lexer.next();
    }
    let mut name = match token {
        Token::Word(_) if token.is_word("all") => return None,
        Token::Word(text) => Part::Word(text).folded(),
        Token::Quoted(text) => Part::Quoted(text).folded(),
        _ => return None,
    };
    while after == Some(Token::Symbol(b';')) {
        after = lexer.next();
    }
    name.truncate(NAME_BYTES_MAX);
    after.is_none().then_some(name)
}
