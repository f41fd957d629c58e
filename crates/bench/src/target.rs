//! The targets: what each is called, how it is configured (the same for every pooler, as far as they
//! share words), how it is started and where a load finds it.

use crate::error::BenchError;
use crate::host::{Account, Ports, Scratch, Stop, existing};
use crate::postgres;
use crate::process::{Process, Program};
use crate::session::Session;
use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// What stands between clients and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing.
    Direct,
    /// Our blind relay: the floor.
    Relay,
    /// Debian's pgbouncer: what others are compared with.
    Pgbouncer,
    /// Howdah.
    Howdah {
        /// Its worker threads.
        workers: usize,
    },
}

impl Kind {
    /// The targets that a word on the command line means.
    pub fn named(word: &str) -> Option<Vec<Kind>> {
        Some(match word {
            "direct" => vec![Kind::Direct],
            "relay" => vec![Kind::Relay],
            "pgbouncer" => vec![Kind::Pgbouncer],
            "howdah" => vec![Kind::Howdah { workers: 1 }, Kind::Howdah { workers: 2 }],
            _ => {
                let workers = word.strip_prefix("howdah-")?.parse().ok().filter(|&workers| workers > 0)?;
                vec![Kind::Howdah { workers }]
            }
        })
    }

    /// Its own role at PostgreSQL, by which its server connections are told from the others'.
    pub fn role(self) -> String {
        format!("bench_{self}").replace('-', "_")
    }

    /// How many threads it works with; none if it is no process.
    pub fn workers(self) -> usize {
        match self {
            Kind::Direct => 0,
            Kind::Relay | Kind::Pgbouncer => 1,
            Kind::Howdah { workers } => workers,
        }
    }

    /// Whether each client has a server connection of its own.
    pub fn is_one_to_one(self) -> bool {
        matches!(self, Kind::Direct | Kind::Relay)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Direct => f.pad("direct"),
            Kind::Relay => f.pad("relay"),
            Kind::Pgbouncer => f.pad("pgbouncer"),
            Kind::Howdah { workers } => f.pad(&format!("howdah-{workers}")),
        }
    }
}

/// The servers behind the targets.
#[derive(Debug, Clone, Copy)]
pub struct Servers {
    /// PostgreSQL, where a load needs it.
    pub postgres: Option<u16>,
    /// The canned-reply server.
    pub canned: u16,
}

/// The database behind which the canned-reply server stands.
pub const CANNED_DATABASE: &str = "canned";

/// What all targets are started with.
#[derive(Debug)]
pub struct Launch {
    /// The servers.
    pub servers: Servers,
    /// Howdah's binary.
    pub howdah: PathBuf,
    /// pgbouncer's binary.
    pub pgbouncer: PathBuf,
    /// This binary.
    pub own: PathBuf,
    /// Whom poolers run as.
    pub account: Option<Account>,
    /// `default_pool_size`.
    pub pool_size: usize,
    /// `max_client_conn`.
    pub clients_max: usize,
}

/// A target that can take load.
#[derive(Debug)]
pub struct Target {
    /// Which.
    pub kind: Kind,
    process: Option<Process>,
    port_postgres: Option<u16>,
    port_canned: u16,
}

const READY_LIMIT: Duration = Duration::from_secs(15);

impl Launch {
    /// Whether all binaries are there, before anything is started.
    pub fn check(&self, targets: &[Kind]) -> Result<(), BenchError> {
        if targets.contains(&Kind::Pgbouncer) {
            let remedy =
                "install Debian's package pgbouncer, give --pgbouncer PATH, or leave it out with --only";
            existing("pgbouncer", &self.pgbouncer, remedy)?;
        }
        if targets.iter().any(|kind| matches!(kind, Kind::Howdah { .. })) {
            let remedy = "build it (cargo build --release -p howdah), give --howdah PATH, \
                          or leave it out with --only direct,relay,pgbouncer";
            existing("howdah", &self.howdah, remedy)?;
        }
        Ok(())
    }

