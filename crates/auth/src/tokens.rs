//! The words of one line of an HBA or ident file, as PgBouncer splits it: blanks and commas part, `"` quotes
//! (two of them inside are one), `#` begins a comment. Does not know what the words mean.

/// One word or comma, and the character it begins at, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) column: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Comma,
    /// A word without quotes, which may be a keyword.
    Word(String),
    /// A word in quotes, which is always a name.
    Quoted(String),
    /// A quote without its end.
    Unclosed,
    /// Bytes that are not UTF-8.
    NotUtf8,
    End,
}

/// Reads a line from left to right. A copy looks ahead.
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The line must have been decoded lossily: what stands for broken bytes is found in the words.
    pub(crate) fn new(line: &'a str) -> Tokens<'a> {
        Tokens { line, at: 0 }
    }

    pub(crate) fn peek(&self) -> Token {
        let mut ahead = *self;
        ahead.next()
    }

    /// What has not been read, comments and all.
    pub(crate) fn rest(&self) -> &'a str {
        self.line[self.at..].trim()
    }

    pub(crate) fn next(&mut self) -> Token {
        let rest = &self.line[self.at..];
        let rest = rest.trim_start();
        let start = self.line.len() - rest.len();
        let column = self.line[..start].chars().count() + 1;
        let (kind, bytes) = match rest.chars().next() {
            None | Some('#') => (TokenKind::End, 0),
            Some(',') => (TokenKind::Comma, 1),
            Some('"') => quoted(rest),
            Some(first) => {
                // The first character belongs to the word whatever it is.
                let tail = &rest[first.len_utf8()..];
                let ends = |ch: char| ch == ',' || ch == '#' || ch == '"' || ch.is_whitespace();
                let bytes = first.len_utf8() + tail.find(ends).unwrap_or(tail.len());
                (TokenKind::Word(rest[..bytes].to_owned()), bytes)
            }
        };
        self.at = start + bytes;
        let kind = match kind {
            TokenKind::Word(text) | TokenKind::Quoted(text) if text.contains(char::REPLACEMENT_CHARACTER) => {
                TokenKind::NotUtf8
            }
            kind => kind,
        };
        Token { kind, column }
    }
}

/// A quoted word at the start of `text`, and its length with the quotes.
fn quoted(text: &str) -> (TokenKind, usize) {
    let mut word = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, ch)) = chars.next() {
        if ch != '"' {
            word.push(ch);
        } else if chars.next_if(|(_, next)| *next == '"').is_some() {
            word.push('"');
        } else {
            return (TokenKind::Quoted(word), at + 1);
        }
    }
    (TokenKind::Unclosed, text.len())
}

/// The lines of a file with their numbers from 1, broken bytes replaced; a byte order mark is passed over.
pub(crate) fn numbered_lines(file: &[u8]) -> impl Iterator<Item = (usize, std::borrow::Cow<'_, str>)> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    file.split(|byte| *byte == b'\n')
        .map(String::from_utf8_lossy)
        .enumerate()
        .map(|(at, line)| (at + 1, line))
}
