//! What all threads share, and the questions that a worker asks of it: never on the way of a query.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use auth::scram::{AwaitClientFirst, Nonce};
use client::login::{Carried, Challenge, Identity, PasswordCheck, Replication, Transport};
use hub::{CancelKey, Entered, NodeRef, Work};
use link::Policy;
use model::{Moment, Parameters, PoolId, Refusal, ServerId, Statements, WorkerId};
use parking_lot::{Mutex, RwLock};
use pool::{Handover, Opens, Slot};
use reads::Verdict;
use server::Server;
use settings::{Settings, SslMode};
use sql::fingerprint::{Fingerprint, Key};
use stats::PinCounts;
use tokio::sync::mpsc::UnboundedSender;

use crate::alike::Alike;
use crate::cancel;
use crate::claim::{Claim, Witness};
use crate::clock::Clock;
use crate::connect::Other;
use crate::control::Order;
use crate::crew::Crew;
use crate::entry::{Entry, Place, link_policy};
use crate::fanout::Listeners;
use crate::home::{Cell, ClientRef, Home, ServerRef};
use crate::moored::Moored;
use crate::random;
use crate::session::{ClientFacts, Granted, Letter, Session};
use crate::socket::Stream;
use crate::sockopt::TcpOptions;
use crate::split::Readers;
use crate::tls::{ClientTls, Reloadable, ServerTls};
use crate::worker::{Errand, Handle};

/// The hub of the data plane.
pub type Hub = hub::Hub<ClientRef, ServerRef>;

/// What all threads share.
pub struct Shared {
    /// The clock.
    pub clock: Clock,
    /// What clients share.
    pub hub: Mutex<Hub>,
    /// The workers, by their numbers.
    pub workers: Box<[Handle]>,
    /// Which of them are on duty. No other lock is taken with it.
    pub crew: Mutex<Crew>,
    /// What the pools' tables of prepared statements have in common; no statement is in this one.
    pub statements: Statements,
    /// TLS with clients.
    pub client_tls: Reloadable<ClientTls>,
    /// TLS with servers.
    pub server_tls: Reloadable<ServerTls>,
    /// The connections that listen for clients.
    pub listeners: Listeners,
    /// How many cancel requests are on their way.
    pub cancels: AtomicUsize,
    /// Servers that somebody looks after, or did until a moment ago.
    pub kept: Mutex<Vec<Arc<Moored>>>,
    /// Why clients keep their servers.
    pub pins: Mutex<PinCounts>,
    /// An accept() failed for want of descriptors and is to be tried again.
    pub accept_again: AtomicBool,
    /// Makes fingerprints of statements.
    pub fingerprint_key: Key,
    /// How workers hand bytes to the kernel, once one has found out.
    pub io_backend: OnceLock<&'static str>,
    settings: RwLock<Arc<Settings>>,
    facts: Alike<ClientFacts>,
    parameters: Alike<Parameters>,
    homes: RwLock<HashMap<PoolId, Arc<Home>>>,
    loads: Box<[AtomicUsize]>,
    last_id: AtomicU64,
    control: UnboundedSender<Order>,
}

/// How a client must prove itself, now or when somebody has found out.
pub enum Identified {
    /// So.
    Now(Challenge),
    /// A letter will say.
    Later,
}

impl Shared {
    /// Puts the parts together.
    pub fn new(
        hub: Hub,
        workers: Box<[Handle]>,
        control: UnboundedSender<Order>,
        client_tls: ClientTls,
        server_tls: ServerTls,
    ) -> Shared {
        let settings = Arc::clone(hub.settings());
        let loads = workers.iter().map(|_| AtomicUsize::new(0)).collect();
        Shared {
            clock: Clock::start(),
            hub: Mutex::new(hub),
            crew: Mutex::new(Crew::new(workers.len())),
            workers,
            statements: Statements::default(),
            client_tls: Reloadable::new(client_tls),
            server_tls: Reloadable::new(server_tls),
            listeners: Listeners::new(&settings),
            cancels: AtomicUsize::new(0),
            kept: Mutex::default(),
            pins: Mutex::default(),
            accept_again: AtomicBool::new(false),
            fingerprint_key: Key::new(random::bytes()),
            io_backend: OnceLock::new(),
            settings: RwLock::new(settings),
            facts: Alike::default(),
            parameters: Alike::default(),
            homes: RwLock::default(),
            loads,
            last_id: AtomicU64::new(0),
            control,
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read())
    }

