//! What a client has sent to the server that it has, as long as nothing of it is answered: it may have to be sent to
//! another one.

use link::Link;

/// It.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    bytes: Vec<u8>,
    /// Part of it is not kept, or an answer has come.
    is_spent: bool,
    /// How often it was sent again.
    repeats: u8,
}

/// More than this is not kept, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// A client whose words kill every server they are sent to is told in the end.
const REPEATS_MAX: u8 = 5;

impl Sent {
    /// The client has a server to which it has said nothing yet.
    pub(crate) fn begin(&mut self) {
        self.bytes.clear();
        self.is_spent = false;
    }

    /// The client has sent these bytes to its server.
    pub(crate) fn note(&mut self, bytes: &[u8]) {
        if self.is_spent || self.bytes.len() + bytes.len() > KEPT_BYTES_MAX {
            self.spend();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The client has been sent something of an answer.
    pub(crate) fn answered(&mut self) {
        self.spend();
        self.repeats = 0;
    }

    /// Whether it may go to another server, now that the one of this link is lost.
    pub(crate) fn may_repeat(&self, link: &Link) -> bool {
        !self.is_spent && !self.bytes.is_empty() && self.repeats < REPEATS_MAX && link.may_repeat(&self.bytes)
    }

    /// It is sent again: the bytes.
    pub(crate) fn repeat(&mut self) -> Vec<u8> {
        self.repeats += 1;
        std::mem::take(&mut self.bytes)
    }

    fn spend(&mut self) {
        self.is_spent = true;
        self.bytes.clear();
    }
}
