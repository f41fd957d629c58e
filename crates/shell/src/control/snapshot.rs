//! What the console shows, gathered from the sessions, the servers and the hub.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use console::{
    ClientRow, ClientState, ConfigRow, DnsHostRow, ListCounts, MemRow, NodeRow, PinRow, Pinned, PoolRow,
    Replication, RouteRow, ServerRow, ServerState, Show, Snapshot, Socket, State, StatsRow,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::{Moment, PoolMode};
use pool::State as SlotState;
use stats::{History, Totals};

use super::Control;
use crate::moored::Moored;
use crate::pins;
use crate::session::{Core, Phase, Session};
use crate::shared::Shared;
use crate::sources::Source;

/// Snapshots of the counters, a period apart.
pub(super) struct Statistics {
    all: History,
    databases: BTreeMap<String, History>,
    rolled_at: Moment,
}

impl Statistics {
    pub(super) fn new(now: Moment) -> Statistics {
        Statistics { all: History::new(age(now)), databases: BTreeMap::new(), rolled_at: now }
    }

    /// Takes a snapshot if a period is over; then answers the log's line.
    pub(super) fn roll(&mut self, shared: &Shared, now: Moment) -> Option<String> {
        let period = shared.settings().general.stats_period.max(Duration::from_secs(1));
        if now.since(self.rolled_at) < period {
            return None;
        }
        self.rolled_at = now;
        let databases = by_database(shared);
        let sum: Totals = databases.values().copied().sum();
        let line = self.all.averages(age(now), &sum).to_string();
        self.all.roll(age(now), sum);
        self.databases.retain(|name, _| databases.contains_key(name));
        for (name, totals) in databases {
            let history = self.databases.entry(name).or_insert_with(|| History::new(Duration::ZERO));
            history.roll(age(now), totals);
        }
        Some(line)
    }
}

fn age(now: Moment) -> Duration {
    now.since(Moment::default())
}

fn by_database(shared: &Shared) -> BTreeMap<String, Totals> {
    let mut databases: BTreeMap<String, Totals> = BTreeMap::new();
    for home in shared.homes() {
        *databases.entry(home.cell.key.database.clone()).or_default() += home.totals();
    }
    databases
}

impl Shared {
    /// All clients' sessions.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        self.all_sources(|source| match source {
            Source::Client(session) => Some(session),
            Source::Server(_) => None,
        })
    }

    /// All servers.
    pub fn servers(&self) -> Vec<Arc<Moored>> {
        self.all_sources(|source| match source {
            Source::Server(moored) => Some(moored),
            Source::Client(_) => None,
        })
    }

    fn all_sources<T>(&self, pick: impl Fn(Source) -> Option<T>) -> Vec<T> {
        self.workers.iter().flat_map(|worker| worker.sources.all()).filter_map(pick).collect()
    }
}

impl Control {
    /// What a table reads.
    pub(super) fn snapshot(&self, show: Show) -> Snapshot {
        let now = self.shared.clock.now();
        let mut snapshot = Snapshot { version: crate::version_line(), ..Snapshot::default() };
        match show {
            Show::Clients => snapshot.clients = self.clients(now),
            Show::Servers => snapshot.servers = self.servers(now),
            Show::Sockets | Show::ActiveSockets => {
                snapshot.clients = self.clients(now);
                snapshot.servers = self.servers(now);
            }
            Show::Pools => {
                snapshot.pools = self.shared.hub.lock().pool_rows(now);
                snapshot.pools.push(self.console_pool());
            }
            Show::Databases => {
                snapshot.databases = self.shared.hub.lock().database_rows();
                snapshot.databases.push(self.console_database());
            }
            Show::Pins => snapshot.pins = self.pins(),
            Show::Listeners => snapshot.listeners = self.shared.listeners.rows(),
            Show::Users => snapshot.users = self.shared.hub.lock().user_rows(),
            Show::Config => snapshot.config = self.config(),
            Show::Lists => snapshot.lists = self.lists(now),
            Show::State => snapshot.state = self.state(),
            Show::Mem => snapshot.mem = self.mem(),
            Show::Nodes => snapshot.nodes = self.nodes(now),
            Show::Routes => snapshot.routes = self.routes(),
            Show::DnsHosts => snapshot.dns_hosts = self.dns_hosts(),
            Show::Stats | Show::StatsTotals | Show::StatsAverages | Show::Totals => {
                self.statistics(now, &mut snapshot);
            }
            Show::Version | Show::DnsZones | Show::Peers | Show::PeerPools => {}
        }
        snapshot
    }

