//! Clients whose reads may go to standbys: where each of their transactions goes, and what they have written.
//!
//! A client has the pool that it entered, on the primary, and those of the standbys. Whenever it has no server, what it
//! has to say is looked at before one is asked for, and its `home` becomes the pool that is asked. What can be read is
//! `link`'s to say, who has it is `cluster`'s; this looks at bytes, and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use cluster::{Balance, Board, Need, NodeId, Parts, Reader, Weight};
use link::{Ground, Link, PrimaryReason, Verdict, Way};
use model::Moment;
use reads::Why;
use settings::Consistency;
use sql::fingerprint::examined;
use stats::Tallies;

use crate::home::Home;
use crate::lease;
use crate::leftover::Leftover;
use crate::outlive::Sent;
use crate::session::{Core, Phase, Steady};
use crate::shared::Shared;
use crate::socket::{Received, Stream};
use crate::worker::Worker;

/// So much of what a client has to say is looked at, in bytes.
const LOOK_BYTES_MAX: usize = 16 << 10;

/// Where the reads of one pool's clients may go.
pub struct Readers {
    board: Arc<Board>,
    homes: Box<[Arc<Home>]>,
    by_statement: bool,
    consistency: Consistency,
    balance: Balance,
    weights: Box<[Weight]>,
    /// The primary's part beside those; 0: it has none.
    primary_weight: u32,
    /// Up to which generation of prepared statements is known when it began.
    generation: AtomicU64,
    /// When the schema was last seen to have changed: a standby without that answers what clients were not told.
    altered_at: AtomicU64,
    turn: AtomicUsize,
    /// What each worker counted: by node and ground, then by reason.
    tallies: Box<[Tallies]>,
}

/// Why something went to the primary, beside what `link` says.
#[derive(Clone, Copy)]
enum Because {
    Asked(PrimaryReason),
    /// No standby has what is needed yet.
    Stale,
    /// No standby is fit.
    NoStandby,
    /// A standby has refused it, or was lost with it.
    Refused,
    /// The primary takes its part of the reads.
    Share,
}

/// Where to, in tables.
const PRIMARY: &str = "primary";
const GROUNDS: [&str; 4] = ["transaction", "session", "hint", "statement"];
/// Behind them are those for which a statement was judged to be no read: [`Why::ALL`].
const REASONS: [&str; 9] = [
    "not declared to read",
    "not classified yet",
    "hint",
    "session state",
    "not looked into",
    "no standby is fresh enough",
    "no standby is up",
    "refused or lost by a standby",
    "its share of the reads",
];

fn ground_number(ground: Ground) -> usize {
    match ground {
        Ground::Transaction => 0,
        Ground::Session => 1,
        Ground::Hint => 2,
        Ground::Statement => 3,
    }
}

fn reason_number(why: Because) -> usize {
    match why {
        Because::Asked(PrimaryReason::NoRead) => 0,
        Because::Asked(PrimaryReason::Unknown) => 1,
        Because::Asked(PrimaryReason::Hint) => 2,
        Because::Asked(PrimaryReason::State) => 3,
        Because::Asked(PrimaryReason::Unseen) => 4,
        Because::Stale => 5,
        Because::NoStandby => 6,
        Because::Refused => 7,
        Because::Share => 8,
        Because::Asked(PrimaryReason::Judged(why)) => REASONS.len() + usize::from(why),
    }
}

/// What is known of a client whose reads may go to standbys.
pub struct Split {
    /// Nothing if they may no more.
    readers: Option<Arc<Readers>>,
    /// The pool that it entered.
    main: Arc<Home>,
    /// When its last transaction ended that may have written.
    wrote_at: Moment,
    /// The standby that it is on, or waits for.
    on: Option<NodeId>,
    /// What it does on its server writes nothing, wherever that is.
    is_read: bool,
    /// It has opened a transaction with its first words.
    opens: bool,
    /// It has had its first words.
    has_begun: bool,
    /// What it has to say goes to the primary: a standby has refused it.
    must_write: bool,
    /// By its text, that was for a standby; and every standby would refuse it.
    is_refuted: bool,
    /// What it has to say is on a standby because of its text.
    by_statement: bool,
    /// It goes to the primary only because no standby would do.
    has_missed: bool,
}

