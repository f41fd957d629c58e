//! One connection that listens for many clients: made, told what to listen on, and made again after a loss.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hub::{Channel, ListenerId, Next, NodeRef, ServerEnd, Target};
use model::{Moment, PoolId, Refusal};
use settings::ListenLost;
use tokio::time::Instant;
use wire::encode::Severity;

use super::Control;
use crate::connect::{ConnectError, ConnectOrder, Heard, Line};
use crate::fanout::{Note, Waker};
use crate::home::ClientRef;
use crate::session::Letter;

/// A question to a listener's connection that is not answered for so long means that it is lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// What woke a listener's keeper.
enum Event {
    /// Something changed, or it is time.
    Look,
    /// The connection said something.
    Heard(Heard),
    /// It is gone, for this reason.
    Lost(String),
}

/// A listener's keeper.
struct Keeper {
    control: Arc<Control>,
    id: ListenerId,
    waker: Arc<Waker>,
    line: Option<Line>,
    /// When a question that was asked must be answered.
    answer_by: Option<Instant>,
    /// How many connections were tried: the hosts take turns.
    tries: usize,
    /// The node that it is connected to, or being connected to, if its database has a cluster.
    at: Option<NodeRef>,
    /// There was nowhere to connect to.
    is_held: bool,
}

impl Control {
    /// Looks after a listener for as long as anybody needs it.
    pub(super) async fn keep_listener(self: Arc<Self>, id: ListenerId, waker: Arc<Waker>) {
        let (line, answer_by, at) = (None, None, None);
        let mut keeper = Keeper { control: self, id, waker, line, answer_by, tries: 0, at, is_held: false };
        while let Some(rests_until) = keeper.act().await {
            match keeper.wait(rests_until).await {
                Event::Look => {}
                Event::Heard(heard) => keeper.heard(heard),
                Event::Lost(why) => keeper.lost(&why),
            }
        }
    }

    /// How to connect a listener, and to which node of a cluster; `None` if there is nowhere to connect to.
    fn listener_order(
        &self,
        id: ListenerId,
        pool: PoolId,
        tries: usize,
    ) -> Option<(ConnectOrder, Option<NodeRef>)> {
        let target = self.shared.listeners.fanout().target(id).cloned()?;
        let home = self.shared.home_of(pool)?;
        let now = self.shared.clock.now();
        let mut order = self.shared.hub.lock().listen_order(now, &home.cell)?;
        let count = order.places.len().max(1);
        order.places.rotate_left(tries % count);
        let fixed: [(&[u8], &[u8]); 2] =
            [(b"client_encoding", &target.encoding), (b"application_name", b"howdah listener")];
        let connect = ConnectOrder {
            parameters: fixed.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..self.lookup_order(&order, "")
        };
        Some((connect, order.node))
    }

    fn is_no_place_to_listen(&self, at: NodeRef) -> bool {
        self.shared.hub.lock().is_no_place_to_listen(at)
    }

    /// The settings have changed: listeners follow their pools.
    pub(super) fn retarget_listeners(&self) {
        let shared = &self.shared;
        let leads: HashMap<PoolId, Target> = {
            let homes = shared.homes();
            let hub = shared.hub.lock();
            let ids = homes.iter().map(|home| home.cell.id);
            ids.filter_map(|id| Some((id, hub.listen_target(id, b"")?))).collect()
        };
        let strays = shared.listeners.retarget(|pool| leads.get(&pool).cloned());
        self.tell_listeners(strays, || Letter::End(Refusal::DatabaseChanged));
    }

    /// Those of a database connect anew, as its servers do; while it is paused, they do not.
    pub(super) fn renew_listeners(&self, scope: &hub::Scope) {
        let is_meant = |home: &crate::home::Home| match scope {
            hub::Scope::All => true,
            hub::Scope::Database(name) => home.cell.key.database == *name,
        };
        let homes = self.shared.homes();
        let pools: Vec<PoolId> =
            homes.iter().filter(|home| is_meant(home)).map(|home| home.cell.id).collect();
        self.shared.listeners.renew(|pool| pools.contains(&pool));
    }

    fn tell_listeners(&self, clients: Vec<ClientRef>, letter: impl Fn() -> Letter) {
        for client in clients {
            self.shared.post(&client, letter());
        }
    }
}

impl Keeper {
    fn now(&self) -> Moment {
        self.control.shared.clock.now()
    }

    /// Does what is next. `None` at the end, else until when there is nothing to do.
    async fn act(&mut self) -> Option<Moment> {
        if self.waker.renew.swap(false, Ordering::AcqRel) {
            if self.line.is_some() {
                self.lost("it is to be connected anew");
            } else {
                self.control.shared.listeners.fanout().retry(self.now(), self.id);
            }
        }
        if self.waker.nodes_changed.swap(false, Ordering::AcqRel) {
            self.follow_nodes();
        }
        match self.control.shared.listeners.next(self.now(), self.id) {
            Next::End => {
                if let Some(line) = self.line.take() {
                    tracing::info!("listener {}: nobody listens any more: closing {}", self.id, line.remote);
                }
                return None;
            }
            Next::Rest(until) => return Some(until),
            Next::Connect(pool) => self.connect(pool).await,
            Next::Say(command) => self.ask(Some(&command)).await,
            Next::Check => self.ask(None).await,
        }
        // There may be more.
        Some(Moment::default())
    }

