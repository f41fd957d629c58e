//! One word that says whether somebody works on a session and what has happened to it meanwhile.

use crate::sync::{AtomicU32, Ordering};

/// What has happened, one bit a kind. The meaning is the caller's.
pub type Bits = u32;

/// Somebody works on the session.
const BUSY: Bits = 1 << 31;

/// Who may work on a session: whoever finds nobody there.
#[derive(Debug)]
pub struct Gate(AtomicU32);

impl Gate {
    /// A gate with nobody behind it and no news.
    pub fn new() -> Gate {
        Gate(AtomicU32::new(0))
    }

    /// Leaves news. If this answers true the caller is now the one to work: it must call [`Gate::news`] until
    /// that is zero. If false, somebody else is there and will see the news before leaving.
    #[must_use]
    #[inline]
    pub fn post(&self, bits: Bits) -> bool {
        debug_assert_eq!(bits & BUSY, 0);
        self.0.fetch_or(bits | BUSY, Ordering::AcqRel) & BUSY == 0
    }

    /// For the one whom [`Gate::post`] has let in: takes the news, of which there are some.
    #[must_use]
    #[inline]
    pub fn first_news(&self) -> Bits {
        self.0.swap(BUSY, Ordering::AcqRel) & !BUSY
    }

    /// For the one who works: takes the news. Zero means that there were none and the gate is left: the
    /// caller must not touch the session again.
    #[must_use]
    #[inline]
    pub fn news(&self) -> Bits {
        match self.0.compare_exchange(BUSY, 0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => 0,
            Err(_) => self.0.swap(BUSY, Ordering::AcqRel) & !BUSY,
        }
    }
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}
