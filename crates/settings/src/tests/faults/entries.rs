//! Lines and sections that are none, entries with mistakes, keys that need one another.

use super::check;

#[test]
fn line_is_no_key_and_value() {
    for (text, wanted) in LINE_IS_NO_KEY_AND_VALUE {
        check("[pgbouncer]\n", text, wanted);
    }
}

const LINE_IS_NO_KEY_AND_VALUE: &[(&str, &str)] = &[
    ("pool_mode session", "2:1: pool_mode: no = after the key; allowed: key = value"),
    ("pool_mode: session", "2:1: pool_mode: no = after the key; allowed: key = value"),
    ("pool_mode", "2:1: pool_mode: no = after the key; allowed: key = value"),
    (
        "= session",
        "2:1: no key before the =; allowed: a key of letters, digits, _ . - and *, or any name in single quotes",
    ),
    (
        "\"pool_mode\" = session",
        "2:1: no key before the =; allowed: a key of letters, digits, _ . - and *, or any name in single quotes",
    ),
    (
        "'pool_mode = session",
        "2:1: the quote is not closed; allowed: a ' at both ends, and two of them for one inside",
    ),
    (
        "'' = x",
        "2:1: no key before the =; allowed: a key of letters, digits, _ . - and *, or any name in single quotes",
    ),
    ("%includ other.ini", "2:1: %includ: no such directive; allowed: %include FILE; did you mean %include?"),
    ("%include", "2:1: %include: no file to include; allowed: %include FILE"),
    ("%include   ", "2:1: %include: no file to include; allowed: %include FILE"),
    ("%includeother.ini", "2:1: %includeother.ini: no such directive; allowed: %include FILE"),
    ("% x", "2:1: %: no such directive; allowed: %include FILE"),
    (
        "?",
        "2:1: no key before the =; allowed: a key of letters, digits, _ . - and *, or any name in single quotes",
    ),
    (
        "é = 1",
        "2:1: no key before the =; allowed: a key of letters, digits, _ . - and *, or any name in single quotes",
    ),
    ("pool mode = session", "2:1: no = after the key; allowed: key = value"),
];

#[test]
fn section_is_wrong() {
    for (text, wanted) in SECTION_IS_WRONG {
        check("", text, wanted);
    }
}

const SECTION_IS_WRONG: &[(&str, &str)] = &[
    (
        "[pgbouncer]\n[database]\na =",
        "2:1: database: unknown section; allowed: [pgbouncer], [databases], [users] or [peers]; did you mean databases?",
    ),
    (
        "[pgbouncer]\n[pgbouncer",
        "2:1: no ] after the section's name; allowed: [pgbouncer], [databases], [users] or [peers]",
    ),
    (
        "[pgbouncer]\n[ databases ]",
        "2:1:  databases : unknown section; allowed: [pgbouncer], [databases], [users] or [peers]; did you mean databases?",
    ),
    ("[pgbouncer]\n[]", "2:1: unknown section; allowed: [pgbouncer], [databases], [users] or [peers]"),
    (
        "[PgBouncer]\npool_mode = x",
        "1:1: PgBouncer: unknown section; allowed: [pgbouncer], [databases], [users] or [peers]; did you mean pgbouncer?",
    ),
    (
        "[pgbouncr]\nnonsense\nworse = 1\n",
        "1:1: pgbouncr: unknown section; allowed: [pgbouncer], [databases], [users] or [peers]; did you mean pgbouncer?",
    ),
    ("", "1:1: there is no section [pgbouncer]; allowed: [pgbouncer], which may be empty"),
    ("; nothing\n", "1:1: there is no section [pgbouncer]; allowed: [pgbouncer], which may be empty"),
    (
        "[databases]\na = port=1\n",
        "1:1: there is no section [pgbouncer]; allowed: [pgbouncer], which may be empty",
    ),
    (
        "pool_mode = session\n[pgbouncer]\n",
        "1:1: pool_mode: stands before any section; allowed: a section such as [pgbouncer] before it",
    ),
    (
        "[pgbouncer] pool_mode = x [users]",
        "1:25: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough",
    ),
    (
        "[pgbouncer] [user] x",
        "1:13: user: unknown section; allowed: [pgbouncer], [databases], [users] or [peers]; did you mean users?",
    ),
    (
        "nothing = 1",
        "1:1: nothing: stands before any section; allowed: a section such as [pgbouncer] before it\n1:1: there is no section [pgbouncer]; allowed: [pgbouncer], which may be empty",
    ),
];

