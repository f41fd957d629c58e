//! What a reload changes and what it keeps.

use super::{good, lines, read_with};
use crate::{Changes, Reloaded, WarningKind, reload};

const OLD: &str = "[pgbouncer]\nlisten_port = 7000\npool_mode = session\nauth_file = users.txt\n\
    [databases]\na = host=h1 pool_size=5\nb = host=h2\n* = host=h3\n[users]\nu = pool_size=1\n";

fn reloaded(new: &str) -> Reloaded {
    reload(&good(OLD), good(new))
}

#[test]
fn same_text_changes_nothing() {
    let reloaded = reloaded(OLD);
    assert!(reloaded.changes.is_empty());
    assert_eq!(reloaded.changes, Changes::default());
}

#[test]
fn key_that_needs_a_restart_is_kept_and_told() {
    let reloaded = reloaded(&OLD.replace("7000", "7001"));
    assert_eq!(reloaded.settings.general.listen_port, 7000);
    assert_eq!(reloaded.changes.kept, ["listen_port"]);
    assert!(reloaded.changes.is_empty());
}

#[test]
fn key_taken_out_goes_back_to_its_default() {
    let reloaded = reloaded(&OLD.replace("auth_file = users.txt\n", ""));
    assert_eq!(reloaded.settings.general.auth_file, None);
    assert_eq!(reloaded.changes.keys, ["auth_file"]);
}

#[test]
fn key_without_default_survives_under_compat_pgbouncer() {
    let reloaded = reloaded(&OLD.replace("auth_file = users.txt", "compat = pgbouncer"));
    assert_eq!(reloaded.settings.general.auth_file.as_deref(), Some("users.txt"));
    assert_eq!(reloaded.changes.keys, ["compat"]);
}

#[test]
fn databases_are_added_and_removed() {
    let reloaded = reloaded(&OLD.replace("b = host=h2", "c = host=h2").replace("* = host=h3\n", ""));
    assert_eq!(reloaded.changes.databases_added, ["c"]);
    assert_eq!(reloaded.changes.databases_removed, ["*", "b"]);
    assert!(reloaded.changes.databases_dirty.is_empty());
}

#[test]
fn only_what_servers_were_made_with_makes_a_database_dirty() {
    for key in ["dbname", "host", "port", "user", "connect_query", "auth_dbname", "auth_query"] {
        let changes = reloaded(&OLD.replace("b = host=h2", &format!("b = host=h2 {key}=9"))).changes;
        assert_eq!(changes.databases_dirty, ["b"], "{key}");
        assert_eq!(changes.databases_changed, ["b"], "{key}");
    }
    let changes = reloaded(&OLD.replace("h3", "h3 load_balance_hosts=disable")).changes;
    assert_eq!(changes.databases_dirty, ["*"]);
    for key in ["pool_size", "min_pool_size", "password", "timezone", "server_lifetime"] {
        let changes = reloaded(&OLD.replace("b = host=h2", &format!("b = host=h2 {key}=9"))).changes;
        assert!(changes.databases_dirty.is_empty(), "{key}");
        assert_eq!(changes.databases_changed, ["b"], "{key}");
    }
}

#[test]
fn another_list_of_hosts_that_are_monitored_makes_no_database_dirty() {
    let of = |hosts: &str| format!("[pgbouncer]\n[databases]\nd = host={hosts} user=u\n");
    let monitored = |hosts: &str| of(&format!("{hosts} target_session_attrs=primary"));
    let dirty = |old: &str, new: &str| reload(&good(old), good(new)).changes.databases_dirty;
    assert!(dirty(&monitored("a,b"), &monitored("a,c port=1,2")).is_empty());
    assert_eq!(dirty(&of("a,b"), &of("a,c")), ["d"]);
    assert_eq!(dirty(&of("a,b"), &monitored("a,b")), ["d"]);
    assert_eq!(dirty(&monitored("a,b"), &monitored("a,b dbname=x")), ["d"]);
}

#[test]
fn tls_to_servers_makes_every_database_dirty() {
    let changes = reloaded(&OLD.replace("pool_mode", "server_tls_sslmode = require\npool_mode")).changes;
    assert!(changes.server_tls && !changes.client_tls);
    assert_eq!(changes.databases_dirty, ["*", "a", "b"]);
}

#[test]
fn users_and_peers_are_compared() {
    let changes =
        reloaded(&OLD.replace("u = pool_size=1", "u = pool_size=2\nv =\n[peers]\n1 = host=h")).changes;
    assert_eq!(changes.users, ["u", "v"]);
    assert_eq!(changes.peers, [1]);
}

#[test]
fn second_section_sets_defaults_again_as_in_pgbouncer() {
    let text =
        b"[pgbouncer]\npool_mode = statement\nauth_file = x\n[databases]\n[pgbouncer]\nlog_stats = 0\n";
    let outcome = read_with(text, &[]);
    assert_eq!(outcome.warnings.len(), 1, "{}", lines(&outcome.warnings));
    assert_eq!((outcome.warnings[0].line, outcome.warnings[0].kind), (5, WarningKind::SectionResets));
    let general = outcome.settings.unwrap().general;
    assert_eq!(general.pool_mode, model::PoolMode::Session);
    assert_eq!(general.auth_file.as_deref(), Some("x"));
    assert!(!general.log_stats);
}
