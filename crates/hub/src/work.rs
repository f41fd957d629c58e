//! What the hub wants done to clients and servers; the holder of the sockets does it, with no lock held.

use std::sync::Arc;

use model::Refusal;
use pool::{Due, Ended, Handover, Opens};

use crate::cell::PoolCell;
use crate::clusters::{ClusterId, News, ProbeOrder};

/// Things to do, in no particular order.
#[derive(Debug)]
#[must_use]
pub struct Work<C, S> {
    /// Servers to close; after each: [`pool::Pool::closed`] and [`crate::Hub::server_gone`].
    pub close: Vec<(Arc<PoolCell<C, S>>, Ended<S>)>,
    /// Clients to refuse or disconnect. They are out of every queue; those that had entered still have to leave. One
    /// can be named twice.
    pub disconnect: Vec<(C, Refusal)>,
    /// Servers to open, by [`crate::Hub::open_server`] for each slot.
    pub open: Vec<(Arc<PoolCell<C, S>>, Opens)>,
    /// Clients that waited and have a server now.
    pub handovers: Vec<Handover<C, S>>,
    /// Clients that waited for a server on a standby and are to look for another: they are in no queue any more.
    pub reroute: Vec<C>,
    /// Nodes to ask, by [`crate::Hub::probed`].
    pub probe: Vec<ProbeOrder>,
    /// Clusters whose servers are to be looked at again, each by [`crate::Hub::fate`].
    pub recheck: Vec<ClusterId>,
    /// For the log.
    pub news: Vec<News>,
}

impl<C, S> Work<C, S> {
    /// Nothing to do.
    pub fn none() -> Work<C, S> {
        Work {
            close: Vec::new(),
            disconnect: Vec::new(),
            open: Vec::new(),
            handovers: Vec::new(),
            reroute: Vec::new(),
            probe: Vec::new(),
            recheck: Vec::new(),
            news: Vec::new(),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let has_nothing_to_end = self.close.is_empty() && self.disconnect.is_empty();
        let has_no_news = self.probe.is_empty() && self.recheck.is_empty() && self.news.is_empty();
        let has_nothing_to_give = self.handovers.is_empty() && self.reroute.is_empty();
        has_nothing_to_end && self.open.is_empty() && has_nothing_to_give && has_no_news
    }

    pub(crate) fn extend(&mut self, other: Work<C, S>) {
        self.close.extend(other.close);
        self.disconnect.extend(other.disconnect);
        self.open.extend(other.open);
        self.handovers.extend(other.handovers);
        self.reroute.extend(other.reroute);
        self.probe.extend(other.probe);
        self.recheck.extend(other.recheck);
        self.news.extend(other.news);
    }

    pub(crate) fn close_all(&mut self, cell: &Arc<PoolCell<C, S>>, ended: Vec<Ended<S>>) {
        self.close.extend(ended.into_iter().map(|ended| (Arc::clone(cell), ended)));
    }

    pub(crate) fn open_all(&mut self, cell: &Arc<PoolCell<C, S>>, open: Opens) {
        if !open.is_empty() {
            self.open.push((Arc::clone(cell), open));
        }
    }

    pub(crate) fn refuse_all(&mut self, clients: Vec<C>, refusal: &Refusal) {
        self.disconnect.extend(clients.into_iter().map(|client| (client, refusal.clone())));
    }

    pub(crate) fn due(&mut self, cell: &Arc<PoolCell<C, S>>, due: Due<C, S>) {
        self.close_all(cell, due.close);
        self.open_all(cell, due.open);
        self.handovers.extend(due.handovers);
        self.disconnect.extend(due.expired.into_iter().map(|expired| {
            let refusal = match (expired.held, expired.pinned) {
                (true, _) => Refusal::FailoverTimeout,
                (false, true) => Refusal::PinWaitTimeout,
                (false, false) => Refusal::QueryWaitTimeout,
            };
            (expired.client, refusal)
        }));
    }
}
