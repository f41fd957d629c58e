//! Lines of `[pgbouncer]` with an unknown key or a value that is not allowed.

use super::check;

#[test]
fn key_of_general_is_unknown() {
    for (text, wanted) in KEY_OF_GENERAL_IS_UNKNOWN {
        check("[pgbouncer]\n", text, wanted);
    }
}

const KEY_OF_GENERAL_IS_UNKNOWN: &[(&str, &str)] = &[
    ("pool_mod = session", "2:1: pool_mod: unknown key in [pgbouncer]; did you mean pool_mode?"),
    ("Pool_Mode = session", "2:1: Pool_Mode: unknown key in [pgbouncer]; did you mean pool_mode?"),
    ("POOL_MODE = session", "2:1: POOL_MODE: unknown key in [pgbouncer]; did you mean pool_mode?"),
    ("max_client_con = 1", "2:1: max_client_con: unknown key in [pgbouncer]; did you mean max_client_conn?"),
    (
        "defualt_pool_size = 5",
        "2:1: defualt_pool_size: unknown key in [pgbouncer]; did you mean default_pool_size?",
    ),
    ("listen_adr = *", "2:1: listen_adr: unknown key in [pgbouncer]; did you mean listen_addr?"),
    ("auth_tipe = md5", "2:1: auth_tipe: unknown key in [pgbouncer]; did you mean auth_type?"),
    (
        "server_tls_ssl_mode = require",
        "2:1: server_tls_ssl_mode: unknown key in [pgbouncer]; did you mean server_tls_sslmode?",
    ),
    (
        "pool_size = 5",
        "2:1: pool_size: unknown key in [pgbouncer]; it belongs in [databases]; allowed: the keys in docs/settings.md",
    ),
    (
        "host = localhost",
        "2:1: host: unknown key in [pgbouncer]; it belongs in [databases]; allowed: the keys in docs/settings.md",
    ),
    (
        "dbname = x",
        "2:1: dbname: unknown key in [pgbouncer]; it belongs in [databases]; allowed: the keys in docs/settings.md",
    ),
    (
        "reserve_pool = 5",
        "2:1: reserve_pool: unknown key in [pgbouncer]; it belongs in [databases]; allowed: the keys in docs/settings.md",
    ),
    ("xyzzy = 1", "2:1: xyzzy: unknown key in [pgbouncer]; allowed: the keys in docs/settings.md"),
    ("'pool mode' = session", "2:1: pool mode: unknown key in [pgbouncer]; did you mean pool_mode?"),
    ("query_timeuot = 1", "2:1: query_timeuot: unknown key in [pgbouncer]; did you mean query_timeout?"),
    ("workres = 4", "2:1: workres: unknown key in [pgbouncer]; did you mean workers?"),
    (
        "  max_db_conections = 1",
        "2:3: max_db_conections: unknown key in [pgbouncer]; did you mean max_db_connections?",
    ),
    (
        "service_name = x",
        "2:1: service_name: unknown key in [pgbouncer]; allowed: the keys in docs/settings.md",
    ),
    ("_ = 1", "2:1: _: unknown key in [pgbouncer]; allowed: the keys in docs/settings.md"),
    ("pool_mode. = session", "2:1: pool_mode.: unknown key in [pgbouncer]; did you mean pool_mode?"),
];

#[test]
fn value_of_general_is_not_allowed() {
    for (text, wanted) in VALUE_OF_GENERAL_IS_NOT_ALLOWED {
        check("[pgbouncer]\n", text, wanted);
    }
}

