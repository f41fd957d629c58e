//! Time as the pure layers see it: a number that the shell hands in.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Microseconds of a monotonic clock since the process (or the simulation) began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// Later than anything that will happen; the deadline of what has none.
    pub const NEVER: Moment = Moment(u64::MAX);

    /// How long ago `earlier` was; zero if it is not in the past.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The same in whole microseconds.
    #[inline]
    pub fn micros_since(self, earlier: Moment) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment plus `span`, or [`Moment::NEVER`] for a span of zero: in the settings, 0 means off.
    #[inline]
    pub fn deadline(self, span: Duration) -> Moment {
        if span.is_zero() { Moment::NEVER } else { self + span }
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    #[inline]
    fn add(self, span: Duration) -> Moment {
        // Without `as_micros`, whose 128 bits cost more than all the rest.
        let whole = span.as_secs().saturating_mul(1_000_000);
        Moment(self.0.saturating_add(whole).saturating_add(u64::from(span.subsec_micros())))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, span: Duration) -> Moment {
        Moment(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}
