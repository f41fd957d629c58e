//! One statement as pieces without literals.
//!
//! Words are folded, literals are one of a few signs, a list of literals is its first, comments and the last semicolon
//! are gone. Text that means different things under different settings of the session (a backslash in a plain string)
//! or in different encodings (a name that is not ASCII) is not read at all. Does not know what becomes of the pieces.

use super::{DEPTH_MAX, TEXT_BYTES_MAX, TOKENS_MAX, Unfit};
use crate::lexer::{CLASSES, Class, Lexer, Literal, Token};

/// Takes the pieces.
pub(super) trait Sink {
    /// So many bytes, 1 to 8, the first the lowest; those above are zero.
    fn take(&mut self, word: u64, bytes: u32);
}

/// A few bytes as a sink takes them.
const fn word(text: &[u8]) -> (u64, u32) {
    let mut word = 0;
    let mut at = 0;
    while at < text.len() {
        word |= (text[at] as u64) << (8 * at);
        at += 1;
    }
    (word, text.len() as u32)
}

/// The same byte eight times.
const fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Up to eight bytes of a text from here, as a sink takes them.
#[inline]
fn load(text: &[u8], at: usize, bytes: usize) -> u64 {
    match text[at..].first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk) & (u64::MAX >> (64 - 8 * bytes)),
        // Only at the end of the text.
        None => word(&text[at..at + bytes]).0,
    }
}

/// ASCII in lower case, eight bytes at once.
#[inline]
fn folded(word: u64) -> u64 {
    let low = word & all(0x7f);
    let beyond_z = low + all(0x7f - b'Z');
    let from_a = low + all(0x80 - b'A');
    word | ((from_a ^ beyond_z) & all(0x80)) >> 2
}

/// What a statement that only reads may begin with. EXPLAIN is here for the statement within.
const HEADS: [&str; 5] = ["select", "with", "values", "table", "explain"];

pub(super) fn mask<S: Sink>(text: &[u8], sink: &mut S) -> Result<(), Unfit> {
    let mut lexer = Lexer::new(text, true);
    let mut token = lexer.next().ok_or(Unfit::Command)?;
    let begins = |head: &str| head.as_bytes()[0] == text[lexer.start] | 0x20 && token.is_word(head);
    let is_head = token.is_symbol(b'(') || HEADS.iter().any(|head| begins(head));
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
    fn sign(self) -> (u64, u32) {
        match self {
            Kind::Integer => const { word(b"1") },
            Kind::Number => const { word(b"1.0") },
            Kind::Text => const { word(b"''") },
            Kind::Bits => const { word(b"b''") },
            Kind::Hex => const { word(b"x''") },
            Kind::Parameter => const { word(b"$1") },
        }
    }
}

const COMMA: (u64, u32) = word(b" ,");

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
            self.write(COMMA);
        }
    }

    #[inline]
    fn write(&mut self, (word, bytes): (u64, u32)) {
        self.sink.take(word, bytes);
    }

    /// A name as it stands in the text. What a byte beyond ASCII is, and how it is folded, depends on encodings.
    #[inline]
    fn name(&mut self, lexer: &Lexer<'_>, fold: bool) -> Result<(), Unfit> {
        self.begin()?;
        let (text, mut at, end) = (lexer.text, lexer.start, lexer.at);
        let mut beyond = 0;
        while at < end {
            let bytes = (end - at).min(8);
            let word = load(text, at, bytes);
            beyond |= word & all(0x80);
            self.sink.take(if fold { folded(word) } else { word }, bytes as u32);
            at += bytes;
        }
        if beyond == 0 { Ok(()) } else { Err(Unfit::Unreadable) }
    }

    #[inline]
    fn take(&mut self, token: Token<'_>, lexer: &mut Lexer<'_>) -> Result<(), Unfit> {
        match token {
            Token::Word(_) => self.name(lexer, true),
            Token::Quoted(_) => self.name(lexer, false),
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
                self.write(const { word(b"::") });
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
    #[inline]
    fn begin(&mut self) -> Result<(), Unfit> {
        self.operator_end = None;
        self.literal = None;
        if self.comma {
            self.comma = false;
            self.write(COMMA);
        }
        if self.count > 0 {
            self.write(const { word(b" ") });
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
        self.write(kind.sign());
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
                self.sink.take(u64::from(symbol), 1);
                self.operator_end = Some(lexer.at);
                return Ok(());
            }
            _ => return Err(Unfit::Unreadable),
        }
        if self.depth > DEPTH_MAX {
            return Err(Unfit::TooLong);
        }
        self.begin()?;
        self.sink.take(u64::from(symbol), 1);
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
