//! What stands behind Howdah in place of a PostgreSQL server: PgBouncer, Pgpool-II, hosts that are equals.
//!
//! Debian's own packages; without them the tests say so and pass.
#![allow(clippy::disallowed_methods)] // tests run programs

mod stage;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stage::{LIMIT, bare, refused};
use testkit::message::{self, bind, execute, parse, query, sync};
use testkit::postgres::as_server_user;
use testkit::wait::holds_within;
use testkit::{
    Howdah, HowdahOptions, Login, Postgres, PostgresOptions, Raw, Signal, StopMode, TempDir, Version, cell,
    eventually, eventually_shown, free_port, os,
};

const USER: &str = "postgres";

fn server() -> Postgres {
    PostgresOptions::new(Version::V15).start()
}

/// Another pooler; ended when it is dropped.
struct Other {
    process: Child,
    /// Ends it at once, and its children before itself.
    end: Signal,
    port: u16,
    _directory: TempDir,
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = os::send_signal(self.process.id(), self.end);
        if !holds_within(LIMIT, || !matches!(self.process.try_wait(), Ok(None))) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new("/usr/sbin").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: there is no {}: install Debian's package", path.display());
        return None;
    }
    Some(path)
}

fn directory() -> TempDir {
    let directory = TempDir::new();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).expect("own directory");
    directory
}

#[track_caller]
fn launch(mut command: Command, end: Signal, port: u16, directory: TempDir) -> Other {
    let log = std::fs::File::create(directory.join("log")).expect("own directory");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
    let process = os::spawn(command, end).expect("it can be started");
    let other = Other { process, end, port, _directory: directory };
    let listens = || Raw::try_connect(&port.into()).is_ok();
    eventually(LIMIT, || listens() && Raw::try_login(port, &Login::new(USER, "db")).is_ok());
    other
}

fn pgbouncer(server: &Postgres, mode: &str) -> Option<Other> {
    let program = program("pgbouncer")?;
    let (directory, port) = (directory(), free_port());
    let users = directory.write("users", "\"postgres\" \"\"\n\"ann\" \"secret of ann\"\n");
    let hba = directory
        .write("hba", "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    let text = format!(
        "[databases]\ndb = host=127.0.0.1 port={} dbname=postgres user=postgres pool_size=4\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = hba\nauth_hba_file = {}\n\
         auth_file = {}\npool_mode = {mode}\nserver_round_robin = 1\nmax_client_conn = 100\n",
        server.port(),
        hba.display(),
        users.display(),
    );
    let ini = directory.write("pgbouncer.ini", text);
    // Neither of them runs as root.
    let mut command = as_server_user(&program);
    command.arg(ini);
    Some(launch(command, Signal::Terminate, port, directory))
}

fn pgpool(server: &Postgres) -> Option<Other> {
    let program = program("pgpool")?;
    let (directory, port, pcp) = (directory(), free_port(), free_port());
    let place = directory.path().display().to_string();
    let text = format!(
        "backend_clustering_mode = 'raw'\nlisten_addresses = '127.0.0.1'\nport = {port}\nsocket_dir = '{place}'\n\
         pcp_listen_addresses = '127.0.0.1'\npcp_port = {pcp}\npcp_socket_dir = '{place}'\n\
         pid_file_name = '{place}/pgpool.pid'\nlogdir = '{place}'\nwork_dir = '{place}'\n\
         backend_hostname0 = '127.0.0.1'\nbackend_port0 = {}\nbackend_weight0 = 1\n\
         backend_flag0 = 'DISALLOW_TO_FAILOVER'\nfailover_on_backend_error = off\nenable_pool_hba = off\n\
         num_init_children = 24\nmax_pool = 1\nload_balance_mode = off\nuse_watchdog = off\n",
        server.port(),
    );
    let conf = directory.write("pgpool.conf", text);
    let mut command = as_server_user(&program);
    command.args(["-n", "-f"]).arg(conf);
    server.create_database("db", USER);
    Some(launch(command, Signal::Quit, port, directory))
}

fn pooler(other: &Other, keys: &str) -> HowdahOptions {
    bare()
        .database("db", &format!("host=127.0.0.1 port={} dbname=db pool_size=4 {keys}", other.port))
        .user(USER, "")
}

fn client(howdah: &Howdah) -> Raw {
    howdah.login(&Login::new(USER, "db"))
}

