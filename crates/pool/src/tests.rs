//! A pool of numbers: clients and servers are ids, time is what the test says.

mod drain;
mod hold;
mod opening;
mod pins;
mod queueing;
mod random;
mod time;

use std::time::Duration;

use model::{Moment, WorkerId};

use crate::*;

pub(crate) const W0: WorkerId = WorkerId(0);
pub(crate) const W1: WorkerId = WorkerId(1);

pub(crate) const LIMITS: Limits = Limits {
    size: 2,
    min_size: 0,
    reserve_size: 0,
    reserve_timeout: Duration::from_secs(5),
    lifetime: Duration::from_secs(3600),
    idle_timeout: Duration::from_secs(600),
    check_delay: Some(Duration::from_secs(30)),
    login_retry: Duration::from_secs(15),
    failover_timeout: Duration::from_secs(120),
    round_robin: false,
    pinned_max: 0,
};

/// A pool, its clock, and ids for the servers to come.
pub(crate) struct Bench {
    pub(crate) pool: Pool<char, u32>,
    pub(crate) now: Moment,
    servers: u32,
}

impl Bench {
    pub(crate) fn new(limits: Limits) -> Bench {
        Bench { pool: Pool::new(limits), now: Moment(1_000_000), servers: 0 }
    }

    /// A pool with so many idle servers: 1, 2, ... in order of becoming idle.
    pub(crate) fn with_idle(limits: Limits, count: usize) -> Bench {
        let mut bench = Bench::new(limits);
        let mut slots = Vec::new();
        for _ in 0..count {
            let (_, mut open) = bench.queue('z');
            slots.extend(open.next());
            assert_eq!(client_of(bench.open(slots[slots.len() - 1])), 'z');
        }
        for slot in slots {
            assert_eq!(bench.release(slot), After::Idle);
        }
        bench
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    pub(crate) fn checkout(&mut self, client: char) -> Checkout<u32> {
        self.pool.checkout(self.now, W0, &client, Moment::NEVER)
    }

    pub(crate) fn grant(&mut self, client: char) -> Grant<u32> {
        match self.checkout(client) {
            Checkout::Granted(grant) => grant,
            other => panic!("{client} gets a server, not {other:?}"),
        }
    }

    pub(crate) fn queue(&mut self, client: char) -> (Ticket, Opens) {
        match self.checkout(client) {
            Checkout::Queued { ticket, open } => (ticket, open),
            other => panic!("{client} waits, not {other:?}"),
        }
    }

    pub(crate) fn queue_until(&mut self, client: char, deadline: Moment) -> Ticket {
        match self.pool.checkout(self.now, W0, &client, deadline) {
            Checkout::Queued { ticket, .. } => ticket,
            other => panic!("{client} waits, not {other:?}"),
        }
    }

    /// The server of an opening logs in.
    pub(crate) fn open(&mut self, slot: Slot) -> After<char, u32> {
        self.servers += 1;
        self.pool.opened(self.now, slot, self.servers, W0).after
    }

    pub(crate) fn release(&mut self, slot: Slot) -> After<char, u32> {
        self.pool.release(self.now, slot, W0, Released::Clean)
    }

    pub(crate) fn fail(&mut self, slot: Slot, failure: Failure) -> Vec<char> {
        let failed = self.pool.open_failed(self.now, slot, failure);
        assert!(failed.open.is_empty(), "nothing is opened right after a failure");
        failed.refused
    }
}

pub(crate) fn login_error() -> Failure {
    Failure::Login(LoginError { code: "28P01".into(), message: "no".into() })
}

pub(crate) fn client_of(after: After<char, u32>) -> char {
    match after {
        After::Handover { client, .. } => client,
        other => panic!("somebody is served, not {other:?}"),
    }
}
