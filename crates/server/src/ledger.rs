//! The ledger of owed replies: what this server has been asked and has not answered yet, in order.
//!
//! The worst bug of this field, rows for the wrong client, was each time a wrong idea of how many replies
//! are still owed. So there is one explicit queue. Whoever sends a message to the server enters it here;
//! every message from the server is held against the front; what does not fit closes the server. It decides
//! nothing about pools and holds no bytes.

use std::collections::VecDeque;

/// How many replies may be owed before no more is read from the client.
pub const OWED_MAX: usize = 16_384;

/// What one message sent to the server is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// Anything, then ReadyForQuery.
    Query,
    /// FunctionCallResponse, then ReadyForQuery.
    FunctionCall,
    /// ParseComplete.
    Parse,
    /// BindComplete.
    Bind,
    /// ParameterDescription, then RowDescription or NoData.
    DescribeStatement,
    /// RowDescription or NoData.
    DescribePortal,
    /// Rows, then CommandComplete, EmptyQueryResponse or PortalSuspended; or a COPY.
    Execute,
    /// CloseComplete.
    Close,
    /// ReadyForQuery.
    Sync,
    /// Nothing from the server: a ParseComplete or CloseComplete of our own, when its turn comes.
    Ours(Made),
}

/// A reply that we make ourselves, at its place among the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// For a Parse of a statement that this server has already.
    ParseComplete,
    /// For a Close of a statement: only the client forgets the name.
    CloseComplete,
}

/// What an entry does to the names of prepared statements when it is answered, or undone when it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The client's map of names was changed for this entry.
    pub client_name: bool,
    /// This Parse or Close changes the server's own set of statements.
    pub statement: Option<u64>,
    /// An error here is to be told as this instead of in the server's words.
    pub refusal: Option<Instead>,
}

/// Errors that the server is made to raise, so that it skips and aborts as PostgreSQL would, but whose words
/// are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// 42P05 for the client's name.
    DuplicateStatement,
    /// 54000.
    StatementTooLarge,
    /// 26000 for the unnamed statement.
    NoUnnamedStatement,
}

/// One line of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What is owed.
    pub owed: Owed,
    /// Asked by us, not by the client: the reply is swallowed.
    pub swallow: bool,
    /// What it does to statement names.
    pub marks: Marks,
}

impl Entry {
    /// An entry for a client's message.
    pub fn client(owed: Owed) -> Entry {
        Entry { owed, swallow: false, marks: Marks::default() }
    }

    /// An entry for a message of our own.
    pub fn ours(owed: Owed) -> Entry {
        Entry { owed, swallow: true, marks: Marks::default() }
    }

    fn ends_with_ready(self) -> bool {
        matches!(self.owed, Owed::Query | Owed::FunctionCall | Owed::Sync)
    }
}

/// The server sent what it does not owe. It must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected(pub u8);

/// What a reply means for the entry at the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The reply belongs to a message of our own and must not reach the client.
    pub swallow: bool,
    /// The entry that this reply completes.
    pub done: Option<Entry>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Copying {
    #[default]
    No,
    /// COPY FROM STDIN, with this many Syncs sent before it was known to be one.
    In { early_syncs: usize },
    /// COPY TO STDOUT.
    Out,
    /// Replication: no end but the connection's.
    Both,
}

/// The queue itself.
#[derive(Debug, Default)]
pub struct Ledger {
    owed: VecDeque<Entry>,
    copying: Copying,
    /// An error was answered and no Sync has been sent yet: the server discards what comes.
    skipping: bool,
    /// How many Syncs at the front may have been eaten by a COPY that failed: none, some or all of them.
    maybe_eaten: usize,
    /// A COPY failed in a way that leaves open how many replies are owed: the server is not to be reused.
    doubtful: bool,
}

impl Ledger {
    /// Whether nothing is owed.
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// How many replies are owed.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Whether the server discards everything up to the next Sync.
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// Whether the server waits for CopyData.
    pub fn is_copying_in(&self) -> bool {
        matches!(self.copying, Copying::In { .. } | Copying::Both)
    }

    /// Whether a COPY of any kind is under way.
    pub fn is_copying(&self) -> bool {
        self.copying != Copying::No
    }

    /// Whether messages were sent that no Sync has followed.
    pub fn is_unsynced(&self) -> bool {
        self.skipping || self.owed.back().is_some_and(|entry| !entry.ends_with_ready())
    }

    /// Whether an early failure of a COPY leaves the count open.
    pub fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Whether all that is still owed are Syncs that a failed COPY may have eaten.
    pub fn only_doubts_left(&self) -> bool {
        self.maybe_eaten > 0 && self.owed.len() <= self.maybe_eaten
    }

    /// Whether something of our own is still owed.
    pub fn owes_us(&self) -> bool {
        self.owed.iter().any(|entry| entry.swallow)
    }

