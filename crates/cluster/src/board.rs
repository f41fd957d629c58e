//! Who may be read from, as clients see it: written with each answer of a node, read without a lock.
//!
//! A node's two moments belong together. `fresh` says that all which was committed before it is replayed there; `asked`
//! is when the node was asked for what that relies on. A connection that was made before `asked` and still lives leads
//! to the very run of the server that answered: one that was made later may lead to a server that has started again,
//! and goes through its log anew.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::Moment;

use crate::choose::{Balance, Weight, weight_of};
use crate::cluster::NodeId;

/// What a read needs to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All that was committed up to this moment.
    After(Moment),
    /// Whatever is there.
    Nothing,
}

/// Who has a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The primary, which has all that there is.
    Primary,
    /// A node that is none.
    Standby(NodeId),
}

/// What parts of the reads there are.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// By node, of those that are no primary.
    pub standbys: &'a [Weight],
    /// The primary's, whichever node that is: it is one more of the nearest. 0: it has none.
    pub primary: u32,
}

/// One node.
#[derive(Debug, Default)]
struct Seat {
    /// It may have reads at all.
    is_open: AtomicBool,
    fresh: AtomicU64,
    asked: AtomicU64,
}

/// All nodes of a cluster.
#[derive(Debug)]
pub struct Board {
    seats: Box<[Seat]>,
    /// When a client last found no standby that was current enough.
    missed_at: AtomicU64,
}

impl Board {
    /// Nobody may be read from yet.
    pub(crate) fn new(count: usize) -> Board {
        Board { seats: (0..count).map(|_| Seat::default()).collect(), missed_at: AtomicU64::new(0) }
    }

    /// What is known of a node now. `asked`: when it was asked.
    pub(crate) fn publish(&self, node: NodeId, is_open: bool, fresh: Moment, asked: Moment) {
        let Some(seat) = self.seats.get(node.index()) else { return };
        // Who sees the later `asked` sees this `fresh` too, or a later one.
        seat.fresh.store(fresh.0, Ordering::Release);
        seat.asked.store(asked.0, Ordering::Release);
        seat.is_open.store(is_open, Ordering::Release);
    }

