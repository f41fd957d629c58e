//! One statement as pieces without literals.
//!
//! Words are folded, literals are one of a few signs, a list of literals is its first, comments and the last semicolon
//! are gone. Text that means different things under different settings of the session (a backslash in a plain string)
//! or in different encodings (a name that is not ASCII) is not read at all. Does not know what becomes of the pieces.

use super::{DEPTH_MAX, TEXT_BYTES_MAX, TOKENS_MAX, Unfit};
use crate::lexer::{CLASSES, Class, Lexer, Literal, Token};

/// Takes the pieces.
pub(super) trait Sink {
    fn byte(&mut self, byte: u8);

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.byte(byte);
        }
    }
}

/// What a statement that only reads may begin with. EXPLAIN is here for the statement within.
const HEADS: [&str; 5] = ["select", "with", "values", "table", "explain"];

pub(super) fn mask<S: Sink>(text: &[u8], sink: &mut S) -> Result<(), Unfit> {
    let mut lexer = Lexer::new(text, true);
    let mut token = lexer.next().ok_or(Unfit::Command)?;
    let is_head = token.is_symbol(b'(') || HEADS.iter().any(|head| token.is_word(head));
    if !is_head {
        return Err(Unfit::Command);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(Unfit::TooLong);
    }
    let mut pieces = Pieces::new(sink);
    while !token.is_symbol(b';') {
        pieces.take(token, &mut lexer)?;
        let Some(next) = lexer.next() else { break };
        token = next;
    }
    pieces.end();
    // Whatever is behind the first semicolon but more of them is another statement.
    loop {
        match lexer.next() {
            None => return Ok(()),
            Some(Token::Symbol(b';')) => {}
            Some(_) => return Err(Unfit::Several),
        }
    }
}

/// The kinds of literals: those of one kind are all alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Text,
    Bits,
    Hex,
    Parameter,
}

impl Kind {
    fn sign(self) -> &'static [u8] {
        match self {
            Kind::Integer => b"1",
            Kind::Number => b"1.0",
            Kind::Text => b"''",
            Kind::Bits => b"b''",
            Kind::Hex => b"x''",
            Kind::Parameter => b"$1",
        }
    }
}

struct Pieces<'s, S> {
    sink: &'s mut S,
    count: usize,
    depth: usize,
    /// Where the last symbol ended, if another can be one operator with it.
    operator_end: Option<usize>,
    /// The last piece, if it is a literal.
    literal: Option<Kind>,
    /// A comma behind that literal: what comes next decides whether it counts.
    comma: bool,
}

