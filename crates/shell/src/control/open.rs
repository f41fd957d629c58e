//! New servers: from a pool's wish to a server in its berth.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use baton::{Berth, Holder};
use client::login::Replication;
use cluster::{Sign, Wanted};
use hub::{NodeRef, OpenOrder, OpenRefusal};
use model::{Parameters, WorkerId};
use pool::{After, Failure, LoginError, Slot};
use server::Server;
use server::login::Methods;
use settings::{Host, ServerAuth};
use wire::startup::Version;

use super::Control;
use super::dedicated::Extra;
use crate::cancel::Target;
use crate::connect::{self, ConnectError, ConnectOrder, Connected, Endpoint};
use crate::home::Home;
use crate::journal;
use crate::leftover::Leftover;
use crate::moored::{Conn, Moored, ServerFacts, ServerSide};
use crate::session::{Granted, Letter};
use crate::shared::tcp_options;
use crate::socket::{Socket, Stream};
use crate::sources::Source;
use crate::tls::ServerTls;
use crate::worker::Errand;

/// A connection and the host that it goes to.
pub(super) struct Opened {
    connected: Connected,
    target: Target,
    node: Option<NodeRef>,
}

impl Control {
    /// Opens a server for a pool.
    pub(super) async fn open(self: Arc<Self>, home: Arc<Home>, slot: Slot) {
        let now = self.shared.clock.now();
        let allowed = self.shared.hub.lock().open_server(now, home.cell.id);
        let order = match allowed {
            Ok(order) => order,
            Err(OpenRefusal::NoNode) => {
                let opens = home.pool().closed(now, slot);
                self.shared.open_servers(&home, opens);
                self.turn_away(&home);
                return;
            }
            Err(refusal) => {
                home.pool().open_refused(now, slot);
                if let OpenRefusal::Limit { evict: Some((_, ended)) } = refusal {
                    self.shared.close_given_up(&ended.server, "evicted");
                }
                return;
            }
        };
        let is_reserve = {
            let pool = home.pool();
            pool.limits().size > 0 && pool.servers() > pool.limits().size
        };
        if is_reserve {
            tracing::info!("{:?}: taking connection from reserve_pool", home.cell);
        }
        match self.connect(&home, &order, None).await {
            Ok(opened) => self.opened(&home, slot, opened),
            Err(error) => self.failed(&home, slot, order.node, &error),
        }
    }

    /// Clients that wait for a standby which cannot be had need not wait: there are other servers for reads.
    fn turn_away(&self, home: &Home) {
        if home.is_reader {
            let waiting = home.pool().refuse_waiting();
            self.shared.reroute(waiting);
        }
    }

