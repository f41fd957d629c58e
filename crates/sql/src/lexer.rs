//! Words, quoted names, semicolons, and everything else, with comments and white space left out.

/// One piece of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// An unquoted word, its ASCII letters folded to lower case and cut at 63 bytes as PostgreSQL does.
    Word(Vec<u8>),
    /// A name in double quotes, without them.
    Quoted(Vec<u8>),
    /// `;`
    Semicolon,
    /// Anything else, and anything that is not closed: nothing after it is to be trusted.
    Other,
}

/// PostgreSQL's NAMEDATALEN less its zero.
const NAME_BYTES_MAX: usize = 63;

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text == word.as_bytes())
    }
}

pub(crate) struct Lexer<'a> {
    rest: &'a [u8],
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Lexer<'a> {
        Lexer { rest: text }
    }

    pub(crate) fn next(&mut self) -> Option<Token> {
        if !self.skip_blanks() {
            self.rest = &[];
            return Some(Token::Other);
        }
        let (&first, rest) = self.rest.split_first()?;
        Some(match first {
            b';' => {
                self.rest = rest;
                Token::Semicolon
            }
            b'"' => self.quoted(rest),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..=0xff => self.word(),
            _ => {
                self.rest = rest;
                Token::Other
            }
        })
    }

    fn word(&mut self) -> Token {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..=0xff);
        let end = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word[..end.min(NAME_BYTES_MAX)].to_ascii_lowercase())
    }

    fn quoted(&mut self, mut rest: &'a [u8]) -> Token {
        let mut name = Vec::new();
        loop {
            let Some(end) = rest.iter().position(|&byte| byte == b'"') else {
                self.rest = &[];
                return Token::Other;
            };
            name.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            if rest.first() != Some(&b'"') {
                break;
            }
            name.push(b'"');
            rest = &rest[1..];
        }
        self.rest = rest;
        name.truncate(NAME_BYTES_MAX);
        Token::Quoted(name)
    }

    /// Skips white space and comments; false if a comment is not closed.
    fn skip_blanks(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.rest.starts_with(b"--") {
                let end = self.rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
            } else if self.rest.starts_with(b"/*") {
                let Some(rest) = after_comment(self.rest) else { return false };
                self.rest = rest;
            } else {
                return true;
            }
        }
    }
}

/// Block comments nest in PostgreSQL.
fn after_comment(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at + 1 < text.len() {
        match &text[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(&text[at..]);
                }
            }
            _ => at += 1,
        }
    }
    None
}
