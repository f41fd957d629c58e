//! Names as written, compared and folded as PostgreSQL folds them. They borrow the text.

use crate::lexer::{Lexer, Token};

/// PostgreSQL's NAMEDATALEN less its zero.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// The name of a setting, object, cursor, channel or statement: parts with points between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// As written; comments and blanks may stand between the parts.
    written: &'a [u8],
}

/// One part of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Not quoted: case does not matter.
    Word(&'a [u8]),
    /// What stands between double quotes, inner quotes still doubled.
    Quoted(&'a [u8]),
}

impl Part<'_> {
    /// Whether this is `name`, which is in lower case.
    pub fn is(self, name: &str) -> bool {
        match self {
            Part::Word(text) => text.eq_ignore_ascii_case(name.as_bytes()),
            Part::Quoted(text) => text == name.as_bytes(),
        }
    }

    /// Whether it begins with `prefix`, which is in lower case.
    pub(crate) fn starts_with(self, prefix: &str) -> bool {
        let (Part::Word(text) | Part::Quoted(text)) = self;
        let Some(head) = text.get(..prefix.len()) else { return false };
        match self {
            Part::Word(_) => head.eq_ignore_ascii_case(prefix.as_bytes()),
            Part::Quoted(_) => head == prefix.as_bytes(),
        }
    }

    /// Folded and without quotes, not cut.
    pub(crate) fn folded(self) -> Vec<u8> {
        match self {
            Part::Word(text) => text.to_ascii_lowercase(),
            Part::Quoted(text) => {
                let mut name = Vec::with_capacity(text.len());
                let mut after_quote = false;
                for &byte in text {
                    after_quote = byte == b'"' && !after_quote;
                    if !after_quote {
                        name.push(byte);
                    }
                }
                name
            }
        }
    }

    /// As PostgreSQL knows it: folded, without quotes, cut at 63 bytes but not within a character of UTF-8.
    pub fn to_vec(self) -> Vec<u8> {
        let mut name = self.folded();
        if name.len() > NAME_BYTES_MAX {
            let is_inner = |byte: u8| byte & 0xc0 == 0x80;
            let whole = (0..=NAME_BYTES_MAX).rev().find(|&end| !is_inner(name[end]));
            name.truncate(whole.unwrap_or(NAME_BYTES_MAX));
        }
        name
    }
}

impl<'a> Name<'a> {
    /// A name that is known to be one.
    pub(crate) const fn written(written: &'a [u8]) -> Name<'a> {
        Name { written }
    }

    /// As it stands in the text.
    pub fn as_written(&self) -> &'a [u8] {
        self.written
    }

    /// Its parts, from the left.
    pub fn parts(&self) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let mut lexer = Lexer::new(self.written, true);
        std::iter::from_fn(move || {
            loop {
                match lexer.next()? {
                    Token::Word(text) => return Some(Part::Word(text)),
                    Token::Quoted(text) => return Some(Part::Quoted(text)),
                    _ => {}
                }
            }
        })
    }

    /// The rightmost part: an object's name without its schema.
    pub fn last(&self) -> Option<Part<'a>> {
        self.parts().last()
    }

    /// Whether this is `name`, a single part in lower case.
    pub fn is(&self, name: &str) -> bool {
        let mut parts = self.parts();
        parts.next().is_some_and(|part| part.is(name)) && parts.next().is_none()
    }

    /// Whether the schema is the session's own: `pg_temp`, or `pg_temp_` with a number.
    pub fn is_in_temp_schema(&self) -> bool {
        let mut parts = self.parts();
        let first = parts.next();
        parts.next().is_some() && first.is_some_and(is_temp_schema)
    }

    /// As PostgreSQL knows it, its parts joined by points.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.written.len());
        for part in self.parts() {
            if !name.is_empty() {
                name.push(b'.');
            }
            name.extend_from_slice(&part.to_vec());
        }
        name
    }
}

pub(crate) fn is_temp_schema(part: Part<'_>) -> bool {
    part.is("pg_temp") || part.starts_with("pg_temp_")
}

#[cfg(test)]
mod tests;
