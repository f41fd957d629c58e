//! The two snapshots that averages are made from.

use std::time::Duration;

use crate::averages::Averages;
use crate::totals::Totals;

/// Averages over less would call a young process's first query a flood.
const ELAPSED_MIN: Duration = Duration::from_secs(1);

/// The totals at the ends of the last two periods of one database, or of all together.
///
/// Call [`History::roll`] once each `stats_period`. In between, [`History::averages`] tells what happened
/// from the snapshot before the last one until now, thus over one to two periods, as PgBouncer does.
/// Times are those since any fixed beginning.
#[derive(Clone, Copy, Debug)]
pub struct History {
    older: Snapshot,
    newer: Snapshot,
}

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    at: Duration,
    totals: Totals,
}

impl History {
    /// A history that begins with nothing counted.
    pub fn new(now: Duration) -> History {
        let empty = Snapshot { at: now, totals: Totals::default() };
        History { older: empty, newer: empty }
    }

    /// A period ends: `totals` becomes the newer snapshot and the newer one the older.
    pub fn roll(&mut self, now: Duration, totals: Totals) {
        self.older = std::mem::replace(&mut self.newer, Snapshot { at: now, totals });
    }

    /// The averages from the older snapshot until now, when the totals are `live`.
    pub fn averages(&self, now: Duration, live: &Totals) -> Averages {
        let elapsed = now.saturating_sub(self.older.at).max(ELAPSED_MIN);
        Averages::between(&self.older.totals, live, elapsed)
    }
}
