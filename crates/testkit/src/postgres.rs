//! Real PostgreSQL servers, started by the tests and gone with them.
//!
//! Decides how a server is set up (quick, on a free port of the loopback address and a socket of its own), not
//! what is asked of it.

mod standby;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::install::{self, Version};
use crate::login::Login;
use crate::os::{self, Signal};
use crate::raw::{Raw, Row};
use crate::stream::Address;
use crate::temp::{TempDir, free_port};
use crate::tls::Certificates;
use crate::wait::{eventually, holds_within};

/// What a server shall be.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub version: Version,
    pub max_connections: u32,
    /// More lines of postgresql.conf; they win over the fixture's own.
    pub settings: Vec<(String, String)>,
    /// TLS with a throw-away certificate, see [`Postgres::certificates`].
    pub tls: bool,
    /// The whole pg_hba.conf; if none, everybody is trusted.
    pub hba: Option<String>,
}

impl PostgresOptions {
    /// A plain server of this version.
    pub fn new(version: Version) -> PostgresOptions {
        PostgresOptions { version, max_connections: 100, settings: Vec::new(), tls: false, hba: None }
    }

    pub fn max_connections(mut self, count: u32) -> PostgresOptions {
        self.max_connections = count;
        self
    }

    pub fn setting(mut self, name: &str, value: &str) -> PostgresOptions {
        self.settings.push((name.into(), value.into()));
        self
    }

    pub fn tls(mut self) -> PostgresOptions {
        self.tls = true;
        self
    }

    pub fn hba(mut self, text: &str) -> PostgresOptions {
        self.hba = Some(text.into());
        self
    }

    pub fn start(self) -> Postgres {
        Postgres::start(self)
    }
}

/// How a server is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Once all sessions have ended.
    Smart,
    /// Sessions are ended.
    Fast,
    /// As after a crash.
    Immediate,
}

/// A server. Dropped, it stops and its files go away.
pub struct Postgres {
    options: PostgresOptions,
    programs: PathBuf,
    port: u16,
    home: TempDir,
    certificates: Option<Certificates>,
    process: Mutex<Option<Child>>,
}

impl Postgres {
    /// Starts a server and waits until it takes sessions; panics with its log if it does not.
    pub fn start(options: PostgresOptions) -> Postgres {
        let programs = options.version.programs();
        let template = template(options.version, &programs);
        let home = TempDir::new();
        let data = home.join("data");
        let copy = Command::new("cp").arg("-a").arg("--reflink=auto").arg(&template).arg(&data).status();
        assert!(copy.is_ok_and(|status| status.success()), "cannot copy {}", template.display());
        let certificates = options.tls.then(|| {
            assert!(options.version.has_tls(), "this build of PostgreSQL {:?} has no TLS", options.version);
            Certificates::write(&data)
        });
        let process = Mutex::new(None);
        let port = free_port();
        let postgres = Postgres { options, programs, port, home, certificates, process };
        postgres.write_settings();
        postgres.launch();
        postgres
    }

