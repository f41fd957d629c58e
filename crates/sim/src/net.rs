//! The network and the clock: pipes that delay and cut what is written to them, and the queue of what happens next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use model::Moment;

use crate::rng::Rng;

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The next segment of a pipe arrives.
    Arrive(u32),
    /// The writer of a pipe that was full may go on.
    Writable(u32),
    /// A client goes on with its script.
    Wake(u32),
    /// A client that was lied to leaves, whatever it is doing.
    Vanish(u32),
    /// A session whose gate is ours is worked on.
    Turn(u32),
    /// A session's timer.
    Timer(u32),
    /// A PostgreSQL session works on what it has received.
    Work(u32),
    /// The statement that was begun with this serial number ends.
    Awake(u32, u32),
    /// A server connection is made, or not.
    Connected(u32),
    /// A pool's time has come.
    Tick(u32),
    /// A cancel request of a client reaches the pooler.
    CancelAsked(u32),
    /// A cancel request of the pooler reaches PostgreSQL.
    CancelLands(u32),
    /// PostgreSQL has closed the socket of a cancel request.
    CancelEnds(u32),
    /// A listener is looked after.
    Keeper(u32),
    /// A listener's connection is made, or not.
    KeeperConnected(u32),
    /// There is a node to write to again.
    Elected,
    /// Something goes wrong.
    Misfortune,
    /// Who waits is looked at.
    Watch,
}

/// Who is told that something arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client(u32),
    Session(u32),
    Backend(u32),
    Server(u32),
    /// The pooler's end of a listener's connection.
    Keeper(u32),
    /// PostgreSQL's.
    Listened(u32),
}

#[derive(Debug)]
enum Segment {
    Bytes(Vec<u8>),
    End,
}

/// One direction of one connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Who reads it.
    pub(crate) reader: End,
    /// Who writes it.
    pub(crate) writer: End,
    flying: VecDeque<Segment>,
    here: Vec<u8>,
    held: usize,
    capacity: usize,
    last: Moment,
    blocked: bool,
    ended: bool,
    /// The end has arrived.
    pub(crate) eof: bool,
    /// The reader is gone: writing fails.
    pub(crate) broken: bool,
}

impl Pipe {
    /// What is written from now on takes so much longer.
    pub(crate) fn delay(&mut self, span: Duration) {
        self.last = self.last + span;
    }
}

/// What a read came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes; `true` if a full buffer or the end says that there may be more.
    Some(usize, bool),
    Nothing,
    End,
}

/// All pipes, the clock and what is to come.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) now: Moment,
    pub(crate) rng: Rng,
    pub(crate) pipes: Vec<Pipe>,
    /// Everything is told.
    pub(crate) verbose: bool,
    /// The longest delay of a segment, in microseconds.
    pub(crate) delay_max: u64,
    queue: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    serial: u64,
}

impl Net {
    pub(crate) fn new(rng: Rng) -> Net {
        Net {
            now: Moment(1_000_000),
            rng,
            pipes: Vec::new(),
            verbose: false,
            delay_max: 300,
            queue: BinaryHeap::new(),
            serial: 0,
        }
    }

    pub(crate) fn at(&mut self, when: Moment, event: Event) {
        self.serial += 1;
        self.queue.push(Reverse((when.max(self.now), self.serial, event)));
    }

    /// In so many microseconds.
    pub(crate) fn after(&mut self, micros: u64, event: Event) {
        self.at(self.now + Duration::from_micros(micros), event);
    }

    /// In at most so many microseconds.
    pub(crate) fn soon(&mut self, most: u64, event: Event) {
        let micros = self.rng.below(most + 1);
        self.after(micros, event);
    }