    fn clients(&self, now: Moment) -> Vec<ClientRow> {
        let mut sessions = self.shared.sessions();
        sessions.sort_by_key(|session| session.id);
        sessions.iter().filter_map(|session| self.client_row(now, session)).collect()
    }

    fn client_row(&self, now: Moment, session: &Session) -> Option<ClientRow> {
        let core = session.core.lock();
        let mut state = ClientState::Active;
        let mut pinned = None;
        let mut socket = self.client_socket(now, session, &core);
        match &core.phase {
            Phase::Closed => return None,
            // It has a place in its pool, and waits for a server or the server's yes.
            Phase::Entering(entering) if entering.relay.is_some() => state = ClientState::Waiting,
            Phase::Entering(_) => state = ClientState::Login,
            Phase::Admin(_) => {}
            Phase::Steady(steady) => {
                socket.link = steady.lease.as_ref().map(|lease| lease.moored.id.0);
                socket.prepared_statements = steady.link.client.statement_count() as u64;
                let name = steady.link.client.parameters.value(b"application_name").unwrap_or_default();
                socket.application_name = String::from_utf8_lossy(name).into_owned();
                pinned = steady
                    .link
                    .pins()
                    .map(|pins| Pinned { since: self.time_of(now, pins.since), reason: pins::reasons(pins) });
                if steady.ticket.is_some() {
                    state = ClientState::Waiting;
                    socket.wait = now.since(steady.waiting_since);
                }
            }
        }
        Some(ClientRow { state, socket, pinned })
    }

    /// A moment of the past as local time.
    fn time_of(&self, now: Moment, then: Moment) -> String {
        local_time(self.shared.clock.unix_seconds().saturating_sub(now.since(then).as_secs()))
    }

    fn client_socket(&self, now: Moment, session: &Session, core: &Core) -> Socket {
        let who = session.who();
        let port = self.shared.settings().general.listen_port;
        let peer = session.origin.address();
        let unix = peer.is_none();
        let local = core.stream.socket().local_address();
        Socket {
            user: who.as_ref().map(|who| who.user.clone()),
            database: who.as_ref().map(|who| who.database.clone()),
            replication: match who.as_ref().map(|who| who.replication) {
                Some("logical") => Replication::Logical,
                Some("physical") => Replication::Physical,
                _ => Replication::None,
            },
            addr: peer.map_or_else(|| "unix".to_owned(), |peer| peer.ip().to_string()),
            port: peer.map_or(port, |peer| peer.port()),
            local_addr: local.map_or_else(|| "unix".to_owned(), |local| local.ip().to_string()),
            local_port: local.map_or(port, |local| local.port()),
            connect_time: local_time(session.connected_unix.into()),
            request_time: self.time_of(now, core.requested_at),
            id: session.id.0,
            remote_pid: if unix {
                crate::peer::of(core.stream.socket()).map_or(0, |peer| peer.process_id)
            } else {
                0
            },
            tls: who.map(|who| who.tls.clone()).unwrap_or_default(),
            ..Socket::default()
        }
    }

    pub(super) fn pins(&self) -> Vec<PinRow> {
        let counts = self.shared.pins.lock();
        let rows = counts.rows().iter().map(|row| PinRow {
            database: row.kind.database.clone(),
            user: row.kind.user.clone(),
            application_name: row.kind.application_name.clone(),
            reason: row.kind.reason.to_owned(),
            statement: row.kind.statement.clone(),
            current: row.current,
            total: row.total,
            hint: row.kind.hint.to_owned(),
        });
        rows.collect()
    }

    fn servers(&self, now: Moment) -> Vec<ServerRow> {
        let mut servers = self.shared.servers();
        servers.sort_by_key(|moored| moored.id);
        let mut owners = BTreeMap::new();
        for session in self.shared.sessions() {
            if let Phase::Steady(steady) = &session.core.lock().phase
                && let Some(lease) = &steady.lease
                && let Some(server) = steady.link.server()
            {
                let look = (session.id.0, server.prepared.len() as u64, server.requested_at);
                owners.insert(lease.moored.id, look);
            }
        }
        servers.iter().map(|moored| self.server_row(now, moored, owners.get(&moored.id).copied())).collect()
    }

