//! What the primary had written when: so that of what a standby has replayed it can be said since when nothing is
//! missing from it.
//!
//! A question that is sent to the primary after a commit was answered finds that commit in its log. So a standby
//! that has replayed as far as the answer says has all that was committed before the question was sent, whoever did it.

use std::collections::VecDeque;

use model::Moment;

/// So many answers are kept; of more, each second one is forgotten.
const KEPT_MAX: usize = 256;
/// The size of a page of the log.
const PAGE: u64 = 8192;
/// What stands before the first record of a page: at most so many bytes, in which no record ends that has begun there.
const PAGE_HEADER_MAX: u64 = 40;

/// The answers of one primary on one timeline. Both moments and positions rise.
#[derive(Debug, Default)]
pub(crate) struct Log(VecDeque<(Moment, u64)>);

impl Log {
    /// Asked at this moment, the primary says that its log goes to here.
    pub(crate) fn push(&mut self, asked: Moment, position: u64) {
        // Where a page has just begun, the place for the next record is behind the page's head, and a standby that has
        // all records is before it.
        let into_page = position % PAGE;
        let position = if into_page <= PAGE_HEADER_MAX { position - into_page } else { position };
        // Asked later and no further: it says all that those said, and more.
        while self.0.back().is_some_and(|(_, last)| *last >= position) {
            self.0.pop_back();
        }
        if self.0.len() >= KEPT_MAX {
            let mut keep = false;
            self.0.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.0.push_back((asked, position));
    }

    /// Nothing that was said counts any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// All that was committed before this moment is in what was replayed; the first moment of all, if nothing is known.
    pub(crate) fn as_of(&self, replayed: u64) -> Moment {
        let within = self.0.partition_point(|(_, position)| *position <= replayed);
        within.checked_sub(1).and_then(|at| self.0.get(at)).map_or(Moment::default(), |(asked, _)| *asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_question_counts_whose_answer_is_replayed() {
        let mut log = Log::default();
        assert_eq!(log.as_of(u64::MAX), Moment(0));
        for (at, position) in [(10, 100), (20, 200), (30, 300)] {
            log.push(Moment(at), position);
        }
        for (replayed, wanted) in [(0, 0), (99, 0), (100, 10), (199, 10), (299, 20), (300, 30), (900, 30)] {
            assert_eq!(log.as_of(replayed), Moment(wanted), "{replayed}");
        }
        // An idle primary says the same again: what it says is as of the last time.
        log.push(Moment(40), 300);
        assert_eq!(log.as_of(300), Moment(40));
        // After a crash it may have lost what nobody was told of.
        log.push(Moment(50), 150);
        assert_eq!((log.as_of(120), log.as_of(150), log.as_of(900)), (Moment(10), Moment(50), Moment(50)));
    }

    #[test]
    fn the_head_of_a_page_is_nothing_to_wait_for() {
        let mut log = Log::default();
        log.push(Moment(1), 3 * PAGE + 24);
        assert_eq!(log.as_of(3 * PAGE), Moment(1));
        log.push(Moment(2), 3 * PAGE + 48);
        assert_eq!(log.as_of(3 * PAGE), Moment(1));
    }

    #[test]
    fn many_answers_are_thinned_out_and_stay_true() {
        let mut log = Log::default();
        for at in 1..=10_000 {
            log.push(Moment(at), at * PAGE + 100);
        }
        assert!(log.0.len() <= KEPT_MAX);
        for replayed in (0..10_000 * PAGE + 200).step_by(7_777) {
            // Never later than what is true.
            assert!(log.as_of(replayed) <= Moment(replayed.saturating_sub(100) / PAGE));
        }
        assert_eq!(log.as_of(10_000 * PAGE + 100), Moment(10_000));
    }
}
