//! The keys of `[pgbouncer]`: PgBouncer's own, meaning what they mean there, and Howdah's at the end.

use std::time::Duration;

use model::{PoolMode, StateMode};

use super::Status::{Built, BuiltExcept, Ignored, Meaningless, NotBuilt};
use super::table;
use crate::secret::Secret;
use crate::share::Share;
use crate::value::{COUNT, Kind, POOL_MODE, STATE_MODE};
use crate::words::{
    AuthType, Compat, IoBackend, ListenLost, ServerAuth, SslMode, TlsProtocols, WorkersAwake,
};

table! {
    /// The section `[pgbouncer]`: one field a key, of the same name. A time of zero means off, unless the
    /// field says otherwise.
    pub struct General in GENERAL;

    group "Where to listen";

    /// TCP addresses or host names to listen on, between commas; `*` is every address. Empty: no TCP.
    listen_addr: Vec<String> = Kind::List, Some(""), Restart, Built;

    /// TCP port, and the number in the Unix socket's name. 0 lets the system choose a TCP port.
    listen_port: u16 = Kind::Whole { min: 0, max: 65535 }, Some("6432"), Restart, Built;

    /// Length of the system's queue of connections not yet accepted.
    listen_backlog: u32 = COUNT, Some("128"), Restart, Built;

    /// Directory for the Unix socket; `@` before it makes an abstract one; empty: none. Also where the
    /// server's socket is looked for when a database names no host.
    unix_socket_dir: String = Kind::Path, Some("/tmp"), Restart, Built;

    /// File mode of the Unix socket.
    unix_socket_mode: u32 = Kind::Whole { min: 0, max: 0o7777 }, Some("0777"), Restart, Built;

    /// Group of the Unix socket.
    unix_socket_group: String = Kind::Text, Some(""), Restart, Built;

    /// Address and port of the health endpoint, for load balancers (HTTP): `/` and `/ready` answer 200 while new
    /// clients are welcome and 503 while they are not (paused, or shutting down), `/live` 200 while the process
    /// answers at all, `/db/NAME` 200 while a client of that database would find a server. `/metrics` is for Prometheus. It
    /// asks for no password: bind it to an address that only they reach. Empty: none.
    health_listen: String = Kind::Socket, Some(""), Restart, Built;

    /// Let several processes listen on one TCP port.
    so_reuseport: bool = Kind::Flag, Some("0"), Restart, NotBuilt;

    group "Pools and limits";

    /// When a server goes back to its pool: when the client leaves (`session`), when the transaction ends
    /// (`transaction`), or after each statement (`statement`, which refuses longer transactions). With `passthrough`
    /// each client has a server connection of its own, and it is the server that lets it in: the login is passed on
    /// as it comes. Of our own rules those hold that reject, or want TLS or a certificate. Not for entries with `user`.
    pool_mode: PoolMode = POOL_MODE, Some("session"), Reload, Built;

    /// Client connections in all; the console is not counted.
    max_client_conn: u32 = COUNT, Some("100"), Reload, Built;

    /// Server connections in each pool, a pool being a database and a user; 0 = no limit.
    default_pool_size: u32 = COUNT, Some("20"), Reload, Built;

    /// Keep at least this many server connections in a pool that has a client or a forced user.
    min_pool_size: u32 = COUNT, Some("0"), Reload, Built;

    /// More server connections for a pool whose clients have waited `reserve_pool_timeout`.
    reserve_pool_size: u32 = COUNT, Some("0"), Reload, Built;

    /// How long a client waits before its pool may use the reserve; 0 = no reserve.
    reserve_pool_timeout: Duration = Kind::Seconds, Some("5"), Reload, Built;

    /// Server connections to each database, all users together; 0 = no limit.
    max_db_connections: u32 = COUNT, Some("0"), Reload, Built;

    /// Client connections to each database; 0 = no limit.
    max_db_client_connections: u32 = COUNT, Some("0"), Reload, Built;

    /// Server connections of each user, all databases together; 0 = no limit.
    max_user_connections: u32 = COUNT, Some("0"), Reload, Built;

    /// Client connections of each user; 0 = no limit.
    max_user_client_connections: u32 = COUNT, Some("0"), Reload, Built;

    /// 1: use the server that has been idle longest, to spread load; 0: the one used last, to keep few busy.
    server_round_robin: bool = Kind::Flag, Some("0"), Reload, Built;

    /// How long a database made from the `*` entry may stay unused before it is forgotten; 0 = for ever.
    autodb_idle_timeout: Duration = Kind::Seconds, Some("3600"), Reload, Built;

    /// How long a pool may stay empty before it is forgotten with its statistics; 0 = for ever. A pool with a
    /// forced user and a `min_pool_size` stays.
    pool_idle_timeout: Duration = Kind::Seconds, Some("0"), Reload, Built;

    group "Who may log in";

    /// How clients prove who they are.
    auth_type: AuthType = Kind::Word(AuthType::NAMES), Some("md5"), Reload, BuiltExcept(&["ldap", "pam"]);

    /// The file of users and their secrets.
    auth_file: Option<String> = Kind::Path, None, Reload, Built;

    /// The file of rules for `auth_type = hba`.
    auth_hba_file: String = Kind::Path, Some(""), Reload, Built;

    /// The file of user name maps for `auth_type = hba`.
    auth_ident_file: Option<String> = Kind::Path, None, Reload, Built;

    /// The options for `auth_type = ldap`.
    auth_ldap_options: Option<Secret> = Kind::Secret, None, Reload, NotBuilt;

    /// The user who runs `auth_query` to look up users that `auth_file` does not have.
    auth_user: Option<String> = Kind::Text, None, Reload, Built;

    /// The query that looks a user up: `$1` is the name, the two columns are user and secret.
    auth_query: String = Kind::Text, Some(AUTH_QUERY), Reload, Built;

    /// The database entry in which `auth_query` runs. Unset: the one the client asked for.
    auth_dbname: Option<String> = Kind::Text, None, Reload, Built;

    /// Iterations of the SCRAM secrets that are made from clear-text passwords.
    scram_iterations: u32 = Kind::Whole { min: 1, max: 10_000_000 }, Some("4096"), Reload, Built;

    /// Text sent to each client as a notice after its login; empty: none.
    login_notify_message: String = Kind::Text, Some(""), Reload, Built;

    group "The console";

    /// Users who may run every command in the console, between commas.
    admin_users: Vec<String> = Kind::List, Some(""), Reload, Built;

    /// Users who may run the SHOW commands, between commas.
    stats_users: Vec<String> = Kind::List, Some(""), Reload, Built;

    /// Seconds between averages, and between lines of statistics in the log.
    stats_period: Duration = Kind::WholeSeconds, Some("60"), Reload, Built;

    group "Sessions";

    /// Startup parameters of clients that are passed over in silence, between commas.
    ignore_startup_parameters: Vec<String> = Kind::List, Some(""), Reload, Built;

    /// Parameters that are kept for each client and set on the server it gets, besides DateStyle,
    /// client_encoding, TimeZone, standard_conforming_strings and application_name. Only those that the
    /// server reports can work.
    track_extra_parameters: Vec<String> = Kind::List, Some("IntervalStyle"), Restart, Built;

    /// Add the client's address and port to its application_name.
    application_name_add_host: bool = Kind::Flag, Some("0"), Reload, Built;

    /// What becomes of the state that a client leaves in its session, in transaction and statement mode.
    /// `carry`: settings and prepared statements go with the client, and for any other state it keeps its
    /// server while that lasts; `pin`: it keeps its server for any state; `refuse`: as `carry`, but a statement
    /// for which it would keep its server is answered with an error; `off`: statements are not looked at.
    session_state: StateMode = STATE_MODE, Some("carry"), Reload, Built;

    /// Of each pool's servers, how many clients may keep for their session state before others with such a
    /// statement at the start of a transaction must wait: a number, or a part of the pool's size, which is 1 at
    /// least; 0 = no limit.
    max_pinned: Share = Kind::Share, Some("50%"), Reload, Built;

    /// Functions of your own that leave state in the session, between commas: a client that calls one keeps
    /// its server.
    state_functions: Vec<String> = Kind::Functions, Some(""), Reload, Built;

    /// Tell a client by a notice when it keeps its server, and why.
    notify_pins: bool = Kind::Flag, Some("0"), Reload, Built;

    /// Prepared statements kept on each server connection in transaction and statement mode; 0: names pass
    /// through as they are.
    max_prepared_statements: u32 = COUNT, Some("200"), Reload, Built;

    /// Refuse the simple query protocol.
    disable_pqexec: bool = Kind::Flag, Some("0"), Restart, Built;

    /// The largest message that is let through, in bytes.
    max_packet_size: u32 = Kind::Whole { min: 0, max: u32::MAX as i64 }, Some("2147483647"), Reload, Built;

    group "Servers";

    /// SQL that cleans a server when a client in session mode gives it back; empty: none.
    server_reset_query: String = Kind::Text, Some("DISCARD ALL"), Reload, Built;

    /// Run `server_reset_query` in every pool mode.
    server_reset_query_always: bool = Kind::Flag, Some("0"), Reload, Built;

    /// SQL that tests a server before it is used again; `<empty>` is an empty query, no text is no test.
    server_check_query: String = Kind::Text, Some("<empty>"), Reload, Built;

    /// Test a server that has been idle this long; 0 = always.
    server_check_delay: Duration = Kind::Seconds, Some("30"), Reload, Built;

    /// In session mode, close a server that is to be replaced when its transaction ends, with its client.
    server_fast_close: bool = Kind::Flag, Some("0"), Reload, Built;

    /// Age at which a server connection is closed when it comes free; 0 = after one use.
    server_lifetime: Duration = Kind::Seconds, Some("3600"), Reload, Built;

    /// Close servers idle this long; 0 = never.
    server_idle_timeout: Duration = Kind::Seconds, Some("600"), Reload, Built;

    /// Give up connecting and logging in to a server after this long.
    server_connect_timeout: Duration = Kind::Seconds, Some("15"), Reload, Built;

    /// Pause after a connection or login that failed.
    server_login_retry: Duration = Kind::Seconds, Some("15"), Reload, Built;

    group "Clusters";

    /// With `target_session_attrs`: the role that the monitor logs in as on each host; its password is in
    /// `auth_file`. It needs no right but to connect. Unset: the database's `user`, else its `auth_user`.
    monitor_user: Option<String> = Kind::Text, None, Reload, Built;

    /// The database that the monitor connects to. Unset: that of the entry; for `*`, `postgres`.
    monitor_dbname: Option<String> = Kind::Text, None, Reload, Built;

    /// The zone that this process is in, for `host_zones` of databases.
    zone: Option<String> = Kind::Text, None, Reload, Built;

    /// How often the monitor asks each host. While a cluster has no primary it asks five times as often.
    monitor_interval: Duration = Kind::Seconds, Some("0.5"), Reload, Built;

    /// How long a host may take to accept the monitor's connection, to log it in, and to answer it, each. A host
    /// that fails twice in a row gets no more clients; one that is silent also loses those that it has.
    monitor_timeout: Duration = Kind::Seconds, Some("1"), Reload, Built;

    /// How long a client waits for a server while no host is what `target_session_attrs` says; this wait does not
    /// count for `query_wait_timeout`. 0 = for ever.
    failover_timeout: Duration = Kind::Seconds, Some("120"), Reload, Built;

    /// How often the engine that a database names in `topology` is asked for the members.
    topology_interval: Duration = Kind::Seconds, Some("2"), Reload, Built;

    /// How long one URL of a `topology` may take to answer before the next is asked.
    topology_timeout: Duration = Kind::Seconds, Some("2"), Reload, Built;

    /// The certificates that a `topology` of `https:` URLs is checked against. Empty: those of the system.
    topology_tls_ca_file: String = Kind::Path, Some(""), Reload, Built;

    /// Our private key for the `https:` URLs of a `topology`, where a client's certificate is asked for.
    topology_tls_key_file: String = Kind::Path, Some(""), Reload, Built;

    /// Our certificate for them.
    topology_tls_cert_file: String = Kind::Path, Some(""), Reload, Built;

    group "Limits of time";

    /// Close a client that sends nothing for this long while it has no server; 0 = never.
    client_idle_timeout: Duration = Kind::Seconds, Some("0"), Reload, Built;

    /// Close a client that has not logged in after this long; 0 = never.
    client_login_timeout: Duration = Kind::Seconds, Some("60"), Reload, Built;

    /// Cancel a query that runs longer; 0 = never.
    query_timeout: Duration = Kind::Seconds, Some("0"), Reload, Built;

    /// Close a client that waits longer for a server; 0 = never.
    query_wait_timeout: Duration = Kind::Seconds, Some("120"), Reload, Built;

    /// Seconds after which a waiting client is told by a notice; 0 = never.
    query_wait_notify: Duration = Kind::WholeSeconds, Some("5"), Reload, Built;

    /// Give up a cancel request that gets no connection for this long; 0 = never.
    cancel_wait_timeout: Duration = Kind::Seconds, Some("10"), Reload, Built;

    /// Close a client idle in a transaction this long; 0 = never.
    idle_transaction_timeout: Duration = Kind::Seconds, Some("0"), Reload, Built;

    /// Close a client whose transaction is older; 0 = never.
    transaction_timeout: Duration = Kind::Seconds, Some("0"), Reload, Built;

    /// How long SUSPEND waits for buffers to empty.
    suspend_timeout: Duration = Kind::Seconds, Some("10"), Reload, NotBuilt;

    group "TLS with clients";

    /// `disable`: none; `allow` and `prefer`: if the client asks; `require`: always; `verify-ca` and
    /// `verify-full`: always, and the client needs a valid certificate.
    client_tls_sslmode: SslMode = Kind::Word(SslMode::NAMES), Some("disable"), Reload, Built;

    /// Our private key.
    client_tls_key_file: String = Kind::Path, Some(""), Reload, Built;

    /// Our certificate.
    client_tls_cert_file: String = Kind::Path, Some(""), Reload, Built;

    /// The certificates that sign clients' certificates.
    client_tls_ca_file: String = Kind::Path, Some(""), Reload, Built;

    /// TLS versions: `secure` (1.2 and 1.3), or a list.
    client_tls_protocols: TlsProtocols = Kind::TlsProtocols, Some("secure"), Reload, Built;

    /// Cipher suites for TLS 1.2, in OpenSSL's words.
    client_tls_ciphers: String = Kind::Text, Some("default"), Reload, Built;

    /// Cipher suites for TLS 1.3, between colons.
    client_tls13_ciphers: Option<String> = Kind::Text, None, Reload, Built;

    /// The curve for key exchange.
    client_tls_ecdhcurve: String = Kind::Text, Some("auto"), Reload, NotBuilt;

    /// Parameters of DHE key exchange, which Howdah never uses.
    client_tls_dheparams: String = Kind::Text, Some("auto"), Reload, Meaningless;

    group "TLS to servers";

    /// `disable`: none; `allow` and `prefer`: if the server can; `require`: always; `verify-ca`: and its
    /// certificate must be valid; `verify-full`: and name the host.
    server_tls_sslmode: SslMode = Kind::Word(SslMode::NAMES), Some("prefer"), Reload, Built;

    /// The certificates that sign servers' certificates.
    server_tls_ca_file: String = Kind::Path, Some(""), Reload, Built;

    /// Our private key.
    server_tls_key_file: String = Kind::Path, Some(""), Reload, Built;

    /// Our certificate.
    server_tls_cert_file: String = Kind::Path, Some(""), Reload, Built;

    /// TLS versions: `secure` (1.2 and 1.3), or a list.
    server_tls_protocols: TlsProtocols = Kind::TlsProtocols, Some("secure"), Reload, Built;

    /// Cipher suites for TLS 1.2, in OpenSSL's words.
    server_tls_ciphers: String = Kind::Text, Some("default"), Reload, Built;

    /// Cipher suites for TLS 1.3, between colons.
    server_tls13_ciphers: Option<String> = Kind::Text, None, Reload, Built;

    group "DNS";

    /// How long a found address is used before it is looked up again.
    dns_max_ttl: Duration = Kind::Seconds, Some("15"), Reload, Built;

    /// How long a failed look-up is remembered.
    dns_nxdomain_ttl: Duration = Kind::Seconds, Some("15"), Reload, Built;

    /// How often the serial numbers of zones are looked at; 0 = never.
    dns_zone_check_period: Duration = Kind::Seconds, Some("0"), Reload, NotBuilt;

    /// A resolv.conf of our own.
    resolv_conf: String = Kind::Path, Some(""), Restart, NotBuilt;

    group "TCP";

    /// Accept a client only when it has sent something (TCP_DEFER_ACCEPT).
    tcp_defer_accept: bool = Kind::Flag, Some("1"), Reload, Built;

    /// Bytes of the system's buffers for each socket; 0 = the system's own choice.
    tcp_socket_buffer: u32 = COUNT, Some("0"), Reload, Built;

    /// Let the system test idle connections.
    tcp_keepalive: bool = Kind::Flag, Some("1"), Reload, Built;

    /// Tests that may fail before a connection is given up; 0 = the system's own choice.
    tcp_keepcnt: u32 = COUNT, Some("0"), Reload, Built;

    /// Seconds before the first test; 0 = the system's own choice.
    tcp_keepidle: Duration = Kind::WholeSeconds, Some("0"), Reload, Built;

    /// Seconds between tests; 0 = the system's own choice.
    tcp_keepintvl: Duration = Kind::WholeSeconds, Some("0"), Reload, Built;

    /// How long sent data may stay without an answer from the peer's system; 0 = the system's own choice.
    tcp_user_timeout: Duration = Kind::Milliseconds, Some("0"), Reload, Built;

    group "Logs";

    /// The file that log lines are added to; opened again at each reload. Empty: none.
    logfile: String = Kind::Path, Some(""), Reload, Built;

    /// Log logins, and new server connections.
    log_connections: bool = Kind::Flag, Some("1"), Reload, Built;

    /// Log closed connections, with the reason.
    log_disconnections: bool = Kind::Flag, Some("1"), Reload, Built;

    /// Log errors that are sent to clients.
    log_pooler_errors: bool = Kind::Flag, Some("1"), Reload, Built;

    /// Log a line of statistics every `stats_period`.
    log_stats: bool = Kind::Flag, Some("1"), Reload, Built;

    /// 0: what an operator needs; 1: more; 2: all there is.
    verbose: u32 = COUNT, None, Reload, Built;

    /// Send log lines to syslog.
    syslog: bool = Kind::Flag, Some("0"), Reload, NotBuilt;

    /// The program's name in syslog.
    syslog_ident: String = Kind::Text, Some("pgbouncer"), Reload, NotBuilt;

    /// The facility in syslog.
    syslog_facility: String = Kind::Word(SYSLOG_FACILITIES), Some("daemon"), Reload, NotBuilt;

    group "The process";

    /// The user to become after the start.
    user: Option<String> = Kind::Text, None, Restart, Built;

    /// The file that holds the process number; `-d` needs it. Empty: none.
    pidfile: String = Kind::Path, Some(""), Restart, Built;

    /// The file that the next reload reads. Unset: the one given at the start.
    conffile: Option<String> = Kind::Path, None, Reload, Built;

    /// The name of the process; nothing here shows it.
    job_name: String = Kind::Text, Some("pgbouncer"), Restart, Ignored;

    /// PgBouncer's buffer for each connection. Howdah's workers share one buffer each, so there is nothing to
    /// set.
    pkt_buf: u32 = COUNT, Some("4096"), Restart, Ignored;

    /// PgBouncer's turns for one connection before the next one. Howdah shares time in its own way, so there
    /// is nothing to set.
    sbuf_loopcnt: u32 = COUNT, Some("5"), Reload, Ignored;

    /// This process's number among the peers, for passing on cancel requests; 0 = none.
    peer_id: u32 = Kind::Whole { min: 0, max: 16383 }, Some("0"), Reload, NotBuilt;

    group "Howdah's own";

    /// Worker threads that move data between clients and servers; 0 = one for each core.
    workers: u32 = Kind::Whole { min: 0, max: 1024 }, Some("0"), Restart, Built;

    /// How many workers are awake while there is less to do than they could do together. `needed`: as few as it
    /// takes, because one that is busy needs less CPU for the same than two that fall asleep and are woken; the others
    /// come back within some hundredths of a second when there is more. `all`: each watches its own clients always.
    workers_awake: WorkersAwake = Kind::Word(WorkersAwake::NAMES), Some("needed"), Restart, Built;

    /// How workers hand bytes to the kernel. `io_uring` sends what many clients and servers are to get in one
    /// system call, which needs Linux 6.1 and leave to use it; where that is missing it is `epoll`, a call for
    /// each. The log says which it is.
    io_backend: IoBackend = Kind::Word(IoBackend::NAMES), Some("auto"), Restart, Built;

    /// Whose behaviour to show where the two differ. `howdah` answers as PostgreSQL would; `pgbouncer` gives
    /// PgBouncer's known flaws back: the misuse of a prepared statement's name closes the connection, and a
    /// key with no default that is taken out of the file keeps its value at a reload.
    compat: Compat = Kind::Word(Compat::NAMES), Some("howdah"), Reload, Built;

    /// What a server may ask of us when we log in, between commas: leave `password` and `md5` out and no
    /// server can make us give away a password in these forms.
    server_auth_allowed: Vec<ServerAuth> =
        Kind::Words(ServerAuth::NAMES), Some("trust, password, md5, scram-sha-256"), Reload, Built;

    /// Connections at once for cancel requests to servers.
    cancel_connections_max: u32 = Kind::Whole { min: 1, max: i32::MAX as i64 }, Some("64"), Reload, Built;

    /// The longest prepared statement, in bytes, that is kept for use on several servers.
    prepared_statement_size_max: u32 = COUNT, Some("16777216"), Reload, Built;

    /// Client connections at once that have not logged in yet.
    login_connections_max: u32 = Kind::Whole { min: 1, max: i32::MAX as i64 }, Some("1000"), Reload, Built;

    /// 1: one connection for each database listens for all its clients, and LISTEN keeps no server. 0: a client
    /// keeps its server while it listens.
    listen_fanout: bool = Kind::Flag, Some("1"), Reload, Built;

    /// Connections at once that listen for clients, one for each database and client_encoding. They do not count
    /// as servers of a pool. Clients beyond it keep their servers while they listen.
    listen_connections_max: u32 = COUNT, Some("100"), Reload, Built;

    /// Channels that one client may have others listen on for it; with more it keeps its server.
    listen_channels_max: u32 = COUNT, Some("1000"), Reload, Built;

    /// Bytes of notifications that wait for a client which is in a transaction or does not read. Beyond them it is
    /// closed.
    notify_queue_size_max: u32 = COUNT, Some("1048576"), Reload, Built;

    /// What listening clients are told when the connection that listens for them was lost and is there again, because
    /// nobody knows what was sent meanwhile: `warning` is a message of that severity, `close` ends their sessions, as
    /// PostgreSQL's end would have.
    listen_lost: ListenLost = Kind::Word(ListenLost::NAMES), Some("warning"), Reload, Built;
}

/// PgBouncer's own query: no password for a user whose time is over, no row for one who may not log in.
const AUTH_QUERY: &str = "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END \
                          FROM pg_authid WHERE rolname=$1 AND rolcanlogin";

const SYSLOG_FACILITIES: &[&str] = &[
    "auth", "authpriv", "daemon", "user", "local0", "local1", "local2", "local3", "local4", "local5",
    "local6", "local7",
];
