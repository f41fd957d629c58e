//! Where the writes of a turn go: to the kernel at once, or into a volley with those of other turns.
//!
//! What is in the volley goes out when the batch of events is worked off. Until then the gate of the session whose
//! turn it was stays with this worker, so nobody can write behind it, nor close the socket, nor lend the server to
//! somebody else.

use std::io;
use std::os::fd::RawFd;

use model::WorkerId;
use settings::IoBackend;
use volley::{Miss, Volley};

/// Never the number of a volley, for who has none.
const NO_ROUND: u32 = u32::MAX;

/// One worker's.
pub struct Outbox {
    volley: Option<Volley>,
    /// This turn has put something into the volley.
    is_used: bool,
}

impl Outbox {
    /// One that writes at once.
    pub fn direct() -> Outbox {
        Outbox { volley: None, is_used: false }
    }

    /// As the settings want it, for the thread that asks. The error is why the kernel has no volleys for us.
    pub fn new(worker: WorkerId, wanted: IoBackend) -> (Outbox, Option<io::Error>) {
        if wanted == IoBackend::Epoll {
            return (Outbox::direct(), None);
        }
        // Rounds of different workers differ for as long as it matters, and if not, something is sent too early.
        match Volley::new(u32::from(worker.0) << 24 | 1) {
            Ok(volley) => (Outbox { volley: Some(volley), is_used: false }, None),
            Err(error) => (Outbox::direct(), Some(error)),
        }
    }

    /// Whether there are volleys.
    pub fn has_volleys(&self) -> bool {
        self.volley.is_some()
    }

    /// A turn begins.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.is_used = false;
    }

    /// Whether this turn has put anything into a volley: then its session's gate must be kept.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// The volley, for a send of so many bytes if they are few enough to be copied.
    #[inline]
    pub fn volley_for(&mut self, count: usize) -> Option<&mut Volley> {
        let volley = self.volley.as_mut().filter(|_| count <= volley::SEND_BYTES_MAX)?;
        self.is_used = true;
        Some(volley)
    }

    /// The number of the volley that is being loaded.
    #[inline]
    pub fn round(&self) -> u32 {
        self.volley.as_ref().map_or(NO_ROUND, Volley::round)
    }

    /// Sends what is there.
    #[inline]
    pub fn fire(&mut self) {
        if let Some(volley) = self.volley.as_mut().filter(|volley| !volley.is_empty()) {
            volley.fire();
        }
    }

    /// What this socket did not take.
    #[inline]
    pub fn take_miss(&mut self, fd: RawFd) -> Option<Vec<u8>> {
        self.volley.as_mut().filter(|volley| volley.has_missed())?.take_miss(fd)
    }

    /// All that was not taken; nearly always nothing.
    #[inline]
    pub fn take_misses(&mut self) -> Vec<Miss> {
        match &mut self.volley {
            Some(volley) if volley.has_missed() => volley.take_misses(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
