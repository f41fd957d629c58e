//! Files that are right: how their lines are taken.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{good, lines, read_with};
use crate::{Host, Secret, Settings};

/// The value of `server_check_query` after these lines of `[pgbouncer]`.
#[track_caller]
fn check(text: &str, value: &str) {
    assert_eq!(good(&format!("[pgbouncer]\n{text}")).general.server_check_query, value, "{text:?}");
}

#[test]
fn value_is_the_rest_of_the_line_without_blanks_at_its_ends() {
    check("server_check_query = SELECT 1", "SELECT 1");
    check("server_check_query=SELECT 1", "SELECT 1");
    check(" \t server_check_query\t=\tSELECT 1 \t\r\n", "SELECT 1");
    check("server_check_query = a ; b # c", "a ; b # c");
    check("server_check_query = 'quoted'", "'quoted'");
    check("server_check_query = a = b", "a = b");
    check("server_check_query =", "");
    check("server_check_query =   \r\n", "");
    check("server_check_query = è", "è");
    check("'server_check_query' = x", "x");
}

#[test]
fn comments_may_hold_anything() {
    check("; [databases]\n  # pool_mode = x\nserver_check_query = x", "x");
    let outcome = read_with(b"; caf\xe9 \0\n[pgbouncer]\n # \xff\n", &[]);
    assert!(outcome.settings.is_ok());
    let long = [b";".as_slice(), &[b'x'; 1_000_000], b"\n[pgbouncer]"].concat();
    assert!(read_with(&long, &[]).settings.is_ok());
}

#[test]
fn key_may_follow_its_section_on_the_same_line() {
    let settings = good("[pgbouncer] pool_mode = statement\n [databases] a = port=1\n[users];none\n");
    assert_eq!(settings.general.pool_mode, model::PoolMode::Statement);
    assert_eq!(settings.databases["a"].ports.of(0), 1);
}

#[test]
fn byte_order_mark_is_passed_over() {
    assert!(read_with(b"\xef\xbb\xbf[pgbouncer]\n", &[]).settings.is_ok());
}

