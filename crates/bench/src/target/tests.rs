//! Claims about `target`, each as small as it can be.

use super::configure::{self, Certificate, Sizes};
use super::launch::Binaries;
use super::*;
use crate::run::Called;
use std::path::Path;

fn sizes() -> Sizes {
    Sizes {
        pool_size: 20,
        clients_max: 1_200,
        haproxy_clients_max: 1_100,
        haproxy_servers_max: None,
        pgpool_children: 30,
    }
}

fn servers(postgres: Option<&str>) -> Servers {
    Servers { postgres: postgres.map(|url| Access::parse(url).expect("a URL")), canned: 7 }
}

fn ini(kind: Kind, postgres: Option<&str>) -> String {
    configure::ini(kind, 9, Path::new("/run"), &servers(postgres), &sizes(), None)
}

const POSTGRES: Option<&str> = Some("postgres://x@127.0.0.1:5/bench");

#[test]
fn howdah_means_one_and_two_workers() {
    let names = |word| Kind::named(word).map(|kinds| kinds.iter().map(Kind::to_string).collect::<Vec<_>>());
    assert_eq!(names("howdah"), Some(vec!["howdah-1".to_owned(), "howdah-2".to_owned()]));
    assert_eq!(names("howdah-4"), Some(vec!["howdah-4".to_owned()]));
    assert_eq!(names("howdah-0"), None);
    assert_eq!(names("pgcat"), None);
}

#[test]
fn poolers_get_the_same_settings_but_for_workers() {
    let bouncer =
        ini(Kind::Pgbouncer, POSTGRES).replace("pgbouncer.", "X.").replace("bench_pgbouncer", "ROLE");
    let howdah = ini(Kind::Howdah { workers: 2, epoll: false }, POSTGRES)
        .replace("howdah-2.", "X.")
        .replace("bench_howdah_2", "ROLE");
    assert_eq!(howdah, format!("{bouncer}workers = 2\n"));
    assert!(bouncer.contains("bench = host=127.0.0.1 port=5 user=ROLE dbname=bench\n"), "{bouncer}");
    assert!(bouncer.contains("\ndefault_pool_size = 20\n") && bouncer.contains("\nunix_socket_dir = \n"));
}

#[test]
fn without_postgres_there_is_one_database() {
    let ini = ini(Kind::Pgbouncer, None);
    assert!(ini.starts_with("[databases]\ncanned = host=127.0.0.1 port=7 "), "{ini}");
}

#[test]
fn a_lent_server_is_logged_in_to_with_the_password() {
    let ini = ini(Kind::Pgbouncer, Some("postgres://x:pw@db:5/howdah_bench"));
    let line = "bench = host=db port=5 user=bench_pgbouncer password=pw dbname=howdah_bench\n";
    assert!(ini.contains(line), "{ini}");
}

#[test]
fn tls_is_offered_where_there_is_a_certificate() {
    let tls = Certificate { certificate: "/c".into(), key: "/k".into() };
    let ini = configure::ini(Kind::Pgbouncer, 9, Path::new("/run"), &servers(POSTGRES), &sizes(), Some(&tls));
    assert!(
        ini.contains("client_tls_sslmode = allow\nclient_tls_cert_file = /c\nclient_tls_key_file = /k\n")
    );
    let pgpool = configure::pgpool(9, 8, Path::new("/run"), &servers(POSTGRES), &sizes(), Some(&tls));
    assert!(pgpool.ends_with("ssl = on\nssl_cert = '/c'\nssl_key = '/k'\n"), "{pgpool}");
}

#[test]
fn pgpool_has_a_child_a_client_and_one_server_connection_each() {
    let text = configure::pgpool(9, 8, Path::new("/run"), &servers(POSTGRES), &sizes(), None);
    for line in ["num_init_children = 30", "max_pool = 1", "backend_port0 = 5", "port = 9", "pcp_port = 8"] {
        assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
    }
}

#[test]
fn haproxy_holds_clients_back_only_when_told() {
    let doors = [(1, "127.0.0.1:7".to_owned()), (2, "db:5".to_owned())];
    let text = configure::haproxy(&doors, &sizes());
    assert!(text.contains("    bind 127.0.0.1:2\n    maxconn 1100\n    server server1 db:5\n"), "{text}");
    let limited = configure::haproxy(&doors, &Sizes { haproxy_servers_max: Some(100), ..sizes() });
    assert!(limited.contains("    server server1 db:5 maxconn 100\n"), "{limited}");
}

#[test]
fn only_the_role_for_scram_is_asked() {
    let expected = "host all bench_howdah_2 127.0.0.1/32 trust\nhost all bench_howdah_2_scram 127.0.0.1/32 scram-sha-256\n";
    assert_eq!(configure::hba(Kind::Howdah { workers: 2, epoll: false }), expected);
}

#[test]
fn a_missing_binary_is_found_before_anything_starts() {
    let nowhere = || "/nowhere/at/all".into();
    let binaries = Binaries {
        howdah: nowhere(),
        pgbouncer: nowhere(),
        haproxy: nowhere(),
        pgpool: nowhere(),
        own: nowhere(),
        called: Called::Alone,
    };
    assert!(binaries.check(Kind::Direct).is_ok() && binaries.check(Kind::Relay).is_ok());
    for kind in [Kind::Pgbouncer, Kind::Haproxy, Kind::Pgpool2, Kind::Howdah { workers: 1, epoll: false }] {
        let error = binaries.check(kind).expect_err("refused");
        assert_eq!(error.to_string().lines().count(), 1);
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn a_given_target_has_a_name_a_place_and_perhaps_a_process() {
    let one = Given::parse("odyssey=postgres://me:p,w@h:1/x,pid=7").expect("a target");
    assert_eq!(
        (one.name, one.access.to_string().as_str(), one.pid),
        ("odyssey", "postgres://me@h:1/x", Some(7))
    );
    assert_eq!(Given::parse("a=postgres://me@h/x").expect("a target").pid, None);
}
