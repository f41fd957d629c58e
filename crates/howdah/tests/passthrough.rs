//! `pool_mode = passthrough`: a server for each client, which lets it in itself.
#![allow(clippy::disallowed_methods)] // tests run programs

mod stage;

use std::process::{Command, Stdio};

use stage::{LIMIT, PASSWORD, bare, check_fatal, next_error, refused, wait_for_pool};
use testkit::message::{self, parse, query, sync};
use testkit::{
    Certificates, FakeServer, Howdah, HowdahOptions, Login, Postgres, PostgresOptions, Raw, StopMode,
    TempDir, Tls, Version, cell, eventually, eventually_shown, reply,
};
use testkit::{Signal, os};

/// Who may come to the server: us without a password, everybody else by it.
const HBA: &str = "local all all trust\n\
    host all postgres 127.0.0.1/32 trust\n\
    host replication postgres 127.0.0.1/32 trust\n\
    host all clear 127.0.0.1/32 password\n\
    host all hashed 127.0.0.1/32 md5\n\
    host all locked 127.0.0.1/32 reject\n\
    host all all 127.0.0.1/32 scram-sha-256\n";

/// Nobody of these is in a file of the pooler's.
fn server() -> Postgres {
    with_roles(PostgresOptions::new(Version::V15).hba(HBA).start())
}

fn with_roles(server: Postgres) -> Postgres {
    for name in ["ann", "bob", "clear", "locked", "ann@host"] {
        server.create_role(name, PASSWORD);
    }
    server.sql(&format!("set password_encryption = md5; create role hashed login password '{PASSWORD}'"));
    server
}

fn pooler(server: &Postgres) -> HowdahOptions {
    bare()
        .database("db", &format!("{} pool_mode=passthrough", server.connection("postgres")))
        .setting("auth_type", "scram-sha-256")
}

fn ann() -> Login {
    Login::new("ann", "db").password(PASSWORD)
}

/// How many sessions of such a user the server has.
fn sessions(server: &Postgres, user: &str) -> String {
    let sql = format!("select count(*) from pg_stat_activity where usename = '{user}'");
    server.session("postgres").value(&sql)
}

#[track_caller]
fn wait_for_sessions(server: &Postgres, user: &str, wanted: &str) {
    eventually(LIMIT, || sessions(server, user) == wanted);
}

#[test]
fn the_server_asks_and_judges() {
    let server = server();
    let howdah = pooler(&server).start();
    for user in ["ann", "clear", "hashed", "ann@host"] {
        let login = Login::new(user, "db").password(PASSWORD);
        let mut raw = howdah.login(&login);
        assert_eq!(raw.value("select session_user"), user);
        let wrong = refused(&howdah, &Login::new(user, "db").password("wrong"));
        let words = format!("password authentication failed for user \"{user}\"");
        check_fatal(&wrong, "28P01", &words);
    }
    let nobody = refused(&howdah, &Login::new("nobody", "db").password(PASSWORD));
    check_fatal(&nobody, "28P01", "password authentication failed for user \"nobody\"");
    let locked = refused(&howdah, &Login::new("locked", "db").password(PASSWORD));
    assert_eq!(locked.sqlstate, "28000");
    assert!(locked.text.contains("pg_hba.conf"), "{locked:?}");
    // Without any question.
    assert_eq!(howdah.session("postgres", "db").value("select session_user"), "postgres");
    // A database that only the server knows to be none, and one that is none here.
    assert_eq!(refused(&howdah, &Login::new("ann", "other").password(PASSWORD)).sqlstate, "28P01");
    let log = howdah.log();
    assert!(!log.contains(PASSWORD) && !log.contains("SCRAM-SHA-256$"), "{log}");
}

#[test]
fn names_that_were_only_said_are_not_kept() {
    let server = server();
    let howdah = pooler(&server).start();
    for number in 0..50 {
        let _ = refused(&howdah, &Login::new(&format!("stranger {number}"), "db").password("wrong"));
    }
    let mut raw = howdah.login(&ann());
    assert_eq!(raw.value("select 1"), "1");
    eventually_shown(&howdah, "SHOW POOLS", |rows| {
        let users: Vec<_> = rows.iter().filter(|row| cell(row, "database") == Some("db")).collect();
        users.len() == 1 && cell(users[0], "user") == Some("ann")
    });
}

