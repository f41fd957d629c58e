//! Cancel requests on their way to servers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Control;
use crate::cancel::{Key, Target};
use crate::cancel_out::CancelOrder;
use crate::moored::Moored;
use crate::worker::Errand;

impl Control {
    /// Sends one and waits until PostgreSQL has dealt with it: until then the server is nobody else's.
    pub(super) async fn cancel(self: Arc<Self>, target: Target, key: Key, counted: Option<Arc<Moored>>) {
        let Target { remote, host, tls, tcp } = target;
        let order = CancelOrder { remote, host, tls, tcp, process_id: key.process_id, key: key.key };
        if let Err(error) = self.cancels.send(&order).await {
            tracing::warn!("cancel request to {}: {error}", order.remote);
        }
        self.shared.cancels.fetch_sub(1, Ordering::Relaxed);
        let Some(moored) = counted else { return };
        let freed = moored.home.pool().cancel_done(moored.slot);
        if let Some(server) = freed {
            self.shared.workers[usize::from(server.worker.0)].ask(Errand::Check(server));
        }
    }
}