    /// Takes what happens next and moves the clock there.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let Reverse((when, _, event)) = self.queue.pop()?;
        self.now = self.now.max(when);
        Some(event)
    }

    pub(crate) fn pipe(&mut self, writer: End, reader: End, capacity: usize) -> u32 {
        self.pipes.push(Pipe {
            reader,
            writer,
            flying: VecDeque::new(),
            here: Vec::new(),
            held: 0,
            capacity,
            last: Moment::default(),
            blocked: false,
            ended: false,
            eof: false,
            broken: false,
        });
        self.pipes.len() as u32 - 1
    }

    /// Writes as much as fits; `None` if nobody is there to read. What is written arrives in pieces.
    pub(crate) fn write(&mut self, pipe: u32, bytes: &[u8]) -> Option<usize> {
        let target = &mut self.pipes[pipe as usize];
        if target.broken || target.ended {
            return None;
        }
        let taken = bytes.len().min(target.capacity.saturating_sub(target.held));
        target.held += taken;
        target.blocked = taken < bytes.len();
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let cut = match self.rng.below(8) {
                0 => 1,
                1 => self.rng.between(1, 8),
                2 => self.rng.between(1, rest.len() as u64),
                _ => rest.len() as u64,
            };
            let (piece, behind) = rest.split_at((cut as usize).min(rest.len()));
            self.fly(pipe, Segment::Bytes(piece.to_vec()));
            rest = behind;
        }
        Some(taken)
    }

    /// The writer closes: after all that was written comes the end.
    pub(crate) fn end(&mut self, pipe: u32) {
        if !self.pipes[pipe as usize].ended {
            self.pipes[pipe as usize].ended = true;
            self.fly(pipe, Segment::End);
        }
    }

    /// The writer dies: some of what was on its way never arrives.
    pub(crate) fn cut(&mut self, pipe: u32) {
        let target = &mut self.pipes[pipe as usize];
        if target.ended {
            return;
        }
        let keep = self.rng.index(target.flying.len() + 1);
        // The events of what is cut away find nothing.
        target.flying.truncate(keep);
        if let Some(Segment::Bytes(bytes)) = target.flying.back_mut() {
            bytes.truncate(self.rng.between(1, bytes.len() as u64) as usize);
        }
        self.end(pipe);
    }

    fn fly(&mut self, pipe: u32, segment: Segment) {
        let delay = match self.rng.below(4) {
            0 => 0,
            1 => self.rng.below(self.delay_max + 1),
            _ => self.rng.below(20),
        };
        let target = &mut self.pipes[pipe as usize];
        let when = target.last.max(self.now + Duration::from_micros(delay));
        target.last = when;
        target.flying.push_back(segment);
        self.at(when, Event::Arrive(pipe));
    }

    /// The next segment is there. False if it was cut away.
    pub(crate) fn arrive(&mut self, pipe: u32) -> bool {
        let target = &mut self.pipes[pipe as usize];
        match target.flying.pop_front() {
            Some(Segment::Bytes(bytes)) => target.here.extend_from_slice(&bytes),
            Some(Segment::End) => target.eof = true,
            None => return false,
        }
        true
    }

    /// Reads what is there into `into`, at most its length.
    pub(crate) fn read(&mut self, pipe: u32, into: &mut [u8]) -> Received {
        let source = &mut self.pipes[pipe as usize];
        let count = into.len().min(source.here.len());
        if count == 0 {
            return if source.eof { Received::End } else { Received::Nothing };
        }
        into[..count].copy_from_slice(&source.here[..count]);
        source.here.drain(..count);
        source.held -= count.min(source.held);
        let more = count == into.len() || source.eof;
        if std::mem::take(&mut source.blocked) {
            self.soon(50, Event::Writable(pipe));
        }
        Received::Some(count, more)
    }

    /// Whether a byte or the end waits to be read.
    pub(crate) fn has_news(&self, pipe: u32) -> bool {
        let source = &self.pipes[pipe as usize];
        !source.here.is_empty() || source.eof
    }

    /// Whether nothing is under way or unread.
    pub(crate) fn is_still(&self, pipe: u32) -> bool {
        let source = &self.pipes[pipe as usize];
        source.here.is_empty() && source.flying.is_empty()
    }
}
