//! Servers and the nodes that they are on: what traffic shows of a node, and what becomes of its servers.

use cluster::{Fate, Sign};
use hub::{ClusterId, News, NodeRef, ProbeOrder};

use baton::Holder;

use crate::control::Order;
use crate::moored::Moored;
use crate::session::Letter;
use crate::shared::Shared;

impl Shared {
    /// Traffic has shown something about a node.
    pub fn heard(&self, at: NodeRef, sign: Sign) {
        let work = self.hub.lock().heard(self.clock.now(), at, sign);
        self.carry_out(work);
    }

    /// Says what is new about clusters, asks nodes, and looks at all servers of clusters that are not as before.
    pub(crate) fn see_to_nodes(&self, news: Vec<News>, probes: Vec<ProbeOrder>, recheck: &[ClusterId]) {
        for News { text, is_alarming } in news {
            if is_alarming { tracing::warn!("{text}") } else { tracing::info!("{text}") }
        }
        for probe in probes {
            self.order(Order::Probe(Box::new(probe)));
        }
        if recheck.is_empty() {
            return;
        }
        for moored in self.servers() {
            if moored.node.is_some_and(|at| recheck.contains(&at.cluster)) {
                self.judge(&moored);
            }
        }
        self.listeners.nodes_changed();
    }

    /// A server whose node is out, or is no longer what its pool wants, is closed when it is free; one whose
    /// node must not be heard any more, at once.
    pub(crate) fn judge(&self, moored: &std::sync::Arc<Moored>) {
        let Some(at) = moored.node else { return };
        let fate = self.hub.lock().fate(moored.home.cell.id, at);
        let ended = match fate {
            Fate::Keep => return,
            Fate::WhenFree => {
                let holder = moored.berth.look(|holder, _| holder.clone());
                if let Holder::Client(session) = holder
                    && session.who().is_some_and(|who| who.is_passthrough)
                {
                    // It is free only with its client's session.
                    self.post(&session, Letter::Leave(moored.id));
                }
                moored.home.pool().retire(moored.slot)
            }
            Fate::AtOnce => {
                let holder = moored.berth.look(|holder, _| holder.clone());
                if let Holder::Client(session) = holder {
                    // It has the server in hand, and lets go of it itself.
                    self.post(&session, Letter::Cut(moored.id));
                    return;
                }
                moored.home.pool().cut(moored.slot)
            }
        };
        if let Some(ended) = ended {
            self.close_given_up(&ended.server, "its node is out, or has another role");
        }
    }
}
