//! One pool as it is shared: its name, and the pool itself behind its own short lock.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::PoolId;
use pool::Pool;

use crate::clusters::Place;

/// What tells pools apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    /// The database entry's name.
    pub database: String,
    /// The user that its servers log in as.
    pub user: String,
    /// The standby that its servers are on, for reads that are split from writes; `None` for the pool that clients enter.
    pub reader: Option<Place>,
}

/// One pool. Its name never changes; its limits are in the pool.
pub struct PoolCell<C, S> {
    /// Its number, never used again.
    pub id: PoolId,
    /// Database and user.
    pub key: PoolKey,
    /// The database entry forces the user.
    pub is_forced: bool,
    pool: Mutex<Pool<C, S>>,
}

impl<C, S> PoolCell<C, S> {
    pub(crate) fn new(id: PoolId, key: PoolKey, is_forced: bool, pool: Pool<C, S>) -> PoolCell<C, S> {
        PoolCell { id, key, is_forced, pool: Mutex::new(pool) }
    }

    /// The pool. Hold it for as short as it takes to decide.
    pub fn lock(&self) -> MutexGuard<'_, Pool<C, S>> {
        // A panic elsewhere does not make the pool's own lists wrong: each call leaves them whole.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C, S> fmt::Debug for PoolCell<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key.reader {
            None => write!(f, "{}/{} ({})", self.key.database, self.key.user, self.id),
            Some(place) => write!(f, "{}/{} on {place} ({})", self.key.database, self.key.user, self.id),
        }
    }
}
