//! What makes one idle server better than another for a client.

use model::WorkerId;

/// Who uses a server, or asks for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// The worker: a server's data may still be in its caches.
    pub worker: WorkerId,
    /// A digest of the settings that the client relies on, or that the server has: where it is the same, there is
    /// probably nothing to set. Only a hint.
    pub settings: u64,
}

impl Near {
    /// Nobody yet.
    pub(crate) const NOBODY: Near = Near { worker: WorkerId(0), settings: 0 };

    /// The higher, the better this server is for who asks: settings cost a statement, a worker a few cache misses.
    #[inline]
    pub(crate) fn score(self, asked: Near) -> u8 {
        u8::from(self.settings == asked.settings) << 1 | u8::from(self.worker == asked.worker)
    }

    /// No server is better than one with this score.
    pub(crate) const BEST: u8 = 3;
}

impl From<WorkerId> for Near {
    /// Of settings nothing is known.
    fn from(worker: WorkerId) -> Near {
        Near { worker, settings: 0 }
    }
}