#[test]
fn a_session_has_one_server_for_life_and_nobody_after_it() {
    let server = server();
    let howdah = pooler(&server).start();
    let login = ann()
        .parameter("application_name", "whole session")
        .parameter("options", "-c work_mem=12345 -c search_path=a,\\ c")
        .parameter("DateStyle", "German");
    let mut raw = howdah.login(&login);
    assert_eq!(raw.value("show work_mem"), "12345kB");
    assert_eq!(raw.value("show datestyle"), "German, DMY");
    assert_eq!(raw.value("show application_name"), "whole session");
    let pid = raw.value("select pg_backend_pid()");
    raw.sql("set statement_timeout = 4321");
    raw.sql("create temporary table mine (n int)");
    raw.sql("prepare p as select 42");
    assert_eq!(raw.ask(message::all(&[parse("named", "select 7", &[]), sync()])), "1 ZI");
    let mut other = howdah.login(&ann());
    assert_ne!(other.value("select pg_backend_pid()"), pid);
    assert_eq!(other.value("show statement_timeout"), "0");
    for _ in 0..3 {
        assert_eq!(raw.value("select pg_backend_pid()"), pid);
    }
    assert_eq!(raw.value("show statement_timeout"), "4321ms");
    assert_eq!(raw.value("execute p"), "42");
    assert_eq!(
        raw.ask(message::all(&[message::bind("", "named", &[]), message::execute("", 0), sync()])),
        "2 D C(SELECT 1) ZI"
    );
    assert_eq!(raw.value("select count(*) from mine"), "0");
    // Other ways to leave, in the middle of things among them.
    raw.sql("begin");
    drop(raw);
    wait_for_sessions(&server, "ann", "1");
    other.close();
    wait_for_sessions(&server, "ann", "0");
    let mut last = howdah.login(&ann());
    assert_ne!(last.value("select pg_backend_pid()"), pid);
    last.send(query("select pg_sleep(100)"));
    let running =
        "select count(*) from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'";
    eventually(LIMIT, || server.session("postgres").value(running) == "1");
    last.reset();
    wait_for_sessions(&server, "ann", "0");
}

#[test]
fn our_own_rules_come_first() {
    let server = server();
    let rules = "host all bob 127.0.0.1/32 reject\n\
        hostssl all clear 127.0.0.1/32 scram-sha-256\n\
        host db ann 127.0.0.1/32 md5\n\
        host all all 127.0.0.2/32 trust\n";
    let howdah = pooler(&server)
        .setting("auth_type", "hba")
        .hba(&format!("host pgbouncer all all trust\n{rules}"))
        .start();
    assert_eq!(howdah.login(&ann()).value("select 1"), "1");
    wait_for_sessions(&server, "ann", "0");
    let before = server.log();
    let of = |user: &str| refused(&howdah, &Login::new(user, "db").password(PASSWORD));
    check_fatal(&of("bob"), "28000", "login rejected");
    check_fatal(&of("clear"), "28000", "no authentication method is found");
    check_fatal(&of("postgres"), "28000", "no authentication method is found");
    assert_eq!(server.log(), before, "a server was asked");
}

#[test]
fn of_a_client_that_does_not_answer_nothing_is_left() {
    let server = server();
    let howdah = pooler(&server).setting("client_login_timeout", "1").start();
    let mut raw = Raw::connect(howdah.port());
    raw.send(message::startup((3, 0), &[("user", "ann"), ("database", "db")]));
    assert_eq!(raw.recv().letter(), "R(10)");
    let asked = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
    assert_eq!(next_error(&mut raw).sqlstate, "08006");
    eventually(LIMIT, || server.session("postgres").value(asked) == "1");
    // Leaves when it is asked, as psql does to ask for a password.
    let mut raw = Raw::connect(howdah.port());
    raw.send(message::startup((3, 0), &[("user", "ann"), ("database", "db")]));
    assert_eq!(raw.recv().letter(), "R(10)");
    raw.close();
    wait_for_pool(&howdah, "pgbouncer", &[("cl_active", "1")]);
    eventually(LIMIT, || !howdah.admin("SHOW POOLS").iter().any(|row| cell(row, "database") == Some("db")));
}

