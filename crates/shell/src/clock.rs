//! The only clock of the data plane.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::Moment;

/// Where a process's moments are counted from.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Microseconds since the start, and a little more so that no moment is zero.
    pub fn now(&self) -> Moment {
        Moment(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1)
    }

    /// The time of day, for tables.
    pub fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
    }

    /// What the time of day was at that moment.
    pub fn unix_seconds_at(&self, moment: Moment) -> u64 {
        self.unix_seconds().saturating_sub(self.now().since(moment).as_secs())
    }
}
