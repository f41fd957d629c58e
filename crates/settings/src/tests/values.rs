//! Single values: what text is taken, how it is shown.

use std::time::Duration;

use model::PoolMode;

use super::good;
use crate::value::{percent_g, whole};
use crate::words::TlsProtocols;
use crate::{Host, Secret, ServerAuth, Settings};

/// Sets a key as SET does and shows it as SHOW CONFIG does; `refused` if it is not taken.
#[track_caller]
fn check(key: &str, text: &str, shown: &str) {
    let settings = Settings::default().with(key, text);
    let value = settings.map(|settings| settings.show(key).unwrap().unwrap_or("NULL".to_owned()));
    assert_eq!(value.unwrap_or("refused".to_owned()), shown, "{key} = {text}");
}

#[test]
fn whole_numbers_are_those_of_strtol() {
    let cases =
        [("0", 0), ("7", 7), ("+7", 7), ("-7", -7), ("0777", 511), ("0x1F", 31), ("0X1f", 31), ("00", 0)];
    for (text, number) in cases {
        assert_eq!(whole(text), Some(number), "{text}");
    }
    for text in ["", "-", "+", "0x", "08", "1.5", "7 ", "1e3", "--1", "+-1", "ten", "99999999999999999999"] {
        assert_eq!(whole(text), None, "{text}");
    }
}