/// A value by the statement of this name.
#[track_caller]
fn bound(raw: &mut Raw, name: &str) -> String {
    raw.send(message::all(&[bind("", name, &[]), execute("", 0), sync()]));
    let answers = raw.until_ready();
    let row = answers.iter().find(|answer| answer.tag == b'D').unwrap_or_else(|| panic!("{answers:?}"));
    String::from_utf8_lossy(&row.body[6..]).into_owned()
}

#[test]
fn behind_a_transaction_pooler_nobody_meets_what_others_left() {
    let server = server();
    let Some(bouncer) = pgbouncer(&server, "transaction") else { return };
    let howdah = pooler(&bouncer, "server_keeps_session=0").setting("pool_mode", "transaction").start();
    let mut clients: Vec<Raw> = (0..6).map(|_| client(&howdah)).collect();
    // Several backends at once, so that transactions go from one to the other.
    clients.iter_mut().for_each(|raw| raw.send(query("select pg_sleep(0.1)")));
    clients.iter_mut().for_each(|raw| assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI"));
    for (number, raw) in clients.iter_mut().enumerate() {
        let text = format!("select '{number} ' || pg_backend_pid()");
        assert_eq!(raw.ask(message::all(&[parse("s", &text, &[]), sync()])), "1 ZI");
        raw.sql(&format!("set application_name = 'client {number}'"));
    }
    let mut backends = BTreeSet::new();
    for _ in 0..30 {
        for (number, raw) in clients.iter_mut().enumerate() {
            let value = bound(raw, "s");
            let (own, backend) = value.split_once(' ').expect("two words");
            assert_eq!(own, number.to_string());
            backends.insert(backend.to_owned());
            assert_eq!(raw.value("show application_name"), format!("client {number}"));
        }
    }
    assert!(backends.len() > 1, "all on one: {backends:?}");
    let raw = &mut clients[0];
    // In one transaction, over batches, and an unnamed one that is bound later.
    assert_eq!(raw.ask(query("begin")), "C(BEGIN) ZT");
    let first = bound(raw, "s");
    assert_eq!(bound(raw, "s"), first);
    assert_eq!(raw.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(raw.ask(message::all(&[parse("", "select 'unnamed'", &[]), sync()])), "1 ZI");
    assert_eq!(bound(raw, ""), "unnamed");
    for text in [
        "set work_mem = '1MB'",
        "listen a",
        "create temp table t (n int)",
        "select pg_advisory_lock(1)",
        "prepare p as select 1",
    ] {
        let refusal = raw.try_sql(text).expect_err(text);
        assert_eq!(refusal.sqlstate, "0A000", "{refusal:?}");
        assert!(refusal.text.contains("server_keeps_session"), "{refusal:?}");
    }
    assert_eq!(raw.value("select 1"), "1");
    let login = Login::new(USER, "db").parameter("options", "-c work_mem=1234");
    let refusal = refused(&howdah, &login);
    assert!(refusal.text.contains("unsupported startup parameter"), "{refusal:?}");
    assert_eq!(
        howdah.login(&Login::new(USER, "db").parameter("TimeZone", "Asia/Tokyo")).value("show timezone"),
        "Asia/Tokyo"
    );
    assert_eq!(raw.value("show timezone"), client(&howdah).value("show timezone"));
    let mut victim = client(&howdah);
    victim.send(query("select pg_sleep(100)"));
    let running = "select count(*) from pg_stat_activity where query like '%pg_sleep(100)%' and state = 'active' and pid <> pg_backend_pid()";
    eventually(LIMIT, || server.session(USER).value(running) == "1");
    victim.cancel();
    assert!(message::is_canceled(&victim.answers(1), 'I'));
}

#[test]
fn a_session_pooler_is_like_a_server() {
    let server = server();
    let Some(bouncer) = pgbouncer(&server, "session") else { return };
    let howdah = pooler(&bouncer, "").start();
    let mut raw = client(&howdah);
    raw.sql("set work_mem = '1234kB'");
    let mut other = client(&howdah);
    assert_eq!(other.value("show work_mem"), "4MB");
    assert_eq!(raw.value("show work_mem"), "1234kB");
    assert_eq!(raw.ask(message::all(&[parse("s", "select 'mine'", &[]), sync()])), "1 ZI");
    assert_eq!(other.ask(message::all(&[parse("s", "select 'other'", &[]), sync()])), "1 ZI");
    assert_eq!((bound(&mut raw, "s"), bound(&mut other, "s")), ("mine".into(), "other".into()));
}

#[test]
fn a_login_is_passed_on_to_another_pooler() {
    let server = server();
    let Some(bouncer) = pgbouncer(&server, "transaction") else { return };
    let howdah = pooler(&bouncer, "pool_mode=passthrough").start();
    let login = |password: &str| Login::new("ann", "db").password(password);
    assert_eq!(howdah.login(&login("secret of ann")).value("select 1"), "1");
    let refusal = refused(&howdah, &login("wrong"));
    assert!(refusal.text.contains("SASL authentication failed"), "{refusal:?}");
}

#[test]
fn pgpool_is_like_a_server() {
    let server = server();
    let Some(pgpool) = pgpool(&server) else { return };
    let howdah = pooler(&pgpool, "").start();
    let mut raw = client(&howdah);
    raw.sql("set work_mem = '1234kB'");
    let mut other = client(&howdah);
    assert_eq!(other.value("show work_mem"), "4MB");
    assert_eq!(raw.value("show work_mem"), "1234kB");
    assert_eq!(raw.ask(message::all(&[parse("s", "select 'mine'", &[]), sync()])), "1 ZI");
    assert_eq!(other.ask(message::all(&[parse("s", "select 'other'", &[]), sync()])), "1 ZI");
    assert_eq!((bound(&mut raw, "s"), bound(&mut other, "s")), ("mine".into(), "other".into()));
    let howdah = pooler(&pgpool, "pool_mode=passthrough").start();
    assert_eq!(client(&howdah).value("select 1"), "1");
    // A child that is left behind would hold the port, and a core.
    let port = pgpool.port;
    drop(pgpool);
    assert!(Raw::try_connect(&port.into()).is_err());
}

fn hosts(servers: &[&Postgres]) -> String {
    let hosts: Vec<&str> = servers.iter().map(|_| "127.0.0.1").collect();
    let ports: Vec<String> = servers.iter().map(|server| server.port().to_string()).collect();
    format!("host={} port={} dbname=postgres", hosts.join(","), ports.join(","))
}

/// Which ports answer so many transactions.
fn ports_of(howdah: &Howdah, count: usize) -> BTreeSet<String> {
    let mut raw = client(howdah);
    (0..count).map(|_| raw.value("show port")).collect()
}

#[test]
fn hosts_that_are_equals_share_all_the_work() {
    let (first, second) = (server(), server());
    let keys = "target_session_attrs=read-write independent_hosts=1 pool_size=4";
    let howdah = bare()
        .database("db", &format!("{} {keys}", hosts(&[&first, &second])))
        .user(USER, "")
        .setting("monitor_user", USER)
        .setting("monitor_interval", "0.2")
        .setting("server_round_robin", "1")
        .start();
    eventually_shown(&howdah, "SHOW NODES", |rows| {
        rows.len() == 2 && rows.iter().all(|row| cell(row, "role") == Some("primary"))
    });
    // Four servers, two on each.
    let mut busy: Vec<Raw> = (0..4).map(|_| client(&howdah)).collect();
    busy.iter_mut().for_each(|raw| raw.send(query("select pg_sleep(0.3)")));
    busy.iter_mut().for_each(|raw| assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI"));
    let both = BTreeSet::from([first.port().to_string(), second.port().to_string()]);
    assert_eq!(ports_of(&howdah, 16), both);
    // One goes: the other has it all, and nobody between transactions hears of it.
    first.stop(StopMode::Immediate);
    for raw in &mut busy {
        assert_eq!(raw.value("show port"), second.port().to_string());
    }
    first.start_again();
    eventually_shown(&howdah, "SHOW NODES", |rows| rows.iter().all(|row| cell(row, "state") == Some("up")));
    eventually(Duration::from_secs(30), || {
        assert_eq!(howdah.console().ask(query("RECONNECT db")), "C(RECONNECT) ZI");
        let mut busy: Vec<Raw> = (0..4).map(|_| client(&howdah)).collect();
        busy.iter_mut().for_each(|raw| raw.send(query("select pg_sleep(0.1)")));
        busy.iter_mut().for_each(|raw| assert_eq!(raw.answers(1), "T D C(SELECT 1) ZI"));
        ports_of(&howdah, 16) == both
    });
}