const VALUE_OF_GENERAL_IS_NOT_ALLOWED: &[(&str, &str)] = &[
    (
        "pool_mode = trnsaction",
        "2:13: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough; did you mean transaction?",
    ),
    (
        "pool_mode = trans action",
        "2:13: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough; did you mean transaction?",
    ),
    (
        "pool_mode =",
        "2:12: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough",
    ),
    (
        "auth_type = scram-sha256",
        "2:13: auth_type: value not allowed; allowed: one of any…; did you mean scram-sha-256?",
    ),
    ("auth_type = password", "2:13: auth_type: value not allowed; allowed: one of any…"),
    ("auth_type = crypt", "2:13: auth_type: value not allowed; allowed: one of any…"),
    (
        "client_tls_sslmode = on",
        "2:22: client_tls_sslmode: value not allowed; allowed: one of disable, allow, prefer, require, verify-ca, verify-full",
    ),
    (
        "server_tls_sslmode = verifyfull",
        "2:22: server_tls_sslmode: value not allowed; allowed: one of disable, allow, prefer, require, verify-ca, verify-full; did you mean verify-full?",
    ),
    (
        "compat = pgbounce",
        "2:10: compat: value not allowed; allowed: one of howdah, pgbouncer; did you mean pgbouncer?",
    ),
    (
        "syslog_facility = deamon",
        "2:19: syslog_facility: value not allowed; allowed: one of auth…; did you mean daemon?",
    ),
    (
        "server_auth_allowed = scram-sha-256, md4",
        "2:23: server_auth_allowed: value not allowed; allowed: one or more of trust, password, md5, scram-sha-256, between commas; did you mean md5?",
    ),
    (
        "server_auth_allowed =",
        "2:22: server_auth_allowed: value not allowed; allowed: one or more of trust, password, md5, scram-sha-256, between commas",
    ),
    (
        "client_tls_protocols = tlsv1.0",
        "2:24: client_tls_protocols: value not allowed; allowed: secure, all, legacy, or some of tlsv1.2, tlsv1.3 between commas (1.0 and 1.1 are not spoken); did you mean tlsv1.2?",
    ),
    (
        "server_tls_protocols = tlsv1,3",
        "2:24: server_tls_protocols: value not allowed; allowed: secure, all, legacy, or some of tlsv1.2, tlsv1.3 between commas (1.0 and 1.1 are not spoken); did you mean tlsv1.3?",
    ),
    (
        "server_tls_protocols = tls1.3",
        "2:24: server_tls_protocols: value not allowed; allowed: secure, all, legacy, or some of tlsv1.2, tlsv1.3 between commas (1.0 and 1.1 are not spoken); did you mean tlsv1.3?",
    ),
    (
        "default_pool_size = many",
        "2:21: default_pool_size: value not allowed; allowed: a whole number of 0 or more",
    ),
    (
        "default_pool_size = -1",
        "2:21: default_pool_size: value not allowed; allowed: a whole number of 0 or more",
    ),
    (
        "default_pool_size = 20 ; twenty",
        "2:21: default_pool_size: value not allowed; allowed: a whole number of 0 or more (a comment needs a line of its own)",
    ),
    (
        "default_pool_size = 3000000000",
        "2:21: default_pool_size: value not allowed; allowed: a whole number of 0 or more",
    ),
    (
        "default_pool_size = 1.5",
        "2:21: default_pool_size: value not allowed; allowed: a whole number of 0 or more",
    ),
    (
        "max_client_conn = 1k",
        "2:19: max_client_conn: value not allowed; allowed: a whole number of 0 or more",
    ),
    (
        "max_packet_size = 4294967296",
        "2:19: max_packet_size: value not allowed; allowed: a whole number of 0 or more",
    ),
    ("listen_port = 65536", "2:15: listen_port: value not allowed; allowed: a whole number from 0 to 65535"),
    ("listen_port = -1", "2:15: listen_port: value not allowed; allowed: a whole number from 0 to 65535"),
    ("listen_port = 08", "2:15: listen_port: value not allowed; allowed: a whole number from 0 to 65535"),
    ("log_connections = yes", "2:19: log_connections: value not allowed; allowed: 0 or 1"),
    ("log_stats = on", "2:13: log_stats: value not allowed; allowed: 0 or 1"),
    ("tcp_keepalive = true", "2:17: tcp_keepalive: value not allowed; allowed: 0 or 1"),
    (
        "server_idle_timeout = 5m",
        "2:23: server_idle_timeout: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "server_idle_timeout = 10s",
        "2:23: server_idle_timeout: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "server_lifetime = -5",
        "2:19: server_lifetime: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "query_timeout = inf",
        "2:17: query_timeout: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "query_timeout = 1,5",
        "2:17: query_timeout: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "query_wait_notify = 2.5",
        "2:21: query_wait_notify: value not allowed; allowed: whole seconds, such as 0 or 60",
    ),
    (
        "stats_period = minute",
        "2:16: stats_period: value not allowed; allowed: whole seconds, such as 0 or 60",
    ),
    (
        "tcp_user_timeout = 1s",
        "2:20: tcp_user_timeout: value not allowed; allowed: whole milliseconds, such as 0 or 5000",
    ),
    (
        "unix_socket_mode = 0888",
        "2:20: unix_socket_mode: value not allowed; allowed: a whole number from 0 to 4095",
    ),
    (
        "unix_socket_mode = 010000",
        "2:20: unix_socket_mode: value not allowed; allowed: a whole number from 0 to 4095",
    ),
    (
        "scram_iterations = 0",
        "2:20: scram_iterations: value not allowed; allowed: a whole number from 1 to 10000000",
    ),
    ("peer_id = 16384", "2:11: peer_id: value not allowed; allowed: a whole number from 0 to 16383"),
    ("workers = 1025", "2:11: workers: value not allowed; allowed: a whole number from 0 to 1024"),
    ("workers = auto", "2:11: workers: value not allowed; allowed: a whole number from 0 to 1024"),
    (
        "cancel_connections_max = 0",
        "2:26: cancel_connections_max: value not allowed; allowed: a whole number of 1 or more",
    ),
    (
        "login_connections_max = 0",
        "2:25: login_connections_max: value not allowed; allowed: a whole number of 1 or more",
    ),
    ("verbose = -1", "2:11: verbose: value not allowed; allowed: a whole number of 0 or more"),
    (
        "tcp_keepidle = 7200s",
        "2:16: tcp_keepidle: value not allowed; allowed: whole seconds, such as 0 or 60",
    ),
    (
        "auth_type = \tsfram-sha-256",
        "2:14: auth_type: value not allowed; allowed: one of any…; did you mean scram-sha-256?",
    ),
    (
        "pool_mode = séssion",
        "2:13: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough; did you mean session?",
    ),
];
