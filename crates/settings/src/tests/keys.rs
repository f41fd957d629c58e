//! The table: every key of PgBouncer is in it, and each entry is of one mind with itself.

use std::collections::BTreeSet;

use super::{good, lines, read_with};
use crate::{Change, DATABASE, GENERAL, Key, PEER, Settings, Status, USER, WarningKind};

/// The keys of [pgbouncer] in PgBouncer, written down apart from the table.
const PGBOUNCER: &str = "
    admin_users application_name_add_host auth_dbname auth_file auth_hba_file auth_ident_file
    auth_ldap_options auth_query auth_type auth_user autodb_idle_timeout cancel_wait_timeout
    client_idle_timeout client_login_timeout client_tls13_ciphers client_tls_ca_file client_tls_cert_file
    client_tls_ciphers client_tls_dheparams client_tls_ecdhcurve client_tls_key_file client_tls_protocols
    client_tls_sslmode conffile default_pool_size disable_pqexec dns_max_ttl dns_nxdomain_ttl
    dns_zone_check_period idle_transaction_timeout ignore_startup_parameters job_name listen_addr
    listen_backlog listen_port log_connections log_disconnections log_pooler_errors log_stats logfile
    login_notify_message max_client_conn max_db_client_connections max_db_connections max_packet_size
    max_prepared_statements max_user_client_connections max_user_connections min_pool_size peer_id pidfile
    pkt_buf pool_idle_timeout pool_mode query_timeout query_wait_notify query_wait_timeout reserve_pool_size
    reserve_pool_timeout resolv_conf sbuf_loopcnt scram_iterations server_check_delay server_check_query
    server_connect_timeout server_fast_close server_idle_timeout server_lifetime server_login_retry
    server_reset_query server_reset_query_always server_round_robin server_tls13_ciphers server_tls_ca_file
    server_tls_cert_file server_tls_ciphers server_tls_key_file server_tls_protocols server_tls_sslmode
    so_reuseport stats_period stats_users suspend_timeout syslog syslog_facility syslog_ident
    tcp_defer_accept tcp_keepalive tcp_keepcnt tcp_keepidle tcp_keepintvl tcp_socket_buffer tcp_user_timeout
    track_extra_parameters transaction_timeout unix_socket_dir unix_socket_group unix_socket_mode user
    verbose";

const OURS: &str = "
    workers compat server_auth_allowed cancel_connections_max prepared_statement_size_max
    login_connections_max session_state max_pinned state_functions notify_pins listen_fanout
    listen_connections_max listen_channels_max notify_queue_size_max listen_lost io_backend failover_timeout
    monitor_dbname monitor_interval monitor_timeout monitor_user topology_interval topology_timeout
    topology_tls_ca_file topology_tls_cert_file topology_tls_key_file health_listen zone workers_awake";

const RESTART: &str = "
    disable_pqexec job_name listen_addr listen_backlog listen_port pidfile pkt_buf resolv_conf so_reuseport
    track_extra_parameters unix_socket_dir unix_socket_group unix_socket_mode user workers io_backend
    health_listen workers_awake";

const NO_DEFAULT: &str = "
    auth_dbname auth_file auth_ident_file auth_ldap_options auth_user client_tls13_ciphers
    server_tls13_ciphers conffile user verbose";

/// Of ours; `monitor_user` follows the entry's user, `monitor_dbname` its database.
const OUR_NO_DEFAULT: &str = "monitor_dbname monitor_user zone";

fn names(text: &'static str) -> BTreeSet<&'static str> {
    text.split_whitespace().collect()
}

fn names_where(chosen: impl Fn(&Key<crate::General>) -> bool) -> BTreeSet<&'static str> {
    GENERAL.iter().filter(|key| chosen(key)).map(|key| key.spec.name).collect()
}

#[test]
fn table_holds_the_keys_of_pgbouncer_and_ours() {
    let wanted: BTreeSet<_> = names(PGBOUNCER).union(&names(OURS)).copied().collect();
    assert_eq!(names_where(|_| true), wanted);
    assert_eq!(GENERAL.len(), wanted.len());
}

#[test]
fn keys_that_need_a_restart_are_those_of_pgbouncer() {
    assert_eq!(names_where(|key| key.spec.change == Change::Restart), names(RESTART));
}

#[test]
fn keys_without_default_are_those_of_pgbouncer() {
    let wanted = names(NO_DEFAULT).union(&names(OUR_NO_DEFAULT)).copied().collect();
    assert_eq!(names_where(|key| key.spec.default.is_none()), wanted);
}

#[test]
fn every_key_of_pgbouncer_is_read_with_its_default() {
    for key in GENERAL {
        let text = format!("[pgbouncer]\n{} = {}\n", key.spec.name, key.spec.default.unwrap_or("0"));
        let settings = good(&text);
        if key.spec.default.is_some() {
            assert!((key.same)(&settings.general, &Settings::default().general), "{text}");
        }
    }
}

#[test]
fn every_default_is_a_value_its_key_takes() {
    fn check<T: Default>(keys: &'static [Key<T>]) {
        for key in keys {
            let Some(default) = key.spec.default else { continue };
            assert!((key.set)(&mut T::default(), default), "{}", key.spec.name);
        }
    }
    check(GENERAL);
    check(DATABASE);
    check(USER);
    check(PEER);
}