    /// One server of this version for all tests of this process. It has room for 200 sessions; every test uses
    /// databases and roles of its own on it, and leaves its settings alone.
    pub fn shared(version: Version) -> &'static Postgres {
        let place = match version {
            Version::V15 => &SHARED_15,
            Version::V18 => &SHARED_18,
        };
        place.get_or_init(|| {
            // What is static is never dropped.
            os::at_exit(|| {
                [&SHARED_15, &SHARED_18].into_iter().filter_map(OnceLock::get).for_each(Postgres::discard)
            });
            let options = PostgresOptions::new(version).max_connections(200);
            if version.has_tls() { options.tls().start() } else { options.start() }
        })
    }

    /// [`Postgres::shared`] of the version that the run of the tests asks for.
    pub fn shared_wanted() -> &'static Postgres {
        Postgres::shared(Version::wanted())
    }

    pub fn version(&self) -> Version {
        self.options.version
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The directory with the Unix socket, for `host=`.
    pub fn socket_dir(&self) -> &Path {
        self.home.path()
    }

    /// The Unix socket itself.
    pub fn socket(&self) -> PathBuf {
        self.home.join(&format!(".s.PGSQL.{}", self.port))
    }

    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// The CA and the server's certificate, if the options asked for TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// A client program of the server's version, e.g. `psql` or `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read(self.home.join("log"))
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default()
    }

    /// The postmaster's process id; panics when it is stopped.
    pub fn pid(&self) -> u32 {
        self.lock().as_ref().expect("the server runs").id()
    }

    /// A session of the superuser, over the Unix socket, in this database.
    #[track_caller]
    pub fn session(&self, database: &str) -> Raw {
        Raw::login(self.socket().as_path(), &Login::new(SUPERUSER, database))
    }

    /// Runs SQL as superuser in the database `postgres`.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> Vec<Row> {
        self.session(SUPERUSER).sql(sql)
    }

    /// Makes a role that may log in, with this password.
    #[track_caller]
    pub fn create_role(&self, name: &str, password: &str) {
        self.sql(&format!("create role {} login password '{}'", quoted(name), password.replace('\'', "''")));
    }

    /// Makes a database owned by this role.
    #[track_caller]
    pub fn create_database(&self, name: &str, owner: &str) {
        self.sql(&format!("create database {} owner {}", quoted(name), quoted(owner)));
    }

    /// The number of sessions in this database that are not the asking one.
    #[track_caller]
    pub fn sessions_in(&self, database: &str) -> usize {
        let sql = format!(
            "select count(*) from pg_stat_activity where datname = '{}' and pid <> pg_backend_pid()",
            database.replace('\'', "''")
        );
        let count = self.session(SUPERUSER).value(&sql);
        count.parse().expect("a count")
    }

    /// Stops the server in order; panics if that takes longer than a minute.
    pub fn stop(&self, mode: StopMode) {
        let signal = match mode {
            StopMode::Smart => Signal::Terminate,
            StopMode::Fast => Signal::Interrupt,
            StopMode::Immediate => Signal::Quit,
        };
        self.end(signal);
    }

    /// Kills the postmaster (`kill -9`); its sessions notice and go.
    pub fn kill(&self) {
        self.end(Signal::Kill);
    }

    /// Starts the stopped server again, on the same port and with the same data.
    pub fn start_again(&self) {
        self.launch();
    }

    pub fn restart(&self, mode: StopMode) {
        self.stop(mode);
        self.start_again();
    }

    /// Freezes the postmaster (it accepts no session); sessions there are go on.
    pub fn freeze(&self) {
        os::send_signal(self.pid(), Signal::Stop).expect("own process");
    }

    /// Freezes the postmaster and all its sessions.
    pub fn freeze_all(&self) {
        self.freeze();
        for pid in children_of(self.pid()) {
            // A session may have ended since it was listed.
            let _ = os::send_signal(pid, Signal::Stop);
        }
    }

    /// Undoes [`Postgres::freeze`] and [`Postgres::freeze_all`].
    pub fn thaw(&self) {
        os::send_signal(self.pid(), Signal::Continue).expect("own process");
        for pid in children_of(self.pid()) {
            let _ = os::send_signal(pid, Signal::Continue);
        }
    }

    /// Appends to postgresql.conf, where the last line of a name wins; [`Postgres::reload`] makes it hold.
    pub fn set(&self, name: &str, value: &str) {
        let path = self.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&path).expect("own file");
        text.push_str(&setting(name, value));
        fs::write(&path, text).expect("own file");
    }

    /// Replaces pg_hba.conf; [`Postgres::reload`] makes it hold.
    pub fn set_hba(&self, text: &str) {
        fs::write(self.data().join("pg_hba.conf"), text).expect("own file");
    }

    /// Makes the server read its files again, and waits until it has.
    pub fn reload(&self) {
        let loaded = "select pg_conf_load_time()::text";
        let mut session = self.session(SUPERUSER);
        let before = session.value(loaded);
        os::send_signal(self.pid(), Signal::Hangup).expect("own process");
        eventually(START_LIMIT, || session.value(loaded) != before);
    }

    /// `host=... port=... dbname=...`, as in the section `[databases]`.
    pub fn connection(&self, database: &str) -> String {
        format!("host=127.0.0.1 port={} dbname={database}", self.port)
    }

    fn write_settings(&self) {
        let options = &self.options;
        let mut text = String::new();
        let port = self.port.to_string();
        let room = options.max_connections.to_string();
        let sockets = self.home.path().to_string_lossy().into_owned();
        let mut all =
            vec![("port", port.as_str()), ("max_connections", &room), ("unix_socket_directories", &sockets)];
        all.extend(FAST);
        if options.tls {
            all.extend([("ssl", "on"), ("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")]);
            all.push(("ssl_ca_file", "ca.crt"));
        }
        all.extend(options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        for (name, value) in all {
            text.push_str(&setting(name, value));
        }
        let data = self.data();
        fs::write(data.join("postgresql.conf"), text).expect("own file");
        fs::write(data.join("pg_hba.conf"), options.hba.as_deref().unwrap_or(TRUST)).expect("own file");
        // The socket is made in the home directory by the server itself.
        if let Some(owner) = server_user() {
            chown(self.home.path(), Some(owner.uid), Some(owner.gid)).expect("root may");
            for name in ["server.key", "server.crt", "ca.crt"].iter().filter(|_| options.tls) {
                chown(data.join(name), Some(owner.uid), Some(owner.gid)).expect("root may");
            }
        }
    }

    fn launch(&self) {
        let mut process = self.lock();
        assert!(process.is_none(), "the server runs already");
        let log =
            File::options().create(true).append(true).open(self.home.join("log")).expect("own directory");
        let mut command = as_server_user(&self.program("postgres"));
        command.arg("-D").arg(self.data()).current_dir(self.data());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        // Its own group, so that Ctrl-C at a terminal reaches only us and we stop it in order.
        command.process_group(0);
        // SIGQUIT: the postmaster takes its sessions with it.
        *process = Some(os::spawn(command, Signal::Quit).expect("postgres can be started"));
        let child = process.as_mut().expect("set above");
        let ready = holds_within(START_LIMIT, || {
            let ended = child.try_wait().expect("own process");
            assert!(ended.is_none(), "postgres ended ({ended:?}):\n{}", self.log());
            self.takes_sessions()
        });
        assert!(ready, "postgres takes no sessions:\n{}", self.log());
    }

    fn takes_sessions(&self) -> bool {
        let Ok(mut raw) = Raw::try_connect(&Address::Unix(self.socket())) else { return false };
        Login::new(SUPERUSER, SUPERUSER).run(&mut raw).is_ok()
    }

    fn end(&self, signal: Signal) {
        let mut process = self.lock();
        let Some(child) = process.as_mut() else { return };
        os::send_signal(child.id(), signal).expect("own process");
        let gone = holds_within(STOP_LIMIT, || child.try_wait().expect("own process").is_some());
        assert!(gone, "postgres does not stop on {signal:?}:\n{}", self.log());
        *process = None;
        drop(process);
        if signal == Signal::Kill {
            self.forget_orphans();
        }
    }

    /// After a kill the sessions need a moment to notice; a new server would refuse to start beside them.
    fn forget_orphans(&self) {
        let data = self.data();
        holds_within(STOP_LIMIT, || {
            let mut probe = as_server_user(&self.program("postgres"));
            // Single-user mode takes the lock of the data directory, and ends at the end of its input.
            probe.args(["--single", "-D"]).arg(&data).arg("template1");
            install::run_quietly(&mut probe).is_ok()
        });
    }

    /// Ends the server without ceremony; what is left is files.
    fn discard(&self) {
        let mut process = self.lock();
        if let Some(mut child) = process.take() {
            // A frozen server would not hear the signal that follows.
            let _ = os::send_signal(child.id(), Signal::Continue);
            let _ = os::send_signal(child.id(), Signal::Quit);
            if !holds_within(STOP_LIMIT, || matches!(child.try_wait(), Ok(Some(_)))) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        let _ = fs::remove_dir_all(self.home.path());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        // A panic while it was held has not broken anything: the child is there or not.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.discard();
        if std::thread::panicking() {
            let log = self.log();
            let from = log.len().saturating_sub(2000);
            eprintln!(
                "--- end of PostgreSQL's log ---\n{}",
                String::from_utf8_lossy(&log.as_bytes()[from..])
            );
        }
    }
}

static SHARED_15: OnceLock<Postgres> = OnceLock::new();
static SHARED_18: OnceLock<Postgres> = OnceLock::new();

/// A fresh data directory, made once and copied for every server.
fn template(version: Version, programs: &Path) -> PathBuf {
    let path = install::cache().join(format!("data-{}", version.number()));
    if !path.exists() {
        install::with_lock(|| {
            if !path.exists() {
                make_template(programs, &path);
            }
        });
    }
    path
}

fn make_template(programs: &Path, path: &Path) {
    let work = TempDir::new();
    if let Some(owner) = server_user() {
        chown(work.path(), Some(owner.uid), Some(owner.gid)).expect("root may");
    }
    let data = work.join("data");
    let mut initdb = as_server_user(&programs.join("initdb"));
    initdb.args([
        "--username",
        SUPERUSER,
        "--auth",
        "trust",
        "--no-locale",
        "--encoding",
        "UTF8",
        "--no-sync",
    ]);
    initdb.args(["--wal-segsize", "4", "-D"]).arg(&data).current_dir(work.path());
    if let Err(why) = install::run_quietly(&mut initdb) {
        panic!("initdb failed: {why}");
    }
    let beside = path.with_extension("work");
    let _ = fs::remove_dir_all(&beside);
    let copied = Command::new("cp").arg("-a").arg(&data).arg(&beside).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy to {}", beside.display());
    fs::rename(&beside, path).expect("both in the cache");
}

/// Who runs PostgreSQL when root does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The user to run PostgreSQL as, if not our own: it refuses to run as root.
pub(crate) fn server_user() -> Option<User> {
    static FOUND: OnceLock<Option<User>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        if !os::is_root() {
            return None;
        }
        let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let find = |name: &str| {
            let line = known.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
            Some(User { uid: fields.next()??, gid: fields.next()?? })
        };
        Some(find("postgres").or_else(|| find("nobody")).unwrap_or(User { uid: 65_534, gid: 65_534 }))
    })
}

/// A program, as the user that servers run as.
pub fn as_server_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some(user) = server_user() {
        command.uid(user.uid).gid(user.gid);
    }
    // Locale and PG* variables of whoever runs the tests must not matter.
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
    command
}

fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn setting(name: &str, value: &str) -> String {
    format!("{name} = '{}'\n", value.replace('\'', "''"))
}

/// An SQL identifier in quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Makes a file readable by its owner only, as PostgreSQL asks of keys.
pub(crate) fn make_private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("own file");
}

/// The role that owns everything, and its database.
pub const SUPERUSER: &str = "postgres";

const TRUST: &str = "\
local all all trust\nhost all all 127.0.0.1/32 trust\n\
local replication all trust\nhost replication all 127.0.0.1/32 trust\n";

/// Data need not survive a crash of the machine; tests shall not wait for the disk.
const FAST: [(&str, &str); 12] = [
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "32MB"),
    ("wal_level", "logical"),
    ("max_wal_senders", "10"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("max_prepared_transactions", "10"),
];

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);
