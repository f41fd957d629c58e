//! Claims about `host`, each as small as it can be.

use super::*;

#[test]
fn an_account_is_found_by_its_whole_name() {
    let passwd =
        "root:x:0:0:root:/root:/bin/sh\npostgresql:x:1:2::/:/x\npostgres:x:101:104:P,,,:/v:/bin/sh\n";
    assert_eq!(Account::in_passwd(passwd, "postgres"), Some(Account { uid: 101, gid: 104 }));
    assert_eq!(Account::in_passwd(passwd, "nobody"), None);
}

#[test]
fn limits_of_open_files_are_read() {
    let text = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 unlimited            files\n";
    assert_eq!(open_files(text), Some((1024, u64::MAX)));
    assert_eq!(open_files("Max processes 1 2 processes"), None);
}

#[test]
fn a_taken_port_is_refused_by_number() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(matches!(Ports::from(Some(port)).take(), Err(BenchError::PortInUse(taken)) if taken == port));
}

#[test]
fn last_words_are_one_short_line() {
    assert_eq!(last_words("one\n two \n\n"), "two");
    assert_eq!(last_words(""), "it said nothing");
    assert_eq!(last_words(&"x".repeat(5_000)).len(), 300);
}

#[test]
fn only_directories_of_dead_runs_are_orphans() {
    assert!(is_orphan("howdah-bench-4294967295"));
    assert!(!is_orphan(&format!("howdah-bench-{}", std::process::id())));
    assert!(!is_orphan("howdah-bench-results") && !is_orphan("pg-1"));
}
