//! What a client listens on, and which notifications it must hear or may hear. Notifications are numbered in the order of
//! their commits; who listens when is told in the same numbers.

use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A notification that was committed.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) database: usize,
    pub(crate) channel: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// Between two moments it listened on a channel.
#[derive(Clone, Debug)]
struct Past {
    channel: Vec<u8>,
    from: usize,
    until: usize,
}

/// All of a client.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    /// Since when it listens, as it knows.
    open: BTreeMap<Vec<u8>, usize>,
    past: Vec<Past>,
    /// Since when a LISTEN is under way.
    about: BTreeMap<Vec<u8>, usize>,
    /// It may be about to listen no more.
    is_ending: bool,
    due: BTreeSet<usize>,
    heard: HashSet<usize>,
    newest: BTreeMap<Vec<u8>, usize>,
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

impl Ears {
    /// It says something; so many notifications were sent until now.
    pub(crate) fn say(&mut self, bytes: &[u8], channels: &[&str], sent: usize) {
        if has(bytes, b"UNLISTEN") || has(bytes, b"DISCARD ALL") {
            self.is_ending = true;
            self.due.clear();
        }
        for channel in channels {
            if has(bytes, format!("LISTEN {channel}").as_bytes()) {
                self.about.entry(channel.as_bytes().to_vec()).or_insert(sent);
            }
        }
    }

    /// It has been answered between two transactions, and listens on these.
    pub(crate) fn settle(&mut self, channels: &BTreeSet<Vec<u8>>, sent: usize) {
        let about = std::mem::take(&mut self.about);
        self.is_ending = false;
        for channel in channels {
            let from = about.get(channel).copied().unwrap_or(sent);
            self.open.entry(channel.clone()).or_insert(from);
        }
        let Ears { open, past, .. } = self;
        open.retain(|channel, from| {
            let stays = channels.contains(channel);
            if !stays {
                past.push(Past { channel: channel.clone(), from: *from, until: sent });
            }
            stays
        });
    }

    /// A notification was committed.
    pub(crate) fn sent(&mut self, number: usize, channel: &[u8]) {
        if !self.is_ending && self.open.contains_key(channel) {
            self.due.insert(number);
        }
    }

    /// What was sent until now may not come any more: it has been told so.
    pub(crate) fn warned(&mut self) {
        self.due.clear();
    }

    /// The oldest that it still has to hear.
    pub(crate) fn due(&self) -> Option<usize> {
        self.due.first().copied()
    }

    /// It hears one; or why it should not.
    pub(crate) fn hear(&mut self, number: usize, channel: &[u8]) -> Result<(), &'static str> {
        self.due.remove(&number);
        if !self.heard.insert(number) {
            return Err("twice");
        }
        let is_open = |from: Option<&usize>| from.is_some_and(|from| *from <= number);
        let was_open = |past: &Past| past.channel == channel && past.from <= number && number < past.until;
        if !is_open(self.open.get(channel))
            && !is_open(self.about.get(channel))
            && !self.past.iter().any(was_open)
        {
            return Err("and did not listen when it was sent");
        }
        let newest = self.newest.entry(channel.to_vec()).or_insert(number);
        if *newest > number {
            return Err("behind what was sent after it");
        }
        *newest = number;
        Ok(())
    }
}