    /// Nobody may be read from any more.
    pub(crate) fn close(&self) {
        for node in 0..self.seats.len() as u16 {
            self.publish(NodeId(node), false, Moment::default(), Moment::default());
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Whether any node may have reads at all.
    pub fn has_open(&self) -> bool {
        self.seats.iter().any(Seat::is_open)
    }

    /// Whether a read that needs this finds it on this node.
    pub fn fits(&self, node: NodeId, need: Need) -> bool {
        self.seats.get(node.index()).is_some_and(|seat| seat.is_open() && seat.has(need))
    }

    /// Whether it finds it on a connection to this node that was made at that moment.
    pub fn fits_on(&self, node: NodeId, need: Need, connected: Moment) -> bool {
        let Some(seat) = self.seats.get(node.index()) else { return false };
        // First the question and then what its answer was: the other way round, that may be an older one's.
        let asked = Moment(seat.asked.load(Ordering::Acquire));
        seat.is_open() && (need == Need::Nothing || (connected < asked && seat.has(need)))
    }

    /// All that was committed before this moment is replayed on the node, as far as is known.
    pub fn fresh(&self, node: NodeId) -> Moment {
        self.seats.get(node.index()).map_or(Moment::default(), Seat::fresh)
    }

    /// A client has found no standby that is current enough: nodes are asked more often for a while.
    pub fn missed(&self, now: Moment) {
        // A hint: of two that come at once either will do.
        if self.missed_at.load(Ordering::Relaxed) < now.0 {
            self.missed_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// When that was last.
    pub(crate) fn missed_at(&self) -> Moment {
        Moment(self.missed_at.load(Ordering::Relaxed))
    }

    /// Whether all that may have reads had it all when a client last missed something.
    pub(crate) fn is_caught_up(&self) -> bool {
        let missed_at = self.missed_at();
        self.seats.iter().filter(|seat| seat.is_open()).all(|seat| seat.fresh() > missed_at)
    }

    /// Who has a read, if there is a standby for it. `turn` is another number for each, `load` what somebody has to do
    /// already. Where the first of the list has all, the primary has nothing.
    pub fn pick(
        &self,
        need: Need,
        balance: Balance,
        parts: Parts<'_>,
        turn: usize,
        load: impl Fn(Reader) -> u32,
    ) -> Option<Reader> {
        let weight = |reader: Reader| match reader {
            Reader::Standby(node) => u64::from(weight_of(parts.standbys, node).weight),
            Reader::Primary => u64::from(parts.primary),
        };
        let distance = |node: NodeId| weight_of(parts.standbys, node).distance;
        let fitting = || {
            let numbered = (0..).map(NodeId).zip(&self.seats);
            let fitting = numbered.filter(|(_, seat)| seat.is_open() && seat.has(need));
            fitting.map(|(node, _)| node).filter(|node| weight(Reader::Standby(*node)) > 0)
        };
        let nearest = fitting().map(distance).min()?;
        let near = || {
            let standbys = fitting().filter(|node| distance(*node) == nearest).map(Reader::Standby);
            standbys.chain((parts.primary > 0).then_some(Reader::Primary))
        };
        // What is fit may change between the looks: then the last that was seen will do.
        let by_weight = |number: u64| {
            let mut left = number % near().map(weight).sum::<u64>().max(1);
            let mut chosen = None;
            for reader in near() {
                chosen = Some(reader);
                if left < weight(reader) {
                    break;
                }
                left -= weight(reader);
            }
            chosen
        };
        match balance {
            Balance::First => near().next(),
            Balance::RoundRobin => by_weight(turn as u64),
            Balance::Random => {
                let number = scatter(turn as u64);
                let (one, other) = (by_weight(number >> 32)?, by_weight(number & 0xffff_ffff)?);
                Some(if load(other) < load(one) { other } else { one })
            }
            Balance::Least => {
                // Of those that have equally little to do, each in turn.
                let first = turn % near().count().max(1);
                let in_turn = near().skip(first).chain(near().take(first));
                let weighed = in_turn.map(|reader| (u64::from(load(reader)), weight(reader), reader));
                let lighter = |best: (u64, u64, Reader), next: (u64, u64, Reader)| {
                    if next.0 * best.1 < best.0 * next.1 { next } else { best }
                };
                weighed.reduce(lighter).map(|best| best.2)
            }
        }
    }
}

impl Seat {
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn fresh(&self) -> Moment {
        Moment(self.fresh.load(Ordering::Acquire))
    }

    fn has(&self, need: Need) -> bool {
        match need {
            Need::Nothing => true,
            Need::After(moment) => self.fresh() > moment,
        }
    }
}

/// A number that looks like any other, of one that counts up.
fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(fresh: &[u64]) -> Board {
        let board = Board::new(fresh.len());
        for (node, fresh) in (0..).map(NodeId).zip(fresh) {
            board.publish(node, true, Moment(*fresh), Moment(1_000));
        }
        board
    }

    fn picks(board: &Board, need: Need, balance: Balance, loads: &[u32]) -> Vec<usize> {
        weighed(board, need, balance, &[], loads)
    }

    fn weighed(
        board: &Board,
        need: Need,
        balance: Balance,
        weights: &[(u32, u32)],
        loads: &[u32],
    ) -> Vec<usize> {
        let mut counts = with_primary(board, (need, balance), weights, 0, loads);
        assert_eq!(counts.pop(), Some(0), "the primary has no part");
        counts
    }

    /// The primary's count, and its load, are behind those of the nodes.
    fn with_primary(
        board: &Board,
        (need, balance): (Need, Balance),
        weights: &[(u32, u32)],
        primary: u32,
        loads: &[u32],
    ) -> Vec<usize> {
        let weight = |(weight, distance): &(u32, u32)| Weight { weight: *weight, distance: *distance };
        let weights: Vec<Weight> = weights.iter().map(weight).collect();
        let parts = Parts { standbys: &weights, primary };
        let place = |reader: Reader| match reader {
            Reader::Standby(node) => node.index(),
            Reader::Primary => board.len(),
        };
        let mut counts = vec![0; board.len() + 1];
        for turn in 0..1_200 {
            if let Some(reader) = board.pick(need, balance, parts, turn, |reader| loads[place(reader)]) {
                counts[place(reader)] += 1;
            }
        }
        counts
    }

    const NONE: Parts<'static> = Parts { standbys: &[], primary: 0 };

    #[test]
    fn who_lacks_what_is_needed_is_not_picked() {
        let board = board(&[10, 20, 30]);
        for balance in [Balance::First, Balance::RoundRobin, Balance::Least, Balance::Random] {
            assert_eq!(picks(&board, Need::After(Moment(20)), balance, &[0; 3]), [0, 0, 1_200]);
            assert_eq!(picks(&board, Need::After(Moment(30)), balance, &[0; 3]), [0, 0, 0]);
        }
        board.publish(NodeId(2), false, Moment(30), Moment(1_000));
        assert_eq!(board.pick(Need::After(Moment(20)), Balance::First, NONE, 0, |_| 0), None);
        assert!(board.has_open());
        board.close();
        assert!(!board.has_open() && board.pick(Need::Nothing, Balance::First, NONE, 0, |_| 0).is_none());
    }

    #[test]
    fn each_takes_its_part() {
        let board = board(&[10, 10, 10]);
        let need = Need::After(Moment(5));
        assert_eq!(picks(&board, need, Balance::RoundRobin, &[0; 3]), [400, 400, 400]);
        assert_eq!(picks(&board, need, Balance::Least, &[0; 3]), [400, 400, 400]);
        assert_eq!(picks(&board, need, Balance::Least, &[3, 1, 2]), [0, 1_200, 0]);
        assert_eq!(picks(&board, need, Balance::First, &[9, 0, 0]), [1_200, 0, 0]);
        let random = picks(&board, need, Balance::Random, &[0, 0, 0]);
        assert!(random.iter().all(|count| (300..500).contains(count)), "{random:?}");
        let random = picks(&board, need, Balance::Random, &[9, 0, 9]);
        assert!(random[1] > 600, "{random:?}");
        let weights = [(2, 0), (1, 0), (0, 0)];
        assert_eq!(weighed(&board, need, Balance::RoundRobin, &weights, &[0; 3]), [800, 400, 0]);
        assert_eq!(weighed(&board, need, Balance::Least, &weights, &[3, 2, 0]), [1_200, 0, 0]);
    }

    #[test]
    fn the_primary_takes_the_part_that_it_is_given() {
        let board = board(&[10, 10]);
        let check = |balance, weights: &[(u32, u32)], primary, loads: &[u32]| {
            with_primary(&board, (Need::After(Moment(5)), balance), weights, primary, loads)
        };
        let idle = [0; 3];
        assert_eq!(check(Balance::RoundRobin, &[], 1, &idle), [400, 400, 400]);
        assert_eq!(check(Balance::RoundRobin, &[(2, 0), (1, 0)], 1, &idle), [600, 300, 300]);
        assert_eq!(check(Balance::RoundRobin, &[], 0, &idle), [600, 600, 0]);
        assert_eq!(check(Balance::Least, &[], 1, &idle), [400, 400, 400]);
        assert_eq!(check(Balance::Least, &[], 1, &[1, 1, 5])[2], 0);
        assert_eq!(check(Balance::Least, &[], 1, &[3, 3, 1]), [0, 0, 1_200]);
        assert_eq!(check(Balance::First, &[], 5, &[9, 9, 0]), [1_200, 0, 0]);
        let random = check(Balance::Random, &[], 1, &idle);
        assert!(random.iter().all(|count| (300..500).contains(count)), "{random:?}");
        assert!(check(Balance::Random, &[], 1, &[0, 0, 9])[2] < 250);
        // It is as near as the nearest, and no reason to go there if nobody else is.
        assert_eq!(check(Balance::RoundRobin, &[(1, 1), (1, 2)], 1, &idle), [600, 0, 600]);
        let late = (Need::After(Moment(15)), Balance::RoundRobin);
        assert_eq!(with_primary(&board, late, &[], 1, &idle), [0, 0, 0]);
    }

    #[test]
    fn the_nearest_that_is_fit_goes_first() {
        let board = board(&[10, 10, 20]);
        let weights = [(1, 0), (1, 0), (1, 1)];
        let picks =
            |after| weighed(&board, Need::After(Moment(after)), Balance::RoundRobin, &weights, &[0; 3]);
        assert_eq!(picks(5), [600, 600, 0]);
        assert_eq!(picks(15), [0, 0, 1_200]);
    }

    #[test]
    fn a_connection_counts_only_if_it_is_older_than_the_question() {
        let board = board(&[500]);
        let (node, need) = (NodeId(0), Need::After(Moment(400)));
        assert!(board.fits_on(node, need, Moment(999)));
        assert!(!board.fits_on(node, need, Moment(1_000)));
        assert!(board.fits_on(node, Need::Nothing, Moment(2_000)));
        assert!(!board.fits_on(node, Need::After(Moment(500)), Moment(1)));
    }
}
