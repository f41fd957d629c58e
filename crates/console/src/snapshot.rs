//! What the console shows, as plain values that somebody else fills in.

use std::time::Duration;

use model::PoolMode;
use stats::{Averages, Totals};

/// Everything that the tables read.
///
/// Only the fields that a table's line in [`crate::show::table`] names are read; the rest may stay empty.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Clients, those in login included.
    pub clients: Vec<ClientRow>,
    /// Servers, those in login included.
    pub servers: Vec<ServerRow>,
    /// Why clients keep their servers.
    pub pins: Vec<PinRow>,
    /// Pools, the console's own included.
    pub pools: Vec<PoolRow>,
    /// Pools of cancel requests that go to peers.
    pub peer_pools: Vec<PeerPoolRow>,
    /// Database entries, the console's own included.
    pub databases: Vec<DatabaseRow>,
    /// Users that are known.
    pub users: Vec<UserRow>,
    /// Peers.
    pub peers: Vec<PeerRow>,
    /// Connections that listen for clients.
    pub listeners: Vec<ListenerRow>,
    /// Lengths of internal lists.
    pub lists: ListCounts,
    /// Statistics of each database.
    pub stats: Vec<StatsRow>,
    /// Statistics of all databases together.
    pub totals: (Totals, Averages),
    /// Settings.
    pub config: Vec<ConfigRow>,
    /// `NAME X.Y.Z`.
    pub version: String,
    /// Whether all is paused.
    pub state: State,
    /// Memory by what it is used for.
    pub mem: Vec<MemRow>,
    /// Hosts of clusters that are monitored.
    pub nodes: Vec<NodeRow>,
    /// Where transactions went whose reads may go to standbys.
    pub routes: Vec<RouteRow>,
    /// Names in the DNS cache.
    pub dns_hosts: Vec<DnsHostRow>,
    /// Zones in the DNS cache.
    pub dns_zones: Vec<DnsZoneRow>,
}

/// A client and what it is doing.
#[derive(Clone, Debug)]
pub struct ClientRow {
    /// The list it is in.
    pub state: ClientState,
    /// Its connection.
    pub socket: Socket,
    /// Whether it keeps its server for its session state.
    pub pinned: Option<Pinned>,
}

/// Since when and why a client keeps its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// As local time.
    pub since: String,
    /// In words; several between commas.
    pub reason: String,
}

/// How many clients keep their server for one reason.
#[derive(Clone, Debug)]
pub struct PinRow {
    /// The database entry.
    pub database: String,
    /// The name the clients logged in with.
    pub user: String,
    /// The clients' name for themselves.
    pub application_name: String,
    /// In words.
    pub reason: String,
    /// What the statements that made the state begin with.
    pub statement: String,
    /// Clients that keep one now.
    pub current: u64,
    /// How often one did.
    pub total: u64,
    /// What to do instead.
    pub hint: String,
}

/// A server and what it is doing.
#[derive(Clone, Debug)]
pub struct ServerRow {
    /// The list it is in.
    pub state: ServerState,
    /// Its connection.
    pub socket: Socket,
    /// Its client keeps it for its session state.
    pub is_pinned: bool,
}

/// The list that a client is in. An active client without a server is shown as idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ClientState {
    Active,
    ActiveCancelRequest,
    Login,
    Waiting,
    WaitingCancelRequest,
}

/// The list that a server is in. An active server without a client is shown as idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ServerState {
    Active,
    ActiveCancel,
    BeingCanceled,
    Idle,
    Login,
    Tested,
    Used,
}

/// What is known of a client's or a server's connection.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// The user who logged in; `None` before that is known.
    pub user: Option<String>,
    /// The database entry; `None` before that is known.
    pub database: Option<String>,
    /// Whether it is a replication connection.
    pub replication: Replication,
    /// The peer's address, or `unix`.
    pub addr: String,
    /// The peer's port; of a Unix socket, the one in its name.
    pub port: u16,
    /// Our address, or `unix`.
    pub local_addr: String,
    /// Our port.
    pub local_port: u16,
    /// When it connected, as local time: `YYYY-MM-DD HH:MM:SS ZONE`.
    pub connect_time: String,
    /// When the last request began, as local time.
    pub request_time: String,
    /// How long the query that runs or waits has done so; zero if there is none.
    pub wait: Duration,
    /// Closes as soon as it is free.
    pub close_needed: bool,
    /// The number that KILL_CLIENT takes, or that of the server.
    pub id: u64,
    /// The `id` of the server or client at the other end.
    pub link: Option<u64>,
    /// A process id: the peer's over a Unix socket, else the server's own word; 0 if not known.
    pub remote_pid: u32,
    /// TLS version and cipher; empty without TLS.
    pub tls: String,
    /// The client's name for itself; empty if it has none.
    pub application_name: String,
    /// How many prepared statements it has.
    pub prepared_statements: u64,
    /// What lies in its buffers.
    pub buffers: Buffers,
}

