//! Everything that runs during a stage, started in order and ended in the opposite one.

use crate::access::Access;
use crate::error::BenchError;
use crate::host::{self, Account, Pinning, Ports, Scratch, Stop, existing};
use crate::options::Options;
use crate::plan::{Load, Login, Plan, Step};
use crate::postgres::{DATABASE, DATABASE_GIVEN, Making, Postgres};
use crate::process::{Process, Program};
use crate::run::Called;
use crate::scenario::Stage;
use crate::secret::Secret;
use crate::session::Session;
use crate::setup::{Filling, Setup};
use crate::target::configure::Certificate;
use crate::target::launch::{Binaries, Launch};
use crate::target::{CANNED_DATABASE, Kind, Servers, Target};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The servers and targets of a stage. Fields are dropped from top to bottom: poolers before what is
/// behind them, the directory last.
#[derive(Debug)]
pub struct Arena {
    /// The targets that run now.
    pub targets: Vec<Target>,
    /// PostgreSQL, where a load needs it.
    pub postgres: Option<Postgres>,
    canned: Process,
    /// How targets are started.
    pub launch: Launch,
    /// How large everything is.
    pub setup: Setup,
    /// Whether steps that cannot end well are run all the same.
    pub shows_walls: bool,
    ports: Ports,
    pinning: Option<Pinning>,
    workers_max: usize,
    /// How many files a process may open.
    pub files_max: u64,
    /// PostgreSQL's directory of programs; empty where no load needs it.
    pub programs: PathBuf,
    /// sysbench's program.
    pub sysbench: PathBuf,
    /// The signal to stop at.
    pub stop: Stop,
    /// Logs and settings.
    pub scratch: Scratch,
}

/// Server connections, the watcher's and the like beyond what a plan counts.
pub const FILES_SPARE: u64 = 500;
const OPENSSL: &str = "/usr/bin/openssl";

/// What was found to be in order before anything was started.
#[derive(Debug)]
pub struct Checked {
    launch: Launch,
    programs: PathBuf,
    pinning: Option<Pinning>,
    workers_max: usize,
    files_max: u64,
    ports: Ports,
    postgres: Option<u16>,
    given: Option<Access>,
    secret: Secret,
}

/// Where the programs are that the command line means.
pub fn binaries(options: &Options, called: Called) -> Result<Binaries, BenchError> {
    let own = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
    let usual = match called {
        Called::Alone => own.with_file_name("howdah"),
        Called::ByHowdah => own.clone(),
    };
    Ok(Binaries {
        howdah: options.howdah.clone().unwrap_or(usual),
        pgbouncer: options.pgbouncer.clone(),
        haproxy: options.haproxy.clone(),
        pgpool: options.pgpool.clone(),
        own,
        called,
    })
}

impl Checked {
    /// Looks for programs, ports, descriptors and cores.
    pub fn check(options: &Options, stage: &Stage, binaries: &Binaries) -> Result<Checked, BenchError> {
        let Plan { targets, loads, .. } = &stage.plan;
        for &kind in targets {
            binaries.check(kind)?;
        }
        let needs_postgres = loads.iter().any(|load| load.needs_postgres());
        let programs =
            if needs_postgres { host::postgres_programs(options.pg_bin.as_deref())? } else { PathBuf::new() };
        if Filling::of(loads).sysbench {
            let remedy =
                "install Debian's package sysbench, give --sysbench PATH, or choose other loads with --load";
            existing("sysbench", &options.sysbench, remedy)?;
        }
        if wants_tls(loads) {
            existing("openssl", Path::new(OPENSSL), "install it, or choose other logins with --login")?;
        }
        let clients_max = loads.iter().map(|load| load.clients()).max().unwrap_or(1);
        let files_max = host::allow_files(clients_max as u64 + FILES_SPARE)?;
        let workers_max = targets.iter().map(|kind| kind.workers()).max().unwrap_or(0).max(1);
        let pinning = if options.pin { Some(Pinning::plan(workers_max)?) } else { None };
        let mut ports = Ports::from(options.base_port);
        let canned = ports.take()?;
        let given = options.postgres()?.filter(|_| needs_postgres);
        if let Some(given) = &given {
            Session::enter(given).map_err(|why| unreachable(given, &why.to_string()))?;
        }
        let running = options.given()?;
        for target in &running {
            knock(&target.access)?;
        }
        let postgres = if needs_postgres && given.is_none() { Some(ports.take()?) } else { None };
        let secret = Secret::new()?;
        let server = match (&given, postgres) {
            (Some(given), _) => {
                Some(Access { database: DATABASE_GIVEN.to_owned(), ..given.by("", Some(&secret.password)) })
            }
            (None, Some(port)) => Some(Access {
                host: "127.0.0.1".to_owned(),
                port,
                user: String::new(),
                password: None,
                database: DATABASE.to_owned(),
            }),
            (None, None) => None,
        };
        let mut sizes = stage.setup.sizes.clone();
        let haproxy_files = files_max.saturating_sub(FILES_SPARE) / 2;
        sizes.haproxy_clients_max = sizes.haproxy_clients_max.min(haproxy_files as usize).max(1);
        let launch = Launch {
            servers: Servers { postgres: server, canned },
            binaries: binaries.clone(),
            account: Account::for_children()?,
            sizes,
            tls: None,
            secret: secret.clone(),
            given: running,
        };
        Ok(Checked { launch, programs, pinning, workers_max, files_max, ports, postgres, given, secret })
    }
}

