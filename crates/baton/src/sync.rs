//! The primitives of the platform, or loom's.

#[cfg(not(loom))]
mod platform {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    pub(crate) use parking_lot::{Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }
}

#[cfg(loom)]
mod platform {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        // Loom's mutex is poisoned only by a test that has failed already.
        mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

pub(crate) use platform::{AtomicBool, AtomicU32, Mutex, Ordering, lock};
