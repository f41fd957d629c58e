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
    /// Nothing: a CopyDone or CopyFail. It ends a COPY that waits for it by then; else it is ignored.
    CopyEnd,
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
    /// The shared statement that this is about; a Parse or Close changes the server's own set of them.
    pub statement: Option<u64>,
    /// An error here is to be told as this instead of in the server's words.
    pub refusal: Option<Instead>,
    /// If this runs at all, the session is not fit for others afterwards.
    pub spoils: bool,
    /// What it does to the session is noted, and waits for its CommandComplete.
    pub state: bool,
    /// A question of our own about the session's state: its rows are for us.
    pub census: bool,
    /// Names in its text are not those that the client wrote.
    pub renamed: bool,
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
    /// 26000 for the client's name.
    UnknownStatement,
    /// 0A000: the result is another one than when it was prepared.
    StalePlan,
    /// 0A000: it would make session state, which is refused.
    State,
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

    /// An entry for a client's message about a shared statement.
    pub fn about(owed: Owed, statement: u64) -> Entry {
        let marks = Marks { statement: Some(statement), ..Marks::default() };
        Entry { owed, swallow: false, marks }
    }

    /// The statement that the server will have after this, or not: the statement and which.
    pub fn change(self) -> Option<(u64, bool)> {
        let id = self.marks.statement?;
        match self.owed {
            // An Execute about a statement runs its PREPARE.
            Owed::Parse | Owed::Execute => Some((id, true)),
            Owed::Close => Some((id, false)),
            _ => None,
        }
    }

    /// The statement whose description this is owed, itself or a portal's of it.
    pub fn description(self) -> Option<u64> {
        let is_description = matches!(self.owed, Owed::DescribeStatement | Owed::DescribePortal);
        self.marks.statement.filter(|_| is_description)
    }

    fn ends_with_ready(&self) -> bool {
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

/// Which messages change nothing about what is owed, and go to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Each must be held against the ledger.
    Nothing,
    /// DataRow.
    Rows,
    /// DataRow, RowDescription, and CommandComplete.
    Results,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Copying {
    #[default]
    No,
    /// COPY FROM STDIN.
    In,
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
    /// The last that was sent is part of a batch that no Sync has ended.
    batching: bool,
    /// How many batches and queries were ended so far.
    batch: u64,
    /// How many CopyDones and CopyFails are entered.
    copy_ends: usize,
    /// How many of the Syncs owed may have been eaten by a COPY that failed, and will never be answered.
    maybe_eaten: usize,
    /// The session is not fit for others, whatever it has answered.
    doubtful: bool,
}

impl Ledger {
    /// Whether nothing is owed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// How many replies are owed.
    #[inline]
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// What is owed, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.owed.iter()
    }

    /// Whether the server discards everything up to the next Sync.
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// Whether the server waits for CopyData.
    pub fn is_copying_in(&self) -> bool {
        matches!(self.copying, Copying::In | Copying::Both)
    }

    /// Whether a COPY of any kind is under way.
    pub fn is_copying(&self) -> bool {
        self.copying != Copying::No
    }

    /// Whether messages were sent that no Sync has followed, answered or not: the server may be inside a
    /// transaction that no ReadyForQuery has told of.
    #[inline]
    pub fn is_unsynced(&self) -> bool {
        self.skipping || self.batching
    }

    /// Which batch is being sent. An error ends its own batch only, and so undoes nothing sent in another.
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Whether a COPY failed in a way that leaves open how many replies are owed, or the session is not fit
    /// for others.
    pub fn is_doubtful(&self) -> bool {
        self.maybe_eaten > 0 || self.doubtful
    }

    /// Whether that may still happen to a COPY which was sent. Meanwhile nobody knows behind which of two
    /// ReadyForQuery a reply of our own would have its place: so there must be none.
    pub fn may_come_to_doubt(&self) -> bool {
        self.maybe_eaten > 0 || self.copy_ends > 0 || self.copying == Copying::In
    }

    /// Whether all that is still owed are Syncs that a failed COPY may have eaten. Once the server has been
    /// ready since, a query of our own shows which: its reply comes only after theirs.
    pub fn only_doubts_left(&self) -> bool {
        self.maybe_eaten > 0 && self.owed.len() - self.copy_ends <= self.maybe_eaten
    }

    /// Whether a batch or query that was sent whole is not answered yet.
    pub fn owes_ready(&self) -> bool {
        self.owed.iter().any(|entry| entry.ends_with_ready())
    }

    /// Whether something of our own is still owed.
    pub fn owes_us(&self) -> bool {
        self.owed.iter().any(|entry| entry.swallow)
    }

    /// Enters a message that is sent now. While the server skips, only a Sync counts.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if self.skipping && entry.owed != Owed::Sync {
            return;
        }
        match entry.owed {
            Owed::Sync | Owed::Query | Owed::FunctionCall => {
                self.skipping = false;
                self.batching = false;
                self.batch += 1;
            }
            Owed::CopyEnd if self.owed.is_empty() => return,
            Owed::CopyEnd => self.copy_ends += 1,
            Owed::Ours(_) => {}
            _ => self.batching = true,
        }
        self.owed.push_back(entry);
    }

    /// What was entered last is a question about the session's state.
    pub fn mark_last_census(&mut self) {
        if let Some(entry) = self.owed.back_mut() {
            entry.marks.census = true;
        }
    }

    /// What may pass without being entered: the answer to a client's query is rows above all.
    #[inline]
    pub fn passes(&self) -> Passes {
        let Some(front) = self.owed.front() else { return Passes::Nothing };
        if front.swallow || front.marks.spoils || self.copying != Copying::No || self.maybe_eaten > 0 {
            return Passes::Nothing;
        }
        match front.owed {
            Owed::Query if !front.marks.state => Passes::Results,
            Owed::Query | Owed::Execute => Passes::Rows,
            _ => Passes::Nothing,
        }
    }

    /// Whether a reply of our own making is next.
    #[inline]
    pub fn is_made_due(&self) -> bool {
        matches!(self.owed.front(), Some(Entry { owed: Owed::Ours(_), .. }))
    }

    /// Takes a reply of our own making whose turn it is.
    pub fn pop_made(&mut self) -> Option<(Made, Entry)> {
        let entry = *self.owed.front()?;
        let Owed::Ours(made) = entry.owed else { return None };
        self.pop();
        Some((made, entry))
    }

    /// The entry whose reply comes next.
    pub fn front(&self) -> Option<&Entry> {
        self.owed.front()
    }

    /// A reply comes that is no ReadyForQuery. It cannot belong to a Sync: so if the next ones owed are Syncs
    /// that a failed COPY may have eaten, it did. Replies of our own may be due after this.
    pub fn drop_eaten_syncs(&mut self) {
        while self.maybe_eaten > 0 && self.owed.front().is_some_and(|entry| entry.owed == Owed::Sync) {
            self.pop();
            self.maybe_eaten -= 1;
        }
    }

    /// Holds a message of the server against the front. Errors and ReadyForQuery have their own functions;
    /// notices, notifications and parameter reports are nobody's reply.
    #[inline(always)]
    pub fn on_reply(&mut self, tag: u8) -> Result<Reply, Unexpected> {
        let front = *self.owed.front().ok_or(Unexpected(tag))?;
        let done = match (front.owed, tag) {
            (Owed::Query | Owed::Execute, b'D') => false,
            (Owed::Query, b'T' | b'I') => {
                self.doubtful |= front.marks.spoils;
                false
            }
            (Owed::Query, b'C') => {
                self.doubtful |= front.marks.spoils;
                self.end_copy(tag)?;
                false
            }
            (Owed::Query | Owed::Execute, b'd' | b'c') => self.is_copying_out(tag)?,
            (Owed::Query | Owed::Execute, b'G' | b'H' | b'W') => self.begin_copy(tag),
            (Owed::FunctionCall, b'V') | (Owed::DescribeStatement, b't') => false,
            (Owed::Parse, b'1') | (Owed::Bind, b'2') | (Owed::Close, b'3') => true,
            (Owed::DescribeStatement | Owed::DescribePortal, b'T' | b'n') => true,
            (Owed::Execute, b'C' | b'I' | b's') => {
                self.end_copy(tag)?;
                true
            }
            _ => return Err(Unexpected(tag)),
        };
        if done {
            self.pop();
        }
        Ok(Reply { swallow: front.swallow, done: done.then_some(front) })
    }

    /// The server reports an error. `undone` is given every entry that will now never be answered, in order.
    ///
    /// Nothing owed is no fault of the server: it may end a session at any time (57P01, 25P03).
    pub fn on_error(&mut self, mut undone: impl FnMut(Entry)) -> Option<Entry> {
        let front = *self.owed.front()?;
        if std::mem::take(&mut self.copying) == Copying::In {
            let before_end = self.owed.iter().take_while(|entry| entry.owed != Owed::CopyEnd);
            self.maybe_eaten = before_end.filter(|entry| entry.owed == Owed::Sync).count();
        }
        if front.ends_with_ready() {
            return Some(front);
        }
        while let Some(&entry) = self.owed.front() {
            if entry.owed == Owed::Sync {
                return Some(front);
            }
            undone(entry);
            self.copy_ends -= usize::from(entry.owed == Owed::CopyEnd);
            self.owed.pop_front();
        }
        self.skipping = true;
        Some(front)
    }

    /// The server is ready. Says whether that is a reply to a message of our own.
    #[inline]
    pub fn on_ready(&mut self) -> Result<bool, Unexpected> {
        let front = self.owed.front().ok_or(Unexpected(b'Z'))?;
        if !front.ends_with_ready() || self.copying != Copying::No {
            return Err(Unexpected(b'Z'));
        }
        let is_ours = front.swallow;
        self.pop();
        if self.maybe_eaten > 0 {
            // Whose this was, nobody can say; but no more can be eaten than are left.
            let syncs = self.owed.iter().filter(|entry| entry.owed == Owed::Sync).count();
            self.maybe_eaten = self.maybe_eaten.min(syncs);
        }
        Ok(is_ours)
    }

    /// Whether the session is not fit for others although nothing is in doubt about what is owed.
    pub fn is_spoilt(&self) -> bool {
        self.doubtful && self.maybe_eaten == 0
    }

    /// The client is gone: no reply that is still owed may reach anybody.
    pub fn swallow_all(&mut self) {
        for entry in &mut self.owed {
            entry.swallow = true;
        }
    }

    /// Takes the front, and the ends of COPYs behind it: when nothing before them waits for them, the server
    /// ignores them.
    #[inline]
    fn pop(&mut self) {
        self.owed.pop_front();
        while self.owed.front().is_some_and(|entry| entry.owed == Owed::CopyEnd) {
            self.copy_ends -= 1;
            self.owed.pop_front();
        }
    }

    fn is_copying_out(&mut self, tag: u8) -> Result<bool, Unexpected> {
        match self.copying {
            Copying::Out | Copying::Both => Ok(false),
            Copying::No | Copying::In => Err(Unexpected(tag)),
        }
    }

    fn begin_copy(&mut self, tag: u8) -> bool {
        self.copying = match tag {
            b'G' => Copying::In,
            b'H' => Copying::Out,
            _ => Copying::Both,
        };
        false
    }

    /// A command is complete. Where it was a COPY from the client, the CopyDone that ended it is the next one
    /// sent; Syncs sent before that were read as part of it and are owed nothing (`CopyGetData` ignores Sync
    /// and Flush), so that the batch may still be without its Sync.
    #[inline]
    fn end_copy(&mut self, tag: u8) -> Result<(), Unexpected> {
        if std::mem::take(&mut self.copying) != Copying::In {
            return Ok(());
        }
        let end = self.owed.iter().position(|entry| entry.owed == Owed::CopyEnd).ok_or(Unexpected(tag))?;
        self.copy_ends -= 1;
        let mut at = 0;
        self.owed.retain(|entry| {
            let is_eaten = at <= end && matches!(entry.owed, Owed::Sync | Owed::CopyEnd);
            at += 1;
            !is_eaten
        });
        if !self.owes_ready() {
            self.batching = true;
        }
        Ok(())
    }
}