#[test]
fn shown_value_is_read_back_as_the_same_value() {
    for key in GENERAL.iter().filter(|key| key.spec.name != "auth_ldap_options") {
        let settings = Settings::default();
        let Some(shown) = (key.show)(&settings.general) else { continue };
        let mut again = crate::General::default();
        assert!((key.set)(&mut again, &shown), "{} = {shown}", key.spec.name);
        assert!((key.same)(&settings.general, &again), "{} = {shown}", key.spec.name);
    }
}

#[test]
fn key_that_is_not_built_is_warned_of_by_name_once() {
    for key in GENERAL {
        let default = key.spec.default.unwrap_or("x");
        let line = format!("{} = {default}\n", key.spec.name);
        let outcome = read_with(format!("[pgbouncer]\n{line}{line}").as_bytes(), &[]);
        let unbuilt = |kind: &WarningKind| matches!(kind, WarningKind::NotBuilt | WarningKind::Meaningless);
        let warned: Vec<_> = outcome.warnings.iter().filter(|warning| unbuilt(&warning.kind)).collect();
        let wanted = matches!(key.spec.status, Status::NotBuilt | Status::Meaningless);
        assert_eq!(warned.len(), usize::from(wanted), "{}", key.spec.name);
        assert!(warned.iter().all(|warning| warning.key == key.spec.name && warning.line == 2));
    }
}

#[test]
fn every_key_of_databases_is_read() {
    let good_values = "dbname=d host=/tmp,@x,::1,10.0.0.1,db.example port=6000 user=u password=p auth_user=a \
        auth_query=q auth_dbname=b client_encoding=c datestyle=d timezone=t application_name=n pool_size=1 \
        min_pool_size=2 reserve_pool_size=3 max_db_connections=4 max_db_client_connections=5 \
        pool_mode=transaction load_balance_hosts=disable connect_query='select 1' server_lifetime=6 \
        query_wait_timeout=7 session_state=off max_pinned=3 target_session_attrs=primary monitor_user=m \
        monitor_dbname=x failover_timeout=8 max_replica_lag_bytes=9 max_replica_lag=10 \
        read_write_split=intent consistency=bounded(250) \
        host_weights=1,2,3,4,0 host_zones=a,a,b,b,c server_keeps_session=0 server_user_suffix=@s \
        client_user_suffix=@c primary_read_weight=4";
    let settings = good(&format!("[pgbouncer]\n[databases]\nd = {good_values}\n"));
    let set = settings.databases["d"].clone();
    let unset = crate::Database::default();
    // In place of host, and in place of a split.
    for key in DATABASE.iter().filter(|key| !["topology", "independent_hosts"].contains(&key.spec.name)) {
        assert!(!(key.same)(&set, &unset), "{}", key.spec.name);
    }
    let equals = "host=a,b target_session_attrs=any user=u independent_hosts=1";
    assert!(good(&format!("[pgbouncer]\n[databases]\nd = {equals}\n")).databases["d"].independent_hosts);
    assert_eq!(DATABASE.len(), 40);
}

#[test]
fn every_key_of_users_and_peers_is_read() {
    let users = "pool_mode=statement pool_size=1 reserve_pool_size=2 max_user_connections=3 \
        max_user_client_connections=4 query_timeout=5 query_wait_timeout=6 idle_transaction_timeout=7 \
        transaction_timeout=8 client_idle_timeout=9 session_state=pin max_pinned=50%";
    let settings =
        good(&format!("[pgbouncer]\n[users]\nu = {users}\n[peers]\n3 = host=h port=1 pool_size=2\n"));
    let (user, peer) = (settings.users["u"].clone(), settings.peers[&3].clone());
    assert!(USER.iter().all(|key| !(key.same)(&user, &crate::User::default())) && USER.len() == 12);
    assert!(PEER.iter().all(|key| !(key.same)(&peer, &crate::Peer::default())) && PEER.len() == 3);
}

#[test]
fn older_name_of_the_reserve_is_read() {
    let settings = good("[pgbouncer]\n[databases]\nd = reserve_pool=7\n");
    assert_eq!(settings.databases["d"].reserve_pool_size, Some(7));
}

#[test]
fn peers_are_warned_of_once_as_a_section() {
    let outcome = read_with(b"[pgbouncer]\n[peers]\n1 = host=a\n2 = host=b\n[peers]\n", &[]);
    assert_eq!(
        lines(&outcome.warnings),
        "pgbouncer.ini:2:1: [peers]: accepted, but not built in Howdah yet: it does nothing"
    );
}

#[test]
fn show_config_is_sorted_and_names_what_changes() {
    let table = Settings::default().show_config();
    assert_eq!(
        table.columns.iter().map(|c| c.name).collect::<Vec<_>>().join(","),
        "key,value,default,changeable"
    );
    assert!(table.rows.is_sorted());
    let row = |key: &str| {
        let row = table.rows.iter().find(|row| row[0].as_deref() == Some(key)).unwrap();
        row[1..].iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|")
    };
    assert_eq!(row("unix_socket_mode"), "511|0777|no");
    assert_eq!(row("auth_file"), "NULL|NULL|yes");
    assert_eq!(row("verbose"), "0|NULL|yes");
    assert_eq!(row("admin_users"), "||yes");
    assert_eq!(row("server_lifetime"), "3600|3600|yes");
    assert_eq!(row("pool_mode"), "session|session|yes");
}
