//! One node: its state, what it said last, and when it is asked again.

use std::time::Duration;

use model::Moment;

use crate::answer::{Answer, Failure};
use crate::limits::{FAILURES_MAX, FLAP_WINDOW, FRESH_EVERY, PROOFS_MAX, RETRY};

/// Whether a node takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nobody knows yet.
    Unknown,
    /// It answers.
    Up,
    /// It takes no new connections and lets the old ones end.
    Leaving,
    /// It does not answer; `true`: it is silent, so that its connections must be cut by us.
    Down(bool),
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) reach: Reach,
    /// Since when it is in that state.
    pub(crate) since: Moment,
    /// What it said last; kept while it is down.
    pub(crate) answer: Option<Answer>,
    /// Why the last probe failed, if it did.
    pub(crate) failure: Option<Failure>,
    /// The first probe has ended, however.
    pub(crate) is_heard: bool,
    /// Taken out by the operator.
    pub(crate) is_drained: bool,
    /// No longer one of the cluster's; its number is used again once nothing is on it.
    pub(crate) is_gone: bool,
    /// As a standby it has readers.
    pub(crate) takes_reads: bool,
    /// A standby that is too far behind.
    pub(crate) is_lagging: bool,
    /// Good answers that it still owes before it has readers.
    pub(crate) proofs_left: u32,
    /// Since when it gets its growing share; never, for the whole.
    pub(crate) ramp_from: Option<Moment>,
    /// Connections on it, those being made included.
    pub(crate) servers: u32,
    /// A probe is under way.
    pub(crate) is_probing: bool,
    /// Something was heard meanwhile: another probe follows at once.
    pub(crate) is_doubted: bool,
    /// The next probe is due.
    pub(crate) due: Moment,
    /// When the last one began.
    pub(crate) asked_at: Moment,
    /// When the one began that gave the answer.
    pub(crate) answered_to: Moment,
    /// The next one makes a connection of its own.
    pub(crate) wants_fresh: bool,
    failures: u32,
    probes: u32,
    flaps: u32,
    flapped_at: Moment,
}

impl Node {
    pub(crate) fn new(now: Moment) -> Node {
        Node {
            reach: Reach::Unknown,
            since: now,
            answer: None,
            failure: None,
            is_heard: false,
            is_drained: false,
            is_gone: false,
            takes_reads: true,
            is_lagging: false,
            proofs_left: 0,
            ramp_from: None,
            servers: 0,
            is_probing: false,
            is_doubted: false,
            due: now,
            asked_at: Moment::default(),
            answered_to: Moment::default(),
            wants_fresh: true,
            failures: 0,
            probes: 0,
            flaps: 0,
            flapped_at: Moment::default(),
        }
    }

    /// A probe begins; true if it makes a connection of its own.
    pub(crate) fn ask(&mut self, now: Moment, haste: Duration) -> bool {
        self.is_probing = true;
        self.is_doubted = false;
        // Those that come close upon one another, for the sake of readers, make no connections.
        let is_regular = now.since(self.asked_at) >= haste;
        self.asked_at = now;
        self.probes = self.probes.wrapping_add(u32::from(is_regular));
        std::mem::take(&mut self.wants_fresh) || (is_regular && self.probes.is_multiple_of(FRESH_EVERY))
    }

    /// It has answered.
    pub(crate) fn answered(&mut self, now: Moment, answer: Answer) {
        self.failures = 0;
        self.failure = None;
        self.answer = Some(answer);
        self.answered_to = self.asked_at;
        self.proofs_left = self.proofs_left.saturating_sub(1);
        if self.reach == Reach::Up {
            return;
        }
        if matches!(self.reach, Reach::Down(_)) {
            self.proofs_left = self.penalty(now);
        }
        // What was up from the start gets its share at once: nobody was there to take it over.
        self.ramp_from = (self.reach != Reach::Unknown).then_some(now);
        self.turn(now, Reach::Up);
    }

    /// It has not.
    pub(crate) fn failed(&mut self, now: Moment, failure: Failure) {
        self.failure = Some(failure);
        if !failure.is_verdict() {
            return;
        }
        self.wants_fresh = true;
        self.failures = self.failures.saturating_add(1);
        match failure {
            Failure::Leaving => self.turn(now, Reach::Leaving),
            Failure::Starting => self.turn(now, Reach::Down(false)),
            _ if self.failures >= FAILURES_MAX || self.reach == Reach::Unknown => {
                self.turn(now, Reach::Down(failure == Failure::Silent));
            }
            // One failure is none: it is asked again, at once if it took its time already.
            Failure::Silent => self.due = now,
            _ => self.due = now + RETRY,
        }
    }

    /// Whether it said so last.
    pub(crate) fn is_in_recovery(&self) -> bool {
        self.answer.is_some_and(|answer| answer.in_recovery)
    }

    /// Whether it may have new connections at all.
    pub(crate) fn takes_work(&self) -> bool {
        self.reach == Reach::Up && !self.is_drained && !self.is_gone
    }

    /// What of a whole share it takes, while that grows after it came back.
    pub(crate) fn share(&self, now: Moment, slow_start: Duration) -> f64 {
        match self.ramp_from {
            Some(from) if !slow_start.is_zero() => {
                (now.since(from).as_secs_f64() / slow_start.as_secs_f64()).clamp(0.1, 1.0)
            }
            _ => 1.0,
        }
    }

    fn turn(&mut self, now: Moment, reach: Reach) {
        let was_down = matches!(self.reach, Reach::Down(_));
        if self.reach == reach {
            return;
        }
        if matches!(reach, Reach::Down(_)) && !was_down && self.reach != Reach::Unknown {
            self.flaps = if now.since(self.flapped_at) > FLAP_WINDOW { 1 } else { self.flaps + 1 };
            self.flapped_at = now;
        }
        self.reach = reach;
        self.since = now;
    }

    /// After the first failure none, then twice as many each time.
    fn penalty(&self, now: Moment) -> u32 {
        if self.flaps < 2 || now.since(self.flapped_at) > FLAP_WINDOW {
            return 0;
        }
        (1 << (self.flaps - 1).min(8)).min(PROOFS_MAX)
    }
}
