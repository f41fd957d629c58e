//! The text of statements: words, quoted names and strings.

use std::collections::VecDeque;

/// Reads a statement from its beginning.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// Up to the next blank.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == b' ').unwrap_or(self.0.len());
        let word = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        word
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next string, and the comma behind it.
    pub(super) fn string(&mut self) -> Option<Vec<u8>> {
        let has_escapes = self.0.starts_with(b"E'");
        let mut rest = self.0.strip_prefix(if has_escapes { &b"E'"[..] } else { b"'" })?;
        let mut string = Vec::new();
        loop {
            rest = match rest {
                [b'\\', b'\\', rest @ ..] if has_escapes => {
                    string.push(b'\\');
                    rest
                }
                [b'\'', b'\'', rest @ ..] => {
                    string.push(b'\'');
                    rest
                }
                [b'\'', rest @ ..] => {
                    let rest = rest.strip_prefix(b",").unwrap_or(rest);
                    self.0 = rest.strip_prefix(b" ").unwrap_or(rest);
                    return Some(string);
                }
                [byte, rest @ ..] => {
                    string.push(*byte);
                    rest
                }
                [] => return None,
            };
        }
    }
}

/// Without its quotes, if it has any.
pub(crate) fn unquoted(word: &[u8]) -> Vec<u8> {
    if let Some(name) = word.strip_prefix(b"\"") {
        return name.strip_suffix(b"\"").unwrap_or(name).to_vec();
    }
    Reader(word).string().unwrap_or_else(|| word.to_vec())
}

/// The statements of a simple query.
pub(super) fn split(text: &[u8]) -> VecDeque<Vec<u8>> {
    let mut list = VecDeque::from([Vec::new()]);
    let mut quote = None;
    for &byte in text {
        match byte {
            b';' if quote.is_none() => list.push_back(Vec::new()),
            _ => {
                if matches!(byte, b'\'' | b'"') && quote.is_none_or(|quote| quote == byte) {
                    quote = if quote.is_none() { Some(byte) } else { None };
                }
                list.back_mut().expect("it is never empty").push(byte);
            }
        }
    }
    list.retain(|statement| !statement.is_empty());
    list
}

/// The number between a call's parentheses, and the like: what stands between the first `open` and the next `close`.
pub(super) fn between(text: &[u8], open: u8, close: u8) -> &[u8] {
    let start = text.iter().position(|&byte| byte == open).map_or(0, |at| at + 1);
    let rest = &text[start..];
    &rest[..rest.iter().position(|&byte| byte == close).unwrap_or(rest.len())]
}
