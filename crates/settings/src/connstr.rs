//! The `key=value key='value'` text of an entry, as PgBouncer splits it. Knows no keys.

use std::borrow::Cow;

use crate::problem::ProblemKind;

/// One key with its value; `*_at` are offsets into the text that was split.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pair<'a> {
    pub(crate) key: &'a str,
    pub(crate) key_at: usize,
    pub(crate) value: Cow<'a, str>,
    pub(crate) value_at: usize,
}

/// A place where the text is no list of pairs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault<'a> {
    pub(crate) kind: ProblemKind,
    /// The word read as a key. It may be a piece of a value that lacks its quotes, a secret one even.
    pub(crate) word: &'a str,
    pub(crate) at: usize,
}

/// The pairs of a text, with blanks allowed around `=`. After a fault that leaves no doubt where the next
/// pair begins it goes on, after any other it ends.
pub(crate) struct Pairs<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(text: &'a str) -> Pairs<'a> {
        Pairs { text, at: 0 }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(is_blank).len();
    }

    /// The text up to the next character that `end` knows.
    fn take_until(&mut self, end: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(end).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn stop(&mut self, kind: ProblemKind, word: &'a str, at: usize) -> Option<Result<Pair<'a>, Fault<'a>>> {
        self.at = self.text.len();
        Some(Err(Fault { kind, word, at }))
    }

    /// A value whose opening quote is at hand: what is inside, `None` if the quote has no end.
    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        self.at += 1;
        let mut value = Cow::Borrowed(self.take_until(|c| c == '\''));
        loop {
            if self.at == self.text.len() {
                return None;
            }
            self.at += 1;
            if !self.text[self.at..].starts_with('\'') {
                return Some(value);
            }
            self.at += 1;
            value.to_mut().push('\'');
            let more = self.take_until(|c| c == '\'');
            value.to_mut().push_str(more);
        }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<Pair<'a>, Fault<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        if self.at == self.text.len() {
            return None;
        }
        let key_at = self.at;
        let key = self.take_until(|c| c == '=' || is_blank(c));
        if key.is_empty() {
            return self.stop(ProblemKind::MissingKey, key, key_at);
        }
        self.skip_blanks();
        if !self.text[self.at..].starts_with('=') {
            return self.stop(ProblemKind::MissingEquals, key, key_at);
        }
        self.at += 1;
        self.skip_blanks();
        let value_at = self.at;
        let value = if self.text[self.at..].starts_with('\'') {
            match self.quoted() {
                Some(value) => value,
                None => return self.stop(ProblemKind::UnclosedQuote, key, value_at),
            }
        } else {
            Cow::Borrowed(self.take_until(is_blank))
        };
        let end = self.at;
        if !self.take_until(is_blank).is_empty() {
            return Some(Err(Fault { kind: ProblemKind::TextAfterQuote, word: key, at: end }));
        }
        if value.is_empty() {
            return Some(Err(Fault { kind: ProblemKind::MissingValue, word: key, at: value_at }));
        }
        Some(Ok(Pair { key, key_at, value, value_at }))
    }
}

/// C's `isspace`.
pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}