#[test]
fn entry_of_databases_is_wrong() {
    for (text, wanted) in ENTRY_OF_DATABASES_IS_WRONG {
        check("[pgbouncer]\n[databases]\n", text, wanted);
    }
}

const ENTRY_OF_DATABASES_IS_WRONG: &[(&str, &str)] = &[
    ("a = hots=h", "3:5: a: hots: unknown key in [databases]; did you mean host?"),
    ("a = host=h prot=6000", "3:12: a: prot: unknown key in [databases]; did you mean port?"),
    ("a = Host=h", "3:5: a: Host: unknown key in [databases]; did you mean host?"),
    (
        "a = host=h port=0",
        "3:17: a: port: value not allowed; allowed: a whole number from 1 to 65535, or one for each host",
    ),
    (
        "a = host=h port=65536",
        "3:17: a: port: value not allowed; allowed: a whole number from 1 to 65535, or one for each host",
    ),
    (
        "a = host=h,i port=1,2,3",
        "3:1: a: port: value not allowed; allowed: one port, or 2: one for each host",
    ),
    (
        "a = host=h target_session_attrs=primary",
        "3:1: a: target_session_attrs: needs monitor_user; allowed: a role that may log in to every host, in \
         monitor_user, user or auth_user",
    ),
    (
        "a = topology=patroni:http://h user=u",
        "3:1: a: topology: needs target_session_attrs; allowed: what its servers must be, such as \
         target_session_attrs=read-write",
    ),
    (
        "a = topology=patroni:http://h host=h target_session_attrs=any user=u",
        "3:1: a: host: value not allowed; allowed: either topology or host",
    ),
    (
        "a = topology=patroni:h",
        "3:14: a: topology: value not allowed; allowed: patroni: and one or more URLs…",
    ),
    (
        "a = port=54e2",
        "3:10: a: port: value not allowed; allowed: a whole number from 1 to 65535, or one for each host",
    ),
    ("a = port=", "3:10: a: port: no value; allowed: a value that is not empty"),
    ("a = dbname=''", "3:12: a: dbname: no value; allowed: a value that is not empty"),
    ("a = host=h port", "3:12: a: port: no = after the key; allowed: key=value pairs…"),
    ("a = h", "3:5: a: no = after the key; allowed: key=value pairs…"),
    ("a = host h", "3:5: a: host: no = after the key; allowed: key=value pairs…"),
    ("a = =h", "3:5: a: no key before the =; allowed: key=value pairs…"),
    ("a = host==h", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    ("a = host=[::1]", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    ("a = host=1:2", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    ("a = host=h,,i", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    ("a = host=user@h", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    ("a = host=h/dir", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    ("a = host=/", "3:10: a: host: value not allowed; allowed: one or more hosts…"),
    (
        "a = password='x",
        "3:14: a: password: the quote is not closed; allowed: a ' at both ends, and two of them for one inside",
    ),
    (
        "a = dbname='it''s",
        "3:12: a: dbname: the quote is not closed; allowed: a ' at both ends, and two of them for one inside",
    ),
    (
        "a = dbname='x'host=h",
        "3:15: a: dbname: no space after the closing quote; allowed: a space between two key=value pairs",
    ),
    (
        "a = pool_mode=sesion",
        "3:15: a: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough; did you mean session?",
    ),
    (
        "a = pool_size=ten",
        "3:15: a: pool_size: value not allowed; allowed: a whole number of 0 or more (-1 for the setting in [pgbouncer])",
    ),
    (
        "a = pool_size=1.5",
        "3:15: a: pool_size: value not allowed; allowed: a whole number of 0 or more (-1 for the setting in [pgbouncer])",
    ),
    (
        "a = max_db_connections=lots",
        "3:24: a: max_db_connections: value not allowed; allowed: a whole number of 0 or more (-1 for the setting in [pgbouncer])",
    ),
    (
        "a = load_balance_hosts=any",
        "3:24: a: load_balance_hosts: value not allowed; allowed: one of round-robin, disable, least-connections, random",
    ),
    (
        "a = load_balance_hosts=roundrobin",
        "3:24: a: load_balance_hosts: value not allowed; allowed: one of round-robin, disable, least-connections, random; did you mean round-robin?",
    ),
    (
        "a = host=a,b host_weights=1",
        "3:1: a: host_weights: value not allowed; allowed: a whole number up to 65535 for each of the hosts in host",
    ),
    (
        "a = host=a,b host_weights=1,x",
        "3:1: a: host_weights: value not allowed; allowed: a whole number up to 65535 for each of the hosts in host",
    ),
    (
        "a = host_zones=a",
        "3:1: a: host_zones: value not allowed; allowed: a name for each of the hosts in host",
    ),
    (
        "a = consistency=bounded",
        "3:17: a: consistency: value not allowed; allowed: session, bounded(MILLISECONDS) or eventual",
    ),
    (
        "a = host=a,b read_write_split=intent",
        "3:1: a: read_write_split: needs target_session_attrs; allowed: several hosts, and target_session_attrs = read-write or primary",
    ),
    (
        "a = target_session_attrs=read-write user=u read_write_split=intent",
        "3:1: a: read_write_split: needs host; allowed: several hosts, and target_session_attrs = read-write or primary",
    ),
    (
        "a = server_lifetime=1h",
        "3:21: a: server_lifetime: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "a = query_wait_timeout=-1",
        "3:24: a: query_wait_timeout: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    (
        "a = query_timeout=5",
        "3:5: a: query_timeout: unknown key in [databases]; it belongs in [users]; allowed: dbname, host…",
    ),
    (
        "a = max_user_connections=5",
        "3:5: a: max_user_connections: unknown key in [databases]; it belongs in [users]; allowed: dbname, host…",
    ),
    (
        "a = listen_port=1",
        "3:5: a: listen_port: unknown key in [databases]; it belongs in [pgbouncer]; allowed: dbname, host…",
    ),
    ("a = sslmode=require", "3:5: a: sslmode: unknown key in [databases]; allowed: dbname, host…"),
    ("pgbouncer = host=h", "3:1: pgbouncer: this name is the console's; allowed: any name but pgbouncer"),
    ("listen_port = 6432", "3:15: listen_port: no = after the key; allowed: key=value pairs…"),
    ("pool_mode = session", "3:13: pool_mode: no = after the key; allowed: key=value pairs…"),
    (
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa =",
        "3:1: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: name too long; allowed: 63 bytes for a database, 127 for a user",
    ),
    ("my db = host=h", "3:1: no = after the key; allowed: key = value"),
    (
        "\"my db\" = host=h",
        "3:1: no key before the =; allowed: a key of letters, digits, _ . - and *, or any name in single quotes",
    ),
    ("a host=h", "3:1: no = after the key; allowed: key = value"),
    (
        "b = hots=h prot=1",
        "3:5: b: hots: unknown key in [databases]; did you mean host?\n3:12: b: unknown key in [databases]; allowed: key=value pairs…",
    ),
    ("bö = host=h", "3:1: no = after the key; allowed: key = value"),
    ("'bö' = hots=h", "3:8: bö: hots: unknown key in [databases]; did you mean host?"),
];

#[test]
fn entry_of_users_or_peers_is_wrong() {
    for (text, wanted) in ENTRY_OF_USERS_OR_PEERS_IS_WRONG {
        check("[pgbouncer]\n", text, wanted);
    }
}

const ENTRY_OF_USERS_OR_PEERS_IS_WRONG: &[(&str, &str)] = &[
    ("[users]\nu = pool_mod=session", "3:5: u: pool_mod: unknown key in [users]; did you mean pool_mode?"),
    (
        "[users]\nu = password=x",
        "3:5: u: password: unknown key in [users]; it belongs in [databases]; allowed: pool_mode, pool_size…",
    ),
    (
        "[users]\nu = min_pool_size=1",
        "3:5: u: min_pool_size: unknown key in [users]; it belongs in [databases]; allowed: pool_mode, pool_size…",
    ),
    (
        "[users]\nu = pool_mode=none",
        "3:15: u: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough",
    ),
    (
        "[users]\nu = query_timeout=5s",
        "3:19: u: query_timeout: value not allowed; allowed: seconds, such as 0, 1.5 or 600",
    ),
    ("[users]\nu = pool_size", "3:5: u: pool_size: no = after the key; allowed: key=value pairs…"),
    (
        "[users]\nu = max_user_connections=x",
        "3:26: u: max_user_connections: value not allowed; allowed: a whole number of 0 or more (-1 for the setting in [pgbouncer])",
    ),
    ("[peers]\n0 = host=h", "3:1: 0: not the number of a peer; allowed: a whole number from 1 to 65535"),
    (
        "[peers]\n65536 = host=h",
        "3:1: 65536: not the number of a peer; allowed: a whole number from 1 to 65535",
    ),
    ("[peers]\none = host=h", "3:1: one: not the number of a peer; allowed: a whole number from 1 to 65535"),
    ("[peers]\n1 = port=1", "3:1: 1: needs host; allowed: host set too"),
    ("[peers]\n1 = hots=h", "3:5: 1: hots: unknown key in [peers]; did you mean host?"),
    (
        "[peers]\n1 = host=h,i",
        "3:10: 1: host: value not allowed; allowed: a name, an IPv4 address, an IPv6 address without brackets, or a socket directory (/dir or @name)",
    ),
    (
        "[peers]\n1 = host=h pool_size=-1",
        "3:22: 1: pool_size: value not allowed; allowed: a whole number of 0 or more",
    ),
    (
        "[peers]\n1 = host=h user=x",
        "3:12: 1: user: unknown key in [peers]; it belongs in [databases]; allowed: host, port, pool_size",
    ),
    ("[peers]\n-1 = host=h", "3:1: -1: not the number of a peer; allowed: a whole number from 1 to 65535"),
];

#[test]
fn keys_need_one_another() {
    for (text, wanted) in KEYS_NEED_ONE_ANOTHER {
        check("[pgbouncer]\n", text, wanted);
    }
}

const KEYS_NEED_ONE_ANOTHER: &[(&str, &str)] = &[
    (
        "client_tls_sslmode = require",
        "2:22: client_tls_sslmode: needs client_tls_key_file; allowed: disable, or a key and a certificate\n2:22: client_tls_sslmode: needs client_tls_cert_file; allowed: disable, or a key and a certificate",
    ),
    (
        "client_tls_sslmode = verify-full\nclient_tls_key_file = k\nclient_tls_cert_file = c",
        "2:22: client_tls_sslmode: needs client_tls_ca_file; allowed: certificates to check clients against",
    ),
    (
        "client_tls_key_file = k\nclient_tls_sslmode = prefer",
        "3:22: client_tls_sslmode: needs client_tls_cert_file; allowed: disable, or a key and a certificate",
    ),
    (
        "auth_type = cert",
        "2:13: auth_type: needs client_tls_sslmode; allowed: client_tls_sslmode = verify-full",
    ),
    ("auth_type = hba", "2:13: auth_type: needs auth_hba_file; allowed: a file of rules"),
    (
        "server_tls_key_file = k",
        "2:23: server_tls_key_file: needs server_tls_cert_file; allowed: a key and its certificate",
    ),
    (
        "server_tls_cert_file = c",
        "2:24: server_tls_cert_file: needs server_tls_key_file; allowed: a certificate and its key",
    ),
    (
        "topology_tls_key_file = k",
        "2:25: topology_tls_key_file: needs topology_tls_cert_file; allowed: a key and its certificate",
    ),
    (
        "topology_tls_cert_file = c",
        "2:26: topology_tls_cert_file: needs topology_tls_key_file; allowed: a certificate and its key",
    ),
    (
        "auth_dbname = pgbouncer",
        "2:15: auth_dbname: this name is the console's; allowed: any name but pgbouncer",
    ),
];