#[test]
fn sections_come_in_any_order_and_again() {
    let settings = good("[databases]\na =\n[pgbouncer]\n[users]\nu =\n[databases]\nb =\n");
    assert_eq!(settings.databases.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn entries_are_split_as_connection_strings() {
    let settings = good(
        "[pgbouncer]\n[databases]\n'my db' = host = h  port= 6000\tdbname ='a ''b''  c'  user=x'y password==\n",
    );
    let database = &settings.databases["my db"];
    assert_eq!(database.hosts, [Host::Name("h".to_owned())]);
    assert_eq!(database.ports.of(0), 6000);
    assert_eq!(database.dbname.as_deref(), Some("a 'b'  c"));
    assert_eq!(database.user.as_deref(), Some("x'y"));
    assert_eq!(database.password.as_ref().map(Secret::expose), Some("="));
}

#[test]
fn host_lists_hold_every_shape() {
    let settings = good("[pgbouncer]\n[databases]\na = host='/run/pg, @x,::1,10.0.0.1,db.example'\n");
    let wanted = [
        Host::Unix("/run/pg".to_owned()),
        Host::Unix("@x".to_owned()),
        Host::Ip(Ipv6Addr::LOCALHOST.into()),
        Host::Ip(Ipv4Addr::new(10, 0, 0, 1).into()),
        Host::Name("db.example".to_owned()),
    ];
    assert_eq!(settings.databases["a"].hosts, wanted);
}

#[test]
fn star_is_the_entry_for_unknown_names() {
    let settings = good("[pgbouncer]\n[databases]\na = port=1\n* = port=2\n");
    let found = |name| settings.find(name).map(|found| (found.database.ports.of(0), found.is_auto));
    assert_eq!((found("a"), found("other")), (Some((1, false)), Some((2, true))));
    assert!(!settings.databases.contains_key("*"));
    assert!(good("[pgbouncer]\n[databases]\na =\n").find("other").is_none());
}

#[test]
fn howdah_may_be_the_name_of_a_database() {
    assert!(good("[pgbouncer]\n[databases]\nhowdah =\n").find("howdah").is_some());
}

#[test]
fn last_of_equal_keys_holds_and_is_warned_of() {
    let text = b"[pgbouncer]\npool_mode = session\n pool_mode = statement\n\
        [databases]\na = port=1 port=2\na = port=3 port=4\n* =\n* = port=5\n[users]\nu =\nu = pool_size=1\n";
    let outcome = read_with(text, &[]);
    let wanted = "pgbouncer.ini:3:2: pool_mode\npgbouncer.ini:5:12: port\npgbouncer.ini:6:12: port\n\
        pgbouncer.ini:6:1: a\npgbouncer.ini:8:1: *\npgbouncer.ini:11:1: u";
    assert_eq!(lines(&outcome.warnings).replace(": set more than once; the last value holds", ""), wanted);
    let settings = outcome.settings.unwrap();
    assert_eq!(settings.general.pool_mode, model::PoolMode::Statement);
    assert_eq!(settings.databases["a"].ports.of(0), 4);
    assert_eq!(settings.autodb.unwrap().ports.of(0), 5);
    assert_eq!(settings.users["u"].pool_size, Some(1));
}

#[test]
fn include_goes_on_in_the_section_that_holds() {
    let text = b"[pgbouncer]\n%include general.ini\n[databases]\n  %include\tmore.ini  \nc =\n";
    let others = [("general.ini", "log_stats = 0"), ("more.ini", "a =\n[users]\nu =\n[databases]\nb =\n")];
    let outcome = read_with(text, &others);
    assert_eq!(outcome.files, ["pgbouncer.ini", "general.ini", "more.ini"]);
    let settings = outcome.settings.unwrap();
    assert!(!settings.general.log_stats);
    assert_eq!(settings.databases.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn section_that_an_include_begins_holds_after_it() {
    let outcome = read_with(b"[pgbouncer]\n%include d.ini\nb =\n", &[("d.ini", "[databases]\na =")]);
    assert_eq!(outcome.settings.unwrap().databases.len(), 2);
}

#[test]
fn includes_go_ten_deep() {
    let names: Vec<String> = (1..=10).map(|n| format!("{n}.ini")).collect();
    let mut others: Vec<(&str, String)> =
        names.windows(2).map(|pair| (pair[0].as_str(), format!("%include {}", pair[1]))).collect();
    others.push((&names[9], "log_stats = 0".to_owned()));
    let others: Vec<(&str, &str)> = others.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let outcome = read_with(b"[pgbouncer]\n%include 1.ini\n", &others);
    assert!(!outcome.settings.unwrap().general.log_stats);
}

#[test]
fn same_file_may_be_included_twice_in_turn() {
    let outcome = read_with(b"[pgbouncer]\n%include a\n%include a\n", &[("a", "")]);
    assert!(outcome.settings.is_ok());
}

#[test]
fn conffile_is_the_file_read() {
    assert_eq!(good("[pgbouncer]\n").general.conffile.as_deref(), Some("pgbouncer.ini"));
    assert_eq!(good("[pgbouncer]\nconffile = next.ini").general.conffile.as_deref(), Some("next.ini"));
}

#[test]
fn sample_of_a_first_file_is_read() {
    let settings = good(
        "[databases]\n* = host=127.0.0.1\n\n[pgbouncer]\nlisten_addr = 127.0.0.1, ::1\nlisten_port = 6432\n\
         auth_type = scram-sha-256\nauth_file = /etc/pgbouncer/userlist.txt\npool_mode = transaction\n\
         ignore_startup_parameters = extra_float_digits\nserver_idle_timeout = 1.5\n",
    );
    assert_eq!(settings.general.listen_addr, ["127.0.0.1", "::1"]);
    assert_eq!(settings.general.server_idle_timeout, std::time::Duration::from_millis(1500));
    assert_ne!(settings, Settings::default());
}
