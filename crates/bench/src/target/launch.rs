//! How targets are started: their files, their processes, until each answers a query.

use crate::access::Access;
use crate::error::BenchError;
use crate::host::{Account, Ports, Scratch, Stop, existing};
use crate::postgres;
use crate::process::{Process, Program};
use crate::run::Called;
use crate::secret::Secret;
use crate::target::configure::{self, Certificate, Sizes};
use crate::target::{Given, Kind, Servers, Target};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// What all targets are started with.
#[derive(Debug)]
pub struct Launch {
    /// The servers.
    pub servers: Servers,
    /// The programs.
    pub binaries: Binaries,
    /// Whom poolers run as.
    pub account: Option<Account>,
    /// How large they are.
    pub sizes: Sizes,
    /// For clients that want TLS, where a load has such.
    pub tls: Option<Certificate>,
    /// What roles log in with where they are asked.
    pub secret: Secret,
    /// Targets that run already.
    pub given: Vec<Given>,
}

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// Howdah's.
    pub howdah: PathBuf,
    /// pgbouncer's.
    pub pgbouncer: PathBuf,
    /// haproxy's.
    pub haproxy: PathBuf,
    /// pgpool's.
    pub pgpool: PathBuf,
    /// This program.
    pub own: PathBuf,
    /// How this program was called.
    pub called: Called,
}

impl Binaries {
    /// This program in another role.
    pub fn own(&self, name: impl Into<String>) -> Program {
        let program = Program::new(name, &self.own);
        match self.called {
            Called::Alone => program,
            Called::ByHowdah => program.arguments(["bench"]),
        }
    }

    /// Whether what the target needs is there.
    pub fn check(&self, kind: Kind) -> Result<(), BenchError> {
        let (name, path, remedy) = match kind {
            Kind::Direct | Kind::Relay | Kind::RelayUring | Kind::Given(_) => return Ok(()),
            Kind::Pgbouncer => (
                "pgbouncer",
                &self.pgbouncer,
                "install Debian's package pgbouncer, give --pgbouncer PATH, or leave it out with --only",
            ),
            Kind::Haproxy => (
                "haproxy",
                &self.haproxy,
                "install Debian's package haproxy, give --haproxy PATH, or leave it out with --only",
            ),
            Kind::Pgpool2 => (
                "pgpool",
                &self.pgpool,
                "install Debian's package pgpool2, give --pgpool PATH, or leave it out with --only",
            ),
            Kind::Howdah { .. } | Kind::HowdahOff => (
                "howdah",
                &self.howdah,
                "build it (cargo build --release -p howdah), give --howdah PATH, or leave it out with --only",
            ),
        };
        existing(name, path, remedy)
    }
}

const READY_LIMIT: Duration = Duration::from_secs(15);

impl Launch {
    /// The settings of a target in words, if it has any.
    pub fn configuration(&self, kind: Kind) -> Option<String> {
        // Neither ports nor directories of this run are worth keeping.
        let directory = PathBuf::from("/run/bench");
        let tls = self.tls.as_ref().map(|tls| tls.moved_to(&directory));
        let tls = tls.as_ref();
        match kind {
            Kind::Direct | Kind::Relay | Kind::RelayUring | Kind::Given(_) => None,
            Kind::Pgbouncer | Kind::Howdah { .. } | Kind::HowdahOff => {
                let mut servers = self.servers.clone();
                if let Some(server) = &mut servers.postgres {
                    server.password = server.password.as_ref().map(|_| "***".to_owned());
                }
                Some(configure::ini(kind, 6432, &directory, &servers, &self.sizes, tls))
            }
            Kind::Haproxy => Some(configure::haproxy(&self.doors(6432, Some(6433)), &self.sizes)),
            Kind::Pgpool2 => Some(configure::pgpool(9999, 9898, &directory, &self.servers, &self.sizes, tls)),
        }
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
        let (mut canned, mut postgres) = (None, None);
        let program = match kind {
            Kind::Direct => {
                canned = Some(self.servers.canned);
                None
            }
            Kind::Given(_) => None,
            Kind::Relay | Kind::RelayUring | Kind::Haproxy => {
                canned = Some(ports.take()?);
                postgres = self.servers.postgres.as_ref().map(|_| ports.take()).transpose()?;
                let doors = self.doors(canned.unwrap_or_default(), postgres);
                Some(self.forwarder(kind, name, &doors, scratch)?)
            }
            Kind::Pgbouncer | Kind::Howdah { .. } | Kind::HowdahOff => {
                let port = ports.take()?;
                (canned, postgres) = (Some(port), self.servers.postgres.as_ref().map(|_| port));
                Some(self.pooler(kind, name, port, scratch)?)
            }
            Kind::Pgpool2 => {
                let port = ports.take()?;
                postgres = Some(port);
                Some(self.pgpool(name, (port, ports.take()?), scratch)?)
            }
        };
        let process = match program {
            None => None,
            Some(mut program) => {
                program.cores = cores;
                Some(program.start(&log)?)
            }
        };
        let given = self.given.iter().find(|given| Kind::Given(given.name) == kind);
        let access = match (kind, given) {
            (Kind::Direct, _) => self.servers.postgres.as_ref().map(|server| self.access(kind, server)),
            (_, Some(given)) => Some(given.access.clone()),
            _ => self.servers.postgres.as_ref().zip(postgres).map(|(server, port)| {
                let database = if kind.is_one_to_one() || kind == Kind::Pgpool2 {
                    &server.database
                } else {
                    postgres::DATABASE
                };
                let place = Access {
                    host: "127.0.0.1".into(),
                    port,
                    database: database.to_owned(),
                    ..server.clone()
                };
                self.access(kind, &place)
            }),
        };
        let pid = process.as_ref().map(Process::pid).or(given.and_then(|given| given.pid));
        let mut target = Target { kind, process, pid, access, canned };
        target.await_ready(READY_LIMIT, stop)?;
        Ok(target)
    }