/// Where a connection's buffers stand, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Received.
    pub recv_pos: u64,
    /// Parsed.
    pub pkt_pos: u64,
    /// Left of the message that is being forwarded.
    pub pkt_remain: u64,
    /// Sent.
    pub send_pos: u64,
    /// Left to parse.
    pub pkt_avail: u64,
    /// Left to send.
    pub send_avail: u64,
}

/// The kind of a replication connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Replication {
    #[default]
    None,
    Logical,
    Physical,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct PoolRow {
    /// The database entry.
    pub database: String,
    /// The user of its servers.
    pub user: String,
    /// Clients with a server or nothing to ask of one.
    pub clients_active: u64,
    /// Clients that wait for a server.
    pub clients_waiting: u64,
    /// Cancel requests on their way to a server.
    pub clients_active_cancel: u64,
    /// Cancel requests that wait.
    pub clients_waiting_cancel: u64,
    /// Servers with a client.
    pub servers_active: u64,
    /// Servers that carry a cancel request.
    pub servers_active_cancel: u64,
    /// Servers that may still be struck by a cancel request.
    pub servers_being_canceled: u64,
    /// Servers that are free.
    pub servers_idle: u64,
    /// Servers that are free and must be checked before use.
    pub servers_used: u64,
    /// Servers that are reset or checked.
    pub servers_tested: u64,
    /// Servers that log in.
    pub servers_login: u64,
    /// How long the first of the waiting clients has waited.
    pub wait_max: Duration,
    /// When servers are given back.
    pub pool_mode: PoolMode,
    /// The word of the setting, if the entry has several hosts.
    pub load_balance_hosts: Option<&'static str>,
    /// Servers that clients keep for their session state.
    pub servers_pinned: u64,
    /// The standby that its servers are on, of a pool for reads alone.
    pub standby: Option<String>,
}

/// A pool of cancel requests to one peer.
#[derive(Clone, Copy, Debug)]
pub struct PeerPoolRow {
    /// The peer's number.
    pub peer_id: u16,
    /// Cancel requests on their way.
    pub clients_active_cancel: u64,
    /// Cancel requests that wait.
    pub clients_waiting_cancel: u64,
    /// Connections that carry one.
    pub servers_active_cancel: u64,
    /// Connections that are being made.
    pub servers_login: u64,
}

/// A database entry with the values that hold for it, its own or the global ones.
#[derive(Clone, Debug)]
pub struct DatabaseRow {
    /// The entry's name.
    pub name: String,
    /// Host, list of hosts or directory.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
    /// The database on the server.
    pub database: String,
    /// The user of all its servers, if it is fixed.
    pub force_user: Option<String>,
    /// Servers a pool may have.
    pub pool_size: u64,
    /// Servers a pool keeps.
    pub min_pool_size: u64,
    /// Servers more in need.
    pub reserve_pool_size: u64,
    /// Age at which servers close.
    pub server_lifetime: Duration,
    /// The entry's own pool mode.
    pub pool_mode: Option<PoolMode>,
    /// The word of the setting, if the entry has several hosts.
    pub load_balance_hosts: Option<&'static str>,
    /// Limit of servers; 0 is none.
    pub servers_max: u64,
    /// Servers.
    pub servers: u64,
    /// Limit of clients; 0 is none.
    pub clients_max: u64,
    /// Clients.
    pub clients: u64,
    /// PAUSE or KILL was said.
    pub paused: bool,
    /// DISABLE was said.
    pub disabled: bool,
}

/// A user.
#[derive(Clone, Debug)]
pub struct UserRow {
    /// The name.
    pub name: String,
    /// The user's own pool size.
    pub pool_size: Option<u64>,
    /// The user's own reserve.
    pub reserve_pool_size: Option<u64>,
    /// The user's own pool mode.
    pub pool_mode: Option<PoolMode>,
    /// Limit of servers; 0 is none.
    pub servers_max: u64,
    /// Servers.
    pub servers: u64,
    /// Limit of clients; 0 is none.
    pub clients_max: u64,
    /// Clients.
    pub clients: u64,
}

