//! Everything that runs during a benchmark, started in order and ended in the opposite one.

use crate::error::BenchError;
use crate::host::{self, Account, Pinning, Ports, Scratch, Stop};
use crate::options::Options;
use crate::plan::{Load, Plan};
use crate::postgres::{Making, Postgres};
use crate::process::{Process, Program};
use crate::session::Session;
use crate::target::{CANNED_DATABASE, Kind, Launch, Servers, Target};
use std::path::PathBuf;
use std::time::Duration;

/// The servers and targets of a run. Fields are dropped from top to bottom: poolers before what is
/// behind them, the directory last.
#[derive(Debug)]
pub struct Arena {
    /// The targets that live through the whole run.
    pub targets: Vec<Target>,
    /// PostgreSQL, where a load needs it.
    pub postgres: Option<Postgres>,
    canned: Process,
    /// How targets are started.
    pub launch: Launch,
    ports: Ports,
    pinning: Option<Pinning>,
    workers_max: usize,
    /// PostgreSQL's directory of programs; empty where no load needs it.
    pub programs: PathBuf,
    /// The signal to stop at.
    pub stop: Stop,
    /// Logs and settings.
    pub scratch: Scratch,
}

/// Server connections, the watcher's and the like beyond what a plan counts.
const FILES_SPARE: u64 = 500;

/// What was found to be in order before anything was started.
#[derive(Debug)]
pub struct Checked {
    launch: Launch,
    programs: PathBuf,
    pinning: Option<Pinning>,
    workers_max: usize,
    ports: Ports,
}

impl Checked {
    /// Looks for programs, ports, descriptors and cores.
    pub fn check(options: &Options, plan: &Plan) -> Result<Checked, BenchError> {
        let own = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
        let clients_max = plan.loads.iter().map(|load| load.clients()).max().unwrap_or(1);
        let mut launch = Launch {
            servers: Servers { postgres: None, canned: 0 },
            howdah: options.howdah.clone().unwrap_or_else(|| own.with_file_name("howdah")),
            pgbouncer: options.pgbouncer.clone(),
            own,
            account: Account::for_children()?,
            pool_size: options.pool_size,
            clients_max: clients_max + 100,
        };
        launch.check(&plan.targets)?;
        let needs_postgres = plan.loads.iter().any(|load| load.needs_postgres());
        let programs =
            if needs_postgres { host::postgres_programs(options.pg_bin.as_deref())? } else { PathBuf::new() };
        // The relay has two sockets a client, everything else one.
        host::allow_files(2 * clients_max as u64 + FILES_SPARE)?;
        let workers_max = plan.targets.iter().map(|kind| kind.workers()).max().unwrap_or(0).max(1);
        let pinning = if options.pin { Some(Pinning::plan(workers_max)?) } else { None };
        let mut ports = Ports::from(options.base_port);
        launch.servers.canned = ports.take()?;
        launch.servers.postgres = if needs_postgres { Some(ports.take()?) } else { None };
        Ok(Checked { launch, programs, pinning, workers_max, ports })
    }
}

impl Arena {
    /// Starts everything but the targets.
    pub fn open(checked: Checked, options: &Options, plan: &Plan, stop: Stop) -> Result<Arena, BenchError> {
        let Checked { launch, programs, pinning, workers_max, ports } = checked;
        let rest = pinning.as_ref().map(|pinning| pinning.rest(workers_max));
        if let Some(cores) = &rest {
            Pinning::apply_to_self(cores)?;
        }
        let scratch = Scratch::create()?;
        let canned = start_canned(&launch, options.canned_threads, rest.clone(), &scratch, &stop)?;
        let roles: Vec<_> = plan.targets.iter().map(|kind| kind.role()).collect();
        let postgres = match launch.servers.postgres {
            None => None,
            Some(port) => {
                let making = Making {
                    programs: &programs,
                    scratch: &scratch,
                    account: launch.account,
                    cores: rest,
                    port,
                    roles: &roles,
                    scale: options.scale,
                };
                Some(Postgres::start(making, &stop)?)
            }
        };
        Ok(Arena {
            targets: Vec::new(),
            postgres,
            canned,
            launch,
            ports,
            pinning,
            workers_max,
            programs,
            stop,
            scratch,
        })
    }

    /// Starts the targets that live through the run.
    pub fn start_targets(&mut self, plan: &Plan) -> Result<(), BenchError> {
        // Memory is measured on fresh processes, so a plan of memory alone needs no lasting ones.
        if plan.loads.iter().all(|load| matches!(load, Load::Memory { .. })) {
            return Ok(());
        }
        for &kind in &plan.targets {
            let target = self.start_target(kind, &kind.to_string())?;
            self.targets.push(target);
        }
        Ok(())
    }

    /// Starts one more target, with its log and settings under that name.
    pub fn start_target(&mut self, kind: Kind, name: &str) -> Result<Target, BenchError> {
        let cores = self.pinning.as_ref().map(|pinning| pinning.pooler(kind.workers().max(1)));
        self.launch.start(kind, name, cores, &self.scratch, &mut self.ports, &self.stop)
    }

    /// The cores for pgbench.
    pub fn cores_for_load(&self) -> Option<String> {
        self.pinning.as_ref().map(|pinning| pinning.rest(self.workers_max))
    }

    /// The lasting target of that kind.
    pub fn target(&mut self, kind: Kind) -> Option<&mut Target> {
        self.targets.iter_mut().find(|target| target.kind == kind)
    }

    /// An error once a server behind the targets is gone.
    pub fn check_servers(&mut self) -> Result<(), BenchError> {
        match self.canned.exited()? {
            None => Ok(()),
            Some(status) => Err(BenchError::ChildExited {
                name: self.canned.name().to_owned(),
                status,
                last_words: host::last_words(&self.canned.said()),
            }),
        }
    }
}

fn start_canned(
    launch: &Launch,
    threads: usize,
    cores: Option<String>,
    scratch: &Scratch,
    stop: &Stop,
) -> Result<Process, BenchError> {
    let port = launch.servers.canned;
    let mut program = Program::new("the canned-reply server", &launch.own).arguments([
        "serve-canned".to_owned(),
        format!("--port={port}"),
        format!("--threads={threads}"),
    ]);
    program.cores = cores;
    let mut process = program.start(&scratch.path().join("canned.log"))?;
    process.await_ready(Duration::from_secs(10), stop, || {
        let address = (std::net::Ipv4Addr::LOCALHOST, port).into();
        Session::open(address, "bench", CANNED_DATABASE).map(drop).map_err(|error| error.to_string())
    })?;
    Ok(process)
}
