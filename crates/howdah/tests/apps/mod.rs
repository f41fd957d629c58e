//! How an application is run twice, straight to PostgreSQL and through the pooler, and what it needs to be there.

pub mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::wait::holds_within;
use testkit::{Howdah, Postgres, Signal, TempDir, Version, os};

use crate::oracle::{BINARY, USER};

/// Connections of an application, and servers of its pool.
pub const CLIENTS: usize = 50;
pub const SERVERS: usize = 5;
/// Longer than any application takes; one that waits for ever is a failure, too.
const LIMIT: Duration = Duration::from_secs(600);

/// The costly ones run when `cargo xtask apps` asks for them.
pub fn is_asked_for(name: &str) -> bool {
    let asked = std::env::var_os("HOWDAH_APPS").is_some();
    if !asked {
        println!("{name}: left to cargo xtask apps");
    }
    asked
}

/// The directory with an application's own files.
pub fn files(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps").join(name)
}

/// Where an application finds its database.
#[derive(Clone, Copy)]
pub struct Way<'a> {
    pub port: u16,
    pub database: &'a str,
}

impl Way<'_> {
    /// Runs a program to its end: what it printed to its standard output.
    pub fn run(self, mut command: Command) -> String {
        let home = TempDir::new();
        let (out, err) = (home.join("out"), home.join("err"));
        let file = |path: &Path| std::fs::File::create(path).expect("own directory");
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", USER)
            .env("PGDATABASE", self.database)
            .env("APP_CLIENTS", CLIENTS.to_string())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err));
        let mut child = os::spawn(command, Signal::Kill).expect("the application can be started");
        let mut status = None;
        holds_within(LIMIT, || {
            status = child.try_wait().expect("own process");
            status.is_some()
        });
        let text =
            |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        if !status.is_some_and(|status| status.success()) {
            let _ = child.kill();
            let _ = child.wait();
            let errors = text(&err);
            let last = errors.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev();
            panic!(
                "{status:?} on port {}:\n{}\n{}",
                self.port,
                text(&out),
                last.collect::<Vec<_>>().join("\n")
            );
        }
        text(&out)
    }
}

/// One PostgreSQL, and in front of it a pooler in transaction mode with few servers.
pub struct Stand {
    pub server: &'static Postgres,
    pub howdah: Howdah,
    name: String,
}

impl Stand {
    pub fn new(name: &str) -> Stand {
        Stand::with_servers(name, SERVERS)
    }

    /// With a pool of so many.
    pub fn with_servers(name: &str, servers: usize) -> Stand {
        let server = Postgres::shared(Version::wanted());
        server.create_database(&format!("{name}_direct"), USER);
        server.create_database(name, USER);
        // Any database, as a test suite makes its own.
        let connection = format!("host=127.0.0.1 port={}", server.port());
        let howdah = Howdah::new(BINARY)
            .database("*", &connection)
            .setting("pool_mode", "transaction")
            .setting("default_pool_size", &servers.to_string())
            .setting("max_client_conn", "1000")
            .setting("workers", "2")
            .setting("query_wait_timeout", "300")
            .user(USER, "")
            .start();
        Stand { server, howdah, name: name.into() }
    }

    /// Runs it both ways: what it printed must be the same. Says what it cost in time and in pins.
    #[track_caller]
    pub fn compare(&self, run: impl Fn(Way) -> String) -> String {
        let direct = format!("{}_direct", self.name);
        let start = Instant::now();
        let expected = run(Way { port: self.server.port(), database: &direct });
        let between = Instant::now();
        let found = run(Way { port: self.howdah.port(), database: &self.name });
        let (straight, through) = (between - start, between.elapsed());
        println!(
            "{}: {:.1} s straight, {:.1} s through",
            self.name,
            straight.as_secs_f64(),
            through.as_secs_f64()
        );
        self.say_pins();
        assert_eq!(found, expected, "what it printed through the pooler, and straight");
        self.nothing_is_left();
        expected
    }

    fn say_pins(&self) {
        for row in self.howdah.admin("SHOW PINS") {
            let cells: Vec<String> = row.iter().map(|(name, value)| format!("{name}={value}")).collect();
            println!("{}: {}", self.name, cells.join(" "));
        }
    }

    /// Nobody's locks, nobody's temporary objects; servers as new ones.
    #[track_caller]
    fn nothing_is_left(&self) {
        let mut admin = self.server.session(&self.name);
        testkit::eventually(Duration::from_secs(20), || admin.value(LEFTOVERS) == "0");
        let mut clients: Vec<testkit::Raw> =
            (0..SERVERS).map(|_| self.howdah.session(USER, &self.name)).collect();
        let mut fresh = testkit::Raw::login(self.server.port(), &testkit::Login::new(USER, &self.name));
        let expected = fresh.sql(SETTINGS);
        for client in &mut clients {
            assert_eq!(client.ask(testkit::message::query("begin")), "C(BEGIN) ZT");
            assert_eq!(client.sql(SETTINGS), expected, "settings of a server that is free");
        }
    }
}

const LEFTOVERS: &str = "select (select count(*) from pg_locks where locktype = 'advisory' and database =
    (select oid from pg_database where datname = current_database()))
    + (select count(*) from pg_class where relpersistence = 't' and relkind <> 't')";
const SETTINGS: &str = "select name, setting from pg_settings
    where name not like 'plpgsql.%' and not (category = 'Customized Options' and setting = '') order by 1";