fn unreachable(access: &Access, why: &str) -> BenchError {
    BenchError::Unreachable { name: access.to_string(), why: why.to_owned() }
}

/// Whether anybody listens there. Its database may be one that is still to be made.
fn knock(access: &Access) -> Result<(), BenchError> {
    TcpStream::connect_timeout(&access.address()?, Duration::from_secs(5))
        .map(drop)
        .map_err(|error| unreachable(access, &error.to_string()))
}

fn wants_tls(loads: &[Load]) -> bool {
    loads.iter().any(|load| load.login() == Login::Tls)
}

impl Arena {
    /// Starts everything but the targets.
    pub fn open(checked: Checked, options: &Options, stage: &Stage, stop: Stop) -> Result<Arena, BenchError> {
        let Checked { mut launch, programs, pinning, workers_max, files_max, ports, postgres, given, secret } =
            checked;
        let Plan { targets, loads, .. } = &stage.plan;
        let rest = pinning.as_ref().map(|pinning| pinning.rest(workers_max));
        if let Some(cores) = &rest {
            Pinning::apply_to_self(cores)?;
        }
        let scratch = Scratch::create()?;
        if wants_tls(loads) {
            launch.tls = Some(certificate(&scratch, launch.account, &stop)?);
        }
        let canned = start_canned(&launch, options.canned_threads, rest.clone(), &scratch, &stop)?;
        let ours = || targets.iter().filter(|kind| !matches!(kind, Kind::Given(_)));
        let making = Making {
            programs: &programs,
            sysbench: &options.sysbench,
            scratch: &scratch,
            account: launch.account,
            cores: rest,
            roles: ours().flat_map(|kind| [kind.role(), format!("{}_scram", kind.role())]).collect(),
            asked: ours()
                .filter(|kind| kind.is_one_to_one())
                .map(|kind| format!("{}_scram", kind.role()))
                .collect(),
            verifier: &secret.verifier,
            tls: launch.tls.as_ref(),
            setup: &stage.setup,
            filling: Filling::of(loads),
        };
        let postgres = match (postgres, &given) {
            (Some(port), _) => Some(Postgres::start(&making, port, &stop)?),
            (None, Some(given)) => Some(Postgres::visit(&making, given, &stop)?),
            (None, None) => None,
        };
        let mut setup = stage.setup.clone();
        if let (Some(_), Some(postgres)) = (&given, &postgres) {
            setup = setup.walled(postgres.connections_max()?);
        }
        Ok(Arena {
            targets: Vec::new(),
            postgres,
            canned,
            launch,
            setup,
            shows_walls: stage.shows_walls,
            ports,
            pinning,
            workers_max,
            files_max,
            programs,
            sysbench: options.sysbench.clone(),
            stop,
            scratch,
        })
    }

    /// Starts the targets that live through the stage.
    pub fn start_targets(&mut self, plan: &Plan) -> Result<(), BenchError> {
        // Memory is measured on fresh processes, so a plan of memory alone needs no lasting ones.
        if plan.loads.iter().all(|load| matches!(load, Load::Memory { .. })) {
            return Ok(());
        }
        for &kind in &plan.targets {
            if self.is_short_lived(kind) {
                continue;
            }
            let target = self.start_target(kind, &kind.to_string())?;
            self.targets.push(target);
        }
        Ok(())
    }

    /// Whether a target is started for each step alone: some always are; all where a server's limit is shown, so
    /// that nobody's idle pool takes from what the others may have.
    pub fn is_short_lived(&self, kind: Kind) -> bool {
        kind.is_short_lived() || (self.shows_walls && !matches!(kind, Kind::Given(_)))
    }

    /// Starts one more target, with its log and settings under that name.
    pub fn start_target(&mut self, kind: Kind, name: &str) -> Result<Target, BenchError> {
        let cores = self.pinning.as_ref().map(|pinning| pinning.pooler(kind.workers().max(1)));
        self.launch.start(kind, name, cores, &self.scratch, &mut self.ports, &self.stop)
    }

    /// Starts a target for this step alone, sized for it.
    pub fn start_for_step(&mut self, step: Step) -> Result<(), BenchError> {
        self.stop_target(step.target);
        self.launch.sizes.pgpool_children = self.setup.pgpool_children(step.load.clients());
        let target = self.start_target(step.target, &step.target.to_string())?;
        self.targets.push(target);
        Ok(())
    }

    /// Ends a target.
    pub fn stop_target(&mut self, kind: Kind) {
        self.targets.retain(|target| target.kind != kind);
    }

    /// The cores for pgbench.
    pub fn cores_for_load(&self) -> Option<String> {
        self.pinning.as_ref().map(|pinning| pinning.rest(self.workers_max))
    }

    /// The target of that kind, if it runs.
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
    let mut program = launch.binaries.own("the canned-reply server").arguments([
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

/// For this run alone, signed by itself: clients take it unseen.
fn certificate(scratch: &Scratch, account: Option<Account>, stop: &Stop) -> Result<Certificate, BenchError> {
    let (certificate, key) = (scratch.path().join("tls.crt"), scratch.path().join("tls.key"));
    Program::new("openssl", OPENSSL)
        .arguments(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .arguments(["-days", "3", "-subj", "/CN=localhost"])
        .arguments(["-keyout".into(), key.clone().into_os_string()])
        .arguments(["-out".into(), certificate.clone().into_os_string()])
        .succeed(&scratch.path().join("openssl.log"), Duration::from_secs(30), stop)?;
    scratch.keep_secret(&key, account)?;
    Ok(Certificate { certificate, key })
}
