//! How often nodes are asked, and how patient the cluster is.

use std::time::Duration;

/// The settings of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Between the end of one probe and the next.
    pub interval: Duration,
    /// A standby so many bytes behind the primary is not chosen; `None`: any.
    pub lag_bytes: Option<u64>,
    /// The same in time.
    pub lag_time: Option<Duration>,
    /// How long a node that comes back takes to get its whole share.
    pub slow_start: Duration,
    /// The nodes are equals that have nothing to do with each other: each is judged by what it says of itself.
    pub is_independent: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            interval: Duration::from_millis(500),
            lag_bytes: None,
            lag_time: None,
            slow_start: SLOW_START,
            is_independent: false,
        }
    }
}

/// Failures in a row that make a verdict.
pub(crate) const FAILURES_MAX: u32 = 2;
/// A node that failed once is asked again after this.
pub(crate) const RETRY: Duration = Duration::from_millis(100);
/// Signs of traffic ask for no more probes than this.
pub(crate) const SIGNS_EVERY: Duration = Duration::from_millis(20);
/// One probe of so many makes a new connection: a server whose sessions answer may still take no new ones, and only
/// they are told that it is shutting down.
pub(crate) const FRESH_EVERY: u32 = 4;
/// While there is no primary, nodes are asked so many times as often.
pub(crate) const HURRY: u32 = 5;
/// How long a node's last failures count against it.
pub(crate) const FLAP_WINDOW: Duration = Duration::from_secs(60);
/// The most good answers in a row that a node which keeps failing must give before it has readers again.
pub(crate) const PROOFS_MAX: u32 = 16;

/// While clients miss what they have written, nodes are asked again after this: a little less than the shell's tick, so
/// that it is every tick and not every second one.
pub(crate) const SOON: Duration = Duration::from_millis(40);
/// For so long after the last that did.
pub(crate) const MISSED_FOR: Duration = Duration::from_secs(2);
/// Probes closer than this come of that.
pub(crate) const HASTE: Duration = Duration::from_millis(100);

const SLOW_START: Duration = Duration::from_secs(10);