    /// A server that is frozen, or was the primary, would be silent for good: it is not waited for.
    fn follow_nodes(&mut self) {
        if self.line.is_some() {
            if self.at.is_some_and(|at| self.control.is_no_place_to_listen(at)) {
                self.lost("its node is out, or no longer the primary");
            }
        } else if self.is_held {
            self.control.shared.listeners.fanout().retry(self.now(), self.id);
        }
    }

    /// `Err(None)`: there is nowhere to connect to, or no longer.
    async fn open(&mut self, pool: PoolId) -> Result<Line, Option<ConnectError>> {
        let order = self.control.listener_order(self.id, pool, self.tries);
        let (order, at) = order.ok_or(None)?;
        self.at = at;
        let opening = Line::open(&order, &self.control.context);
        tokio::pin!(opening);
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return opened.map_err(Some),
                // What else it says is looked at afterwards.
                () = self.waker.changed.notified() => {
                    if at.is_some_and(|at| self.control.is_no_place_to_listen(at)) {
                        return Err(None);
                    }
                }
            }
        }
    }

    async fn connect(&mut self, pool: PoolId) {
        let opened = self.open(pool).await;
        self.is_held = matches!(opened, Err(None));
        let now = self.now();
        let listeners = &self.control.shared.listeners;
        match opened {
            Ok(line) => {
                tracing::info!(
                    "listener {}: connected to {} (pid {})",
                    self.id,
                    line.remote,
                    line.process_id
                );
                let remote = &line.remote;
                let end =
                    ServerEnd { addr: remote.address(), port: remote.port(), process_id: line.process_id };
                self.line = Some(line);
                self.answer_by = None;
                listeners.fanout().opened(now, self.id, end);
            }
            Err(error) => {
                self.tries += 1;
                match error {
                    Some(error) => tracing::warn!("listener {}: {error}", self.id),
                    None => tracing::debug!("listener {}: there is nowhere to connect to", self.id),
                }
                let refused = listeners.fanout().failed(now, self.id);
                self.control.tell_listeners(refused, || Letter::Listening(false));
            }
        }
    }

    async fn ask(&mut self, command: Option<&hub::Command>) {
        let Some(line) = &mut self.line else { return };
        self.answer_by = Some(Instant::now() + ANSWER_TIMEOUT);
        match tokio::time::timeout(ANSWER_TIMEOUT, line.ask(command)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.lost(&error.to_string()),
            Err(_) => self.lost("it takes no question"),
        }
    }

    async fn wait(&mut self, rests_until: Moment) -> Event {
        let rest = Duration::from_micros(rests_until.0.saturating_sub(self.now().0));
        // Not a moment that the runtime's clock cannot hold.
        let rest = Instant::now() + rest.min(Duration::from_secs(3600));
        let until = self.answer_by.map_or(rest, |answer_by| answer_by.min(rest));
        let heard = async {
            match &mut self.line {
                Some(line) => line.hear().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            heard = heard => match heard {
                Ok(heard) => Event::Heard(heard),
                Err(error) => Event::Lost(error.to_string()),
            },
            () = self.waker.changed.notified() => Event::Look,
            () = tokio::time::sleep_until(until) => match self.answer_by {
                Some(answer_by) if answer_by <= Instant::now() => Event::Lost("it does not answer".to_owned()),
                _ => Event::Look,
            },
        }
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Ready => self.ready(),
            Heard::Refused(failed) => {
                tracing::warn!("listener {}: cannot listen: {failed}", self.id);
                self.line = None;
                self.answer_by = None;
                self.tries += 1;
                let refused = self.control.shared.listeners.fanout().failed(self.now(), self.id);
                self.control.tell_listeners(refused, || Letter::Listening(false));
            }
            Heard::Notification { channel, message } => self.notified(&channel, message),
        }
    }

    fn ready(&mut self) {
        self.answer_by = None;
        let done = self.control.shared.listeners.fanout().done(self.now(), self.id);
        if !done.missed.is_empty() {
            self.tell_missed(done.missed);
        }
        self.control.tell_listeners(done.heard, || Letter::Listening(true));
    }

    fn tell_missed(&self, clients: Vec<ClientRef>) {
        let settings = self.control.shared.settings();
        if settings.general.listen_lost == ListenLost::Close {
            return self.control.tell_listeners(clients, || Letter::End(Refusal::NotificationsLost));
        }
        let mut message = Vec::new();
        wire::encode::report(
            &mut message,
            Severity::Warning,
            "01000",
            "notifications may have been lost",
            Some("The connection that listens for this client was lost, and is there again."),
        );
        self.give(clients, None, message.into());
    }

    fn notified(&self, name: &[u8], message: Box<[u8]>) {
        let mut to = Vec::new();
        let mut shared: Option<Channel> = None;
        self.control.shared.listeners.fanout().notified(self.now(), self.id, name, |channel, client| {
            shared.get_or_insert_with(|| Arc::clone(channel));
            to.push(Arc::clone(client));
        });
        if shared.is_some() {
            self.give(to, shared, message);
        }
    }

    fn give(&self, clients: Vec<ClientRef>, channel: Option<Channel>, message: Box<[u8]>) {
        let shared = &self.control.shared;
        let most = shared.settings().general.notify_queue_size_max as usize;
        let note = Arc::new(Note { channel, message });
        for client in clients {
            if client.notify(Arc::clone(&note), most) {
                shared.run(client);
            }
        }
    }

    fn lost(&mut self, why: &str) {
        tracing::warn!("listener {}: lost: {why}", self.id);
        self.line = None;
        self.answer_by = None;
        self.tries += 1;
        let refused = self.control.shared.listeners.fanout().lost(self.now(), self.id);
        self.control.tell_listeners(refused, || Letter::Listening(false));
    }
}