/// Whether a server that a client is given may be read from.
pub enum Fit {
    /// It may.
    Yes,
    /// The client goes to the primary instead.
    No,
    /// It may in a moment, and nobody else can be had.
    NotYet,
}

/// When a client looks again for whom that is so.
pub const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What came of looking.
pub enum Choice {
    /// A server is to be asked for.
    Go,
    /// There is nothing to be said.
    Rest,
    /// The client is gone.
    End,
}

impl Readers {
    /// Of what the hub says; what was counted before goes on if the nodes are the same.
    pub fn new(
        split: &hub::Split<crate::home::ClientRef, crate::home::ServerRef>,
        homes: Box<[Arc<Home>]>,
        workers: usize,
    ) -> Readers {
        let tallies = || Tallies::new(homes.len() * GROUNDS.len() + REASONS.len() + Why::ALL.len());
        Readers {
            board: Arc::clone(&split.board),
            by_statement: split.by_statement,
            consistency: split.consistency,
            balance: split.balance,
            weights: split.weights.clone().into(),
            primary_weight: split.primary_weight,
            generation: AtomicU64::new(0),
            altered_at: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            tallies: (0..workers).map(|_| tallies()).collect(),
            homes,
        }
    }

    /// What was counted: where to, why, and how often.
    pub fn counts(&self) -> Vec<(String, &'static str, u64)> {
        let sum = |at: usize| self.tallies.iter().map(|tallies| tallies.count(at)).sum();
        let mut counts = Vec::new();
        for (node, home) in self.homes.iter().enumerate() {
            let place = home.cell.key.reader.as_ref().map(ToString::to_string).unwrap_or_default();
            for (at, ground) in GROUNDS.iter().enumerate() {
                counts.push((place.clone(), *ground, sum(node * GROUNDS.len() + at)));
            }
        }
        let judged = Why::ALL.iter().map(|why| why.words());
        for (at, reason) in REASONS.into_iter().chain(judged).enumerate() {
            let count = sum(self.homes.len() * GROUNDS.len() + at);
            // Why statements are no reads: what was never met is not worth a line.
            if at < REASONS.len() || count > 0 {
                counts.push((PRIMARY.to_owned(), reason, count));
            }
        }
        counts
    }

    fn count_read(&self, worker: &Worker, node: NodeId, ground: Ground) {
        let at = node.index() * GROUNDS.len() + ground_number(ground);
        self.tallies[usize::from(worker.id.0)].add(at);
    }

    fn count_primary(&self, worker: &Worker, why: Because) {
        let at = self.homes.len() * GROUNDS.len() + reason_number(why);
        self.tallies[usize::from(worker.id.0)].add(at);
    }

    /// What a client that last wrote then must find where it reads.
    fn need(&self, worker: &Worker, wrote_at: Moment) -> Need {
        let altered_at = self.altered_at(&worker.shared);
        match self.consistency {
            Consistency::Session => Need::After(wrote_at.max(altered_at)),
            Consistency::Bounded(most) => Need::After((worker.now - most).max(altered_at)),
            Consistency::Eventual => Need::Nothing,
        }
    }

    fn altered_at(&self, shared: &Shared) -> Moment {
        let generation = shared.statements.generation();
        if self.generation.load(Ordering::Acquire) != generation {
            // Who sees the new generation sees when it was found.
            self.altered_at.fetch_max(shared.clock.now().0, Ordering::AcqRel);
            self.generation.store(generation, Ordering::Release);
        }
        Moment(self.altered_at.load(Ordering::Acquire))
    }

