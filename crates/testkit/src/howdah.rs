//! The pooler under test: its own files in a directory of its own, its process, its log, its console.
//!
//! Decides the few settings without which nothing runs; everything else is the test's.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::login::Login;
use crate::os::{self, Signal};
use crate::raw::Raw;
use crate::stream::Address;
use crate::temp::{TempDir, free_port};
use crate::wait::{eventually, holds_within};

/// What a pooler shall be; [`Howdah::new`] begins, [`HowdahOptions::start`] ends.
#[derive(Clone, Debug)]
pub struct HowdahOptions {
    binary: PathBuf,
    databases: Vec<(String, String)>,
    settings: Vec<(String, String)>,
    sections: Vec<(String, String, String)>,
    users: Vec<(String, String)>,
    ini: Option<String>,
    hba: Option<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    open_files: Option<u64>,
    resolver: Option<std::net::Ipv4Addr>,
    port: Option<u16>,
}

impl HowdahOptions {
    /// A line of the section `[databases]`: a name and its connection string.
    pub fn database(mut self, name: &str, connection: &str) -> HowdahOptions {
        self.databases.push((name.into(), connection.into()));
        self
    }

    /// A key of the section `[pgbouncer]`; the last of a name wins. `{dir}` and `{port}` are filled in.
    pub fn setting(mut self, name: &str, value: &str) -> HowdahOptions {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.into(), value.into()));
        self
    }

    /// A line of another section, e.g. `("users", "alice", "pool_size=3")`.
    pub fn line(mut self, section: &str, name: &str, value: &str) -> HowdahOptions {
        self.sections.push((section.into(), name.into(), value.into()));
        self
    }

    /// A line of userlist.txt.
    pub fn user(mut self, name: &str, password: &str) -> HowdahOptions {
        self.users.push((name.into(), password.into()));
        self
    }

    /// The whole pgbouncer.ini in place of all the above but the users; `{dir}` and `{port}` are filled in.
    pub fn ini(mut self, text: &str) -> HowdahOptions {
        self.ini = Some(text.into());
        self
    }

    /// Writes `hba.conf` and names it in the setting `auth_hba_file`.
    pub fn hba(mut self, text: &str) -> HowdahOptions {
        self.hba = Some(text.into());
        self.setting("auth_hba_file", "{dir}/hba.conf")
    }

    /// An argument of the command line, before the file.
    pub fn argument(mut self, argument: &str) -> HowdahOptions {
        self.arguments.push(argument.into());
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> HowdahOptions {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A port of your choice; a free one if none is asked for.
    pub fn port(mut self, port: u16) -> HowdahOptions {
        self.port = Some(port);
        self
    }

    /// Lets the pooler open only so many files.
    pub fn open_files(mut self, count: u64) -> HowdahOptions {
        self.open_files = Some(count);
        self
    }

    /// Lets the pooler, and nobody else, ask this name server: that takes root.
    pub fn resolver(mut self, address: std::net::Ipv4Addr) -> HowdahOptions {
        self.resolver = Some(address);
        self
    }

    /// Starts it and waits until it answers; panics with its log if it does not.
    #[track_caller]
    pub fn start(self) -> Howdah {
        let howdah = self.prepare();
        howdah.launch();
        howdah
    }

    /// Starts it although it shall not come up: how it ended, and what it logged.
    #[track_caller]
    pub fn start_and_fail(self) -> (ExitStatus, String) {
        let howdah = self.prepare();
        *howdah.lock() = Some(howdah.spawn());
        let status = howdah.wait_exit(START_LIMIT);
        (status, howdah.log())
    }

    fn prepare(self) -> Howdah {
        let home = TempDir::new();
        let port = self.port.unwrap_or_else(free_port);
        let mut howdah = Howdah { options: self, home, port, process: Mutex::new(None), may_panic: false };
        let text = howdah.ini_text();
        howdah.write_ini(&text);
        howdah.write_users();
        if let Some(hba) = howdah.options.hba.take() {
            howdah.home.write("hba.conf", hba);
        }
        howdah
    }
}

/// A pooler that runs. Dropped, it is killed, and a panic in its log fails the test.
pub struct Howdah {
    options: HowdahOptions,
    home: TempDir,
    port: u16,
    process: Mutex<Option<Child>>,
    may_panic: bool,
}

impl Howdah {
    /// Begins with `env!("CARGO_BIN_EXE_howdah")`.
    #[expect(clippy::new_ret_no_self, reason = "the pooler itself comes from start()")]
    pub fn new(binary: impl AsRef<Path>) -> HowdahOptions {
        HowdahOptions {
            binary: binary.as_ref().to_path_buf(),
            databases: Vec::new(),
            settings: Vec::new(),
            sections: Vec::new(),
            users: vec![(ADMIN.into(), ADMIN_PASSWORD.into()), (STATS.into(), STATS_PASSWORD.into())],
            ini: None,
            hba: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            open_files: None,
            resolver: None,
            port: None,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory with all its files and its Unix socket.
    pub fn dir(&self) -> &Path {
        self.home.path()
    }

    /// The Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.home.join(&format!(".s.PGSQL.{}", self.port))
    }

    pub fn ini_path(&self) -> PathBuf {
        self.home.join("pgbouncer.ini")
    }

    /// Logs in over TCP; panics if that is refused.
    #[track_caller]
    pub fn login(&self, login: &Login) -> Raw {
        Raw::login(self.port, login)
    }

    /// Logs in as a user that needs no password.
    #[track_caller]
    pub fn session(&self, user: &str, database: &str) -> Raw {
        self.login(&Login::new(user, database))
    }

    /// A session of the administrator on the console.
    #[track_caller]
    pub fn console(&self) -> Raw {
        self.login(&Login::new(ADMIN, "pgbouncer").password(ADMIN_PASSWORD))
    }

    /// The table that a console command answers with; a row is its columns' names with their values.
    #[track_caller]
    pub fn admin(&self, command: &str) -> Vec<Vec<(String, String)>> {
        self.console().table(command)
    }

    /// One value of a console's table: of the first row whose columns have the values given.
    #[track_caller]
    pub fn admin_value(&self, command: &str, where_: &[(&str, &str)], column: &str) -> String {
        let table = self.admin(command);
        let row = table.iter().find(|row| where_.iter().all(|&(name, value)| cell(row, name) == Some(value)));
        let found = row.and_then(|row| cell(row, column));
        found.unwrap_or_else(|| panic!("{command}: no {column} where {where_:?} in {table:?}")).to_owned()
    }

    /// Everything logged so far.
    pub fn log(&self) -> String {
        let text = fs::read(self.home.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits until the log has this text; panics with the log if it does not come.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) {
        let found = holds_within(LOG_LIMIT, || self.log().contains(text));
        assert!(found, "{text:?} is not in the log:\n{}", self.log());
    }

    /// The process id; panics if it has ended.
    pub fn pid(&self) -> u32 {
        self.lock().as_ref().expect("the pooler runs").id()
    }

    pub fn signal(&self, signal: Signal) {
        os::send_signal(self.pid(), signal).expect("own process");
    }

    /// Waits for the end of the process; panics with the log if it does not come.
    #[track_caller]
    pub fn wait_exit(&self, limit: Duration) -> ExitStatus {
        let mut process = self.lock();
        let child = process.as_mut().expect("the pooler runs");
        let mut status = None;
        let gone = holds_within(limit, || {
            status = child.try_wait().expect("own process");
            status.is_some()
        });
        assert!(gone, "the pooler still runs after {limit:?}:\n{}", self.log());
        *process = None;
        // Set whenever the wait came to an end in time.
        status.expect("it has ended")
    }

    /// True once the process has ended.
    pub fn has_ended(&self) -> bool {
        self.lock().as_mut().is_none_or(|child| child.try_wait().expect("own process").is_some())
    }

    /// Replaces pgbouncer.ini (`{dir}` and `{port}` are filled in) and reloads by the console.
    #[track_caller]
    pub fn reload_ini(&self, text: &str) {
        self.write_ini(text);
        assert_eq!(self.console().ask(crate::message::query("RELOAD")), "C(RELOAD) ZI");
    }

    /// Changes one setting in pgbouncer.ini and reloads by the console.
    #[track_caller]
    pub fn reload_with(&mut self, name: &str, value: &str) {
        self.options = self.options.clone().setting(name, value);
        self.reload_ini(&self.ini_text());
    }

    /// Writes pgbouncer.ini and tells nobody.
    pub fn write_ini(&self, text: &str) {
        self.home.write("pgbouncer.ini", self.filled(text));
    }

    /// The pgbouncer.ini as the options make it.
    pub fn ini_text(&self) -> String {
        let options = &self.options;
        if let Some(text) = &options.ini {
            return text.clone();
        }
        let mut text = String::from("[databases]\n");
        let line = |name: &str, value: &str| format!("{name} = {value}\n");
        options.databases.iter().for_each(|(name, value)| text.push_str(&line(name, value)));
        text.push_str("\n[pgbouncer]\n");
        let own =
            DEFAULTS.iter().filter(|(name, _)| !options.settings.iter().any(|(known, _)| known == name));
        own.for_each(|(name, value)| text.push_str(&line(name, value)));
        options.settings.iter().for_each(|(name, value)| text.push_str(&line(name, value)));
        // The same tests on another way to the kernel, but for those that choose one themselves.
        if let Ok(backend) = std::env::var(IO_BACKEND)
            && !text.contains("\nio_backend =")
        {
            text.push_str(&line("io_backend", &backend));
        }
        // Who says how many workers there are wants them to meet.
        if text.contains("\nworkers =") && !text.contains("\nworkers_awake =") {
            text.push_str(&line("workers_awake", "all"));
        }
        let mut sections: Vec<&str> = options.sections.iter().map(|(section, ..)| section.as_str()).collect();
        sections.dedup();
        for section in sections {
            text.push_str(&format!("\n[{section}]\n"));
            let lines = options.sections.iter().filter(|(of, ..)| of == section);
            lines.for_each(|(_, name, value)| text.push_str(&line(name, value)));
        }
        text
    }

    /// Adds a user to userlist.txt; a reload makes it hold.
    pub fn add_user(&mut self, name: &str, password: &str) {
        self.options.users.push((name.into(), password.into()));
        self.write_users();
    }

    /// Resident memory, in KB.
    pub fn rss_kb(&self) -> u64 {
        self.status_number("VmRSS:")
    }

    pub fn threads(&self) -> u64 {
        self.status_number("Threads:")
    }

    /// How many files and sockets it has open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// Kills it (`kill -9`).
    pub fn kill(&self) {
        if let Some(mut child) = self.lock().take() {
            // It may have ended by itself.
            let _ = os::send_signal(child.id(), Signal::Kill);
            let _ = child.wait();
        }
    }

    /// Starts it again after its end, with the same files and port.
    #[track_caller]
    pub fn start_again(&self) {
        self.launch();
    }

    /// For a test that provokes a panic on purpose.
    pub fn allow_panics(&mut self) {
        self.may_panic = true;
    }

    #[track_caller]
    fn launch(&self) {
        let mut process = self.lock();
        assert!(process.is_none(), "the pooler runs already");
        let child = process.insert(self.spawn());
        let ready = holds_within(START_LIMIT, || {
            let ended = child.try_wait().expect("own process");
            assert!(ended.is_none(), "the pooler ended ({ended:?}):\n{}", self.log());
            let tcp = Raw::try_connect(&Address::from(self.port)).is_ok();
            tcp || Raw::try_connect(&Address::Unix(self.socket())).is_ok()
        });
        assert!(ready, "the pooler does not listen on port {}:\n{}", self.port, self.log());
    }

    fn spawn(&self) -> Child {
        let options = &self.options;
        let log =
            File::options().create(true).append(true).open(self.home.join("log")).expect("own directory");
        let mut command = match (options.open_files, options.resolver) {
            (None, None) => Command::new(&options.binary),
            (None, Some(address)) => {
                let text = format!("nameserver {address}\noptions timeout:1 attempts:1\n");
                let file = self.home.write("resolv.conf", text);
                let mut unshare = Command::new("unshare");
                unshare.args(["--mount", "sh", "-c", BIND]).arg(file).arg(&options.binary);
                unshare
            }
            (Some(count), _) => {
                let mut prlimit = Command::new("prlimit");
                prlimit.arg(format!("--nofile={count}:{count}")).arg(&options.binary);
                prlimit
            }
        };
        command.args(&options.arguments).arg(self.ini_path()).current_dir(self.dir());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        command.env("RUST_BACKTRACE", "1");
        // CI and containers have nobody else.
        command.env("HOWDAH_ALLOW_ROOT", "1");
        // Its own group: Ctrl-C at a terminal reaches only us, and we end it in order.
        command.process_group(0);
        command.envs(options.environment.iter().map(|(name, value)| (name, value)));
        os::spawn(command, Signal::Kill).expect("the pooler can be started")
    }

    fn write_users(&self) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let lines = self.options.users.iter();
        let text: String =
            lines.map(|(name, password)| format!("{} {}\n", quoted(name), quoted(password))).collect();
        self.home.write("userlist.txt", text);
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{dir}", &self.dir().to_string_lossy()).replace("{port}", &self.port.to_string())
    }

    fn status_number(&self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        value.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        // A panic while it was held has not broken anything: the child is there or not.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Howdah {
    fn drop(&mut self) {
        self.kill();
        let log = self.log();
        if std::thread::panicking() {
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(60)..];
            eprintln!("--- end of the pooler's log ---\n{}", last.join("\n"));
        } else if !self.may_panic {
            assert!(!log.contains("panicked"), "the pooler has panicked:\n{log}");
        }
    }
}

/// A value of a console's row by its column.
pub fn cell<'a>(row: &'a [(String, String)], column: &str) -> Option<&'a str> {
    row.iter().find(|(name, _)| name == column).map(|(_, value)| value.as_str())
}

