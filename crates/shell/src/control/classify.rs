//! Which statements may go to a standby: found out here, off the way of a query.

use std::sync::Arc;
use std::time::Duration;

use reads::Ticket;

use super::Control;
use crate::home::Home;

/// When it could not be found out, nobody tries again for so long.
const PAUSE: Duration = Duration::from_secs(1);

impl Control {
    /// Finds out whether a statement may go to a standby.
    pub(super) async fn classify(self: Arc<Self>, home: Arc<Home>, ticket: Ticket, masked: String) {
        tracing::debug!("{:?}: not decided: {masked}", home.cell);
        tokio::time::sleep(PAUSE).await;
        home.verdicts().give_up(ticket);
    }

    /// All verdicts are found out anew: what they were made of may have changed.
    pub(super) fn forget_verdicts(&self) {
        self.shared.homes().iter().for_each(|home| home.forget_verdicts());
    }
}