    /// Who has a read that needs this. The primary takes its part only if it is to, and has somebody to give.
    fn pick(&self, need: Need, main: &Home, shares: bool) -> Option<Reader> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let load = |reader: Reader| match reader {
            Reader::Standby(node) => self.homes[node.index()].pool().load(),
            Reader::Primary => main.pool().load(),
        };
        let pick = |primary| {
            let parts = Parts { standbys: &self.weights, primary };
            self.board.pick(need, self.balance, parts, turn, load)
        };
        let primary = if shares { self.primary_weight } else { 0 };
        match pick(primary) {
            Some(Reader::Primary) if main.pool().is_held() => pick(0),
            picked => picked,
        }
    }

    /// What is known of a statement's text. What nobody has asked about yet is found out meanwhile; what was taken for
    /// a read and is refuted is none any more.
    fn verdict(&self, worker: &Worker, main: &Arc<Home>, text: &[u8], is_refuted: bool) -> Verdict {
        if !self.by_statement {
            return Verdict::Unjudged;
        }
        let fingerprint = match examined(text, &worker.shared.fingerprint_key) {
            Ok(fingerprint) => fingerprint,
            Err(unfit) => return other(reads::unfit(text, unfit)),
        };
        match main.verdicts().of(fingerprint) {
            Some(reads::Verdict::Read) if is_refuted => {
                main.verdicts().refute(fingerprint);
                other(Why::Refuted)
            }
            Some(reads::Verdict::Read) => Verdict::Read,
            Some(reads::Verdict::Primary(Why::Undecided)) => Verdict::Unknown,
            Some(reads::Verdict::Primary(why)) => other(why),
            None => {
                worker.shared.classify(main, fingerprint, text);
                Verdict::Unknown
            }
        }
    }
}

fn other(why: Why) -> Verdict {
    Verdict::Other(why.index() as u8)
}

impl Split {
    /// For a client that enters this pool; nothing, if its reads stay there.
    pub fn begin(shared: &Shared, home: &Arc<Home>, splits: bool) -> Option<Box<Sent>> {
        if !splits {
            return None;
        }
        let readers = shared.readers(home)?;
        Some(Box::new(Sent::of(Split::new(readers, Arc::clone(home), Moment::default()))))
    }

    fn new(readers: Arc<Readers>, main: Arc<Home>, wrote_at: Moment) -> Split {
        Split {
            readers: Some(readers),
            main,
            wrote_at,
            on: None,
            is_read: false,
            opens: false,
            has_begun: false,
            must_write: false,
            is_refuted: false,
            by_statement: false,
            has_missed: false,
        }
    }

    /// Whether its server is a standby.
    pub fn is_on_standby(&self) -> bool {
        self.on.is_some()
    }

    /// Whether what it sends goes on one unit at a time.
    pub fn goes_by_units(&self) -> bool {
        self.on.is_some() || self.is_read
    }

    /// It has no server any more.
    #[inline]
    pub fn parted(&mut self, shared: &Shared) {
        if self.on.is_none() && !self.is_read {
            // Not the worker's time, which is of before the answer came.
            self.wrote_at = shared.clock.now();
        }
        (self.is_read, self.opens, self.has_begun) = (false, false, false);
    }

    /// What it has to say next goes to the primary, and may write there.
    pub fn must_write(&mut self) {
        self.must_write = true;
    }
}

/// The client's, if its reads may go to standbys.
#[inline]
pub fn of(steady: &mut Steady) -> Option<&mut Split> {
    steady.sent.as_mut()?.split.as_mut()
}

/// The settings have changed: its reads may go elsewhere, or nowhere else.
pub fn renew(shared: &Shared, steady: &mut Steady) {
    let splits = steady.link.policy().splits;
    let own = of(steady).map(|split| Arc::clone(&split.main));
    let main = own.unwrap_or_else(|| Arc::clone(&steady.home));
    let readers = if splits { shared.readers(&main) } else { None };
    match (of(steady), readers) {
        (Some(split), readers) => split.readers = readers,
        (None, Some(readers)) => {
            let split = Split::new(readers, main, shared.clock.now());
            steady.sent.get_or_insert_default().split = Some(split);
        }
        (None, None) => {}
    }
}

/// Looks at what the client has to say, and makes the pool where that may be said its home.
pub fn decide(worker: &mut Worker, core: &mut Core) -> Choice {
    let Core { stream, pending, phase, readable, hung_up, .. } = core;
    let Phase::Steady(steady) = phase else { return Choice::Rest };
    let Some(readers) = of(steady).map(|split| split.readers.clone()) else { return Choice::Go };
    let Some(readers) = readers else {
        to_main(steady);
        return Choice::Go;
    };
    let mut seen = match look(worker, stream, pending, steady.unread, readable) {
        Ok(seen) => seen,
        Err(choice) => return choice,
    };
    let mut way = way(worker, steady, pending, seen, &readers);
    if way == Way::Primary(PrimaryReason::Unseen)
        && !pending.is_empty()
        && pending.len() < LOOK_BYTES_MAX
        && *readable
        && let Received::Some(count, more) = stream.receive(&mut worker.scratch[..LOOK_BYTES_MAX])
    {
        // What is not whole yet may be by now.
        *readable = more || *hung_up;
        pending.push(&worker.scratch[..count]);
        seen = 0;
        way = self::way(worker, steady, pending, seen, &readers);
    }
    if !pending.is_empty() {
        steady.unread = true;
    }
    go(worker, steady, way, &readers);
    Choice::Go
}

