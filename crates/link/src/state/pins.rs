//! Why a client keeps its server between transactions.

use model::Moment;
use sql::state::Reason;

use super::deed::Kinds;

/// A client that keeps its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// Since when.
    pub since: Moment,
    /// The first word of the statement that made the first of its reasons, in capitals.
    pub verb: Box<str>,
    reasons: u32,
}

impl Pins {
    /// Why, in the order of [`Reason::ALL`].
    pub fn reasons(&self) -> impl Iterator<Item = Reason> + '_ {
        Reason::ALL.into_iter().filter(|&reason| self.has(reason))
    }

    /// Whether this is among the reasons.
    pub fn has(&self, reason: Reason) -> bool {
        self.reasons & bit(reason) != 0
    }
}

fn bit(reason: Reason) -> u32 {
    1 << reason as u32
}

/// What DISCARD ALL does not clear.
const FOREVER: [Reason; 7] = [
    Reason::Library,
    Reason::Connection,
    Reason::Slot,
    Reason::Backup,
    Reason::Origin,
    Reason::Seed,
    Reason::NamedFunction,
];

/// The reasons as they come and go.
#[derive(Debug, Default)]
pub(crate) struct Held {
    reasons: u32,
    /// How many dblink connections and replication slots there are.
    connections: u32,
    slots: u32,
    /// Of the last statement that may have made state.
    verb: Box<str>,
    pins: Option<Pins>,
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.reasons == 0
    }

    pub(crate) fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// A statement may have made state: the next reason that shows is its.
    pub(crate) fn suspect(&mut self, verb: &str) {
        if !verb.is_empty() && self.reasons == 0 {
            self.verb = verb.into();
        }
    }

    pub(crate) fn add(&mut self, reason: Reason, verb: &str) {
        self.suspect(verb);
        self.reasons |= bit(reason);
        if let Some(count) = self.count(reason) {
            *count = count.saturating_add(1);
        }
    }

    pub(crate) fn take(&mut self, reason: Reason) {
        if let Some(count) = self.count(reason) {
            *count = count.saturating_sub(1);
            if *count > 0 {
                return;
            }
        }
        self.reasons &= !bit(reason);
    }

    pub(crate) fn take_all(&mut self, reasons: &[Reason]) {
        reasons.iter().for_each(|&reason| self.reasons &= !bit(reason));
    }

    /// DISCARD ALL was done.
    pub(crate) fn take_discardable(&mut self) {
        self.reasons &=
            FOREVER.iter().fold(0, |all, &reason| all | bit(reason)) & !bit(Reason::NamedFunction);
    }

    pub(crate) fn is_forever(&self) -> bool {
        FOREVER.iter().any(|&reason| self.reasons & bit(reason) != 0)
    }

    fn count(&mut self, reason: Reason) -> Option<&mut u32> {
        match reason {
            Reason::Connection => Some(&mut self.connections),
            Reason::Slot => Some(&mut self.slots),
            _ => None,
        }
    }

    /// Whether the server has shown state of this kind.
    pub(crate) fn has_kind(&self, kind: Kinds) -> bool {
        let is_here = |&&(of, reason): &&(Kinds, Reason)| kind.has(of) && self.reasons & bit(reason) != 0;
        Kinds::REASONS.iter().find(is_here).is_some()
    }

    /// The kinds that the server has shown.
    pub(crate) fn kinds(&self) -> Kinds {
        let is_here = |(_, reason): &&(Kinds, Reason)| self.reasons & bit(*reason) != 0;
        Kinds::REASONS.iter().filter(is_here).fold(Kinds::default(), |all, (kind, _)| all.with(*kind))
    }

    /// The server has told what it has of these kinds.
    pub(crate) fn shown(&mut self, asked: Kinds, found: Kinds) {
        for (kind, reason) in Kinds::REASONS {
            if asked.has(kind) {
                self.reasons &= !bit(reason);
                if found.has(kind) {
                    self.reasons |= bit(reason);
                }
            }
        }
    }

    pub(crate) fn note_temp_path(&mut self, is_temp: bool) {
        self.reasons &= !bit(Reason::TempSearchPath);
        if is_temp {
            self.reasons |= bit(Reason::TempSearchPath);
        }
    }

    /// The reasons are as they are until the next statement. True if the client is pinned only now.
    pub(crate) fn settle(&mut self, now: Moment) -> bool {
        let reasons = self.reasons;
        match &mut self.pins {
            _ if reasons == 0 => {
                self.pins = None;
                false
            }
            Some(pins) => {
                pins.reasons = reasons;
                false
            }
            None => {
                self.pins = Some(Pins { since: now, verb: self.verb.clone(), reasons });
                true
            }
        }
    }
}
