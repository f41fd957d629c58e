//! Where the pieces of SQL begin and end, by PostgreSQL's rules of quoting, with comments and white space left out.
//!
//! It borrows everything and allocates nothing. What is not closed is [`Token::Unread`], and ends the text. It
//! knows nothing of statements.

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// An unquoted name or keyword, as written.
    Word(&'a [u8]),
    /// A name in double quotes: what stands between them, inner quotes still doubled.
    Quoted(&'a [u8]),
    /// A string constant of any kind.
    String(Literal<'a>),
    /// `$1`: its digits.
    Parameter(&'a [u8]),
    /// The digits of a number; what else it is made of follows as words and symbols.
    Digits,
    /// `::`
    Cast,
    /// Any other byte.
    Symbol(u8),
    /// A name or constant that is not closed, or not to be read without a guess.
    Unread,
}

/// A string constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal<'a> {
    /// As written, with its quotes and what stands before them.
    pub text: &'a [u8],
    /// What stands between the quotes, if that is its value as it is.
    pub plain: Option<&'a [u8]>,
}

impl Token<'_> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text.eq_ignore_ascii_case(word.as_bytes()))
    }

    #[inline]
    pub(crate) fn is_symbol(&self, symbol: u8) -> bool {
        matches!(self, Token::Symbol(other) if *other == symbol)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    pub(crate) text: &'a [u8],
    /// Where the next piece is looked for.
    pub(crate) at: usize,
    /// Where the last piece began.
    pub(crate) start: usize,
    /// `standard_conforming_strings = off`: a backslash escapes in plain strings too.
    escapes: bool,
}

/// What begins with a byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Class {
    Other,
    Blank,
    // What a name goes on with is greater than a blank.
    Digit,
    Letter,
}

