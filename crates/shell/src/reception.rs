//! What clients that come alike are given alike: made for the first of them, and kept for the others.
//!
//! Clients of one application send the same startup message, and where their policy and what is known of their
//! servers are the same too, so is what is made of it: the policy of their links, the parameters they rely on,
//! and the bytes that they are told. Everything here is compared as a whole, or by the pointer of a value that
//! is kept alive; nothing is taken for equal because of a hash.

use std::collections::HashMap;
use std::sync::Arc;

use client::login::{Greeting, Requested};
use hub::ClientPolicy;
use link::Policy;
use model::Parameters;
use parking_lot::Mutex;

use crate::entry::link_policy;

/// So many kinds of clients are known to a pool; a new kind takes the place of the one made longest ago.
const KINDS_MAX: usize = 16;
/// Clients that ask for more than this are not remembered, in bytes: what is kept comes from clients.
const REQUESTED_BYTES_MAX: usize = 1024;

/// What a client begins its session with.
pub struct Reception {
    /// What its session lives by.
    pub terms: Arc<Policy>,
    /// What it relies on.
    pub parameters: Arc<Parameters>,
    /// What it is told.
    pub greeting: Greeting,
}

/// What makes clients alike.
#[derive(Clone)]
pub struct Kind {
    /// What the settings say about them.
    pub policy: Arc<ClientPolicy>,
    /// What their pool's first server reported.
    pub known: Arc<Parameters>,
    /// What they ask for.
    pub requested: Requested,
}

impl Kind {
    fn is(&self, policy: &Arc<ClientPolicy>, known: &Arc<Parameters>, requested: &Requested) -> bool {
        Arc::ptr_eq(&self.policy, policy) && Arc::ptr_eq(&self.known, known) && self.requested == *requested
    }
}

/// Those of one pool.
#[derive(Default)]
pub struct Receptions(Mutex<Known>);

#[derive(Default)]
struct Known {
    kinds: Vec<(Kind, Arc<Reception>)>,
    oldest: usize,
    /// By the address of a policy that is held, so that no other can have it.
    terms: HashMap<usize, (Arc<ClientPolicy>, Arc<Policy>)>,
}

impl Receptions {
    /// What such a client is given, if one like it was here before.
    pub fn find(
        &self,
        policy: &Arc<ClientPolicy>,
        known: &Arc<Parameters>,
        requested: &Requested,
    ) -> Option<Arc<Reception>> {
        let all = self.0.lock();
        let (_, reception) = all.kinds.iter().find(|(kind, _)| kind.is(policy, known, requested))?;
        Some(Arc::clone(reception))
    }

    /// Keeps what clients of this kind are given.
    pub fn keep(&self, kind: Kind, reception: &Arc<Reception>) {
        if kind.requested.size() > REQUESTED_BYTES_MAX {
            return;
        }
        let mut all = self.0.lock();
        let kept = (kind, Arc::clone(reception));
        if all.kinds.len() < KINDS_MAX {
            all.kinds.push(kept);
            return;
        }
        let oldest = all.oldest;
        all.kinds[oldest] = kept;
        all.oldest = (oldest + 1) % KINDS_MAX;
    }

    /// The policy for links of clients that share servers: one for all that live by the same settings.
    pub fn terms(&self, policy: &Arc<ClientPolicy>) -> Arc<Policy> {
        let mut all = self.0.lock();
        let address = Arc::as_ptr(policy).addr();
        if let Some((_, terms)) = all.terms.get(&address) {
            return Arc::clone(terms);
        }
        // After a reload the old ones are nobody's but ours.
        all.kinds.retain(|(kind, _)| Arc::strong_count(&kind.policy) > 2);
        all.oldest = 0;
        all.terms.retain(|_, (policy, _)| Arc::strong_count(policy) > 1);
        let terms = Arc::new(link_policy(policy, false));
        all.terms.insert(address, (Arc::clone(policy), Arc::clone(&terms)));
        terms
    }
}
