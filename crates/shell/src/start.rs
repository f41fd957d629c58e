//! The start of the process and its end: from settings to threads that run, and back.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use auth::scram::MockKey;
use hub::Inputs;
use model::WorkerId;
use settings::Settings;
use tokio::sync::mpsc;

use crate::accept::Listeners;
use crate::control::{self, Ending};
use crate::listen::{ListenFault, ListenOptions, Listener, UnixOptions, listen};
use crate::log::{self, LogFault};
use crate::pidfile::{Pidfile, PidfileFault};
use crate::privileges::{self, PrivilegesFault};
use crate::reading::{self, Files};
use crate::shared::{Hub, Shared, tcp_options};
use crate::tls::{ClientTls, ServerTls};
use crate::worker::{Errand, Worker, prepare};
use crate::{random, signal, systemd};

/// Why the process does not start.
#[derive(Debug)]
pub enum StartFault {
    /// The settings, or a file that they name; a line each.
    Settings(Vec<String>),
    /// `-d` without a pidfile.
    DaemonNeedsPidfile,
    /// No socket to listen on.
    NowhereToListen,
    /// Root is not who may run this.
    IsRoot,
    /// The log.
    Log(LogFault),
    /// A socket to listen on.
    Listen(ListenFault),
    /// The pidfile.
    Pidfile(PidfileFault),
    /// The user to become.
    Privileges(PrivilegesFault),
    /// Threads, polls, the runtime.
    System(io::Error),
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFault::Settings(problems) => {
                problems.iter().try_for_each(|problem| writeln!(f, "{problem}"))?;
                f.write_str("cannot load the settings")
            }
            StartFault::DaemonNeedsPidfile => f.write_str("daemon needs pidfile configured"),
            StartFault::NowhereToListen => {
                f.write_str("nowhere to listen: neither listen_addr nor unix_socket_dir is set")
            }
            StartFault::IsRoot => f.write_str(
                "Howdah should not run as root: start it as another user, or say which with -u or `user`",
            ),
            StartFault::Log(fault) => fault.fmt(f),
            StartFault::Listen(fault) => fault.fmt(f),
            StartFault::Pidfile(fault) => fault.fmt(f),
            StartFault::Privileges(fault) => fault.fmt(f),
            StartFault::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartFault {}

/// What the command line says beside the files.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions {
    /// `-d`: go to the background.
    pub daemon: bool,
}

/// Set in the environment, this lets root run it: in a container that has nobody else.
const ROOT_ALLOWED: &str = "HOWDAH_ALLOW_ROOT";

/// Runs a pooler until it is told to end.
///
/// # Errors
/// Why it could not start.
pub fn run(files: Files, options: StartOptions) -> Result<(), StartFault> {
    // Read once, so that all that follows agrees; the warnings are told once the log is there.
    let (inputs, warnings) = files.read_all().map_err(StartFault::Settings)?;
    let settings = inputs.settings.clone();
    let tls = reading::load_tls_files(&settings).map_err(|fault| StartFault::Settings(vec![fault]))?;
    let user = files.user.clone().or_else(|| settings.general.user.clone()).filter(|user| !user.is_empty());
    let pidfile = settings.general.pidfile.clone();
    if options.daemon && pidfile.is_empty() {
        return Err(StartFault::DaemonNeedsPidfile);
    }
    if !pidfile.is_empty() {
        Pidfile::check(Path::new(&pidfile)).map_err(StartFault::Pidfile)?;
    }
    signal::ignore_pipe();
    // First, so that whoever finds the pooler finds this too.
    let health = health_socket(&settings)?;
    let (listeners, are_own) = sockets(&settings)?;
    if let Some(user) = &user
        && privileges::is_root()
    {
        privileges::become_user(user).map_err(StartFault::Privileges)?;
    }
    if privileges::is_root() && std::env::var_os(ROOT_ALLOWED).is_none() {
        return Err(StartFault::IsRoot);
    }
    if options.daemon {
        privileges::go_to_background().map_err(StartFault::System)?;
    }
    let quiet = files.quiet || options.daemon;
    // Before any thread is there, and before the pidfile says whom to signal.
    signal::hold();
    log::init(reading::log_options(&settings, quiet)).map_err(StartFault::Log)?;
    let pidfile = match &*pidfile {
        "" => None,
        path => Some(Pidfile::create(Path::new(path)).map_err(StartFault::Pidfile)?),
    };
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let outcome = serve(files, inputs, tls, (listeners, are_own), health);
    drop(pidfile);
    log::flush(Duration::from_secs(1));
    outcome
}