/// A connection that listens for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerRow {
    /// Its number.
    pub id: u64,
    /// The database's name on the server.
    pub database: String,
    /// The server's end; none while there is no connection.
    pub addr: Option<String>,
    /// The port there.
    pub port: u16,
    /// The process id of the server's session; 0 while there is none.
    pub remote_pid: u32,
    /// In which encoding it hears.
    pub client_encoding: String,
    /// `connecting`, `listening` or `lost`.
    pub state: &'static str,
    /// Clients that listen.
    pub clients: u64,
    /// Channels that they listen on.
    pub channels: u64,
    /// Notifications that came.
    pub notifications: u64,
    /// How often its connection was lost.
    pub losses: u64,
}

/// A peer.
#[derive(Clone, Debug)]
pub struct PeerRow {
    /// Its number.
    pub peer_id: u16,
    /// Host or directory.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
    /// Connections to it at once.
    pub pool_size: u64,
}

/// Lengths of internal lists.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct ListCounts {
    pub databases: u64,
    pub users: u64,
    pub peers: u64,
    pub pools: u64,
    pub peer_pools: u64,
    pub clients_free: u64,
    pub clients_used: u64,
    pub clients_login: u64,
    pub servers_free: u64,
    pub servers_used: u64,
    pub dns_names: u64,
    pub dns_zones: u64,
    pub dns_queries: u64,
    pub dns_pending: u64,
}

/// Statistics of a database.
#[derive(Clone, Debug)]
pub struct StatsRow {
    /// The entry's name.
    pub database: String,
    /// All that its pools counted.
    pub totals: Totals,
    /// The averages of late.
    pub averages: Averages,
}

/// A setting.
#[derive(Clone, Debug)]
pub struct ConfigRow {
    /// Its name.
    pub key: String,
    /// Its value as text.
    pub value: Option<String>,
    /// The value it has if nobody sets it.
    pub default: Option<String>,
    /// Whether RELOAD and SET change it.
    pub changeable: bool,
}

/// Whether all databases are paused together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum State {
    #[default]
    Active,
    Paused,
    Suspended,
}

/// Memory of one kind of thing.
#[derive(Clone, Debug)]
pub struct MemRow {
    /// The kind.
    pub name: String,
    /// Bytes of one.
    pub size: u64,
    /// How many are in use.
    pub used: u64,
    /// How many are kept for later.
    pub free: u64,
    /// Bytes of all.
    pub total_bytes: u64,
}

/// A host of a cluster that is monitored.
#[derive(Clone, Debug)]
pub struct NodeRow {
    /// The database entries that it serves, between commas.
    pub databases: String,
    /// Host or directory.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What it is, in a word.
    pub role: &'static str,
    /// How it is, in a word.
    pub state: &'static str,
    /// Its timeline, if it has told.
    pub timeline: Option<u32>,
    /// How far a standby is behind the primary, in bytes and time.
    pub lag: Option<(u64, Duration)>,
    /// Since when it is in that state, as local time.
    pub since: String,
    /// Servers on it.
    pub connections: u32,
    /// What the last look at it failed on; empty if it did not.
    pub last_error: String,
    /// What the engine of its cluster says of it: name, role, state. Empty, as what follows, where there is none.
    pub member: String,
    /// Its tags there.
    pub tags: String,
    /// What the engine says of the whole cluster, or why it could not be asked.
    pub topology: String,
}

/// Where transactions of one pool went, and why.
#[derive(Clone, Debug)]
pub struct RouteRow {
    /// The database entry.
    pub database: String,
    /// The user that its servers log in as.
    pub user: String,
    /// `primary`, or the standby's host and port.
    pub to: String,
    /// Why, in a few words.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

/// A name in the DNS cache.
#[derive(Clone, Debug)]
pub struct DnsHostRow {
    /// The name.
    pub hostname: String,
    /// How long the answer stays valid.
    pub ttl: Duration,
    /// The addresses.
    pub addrs: Vec<String>,
}

/// A zone in the DNS cache.
#[derive(Clone, Debug)]
pub struct DnsZoneRow {
    /// The zone's name.
    pub zonename: String,
    /// Its serial number.
    pub serial: u32,
    /// Hosts in it.
    pub count: u64,
}