#[test]
fn what_is_no_answer_ends_the_login_and_nothing_else() {
    let server = server();
    let howdah = pooler(&server).start();
    let mut well = howdah.login(&ann());
    let huge = [b"p".as_slice(), &70_000_u32.to_be_bytes(), &[b'x'; 100]].concat();
    for bytes in [query("select 1"), huge, vec![b'p', 0, 0, 0, 3], vec![0; 64], message::terminate()] {
        let mut raw = Raw::connect(howdah.port());
        raw.send(message::startup((3, 0), &[("user", "ann"), ("database", "db")]));
        assert_eq!(raw.recv().letter(), "R(10)");
        raw.send(&bytes);
        raw.expect_closed();
        assert_eq!(well.value("select 1"), "1");
    }
    // Nonsense in the right form is the server's to judge.
    let mut raw = Raw::connect(howdah.port());
    raw.send(message::startup((3, 0), &[("user", "ann"), ("database", "db")]));
    assert_eq!(raw.recv().letter(), "R(10)");
    raw.send(message::sasl_initial("SCRAM-SHA-256", b"nonsense"));
    assert_eq!(next_error(&mut raw).sqlstate, "08P01");
    wait_for_sessions(&server, "ann", "1");
}

#[test]
fn servers_that_misbehave_end_the_login_and_nothing_else() {
    let endless = FakeServer::start(|session| {
        session.startup()?;
        loop {
            session.send(&reply::authentication(3, &[]))?;
            session.recv()?;
        }
    });
    let silent = FakeServer::start(|session| {
        session.startup()?;
        session.fall_silent()
    });
    let server = server();
    let howdah = pooler(&server)
        .database("endless", &format!("{} pool_mode=passthrough", endless.connection("x")))
        .database("silent", &format!("{} pool_mode=passthrough", silent.connection("x")))
        .setting("server_connect_timeout", "1")
        .start();
    for name in ["endless", "silent"] {
        let refusal = refused(&howdah, &Login::new("ann", name).password(PASSWORD));
        check_fatal(&refusal, "08006", "connect failed");
    }
    assert_eq!(howdah.login(&ann()).value("select 1"), "1");
}

