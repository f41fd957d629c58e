//! The control plane: one thread with a runtime, for everything that waits.
//!
//! Workers send orders and are answered by letters and errands. Each order is a task of its own; none of them
//! holds a lock while it waits.

mod open;
mod dedicated;
mod login;
mod cancels;
mod janitor;
mod command;
mod snapshot;
mod reload;
mod drain;
mod listener;
mod monitor;
mod classify;
mod topology;
mod vacancy;
mod health;
mod scrape;

use std::sync::Arc;
use std::time::Duration;

use client::login::{PasswordCheck, Replication};
use hub::{Derivation, ListenerId, Lookup};
use model::ClientId;
use pool::Slot;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cancel;
use crate::cancel_out::CancelSender;
use crate::claim::Claim;
use crate::connect::{ConnectContext, Lookups, Other};
use crate::dns::{Dns, DnsOptions};
use crate::fanout::Waker;
use crate::home::{ClientRef, Home, ServerRef};
use crate::moored::Moored;
use crate::reading::Files;
use crate::session::{Letter, Session};
use crate::shared::Shared;
use crate::signal::{Signal, Signals};
use crate::systemd;

pub use self::drain::Ending;

/// What a worker asks for.
pub enum Order {
    /// Open a server; its pool counts it already.
    Open {
        /// Its pool.
        home: Arc<Home>,
        /// Its place in the pool.
        slot: Slot,
    },
    /// Open a server for one client alone.
    Dedicated {
        /// The client.
        session: Arc<Session>,
        /// Its pool.
        home: Arc<Home>,
        /// What kind of connection the client wants.
        replication: Replication,
        /// Parameters of its startup message.
        parameters: Vec<(Box<[u8]>, Box<[u8]>)>,
        /// `options` of its startup message, as it came.
        options: Option<Box<[u8]>>,
        /// The client, if it logs in there itself.
        other: Option<Other>,
    },
    /// Run an auth_query.
    Lookup {
        /// Who waits for it.
        session: Arc<Session>,
        /// What the client claims.
        claim: Claim,
        /// Where, and for whom.
        lookup: Lookup<ClientRef, ServerRef>,
    },
    /// Make a SCRAM verifier.
    Derive {
        /// Who waits for it.
        session: Arc<Session>,
        /// What the client claims.
        claim: Claim,
        /// Of what.
        derivation: Derivation,
    },
    /// Run a slow check of a password.
    CheckPassword {
        /// Who waits for it.
        session: Arc<Session>,
        /// The check.
        check: PasswordCheck,
    },
    /// Send a cancel request to a server.
    Cancel {
        /// Where the server is.
        target: cancel::Target,
        /// Which session there.
        key: cancel::Key,
        /// The server whose pool counts it; `None` if that server is being closed.
        counted: Option<Arc<Moored>>,
    },
    /// Carry out a console command.
    Command {
        /// Who waits for it.
        session: Arc<Session>,
        /// The command.
        command: console::Command,
    },
    /// Look after a listener from now on.
    Listen {
        /// Which.
        id: ListenerId,
        /// Tells that there is something to do.
        waker: Arc<Waker>,
    },
    /// Find out whether a statement may go to a standby.
    Classify {
        /// Whose clients send it.
        home: Arc<Home>,
        /// The duty to say so.
        ticket: reads::Ticket,
        /// The statement without its literals.
        masked: String,
    },
    /// A client makes or drops databases, or the like: nobody of ours may lie idle in them.
    Vacate {
        /// Whose client.
        home: Arc<Home>,
        /// Their names on its server.
        names: Vec<Box<[u8]>>,
    },
    /// Ask a node of a cluster.
    Probe(Box<hub::ProbeOrder>),
    /// A console session no longer waits for its command.
    CancelCommand {
        /// The session.
        session: ClientId,
    },
}

/// How many slow hashes run at once, beside those for servers.
const HASHES_MAX: usize = 2;

/// The things of the control plane's own.
pub struct Control {
    /// What all threads share.
    pub shared: Arc<Shared>,
    context: ConnectContext,
    dns: Dns,
    lookups: Lookups,
    cancels: CancelSender,
    hashes: Semaphore,
    files: Files,
    statistics: parking_lot::Mutex<snapshot::Statistics>,
    waiting: parking_lot::Mutex<Vec<(ClientId, tokio::task::AbortHandle)>>,
    monitors: monitor::Monitors,
    watches: topology::Watches,
    catalogs: classify::Catalogs,
    scrapes: scrape::Scrapes,
    ending: drain::Ending,
}

