//! A throw-away PostgreSQL: made, filled by `pgbench -i`, gone at the end. Nothing of it is durable.

use crate::error::BenchError;
use crate::host::{Account, Scratch, Stop};
use crate::process::{Process, Program};
use crate::session::Session;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The database that loads run in.
pub const DATABASE: &str = "bench";
/// The superuser, who only prepares and watches.
pub const SUPERUSER: &str = "postgres";
/// How many connections it takes.
pub const CONNECTIONS_MAX: usize = 300;

const SETTINGS: [&str; 13] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=256MB",
    "autovacuum=off",
    "checkpoint_timeout=1h",
    "max_wal_size=4GB",
    "jit=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "wal_level=minimal",
    "max_wal_senders=0",
    "log_min_messages=fatal",
];

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    programs: PathBuf,
    data: PathBuf,
    account: Option<Account>,
    port: u16,
}

/// What it is made from.
#[derive(Debug)]
pub struct Making<'a> {
    /// Where its programs are.
    pub programs: &'a Path,
    /// Where its files go.
    pub scratch: &'a Scratch,
    /// Whom it runs as.
    pub account: Option<Account>,
    /// Its cores.
    pub cores: Option<String>,
    /// Its port.
    pub port: u16,
    /// The roles that may use the database.
    pub roles: &'a [String],
    /// pgbench's scale.
    pub scale: u32,
}

const LIMIT: Duration = Duration::from_secs(60);
const LIMIT_FILL: Duration = Duration::from_secs(1_200);

impl Postgres {
    /// Makes and starts one, and fills it.
    pub fn start(making: Making<'_>, stop: &Stop) -> Result<Postgres, BenchError> {
        let Making { programs, scratch, account, cores, port, .. } = making;
        let data = scratch.directory("data", account)?;
        let log = |name: &str| scratch.path().join(name);
        let mut initdb = Program::new("initdb", programs.join("initdb"));
        initdb.account = account;
        initdb
            .arguments(["-D".into(), data.clone().into_os_string()])
            .arguments(["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"])
            .succeed(&log("initdb.log"), LIMIT, stop)?;
        let mut server = Program::new("PostgreSQL", programs.join("postgres"));
        server.account = account;
        server.cores = cores;
        // A postmaster that is killed leaves its shared memory behind; one that is told to quit does not.
        server.death_signal = "QUIT";
        let mut server = server
            .arguments(["-D".into(), data.clone().into_os_string()])
            .arguments(["-p".to_owned(), port.to_string()])
            .arguments(["-c".to_owned(), format!("max_connections={CONNECTIONS_MAX}")]);
        for setting in SETTINGS {
            server = server.arguments(["-c", setting]);
        }
        let process = server.start(&log("postgres.log"))?;
        let mut postgres = Postgres { process, programs: programs.to_owned(), data, account, port };
        let address = postgres.address();
        postgres.process.await_ready(LIMIT, stop, || {
            Session::open(address, SUPERUSER, "postgres").map(drop).map_err(|error| error.to_string())
        })?;
        postgres.fill(making.roles, making.scale, &log("pgbench-i.log"), stop)?;
        Ok(postgres)
    }

    fn fill(&self, roles: &[String], scale: u32, log: &Path, stop: &Stop) -> Result<(), BenchError> {
        let told =
            |session: &mut Session, sql: &str| session.query(sql).map(drop).map_err(BenchError::PostgreSql);
        let mut session = self.session("postgres")?;
        told(&mut session, &format!("create database {DATABASE}"))?;
        for role in roles {
            told(&mut session, &format!("create role {role} login"))?;
        }
        Program::new("pgbench -i", self.programs.join("pgbench"))
            .arguments(["-i".to_owned(), "-q".to_owned(), "-s".to_owned(), scale.to_string()])
            .arguments(["-h".to_owned(), "127.0.0.1".to_owned(), "-p".to_owned(), self.port.to_string()])
            .arguments(["-U", SUPERUSER, DATABASE])
            .succeed(log, LIMIT_FILL, stop)?;
        let mut session = self.session(DATABASE)?;
        for role in roles {
            told(&mut session, &format!("grant all on all tables in schema public to {role}"))?;
        }
        told(&mut session, "checkpoint")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A session of the superuser.
    pub fn session(&self, database: &str) -> Result<Session, BenchError> {
        Session::open(self.address(), SUPERUSER, database).map_err(BenchError::PostgreSql)
    }

    /// The settings that were given it, for the report.
    pub fn settings() -> Vec<String> {
        let mut settings: Vec<_> = SETTINGS.iter().map(|&setting| setting.to_owned()).collect();
        settings.push(format!("max_connections={CONNECTIONS_MAX}"));
        settings
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut quick = Program::new("pg_ctl", self.programs.join("pg_ctl"));
        quick.account = self.account;
        let arguments: [OsString; 6] = [
            "-D".into(),
            self.data.clone().into(),
            "-m".into(),
            "immediate".into(),
            "-W".into(),
            "stop".into(),
        ];
        let mut command = quick.arguments(arguments).command();
        if command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            self.process.await_end(Duration::from_secs(10));
        }
    }
}