#[test]
fn cancel_reaches_the_server_of_the_session() {
    let server = server();
    let howdah = pooler(&server).start();
    let mut victim = howdah.login(&ann());
    let mut other = howdah.login(&ann());
    other.send(query("select pg_sleep(0.3)"));
    victim.send(query("select pg_sleep(100)"));
    let running =
        "select count(*) from pg_stat_activity where query = 'select pg_sleep(100)' and state = 'active'";
    eventually(LIMIT, || server.session("postgres").value(running) == "1");
    victim.cancel();
    let answer = victim.answers(1);
    assert!(message::is_canceled(&answer, 'I'), "{answer}");
    assert_eq!(victim.value("select 1"), "1");
    assert_eq!(other.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn limits_hold() {
    let server = server();
    let entry = format!("{} pool_mode=passthrough max_db_connections=2", server.connection("postgres"));
    let howdah = pooler(&server)
        .database("db", &entry)
        .line("users", "ann", "pool_size=1 max_user_client_connections=2 query_timeout=1")
        .setting("query_wait_timeout", "30")
        .start();
    let mut first = howdah.login(&ann());
    // The pool is full: the next waits until there is room.
    let port = howdah.port();
    let second = std::thread::spawn(move || Raw::login(port, &ann()).value("select session_user"));
    wait_for_pool(&howdah, "db", &[("user", "ann"), ("sv_active", "1")]);
    eventually_shown(&howdah, "SHOW CLIENTS", |rows| {
        rows.iter().any(|row| cell(row, "user") == Some("ann") && cell(row, "state") == Some("waiting"))
    });
    let third = refused(&howdah, &ann());
    assert_eq!(
        (third.sqlstate.as_str(), third.text.contains("max_user_client_connections")),
        ("53300", true)
    );
    first.sql("select 1");
    first.close();
    assert_eq!(second.join().expect("no panic"), "ann");
    wait_for_sessions(&server, "ann", "0");
    // The database's limit holds for all users together.
    let hold = [howdah.login(&Login::new("clear", "db").password(PASSWORD)), howdah.login(&ann())];
    let waiting = std::thread::spawn(move || {
        Raw::login(port, &Login::new("hashed", "db").password(PASSWORD)).value("select session_user")
    });
    eventually_shown(&howdah, "SHOW CLIENTS", |rows| {
        rows.iter().any(|row| cell(row, "user") == Some("hashed"))
    });
    assert_eq!(sessions(&server, "hashed"), "0");
    drop(hold);
    assert_eq!(waiting.join().expect("no panic"), "hashed");
    let mut slow = howdah.login(&ann());
    slow.send(query("select pg_sleep(100)"));
    let timeout = next_error(&mut slow);
    assert_eq!(timeout.text, "query timeout");
    wait_for_sessions(&server, "ann", "0");
}

#[test]
fn the_console_shows_and_steers_it() {
    let server = server();
    let howdah = pooler(&server).start();
    let mut raw = howdah.login(&ann());
    assert_eq!(raw.value("select 1"), "1");
    assert_eq!(howdah.admin_value("SHOW DATABASES", &[("name", "db")], "pool_mode"), "passthrough");
    wait_for_pool(
        &howdah,
        "db",
        &[("user", "ann"), ("pool_mode", "passthrough"), ("cl_active", "1"), ("sv_active", "1")],
    );
    let link = howdah.admin_value("SHOW CLIENTS", &[("user", "ann")], "link");
    let own = howdah.admin_value("SHOW SERVERS", &[("user", "ann")], "link");
    assert!(!link.is_empty() && !own.is_empty());
    assert_eq!(howdah.admin_value("SHOW SERVERS", &[("user", "ann")], "state"), "active");
    // Nobody is opened a server without having asked for it.
    assert_eq!(howdah.admin_value("SHOW DATABASES", &[("name", "db")], "current_connections"), "1");

    // PAUSE waits for sessions to end; who comes meanwhile waits.
    let mut console = howdah.console();
    console.send(query("PAUSE db"));
    eventually_shown(&howdah, "SHOW DATABASES", |rows| {
        rows.iter().any(|row| cell(row, "name") == Some("db") && cell(row, "paused") == Some("1"))
    });
    assert_eq!(raw.value("select 2"), "2");
    let port = howdah.port();
    let late = std::thread::spawn(move || Raw::login(port, &ann()).value("select 3"));
    raw.close();
    assert_eq!(console.answers(1), "C(PAUSE) ZI");
    assert_eq!(console.ask(query("RESUME db")), "C(RESUME) ZI");
    assert_eq!(late.join().expect("no panic"), "3");
    wait_for_sessions(&server, "ann", "0");

    let mut victim = howdah.login(&ann());
    let id = howdah.admin_value("SHOW CLIENTS", &[("user", "ann")], "id");
    assert_eq!(console.ask(query(&format!("KILL_CLIENT {id}"))), "C(KILL_CLIENT) ZI");
    check_fatal(&next_error(&mut victim), "57P01", "admin forced disconnect");
    let mut victim = howdah.login(&ann());
    assert_eq!(console.ask(query("KILL db")), "C(KILL) ZI");
    assert_eq!(next_error(&mut victim).sqlstate, "57P01");
    assert_eq!(console.ask(query("RESUME db")), "C(RESUME) ZI");
    assert_eq!(howdah.login(&ann()).value("select 4"), "4");
    wait_for_sessions(&server, "ann", "0");
}

#[test]
fn a_session_ends_with_its_server_and_is_told() {
    let server = server();
    let howdah = pooler(&server).start();
    let mut raw = howdah.login(&ann());
    let pid = raw.value("select pg_backend_pid()");
    server.sql(&format!("select pg_terminate_backend({pid})"));
    assert_eq!(next_error(&mut raw).sqlstate, "57P01");
    raw.expect_closed();
    let mut raw = howdah.login(&ann());
    let pid = raw.value("select pg_backend_pid()").parse().expect("a number");
    os::send_signal(pid, Signal::Kill).expect("root may, or it is ours");
    let lost = next_error(&mut raw);
    assert_eq!(lost.sqlstate, "08006");
    assert!(lost.text.contains("connect again"), "{lost:?}");
    server.stop(StopMode::Immediate);
    let refusal = refused(&howdah, &ann());
    check_fatal(&refusal, "08006", "connect failed");
    server.start_again();
    assert_eq!(howdah.login(&ann()).value("select 2"), "2");
}

#[test]
fn pooled_clients_beside_it_get_none_of_its_servers() {
    let server = server();
    let howdah = bare()
        .database("db", &format!("{} pool_size=2", server.connection("postgres")))
        .setting("auth_type", "scram-sha-256")
        .user("bob", PASSWORD)
        .user("ann", "not the one of the server")
        .line("users", "ann", "pool_mode=passthrough")
        .start();
    let pooled = Login::new("bob", "db").password(PASSWORD);
    let mut bob = howdah.login(&pooled);
    let pid = bob.value("select pg_backend_pid()");
    let mut ann_session = howdah.login(&ann());
    let own = ann_session.value("select pg_backend_pid()");
    ann_session.close();
    assert_ne!(own, pid);
    wait_for_sessions(&server, "ann", "0");
    assert_eq!(howdah.login(&pooled).value("select pg_backend_pid()"), pid);
    // What is in the file counts for nothing here.
    let login = Login::new("ann", "db").password("not the one of the server");
    assert_eq!(refused(&howdah, &login).sqlstate, "28P01");
}

#[test]
fn who_came_stays_as_it_came_when_the_mode_is_changed() {
    let server = server();
    let howdah = pooler(&server).user("ann", PASSWORD).start();
    let text = howdah.ini_text();
    let mut own = howdah.login(&ann());
    let pid = own.value("select pg_backend_pid()");
    own.sql("set work_mem = '1234kB'");
    howdah.reload_ini(&text.replace("pool_mode=passthrough", "pool_mode=transaction"));
    let mut pooled = howdah.login(&ann());
    assert_ne!(pooled.value("select pg_backend_pid()"), pid);
    assert_eq!(own.value("select pg_backend_pid()"), pid);
    assert_eq!(own.value("show work_mem"), "1234kB");
    howdah.reload_ini(&text);
    assert_eq!(pooled.value("select 1"), "1");
    let mut another = howdah.login(&ann());
    assert_ne!(another.value("select pg_backend_pid()"), pid);
    assert_eq!(own.value("select pg_backend_pid()"), pid);
}

/// psql's own words and end, over TLS or not.
fn psql(howdah: &Howdah, options: &str) -> (bool, String) {
    let conninfo = format!("host=127.0.0.1 port={} dbname=db user=ann {options}", howdah.port());
    let output = Command::new("psql")
        .args(["-XAtqc", "select session_user || ' ' || pg_backend_pid()", &conninfo])
        .env("PGPASSWORD", PASSWORD)
        .stdin(Stdio::null())
        .output()
        .expect("psql can be started");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

struct Keys {
    directory: TempDir,
}

impl Keys {
    fn tls(&self, options: HowdahOptions) -> HowdahOptions {
        let path = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        options
            .setting("client_tls_sslmode", "allow")
            .setting("client_tls_key_file", &path("server.key"))
            .setting("client_tls_cert_file", &path("server.crt"))
    }
}

#[test]
fn libpq_logs_in_over_tls_and_a_binding_is_never_promised_in_vain() {
    let keys = Keys { directory: TempDir::new() };
    Certificates::write(keys.directory.path());
    let server = with_roles(PostgresOptions::new(Version::V15).hba(HBA).tls().start());
    // TLS with clients alone: the client may think what it likes of binding.
    let howdah = keys.tls(pooler(&server)).setting("server_tls_sslmode", "disable").start();
    for options in ["sslmode=disable", "sslmode=require"] {
        let (is_in, text) = psql(&howdah, options);
        assert!(is_in && text.starts_with("ann "), "{options}: {text}");
    }
    // With servers alone.
    let howdah = pooler(&server).setting("server_tls_sslmode", "require").start();
    assert!(psql(&howdah, "sslmode=prefer").0);
    // On both ways: a proof for one of them is worth nothing on the other.
    let howdah = keys.tls(pooler(&server)).setting("server_tls_sslmode", "require").start();
    let (is_in, text) = psql(&howdah, "sslmode=require");
    assert!(!is_in && text.contains("channel_binding=disable"), "{text}");
    let (is_in, text) = psql(&howdah, "sslmode=require channel_binding=disable");
    assert!(is_in, "{text}");
    assert!(howdah.login(&ann().tls(Tls::default())).value("select 1") == "1");
    let (is_in, _) = psql(&howdah, "sslmode=require channel_binding=require");
    assert!(!is_in);
}

#[test]
fn with_one_certificate_on_both_ways_a_proof_is_bound_to_it() {
    let server = with_roles(PostgresOptions::new(Version::V15).hba(HBA).tls().start());
    let certificates = server.certificates().expect("it has TLS");
    let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let howdah = pooler(&server)
        .setting("client_tls_sslmode", "allow")
        .setting("client_tls_key_file", &path(certificates.server_key()))
        .setting("client_tls_cert_file", &path(certificates.server_certificate()))
        .setting("server_tls_sslmode", "require")
        .start();
    let (is_in, text) = psql(&howdah, "sslmode=require channel_binding=require");
    assert!(is_in && text.starts_with("ann "), "{text}");
    assert_eq!(howdah.login(&ann().tls(Tls::default()).channel_binding()).value("select 1"), "1");
    assert!(psql(&howdah, "sslmode=disable").0);
}

fn hosts(servers: &[&Postgres]) -> String {
    let hosts: Vec<&str> = servers.iter().map(|_| "127.0.0.1").collect();
    let ports: Vec<String> = servers.iter().map(|server| server.port().to_string()).collect();
    format!("host={} port={} dbname=postgres pool_mode=passthrough", hosts.join(","), ports.join(","))
}

fn in_recovery(raw: &mut Raw) -> String {
    raw.value("select pg_is_in_recovery()")
}

#[test]
fn a_cluster_gives_each_session_the_right_node() {
    let options = PostgresOptions::new(Version::V15).hba(HBA).setting("wal_keep_size", "128MB");
    let primary = with_roles(options.start());
    let standby = primary.standby();
    let list = hosts(&[&standby, &primary]);
    let howdah = bare()
        .database("db", &format!("{list} target_session_attrs=read-write"))
        .database("ro", &format!("{list} target_session_attrs=standby"))
        .setting("monitor_user", "postgres")
        .setting("monitor_interval", "0.2")
        .setting("client_login_timeout", "60")
        .start();
    let reader = Login::new("ann", "ro").password(PASSWORD);
    let mut writing = howdah.login(&ann());
    let mut reading = howdah.login(&reader);
    assert_eq!((in_recovery(&mut writing), in_recovery(&mut reading)), ("f".into(), "t".into()));
    assert_eq!(writing.ask(query("begin")), "C(BEGIN) ZT");

    // A node that is drained keeps sessions only to the end of their transactions.
    let drain = format!("DRAIN NODE 127.0.0.1:{}", primary.port());
    let mut console = howdah.console();
    assert!(console.ask(query(&drain)).ends_with("ZI"));
    eventually_shown(&howdah, "SHOW NODES", |rows| {
        rows.iter().any(|row| cell(row, "state") == Some("drained"))
    });
    assert_eq!(writing.value("select 1"), "1");
    assert_eq!(writing.ask(query("commit")), "C(COMMIT) ZI");
    let told = next_error(&mut writing);
    assert_eq!(told.sqlstate, "57P01");
    assert!(told.text.contains("connect again"), "{told:?}");
    assert_eq!(in_recovery(&mut reading), "t");
    let port = howdah.port();
    let waiting = std::thread::spawn(move || in_recovery(&mut Raw::login(port, &ann())));
    eventually_shown(&howdah, "SHOW CLIENTS", |rows| {
        rows.iter().any(|row| cell(row, "database") == Some("db") && cell(row, "state") == Some("waiting"))
    });
    assert!(console.ask(query(&drain.replace("DRAIN", "UNDRAIN"))).ends_with("ZI"));
    assert_eq!(waiting.join().expect("no panic"), "f");

    // A failover ends the sessions of the old primary, and who comes next is brought to the new one.
    let mut writing = howdah.login(&ann());
    primary.stop(StopMode::Immediate);
    assert!(["08006", "57P01", "57P02"].contains(&next_error(&mut writing).sqlstate.as_str()));
    let late = std::thread::spawn(move || {
        let mut raw = Raw::login(port, &ann());
        (in_recovery(&mut raw), raw.value("show port"))
    });
    standby.promote();
    assert_eq!(late.join().expect("no panic"), ("f".into(), standby.port().to_string()));
}

#[test]
fn a_user_for_all_clients_cannot_be_logged_in_to_by_them() {
    let server = server();
    let entry = format!("{} user=postgres pool_mode=passthrough", server.connection("postgres"));
    let (status, log) = bare().database("db", &entry).start_and_fail();
    assert!(!status.success() && log.contains("pool_mode"), "{log}");
    let entry = format!("{} user=postgres", server.connection("postgres"));
    let (status, log) = bare().database("db", &entry).setting("pool_mode", "passthrough").start_and_fail();
    assert!(!status.success() && log.contains("pool_mode"), "{log}");
}