    /// Puts new settings in force, after the hub has taken them.
    pub fn set_settings(&self, settings: Arc<Settings>) {
        *self.settings.write() = settings;
    }

    /// A number that no other connection of this process has.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A name for a server.
    pub fn next_server_id(&self) -> ServerId {
        ServerId(self.next_id())
    }

    /// Asks the control plane.
    pub fn order(&self, order: Order) {
        // It is gone only when the process ends.
        let _ = self.control.send(order);
    }

    /// Sees to it that it is found out whether statements like this one may go to a standby. Does nothing if somebody
    /// is at it, or if too many wait already.
    #[cold]
    pub fn classify(&self, home: &Arc<Home>, fingerprint: Fingerprint, text: &[u8]) {
        let verdicts = home.verdicts();
        let Some(ticket) = verdicts.claim(fingerprint) else { return };
        match sql::fingerprint::masked(text) {
            Ok(masked) => self.order(Order::Classify { home: Arc::clone(home), ticket, masked }),
            // It has a fingerprint, so it is not another text's only if whoever asks mistook one for the other.
            Err(unfit) => verdicts.put(ticket, Verdict::Primary(reads::unfit(text, unfit))),
        }
    }

    /// Sees to it that a worker does what was posted to a session by another thread.
    pub fn run(&self, session: Arc<Session>) {
        self.workers[usize::from(session.worker.0)].ask(Errand::Run(session));
    }

    /// Leaves a letter, from a thread that is no worker.
    pub fn post(&self, session: &Arc<Session>, letter: Letter) {
        if session.send(letter) {
            self.run(Arc::clone(session));
        }
    }

    /// Clients that are alike share what is known about them.
    pub fn share_facts(&self, facts: ClientFacts) -> Arc<ClientFacts> {
        self.facts.share(facts)
    }

    /// Clients that rely on the same settings share one set, so that comparing it with a server's is comparing
    /// pointers.
    pub fn share_parameters(&self, parameters: Parameters) -> Arc<Parameters> {
        self.parameters.share(parameters)
    }

    // New clients.

    /// Whether one more client may begin its login.
    pub fn admit_unproved(&self) -> bool {
        self.hub.lock().admit().is_ok()
    }

    /// The worker that is to watch a new client: the caller, unless another has far fewer.
    pub fn least_busy(&self, caller: WorkerId, slack: usize) -> WorkerId {
        let load = |index: usize| self.loads[index].load(Ordering::Relaxed);
        let own = load(usize::from(caller.0));
        let least = (0..self.loads.len()).min_by_key(|&index| load(index)).unwrap_or_default();
        if own > load(least) + slack { WorkerId(least as u16) } else { caller }
    }

    /// A client was accepted.
    pub fn client_came(&self, session: &Session) {
        self.loads[usize::from(session.worker.0)].fetch_add(1, Ordering::Relaxed);
    }

    /// A client is gone: what it counted for is given back.
    pub fn client_gone(&self, session: &Session) {
        if session.is_gone.swap(true, Ordering::AcqRel) {
            return;
        }
        self.loads[usize::from(session.worker.0)].fetch_sub(1, Ordering::Relaxed);
        let now = self.clock.now();
        let mut hub = self.hub.lock();
        if !session.is_proved.swap(true, Ordering::AcqRel) {
            hub.login_over();
        }
        let forgotten = hub.leave(now, session.id);
        drop(hub);
        if let Some(pool) = forgotten {
            self.homes.write().remove(&pool);
        }
    }

    /// An accept() failed: try again when something was closed.
    pub fn retry_accept(&self) {
        self.accept_again.store(true, Ordering::Relaxed);
    }

    /// Options of TCP sockets.
    pub fn tcp_options(&self) -> TcpOptions {
        tcp_options(&self.settings())
    }

