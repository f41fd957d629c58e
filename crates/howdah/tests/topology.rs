//! Lists of hosts that an engine tells: what is made of good answers, and nothing of bad ones.
#![allow(clippy::disallowed_methods)] // a client that waits is a thread

mod stage;

use std::path::PathBuf;
use std::time::Duration;

use stage::bare;
use testkit::{
    Certificates, Habit, Howdah, HowdahOptions, HttpServer, Login, Postgres, PostgresOptions, Raw, TempDir,
    Version, cell, eventually, eventually_shown,
};

const LIMIT: Duration = Duration::from_secs(30);

fn pooler(engines: &[&HttpServer]) -> HowdahOptions {
    let urls: Vec<String> =
        engines.iter().map(|engine| format!("http://127.0.0.1:{}", engine.port())).collect();
    let topology = format!("topology=patroni:{}", urls.join(","));
    bare()
        .database("db", &format!("{topology} dbname=postgres target_session_attrs=read-write"))
        .database("ro", &format!("{topology} dbname=postgres target_session_attrs=prefer-standby"))
        .user("postgres", "")
        .setting("monitor_user", "postgres")
        .setting("topology_interval", "0.1")
        .setting("topology_timeout", "0.5")
        .setting("failover_timeout", "30")
}

fn member(port: u16, rest: &str) -> String {
    format!(r#"{{"name": "n{port}", "role": "replica", "host": "127.0.0.1", "port": {port}{rest}}}"#)
}

fn members(list: &[String]) -> Habit {
    Habit::Says(200, format!(r#"{{"members": [{}]}}"#, list.join(",")))
}

fn primary() -> Postgres {
    PostgresOptions::new(Version::wanted()).setting("wal_keep_size", "128MB").start()
}

#[track_caller]
fn wait_for_rows(howdah: &Howdah, wanted: usize) {
    eventually_shown(howdah, "SHOW NODES", |rows| {
        // Both entries have one cluster.
        rows.len() == wanted && rows.iter().all(|row| cell(row, "state") == Some("up"))
    });
}

#[track_caller]
fn wait_for_topology(howdah: &Howdah, text: &str) {
    eventually_shown(howdah, "SHOW NODES", |rows| {
        rows.iter().all(|row| cell(row, "topology").is_some_and(|words| words.contains(text)))
    });
}

/// Waits until the engine was asked so many times more.
fn wait_for_turns(engine: &HttpServer, turns: usize) {
    let wanted = engine.asked() + turns;
    eventually(LIMIT, || engine.asked() >= wanted);
}

#[test]
fn clients_wait_until_the_members_are_told() {
    let server = primary();
    let engine = HttpServer::start(Habit::Says(503, "no quorum".to_owned()));
    let howdah = pooler(&[&engine]).start();
    std::thread::scope(|scope| {
        // The very first client is told of a server's settings, which nobody knows yet.
        let client = scope.spawn(|| howdah.login(&Login::new("postgres", "db")).value("show port"));
        wait_for_topology(&howdah, "HTTP status 503");
        howdah.wait_for_log("the members cannot be fetched");
        engine.set(members(&[member(server.port(), r#", "state": "running""#)]));
        assert_eq!(client.join().expect("no panic"), server.port().to_string());
    });
    wait_for_rows(&howdah, 1);
    let shown = |column: &str| howdah.admin_value("SHOW NODES", &[], column);
    assert_eq!(shown("member"), format!("n{} replica running", server.port()));
    assert_eq!((shown("role").as_str(), shown("databases").as_str()), ("primary", "db,ro"));
    assert_eq!(howdah.admin_value("SHOW DATABASES", &[("name", "db")], "host"), "127.0.0.1");
}

#[test]
fn whatever_is_no_answer_changes_nothing_and_disturbs_nobody() {
    let server = primary();
    let good = members(&[member(server.port(), "")]);
    let engine = HttpServer::start(good.clone());
    let plain = server.connection("postgres");
    let howdah = pooler(&[&engine]).database("plain", &plain).start();
    wait_for_rows(&howdah, 1);
    let mut client = howdah.login(&Login::new("postgres", "db"));
    let mut bystander = howdah.login(&Login::new("postgres", "plain"));
    let pid = client.value("select pg_backend_pid()");
    let deep = "[".repeat(200_000);
    let long = format!(r#"{{"members": [{}]}}"#, " ".repeat(300_000));
    for (habit, words) in [
        (Habit::Silent, "no answer in time"),
        (Habit::Endless, "too long"),
        (Habit::Raw(b"SSH-2.0-x\r\n".to_vec()), "no HTTP"),
        (Habit::Raw(Vec::new()), "no HTTP"),
        (Habit::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec()), "broken off"),
        (Habit::Raw([&b"HTTP/1.1 200 OK\r\nx: "[..], &[b'y'; 100_000]].concat()), "no HTTP"),
        (Habit::Says(302, String::new()), "HTTP status 302"),
        (Habit::Says(200, "<html>".to_owned()), "not an answer of Patroni"),
        (Habit::Says(200, deep), "not an answer of Patroni"),
        (Habit::Says(200, long), "too long"),
        (Habit::Says(200, r#"{"members": []}"#.to_owned()), "no member says where it is"),
        (members(&[r#"{"host": "/tmp", "port": 5432}"#.to_owned()]), "no member says where it is"),
    ] {
        engine.set(habit);
        wait_for_topology(&howdah, words);
        assert_eq!(client.value("select pg_backend_pid()"), pid, "{words}");
        bystander.sql("select 1");
    }
    engine.set(good);
    eventually_shown(&howdah, "SHOW NODES", |rows| rows.len() == 1 && cell(&rows[0], "topology") == Some(""));
    assert_eq!(client.value("select pg_backend_pid()"), pid);
}

#[test]
fn members_come_and_go_and_servers_on_those_that_stay_are_kept() {
    let first = primary();
    let second = first.standby();
    let engine = HttpServer::start(members(&[member(first.port(), "")]));
    let howdah = pooler(&[&engine]).start();
    let mut writer = howdah.login(&Login::new("postgres", "db"));
    let pid = writer.value("select pg_backend_pid()");
    let reader = || howdah.login(&Login::new("postgres", "ro"));
    assert_eq!(reader().value("show port"), first.port().to_string());
    engine.set(members(&[member(first.port(), ""), member(second.port(), "")]));
    wait_for_rows(&howdah, 2);
    eventually(LIMIT, || reader().value("show port") == second.port().to_string());
    assert_eq!(writer.value("select pg_backend_pid()"), pid, "its server stays");
    // A member that is absent once is not gone.
    let mut busy = reader();
    busy.sql("begin");
    engine.set(members(&[member(first.port(), "")]));
    wait_for_turns(&engine, 1);
    assert_eq!(busy.value("show port"), second.port().to_string());
    wait_for_rows(&howdah, 1);
    // A transaction on one that is gone goes on to its end.
    assert_eq!(busy.value("show port"), second.port().to_string());
    busy.sql("commit");
    assert_eq!(busy.value("show port"), first.port().to_string());
    assert_eq!(writer.value("select pg_backend_pid()"), pid, "its server stays");
}

#[test]
fn any_url_will_do_and_what_is_announced_is_shown() {
    let server = primary();
    let silent = HttpServer::start(Habit::Silent);
    let body = format!(
        r#"{{"members": [{}], "pause": true,
            "scheduled_switchover": {{"at": "2030-01-01T00:00:00+00:00", "from": "a", "to": "b"}}}}"#,
        member(server.port(), r#", "tags": {"nofailover": true}"#)
    );
    let engine = HttpServer::start(Habit::Says(200, body));
    let howdah = pooler(&[&silent, &engine]).start();
    wait_for_rows(&howdah, 1);
    wait_for_topology(&howdah, "paused; switchover at 2030-01-01T00:00:00+00:00 from a to b");
    assert_eq!(howdah.admin_value("SHOW NODES", &[], "tags"), "nofailover");
    // The one that answered is asked first from now on.
    let before = silent.asked();
    wait_for_turns(&engine, 3);
    assert_eq!(silent.asked(), before);
    // What a role is called there is no role: it says replica, and writes go there.
    let mut client = howdah.login(&Login::new("postgres", "db"));
    assert_eq!(client.value("select pg_is_in_recovery()"), "f");
}

#[test]
fn an_engine_with_a_certificate_is_checked_by_authority_and_name() {
    let server = primary();
    let home = TempDir::new();
    let certificates = Certificates::write(home.path());
    let good = members(&[member(server.port(), "")]);
    let engine = |names: &[&str]| HttpServer::start_tls(good.clone(), &certificates.server(names[0], names));
    let (engine, other) = (engine(&["localhost"]), engine(&["other.test"]));
    let pooler = |engine: &HttpServer, authority: &str| {
        let url = format!("https://localhost:{}", engine.port());
        let entry = format!("topology=patroni:{url} dbname=postgres target_session_attrs=any");
        let base = bare().database("db", &entry).user("postgres", "").setting("monitor_user", "postgres");
        base.setting("topology_interval", "0.1").setting("topology_tls_ca_file", authority).start()
    };
    let authority = certificates.authority().to_string_lossy().into_owned();
    let howdah = pooler(&engine, &authority);
    wait_for_rows(&howdah, 1);
    howdah.login(&Login::new("postgres", "db")).sql("select 1");
    // Not in the certificate; and signed by nobody whom the system knows.
    for (engine, authority, words) in [
        (&other, authority.as_str(), "not valid for name"),
        (&engine, "", "UnknownIssuer"),
        (&engine, "/nowhere", "topology_tls: \"/nowhere\""),
    ] {
        let howdah = pooler(engine, authority);
        eventually_shown(&howdah, "SHOW NODES", |rows| {
            rows.len() == 1
                && cell(&rows[0], "host") == Some("")
                && cell(&rows[0], "topology").is_some_and(|text| text.contains(words))
        });
    }
}

/// As Patroni with `verify_client: required`: it answers nobody without a certificate of its authority's.
#[test]
fn an_engine_that_wants_a_certificate_is_shown_ours() {
    let server = primary();
    let (home, elsewhere) = (TempDir::new(), TempDir::new());
    let certificates = Certificates::write(home.path());
    let own = certificates.client("howdah", "howdah");
    let strange = Certificates::write(elsewhere.path()).client("stranger", "howdah");
    let engine = HttpServer::start_tls_for_known(
        members(&[member(server.port(), "")]),
        &certificates.server("engine", &["localhost"]),
        &certificates.authority(),
    );
    let entry = format!(
        "topology=patroni:https://localhost:{} dbname=postgres target_session_attrs=any",
        engine.port()
    );
    let howdah = bare()
        .database("db", &entry)
        .user("postgres", "")
        .setting("monitor_user", "postgres")
        .setting("topology_interval", "0.1")
        .setting("topology_tls_ca_file", &certificates.authority().to_string_lossy())
        .start();
    let plain = howdah.ini_text();
    let with = |(certificate, key): &(PathBuf, PathBuf)| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("{plain}topology_tls_cert_file = {certificate}\ntopology_tls_key_file = {key}\n")
    };
    for (ini, words) in [(plain.clone(), "CertificateRequired"), (with(&strange), "not told")] {
        howdah.reload_ini(&ini);
        wait_for_topology(&howdah, words);
        assert_eq!(howdah.admin_value("SHOW NODES", &[], "host"), "");
    }
    howdah.reload_ini(&with(&own));
    wait_for_rows(&howdah, 1);
    howdah.login(&Login::new("postgres", "db")).sql("select 1");
}

#[test]
fn reload_takes_another_list_of_urls_without_losing_the_members() {
    let server = primary();
    let engine = HttpServer::start(members(&[member(server.port(), "")]));
    let dead = HttpServer::start(Habit::Silent);
    let howdah = pooler(&[&engine]).start();
    let mut client: Raw = howdah.login(&Login::new("postgres", "db"));
    let pid = client.value("select pg_backend_pid()");
    let other = howdah.ini_text().replace(
        &format!("http://127.0.0.1:{}", engine.port()),
        &format!("http://127.0.0.1:{}", dead.port()),
    );
    howdah.reload_ini(&other);
    assert_eq!(client.value("select pg_backend_pid()"), pid);
    wait_for_topology(&howdah, "no answer in time");
    assert_eq!(client.value("select pg_backend_pid()"), pid);
}