fn way(worker: &Worker, steady: &Steady, pending: &Leftover, seen: usize, readers: &Readers) -> Way {
    let bytes = if pending.is_empty() { &worker.scratch[..seen] } else { pending };
    let Some(split) = steady.sent.as_ref().and_then(|sent| sent.split.as_ref()) else {
        return Way::Primary(PrimaryReason::Unseen);
    };
    steady.link.route(bytes, &mut |text| readers.verdict(worker, &split.main, text, split.is_refuted))
}

/// What the client has to say: in `pending`, or else so many bytes of the scratch buffer, which are still in the kernel.
fn look(
    worker: &mut Worker,
    stream: &mut Stream,
    pending: &mut Leftover,
    unread: bool,
    readable: &mut bool,
) -> Result<usize, Choice> {
    if unread && !pending.is_empty() {
        return Ok(0);
    }
    let scratch = &mut worker.scratch[..LOOK_BYTES_MAX];
    // Under TLS there is no looking without taking.
    let takes = stream.tls().is_some() || !pending.is_empty();
    let received = if takes { stream.receive(scratch) } else { stream.peek(scratch) };
    match received {
        Received::Some(count, more) => {
            if !takes {
                return Ok(count);
            }
            *readable = more;
            pending.push(&scratch[..count]);
            Ok(0)
        }
        Received::Nothing => {
            *readable = false;
            Err(Choice::Rest)
        }
        Received::End | Received::Broken => Err(Choice::End),
    }
}

fn go(worker: &mut Worker, steady: &mut Steady, way: Way, readers: &Arc<Readers>) {
    let Some(split) = of(steady) else { return };
    let must_write = std::mem::take(&mut split.must_write);
    (split.is_refuted, split.by_statement) = (false, false);
    (split.has_begun, split.opens, split.is_read, split.has_missed) = (false, false, false, false);
    let Way::Standby { ground, opens, is_read } = way else {
        let Way::Primary(reason) = way else { return };
        readers.count_primary(worker, if must_write { Because::Refused } else { Because::Asked(reason) });
        return to_main(steady);
    };
    if must_write {
        readers.count_primary(worker, Because::Refused);
        return to_main(steady);
    }
    (split.opens, split.is_read) = (opens, is_read);
    split.by_statement = ground == Ground::Statement;
    let need = readers.need(worker, split.wrote_at);
    // Who asks for a standby by name gets one.
    match readers.pick(need, &split.main, ground != Ground::Hint) {
        Some(Reader::Primary) => {
            readers.count_primary(worker, Because::Share);
            to_main(steady);
        }
        Some(Reader::Standby(node)) => {
            readers.count_read(worker, node, ground);
            split.on = Some(node);
            let home = &readers.homes[node.index()];
            if !Arc::ptr_eq(&steady.home, home) {
                steady.home = Arc::clone(home);
            }
        }
        None => miss(worker, steady, readers),
    }
}

/// No standby will do: it reads on the primary.
fn miss(worker: &Worker, steady: &mut Steady, readers: &Readers) {
    let is_stale = readers.board.has_open();
    if is_stale {
        readers.board.missed(worker.now);
    }
    readers.count_primary(worker, if is_stale { Because::Stale } else { Because::NoStandby });
    to_main(steady);
    if let Some(split) = of(steady) {
        split.has_missed = true;
    }
}

/// When a client that waits for the primary only because no standby would do is to look for one again.
pub fn looks_at(worker: &Worker, steady: &Steady) -> Moment {
    let split = steady.sent.as_ref().and_then(|sent| sent.split.as_ref());
    match split.is_some_and(|split| split.has_missed) {
        true => worker.now + LOOK_AGAIN,
        false => Moment::NEVER,
    }
}

