//! No file at all: settings from a URL.

use super::lines;
use crate::{AuthType, Host, Secret, Settings, SslMode};

/// The one database as `hosts port dbname user password`, or the problems.
#[track_caller]
fn check(url: &str, wanted: &str) {
    let seen = match Settings::from_url(url) {
        Err(problems) => lines(&problems),
        Ok(settings) => {
            let database = settings.databases.into_values().next().or(settings.autodb).unwrap();
            let hosts: Vec<_> = database.hosts.iter().map(Host::to_string).collect();
            format!(
                "{} {} {} {} {}",
                hosts.join(","),
                database.ports.of(0),
                database.dbname.unwrap(),
                database.user.unwrap(),
                database.password.as_ref().map_or("-", Secret::expose),
            )
        }
    };
    assert_eq!(seen, wanted, "{url}");
}

#[test]
fn parts_of_the_url_become_one_database() {
    check("postgres://u@h/d", "h 5432 d u -");
    check("postgresql://u:p@h:6000/d", "h 6000 d u p");
    check("postgres://u@h", "h 5432 u u -");
    check("postgres://u@/d", "127.0.0.1 5432 d u -");
    check("postgres://u@[::1]:6000/d", "::1 6000 d u -");
    check("postgres://u@%2Frun%2Fpg/d", "/run/pg 5432 d u -");
    check("postgres://u@a:1,b:1/d", "a,b 1 d u -");
    check("postgres://u%40x:p%3Aq@h/d%20e", "h 5432 d e u@x p:q");
    check("postgres://u:p@ss@h/d", "h 5432 d u p@ss");
    check("postgres:///d?user=u&host=h&port=7&password=p", "h 7 d u p");
    check("postgres://u@h/pgbouncer", "h 5432 pgbouncer u -");
}

#[test]
fn only_this_machine_may_connect_and_only_in_transaction_mode() {
    let settings = Settings::from_url("postgres://u@h/d?sslmode=require&connect_timeout=3").unwrap();
    let general = &settings.general;
    assert_eq!(general.listen_addr, ["127.0.0.1"]);
    assert_eq!((general.listen_port, general.unix_socket_dir.as_str()), (6432, ""));
    assert_eq!(general.auth_type, AuthType::Any);
    assert_eq!(general.pool_mode, model::PoolMode::Transaction);
    assert_eq!(general.server_tls_sslmode, SslMode::Require);
    assert_eq!(general.server_connect_timeout.as_secs(), 3);
    assert!(general.admin_users.is_empty());
    assert!(settings.databases["d"].user.is_some() && settings.autodb.is_none());
}

#[test]
fn problems_of_a_url_have_a_column_and_no_values() {
    let shape = "allowed: postgres://user[:password]@host[:port]/database";
    check("http://u@h/d", &format!("URL:1:1: not a PostgreSQL URL; {shape}"));
    check("postgres://h/d", "URL:1:1: user: no value; allowed: a value that is not empty");
    check(
        "postgres://u@h:x/d",
        "URL:1:16: port: value not allowed; allowed: a whole number from 1 to 65535, or one for each host",
    );
    check(
        "postgres://u@a:1,b:2/d",
        "URL:1:14: port: the ports of the hosts differ; allowed: one port for all hosts",
    );
    let escape = "bad % escape; allowed: % and two hexadecimal digits of UTF-8 text";
    check("postgres://u:p%4@h/d", &format!("URL:1:14: password: {escape}"));
    check("postgres://u@h/%ff", &format!("URL:1:16: dbname: {escape}"));
    check("postgres://u@h/%00", &format!("URL:1:16: dbname: {escape}"));
    check("postgres://u@h/d?port", "URL:1:18: no = after the key; allowed: key = value");
    check(
        "postgres://u@h/d?sslmod=require",
        "URL:1:25: sslmod: unknown parameter; allowed: sslmode, sslrootcert, sslcert, sslkey, connect_timeout, \
         host, port, user, password, dbname, application_name, client_encoding; did you mean sslmode?",
    );
    check(
        "postgres://u@h/d?sslmode=requir",
        "URL:1:26: sslmode: value not allowed; allowed: one of disable, allow, prefer, require, verify-ca, \
         verify-full; did you mean require?",
    );
}

#[test]
fn password_that_nobody_escaped_is_not_told() {
    for url in ["postgres://u:hush/hush@h/d", "postgres://u:x?hush=hush@h/d", "postgres://u:hush%@h/d"] {
        let problems = Settings::from_url(url).unwrap_err();
        assert!(!lines(&problems).contains("hush"), "{url}: {}", lines(&problems));
        assert!(!format!("{problems:?}").contains("hush"), "{url}");
    }
}
