//! What is read when somebody asks: the console's rows, and what no table shows.

use std::time::Duration;

use console::Snapshot;
use stats::Totals;

/// Everything that metrics are made of.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Of these the pools, databases, pins, listeners, nodes and routes are read.
    pub shown: Snapshot,
    /// What each pool counted.
    pub pools: Vec<PoolTally>,
    /// What befell each cluster.
    pub clusters: Vec<ClusterTally>,
    /// What part of the reads each host takes.
    pub weights: Vec<WeightRow>,
    /// The process as a whole.
    pub whole: Whole,
    /// What the system says of the process, where it says so.
    pub process: Option<Process>,
}

/// What one pool counted.
#[derive(Clone, Debug, Default)]
pub struct PoolTally {
    /// The database entry.
    pub database: String,
    /// The user of its servers.
    pub user: String,
    /// The standby that its servers are on, of a pool for reads alone.
    pub standby: Option<String>,
    /// What its workers counted together.
    pub totals: Totals,
    /// Prepared statements that its clients and servers share.
    pub statements: u64,
    /// Its clients wait because none of its hosts is fit.
    pub is_held: bool,
}

/// What befell one cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterTally {
    /// The database entries that it serves, between commas.
    pub databases: String,
    /// How often another node became the primary.
    pub failovers: u64,
    /// How often there was no primary any more.
    pub losses: u64,
}

/// What part of the reads of an entry a host takes.
#[derive(Clone, Debug, Default)]
pub struct WeightRow {
    /// The database entry.
    pub database: String,
    /// Host and port, or `primary` for the part of whoever that is.
    pub node: String,
    /// Its part.
    pub weight: u32,
}

/// The process as a whole.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Howdah's own version.
    pub version: String,
    /// How workers hand bytes to the kernel.
    pub io_backend: &'static str,
    /// Worker threads.
    pub workers: u64,
    /// How many clients may be connected.
    pub clients_limit: u64,
    /// Clients in their login.
    pub logins: u64,
    /// Cancel requests on their way to servers.
    pub cancels: u64,
    /// All is paused.
    pub is_paused: bool,
    /// The process is going to end.
    pub is_draining: bool,
}

/// What the system says of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// Time on processors.
    pub cpu: Duration,
    /// Bytes in memory.
    pub resident_bytes: u64,
    /// Bytes of address space.
    pub virtual_bytes: u64,
    /// Open descriptors.
    pub open_fds: u64,
    /// How many there may be; none, if there is no limit.
    pub max_fds: Option<u64>,
    /// When it started, as seconds since 1970.
    pub started_unix: u64,
}