    /// What a client on TCP may begin with.
    pub fn transport(&self) -> Transport {
        match self.client_tls.load().mode {
            SslMode::Disable => Transport::Plain,
            SslMode::Allow | SslMode::Prefer => Transport::PlainTlsOffered,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Transport::PlainTlsRequired,
        }
    }

    /// Our side of a TLS session with a client.
    pub fn accept_tls(&self) -> Option<rustls::Connection> {
        let config = self.client_tls.load().config.clone()?;
        rustls::ServerConnection::new(config).ok().map(rustls::Connection::Server)
    }

    /// How long a login may take; zero is for ever.
    pub fn login_timeout(&self) -> Duration {
        self.settings().general.client_login_timeout
    }

    /// What is added to a client's application_name.
    pub fn application_name_suffix(&self, session: &Session) -> Option<String> {
        self.settings().general.application_name_add_host.then(|| match session.origin.address() {
            Some(peer) => format!(" - {peer}"),
            None => " - unix".to_owned(),
        })
    }

    // Logins.

    /// Asks the hub how a client must prove itself, and where it goes if it can.
    pub fn identify(
        &self,
        session: &Arc<Session>,
        stream: &Stream,
        identity: &Identity,
    ) -> (hub::Seat, Identified) {
        let witness = Witness::of(session, stream);
        let is_tls = witness.is_tls();
        let now = self.clock.now();
        let plan = self.hub.lock().identify(now, &witness.facts(identity));
        let claim = || Claim { identity: identity.clone(), witness };
        (plan.seat, self.challenge(session, is_tls, claim, plan.challenge))
    }

    /// What the hub asks for, in the login's words; what takes time goes to the control plane.
    pub fn challenge(
        &self,
        session: &Arc<Session>,
        is_tls: bool,
        claim: impl FnOnce() -> Claim,
        challenge: hub::Challenge<ClientRef, ServerRef>,
    ) -> Identified {
        Identified::Now(match challenge {
            hub::Challenge::Pass => Challenge::Pass,
            hub::Challenge::Refuse(refusal) => Challenge::Refuse(refusal),
            hub::Challenge::Relay => Challenge::Relay,
            hub::Challenge::Plain(expected) => Challenge::Plain(expect(expected)),
            hub::Challenge::Md5(expected) => Challenge::Md5(expect(expected), random::bytes()),
            hub::Challenge::Scram(credential) => Challenge::Scram(self.scram(is_tls, credential)),
            hub::Challenge::Derive(derivation) => {
                self.order(Order::Derive { session: Arc::clone(session), claim: claim(), derivation });
                return Identified::Later;
            }
            hub::Challenge::Lookup(lookup) => {
                self.order(Order::Lookup { session: Arc::clone(session), claim: claim(), lookup });
                return Identified::Later;
            }
        })
    }

    /// A SCRAM exchange, bound to the TLS session if there is one.
    pub fn scram(&self, is_tls: bool, credential: auth::scram::Credential) -> AwaitClientFirst {
        let tls = self.client_tls.load();
        let binding = tls.channel_binding.as_deref().filter(|_| is_tls);
        AwaitClientFirst::new(credential, binding, Nonce(random::bytes()))
    }

    /// Runs a slow check of a password elsewhere.
    pub fn check_password(&self, session: &Arc<Session>, check: PasswordCheck) {
        self.order(Order::CheckPassword { session: Arc::clone(session), check });
    }

    /// The client has proved who it is: may it come in? With its place it gets the key by which its queries can
    /// be canceled; it has none, and will not get to use it, if it is asked to leave while it enters.
    ///
    /// # Errors
    /// What stands against it.
    pub fn enter(
        &self,
        session: &Arc<Session>,
        seat: &hub::Seat,
        identity: &Identity,
        evidence: client::login::Evidence,
    ) -> Result<(Entry, Option<CancelKey>), Refusal> {
        let evidence = match evidence {
            client::login::Evidence::None => hub::Evidence::None,
            client::login::Evidence::Password(password) => hub::Evidence::Password(password),
            client::login::Evidence::Scram(login) => hub::Evidence::Scram(login),
        };
        let now = self.clock.now();
        let entropy = random::bytes();
        let (entered, key) = {
            let mut hub = self.hub.lock();
            let entered = hub.enter(now, session.id, session, seat, evidence)?;
            // Who is let in by its server is still on its way.
            if !seat.is_passthrough() && !session.is_proved.swap(true, Ordering::AcqRel) {
                hub.login_over();
            }
            let takes_long_keys = !seat.is_console() && identity.takes_long_keys();
            (entered, hub.issue_key(session.id, &entropy, takes_long_keys))
        };
        let entry = match entered {
            Entered::Console(role) => Entry::Console(role),
            Entered::Member(member) => {
                let is_replication = identity.replication != Replication::No;
                let home = self.home(&member.cell);
                self.open_servers(&home, member.open);
                let is_passthrough = seat.is_passthrough();
                Entry::Pool(Place { home, policy: member.policy, is_replication, is_passthrough })
            }
        };
        Ok((entry, key))
    }

