//! What a client draws from sequences, and what it is told of that later.
//!
//! The pooler looks at draws only where somebody of the same application has asked before. So whoever asks of what was
//! drawn before that may hear that there is nothing; but never of what another has drawn.

use wire::server::TransactionStatus;

use super::Script;

/// What a client knows of its own draws.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawn {
    /// The pooler may not have looked at one of them.
    pub(crate) is_unsure: bool,
    /// What it would be told is anybody's guess.
    pub(crate) is_lost: bool,
    /// Somebody of its application had asked when its transaction began.
    pub(crate) is_known: bool,
}

impl Drawn {
    /// It is about to draw; `is_looked_at`: and the pooler looks.
    pub(crate) fn draw(&mut self, is_looked_at: bool) {
        self.is_unsure |= !is_looked_at;
    }
}

/// Whether a text draws from a sequence.
pub(crate) fn draws(bytes: &[u8]) -> bool {
    has(bytes, b"nextval(") || has(bytes, b"INSERT ")
}

/// Whether a text asks what was drawn.
pub(crate) fn asks(bytes: &[u8]) -> bool {
    has(bytes, b"lastval()") || has(bytes, b"currval(")
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

impl Script<'_> {
    pub(super) fn sequence(&mut self) -> String {
        let sequence = self.rng.pick(&["q0", "q1"]);
        match self.rng.below(8) {
            0..3 => format!("SELECT nextval('{sequence}') /*{}*/", self.tag),
            3 => "DISCARD SEQUENCES".to_owned(),
            4..6 if self.may_ask() => format!("SELECT currval('{sequence}')"),
            6..8 if self.may_ask() => "SELECT lastval()".to_owned(),
            _ => self.read(),
        }
    }

    fn may_ask(&self) -> bool {
        let drawn = self.drawn;
        let is_between = self.ideal.status == TransactionStatus::Idle;
        !drawn.is_lost && (is_between || (drawn.is_known && !drawn.is_unsure))
    }
}
