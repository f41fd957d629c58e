//! The first look at a query string: one pass over its bytes, which nearly every string ends with.
//!
//! It knows words and blanks by itself, and leaves quotes and comments to the lexer. It says nothing of a
//! string that has a word in it which may count.

use super::verb::Verb;
use super::{Options, Weight};
use crate::lexer::{CLASSES, Class, Lexer, Token};

/// Nothing if a closer look is needed.
pub(super) fn weight(text: &[u8], options: Options<'_>) -> Option<Weight> {
    if !options.is_ascii_safe && !text.is_ascii() {
        return None;
    }
    let mut weight = Weight::Plain;
    let mut is_first = true;
    // A transaction command of one word: anything more of it is for its grammar.
    let mut is_alone = false;
    // A parenthesis before the first word, of which there must be one.
    let mut is_open = false;
    // How many parentheses are open: a semicolon in one ends no statement.
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match CLASSES[usize::from(byte)] {
            Class::Blank => at += 1,
            Class::Letter => {
                if is_alone {
                    return None;
                }
                let start = at;
                at = word_end(text, at + 1);
                // One letter before a quote, or before an ampersand and a quote, makes it another kind.
                if at == start + 1 && matches!(text.get(at), Some(b'\'' | b'&')) {
                    at = quoted(text, start, is_first, options)?;
                    continue;
                }
                let word = &text[start..at];
                if is_first {
                    let of_this = of_first(word)?;
                    is_alone = of_this == Weight::Transaction;
                    weight = weight.max(of_this);
                    is_first = false;
                    is_open = false;
                } else if options.functions.may_count(word) {
                    return None;
                }
            }
            Class::Other if byte == b';' => {
                if is_open || depth > 0 {
                    return None;
                }
                is_first = true;
                is_alone = false;
                at += 1;
            }
            _ if is_alone => return None,
            Class::Digit if is_first => return None,
            Class::Digit => at += 1,
            Class::Other => match byte {
                b'(' => {
                    is_open |= is_first;
                    depth += 1;
                    at += 1;
                }
                b')' => {
                    // One too many is for the exact look; so is any before the first word.
                    depth = depth.checked_sub(1).filter(|_| !is_first)?;
                    at += 1;
                }
                b'\'' | b'"' | b'$' | b'-' | b'/' => at = quoted(text, at, is_first, options)?,
                // No statement has a control character outside quotes: what it comes to is for the exact look.
                _ if is_first || byte.is_ascii_control() => return None,
                _ => at += 1,
            },
        }
    }
    (!is_open).then_some(weight)
}

/// The bytes that a name goes on with.
const GOES_ON: [bool; 256] = {
    let mut goes_on = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        goes_on[byte] = matches!(CLASSES[byte], Class::Letter | Class::Digit) || byte == b'$' as usize;
        byte += 1;
    }
    goes_on
};

/// Where a word ends. Eight bytes at a time: words are of all lengths, and a processor that guesses wrong where each of
/// them ends loses more by that than by looking.
#[inline]
fn word_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let ends = !go_on(u64::from_le_bytes(*eight)) & (EACH * 0x80);
        if ends != 0 {
            return at + (ends.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < text.len() && GOES_ON[usize::from(text[at])] {
        at += 1;
    }
    at
}

/// One in each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;

/// The highest bit of each of eight bytes says whether a name goes on with it: [`GOES_ON`].
#[inline]
fn go_on(eight: u64) -> u64 {
    let low = eight & (EACH * 0x7f);
    // Of bytes below 0x80 the sum has the highest bit set if they are not below the limit.
    let from = |bytes: u64, first: u8| bytes + EACH * u64::from(0x80 - first);
    let within = |bytes: u64, first: u8, last: u8| from(bytes, first) & !from(bytes, last + 1);
    let is = |byte: u8| !((low ^ (EACH * u64::from(byte))) + EACH * 0x7f);
    eight | within(low | (EACH * 0x20), b'a', b'z') | within(low, b'0', b'9') | is(b'_') | is(b'$')
}

fn of_first(word: &[u8]) -> Option<Weight> {
    match Verb::of(word) {
        Verb::Plain => Some(Weight::Plain),
        Verb::Begin | Verb::Commit | Verb::Rollback => Some(Weight::Transaction),
        _ => None,
    }
}

/// Behind the quoted piece, comment or symbol that begins here.
fn quoted(text: &[u8], at: usize, is_first: bool, options: Options<'_>) -> Option<usize> {
    let mut lexer = Lexer::new(text, options.standard_conforming_strings);
    lexer.at = at;
    let Some(token) = lexer.next() else { return Some(text.len()) };
    // A comment was skipped: what stands behind it is looked at by itself.
    if lexer.start != at {
        return Some(lexer.start);
    }
    match token {
        _ if is_first => None,
        Token::Unread => None,
        Token::Quoted(name) | Token::Word(name) if options.functions.may_count(name) => None,
        _ => Some(lexer.at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_at_a_time_say_what_each_says() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                for around in [b'a', b' ', 0xff, 0, b'$'] {
                    let mut eight = [around; 8];
                    eight[place] = byte;
                    let answer = go_on(u64::from_le_bytes(eight)).to_le_bytes();
                    let says = answer.map(|byte| byte & 0x80 != 0);
                    assert_eq!(says, eight.map(|byte| GOES_ON[usize::from(byte)]), "{eight:?}");
                }
            }
        }
    }

    #[test]
    fn word_ends_where_it_ends() {
        for length in 0..40 {
            for rest in [&b""[..], b" ", b"(", b"'x'", b" and so on, for longer"] {
                let text = [&vec![b'w'; length][..], rest].concat();
                for from in 0..=length {
                    assert_eq!(word_end(&text, from), length, "{text:?} from {from}");
                }
            }
        }
    }
}
