//! Values that many hold alike: kept once, and shared.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// So many kinds are shared; what comes beyond is its holder's own, because values come from clients.
const KINDS_MAX: usize = 1024;

/// The kinds that somebody holds.
pub struct Alike<T>(Mutex<HashSet<Arc<T>>>);

impl<T> Default for Alike<T> {
    fn default() -> Alike<T> {
        Alike(Mutex::default())
    }
}

impl<T: Eq + Hash> Alike<T> {
    /// The one that is kept for all values equal to this.
    pub fn share(&self, value: T) -> Arc<T> {
        let mut all = self.0.lock();
        if let Some(known) = all.get(&value) {
            return Arc::clone(known);
        }
        let value = Arc::new(value);
        if all.len() >= KINDS_MAX {
            all.retain(|known| Arc::strong_count(known) > 1);
        }
        if all.len() < KINDS_MAX {
            all.insert(Arc::clone(&value));
        }
        value
    }
}
