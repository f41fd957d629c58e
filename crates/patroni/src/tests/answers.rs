//! One answer at a time.

use super::shown;
use crate::{BYTES_MAX, Fault, MEMBERS_MAX, Report};

#[track_caller]
fn check(body: &str, wanted: &str) {
    match Report::read(body.as_bytes()) {
        Ok(report) => assert_eq!(shown(&report), wanted),
        Err(fault) => assert_eq!(fault.to_string(), wanted, "{body}"),
    }
}

/// Of Patroni 4.1, with three members that stream.
const FOUR: &str = r#"{"members": [
    {"name": "n1", "role": "leader", "state": "running", "api_url": "http://127.0.0.1:8001/patroni",
     "host": "127.0.0.1", "port": 5401, "timeline": 1},
    {"name": "n2", "role": "replica", "state": "streaming", "api_url": "http://127.0.0.1:8002/patroni",
     "host": "127.0.0.1", "port": 5402, "timeline": 1, "receive_lag": 0, "receive_lsn": "0/4000148",
     "replay_lag": 0, "replay_lsn": "0/4000148", "lag": 0, "lsn": "0/4000148"},
    {"name": "n3", "role": "sync_standby", "state": "streaming", "api_url": "http://127.0.0.1:8003/patroni",
     "host": "127.0.0.1", "port": 5403, "timeline": 1, "tags": {"noloadbalance": true, "clonefrom": true},
     "lag": 0}], "scope": "demo"}"#;

/// Of Patroni 2.1, in the middle of a failover: roles and lags are other words, a member has not started.
const TWO: &str = r#"{"members": [
    {"name": "pg-0", "role": "leader", "state": "stopped", "api_url": "https://pg-0:8008/patroni"},
    {"name": "pg-1", "role": "replica", "state": "running", "api_url": "https://pg-1:8008/patroni",
     "host": "pg-1.db.example", "port": 5432, "timeline": 7, "lag": "unknown",
     "tags": {"nofailover": "true", "nosync": 1, "noloadbalance": false}}],
    "pause": true,
    "scheduled_switchover": {"at": "2026-11-21T12:00:00+00:00", "from": "pg-0", "to": "pg-1"}}"#;

#[test]
fn answers_of_several_versions_are_read() {
    check(
        FOUR,
        "n1@127.0.0.1:5401 leader/running; n2@127.0.0.1:5402 replica/streaming; \
         n3@127.0.0.1:5403 sync_standby/streaming [noloadbalance]",
    );
    check(
        TWO,
        "pg-1@pg-1.db.example:5432 replica/running [nofailover,nosync]; paused; \
         switchover at 2026-11-21T12:00:00+00:00 from pg-0 to pg-1",
    );
}

#[test]
fn details_are_read_as_they_are_meant() {
    let one = |rest: &str| format!(r#"{{"members": [{{"host": "h", "port": 1{rest}}}]}}"#);
    check(&one(""), "@h:1 /");
    check(&one(r#", "name": "a\nb""#), "ab@h:1 /");
    check(&one(r#", "tags": {"failover_priority": 0}"#), "@h:1 / [nofailover]");
    check(&one(r#", "tags": {"failover_priority": 3}"#), "@h:1 /");
    check(&one(r#", "tags": []"#), "@h:1 /");
    check(&one(r#", "tags": {"nosync": {"a": [1]}}"#), "@h:1 /");
    check(&one(r#", "role": 7, "state": null"#), "@h:1 /");
    check(r#"{"members": [{"host": "h", "port": "6000"}]}"#, "@h:6000 /");
    check(r#"{"members": [{"host": "fd00::1", "port": 6000}], "pause": false}"#, "@fd00::1:6000 /");
    check(
        r#"{"members": [{"host": "h", "port": 1}], "scheduled_switchover": {"at": "noon"}}"#,
        "@h:1 /; switchover at noon",
    );
    // Two members cannot be at one place.
    check(r#"{"members": [{"host": "h", "port": 1, "name": "a"}, {"host": "h", "port": 1}]}"#, "a@h:1 /");
}

#[test]
fn what_is_no_place_is_passed_over() {
    for place in [
        r#""host": "/var/run/postgresql", "port": 5432"#,
        r#""host": "@abstract", "port": 5432"#,
        r#""host": "", "port": 5432"#,
        r#""host": "a b", "port": 5432"#,
        r#""host": "h", "port": 0"#,
        r#""host": "h", "port": 65536"#,
        r#""host": "h", "port": -1"#,
        r#""host": "h", "port": 1.5"#,
        r#""host": "h", "port": true"#,
        r#""host": ["h"], "port": 5432"#,
        r#""port": 5432"#,
        r#""host": "h""#,
    ] {
        check(&format!(r#"{{"members": [{{{place}}}]}}"#), "no member says where it is");
        check(&format!(r#"{{"members": [{{{place}}}, {{"host": "g", "port": 1}}]}}"#), "@g:1 /");
    }
    let long = "h".repeat(256);
    check(&format!(r#"{{"members": [{{"host": "{long}", "port": 1}}]}}"#), "no member says where it is");
}

#[test]
fn what_is_no_answer_changes_nothing() {
    check("", "not an answer of Patroni's to /cluster (line 1, column 0)");
    check("<html>", "not an answer of Patroni's to /cluster (line 1, column 1)");
    check("[]", "not an answer of Patroni's to /cluster (line 1, column 2)");
    check("{}", "not an answer of Patroni's to /cluster (line 1, column 2)");
    check(r#"{"members": {}}"#, "not an answer of Patroni's to /cluster (line 1, column 12)");
    check(r#"{"members": [1]}"#, "not an answer of Patroni's to /cluster (line 1, column 14)");
    check(r#"{"members": []}"#, "no member says where it is");
    assert!(Report::read(&[0xff, 0xfe]).is_err());
    assert!(Report::read(&vec![b'['; BYTES_MAX]).is_err(), "nesting is bounded");
}

#[test]
fn size_and_count_are_bounded() {
    let of = |count: usize| {
        let all: Vec<String> =
            (0..count).map(|port| format!(r#"{{"host": "h", "port": {}}}"#, port + 1)).collect();
        Report::read(format!(r#"{{"members": [{}]}}"#, all.join(",")).as_bytes())
    };
    assert_eq!(of(MEMBERS_MAX).unwrap().members.len(), MEMBERS_MAX);
    assert_eq!(of(MEMBERS_MAX + 1), Err(Fault::TooMany));
    let padded = format!(r#"{{"members": [{{"host": "h", "port": 1}}]{}}}"#, " ".repeat(BYTES_MAX));
    assert_eq!(Report::read(padded.as_bytes()), Err(Fault::TooLong));
}