pub(crate) const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Class::Blank,
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..=0xff => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8], standard_conforming_strings: bool) -> Lexer<'a> {
        Lexer { text, at: 0, start: 0, escapes: !standard_conforming_strings }
    }

    #[inline]
    pub(crate) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = self.byte(0)?;
            self.start = self.at;
            match class(byte) {
                Class::Blank => self.at += 1,
                Class::Letter => return Some(self.word()),
                Class::Digit => {
                    self.skip_while(|byte| class(byte) == Class::Digit);
                    return Some(Token::Digits);
                }
                Class::Other => {
                    if let Some(token) = self.other(byte) {
                        return Some(token);
                    }
                }
            }
        }
    }

    #[inline]
    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|&byte| !is_part(byte)).unwrap_or(rest.len());
    }

    #[inline]
    fn word(&mut self) -> Token<'a> {
        self.skip_while(|byte| class(byte) > Class::Blank || byte == b'$');
        let word = &self.text[self.start..self.at];
        match (word, self.byte(0)) {
            (b"e" | b"E", Some(b'\'')) => self.string(1, Quoting::Backslash),
            (b"b" | b"B" | b"x" | b"X", Some(b'\'')) => self.string(1, Quoting::Single),
            (b"n" | b"N", Some(b'\'')) => self.string(1, self.plain_quoting()),
            (b"u" | b"U", Some(b'&')) => match self.byte(1) {
                // A quote is doubled in these too; the backslash does not protect one.
                Some(b'\'') => self.string(2, Quoting::Doubled),
                Some(b'"') => {
                    // What it says depends on an escape character that may be named behind it.
                    self.quoted(2);
                    Token::Unread
                }
                _ => Token::Word(word),
            },
            _ => Token::Word(word),
        }
    }

    /// What begins with neither letter, digit nor blank; nothing if it is a comment.
    fn other(&mut self, byte: u8) -> Option<Token<'a>> {
        match byte {
            b'\'' => return Some(self.string(0, self.plain_quoting())),
            b'"' => return Some(self.quoted(0)),
            b'$' => return Some(self.dollar()),
            b'-' if self.byte(1) == Some(b'-') => {
                self.skip_while(|byte| !matches!(byte, b'\n' | b'\r'));
                return None;
            }
            b'/' if self.byte(1) == Some(b'*') => {
                return if self.skip_comment() { None } else { Some(self.unread()) };
            }
            b':' if self.byte(1) == Some(b':') => {
                self.at += 2;
                return Some(Token::Cast);
            }
            _ => self.at += 1,
        }
        Some(Token::Symbol(byte))
    }

    fn unread(&mut self) -> Token<'a> {
        self.at = self.text.len();
        Token::Unread
    }

    fn plain_quoting(&self) -> Quoting {
        if self.escapes { Quoting::Backslash } else { Quoting::Doubled }
    }

    /// A string whose opening quote is `before` bytes after its start.
    fn string(&mut self, before: usize, quoting: Quoting) -> Token<'a> {
        let open = self.start + before + 1;
        let Some(mut end) = string_end(self.text, open, quoting) else { return self.unread() };
        let between = &self.text[open..end - 1];
        let escaped = |byte: &u8| *byte == b'\'' || quoting == Quoting::Backslash && *byte == b'\\';
        let is_plain = before == 0 && !between.iter().any(escaped);
        let mut plain = is_plain.then_some(between);
        // 'a' <newline> 'b' is one string, and its later parts are quoted as its first is.
        while let Some(next) = continued(self.text, end) {
            let Some(next_end) = string_end(self.text, next, quoting) else { return self.unread() };
            plain = None;
            end = next_end;
        }
        self.at = end;
        Token::String(Literal { text: &self.text[self.start..end], plain })
    }

    /// A name whose opening quote is `before` bytes after its start.
    fn quoted(&mut self, before: usize) -> Token<'a> {
        let open = self.start + before + 1;
        let mut at = open;
        loop {
            let Some(close) = find(self.text, at, b'"') else { return self.unread() };
            at = close + 1;
            if self.text.get(at) != Some(&b'"') {
                self.at = at;
                return Token::Quoted(&self.text[open..close]);
            }
            at += 1;
        }
    }

    /// `$1`, `$tag$ ... $tag$`, or a lone `$`.
    fn dollar(&mut self) -> Token<'a> {
        self.at += 1;
        if self.byte(0).is_some_and(|byte| class(byte) == Class::Digit) {
            self.skip_while(|byte| class(byte) == Class::Digit);
            return Token::Parameter(&self.text[self.start + 1..self.at]);
        }
        let tag_start = self.at;
        self.skip_while(|byte| class(byte) > Class::Blank);
        if self.byte(0) != Some(b'$') {
            self.at = tag_start;
            return Token::Symbol(b'$');
        }
        let tag = &self.text[self.start..=self.at];
        let open = self.at + 1;
        let mut at = open;
        while let Some(close) = find(self.text, at, b'$') {
            if self.text[close..].starts_with(tag) {
                self.at = close + tag.len();
                let plain = Some(&self.text[open..close]);
                return Token::String(Literal { text: &self.text[self.start..self.at], plain });
            }
            at = close + 1;
        }
        self.unread()
    }

    /// Block comments nest in PostgreSQL. False if this one is not closed.
    fn skip_comment(&mut self) -> bool {
        let mut depth = 0_usize;
        while let (Some(first), Some(second)) = (self.byte(0), self.byte(1)) {
            match (first, second) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return true;
                    }
                }
                _ => self.at += 1,
            }
        }
        false
    }
}

/// What ends a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// The next quote.
    Single,
    /// A quote that no other follows.
    Doubled,
    /// The same, and a backslash protects what follows it.
    Backslash,
}

fn find(text: &[u8], from: usize, byte: u8) -> Option<usize> {
    text.get(from..)?.iter().position(|&other| other == byte).map(|at| from + at)
}

/// Behind the closing quote of a string that is open at `at`.
fn string_end(text: &[u8], mut at: usize, quoting: Quoting) -> Option<usize> {
    loop {
        match text.get(at)? {
            b'\'' if quoting == Quoting::Single || text.get(at + 1) != Some(&b'\'') => return Some(at + 1),
            b'\'' => at += 2,
            b'\\' if quoting == Quoting::Backslash => at += 2,
            _ => at += 1,
        }
    }
}

/// Behind the quote that opens the next part of a string which was closed before `at`.
///
/// Only white space with a newline and comments to the end of the line may stand between.
fn continued(text: &[u8], mut at: usize) -> Option<usize> {
    let mut newline = false;
    loop {
        let byte = *text.get(at)?;
        if class(byte) == Class::Blank {
            newline |= matches!(byte, b'\n' | b'\r');
            at += 1;
        } else if byte == b'-' && text.get(at + 1) == Some(&b'-') {
            at += text[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
        } else {
            return (newline && byte == b'\'').then_some(at + 1);
        }
    }
}

#[cfg(test)]
mod tests;