    /// Tries the hosts of an order in turn.
    pub(super) async fn connect(
        &self,
        home: &Home,
        order: &OpenOrder,
        extra: Option<&Extra>,
    ) -> Result<Opened, ConnectError> {
        let mut connect = self.connect_order(home, order, extra);
        let mut last = None;
        for (place, hub::Place { host, port }) in order.places.iter().enumerate() {
            (connect.host, connect.port) = (host.clone(), *port);
            match connect::connect(&connect, &self.context).await {
                Ok(connected) => return Ok(self.reached(home, order, place, connect, connected)),
                Err(error) => {
                    tracing::warn!("{:?}: {host}: {error}", home.cell);
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or(ConnectError::TlsRefused))
    }

    /// All about a connection but where it goes.
    pub(super) fn connect_order(
        &self,
        home: &Home,
        order: &OpenOrder,
        extra: Option<&Extra>,
    ) -> ConnectOrder {
        let settings = self.shared.settings();
        let tls = (*self.shared.server_tls.load()).clone();
        ConnectOrder {
            host: Host::Unix(settings.general.unix_socket_dir.clone()),
            port: 0,
            database: order.dbname.clone(),
            user: order.user.clone(),
            secret: order.secret.clone(),
            parameters: startup_parameters(order, extra),
            replication: extra.and_then(|extra| replication(extra.replication)),
            version: Version::V3_0,
            tls,
            tcp: tcp_options(&settings),
            allowed: methods(&order.allowed),
            in_recovery: self.role_of(home, order),
            connect_query: order.connect_query.as_ref().map(|query| query.as_bytes().into()),
            timeout: order.connect_timeout,
        }
    }

    /// One of the hosts was connected to.
    pub(super) fn reached(
        &self,
        home: &Home,
        order: &OpenOrder,
        place: usize,
        way: ConnectOrder,
        connected: Connected,
    ) -> Opened {
        if place > 0 {
            self.shared.hub.lock().reached_host(home.cell.id, place);
        }
        let target = Target {
            remote: connected.remote.clone(),
            host: way.host,
            tls: if connected.tls.is_some() { way.tls } else { ServerTls::DISABLED },
            tcp: way.tcp,
        };
        Opened { connected, target, node: order.node }
    }

    /// The role that a new server must have, where the entry wants one.
    fn role_of(&self, home: &Home, order: &OpenOrder) -> Option<bool> {
        order.node?;
        match self.shared.hub.lock().wanted_of(home.cell.id)? {
            Wanted::Primary | Wanted::ReadWrite => Some(false),
            Wanted::Standby => Some(true),
            Wanted::Any | Wanted::ReadOnly | Wanted::PreferStandby => None,
        }
    }

    /// Hands a connected server to the data plane.
    fn opened(&self, home: &Arc<Home>, slot: Slot, opened: Opened) {
        let moored = self.moor(home, slot, opened, true);
        let now = self.shared.clock.now();
        self.shared.judge(&moored);
        let mut pool = home.pool();
        let answer = pool.opened(now, slot, Arc::clone(&moored), moored.worker);
        self.shared.open_servers(home, answer.open);
        match answer.after {
            After::Handover { client, grant, waited } => {
                drop(pool);
                let _moored = moored.berth.hand_to(Holder::Pool);
                if client.grant(Granted::after(grant, waited)) {
                    self.shared.run(client);
                }
            }
            After::Idle | After::Canceling | After::Dedicated => {
                let edge = moored.berth.hand_to(Holder::Pool);
                drop(pool);
                if edge {
                    self.shared.workers[usize::from(moored.worker.0)].ask(Errand::Look(moored));
                }
            }
            After::Close => {
                drop(pool);
                self.shared.close_given_up(&moored, "no longer wanted when it was ready");
            }
        }
    }

    /// Makes the berth, with the server in it, and has a worker watch its socket.
    pub(super) fn moor(&self, home: &Arc<Home>, slot: Slot, opened: Opened, is_shared: bool) -> Arc<Moored> {
        let Opened { connected, target, node } = opened;
        let shared = &self.shared;
        let id = shared.next_server_id();
        let worker = WorkerId((id.0 % shared.workers.len() as u64) as u16);
        let mut parameters = Parameters::default();
        for (name, value) in &connected.login.parameters {
            // To a client whose reads are split there is one server, and that is no standby.
            let is_role = home.is_reader && name.eq_ignore_ascii_case(b"in_hot_standby");
            parameters.set(name, if is_role { b"off" } else { value }, true);
        }
        // What a walsender reports is not what the pool's other servers do.
        let parameters = if is_shared { self.share(home, parameters) } else { Arc::new(parameters) };
        let login = &connected.login;
        let now = shared.clock.now();
        let machine = Server::new(id, parameters, login.process_id, login.cancel_key.clone(), now);
        let facts = ServerFacts {
            remote: connected.remote.clone(),
            local: connected.local.clone(),
            tls: connected.tls_description.clone().unwrap_or_default(),
            process_id: login.process_id,
            connected_unix: shared.clock.unix_seconds(),
        };
        if let Some(failed) = &login.connect_query_error {
            tracing::warn!("{:?}: S: error while executing exec_on_query: {}", home.cell, failed.message);
        }
        let tls = connected.tls.map(|tls| rustls::Connection::Client(*tls));
        let socket = socket(connected.socket, &connected.remote);
        let fd = socket.fd();
        let stream = Stream::with_tls(socket, tls);
        let side = Box::new(ServerSide { stream, pending: Leftover::new(), readable: false });
        let moored = Arc::new(Moored {
            id,
            home: Arc::clone(home),
            slot,
            worker,
            token: parking_lot::Mutex::new(None),
            facts,
            node,
            cancel: target,
            hung_up: AtomicBool::new(false),
            kept_since: AtomicU64::new(0),
            berth: Berth::new(Conn { side, machine: Box::new(machine) }),
        });
        let sources = &shared.workers[usize::from(worker.0)].sources;
        let token = sources.add(Source::Server(Arc::clone(&moored)));
        *moored.token.lock() = Some(token);
        if let Err(error) = sources.register(fd, token) {
            // It will be seen to be dead as soon as it is used: nobody hears it.
            tracing::warn!("a new server cannot be watched: {error}");
        }
        journal::server_opened(shared, &moored);
        moored
    }

    /// Servers of a pool that report the same share one set, so that comparing them costs nothing.
    fn share(&self, home: &Home, parameters: Parameters) -> Arc<Parameters> {
        let mut welcome = home.welcome.lock();
        match &*welcome {
            Some(known) if **known == parameters => Arc::clone(known),
            Some(_) => Arc::new(parameters),
            None => Arc::clone(welcome.insert(Arc::new(parameters))),
        }
    }

    pub(super) fn failed(&self, home: &Arc<Home>, slot: Slot, node: Option<NodeRef>, error: &ConnectError) {
        let now = self.shared.clock.now();
        let failure = match error.refusal() {
            Some(failed) => {
                let code = failed.sqlstate.clone().unwrap_or_else(|| "08006".to_owned());
                // Of a cluster, another node may do; what one says that ends is no answer to anybody.
                if matches!(&*code, "57P03" | "53300") || (node.is_some() && code.starts_with("57P0")) {
                    Failure::NotNow
                } else {
                    tracing::warn!("{:?}: server login failed: FATAL {}", home.cell, failed.message);
                    Failure::Login(LoginError { code, message: failed.message.clone() })
                }
            }
            None => match error {
                ConnectError::Login(fault) => Failure::Login(LoginError {
                    code: "08006".to_owned(),
                    message: format!("server login failed: {fault}"),
                }),
                _ => Failure::Connect,
            },
        };
        let words = match &failure {
            Failure::Login(error) => Some(error.refusal()),
            Failure::Connect | Failure::NotNow => None,
        };
        let failed = home.pool().open_failed(now, slot, failure);
        if home.is_reader {
            self.shared.reroute(failed.refused);
            self.turn_away(home);
            self.shared.open_servers(home, failed.open);
            self.shared.place_free(home, node, now);
            return self.hear_failure(node, error);
        }
        for session in failed.refused {
            if let Some(refusal) = &words {
                self.shared.post(&session, Letter::End(refusal.clone()));
            }
        }
        self.shared.open_servers(home, failed.open);
        self.shared.place_free(home, node, now);
        self.hear_failure(node, error);
    }

    pub(super) fn hear_failure(&self, node: Option<NodeRef>, error: &ConnectError) {
        if let Some(at) = node {
            let sign = match error {
                ConnectError::RoleDiffers(_) => Sign::RoleDiffers,
                _ => Sign::ConnectFailed,
            };
            self.shared.heard(at, sign);
        }
    }

    /// An order for a connection to an authentication database.
    ///
    /// The default query names its catalog, and is run where nothing else can be meant; a query of the site's own
    /// may rely on the site's search_path.
    pub(super) fn lookup_order(&self, order: &OpenOrder, query: &str) -> ConnectOrder {
        self.own_order(order, "howdah auth_query", query == settings::General::default().auth_query)
    }

    /// An order for a connection that only we use: no parameter of a client's ever gets there.
    pub(super) fn own_order(&self, order: &OpenOrder, name: &str, is_catalog_only: bool) -> ConnectOrder {
        let settings = self.shared.settings();
        let place = order.places.first().cloned();
        let (host, port) = place.map_or((None, 0), |place| (Some(place.host), place.port));
        let mut fixed: Vec<(&[u8], &[u8])> =
            vec![(b"client_encoding", b"UTF8"), (b"application_name", name.as_bytes())];
        if is_catalog_only {
            fixed.push((b"search_path", b"pg_catalog,pg_temp"));
        }
        ConnectOrder {
            host: host.unwrap_or_else(|| Host::Unix(settings.general.unix_socket_dir.clone())),
            port,
            database: order.dbname.clone(),
            user: order.user.clone(),
            secret: order.secret.clone(),
            parameters: fixed.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            replication: None,
            version: Version::V3_0,
            tls: (*self.shared.server_tls.load()).clone(),
            tcp: tcp_options(&settings),
            allowed: methods(&order.allowed),
            in_recovery: None,
            connect_query: None,
            timeout: order.connect_timeout,
        }
    }
}

fn socket(fd: OwnedFd, remote: &Endpoint) -> Socket {
    match remote {
        Endpoint::Tcp(_) => Socket::Tcp(fd.into()),
        Endpoint::Unix(..) => Socket::Unix(fd.into()),
    }
}

pub(super) fn replication(kind: Replication) -> Option<connect::Replication> {
    match kind {
        Replication::No => None,
        Replication::Physical => Some(connect::Replication::Physical),
        Replication::Logical => Some(connect::Replication::Logical),
    }
}

fn startup_parameters(order: &OpenOrder, extra: Option<&Extra>) -> Vec<(Box<[u8]>, Box<[u8]>)> {
    let own = order.parameters.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()));
    let mut all: Vec<(Box<[u8]>, Box<[u8]>)> = own.collect();
    if let Some(extra) = extra {
        all.extend(extra.parameters.iter().cloned());
        all.extend(extra.options.iter().map(|options| (b"options".as_slice().into(), options.clone())));
    }
    all
}

fn methods(allowed: &[ServerAuth]) -> Methods {
    use server::login::Method;
    allowed.iter().fold(Methods::EMPTY, |methods, method| match method {
        ServerAuth::Trust => methods.with(Method::Trust),
        ServerAuth::Password => methods.with(Method::Cleartext),
        ServerAuth::Md5 => methods.with(Method::Md5),
        ServerAuth::ScramSha256 => methods.with(Method::Scram).with(Method::ScramPlus),
    })
}
