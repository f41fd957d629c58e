//! The keys inside the entries of `[databases]`, `[users]` and `[peers]`.

use std::time::Duration;

use model::{PoolMode, StateMode};

use super::Status::Built;
use super::Status::NotBuilt;
use super::table;
use crate::consistency::Consistency;
use crate::host::{Host, Ports};
use crate::secret::Secret;
use crate::share::Share;
use crate::topology::Topology;
use crate::value::{COUNT, Kind, POOL_MODE, PORT, STATE_MODE};
use crate::words::{LoadBalance, ReadSplit, SessionAttrs};

table! {
    /// One entry of `[databases]`. Where a field is `None`, the setting in `[pgbouncer]` holds; the order
    /// of precedence of user, database and general settings is in [`Effective`](crate::Effective).
    pub struct Database in DATABASE;

    group "Keys in [databases]";

    /// The database's name on the server. Unset: the name of the entry, or for `*` the name that the client
    /// asked for.
    dbname: Option<String> = Kind::Text, None, Reconnect, Built;

    /// The server's host, or a list of hosts between commas. A word that begins with `/` or `@` is the
    /// directory of a Unix socket (`@`: Linux's abstract names), one with a colon an IPv6 address. Unset: the
    /// Unix socket in `unix_socket_dir`.
    hosts as "host": Vec<Host> = Kind::Hosts, None, Reconnect, Built;

    /// The server's port: one for all hosts, or a list with one for each.
    ports as "port": Ports = Kind::Ports, Some("5432"), Reconnect, Built;

    /// Log in to the server as this user, whoever the client is; the entry then has one pool. Unset: as the
    /// client's user.
    user: Option<String> = Kind::Text, None, Reconnect, Built;

    /// The password for `user`. Unset: the one in `auth_file`.
    password: Option<Secret> = Kind::Secret, None, Reload, Built;

    /// As `auth_user` in `[pgbouncer]`, for this database.
    auth_user: Option<String> = Kind::Text, None, Reload, Built;

    /// As `auth_query` in `[pgbouncer]`, for this database.
    auth_query: Option<String> = Kind::Text, None, Reconnect, Built;

    /// As `auth_dbname` in `[pgbouncer]`, for this database.
    auth_dbname: Option<String> = Kind::Text, None, Reconnect, Built;

    /// `client_encoding` for the login to the server.
    client_encoding: Option<String> = Kind::Text, None, Reload, Built;

    /// `datestyle` for the login to the server.
    datestyle: Option<String> = Kind::Text, None, Reload, Built;

    /// `timezone` for the login to the server.
    timezone: Option<String> = Kind::Text, None, Reload, Built;

    /// `application_name` for the login to the server.
    application_name: Option<String> = Kind::Text, None, Reload, Built;

    /// Server connections in each pool of this database; 0 = no limit. Unset: `default_pool_size`.
    pool_size: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// As `min_pool_size` in `[pgbouncer]`, for this database.
    min_pool_size: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// As `reserve_pool_size` in `[pgbouncer]`, for this database.
    reserve_pool_size or "reserve_pool": Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// Server connections to this database, all its pools together. 0 or unset: the general setting.
    max_db_connections: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// Client connections to this database. 0 or unset: the general setting.
    max_db_client_connections: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// As `pool_mode` in `[pgbouncer]`, for this database.
    pool_mode: Option<PoolMode> = POOL_MODE, None, Reload, Built;

    /// With several hosts: `round-robin` gives each new server connection to the next one, `disable` stays on
    /// one until it fails, `least-connections` (with `target_session_attrs`) gives it to the one that has fewest,
    /// `random` to the one with fewer of two that are chosen at random. With `read_write_split` it says in the same way
    /// which standby each read goes to, where `disable` is the first of the list that is fit.
    load_balance_hosts: LoadBalance = Kind::Word(LoadBalance::NAMES), Some("round-robin"), Reconnect, Built;

    /// With several hosts and `target_session_attrs`, for reads: whole numbers between commas, one for each host. A host
    /// takes its part in relation to the others; one with 0 takes none while there is another. Unset: all the same.
    host_weights: Vec<String> = Kind::List, None, Reload, Built;

    /// With several hosts and `target_session_attrs`, for reads: the zone of each host, between commas. Of those that
    /// are fit the ones in our own `zone` are taken, and only if there are none, others. Unset: all are near.
    host_zones: Vec<String> = Kind::List, None, Reload, Built;

    /// What the servers of this database must be, in libpq's words: `read-write`, `primary`, `standby`,
    /// `prefer-standby`, `read-only` or `any`. Its hosts are then monitored, server connections go to those that
    /// fit, and clients wait through a failover. Unset: the hosts are not monitored.
    target_session_attrs: Option<SessionAttrs> = Kind::Word(SessionAttrs::NAMES), None, Reconnect, Built;

    /// In place of `host`: the hosts are the members of a cluster as its engine tells them, asked every
    /// `topology_interval`. `patroni:` is followed by the URLs of Patroni's REST API, any of which will do. Needs
    /// `target_session_attrs`: what each member is, its own PostgreSQL says.
    topology: Option<Topology> = Kind::Topology, None, Reload, Built;

    /// As `monitor_user` in `[pgbouncer]`, for the hosts of this database.
    monitor_user: Option<String> = Kind::Text, None, Reload, Built;

    /// As `monitor_dbname` in `[pgbouncer]`, for the hosts of this database.
    monitor_dbname: Option<String> = Kind::Text, None, Reload, Built;

    /// As `failover_timeout` in `[pgbouncer]`, for this database.
    failover_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// With `target_session_attrs`: a standby that is this far behind the primary, in bytes of the log, gets no new
    /// server connections, and loses those it has as they come free, until it is within half of it. 0: any.
    max_replica_lag_bytes: Option<u32> = COUNT, None, Reload, Built;

    /// The same in seconds since the commit that a standby replayed last, as long as it has something to replay.
    max_replica_lag: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// Which transactions of a client may run on a standby instead of the primary: `off`, none; `intent`, those that say
    /// so themselves (`BEGIN READ ONLY`, `default_transaction_read_only = on`, a comment `/* howdah: standby */` in
    /// front); `statement`, also single statements that are proved to do nothing but read. Needs
    /// `target_session_attrs = read-write` or `primary`, several hosts, and a pool mode other than `session`. Each
    /// standby has pools of its own, of the same size.
    read_write_split: ReadSplit = Kind::Word(ReadSplit::NAMES), Some("off"), Reconnect, Built;

    /// With `read_write_split`: how current a standby must be to be read from. `session`: it has all that this client
    /// has written; `bounded(MILLISECONDS)`: it has all that was committed so long ago; `eventual`: as it is, within
    /// `max_replica_lag`. Where no standby is, reads go to the primary.
    consistency: Consistency = Kind::Consistency, Some("session"), Reload, Built;

    /// With `read_write_split`: the primary's part of the reads that may go to a standby, in relation to those of the
    /// standbys in `host_weights` (1 each if unset). Where a host stands in the list does not matter: it is whoever is
    /// primary. 0: the primary reads only where no standby will do. It has no part in what a comment
    /// `/* howdah: standby */` sends to a standby, nor with `load_balance_hosts = disable`.
    primary_read_weight: u32 = Kind::Whole { min: 0, max: 65535 }, Some("0"), Reload, Built;

    /// Off where a pooler in transaction mode stands in front of the servers (PgBouncer with `pool_mode = transaction`, a
    /// managed service's): there each transaction may run on another server, and what is done to a session meets somebody
    /// else. Then prepared statements are sent again in each batch, session state that PgBouncer does not carry is
    /// refused, and nobody listens. Not with `pool_mode = session`.
    server_keeps_session: bool = Kind::Flag, Some("1"), Reconnect, Built;

    /// With several hosts and `target_session_attrs`: they are no cluster but equals with data of their own, such as the
    /// nodes of Citus that answer any query. Each is judged alone, and all that are out of recovery are written to, as
    /// `load_balance_hosts` and `host_weights` say. Not with `read_write_split` or `topology`.
    independent_hosts: bool = Kind::Flag, Some("0"), Reconnect, Built;

    /// Added to the user's name for the login to the servers of this database, unless the name ends so already:
    /// `server_user_suffix=@myserver` where a service wants `user@myserver`. Not to the name in `user`.
    server_user_suffix: Option<String> = Kind::Text, None, Reconnect, Built;

    /// Taken off the names of clients of this database that end so, before anything is looked up for them: who comes as
    /// `ann@myserver` is `ann`.
    client_user_suffix: Option<String> = Kind::Text, None, Reload, Built;

    /// SQL to run on each new server connection before its first use. An error in it is logged and nothing
    /// else.
    connect_query: Option<String> = Kind::Text, None, Reconnect, Built;

    /// As `server_lifetime` in `[pgbouncer]`, for this database. 0: the general setting.
    server_lifetime: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `query_wait_timeout` in `[pgbouncer]`, for this database; here 0 switches it off.
    query_wait_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `session_state` in `[pgbouncer]`, for this database.
    session_state: Option<StateMode> = STATE_MODE, None, Reload, Built;

    /// As `max_pinned` in `[pgbouncer]`, for each pool of this database.
    max_pinned: Option<Share> = Kind::Share, None, Reload, Built;
}