/// Waits until a console's table fulfils a condition; panics with the last table if it does not.
#[track_caller]
pub fn eventually_shown(
    howdah: &Howdah,
    command: &str,
    mut fulfils: impl FnMut(&[Vec<(String, String)>]) -> bool,
) {
    let mut console = howdah.console();
    let mut last = Vec::new();
    let done = holds_within(LOG_LIMIT, || {
        last = console.table(command);
        fulfils(&last)
    });
    if !done {
        // The panic is raised where the caller is.
        eventually(Duration::ZERO, || {
            eprintln!("{command} shows {last:#?}");
            false
        });
    }
}

/// The administrator that every pooler of a test has.
pub const ADMIN: &str = "admin";
pub const ADMIN_PASSWORD: &str = "admin-password";
/// The user who may look but not change.
pub const STATS: &str = "stats";
pub const STATS_PASSWORD: &str = "stats-password";

/// Names the `io_backend` that poolers are tested with, unless a test sets it.
const IO_BACKEND: &str = "HOWDAH_TEST_IO_BACKEND";

const DEFAULTS: [(&str, &str); 8] = [
    ("listen_addr", "127.0.0.1"),
    ("listen_port", "{port}"),
    ("unix_socket_dir", "{dir}"),
    ("auth_type", "trust"),
    ("auth_file", "{dir}/userlist.txt"),
    ("admin_users", ADMIN),
    ("stats_users", STATS),
    ("pool_mode", "transaction"),
];

/// In a mount namespace of its own: its first argument takes the place of the resolver's file.
const BIND: &str = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";

const START_LIMIT: Duration = Duration::from_secs(20);
const LOG_LIMIT: Duration = Duration::from_secs(10);
