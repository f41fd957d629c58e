//! PostgreSQL for a run: a throw-away one, made, filled and gone at the end, of which nothing is durable;
//! or a given one, in which a database and roles of our own are made and dropped again.

use crate::access::Access;
use crate::error::BenchError;
use crate::host::{Account, Scratch, Stop};
use crate::process::{Process, Program};
use crate::session::Session;
use crate::setup::{Filling, Setup};
use crate::target::configure::Certificate;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The database that loads run in, as poolers call it.
pub const DATABASE: &str = "bench";
/// What it is called in a server that is not ours.
pub const DATABASE_GIVEN: &str = "howdah_bench";
/// The superuser of our own, who only prepares and watches.
pub const SUPERUSER: &str = "postgres";

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
    /// Who prepares and watches, in the database of the loads.
    pub access: Access,
    own: Option<Own>,
    /// What was made in a server that is not ours.
    guests: Option<Guests>,
}

#[derive(Debug)]
struct Own {
    process: Process,
    programs: PathBuf,
    data: PathBuf,
    account: Option<Account>,
}

#[derive(Debug)]
struct Guests {
    admin: Access,
    roles: Vec<String>,
}

/// What it is made from.
#[derive(Debug)]
pub struct Making<'a> {
    /// Where its programs are.
    pub programs: &'a Path,
    /// sysbench's program.
    pub sysbench: &'a Path,
    /// Where its files go.
    pub scratch: &'a Scratch,
    /// Whom it runs as.
    pub account: Option<Account>,
    /// Its cores.
    pub cores: Option<String>,
    /// The roles that may use the database.
    pub roles: Vec<String>,
    /// Of those, the ones that it asks for the password.
    pub asked: Vec<String>,
    /// Their password, as it is to be stored.
    pub verifier: &'a str,
    /// For clients that want TLS.
    pub tls: Option<&'a Certificate>,
    /// How large it is.
    pub setup: &'a Setup,
    /// What it is filled with.
    pub filling: Filling,
}

const LIMIT: Duration = Duration::from_secs(60);
const LIMIT_FILL: Duration = Duration::from_secs(1_200);

impl Postgres {
    /// Makes and starts one, and fills it.
    pub fn start(making: &Making<'_>, port: u16, stop: &Stop) -> Result<Postgres, BenchError> {
        let data = making.scratch.fresh_directory("data", making.account)?;
        let log = |name: &str| making.scratch.path().join(name);
        let mut initdb = Program::new("initdb", making.programs.join("initdb"));
        initdb.account = making.account;
        initdb
            .arguments(["-D".into(), data.clone().into_os_string()])
            .arguments(["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"])
            .succeed(&log("initdb.log"), LIMIT, stop)?;
        let asked: String =
            making.asked.iter().map(|role| format!("host all {role} 127.0.0.1/32 scram-sha-256\n")).collect();
        making.scratch.file("data/pg_hba.conf", &format!("{asked}host all all 127.0.0.1/32 trust\n"))?;
        let process = server(making, &data, port).start(&log("postgres.log"))?;
        let (programs, account) = (making.programs.to_owned(), making.account);
        let access = Access {
            host: "127.0.0.1".to_owned(),
            port,
            user: SUPERUSER.to_owned(),
            password: None,
            database: DATABASE.to_owned(),
        };
        let admin = Access { database: "postgres".to_owned(), ..access.clone() };
        let own = Own { process, programs, data, account };
        let mut postgres = Postgres { access, own: Some(own), guests: None };
        if let Some(own) = &mut postgres.own {
            let ready = || Session::enter(&admin).map(drop).map_err(|error| error.to_string());
            own.process.await_ready(LIMIT, stop, ready)?;
        }
        postgres.fill(making, &admin, stop)?;
        Ok(postgres)
    }

    /// Makes itself at home in one that runs already.
    pub fn visit(making: &Making<'_>, admin: &Access, stop: &Stop) -> Result<Postgres, BenchError> {
        Session::enter(admin).map_err(|failure| BenchError::Unreachable {
            name: admin.to_string(),
            why: failure.to_string(),
        })?;
        let access = Access { database: DATABASE_GIVEN.to_owned(), ..admin.clone() };
        let guests = Guests { admin: admin.clone(), roles: making.roles.clone() };
        // Kept from here on, so that a failure half way drops what was made.
        let postgres = Postgres { access, own: None, guests: Some(guests) };
        if let Some(guests) = &postgres.guests {
            // A run that was killed has left them.
            guests.leave();
        }
        postgres.fill(making, admin, stop)?;
        Ok(postgres)
    }