    /// The settings file of a pooler; the ones of Howdah and pgbouncer differ in `workers` alone.
    pub fn ini(&self, kind: Kind, port: u16, users: &str) -> String {
        let role = kind.role();
        let mut ini = String::from("[databases]\n");
        let Servers { postgres, canned } = self.servers;
        if let Some(port) = postgres {
            let name = postgres::DATABASE;
            ini += &format!("{name} = host=127.0.0.1 port={port} user={role} dbname={name}\n");
        }
        let name = CANNED_DATABASE;
        ini += &format!("{name} = host=127.0.0.1 port={canned} user={role} dbname={name}\n\n[pgbouncer]\n");
        let settings = [
            ("listen_addr", "127.0.0.1".to_owned()),
            ("listen_port", port.to_string()),
            ("listen_backlog", "4096".to_owned()),
            ("unix_socket_dir", String::new()),
            ("auth_type", "trust".to_owned()),
            ("auth_file", users.to_owned()),
            ("pool_mode", "transaction".to_owned()),
            ("default_pool_size", self.pool_size.to_string()),
            ("max_client_conn", self.clients_max.to_string()),
            ("ignore_startup_parameters", "extra_float_digits".to_owned()),
            ("log_connections", "0".to_owned()),
            ("log_disconnections", "0".to_owned()),
        ];
        for (key, value) in settings {
            ini += &format!("{key} = {value}\n");
        }
        if let Kind::Howdah { workers } = kind {
            ini += &format!("workers = {workers}\n");
        }
        ini
    }

    /// Starts one, and waits until it answers a query from every server behind it.
    pub fn start(
        &self,
        kind: Kind,
        name: &str,
        cores: Option<String>,
        scratch: &Scratch,
        ports: &mut Ports,
        stop: &Stop,
    ) -> Result<Target, BenchError> {
        let log = scratch.path().join(format!("{name}.log"));
        let Servers { postgres, canned } = self.servers;
        let mut target = match kind {
            Kind::Direct => Target { kind, process: None, port_postgres: postgres, port_canned: canned },
            Kind::Relay => {
                let mut routes = Vec::new();
                let mut route = |server: u16| -> Result<u16, BenchError> {
                    let port = ports.take()?;
                    routes.push(format!("{port}={server}"));
                    Ok(port)
                };
                let port_canned = route(canned)?;
                let port_postgres = postgres.map(route).transpose()?;
                let mut program = Program::new(name, &self.own).arguments(["serve-relay"]).arguments(routes);
                program.cores = cores;
                Target { kind, process: Some(program.start(&log)?), port_postgres, port_canned }
            }
            Kind::Pgbouncer | Kind::Howdah { .. } => {
                let port = ports.take()?;
                let users = scratch.file(&format!("{name}.users"), &format!("\"{}\" \"\"\n", kind.role()))?;
                let ini = self.ini(kind, port, &users.display().to_string());
                let ini = scratch.file(&format!("{name}.ini"), &ini)?;
                let binary =
                    if kind == Kind::Pgbouncer { self.pgbouncer.clone() } else { self.howdah(scratch)? };
                let mut program = Program::new(name, binary).arguments([ini]);
                program.account = self.account;
                program.cores = cores;
                let process = Some(program.start(&log)?);
                Target { kind, process, port_postgres: postgres.map(|_| port), port_canned: port }
            }
        };
        target.await_ready(stop)?;
        Ok(target)
    }

    /// Howdah's binary where the children's user can read it: a build directory may be closed to it.
    fn howdah(&self, scratch: &Scratch) -> Result<PathBuf, BenchError> {
        if self.account.is_none() {
            return Ok(self.howdah.clone());
        }
        let copy = scratch.path().join("howdah");
        if !copy.exists() {
            let doing = format!("copying {}", self.howdah.display());
            fs::copy(&self.howdah, &copy).map_err(BenchError::io(doing))?;
        }
        Ok(copy)
    }
}

impl Target {
    fn await_ready(&mut self, stop: &Stop) -> Result<(), BenchError> {
        let role = self.kind.role();
        let mut doors = vec![(self.canned(), CANNED_DATABASE)];
        doors.extend(self.postgres().map(|address| (address, postgres::DATABASE)));
        let Some(process) = &mut self.process else { return Ok(()) };
        process.await_ready(READY_LIMIT, stop, || {
            for (address, database) in &doors {
                let mut session =
                    Session::open(*address, &role, database).map_err(|error| error.to_string())?;
                session.query("select 1").map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Where PostgreSQL is behind it.
    pub fn postgres(&self) -> Option<SocketAddr> {
        self.port_postgres.map(|port| (Ipv4Addr::LOCALHOST, port).into())
    }

    /// Where the canned-reply server is behind it.
    pub fn canned(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port_canned).into()
    }

    /// An error once its process is gone, with its last words.
    pub fn check_alive(&mut self) -> Result<(), String> {
        let Some(process) = &mut self.process else { return Ok(()) };
        match process.exited() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let last_words = crate::host::last_words(&process.said());
                Err(format!("{} ended under load ({status}): {last_words}", process.name()))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
