//! What a link wants written: spans of the bytes it was given, and bytes that it made.

/// Bytes for both sides, and what is to be counted. Kept by the caller and used again for every read.
#[derive(Debug, Default)]
pub struct Out {
    /// For the server.
    pub to_server: Side,
    /// For the client.
    pub to_client: Side,
    /// For the statistics.
    pub tally: Tally,
    /// Databases that the client is about to make, drop, rename, move or copy: nobody else may be in them for that.
    pub databases: Vec<Box<[u8]>>,
}

impl Out {
    /// Forgets everything; keeps the room, unless something large took a lot of it.
    pub fn clear(&mut self) {
        self.to_server.clear();
        self.to_client.clear();
        if !self.tally.is_empty() {
            self.tally = Tally::default();
        }
        if !self.databases.is_empty() {
            self.databases.clear();
        }
    }
}

/// A piece of what is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// From here to there in the bytes that were given.
    Input(usize, usize),
    /// From here to there in [`Side::made`].
    Made(usize, usize),
}

/// What one side is to be sent, in order.
#[derive(Debug, Default)]
pub struct Side {
    spans: Vec<Span>,
    /// The bytes that `Made` spans name.
    pub made: Vec<u8>,
}

/// More room than this is given back after use, in bytes.
const KEEP_BYTES_MAX: usize = 64 << 10;

impl Side {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The pieces, in order. None is empty; neighbours are one.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The bytes of a span.
    pub fn bytes<'a>(&'a self, input: &'a [u8], span: Span) -> &'a [u8] {
        match span {
            Span::Input(from, to) => &input[from..to],
            Span::Made(from, to) => &self.made[from..to],
        }
    }

    /// Forwards a piece of what was given.
    #[inline]
    pub(crate) fn input(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        if let Some(Span::Input(_, end)) = self.spans.last_mut()
            && *end == from
        {
            *end = to;
            return;
        }
        self.spans.push(Span::Input(from, to));
    }

    /// Writes bytes of our own; gives back what the writer says.
    pub(crate) fn make<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let from = self.made.len();
        let result = write(&mut self.made);
        let to = self.made.len();
        if from != to {
            if let Some(Span::Made(_, end)) = self.spans.last_mut()
                && *end == from
            {
                *end = to;
            } else {
                self.spans.push(Span::Made(from, to));
            }
        }
        result
    }

    /// How many spans there are.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The spans of input from here on are of bytes that the caller gave itself and does not keep: they are copied.
    pub(crate) fn own_from(&mut self, first: usize, input: &[u8]) {
        let spans = self.spans.split_off(first.min(self.spans.len()));
        for span in spans {
            match span {
                Span::Input(from, to) => {
                    let start = self.made.len();
                    self.made.extend_from_slice(&input[from..to]);
                    self.spans.push(Span::Made(start, self.made.len()));
                }
                made @ Span::Made(..) => self.spans.push(made),
            }
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.made.clear();
        if self.made.capacity() > KEEP_BYTES_MAX {
            self.made = Vec::new();
        }
    }
}

/// What happened during one call, for whoever keeps the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Queries that ended.
    pub queries: u32,
    /// Transactions that ended.
    pub transactions: u32,
    /// How long the queries took, in microseconds.
    pub query_us: u64,
    /// How long the transactions took, in microseconds.
    pub transaction_us: u64,
    /// Named statements that clients parsed.
    pub client_parses: u32,
    /// Named statements that a server was sent.
    pub server_parses: u32,
    /// Binds of named statements.
    pub binds: u32,
    /// How often the client became pinned.
    pub pins: u32,
}

impl Tally {
    /// Whether nothing happened that is counted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queries | self.transactions | self.client_parses | self.server_parses | self.binds | self.pins
            == 0
    }
}