#[test]
fn times_are_shown_as_percent_g_does() {
    let cases = [
        (0.0, "0"),
        (1.5, "1.5"),
        (600.0, "600"),
        (0.1 + 0.2, "0.3"),
        (123456.0, "123456"),
        (1234567.0, "1.23457e+06"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (999999.5, "1e+06"),
    ];
    for (number, text) in cases {
        assert_eq!(percent_g(number), text);
    }
}

#[test]
fn a_topology_is_an_engine_and_its_urls() {
    let read = |text: &str| {
        let ini = format!("[pgbouncer]\n[databases]\nd = topology={text} target_session_attrs=any user=u\n");
        let outcome = crate::read("f.ini", &|_: &str| Ok(ini.clone().into_bytes()));
        let settings = outcome.settings.ok()?;
        settings.databases["d"].topology.as_ref().map(ToString::to_string)
    };
    for (text, shown) in [
        ("patroni:http://a", "patroni:http://a:8008"),
        ("patroni:http://a/,https://b:9/", "patroni:http://a:8008,https://b:9"),
        ("patroni:http://10.0.0.1:80,http://[fd00::1]:81", "patroni:http://10.0.0.1:80,http://[fd00::1]:81"),
    ] {
        assert_eq!(read(text).as_deref(), Some(shown), "{text}");
    }
    let many = format!("patroni:{}", vec!["http://a"; 33].join(","));
    for text in [
        "patroni:",
        "patroni:a:8008",
        "patroni:ftp://a",
        "patroni:http://",
        "patroni:http://a:0",
        "patroni:http://a:+1",
        "patroni:http://a:99999",
        "patroni:http://a/cluster",
        "patroni:http://user@a",
        "patroni:http://a,",
        "patroni:http://fd00::1",
        "patroni:http://[10.0.0.1]",
        "patroni:http://[a]",
        "patroni:http:///run",
        "consul:http://a",
        "http://a",
        &many,
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn a_socket_is_an_address_and_a_port() {
    check("health_listen", "", "");
    for text in ["127.0.0.1", "localhost:1", ":8009", "8009", "1.2.3.4:x", "::1:8009", "[::1]", "*:8009"] {
        let ini = format!("[pgbouncer]\nhealth_listen = {text}\n");
        let outcome = crate::read("f.ini", &|_: &str| Ok(ini.clone().into_bytes()));
        assert!(outcome.settings.is_err(), "{text}");
    }
    assert_eq!(good("[pgbouncer]\nhealth_listen = [::1]:8009\n").general.health_listen, "[::1]:8009");
}

#[test]
fn flags_are_numbers_and_no_words() {
    check("log_connections", "0", "0");
    check("log_connections", "1", "1");
    check("log_connections", "5", "1");
    for text in ["on", "off", "true", "yes", "", "1.0"] {
        check("log_connections", text, "refused");
    }
}

#[test]
fn counts_have_bounds() {
    check("default_pool_size", "2147483647", "2147483647");
    check("default_pool_size", "2147483648", "refused");
    check("default_pool_size", "-1", "refused");
    check("max_packet_size", "4294967295", "4294967295");
    check("max_packet_size", "4294967296", "refused");
    check("peer_id", "0", "0");
    check("scram_iterations", "0", "refused");
}

#[test]
fn times_are_seconds_with_decimals() {
    check("query_timeout", "1.5", "1.5");
    check("query_timeout", "0x10", "refused");
    check("query_timeout", ".5", "0.5");
    check("query_timeout", "1e3", "1000");
    check("query_timeout", "10000000000", "1e+10");
    for text in ["-1", "5s", "inf", "nan", "1e11", "", "1,5", "1e999"] {
        check("query_timeout", text, "refused");
    }
    check("query_wait_notify", "1.5", "refused");
    check("tcp_user_timeout", "1500", "1500");
    let general = Settings::default().with("tcp_user_timeout", "1500").unwrap().general;
    assert_eq!(general.tcp_user_timeout, Duration::from_millis(1500));
}

#[test]
fn words_are_the_same_in_upper_and_lower_case() {
    check("pool_mode", "Transaction", "transaction");
    check("auth_type", "SCRAM-SHA-256", "scram-sha-256");
    check("server_tls_sslmode", "Verify-Full", "verify-full");
    check("pool_mode", "", "refused");
    check("compat", "pgbouncer", "pgbouncer");
    check("syslog_facility", "local8", "refused");
}

#[test]
fn lists_lose_blanks_and_empty_items() {
    check("admin_users", " a ,b,, c ", "a, b, c");
    check("admin_users", "", "");
    check("server_auth_allowed", "scram-sha-256,trust", "scram-sha-256, trust");
    check("server_auth_allowed", "scram-sha-256,", "refused");
    check("server_auth_allowed", "", "refused");
    let general = Settings::default().with("server_auth_allowed", "MD5").unwrap().general;
    assert_eq!(general.server_auth_allowed, [ServerAuth::Md5]);
}

#[test]
fn empty_text_unsets_a_key_without_default() {
    check("auth_user", "pooler", "pooler");
    check("auth_user", "", "NULL");
    check("server_check_query", "", "");
}

#[test]
fn tls_versions_are_words_between_commas_or_colons() {
    let versions = |text| TlsProtocols::parse(text).map(|protocols| (protocols.v1_2, protocols.v1_3));
    assert_eq!(versions("secure"), Some((true, true)));
    assert_eq!(versions("all"), Some((true, true)));
    assert_eq!(versions("tlsv1.0, TLSv1.2"), Some((true, false)));
    assert_eq!(versions("tlsv1.3:tlsv1.1"), Some((false, true)));
    assert_eq!(versions("!tlsv1.2"), Some((false, true)));
    assert_eq!(versions("secure,!tlsv1.3"), Some((true, false)));
    for text in ["tlsv1.0,tlsv1.1", "", "tlsv1.4", "secure,", "secure,!secure"] {
        assert_eq!(versions(text), None, "{text}");
    }
}

#[test]
fn hosts_are_told_apart_by_their_looks() {
    let shape = |word| match Host::parse(word) {
        Some(Host::Unix(_)) => "unix",
        Some(Host::Ip(ip)) if ip.is_ipv6() => "ipv6",
        Some(Host::Ip(_)) => "ipv4",
        Some(Host::Name(_)) => "name",
        None => "none",
    };
    let cases = [
        ("/tmp", "unix"),
        ("@abstract", "unix"),
        ("::1", "ipv6"),
        ("10.0.0.1", "ipv4"),
        ("db", "name"),
        ("db-1.example_x.org", "name"),
        ("10.0.0.256", "name"),
        ("", "none"),
        ("/", "none"),
        ("[::1]", "none"),
        ("1:2", "none"),
        ("user@host", "none"),
        ("a b", "none"),
    ];
    for (word, wanted) in cases {
        assert_eq!(shape(word), wanted, "{word}");
    }
}

#[test]
fn set_passes_over_keys_that_need_a_restart_whatever_the_value() {
    let settings = Settings::default();
    assert_eq!(settings.with("listen_port", "many"), Ok(settings.clone()));
    assert_eq!(settings.with("workers", "8"), Ok(settings));
}

#[test]
fn set_changes_a_copy() {
    let old = good("[pgbouncer]\n[databases]\nd =\n");
    let new = old.with("pool_mode", "statement").unwrap();
    assert_eq!((old.general.pool_mode, new.general.pool_mode), (PoolMode::Session, PoolMode::Statement));
    assert_eq!(old.databases, new.databases);
}

#[test]
fn set_tells_what_is_allowed() {
    let problem = |key, value| Settings::default().with(key, value).unwrap_err().to_string();
    assert_eq!(
        problem("pool_mod", "x"),
        "SET: pool_mod: unknown key in [pgbouncer]; did you mean pool_mode?"
    );
    assert_eq!(
        problem("pool_mode", "sesion"),
        "SET: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough; did you mean session?"
    );
}

#[test]
fn secrets_are_never_shown() {
    let settings = good("[pgbouncer]\nauth_ldap_options = hush\n[databases]\nd = password=hush\n");
    assert_eq!(settings.databases["d"].password.as_ref().map(Secret::expose), Some("hush"));
    assert_eq!(settings.show("auth_ldap_options"), Some(Some("***".to_owned())));
    assert!(!format!("{settings:?}{:?}", settings.show_config()).contains("hush"));
}

#[test]
fn shares_are_numbers_or_percents() {
    for text in ["0", "7", "1%", "100%"] {
        check("max_pinned", text, text);
    }
    check("max_pinned", "50 %", "50%");
    for text in ["", "-1", "half", "0%", "101%", "1.5%", "%", "50%%", "99999999999"] {
        check("max_pinned", text, "refused");
    }
}

#[test]
fn functions_are_named_as_sql_takes_them() {
    check("state_functions", "", "");
    check("state_functions", "set_tenant,  audit_as,_x$1, größe", "set_tenant, audit_as, _x$1, größe");
    for text in ["set tenant", "app.set_tenant", "f()", "1f", "\"f\"", "a, b c"] {
        check("state_functions", text, "refused");
    }
}

#[test]
fn session_state_is_one_of_four_words() {
    for text in ["carry", "pin", "refuse", "off"] {
        check("session_state", text, text);
    }
    check("session_state", "PIN", "pin");
    for text in ["", "on", "0", "pinned"] {
        check("session_state", text, "refused");
    }
}
