//! The settings that poolers are started with, as texts, the same for all as far as they share words.
//! They are printed with every report, so that anyone can call them unfair.

use crate::postgres::DATABASE;
use crate::target::{CANNED_DATABASE, Kind, Servers};
use std::path::{Path, PathBuf};

/// What the settings are made from.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Server connections a pooler may open: `default_pool_size`.
    pub pool_size: usize,
    /// Clients that may come at once: `max_client_conn`.
    pub clients_max: usize,
    /// The same for haproxy, which refuses to start where two files a client are more than it may open.
    pub haproxy_clients_max: usize,
    /// `maxconn` of haproxy's server: beyond it clients queue before they are logged in. Without it,
    /// haproxy is a 1:1 proxy: each client costs a server connection, and it pools nothing.
    pub haproxy_servers_max: Option<usize>,
    /// pgpool's children: each serves one client at a time, over a server connection of its own.
    pub pgpool_children: usize,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// PEM.
    pub certificate: PathBuf,
    /// PEM, readable to the servers' user alone.
    pub key: PathBuf,
}

impl Certificate {
    /// The same files in another directory.
    pub fn moved_to(&self, directory: &Path) -> Certificate {
        let moved = |path: &Path| directory.join(path.file_name().unwrap_or_default());
        Certificate { certificate: moved(&self.certificate), key: moved(&self.key) }
    }
}

/// Who may come in, and how: one role without a password, one by SCRAM.
pub fn hba(kind: Kind) -> String {
    let role = kind.role();
    format!("host all {role} 127.0.0.1/32 trust\nhost all {role}_scram 127.0.0.1/32 scram-sha-256\n")
}

/// For Howdah and pgbouncer, which differ in `workers` alone; and for Howdah with session state switched off.
pub fn ini(
    kind: Kind,
    port: u16,
    directory: &Path,
    servers: &Servers,
    sizes: &Sizes,
    tls: Option<&Certificate>,
) -> String {
    let role = kind.role();
    let mut ini = String::from("[databases]\n");
    if let Some(server) = &servers.postgres {
        let (host, port, database) = (&server.host, server.port, &server.database);
        let password =
            server.password.as_ref().map_or(String::new(), |password| format!(" password={password}"));
        ini += &format!("{DATABASE} = host={host} port={port} user={role}{password} dbname={database}\n");
    }
    let (name, canned) = (CANNED_DATABASE, servers.canned);
    ini += &format!("{name} = host=127.0.0.1 port={canned} user={role} dbname={name}\n\n[pgbouncer]\n");
    let file = |name: &str| directory.join(format!("{kind}.{name}")).display().to_string();
    let mut settings = vec![
        ("listen_addr", "127.0.0.1".to_owned()),
        ("listen_port", port.to_string()),
        ("listen_backlog", "4096".to_owned()),
        ("unix_socket_dir", String::new()),
        ("auth_type", "hba".to_owned()),
        ("auth_hba_file", file("hba")),
        ("auth_file", file("users")),
        ("pool_mode", "transaction".to_owned()),
        ("default_pool_size", sizes.pool_size.to_string()),
        ("max_client_conn", sizes.clients_max.to_string()),
        ("ignore_startup_parameters", "extra_float_digits".to_owned()),
        // The default depends on the pooler and its version: one would encrypt for PostgreSQL, another not.
        ("server_tls_sslmode", "disable".to_owned()),
        ("log_connections", "0".to_owned()),
        ("log_disconnections", "0".to_owned()),
    ];
    if let Some(Certificate { certificate, key }) = tls {
        settings.push(("client_tls_sslmode", "allow".to_owned()));
        settings.push(("client_tls_cert_file", certificate.display().to_string()));
        settings.push(("client_tls_key_file", key.display().to_string()));
    }
    for (key, value) in settings {
        ini += &format!("{key} = {value}\n");
    }
    if kind.is_howdah() {
        ini += &format!("workers = {}\n", kind.workers());
    }
    if kind == Kind::HowdahOff {
        ini += "session_state = off\n";
    }
    if let Kind::Howdah { epoll: true, .. } = kind {
        ini += "io_backend = epoll\n";
    }
    ini
}

/// For haproxy, in tcp mode and with one thread, as pgbouncer has one: it knows no PostgreSQL, so it can
/// neither reuse a server connection nor answer a login itself. The times are those of the comparison
/// that the scenario haproxy-150 repeats.
pub fn haproxy(doors: &[(u16, String)], sizes: &Sizes) -> String {
    let mut text = format!(
        "global\n    nbthread 1\n    maxconn {}\n\ndefaults\n    mode tcp\n    backlog 4096\n    \
         timeout connect 10s\n    timeout queue 600s\n    timeout client 600s\n    timeout server 600s\n",
        sizes.haproxy_clients_max
    );
    let limit = sizes.haproxy_servers_max.map_or(String::new(), |limit| format!(" maxconn {limit}"));
    for (number, (port, server)) in doors.iter().enumerate() {
        text += &format!(
            "\nlisten door{number}\n    bind 127.0.0.1:{port}\n    maxconn {}\n    server server{number} {server}{limit}\n",
            sizes.haproxy_clients_max
        );
    }
    text
}

/// For pgpool-II in raw mode: one server, no balancing, no checks, no cache of results, the pool alone.
pub fn pgpool(
    port: u16,
    pcp_port: u16,
    directory: &Path,
    servers: &Servers,
    sizes: &Sizes,
    tls: Option<&Certificate>,
) -> String {
    let place = directory.display();
    let (host, server_port) =
        servers.postgres.as_ref().map_or(("127.0.0.1", 5432), |server| (server.host.as_str(), server.port));
    let mut text = format!(
        "backend_clustering_mode = 'raw'\n\
         listen_addresses = '127.0.0.1'\nport = {port}\nsocket_dir = '{place}'\n\
         pcp_listen_addresses = '127.0.0.1'\npcp_port = {pcp_port}\npcp_socket_dir = '{place}'\n\
         pid_file_name = '{place}/pgpool.pid'\nlogdir = '{place}'\nwork_dir = '{place}'\n\
         backend_hostname0 = '{host}'\nbackend_port0 = {server_port}\nbackend_weight0 = 1\n\
         backend_flag0 = 'DISALLOW_TO_FAILOVER'\nfailover_on_backend_error = off\n\
         enable_pool_hba = on\npool_passwd = '{place}/pool_passwd'\n\
         # A child holds one client; a client beyond them waits in the kernel, before its login.\n\
         num_init_children = {children}\n\
         # One user and one database: a second cached server connection would never be used.\n\
         max_pool = 1\nconnection_cache = on\n\
         # Its manual's advice against waking all children for each client; it asks for children without end of life.\n\
         serialize_accept = on\nchild_life_time = 0\nlisten_backlog_multiplier = 4\n\
         load_balance_mode = off\nhealth_check_period = 0\nsr_check_period = 0\nuse_watchdog = off\n\
         memory_cache_enabled = off\ncheck_temp_table = none\ncheck_unlogged_table = off\n\
         log_min_messages = error\n",
        children = sizes.pgpool_children,
    );
    if let Some(Certificate { certificate, key }) = tls {
        text += &format!("ssl = on\nssl_cert = '{}'\nssl_key = '{}'\n", certificate.display(), key.display());
    }
    text
}