    fn server_row(&self, now: Moment, moored: &Moored, owner: Option<(u64, u64, Moment)>) -> ServerRow {
        let (slot_state, close_needed) = {
            let pool = moored.home.pool();
            (pool.state(moored.slot), pool.is_close_needed(moored.slot))
        };
        let moored_look = moored
            .berth
            .look(|_, conn| conn.map(|conn| (conn.machine.prepared.len() as u64, conn.machine.requested_at)));
        let (prepared, requested_at) = match (owner, moored_look) {
            (Some((_, prepared, at)), _) | (None, Some((prepared, at))) => (prepared, at),
            (None, None) => (0, now),
        };
        let is_used = moored.home.pool().is_check_needed(now, moored.slot);
        let state = match slot_state {
            SlotState::Active => ServerState::Active,
            SlotState::Idle if is_used => ServerState::Used,
            SlotState::Idle => ServerState::Idle,
            SlotState::BeingCanceled => ServerState::BeingCanceled,
            SlotState::Opening => ServerState::Login,
            SlotState::Tested | SlotState::Closing | SlotState::Free => ServerState::Tested,
        };
        let facts = &moored.facts;
        let socket = Socket {
            user: Some(moored.home.cell.key.user.clone()),
            database: Some(moored.home.cell.key.database.clone()),
            addr: facts.remote.address(),
            port: facts.remote.port(),
            local_addr: facts.local.address(),
            local_port: facts.local.port(),
            connect_time: local_time(facts.connected_unix),
            request_time: self.time_of(now, requested_at),
            close_needed,
            id: moored.id.0,
            link: owner.map(|(client, ..)| client),
            remote_pid: facts.process_id,
            tls: facts.tls.clone(),
            prepared_statements: prepared,
            ..Socket::default()
        };
        let is_pinned = moored.home.pool().is_pinned(moored.slot);
        ServerRow { state, socket, is_pinned }
    }

    fn console_clients(&self) -> u64 {
        let hub = self.shared.hub.lock();
        (hub.clients().count() - hub.members().count()) as u64
    }

    fn console_pool(&self) -> PoolRow {
        PoolRow {
            database: console::DATABASES[0].to_owned(),
            user: console::DATABASES[0].to_owned(),
            clients_active: self.console_clients(),
            clients_waiting: 0,
            clients_active_cancel: 0,
            clients_waiting_cancel: 0,
            servers_active: 0,
            servers_active_cancel: 0,
            servers_being_canceled: 0,
            servers_idle: 0,
            servers_used: 0,
            servers_tested: 0,
            servers_login: 0,
            wait_max: Duration::ZERO,
            pool_mode: PoolMode::Statement,
            load_balance_hosts: None,
            servers_pinned: 0,
            standby: None,
        }
    }

    fn console_database(&self) -> console::DatabaseRow {
        console::DatabaseRow {
            name: console::DATABASES[0].to_owned(),
            host: None,
            port: self.shared.settings().general.listen_port,
            database: console::DATABASES[0].to_owned(),
            force_user: Some(console::DATABASES[0].to_owned()),
            pool_size: 2,
            min_pool_size: 0,
            reserve_pool_size: 0,
            server_lifetime: Duration::from_secs(3600),
            pool_mode: Some(PoolMode::Statement),
            load_balance_hosts: None,
            servers_max: 0,
            servers: 0,
            clients_max: 0,
            clients: self.console_clients(),
            paused: false,
            disabled: false,
        }
    }

    fn config(&self) -> Vec<ConfigRow> {
        let table = self.shared.settings().show_config();
        let mut rows = table.rows.into_iter();
        rows.by_ref()
            .filter_map(|row| match <[_; 4]>::try_from(row) {
                Ok([Some(key), value, default, changeable]) => {
                    let changeable = changeable.as_deref() == Some("yes");
                    Some(ConfigRow { key, value, default, changeable })
                }
                _ => None,
            })
            .collect()
    }

    fn lists(&self, now: Moment) -> ListCounts {
        let (databases, users, pools, logins) = {
            let hub = self.shared.hub.lock();
            (hub.database_rows().len() + 1, hub.user_rows().len(), hub.pool_rows(now), hub.logins())
        };
        let members = self.shared.hub.lock().members().count() as u64;
        let sum = |count: fn(&PoolRow) -> u64| pools.iter().map(count).sum::<u64>();
        let idle = sum(|row| row.servers_idle + row.servers_used);
        ListCounts {
            databases: databases as u64,
            users: users as u64,
            peers: self.shared.settings().peers.len() as u64,
            pools: pools.len() as u64 + 1,
            clients_used: members,
            clients_login: u64::from(logins),
            servers_free: idle,
            servers_used: (self.shared.servers().len() as u64).saturating_sub(idle),
            dns_names: self.dns.snapshot().len() as u64,
            ..ListCounts::default()
        }
    }

