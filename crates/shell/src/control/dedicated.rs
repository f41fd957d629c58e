//! Servers for one client alone, which are never shared: replication connections, and those to which their client
//! logs in itself.

use std::sync::Arc;
use std::time::Duration;

use baton::Holder;
use client::login::Replication;
use hub::{NodeRef, OpenOrder, OpenRefusal};
use model::{Moment, Refusal};
use pool::{After, Slot};
use server::login::{LoginError, LoginFault};

use super::open::Opened;
use super::{Control, TICK};
use crate::connect::{ConnectError, Other};
use crate::home::Home;
use crate::moored::Moored;
use crate::session::{Letter, Session};

/// What such a connection brings along.
pub struct Extra {
    /// Its kind.
    pub replication: Replication,
    /// Its startup parameters.
    pub parameters: Vec<(Box<[u8]>, Box<[u8]>)>,
    /// Its `options`, verbatim.
    pub options: Option<Box<[u8]>>,
    /// Who logs in, if it is not we.
    pub other: Option<Other>,
}

impl Extra {
    fn is_client_gone(&mut self) -> bool {
        self.other.as_mut().is_some_and(Other::is_gone)
    }

    /// Whether another server could still take the place of one that failed.
    fn is_fresh(&self) -> bool {
        self.other.as_ref().is_some_and(|other| !other.was_told)
    }
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
        // If its client has gone meanwhile, whoever closed the session finds it in the mail.
        self.shared.post(&session, Letter::Dedicated(outcome));
    }

    async fn dedicated(&self, home: &Arc<Home>, mut extra: Extra) -> Result<Arc<Moored>, Refusal> {
        let limit = self.shared.settings().general.query_wait_timeout;
        let deadline = self.shared.clock.now().deadline(limit);
        loop {
            let (slot, order) = self.place(home, &mut extra, deadline).await?;
            let connected = match extra.other.is_some() {
                true => self.connect_relayed(home, &order, &mut extra).await,
                false => self.connect(home, &order, Some(&extra)).await,
            };
            match connected {
                Ok(opened) => return self.settle(home, slot, opened),
                Err(error) if extra.other.is_some() => {
                    self.relay_failed(home, slot, order.node, &error);
                    let may_repeat = order.node.is_some() && is_passing(&error) && extra.is_fresh();
                    if !may_repeat || self.shared.clock.now() >= deadline {
                        return Err(told(&error));
                    }
                    tokio::time::sleep(TICK).await;
                }
                Err(error) => {
                    self.failed(home, slot, order.node, &error);
                    return Err(told(&error));
                }
            }
        }
    }

    fn settle(&self, home: &Arc<Home>, slot: Slot, opened: Opened) -> Result<Arc<Moored>, Refusal> {
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

    /// Waits until pool, database and user have a place, and a node is fit.
    async fn place(
        &self,
        home: &Arc<Home>,
        extra: &mut Extra,
        deadline: Moment,
    ) -> Result<(Slot, OpenOrder), Refusal> {
        loop {
            let slot = self.reserve(home, extra, deadline).await?;
            let now = self.shared.clock.now();
            let refused = match self.shared.hub.lock().open_own_server(now, home.cell.id) {
                Ok(order) => return Ok((slot, order)),
                Err(refused) => refused,
            };
            // It was no failure of the pool's.
            let opens = home.pool().closed(now, slot);
            self.shared.open_servers(home, opens);
            match refused {
                OpenRefusal::Gone => return Err(Refusal::DatabaseRemoved),
                OpenRefusal::Limit { evict: Some((_, ended)) } => {
                    self.shared.close_given_up(&ended.server, "evicted");
                }
                OpenRefusal::Limit { evict: None } | OpenRefusal::NoNode => {}
            }
            if now >= deadline {
                return Err(Refusal::QueryWaitTimeout);
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Waits for a place in the pool. An idle server that must make room is closed first, so that PostgreSQL
    /// never sees more of them than the pool may have.
    async fn reserve(&self, home: &Home, extra: &mut Extra, deadline: Moment) -> Result<Slot, Refusal> {
        loop {
            let reserved = home.pool().reserve_dedicated();
            if let Some(dedicated) = reserved {
                if let Some(ended) = dedicated.evicted {
                    self.shared.close_given_up(&ended.server, "evicted for a client's own connection");
                    while !ended.server.berth.look(|holder, _| matches!(holder, Holder::Nobody)) {
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                }
                return Ok(dedicated.slot);
            }
            if extra.is_client_gone() {
                // It hears nothing any more.
                return Err(Refusal::ClientLoginTimeout(true));
            }
            if self.shared.clock.now() >= deadline {
                let is_held = home.pool().is_held();
                return Err(if is_held { Refusal::FailoverTimeout } else { Refusal::QueryWaitTimeout });
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Tries the hosts of an order in turn, until one of them has asked the client something.
    async fn connect_relayed(
        &self,
        home: &Home,
        order: &OpenOrder,
        extra: &mut Extra,
    ) -> Result<Opened, ConnectError> {
        let mut connect = self.connect_order(home, order, Some(extra));
        let Some(other) = &mut extra.other else { return Err(ConnectError::ClientGone) };
        let mut last = ConnectError::TlsRefused;
        for (place, hub::Place { host, port }) in order.places.iter().enumerate() {
            (connect.host, connect.port) = (host.clone(), *port);
            match crate::connect::connect_relayed(&connect, &self.context, other).await {
                Ok(connected) => return Ok(self.reached(home, order, place, connect, connected)),
                Err(error) => {
                    let is_last = other.was_told || !is_passing(&error);
                    last = error;
                    if is_last {
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    /// Nothing came of it. What a server says to a client that it does not let in is no sign of its own health.
    fn relay_failed(&self, home: &Arc<Home>, slot: Slot, node: Option<NodeRef>, error: &ConnectError) {
        let now = self.shared.clock.now();
        let opens = home.pool().closed(now, slot);
        self.shared.open_servers(home, opens);
        self.shared.place_free(home, node, now);
        match error {
            ConnectError::ClientGone => return,
            ConnectError::Login(LoginError::Failed(failed)) => {
                tracing::info!("{:?}: the server let no client in: {}", home.cell, failed.message);
            }
            error => tracing::warn!("{:?}: {error}", home.cell),
        }
        if is_passing(error) {
            self.hear_failure(node, error);
        }
    }
}

/// Whether the server could not be had, rather than not by this client.
fn is_passing(error: &ConnectError) -> bool {
    match error {
        ConnectError::Login(LoginError::Failed(failed)) => {
            let code = failed.sqlstate.as_deref().unwrap_or_default();
            code == "53300" || code.starts_with("57P0")
        }
        ConnectError::Login(LoginError::Fault(_)) | ConnectError::ClientGone => false,
        _ => true,
    }
}

fn told(error: &ConnectError) -> Refusal {
    let words = |code: &str, text: String| Refusal::ServerLoginFailed(code.to_owned(), text);
    match error {
        ConnectError::Login(LoginError::Failed(failed)) => {
            let code = failed.sqlstate.as_deref().unwrap_or(wire::sqlstate::CONNECTION_FAILURE);
            words(code, failed.message.clone())
        }
        ConnectError::Login(LoginError::Fault(fault @ LoginFault::BindingLost)) => {
            words(wire::sqlstate::PROTOCOL_VIOLATION, fault.to_string())
        }
        // It is another one since the client was asked.
        ConnectError::RoleDiffers(_) => words(wire::sqlstate::CANNOT_CONNECT_NOW, error.to_string()),
        _ => Refusal::ConnectFailed,
    }
}
