//! What the benchmark needs of the machine: a user for programs that refuse to run as root, free ports,
//! descriptors, cores, a place for files, a signal to stop at. All of it through safe calls and the
//! util-linux programs that every Debian has.

use crate::error::BenchError;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A user to run children as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Account {
    /// The user for children: nobody else when we are an ordinary user; `postgres` or `nobody` when we
    /// are root, as neither PostgreSQL nor pgbouncer runs as root.
    pub fn for_children() -> Result<Option<Account>, BenchError> {
        let own = fs::metadata("/proc/self").map_err(BenchError::io("reading /proc/self"))?.uid();
        if own != 0 {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(BenchError::io("reading /etc/passwd"))?;
        ["postgres", "nobody"].iter().find_map(|name| Account::in_passwd(&passwd, name)).map(Some).ok_or_else(
            || {
                BenchError::Options(
                    "run by root, this needs a user called postgres or nobody for its servers".into(),
                )
            },
        )
    }

    fn in_passwd(passwd: &str, name: &str) -> Option<Account> {
        let mut fields = passwd.lines().map(|line| line.split(':')).find_map(|mut fields| {
            let found = fields.next() == Some(name);
            found.then_some(fields)
        })?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { uid, gid })
    }
}

/// Gives out ports on 127.0.0.1: free ones, or from a first one on.
#[derive(Debug)]
pub struct Ports {
    next: Option<u16>,
}

impl Ports {
    /// From `base` on, or wherever the system has free ones.
    pub fn from(base: Option<u16>) -> Ports {
        Ports { next: base }
    }

    /// A port that nobody listens at now.
    pub fn take(&mut self) -> Result<u16, BenchError> {
        let Some(port) = self.next else {
            let listener =
                TcpListener::bind(("127.0.0.1", 0)).map_err(BenchError::io("looking for a free port"))?;
            return Ok(listener.local_addr().map_err(BenchError::io("looking for a free port"))?.port());
        };
        self.next = Some(port.checked_add(1).ok_or(BenchError::PortInUse(port))?);
        TcpListener::bind(("127.0.0.1", port)).map_err(|_| BenchError::PortInUse(port))?;
        Ok(port)
    }
}

/// A directory under the system's temporary one, gone when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes it, readable by the children's user, and removes what killed runs have left.
    pub fn create() -> Result<Scratch, BenchError> {
        let parent = std::env::temp_dir();
        for entry in fs::read_dir(&parent).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_orphan) {
                // It may belong to another user; then that user's next run removes it.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = parent.join(format!("{SCRATCH}{}", std::process::id()));
        let doing = || BenchError::io(format!("making {}", path.display()));
        fs::create_dir(&path).map_err(doing())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(doing())?;
        Ok(Scratch { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it that belongs to `account`.
    pub fn directory(&self, name: &str, account: Option<Account>) -> Result<PathBuf, BenchError> {
        let path = self.path.join(name);
        let doing = || BenchError::io(format!("making {}", path.display()));
        fs::create_dir(&path).map_err(doing())?;
        if let Some(Account { uid, gid }) = account {
            chown(&path, Some(uid), Some(gid)).map_err(doing())?;
        }
        Ok(path)
    }

    /// A directory in it that belongs to `account`, empty even if there was one.
    pub fn fresh_directory(&self, name: &str, account: Option<Account>) -> Result<PathBuf, BenchError> {
        // There is none the first time.
        let _ = fs::remove_dir_all(self.path.join(name));
        self.directory(name, account)
    }

    /// A file in it that only `account` may read.
    pub fn secret(&self, name: &str, content: &str, account: Option<Account>) -> Result<PathBuf, BenchError> {
        let path = self.file(name, content)?;
        self.keep_secret(&path, account)?;
        Ok(path)
    }

    /// Lets only `account` read a file.
    pub fn keep_secret(&self, path: &Path, account: Option<Account>) -> Result<(), BenchError> {
        let doing = || BenchError::io(format!("closing {}", path.display()));
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(doing())?;
        match account {
            Some(Account { uid, gid }) => chown(path, Some(uid), Some(gid)).map_err(doing()),
            None => Ok(()),
        }
    }

    /// A file in it that everyone may read.
    pub fn file(&self, name: &str, content: &str) -> Result<PathBuf, BenchError> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(BenchError::io(format!("writing {}", path.display())))?;
        Ok(path)
    }
}

const SCRATCH: &str = "howdah-bench-";

/// Whether a directory of that name was made by a run that is over.
fn is_orphan(name: &str) -> bool {
    let pid = name.strip_prefix(SCRATCH).and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A postmaster that is still dying may add a file while we remove them; nothing depends on it.
        for _ in 0..3 {
            if fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }
}

/// The cores of the poolers and those of everything else.
#[derive(Debug, Clone)]
pub struct Pinning {
    cores: usize,
}

impl Pinning {
    /// For poolers of up to `workers` threads on this machine.
    pub fn plan(workers: usize) -> Result<Pinning, BenchError> {
        let cores = cores();
        if cores <= workers {
            return Err(BenchError::Options(format!(
                "--pin needs more cores than workers: this machine has {cores}, a target has {workers} workers"
            )));
        }
        Ok(Pinning { cores })
    }

    /// For a pooler of that many threads.
    pub fn pooler(&self, workers: usize) -> String {
        format!("0-{}", workers - 1)
    }

    /// For everything else beside poolers of at most `workers` threads.
    pub fn rest(&self, workers: usize) -> String {
        format!("{workers}-{}", self.cores - 1)
    }

    /// Puts this process there, with every thread it will start.
    pub fn apply_to_self(cores: &str) -> Result<(), BenchError> {
        let pid = std::process::id().to_string();
        run_quietly(Command::new("taskset").args(["-a", "-p", "-c", cores, &pid]), "taskset")
    }
}

/// Cores of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Sees to it that this process and its children may open `needed` files, and more if there are more; says how
/// many.
pub fn allow_files(needed: u64) -> Result<u64, BenchError> {
    let limits =
        fs::read_to_string("/proc/self/limits").map_err(BenchError::io("reading /proc/self/limits"))?;
    let Some((soft, hard)) = open_files(&limits) else { return Ok(u64::MAX) };
    if hard < needed {
        return Err(BenchError::Descriptors { needed, allowed: hard });
    }
    if soft == hard {
        return Ok(hard);
    }
    let pid = std::process::id().to_string();
    run_quietly(
        Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={hard}:{hard}")]),
        "prlimit",
    )?;
    Ok(hard)
}

fn open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    let mut numbers = line.split_whitespace().skip(3);
    let number = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    Some((number(numbers.next()?)?, number(numbers.next()?)?))
}