    fn state(&self) -> State {
        if self.shared.hub.lock().is_all_paused() { State::Paused } else { State::Active }
    }

    fn mem(&self) -> Vec<MemRow> {
        let row = |name: &str, size: usize, used: usize| MemRow {
            name: name.to_owned(),
            size: size as u64,
            used: used as u64,
            free: 0,
            total_bytes: (size * used) as u64,
        };
        vec![
            row(
                "client",
                size_of::<Session>() + size_of::<crate::session::Steady>(),
                self.shared.sessions().len(),
            ),
            row("server", size_of::<Moored>() + size_of::<server::Server>(), self.shared.servers().len()),
            row(
                "pool",
                size_of::<crate::home::Home>() + size_of::<crate::home::Cell>(),
                self.shared.homes().len(),
            ),
            row(
                "prepared_statement",
                size_of::<model::Statement>(),
                self.shared.homes().iter().map(|home| home.statements.len()).sum(),
            ),
            row("scratch_buffer", crate::worker::SCRATCH_BYTES, self.shared.workers.len()),
        ]
    }

    pub(super) fn nodes(&self, now: Moment) -> Vec<NodeRow> {
        let hub = self.shared.hub.lock();
        let nodes: Vec<_> = hub.nodes().into_iter().map(|node| (hub.topology_info(&node), node)).collect();
        let untold = hub.untold();
        drop(hub);
        let unix = self.shared.clock.unix_seconds();
        let known = nodes.into_iter().map(|(info, node)| NodeRow {
            databases: node.databases,
            host: node.place.host.to_string(),
            port: node.place.port,
            role: node.view.role.word(),
            state: node.view.state.word(),
            timeline: node.view.timeline,
            lag: node.view.lag,
            since: local_time(unix.saturating_sub(now.since(node.view.since).as_secs())),
            connections: node.view.servers,
            last_error: self.monitors.error(node.at),
            member: info.member,
            tags: info.tags,
            topology: info.whole,
        });
        known.chain(untold.into_iter().map(|(database, why)| no_nodes(database, why))).collect()
    }

    pub(super) fn routes(&self) -> Vec<RouteRow> {
        let mut rows = Vec::new();
        for home in self.shared.homes() {
            let Some(readers) = home.readers.lock().clone() else { continue };
            let key = &home.cell.key;
            rows.extend(readers.counts().into_iter().map(|(to, reason, count)| RouteRow {
                database: key.database.clone(),
                user: key.user.clone(),
                to,
                reason,
                count,
            }));
        }
        rows
    }

    fn dns_hosts(&self) -> Vec<DnsHostRow> {
        let hosts = self.dns.snapshot().into_iter();
        hosts
            .map(|host| DnsHostRow {
                hostname: host.name,
                ttl: host.ttl,
                addrs: host.addresses.iter().map(ToString::to_string).collect(),
            })
            .collect()
    }

    fn statistics(&self, now: Moment, snapshot: &mut Snapshot) {
        let totals = by_database(&self.shared);
        let statistics = self.statistics.lock();
        let fresh = History::new(Duration::ZERO);
        for (database, totals) in &totals {
            let history = statistics.databases.get(database).unwrap_or(&fresh);
            let averages = history.averages(age(now), totals);
            snapshot.stats.push(StatsRow { database: database.clone(), totals: *totals, averages });
        }
        let console = Totals::default();
        let averages = fresh.averages(age(now), &console);
        snapshot.stats.push(StatsRow {
            database: console::DATABASES[0].to_owned(),
            totals: console,
            averages,
        });
        let sum: Totals = totals.values().copied().sum();
        snapshot.totals = (sum, statistics.all.averages(age(now), &sum));
    }
}

/// A database whose hosts nobody has told yet.
fn no_nodes(databases: String, topology: String) -> NodeRow {
    NodeRow {
        databases,
        host: String::new(),
        port: 0,
        role: cluster::Role::Unknown.word(),
        state: cluster::State::Unknown.word(),
        timeline: None,
        lag: None,
        since: String::new(),
        connections: 0,
        last_error: String::new(),
        member: String::new(),
        tags: String::new(),
        topology,
    }
}

/// `YYYY-MM-DD HH:MM:SS ZONE`.
fn local_time(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or_default();
    let timestamp = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    timestamp.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}