    /// Its server has let a client in.
    pub fn let_in(&self, session: &Session, home: &Home) {
        let mut hub = self.hub.lock();
        if !session.is_proved.swap(true, Ordering::AcqRel) {
            hub.login_over();
        }
        hub.let_in(home.cell.id);
    }

    /// A cancel request has come on a connection of its own.
    pub fn cancel_request(
        &self,
        _from: &Session,
        process_id: u32,
        key: &[u8],
        runnable: &mut VecDeque<Arc<Session>>,
    ) {
        let found = self.hub.lock().find_by_key(process_id, key);
        if let Some((_, session)) = found
            && session.send(Letter::Cancel)
        {
            runnable.push_back(session);
        }
    }

    // Pools and servers.

    /// A pool as the workers see it.
    pub fn home(&self, cell: &Arc<Cell>) -> Arc<Home> {
        if let Some(home) = self.homes.read().get(&cell.id) {
            return Arc::clone(home);
        }
        let mut homes = self.homes.write();
        let make = || {
            let policy = self.hub.lock().policy(cell.id, &cell.key.user);
            if self.settings().find(&cell.key.database).is_some_and(|found| found.is_auto) {
                tracing::info!("registered new auto-database: {}", cell.key.database);
            }
            let cleaning = policy.map_or_else(Policy::default, |policy| link_policy(&policy, false));
            let statements = Arc::new(self.statements.beside());
            Arc::new(Home::new(Arc::clone(cell), self.workers.len(), statements, Arc::new(cleaning)))
        };
        Arc::clone(homes.entry(cell.id).or_insert_with(make))
    }

    /// Where the reads of a pool's clients may go, if they may go elsewhere.
    pub fn readers(&self, main: &Arc<Home>) -> Option<Arc<Readers>> {
        let mut kept = main.readers.lock();
        if let Some(readers) = &*kept {
            return Some(Arc::clone(readers));
        }
        let split = self.hub.lock().split_of(self.clock.now(), main.cell.id)?;
        let homes: Box<[Arc<Home>]> = split.cells.iter().map(|cell| self.home(cell)).collect();
        // What the primary's servers report, standbys report as well: sets that are one cost nothing to compare.
        let known = main.welcome.lock().clone();
        for home in homes.iter().filter(|_| known.is_some()) {
            home.welcome.lock().clone_from(&known);
        }
        let readers = Arc::new(Readers::new(&split, homes, self.workers.len()));
        *kept = Some(Arc::clone(&readers));
        Some(readers)
    }

    /// Tells clients that wait for a standby which is out.
    pub fn reroute(&self, clients: Vec<ClientRef>) {
        for session in clients {
            self.post(&session, Letter::Reroute);
        }
    }

    /// A pool that some client has entered.
    pub fn home_of(&self, pool: PoolId) -> Option<Arc<Home>> {
        self.homes.read().get(&pool).map(Arc::clone)
    }

    /// All pools.
    pub fn homes(&self) -> Vec<Arc<Home>> {
        self.homes.read().values().map(Arc::clone).collect()
    }

    /// Forgets pools that the hub no longer has.
    pub fn forget_homes(&self, is_known: impl Fn(PoolId) -> bool) {
        self.homes.write().retain(|id, _| is_known(*id));
    }

    /// Has servers opened.
    pub fn open_servers(&self, home: &Arc<Home>, opens: Opens) {
        for slot in opens {
            self.order(Order::Open { home: Arc::clone(home), slot });
        }
    }