fn run_quietly(command: &mut Command, name: &str) -> Result<(), BenchError> {
    let output = command.stdin(Stdio::null()).output().map_err(BenchError::io(format!("running {name}")))?;
    if output.status.success() {
        return Ok(());
    }
    let last_words = last_words(&String::from_utf8_lossy(&output.stderr));
    Err(BenchError::ProgramFailed { name: name.to_owned(), status: output.status, last_words })
}

/// The last line with anything on it, as one short line.
pub fn last_words(text: &str) -> String {
    const LENGTH_MAX: usize = 300;
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    line.trim().chars().take(LENGTH_MAX).collect()
}

/// Set once the user asks us to stop (Ctrl-C or SIGTERM).
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for the signals from now on.
    pub fn on_signals() -> Result<Stop, BenchError> {
        use tokio::signal::unix::{SignalKind, signal};
        let stop = Stop::default();
        let flag = stop.clone();
        let doing = || BenchError::io("listening for signals");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(doing())?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::interrupt()).map_err(doing())?,
                signal(SignalKind::terminate()).map_err(doing())?,
            )
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            flag.0.store(true, Ordering::Relaxed);
        });
        Ok(stop)
    }

    /// Whether we were asked to stop.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once we were asked to stop.
    pub fn check(&self) -> Result<(), BenchError> {
        if self.asked() { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

/// The newest directory of PostgreSQL's programs, or the one given.
pub fn postgres_programs(given: Option<&Path>) -> Result<PathBuf, BenchError> {
    let directory = match given {
        Some(directory) => directory.to_owned(),
        None => newest_postgres(Path::new("/usr/lib/postgresql")),
    };
    for name in ["initdb", "postgres", "pg_ctl", "pgbench"] {
        existing(name, &directory.join(name), "install Debian's package postgresql, or give --pg-bin DIR")?;
    }
    Ok(directory)
}

fn newest_postgres(root: &Path) -> PathBuf {
    let versions = fs::read_dir(root).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| root.join(version.to_string()).join("bin/initdb").exists())
        .max();
    newest.map_or_else(|| root.join("VERSION/bin"), |version| root.join(version.to_string()).join("bin"))
}

/// The program at `path`, or how to get it.
pub fn existing(name: &str, path: &Path, remedy: &'static str) -> Result<(), BenchError> {
    if path.is_file() {
        return Ok(());
    }
    Err(BenchError::MissingProgram { name: name.to_owned(), path: path.to_owned(), remedy })
}

#[cfg(test)]
mod tests;