/// The sockets to listen on, and whether we made them ourselves.
fn sockets(settings: &Settings) -> Result<(Vec<Listener>, bool), StartFault> {
    let inherited = systemd::listeners().map_err(StartFault::Listen)?;
    if !inherited.is_empty() {
        return Ok((inherited, false));
    }
    let general = &settings.general;
    let unix = (!general.unix_socket_dir.is_empty()).then(|| UnixOptions {
        dir: general.unix_socket_dir.clone(),
        mode: general.unix_socket_mode,
        group: Some(general.unix_socket_group.clone()).filter(|group| !group.is_empty()),
    });
    let options = ListenOptions {
        addresses: general.listen_addr.clone(),
        port: general.listen_port,
        backlog: i32::try_from(general.listen_backlog).unwrap_or(i32::MAX),
        reuse_port: general.so_reuseport,
        defer_accept: general.tcp_defer_accept,
        unix,
    };
    let listeners = listen(&options).map_err(StartFault::Listen)?;
    if listeners.is_empty() { Err(StartFault::NowhereToListen) } else { Ok((listeners, true)) }
}

/// The socket of the health endpoint, if there is to be one.
fn health_socket(settings: &Settings) -> Result<Option<TcpListener>, StartFault> {
    // An address that is none was refused when it was read.
    let Ok(address) = settings.general.health_listen.parse::<SocketAddr>() else { return Ok(None) };
    let bound = TcpListener::bind(address);
    bound.map(Some).map_err(|error| StartFault::Listen(ListenFault::Address(address, error)))
}

fn serve(
    files: Files,
    inputs: Inputs,
    tls: (ClientTls, ServerTls),
    (listeners, are_own): (Vec<Listener>, bool),
    health: Option<TcpListener>,
) -> Result<(), StartFault> {
    let descriptors = privileges::raise_descriptor_limit();
    tracing::info!("kernel file descriptor limit: {descriptors}");
    for listener in &listeners {
        tracing::info!("listening on {}", listener_name(listener));
    }
    if let Some(address) = health.as_ref().and_then(|socket| socket.local_addr().ok()) {
        tracing::info!("health endpoint on {address}");
    }
    let workers = worker_count(&inputs.settings);
    let handles: Result<Vec<_>, _> = (0..workers).map(|number| prepare(WorkerId(number))).collect();
    let handles = handles.map_err(StartFault::System)?;
    let (control, orders) = mpsc::unbounded_channel();
    let options = tcp_options(&inputs.settings);
    let hub = Hub::new(inputs, MockKey::new(random::bytes()));
    let shared = Arc::new(Shared::new(hub, handles.into_boxed_slice(), control, tls.0, tls.1));
    let ending = Ending::default();
    let listeners = Listeners::new(listeners, are_own, options);
    let threads = start_workers(&shared, &listeners, &ending).map_err(StartFault::System)?;
    tracing::info!("process up: {}, {workers} workers", crate::version_line());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .build()
        .map_err(StartFault::System)?;
    let result = runtime.block_on(control::run(Arc::clone(&shared), orders, files, ending, health));
    for handle in &shared.workers {
        handle.ask(Errand::Stop);
    }
    for thread in threads {
        // A worker that panicked has said so; the process ends either way.
        let _ = thread.join();
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
    listeners.remove_files();
    result.map_err(StartFault::System)
}

fn start_workers(
    shared: &Arc<Shared>,
    listeners: &Listeners,
    ending: &Ending,
) -> io::Result<Vec<std::thread::JoinHandle<()>>> {
    let start = |number: usize| {
        let worker = Worker::new(WorkerId(number as u16), Arc::clone(shared), listeners.clone());
        let ending = ending.clone();
        std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            // Sessions that a dead worker held would never be closed: better none than such a process.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run()));
            match outcome {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(target: log::FATAL, "worker {number}: {error}"),
                Err(_) => tracing::error!(target: log::FATAL, "worker {number} has panicked"),
            }
            ending.reach();
        })
    };
    (0..shared.workers.len()).map(start).collect()
}

fn worker_count(settings: &Settings) -> u16 {
    let asked = settings.general.workers;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let count = if asked == 0 { cores } else { asked as usize };
    u16::try_from(count.clamp(1, 256)).unwrap_or(1)
}

fn listener_name(listener: &Listener) -> String {
    match listener {
        Listener::Tcp(socket) => {
            socket.local_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string())
        }
        Listener::Unix { listener, .. } => {
            let address = listener.local_addr().ok();
            let path = address.as_ref().and_then(|address| address.as_pathname());
            path.map_or_else(|| "unix:@".to_owned(), |path| format!("unix:{}", path.display()))
        }
    }
}