    /// The role of a target at that place. A password that nobody asks for does no harm.
    fn access(&self, kind: Kind, place: &Access) -> Access {
        place.by(&kind.role(), Some(&self.secret.password))
    }

    /// Listening port and server, for those that look at no byte.
    fn doors(&self, canned: u16, postgres: Option<u16>) -> Vec<(u16, String)> {
        let mut doors = vec![(canned, format!("127.0.0.1:{}", self.servers.canned))];
        if let Some((port, server)) = postgres.zip(self.servers.postgres.as_ref()) {
            doors.push((port, format!("{}:{}", server.host, server.port)));
        }
        doors
    }

    fn forwarder(
        &self,
        kind: Kind,
        name: &str,
        doors: &[(u16, String)],
        scratch: &Scratch,
    ) -> Result<Program, BenchError> {
        if kind != Kind::Haproxy {
            let how = (kind == Kind::RelayUring).then_some("--io-uring");
            let routes = doors.iter().map(|(port, server)| format!("{port}={server}"));
            return Ok(self.binaries.own(name).arguments(["serve-relay"]).arguments(how).arguments(routes));
        }
        let text = configure::haproxy(doors, &self.sizes);
        let file = scratch.file(&format!("{name}.cfg"), &text)?;
        let mut program = Program::new(name, &self.binaries.haproxy).arguments([
            "-db".into(),
            "-f".into(),
            file.into_os_string(),
        ]);
        program.account = self.account;
        Ok(program)
    }

    fn pooler(&self, kind: Kind, name: &str, port: u16, scratch: &Scratch) -> Result<Program, BenchError> {
        let role = kind.role();
        let users = format!("\"{role}\" \"\"\n\"{role}_scram\" \"{}\"\n", self.secret.verifier);
        scratch.file(&format!("{kind}.users"), &users)?;
        scratch.file(&format!("{kind}.hba"), &configure::hba(kind))?;
        let text = configure::ini(kind, port, scratch.path(), &self.servers, &self.sizes, self.tls.as_ref());
        let ini = scratch.file(&format!("{name}.ini"), &text)?;
        let binary =
            if kind == Kind::Pgbouncer { self.binaries.pgbouncer.clone() } else { self.howdah(scratch)? };
        let mut program = Program::new(name, binary).arguments([ini]);
        program.account = self.account;
        Ok(program)
    }

    fn pgpool(
        &self,
        name: &str,
        (port, pcp_port): (u16, u16),
        scratch: &Scratch,
    ) -> Result<Program, BenchError> {
        let directory = scratch.fresh_directory(name, self.account)?;
        let text =
            configure::pgpool(port, pcp_port, &directory, &self.servers, &self.sizes, self.tls.as_ref());
        let kind = Kind::Pgpool2;
        // It must know the password itself, to log in to the server with it.
        let users = format!(
            "{role}:TEXT{}\n{role}_scram:TEXT{}\n",
            self.secret.password,
            self.secret.password,
            role = kind.role()
        );
        let file = |file: &str, text: &str| scratch.secret(&format!("{name}/{file}"), text, self.account);
        let (conf, hba) = (file("pgpool.conf", &text)?, file("pool_hba.conf", &configure::hba(kind))?);
        file("pool_passwd", &users)?;
        let pcp = file("pcp.conf", "")?;
        let mut program = Program::new(name, &self.binaries.pgpool).arguments([
            "-n".into(),
            "-f".into(),
            conf.into_os_string(),
            "-a".into(),
            hba.into_os_string(),
            "-F".into(),
            pcp.into_os_string(),
        ]);
        program.account = self.account;
        // A killed parent leaves its children behind; one that is interrupted does not.
        program.death_signal = "INT";
        program.stop_signal = Some("INT");
        Ok(program)
    }

    /// Howdah's binary where the children's user can read it: a build directory may be closed to it.
    fn howdah(&self, scratch: &Scratch) -> Result<PathBuf, BenchError> {
        if self.account.is_none() {
            return Ok(self.binaries.howdah.clone());
        }
        let copy = scratch.path().join("howdah");
        if !copy.exists() {
            let doing = format!("copying {}", self.binaries.howdah.display());
            fs::copy(&self.binaries.howdah, &copy).map_err(BenchError::io(doing))?;
        }
        Ok(copy)
    }
}