/// Serves orders and signals until the process is to end.
///
/// # Errors
/// Those of setting up signal handlers.
pub async fn run(
    shared: Arc<Shared>,
    mut orders: UnboundedReceiver<Order>,
    files: Files,
    ending: Ending,
    health: Option<std::net::TcpListener>,
) -> std::io::Result<()> {
    let settings = shared.settings();
    let dns = Dns::new(dns_options(&settings));
    let context = ConnectContext::new(dns.clone());
    let control = Arc::new(Control {
        lookups: Lookups::new(context.clone()),
        cancels: CancelSender::new(
            settings.general.cancel_connections_max as usize,
            settings.general.cancel_wait_timeout,
        ),
        context,
        dns,
        hashes: Semaphore::new(HASHES_MAX),
        files,
        statistics: parking_lot::Mutex::new(snapshot::Statistics::new(shared.clock.now())),
        waiting: parking_lot::Mutex::default(),
        monitors: monitor::Monitors::default(),
        watches: topology::Watches::default(),
        catalogs: classify::Catalogs::default(),
        scrapes: scrape::Scrapes::default(),
        ending,
        shared,
    });
    let mut signals = Signals::new()?;
    let work = control.shared.hub.lock().start(control.shared.clock.now());
    control.shared.carry_out(work);
    tokio::spawn(janitor::run(Arc::clone(&control)));
    tokio::spawn(janitor::watch_names(Arc::clone(&control)));
    control.watch_topologies();
    if let Some(listener) = health {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::spawn(health::serve(Arc::clone(&control), listener));
    }
    systemd::notify(systemd::Notice::Ready);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => Arc::clone(&control).serve(order),
                None => return Ok(()),
            },
            signal = signals.next() => control.on_signal(signal),
            () = control.ending.reached() => return Ok(()),
        }
    }
}

impl Control {
    fn serve(self: Arc<Self>, order: Order) {
        match order {
            Order::Open { home, slot } => {
                tokio::spawn(async move { self.open(home, slot).await });
            }
            Order::Dedicated { session, home, replication, parameters, options, other } => {
                let extra = dedicated::Extra { replication, parameters, options, other };
                tokio::spawn(async move { self.open_dedicated(session, home, extra).await });
            }
            Order::Lookup { session, claim, lookup } => {
                tokio::spawn(async move { self.look_up(session, claim, lookup).await });
            }
            Order::Derive { session, claim, derivation } => {
                tokio::spawn(async move { self.derive(session, claim, derivation).await });
            }
            Order::CheckPassword { session, check } => {
                tokio::spawn(async move { self.check_password(session, check).await });
            }
            Order::Cancel { target, key, counted } => {
                tokio::spawn(async move { self.cancel(target, key, counted).await });
            }
            Order::Command { session, command } => {
                let id = session.id;
                let control = Arc::clone(&self);
                let task = tokio::spawn(async move {
                    let reply = control.command(command).await;
                    control.waiting.lock().retain(|(waiting, _)| *waiting != id);
                    control.shared.post(&session, Letter::Reply(Box::new(reply)));
                });
                self.waiting.lock().push((id, task.abort_handle()));
            }
            Order::Listen { id, waker } => {
                tokio::spawn(self.keep_listener(id, waker));
            }
            Order::Classify { home, ticket, masked } => {
                tokio::spawn(async move { self.classify(home, ticket, masked).await });
            }
            Order::Vacate { home, names } => self.vacate(&home, &names),
            Order::Probe(probe) => {
                tokio::spawn(async move { self.probe(*probe).await });
            }
            Order::CancelCommand { session } => self.cancel_command(session),
        }
    }

    fn on_signal(self: &Arc<Self>, signal: Signal) {
        tracing::info!("got {}", signal.name());
        let control = Arc::clone(self);
        match signal {
            Signal::Hup => {
                tokio::spawn(async move {
                    // What is wrong with the files is in the log.
                    let _ = control.reload().await;
                });
            }
            Signal::Term => self.shut_down(console::Shutdown::WaitForClients),
            Signal::Int => self.shut_down(console::Shutdown::WaitForServers),
            Signal::Quit => self.ending.reach(),
            Signal::Usr1 => {
                let work = self.shared.hub.lock().pause(self.shared.clock.now(), &hub::Scope::All);
                self.done(work);
                self.renew_listeners(&hub::Scope::All);
            }
            Signal::Usr2 => {
                let work = self.shared.hub.lock().resume(self.shared.clock.now(), &hub::Scope::All);
                self.done(work);
                self.renew_listeners(&hub::Scope::All);
            }
        }
    }

    fn done(&self, work: Result<hub::Work<ClientRef, ServerRef>, console::Failure>) {
        match work {
            Ok(work) => self.shared.carry_out(work),
            Err(failure) => tracing::warn!("{failure}"),
        }
    }
}

fn dns_options(settings: &settings::Settings) -> DnsOptions {
    DnsOptions { max_ttl: settings.general.dns_max_ttl, nxdomain_ttl: settings.general.dns_nxdomain_ttl }
}

/// How often what is due by time is looked at, where nothing tells.
const TICK: Duration = Duration::from_millis(50);
