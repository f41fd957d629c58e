//! What one pool may do: plain values that a reload replaces as a whole.

use std::time::Duration;

/// The most servers of one pool that are being opened at a time.
pub const OPENING_MAX: usize = 8;

/// The settings of one pool, already decided between user, database and global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `pool_size`; 0 is no limit.
    pub size: u32,
    /// `min_pool_size`: so many servers are kept even when idle, never above `size`.
    pub min_size: u32,
    /// `reserve_pool_size`: so many more than `size` for who waited `reserve_timeout`.
    pub reserve_size: u32,
    /// `reserve_pool_timeout`; zero switches the reserve off.
    pub reserve_timeout: Duration,
    /// `server_lifetime`; zero closes a server after one use.
    pub lifetime: Duration,
    /// `server_idle_timeout`; zero is never.
    pub idle_timeout: Duration,
    /// `server_check_delay`: a server idle for so long is checked before use; zero is always, `None` is never.
    pub check_delay: Option<Duration>,
    /// `server_login_retry`: the longest pause after a failed opening.
    pub login_retry: Duration,
    /// `failover_timeout`: how long a client waits in a held pool; zero is for ever.
    pub failover_timeout: Duration,
    /// `server_round_robin`: the server that is idle longest goes first instead of last.
    pub round_robin: bool,
    /// `max_pinned`: so many servers may be kept by clients for their session state; 0 is no limit.
    pub pinned_max: u32,
}

impl Limits {
    /// The most servers that may exist at a time, the reserve included.
    pub fn most(&self) -> u32 {
        if self.size == 0 { u32::MAX } else { self.size.saturating_add(self.reserve_size) }
    }

    /// How many servers are kept when nobody needs them.
    pub(crate) fn kept(&self) -> u32 {
        if self.size == 0 { self.min_size } else { self.min_size.min(self.size) }
    }

    /// The least time between two closes for age, so that a pool filled at once is not emptied at once.
    pub(crate) fn lifetime_gap(&self) -> Duration {
        self.lifetime.checked_div(self.size).unwrap_or(Duration::ZERO)
    }
}