    /// Has a server opened for one client alone.
    pub fn open_dedicated(
        &self,
        session: &Arc<Session>,
        home: &Arc<Home>,
        identity: &Identity,
        carried: &Carried,
        other: Option<Other>,
    ) {
        let parameters = carried.parameters.iter().map(|p| (p.name.clone(), p.value.clone())).collect();
        self.order(Order::Dedicated {
            session: Arc::clone(session),
            home: Arc::clone(home),
            replication: identity.replication,
            parameters,
            options: carried.options.clone(),
            other,
        });
    }

    /// Has a worker close a server that its pool has given up.
    pub fn close_given_up(&self, moored: &Arc<Moored>, reason: &'static str) {
        self.workers[usize::from(moored.worker.0)].ask(Errand::Close(Arc::clone(moored), reason));
    }

    /// A server's socket is closed: its place is free.
    pub fn server_gone(&self, moored: &Moored, now: Moment) {
        let home = &moored.home;
        let opens = home.pool().closed(now, moored.slot);
        self.open_servers(home, opens);
        self.place_free(home, moored.node, now);
    }

    /// A server of this pool no longer counts; others may wait for just that.
    pub fn place_free(&self, home: &Home, node: Option<NodeRef>, now: Moment) {
        let poke = {
            let mut hub = self.hub.lock();
            if let Some(node) = node {
                hub.node_released(node);
            }
            let poke = hub.server_gone(now, home.cell.id);
            let is_forgotten = hub.pool(home.cell.id).is_none();
            drop(hub);
            if is_forgotten {
                self.homes.write().remove(&home.cell.id);
            }
            poke
        };
        for cell in poke {
            let opens = cell.lock().poke(now);
            self.open_servers(&self.home(&cell), opens);
        }
    }

    /// Sends a server's cancel request to where the server is. `slot`: its pool counts it, and is told when it
    /// is over.
    pub fn cancel(&self, moored: &Arc<Moored>, server: &Server, slot: Option<Slot>) {
        let target = moored.cancel.clone();
        let key = cancel::Key { process_id: server.process_id, key: server.cancel_key.clone() };
        self.cancels.fetch_add(1, Ordering::Relaxed);
        let counted = slot.map(|_| Arc::clone(moored));
        self.order(Order::Cancel { target, key, counted });
    }

    /// Does what the hub decided.
    pub fn carry_out(&self, work: Work<ClientRef, ServerRef>) {
        for (_, ended) in work.close {
            self.close_given_up(&ended.server, "idle too long, too old, or no longer wanted");
        }
        for (session, refusal) in work.disconnect {
            self.post(&session, Letter::End(refusal));
        }
        for (cell, opens) in work.open {
            self.open_servers(&self.home(&cell), opens);
        }
        for Handover { client, grant, waited } in work.handovers {
            if client.grant(Granted::after(grant, waited)) {
                self.run(client);
            }
        }
        self.reroute(work.reroute);
        self.see_to_nodes(work.news, work.probe, &work.recheck);
    }

    // The console.

    /// Has a console command carried out.
    pub fn command(&self, session: &Arc<Session>, command: console::Command) {
        self.order(Order::Command { session: Arc::clone(session), command });
    }

    /// The console command that a session waits for is canceled.
    pub fn cancel_command(&self, session: &Arc<Session>) {
        self.order(Order::CancelCommand { session: session.id });
    }
}

fn expect(expected: hub::Expected) -> client::login::Expected {
    match expected {
        hub::Expected::Stored(secret, shown) => client::login::Expected::stored(secret).or_shown(shown),
        hub::Expected::Nobody(decoy) => client::login::Expected::nobody(decoy.0),
    }
}

/// The settings' options of TCP sockets.
pub fn tcp_options(settings: &Settings) -> TcpOptions {
    let general = &settings.general;
    TcpOptions {
        keepalive: general.tcp_keepalive,
        keepidle: general.tcp_keepidle,
        keepintvl: general.tcp_keepintvl,
        keepcnt: general.tcp_keepcnt,
        user_timeout: general.tcp_user_timeout,
        socket_buffer_bytes: general.tcp_socket_buffer as usize,
    }
}
