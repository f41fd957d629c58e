//! Claims about `target`, each as small as it can be.

use super::*;

fn launch(postgres: Option<u16>) -> Launch {
    Launch {
        servers: Servers { postgres, canned: 7 },
        howdah: "/nowhere/howdah".into(),
        pgbouncer: "/nowhere/pgbouncer".into(),
        own: "/nowhere/bench".into(),
        account: None,
        pool_size: 20,
        clients_max: 1_100,
    }
}

#[test]
fn howdah_means_one_and_two_workers() {
    let names = |word| Kind::named(word).map(|kinds| kinds.iter().map(Kind::to_string).collect::<Vec<_>>());
    assert_eq!(names("howdah"), Some(vec!["howdah-1".to_owned(), "howdah-2".to_owned()]));
    assert_eq!(names("howdah-4"), Some(vec!["howdah-4".to_owned()]));
    assert_eq!(names("howdah-0"), None);
    assert_eq!(names("pgpool"), None);
}

#[test]
fn poolers_get_the_same_settings_but_for_workers() {
    let launch = launch(Some(5));
    let bouncer = launch.ini(Kind::Pgbouncer, 9, "/users").replace("bench_pgbouncer", "ROLE");
    let howdah = launch.ini(Kind::Howdah { workers: 2 }, 9, "/users").replace("bench_howdah_2", "ROLE");
    assert_eq!(howdah, format!("{bouncer}workers = 2\n"));
    assert!(bouncer.contains("bench = host=127.0.0.1 port=5 user=ROLE dbname=bench\n"), "{bouncer}");
    assert!(bouncer.contains("\ndefault_pool_size = 20\n") && bouncer.contains("\nunix_socket_dir = \n"));
}

#[test]
fn without_postgres_there_is_one_database() {
    let ini = launch(None).ini(Kind::Pgbouncer, 9, "/users");
    assert!(ini.starts_with("[databases]\ncanned = host=127.0.0.1 port=7 "), "{ini}");
}

#[test]
fn a_missing_binary_is_found_before_anything_starts() {
    let launch = launch(None);
    assert!(launch.check(&[Kind::Direct, Kind::Relay]).is_ok());
    for kind in [Kind::Pgbouncer, Kind::Howdah { workers: 1 }] {
        let error = launch.check(&[kind]).expect_err("refused");
        assert_eq!(error.to_string().lines().count(), 1);
        assert_eq!(error.exit_code(), 2);
    }
}
