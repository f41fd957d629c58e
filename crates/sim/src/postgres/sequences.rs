//! What a session last had of sequences. No transaction undoes it.

use std::collections::BTreeMap;

use super::text::between;
use super::{Outcome, Postgres};

/// The last value of each sequence, and of all.
#[derive(Debug, Default)]
pub(crate) struct Draws {
    of: BTreeMap<Vec<u8>, Vec<u8>>,
    last: Option<Vec<u8>>,
}

impl Draws {
    pub(super) fn draw(&mut self, sequence: &[u8], value: &[u8]) {
        self.of.insert(sequence.to_vec(), value.to_vec());
        self.last = Some(value.to_vec());
    }

    /// As DISCARD SEQUENCES does.
    pub(crate) fn forget(&mut self) {
        *self = Draws::default();
    }

    /// Whether what these bytes ask for is there.
    pub(crate) fn has_what_is_asked(&self, bytes: &[u8]) -> bool {
        let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        let is_asked = |sequence: &Vec<u8>| has(&[b"currval(", &sequence[..]].concat());
        self.last.is_some() && has(b"lastval()") || self.of.keys().any(is_asked)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }
}

impl Postgres {
    /// `None`: the function is none of a sequence's. Values are no numbers but say who drew them.
    pub(super) fn sequence_call(
        &mut self,
        function: &[u8],
        argument: &[u8],
        text: &[u8],
    ) -> Option<Result<Vec<u8>, Outcome>> {
        let value = match function {
            b"nextval" => {
                let value = between(text, b'/', b'/').trim_ascii();
                let value = value.strip_prefix(b"*").and_then(|value| value.strip_suffix(b"*"));
                let value = value.unwrap_or_default().to_vec();
                self.draws.draw(argument, &value);
                Some(value)
            }
            b"currval" => self.draws.of.get(argument).cloned(),
            b"lastval" => self.draws.last.clone(),
            _ => return None,
        };
        Some(value.ok_or_else(|| Outcome::Error("55000", "not yet defined in this session".into())))
    }

    /// The answer to the pooler's question whether it remembers any value.
    pub(super) fn answer_draws(&mut self, is_simple: bool) -> Outcome {
        let Some(value) = self.draws.last.clone() else {
            return Outcome::Error("55000", "lastval is not yet defined in this session".into());
        };
        self.census_rows(&[[Some(b"q".to_vec()), None, Some(value)]], is_simple)
    }
}
