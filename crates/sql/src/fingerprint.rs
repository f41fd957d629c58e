//! What stays of a statement when its literals are left out: as a text to be judged, and as a number to be found by.
//!
//! Both come out of one pass over the same pieces, so that two texts with one fingerprint are one text to whoever
//! judges them: no literal can change a verdict, because no judge sees one. It never guesses. What it cannot read,
//! and what begins as no read begins, has neither. Nothing is allocated for a fingerprint.

mod mask;
mod sip;

use mask::{Sink, mask};
use sip::Sip;

use crate::lexer::{Lexer, Token};

/// Longer texts are not looked at.
pub const TEXT_BYTES_MAX: usize = 32 * 1024;
/// So many pieces may be left of one: it bounds the depth of whatever is made of it.
pub const TOKENS_MAX: usize = 4096;
/// No command of PostgreSQL has a longer first word.
pub const FIRST_WORD_BYTES: usize = 12;
/// So deep may parentheses and brackets be.
pub const DEPTH_MAX: usize = 64;

/// Makes fingerprints nobody's who does not have it: random, and one for the process.
#[derive(Clone)]
pub struct Key([u64; 2]);

/// 128 bits of SipHash-1-3. Without the key nobody can make two texts meet, and by chance they will not: with 2^32
/// statements the odds are 1 to 2^65.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The halves.
    pub halves: [u64; 2],
}

/// Why a text has no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It begins as nothing does that only reads.
    Command,
    /// It is more than one statement.
    Several,
    /// It is longer or deeper than what is looked at.
    TooLong,
    /// What it says depends on what is not known here, or it is no SQL.
    Unreadable,
}

impl Key {
    /// Of random bytes.
    pub fn new(bytes: [u8; 16]) -> Key {
        let [first, second] = [0, 8].map(|at| {
            let mut half = [0; 8];
            half.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(half)
        });
        Key([first, second])
    }
}

/// The fingerprint of one statement, the text of a Query or a Parse; `None` if it is not one that could be a read.
pub fn fingerprint(text: &[u8], key: &Key) -> Option<Fingerprint> {
    examined(text, key).ok()
}

/// The same, and why there is none.
///
/// # Errors
/// What is in the way.
#[inline]
pub fn examined(text: &[u8], key: &Key) -> Result<Fingerprint, Unfit> {
    let mut sip = Sip::new(key.0);
    mask(text, &mut sip)?;
    Ok(Fingerprint { halves: sip.finish() })
}

/// What the fingerprint is of: ASCII, one blank between any two pieces that are not one operator.
///
/// # Errors
/// The same as for the fingerprint.
pub fn masked(text: &[u8]) -> Result<String, Unfit> {
    let mut kept = Kept(Vec::with_capacity(text.len().min(TEXT_BYTES_MAX)));
    mask(text, &mut kept)?;
    String::from_utf8(kept.0).map_err(|_| Unfit::Unreadable)
}

/// The first word of a text in lower case, if it has one that fits: for `match`, without an allocation.
#[inline]
pub fn first_word<'a>(text: &[u8], into: &'a mut [u8; FIRST_WORD_BYTES]) -> &'a [u8] {
    let Some(Token::Word(word)) = Lexer::new(text, true).next() else { return b"" };
    let Some(into) = into.get_mut(..word.len()) else { return b"" };
    for (to, from) in into.iter_mut().zip(word) {
        *to = from.to_ascii_lowercase();
    }
    into
}

struct Kept(Vec<u8>);

impl Sink for Kept {
    fn take(&mut self, word: u64, bytes: u32) {
        self.0.extend_from_slice(&word.to_le_bytes()[..bytes as usize]);
    }
}

impl Sink for Sip {
    #[inline]
    fn take(&mut self, word: u64, bytes: u32) {
        self.push(word, bytes);
    }
}

#[cfg(test)]
mod tests;
