//! Servers for one client alone: replication connections, which are never shared.

use std::sync::Arc;
use std::time::Duration;

use baton::Holder;
use client::login::Replication;
use model::{Moment, Refusal};
use pool::{After, Slot};

use super::{Control, TICK};
use crate::connect::ConnectError;
use crate::home::Home;
use crate::session::{Letter, Session};

/// What a replication connection brings along.
pub struct Extra {
    /// Its kind.
    pub replication: Replication,
    /// Its startup parameters.
    pub parameters: Vec<(Box<[u8]>, Box<[u8]>)>,
    /// Its `options`, verbatim.
    pub options: Option<Box<[u8]>>,
}

/// How often an evicted server's end is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Control {
    /// Opens a server for one client alone, as soon as the pool has a place for it.
    pub(super) async fn open_dedicated(
        self: Arc<Self>,
        session: Arc<Session>,
        home: Arc<Home>,
        extra: Extra,
    ) {
        let outcome = self.dedicated(&home, extra).await;
        // If its client has gone meanwhile, it finds out by itself.
        self.shared.post(&session, Letter::Dedicated(outcome));
    }

    async fn dedicated(&self, home: &Arc<Home>, extra: Extra) -> Result<Arc<crate::moored::Moored>, Refusal> {
        let limit = self.shared.settings().general.query_wait_timeout;
        let deadline = self.shared.clock.now().deadline(limit);
        let slot = self.reserve(home, deadline).await.ok_or(Refusal::QueryWaitTimeout)?;
        let order = match self.shared.hub.lock().open_server(self.shared.clock.now(), home.cell.id) {
            Ok(order) => order,
            Err(_) => {
                home.pool().open_refused(self.shared.clock.now(), slot);
                return Err(Refusal::QueryWaitTimeout);
            }
        };
        let opened = match self.connect(home, &order, Some(extra)).await {
            Ok(opened) => opened,
            Err(error) => {
                self.failed(home, slot, order.node, &error);
                return Err(told(&error));
            }
        };
        let moored = self.moor(home, slot, opened, false);
        let now = self.shared.clock.now();
        let answer = home.pool().opened(now, slot, Arc::clone(&moored), moored.worker);
        self.shared.open_servers(home, answer.open);
        if matches!(answer.after, After::Close) {
            // Paused or changed while it was being connected.
            self.shared.close_given_up(&moored, "no longer wanted when it was ready");
            return Err(Refusal::DatabaseChanged);
        }
        Ok(moored)
    }

    /// Waits for a place in the pool. An idle server that must make room is closed first, so that PostgreSQL
    /// never sees more of them than the pool may have.
    async fn reserve(&self, home: &Home, deadline: Moment) -> Option<Slot> {
        loop {
            let reserved = home.pool().reserve_dedicated();
            if let Some(dedicated) = reserved {
                if let Some(ended) = dedicated.evicted {
                    self.shared.close_given_up(&ended.server, "evicted for a replication connection");
                    while !ended.server.berth.look(|holder, _| matches!(holder, Holder::Nobody)) {
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                }
                return Some(dedicated.slot);
            }
            if self.shared.clock.now() >= deadline {
                return None;
            }
            tokio::time::sleep(TICK).await;
        }
    }
}

fn told(error: &ConnectError) -> Refusal {
    match error.refusal() {
        Some(failed) => Refusal::ServerLoginFailed(
            failed.sqlstate.clone().unwrap_or_else(|| wire::sqlstate::CONNECTION_FAILURE.to_owned()),
            failed.message.clone(),
        ),
        None => Refusal::ConnectFailed,
    }
}