    fn fill(&self, making: &Making<'_>, admin: &Access, stop: &Stop) -> Result<(), BenchError> {
        let told =
            |session: &mut Session, sql: &str| session.query(sql).map(drop).map_err(BenchError::PostgreSql);
        let mut session = Session::enter(admin).map_err(BenchError::PostgreSql)?;
        told(&mut session, &format!("create database {}", self.access.database))?;
        for role in &making.roles {
            told(&mut session, &format!("create role {role} login password '{}'", making.verifier))?;
        }
        let log = |name: &str| making.scratch.path().join(name);
        let Access { host, port, user, database, .. } = &self.access;
        let mut pgbench = Program::new("pgbench -i", making.programs.join("pgbench"));
        pgbench.environment.extend(self.access.password.clone().map(|password| ("PGPASSWORD", password)));
        pgbench
            .arguments(["-i".to_owned(), "-q".to_owned(), "-s".to_owned(), making.setup.scale.to_string()])
            .arguments(making.setup.fill_options.iter().copied())
            .arguments(["-h", host, "-p", &port.to_string(), "-U", user, database])
            .succeed(&log("pgbench-i.log"), LIMIT_FILL, stop)?;
        let mut session = self.session()?;
        if making.filling.wide_rows {
            told(&mut session, "create table bench_wide (id int primary key, filler text)")?;
            // As it is sent, so that PostgreSQL's own packing and unpacking is not what is measured.
            told(&mut session, "alter table bench_wide alter filler set storage external")?;
            told(
                &mut session,
                "insert into bench_wide select id, repeat('x', 65536) from generate_series(1, 20) id",
            )?;
        }
        if making.filling.sink {
            told(&mut session, "create unlogged table bench_sink (filler text)")?;
        }
        if making.filling.sysbench {
            crate::sysbench::fill(making.sysbench, &self.access).succeed(
                &log("sysbench-prepare.log"),
                LIMIT_FILL,
                stop,
            )?;
        }
        for role in &making.roles {
            told(&mut session, &format!("grant all on all tables in schema public to {role}"))?;
            told(&mut session, &format!("grant all on all sequences in schema public to {role}"))?;
        }
        told(&mut session, "checkpoint")
    }

    /// A session of who prepares and watches.
    pub fn session(&self) -> Result<Session, BenchError> {
        Session::enter(&self.access).map_err(BenchError::PostgreSql)
    }

    /// How many connections it takes.
    pub fn connections_max(&self) -> Result<usize, BenchError> {
        let rows = self.session()?.query("show max_connections").map_err(BenchError::PostgreSql)?;
        let number = rows.first().and_then(|row| row.parse().ok());
        number.ok_or_else(|| BenchError::Options("PostgreSQL does not tell its max_connections".to_owned()))
    }

    /// The settings that were given it, for the report.
    pub fn settings(connections_max: usize) -> Vec<String> {
        let mut settings: Vec<_> = SETTINGS.iter().map(|&setting| setting.to_owned()).collect();
        settings.push(format!("max_connections={connections_max}"));
        settings
    }
}

fn server(making: &Making<'_>, data: &Path, port: u16) -> Program {
    let mut program = Program::new("PostgreSQL", making.programs.join("postgres"));
    program.account = making.account;
    program.cores = making.cores.clone();
    // A postmaster that is killed leaves its shared memory behind; one that is told to quit does not.
    program.death_signal = "QUIT";
    let mut settings = Postgres::settings(making.setup.connections_max);
    if let Some(Certificate { certificate, key }) = making.tls {
        settings.push("ssl=on".to_owned());
        settings.push(format!("ssl_cert_file={}", certificate.display()));
        settings.push(format!("ssl_key_file={}", key.display()));
    }
    let mut program = program
        .arguments(["-D".into(), data.to_owned().into_os_string()])
        .arguments(["-p".to_owned(), port.to_string()]);
    for setting in settings {
        program = program.arguments(["-c".to_owned(), setting]);
    }
    program
}

impl Guests {
    /// Drops what was made; what is not there any more does not matter.
    fn leave(&self) {
        let Ok(mut session) = Session::enter(&self.admin) else { return };
        let _ = session.query(&format!("drop database if exists {DATABASE_GIVEN} with (force)"));
        for role in &self.roles {
            let _ = session.query(&format!("drop role if exists {role}"));
        }
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Drop for Own {
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