impl<'s, S: Sink> Pieces<'s, S> {
    fn new(sink: &'s mut S) -> Pieces<'s, S> {
        Pieces { sink, count: 0, depth: 0, operator_end: None, literal: None, comma: false }
    }

    fn end(&mut self) {
        if self.comma {
            self.sink.bytes(b" ,");
        }
    }

    #[inline]
    fn take(&mut self, token: Token<'_>, lexer: &mut Lexer<'_>) -> Result<(), Unfit> {
        match token {
            Token::Word(word) => {
                self.begin()?;
                for byte in word {
                    // What a byte beyond ASCII is, and how it is folded, depends on encodings.
                    if !byte.is_ascii() {
                        return Err(Unfit::Unreadable);
                    }
                    self.sink.byte(byte.to_ascii_lowercase());
                }
                Ok(())
            }
            Token::Quoted(name) => {
                self.begin()?;
                if !name.is_ascii() {
                    return Err(Unfit::Unreadable);
                }
                self.sink.byte(b'"');
                self.sink.bytes(name);
                self.sink.byte(b'"');
                Ok(())
            }
            Token::String(literal) => self.literal(string(literal)?),
            Token::Parameter(_) => {
                ends_here(lexer)?;
                self.literal(Kind::Parameter)
            }
            Token::Digits => {
                let kind = number(lexer)?;
                self.literal(kind)
            }
            Token::Cast => {
                self.begin()?;
                self.sink.bytes(b"::");
                Ok(())
            }
            // `.5` is a number.
            Token::Symbol(b'.') if lexer.byte(0).is_some_and(|byte| byte.is_ascii_digit()) => {
                lexer.at = lexer.start;
                let kind = number(lexer)?;
                self.literal(kind)
            }
            Token::Symbol(symbol) => self.symbol(symbol, lexer),
            Token::Unread => Err(Unfit::Unreadable),
        }
    }

    /// Before a piece of its own.
    fn begin(&mut self) -> Result<(), Unfit> {
        self.operator_end = None;
        self.literal = None;
        if self.comma {
            self.comma = false;
            self.sink.bytes(b" ,");
        }
        if self.count > 0 {
            self.sink.byte(b' ');
        }
        self.count += 1;
        if self.count > TOKENS_MAX { Err(Unfit::TooLong) } else { Ok(()) }
    }

    fn literal(&mut self, kind: Kind) -> Result<(), Unfit> {
        if self.comma && self.literal == Some(kind) {
            self.comma = false;
            return Ok(());
        }
        self.begin()?;
        self.sink.bytes(kind.sign());
        self.literal = Some(kind);
        Ok(())
    }

    fn symbol(&mut self, symbol: u8, lexer: &Lexer<'_>) -> Result<(), Unfit> {
        match symbol {
            b',' if self.literal.is_some() && !self.comma => {
                self.comma = true;
                return Ok(());
            }
            b'(' | b'[' => self.depth += 1,
            b')' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => {}
            _ if is_joined(symbol) => {
                // `<` and `=` side by side are another operator than with a blank between.
                if self.operator_end != Some(lexer.start) {
                    self.begin()?;
                }
                self.sink.byte(symbol);
                self.operator_end = Some(lexer.at);
                return Ok(());
            }
            _ => return Err(Unfit::Unreadable),
        }
        if self.depth > DEPTH_MAX {
            return Err(Unfit::TooLong);
        }
        self.begin()?;
        self.sink.byte(symbol);
        Ok(())
    }
}

/// What PostgreSQL makes operators of, and the point and colon, which go together with them in `.*` and `:=`.
fn is_joined(symbol: u8) -> bool {
    matches!(
        symbol,
        b'~' | b'!'
            | b'@'
            | b'#'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
            | b'<'
            | b'>'
            | b'='
            | b'.'
            | b':'
    )
}

fn string(literal: Literal<'_>) -> Result<Kind, Unfit> {
    let text = literal.text;
    let (kind, is_escaped) = match text.first() {
        Some(b'b' | b'B') => (Kind::Bits, false),
        Some(b'x' | b'X') => (Kind::Hex, false),
        Some(b'e' | b'E') => (Kind::Text, true),
        Some(b'$') => return Ok(Kind::Text),
        _ => (Kind::Text, false),
    };
    // A backslash in a plain string ends it earlier or later by a setting; in an escaping one it may be
    // the second half of a character.
    let is_doubtful = text.contains(&b'\\') && (!is_escaped || !text.is_ascii());
    if is_doubtful { Err(Unfit::Unreadable) } else { Ok(kind) }
}

/// At the first digit, or behind the first digits, or at a point with a digit behind it.
fn number(lexer: &mut Lexer<'_>) -> Result<Kind, Unfit> {
    let text = lexer.text;
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = lexer.at;
    let mut kind = Kind::Integer;
    if text.get(at) == Some(&b'.') && text.get(at + 1) != Some(&b'.') {
        kind = Kind::Number;
        at += 1;
        while is_digit(at) {
            at += 1;
        }
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let digits = at + 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        if is_digit(digits) {
            kind = Kind::Number;
            at = digits;
            while is_digit(at) {
                at += 1;
            }
        }
    }
    lexer.at = at;
    ends_here(lexer)?;
    Ok(kind)
}

/// Letters right behind a number are another number, a name or an error, by the server's version.
fn ends_here(lexer: &Lexer<'_>) -> Result<(), Unfit> {
    match lexer.byte(0) {
        Some(byte) if CLASSES[usize::from(byte)] > Class::Blank || byte == b'$' => Err(Unfit::Unreadable),
        _ => Ok(()),
    }
}