/// Looks for one again, if the primary cannot be had. True if there is one: then it waits for the primary no more.
#[cold]
pub fn look_again(worker: &Worker, steady: &mut Steady) -> bool {
    let Some(ticket) = steady.ticket else { return false };
    let Some(split) = of(steady).filter(|split| split.has_missed) else { return false };
    let Some(readers) = split.readers.clone() else { return false };
    let need = readers.need(worker, split.wrote_at);
    let main = Arc::clone(&split.main);
    let looks =
        main.pool().is_held() && readers.pick(need, &main, false).is_some() && main.pool().forget(ticket);
    if looks {
        steady.ticket = None;
    }
    looks
}

/// It goes to the pool that it entered.
fn to_main(steady: &mut Steady) {
    let Some(split) = of(steady) else { return };
    split.on = None;
    let main = Arc::clone(&split.main);
    if !Arc::ptr_eq(&steady.home, &main) {
        steady.home = main;
    }
}

/// The standby's pool has nothing for it now.
#[cold]
pub fn turn_back(worker: &Worker, steady: &mut Steady) {
    let readers = of(steady).and_then(|split| split.readers.clone());
    to_main(steady);
    if let Some(readers) = readers {
        readers.count_primary(worker, Because::NoStandby);
    }
}

/// Whether a client that is given a server of a standby may read there after all, which was connected then.
#[cold]
pub fn may_read(worker: &Worker, steady: &mut Steady, connected: Moment) -> Fit {
    let Some(split) = of(steady) else { return Fit::Yes };
    let (Some(readers), Some(node)) = (split.readers.clone(), split.on) else {
        to_main(steady);
        return Fit::No;
    };
    let need = readers.need(worker, split.wrote_at);
    if readers.board.fits_on(node, need, connected) {
        return Fit::Yes;
    }
    if readers.board.fits(node, need) && split.main.pool().is_held() {
        // Only the connection is too new, and the primary has none: the node is asked soon.
        readers.board.missed(worker.now);
        return Fit::NotYet;
    }
    miss(worker, steady, &readers);
    Fit::No
}

/// What of the bytes may be sent on now.
#[cold]
pub fn share(link: &mut Link, sent: &mut Option<Box<Sent>>, input: &[u8]) -> usize {
    let limit = link.first_unit(input);
    let Some(sent) = sent else { return limit };
    let is_spent = sent.is_spent();
    let Some(split) = &mut sent.split else { return limit };
    if split.on.is_some() {
        link.set_may_retry(!is_spent);
    } else if split.has_begun && limit > 0 {
        // On the primary a transaction that was declared read-only can still be made another.
        split.is_read &= split.opens && link.stays_reading(&input[..limit]);
    }
    split.has_begun |= limit > 0;
    limit
}

/// What the client is about to say would keep its server: that must be the primary. False if it has begun here already.
#[cold]
pub fn leave(worker: &mut Worker, steady: &mut Steady) -> bool {
    let is_through = steady.lease.as_mut().is_some_and(|lease| lease.is_through(&mut worker.outbox));
    if !is_through || !steady.link.server().is_some_and(|server| server.is_shareable()) {
        return false;
    }
    steady.link.client_is_silent();
    lease::give_up(worker, steady);
    if let Some(split) = of(steady) {
        split.must_write();
    }
    true
}

/// What a standby has refused is sent to the primary. The client has heard nothing of it.
#[cold]
pub fn again(worker: &mut Worker, core: &mut Core) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    let is_for_good = steady.link.is_refused_for_good();
    let is_clean = steady.link.release_due()
        && steady.lease.as_mut().is_some_and(|lease| lease.is_through(&mut worker.outbox));
    if is_clean {
        lease::release(worker, steady);
    } else {
        lease::close_server(worker, steady);
    }
    repeat(steady, &mut core.pending);
    if let Some(split) = of(steady) {
        split.must_write();
        // Of several statements in one unit the first that was taken for a read stands for all: whichever it was, all of
        // them go to the primary.
        split.is_refuted = is_for_good && split.by_statement;
    }
}

/// What the client has sent is before it again, to be sent elsewhere.
pub fn repeat(steady: &mut Steady, pending: &mut Leftover) {
    let Some(sent) = &mut steady.sent else { return };
    let (first, rest) = (sent.take_back(), std::mem::take(pending));
    steady.link.forget_parsed(&first);
    pending.push(&first);
    pending.push(&rest);
    (steady.unread, steady.stalled) = (true, false);
}
