//! Bytes that nobody has taken yet: read and not whole, or written and not accepted by the kernel.
//!
//! Most streams never have any, and a record of one must be small: without bytes it is one empty pointer, and
//! with the last of them goes the room.

use std::ops::Deref;

/// What is left over.
#[derive(Default)]
pub struct Leftover(Option<Box<Rest>>);

#[derive(Default)]
struct Rest {
    bytes: Vec<u8>,
    /// So many of them have gone: a socket that takes a little at a time moves no bytes in here.
    gone: usize,
}

impl Deref for Leftover {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |rest| &rest.bytes[rest.gone..])
    }
}

impl Leftover {
    /// Nothing.
    pub fn new() -> Leftover {
        Leftover(None)
    }

    /// More, behind the rest.
    pub fn push(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let rest = self.0.get_or_insert_default();
            drop(rest.bytes.drain(..rest.gone));
            rest.gone = 0;
            rest.bytes.extend_from_slice(bytes);
        }
    }

    /// The first bytes are taken.
    pub fn consume(&mut self, count: usize) {
        match &mut self.0 {
            Some(rest) if rest.gone + count < rest.bytes.len() => rest.gone += count,
            _ => self.0 = None,
        }
    }

    /// All are taken.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

/// Where the bytes of a read are: in the scratch buffer alone, or behind what an earlier read left over.
#[derive(Clone, Copy)]
pub struct Kept(bool);

impl Kept {
    /// Takes note of a read.
    pub fn begin(pending: &mut Leftover, read: &[u8]) -> Kept {
        let kept = !pending.is_empty();
        if kept {
            pending.push(read);
        }
        Kept(kept)
    }

    /// What there is to look at.
    pub fn input<'a>(self, pending: &'a [u8], read: &'a [u8]) -> &'a [u8] {
        if self.0 { pending } else { read }
    }

    /// Keeps what the link did not take; gives the room back as soon as nothing is left.
    pub fn end(self, pending: &mut Leftover, read: &[u8], consumed: usize) {
        if !self.0 {
            if consumed < read.len() {
                pending.push(&read[consumed..]);
            }
        } else if consumed == pending.len() {
            pending.clear();
        } else {
            pending.consume(consumed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_leaves_the_rest_in_order() {
        let mut left = Leftover::new();
        left.push(b"");
        assert!(left.is_empty() && left.0.is_none());
        left.push(b"one ");
        left.push(b"two");
        left.consume(0);
        assert_eq!(*left, *b"one two");
        left.consume(4);
        assert_eq!(*left, *b"two");
        left.push(b", three");
        assert_eq!(*left, *b"two, three");
        left.consume(7);
        left.consume(3);
        assert!(left.is_empty() && left.0.is_none());
    }
}