    /// Enters a message that is sent now. While the server skips, only a Sync counts.
    pub fn push(&mut self, entry: Entry) {
        if self.skipping {
            if entry.owed != Owed::Sync {
                return;
            }
            self.skipping = false;
        }
        self.owed.push_back(entry);
    }

    /// Takes a reply of our own making whose turn it is.
    pub fn pop_made(&mut self) -> Option<(Made, Entry)> {
        match self.owed.front() {
            Some(&entry) => match entry.owed {
                Owed::Ours(made) => {
                    self.owed.pop_front();
                    Some((made, entry))
                }
                _ => None,
            },
            None => None,
        }
    }

    /// The entry whose reply comes next.
    pub fn front(&self) -> Option<&Entry> {
        self.owed.front()
    }

    /// Holds a message of the server against the front. Errors and ReadyForQuery have their own functions;
    /// notices, notifications and parameter reports are nobody's reply.
    #[inline]
    pub fn on_reply(&mut self, tag: u8) -> Result<Reply, Unexpected> {
        self.drop_eaten_syncs();
        let front = *self.owed.front().ok_or(Unexpected(tag))?;
        let done = match (front.owed, tag) {
            (Owed::Query | Owed::Execute, b'D') => false,
            (Owed::Query, b'T' | b'I') => false,
            (Owed::Query, b'C') => !self.end_copy(),
            (Owed::Query | Owed::Execute, b'd' | b'c') => self.is_copying_out(tag)?,
            (Owed::Query | Owed::Execute, b'G' | b'H' | b'W') => self.begin_copy(tag),
            (Owed::FunctionCall, b'V') | (Owed::DescribeStatement, b't') => false,
            (Owed::Parse, b'1') | (Owed::Bind, b'2') | (Owed::Close, b'3') => true,
            (Owed::DescribeStatement | Owed::DescribePortal, b'T' | b'n') => true,
            (Owed::Execute, b'C' | b'I' | b's') => self.end_copy(),
            _ => return Err(Unexpected(tag)),
        };
        if done {
            self.owed.pop_front();
        }
        Ok(Reply { swallow: front.swallow, done: done.then_some(front) })
    }

    /// The server reports an error. `undone` is given every entry that will now never be answered.
    ///
    /// Nothing owed is no fault of the server: it may end a session at any time (57P01, 25P03).
    pub fn on_error(&mut self, mut undone: impl FnMut(Entry)) -> Option<Entry> {
        let front = *self.owed.front()?;
        if let Copying::In { early_syncs } = std::mem::take(&mut self.copying) {
            self.doubtful |= early_syncs > 0;
            self.maybe_eaten = early_syncs;
        }
        if front.ends_with_ready() {
            return Some(front);
        }
        while let Some(&entry) = self.owed.front() {
            if entry.owed == Owed::Sync {
                return Some(front);
            }
            undone(entry);
            self.owed.pop_front();
        }
        self.skipping = true;
        Some(front)
    }

    /// The server is ready. Says whether that is a reply to a message of our own.
    pub fn on_ready(&mut self) -> Result<bool, Unexpected> {
        let front = *self.owed.front().ok_or(Unexpected(b'Z'))?;
        if !front.ends_with_ready() || self.copying != Copying::No {
            return Err(Unexpected(b'Z'));
        }
        self.owed.pop_front();
        self.maybe_eaten = self.maybe_eaten.saturating_sub(1);
        Ok(front.swallow)
    }

    /// The client is gone: no reply that is still owed may reach anybody.
    pub fn swallow_all(&mut self) {
        for entry in &mut self.owed {
            entry.swallow = true;
        }
    }

    /// A reply that is no ReadyForQuery cannot belong to a Sync: so a COPY ate that Sync.
    fn drop_eaten_syncs(&mut self) {
        while self.maybe_eaten > 0 && self.owed.front().is_some_and(|entry| entry.owed == Owed::Sync) {
            self.owed.pop_front();
            self.maybe_eaten -= 1;
        }
    }

    fn is_copying_out(&mut self, tag: u8) -> Result<bool, Unexpected> {
        match self.copying {
            Copying::Out | Copying::Both => Ok(false),
            Copying::No | Copying::In { .. } => Err(Unexpected(tag)),
        }
    }

    fn begin_copy(&mut self, tag: u8) -> bool {
        self.copying = match tag {
            b'G' => {
                let early_syncs = self.owed.iter().skip(1).filter(|entry| entry.owed == Owed::Sync).count();
                Copying::In { early_syncs }
            }
            b'H' => Copying::Out,
            _ => Copying::Both,
        };
        false
    }

    /// A command is complete. Syncs sent before the CopyDone that ended a COPY were read as part of it and
    /// are owed nothing (`CopyGetData` ignores Sync and Flush). Always true.
    fn end_copy(&mut self) -> bool {
        if let Copying::In { early_syncs } = std::mem::take(&mut self.copying) {
            for _ in 0..early_syncs {
                if let Some(at) = self.owed.iter().position(|entry| entry.owed == Owed::Sync) {
                    self.owed.remove(at);
                }
            }
        }
        true
    }
}