table! {
    /// One entry of `[users]`. Where a field is `None`, the database's or the general setting holds.
    pub struct User in USER;

    group "Keys in [users]";

    /// As `pool_mode` in `[pgbouncer]`, for this user's pools; goes before the database's.
    pool_mode: Option<PoolMode> = POOL_MODE, None, Reload, Built;

    /// Server connections in each pool of this user; goes before the database's.
    pool_size: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// As `reserve_pool_size` in `[pgbouncer]`, for this user's pools; goes before the database's.
    reserve_pool_size: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// Server connections of this user, all pools together. 0 or unset: the general setting.
    max_user_connections: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// Client connections of this user. 0 or unset: the general setting.
    max_user_client_connections: Option<u32> = Kind::WholeOrGeneral, None, Reload, Built;

    /// As `query_timeout` in `[pgbouncer]`. 0: the general setting.
    query_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `query_wait_timeout` in `[pgbouncer]`; goes before the database's, and 0 switches it off.
    query_wait_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `idle_transaction_timeout` in `[pgbouncer]`. 0: the general setting.
    idle_transaction_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `transaction_timeout` in `[pgbouncer]`. 0: the general setting.
    transaction_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `client_idle_timeout` in `[pgbouncer]`. 0: the general setting.
    client_idle_timeout: Option<Duration> = Kind::Seconds, None, Reload, Built;

    /// As `session_state` in `[pgbouncer]`, for clients that log in as this user; goes before the database's.
    session_state: Option<StateMode> = STATE_MODE, None, Reload, Built;

    /// As `max_pinned` in `[pgbouncer]`, for this user's pools; goes before the database's.
    max_pinned: Option<Share> = Kind::Share, None, Reload, Built;
}

table! {
    /// One entry of `[peers]`: another process that cancel requests are passed on to.
    pub struct Peer in PEER;

    group "Keys in [peers]";

    /// Where the peer listens; must be given.
    host: Host = Kind::Host, None, Reload, NotBuilt;

    /// The peer's port.
    port: u16 = PORT, Some("6432"), Reload, NotBuilt;

    /// Connections to the peer at once. Unset: `default_pool_size`.
    pool_size: Option<u32> = COUNT, None, Reload, NotBuilt;
}
