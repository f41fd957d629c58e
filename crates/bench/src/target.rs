//! The targets: what each is called, whether it pools at all, and where a load finds it.

pub mod configure;
pub mod launch;

use crate::access::Access;
use crate::error::BenchError;
use crate::host::Stop;
use crate::process::Process;
use crate::session::Session;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What stands between clients and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing.
    Direct,
    /// Our blind relay: the floor.
    Relay,
    /// The same, with all sends of a batch of events in one call through io_uring.
    RelayUring,
    /// Debian's pgbouncer: what others are compared with.
    Pgbouncer,
    /// Debian's haproxy, in tcp mode.
    Haproxy,
    /// Debian's pgpool-II.
    Pgpool2,
    /// Howdah.
    Howdah {
        /// Its worker threads.
        workers: usize,
        /// A call for each send, whatever the kernel could do.
        epoll: bool,
    },
    /// Howdah that does not look at statements for session state, with one worker.
    HowdahOff,
    /// One that runs already, by the name it was given. Names live as long as this program.
    Given(&'static str),
}

impl Kind {
    /// The targets that a word on the command line means.
    pub fn named(word: &str) -> Option<Vec<Kind>> {
        Some(match word {
            "direct" => vec![Kind::Direct],
            "relay" => vec![Kind::Relay],
            "relay-uring" => vec![Kind::RelayUring],
            "pgbouncer" => vec![Kind::Pgbouncer],
            "haproxy" => vec![Kind::Haproxy],
            "pgpool2" => vec![Kind::Pgpool2],
            "howdah-off" => vec![Kind::HowdahOff],
            "howdah" => {
                vec![Kind::Howdah { workers: 1, epoll: false }, Kind::Howdah { workers: 2, epoll: false }]
            }
            _ => {
                let word = word.strip_prefix("howdah-")?;
                let number = word.strip_suffix("-epoll");
                let workers = number.unwrap_or(word).parse().ok().filter(|&workers| workers > 0)?;
                vec![Kind::Howdah { workers, epoll: number.is_some() }]
            }
        })
    }

    /// Whether it is Howdah.
    pub fn is_howdah(self) -> bool {
        matches!(self, Kind::Howdah { .. } | Kind::HowdahOff)
    }

    /// Its own role at PostgreSQL, by which its server connections are told from the others'.
    pub fn role(self) -> String {
        format!("bench_{self}").replace('-', "_")
    }

    /// How many threads it works with; none if it is no process, or not ours.
    pub fn workers(self) -> usize {
        match self {
            Kind::Direct | Kind::Given(_) => 0,
            Kind::Relay
            | Kind::RelayUring
            | Kind::Pgbouncer
            | Kind::Haproxy
            | Kind::Pgpool2
            | Kind::HowdahOff => 1,
            Kind::Howdah { workers, .. } => workers,
        }
    }

    /// Whether each client has a server connection of its own, and clients beyond them are refused.
    pub fn is_one_to_one(self) -> bool {
        matches!(self, Kind::Direct | Kind::Relay | Kind::RelayUring | Kind::Haproxy)
    }

    /// Whether it opens a server connection with each client's, so that it runs out of descriptors first.
    pub fn has_two_sockets_a_client(self) -> bool {
        matches!(self, Kind::Relay | Kind::RelayUring | Kind::Haproxy)
    }

    /// Whether the canned-reply server can stand behind it: pgpool has one server, which is PostgreSQL.
    pub fn reaches_canned(self) -> bool {
        !matches!(self, Kind::Pgpool2 | Kind::Given(_))
    }

    /// Whether it is started for each step alone: pgpool holds a server connection a child as long as it
    /// lives, and would leave none for the others.
    pub fn is_short_lived(self) -> bool {
        self == Kind::Pgpool2
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Direct => f.pad("direct"),
            Kind::Relay => f.pad("relay"),
            Kind::RelayUring => f.pad("relay-uring"),
            Kind::Pgbouncer => f.pad("pgbouncer"),
            Kind::Haproxy => f.pad("haproxy"),
            Kind::Pgpool2 => f.pad("pgpool2"),
            Kind::Howdah { workers, epoll: false } => f.pad(&format!("howdah-{workers}")),
            Kind::Howdah { workers, epoll: true } => f.pad(&format!("howdah-{workers}-epoll")),
            Kind::HowdahOff => f.pad("howdah-off"),
            Kind::Given(name) => f.pad(name),
        }
    }
}

/// The servers behind the targets.
#[derive(Debug, Clone)]
pub struct Servers {
    /// PostgreSQL, where a load needs it; with the password of the targets' roles if it asks for one.
    pub postgres: Option<Access>,
    /// The port of the canned-reply server.
    pub canned: u16,
}

/// The database behind which the canned-reply server stands.
pub const CANNED_DATABASE: &str = "canned";

/// A target that somebody else has started.
#[derive(Debug, Clone)]
pub struct Given {
    /// What it is called in the report.
    pub name: &'static str,
    /// Where it listens, and whom it takes.
    pub access: Access,
    /// Its process on this machine, for CPU and memory.
    pub pid: Option<u32>,
}

impl Given {
    /// Reads `NAME=postgres://...` or `NAME=postgres://...,pid=N`.
    pub fn parse(text: &str) -> Result<Given, BenchError> {
        let refuse = |why: &str| BenchError::Options(format!("--target {why}: NAME=postgres://...[,pid=N]"));
        let (name, rest) = text.split_once('=').ok_or_else(|| refuse("needs a name and a URL"))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(plain) || Kind::named(name).is_some() {
            return Err(refuse("needs a name of its own, of letters, digits, '-', '_' and '.'"));
        }
        let (url, pid) = match rest.rsplit_once(",pid=") {
            None => (rest, None),
            Some((url, pid)) => (url, Some(pid.parse().map_err(|_| refuse("has a pid that is no number"))?)),
        };
        let name = Box::leak(name.to_owned().into_boxed_str());
        Ok(Given { name, access: Access::parse(url)?, pid })
    }
}

/// A target that can take load.
#[derive(Debug)]
pub struct Target {
    /// Which.
    pub kind: Kind,
    process: Option<Process>,
    pid: Option<u32>,
    access: Option<Access>,
    canned: Option<u16>,
}

impl Target {
    fn await_ready(&mut self, limit: Duration, stop: &Stop) -> Result<(), BenchError> {
        let mut doors: Vec<_> = self.access.iter().cloned().collect();
        doors.extend(self.canned.map(|port| Access {
            host: "127.0.0.1".to_owned(),
            port,
            user: self.kind.role(),
            password: None,
            database: CANNED_DATABASE.to_owned(),
        }));
        let ready = || {
            for door in &doors {
                let mut session = Session::enter(door).map_err(|error| error.to_string())?;
                session.query("select 1").map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        match &mut self.process {
            Some(process) => process.await_ready(limit, stop, ready),
            // What is not ours is there already, or it is not.
            None => ready().map_err(|why| BenchError::Unreachable { name: self.kind.to_string(), why }),
        }
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Where PostgreSQL is behind it.
    pub fn postgres(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// Where the canned-reply server is behind it.
    pub fn canned(&self) -> Option<SocketAddr> {
        self.canned.map(|port| (Ipv4Addr::LOCALHOST, port).into())
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
