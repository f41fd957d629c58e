//! Children: started so that they die with us, stopped by their own pid, their words kept in a log.

use crate::error::BenchError;
use crate::host::{Account, Stop, last_words};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name in messages.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Whom it runs as.
    pub account: Option<Account>,
    /// The cores it may use.
    pub cores: Option<String>,
    /// The signal that the kernel sends it should we die.
    pub death_signal: &'static str,
    /// The signal that asks it to end in order, where it has children that must go with it.
    pub stop_signal: Option<&'static str>,
    /// Its environment beyond ours.
    pub environment: Vec<(&'static str, String)>,
}

impl Program {
    /// A program without arguments, run as ourselves.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Program {
        Program {
            name: name.into(),
            path: path.into(),
            arguments: Vec::new(),
            account: None,
            cores: None,
            death_signal: "KILL",
            stop_signal: None,
            environment: Vec::new(),
        }
    }

    /// With these arguments more.
    pub fn arguments<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, arguments: I) -> Program {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The command, with PostgreSQL's own variables out of its environment. It gets its own process
    /// group, so that Ctrl-C reaches only us and we stop it in order. The kernel ties its life to the
    /// *thread* that starts it: call from the main one.
    pub fn command(&self) -> Command {
        let mut command = match &self.cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["-c", cores, "setpriv"]);
                command
            }
            None => Command::new("setpriv"),
        };
        command.args(["--pdeathsig", self.death_signal, "--"]).arg(&self.path).args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG")) {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("LC_ALL", "C").stdin(Stdio::null()).process_group(0).current_dir("/");
        if let Some(Account { uid, gid }) = self.account {
            command.gid(gid).uid(uid);
        }
        command
    }

    /// Starts it with all it says going to `log`.
    pub fn start(&self, log: &Path) -> Result<Process, BenchError> {
        let doing = || BenchError::io(format!("starting {}", self.name));
        let file = File::create(log).map_err(doing())?;
        let errors = file.try_clone().map_err(doing())?;
        let child = self.command().stdout(file).stderr(errors).spawn().map_err(doing())?;
        Ok(Process { name: self.name.clone(), child, log: log.to_owned(), stop_signal: self.stop_signal })
    }

    /// Runs it to its end, or until we are asked to stop or `limit` is over.
    pub fn finish(&self, log: &Path, limit: Duration, stop: &Stop) -> Result<Finished, BenchError> {
        let mut process = self.start(log)?;
        let until = Instant::now() + limit;
        loop {
            stop.check()?;
            if let Some(status) = process.exited()? {
                return Ok(Finished { status: Some(status), said: process.said() });
            }
            if Instant::now() > until {
                process.kill();
                return Ok(Finished { status: None, said: process.said() });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs it to its end and takes nothing but success.
    pub fn succeed(&self, log: &Path, limit: Duration, stop: &Stop) -> Result<String, BenchError> {
        let finished = self.finish(log, limit, stop)?;
        match finished.status {
            Some(status) if status.success() => Ok(finished.said),
            Some(status) => Err(BenchError::ProgramFailed {
                name: self.name.clone(),
                status,
                last_words: last_words(&finished.said),
            }),
            None => Err(BenchError::NotReady {
                name: self.name.clone(),
                seconds: limit.as_secs(),
                last_words: last_words(&finished.said),
            }),
        }
    }
}

/// A program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    /// How it ended; nothing if it had to be killed.
    pub status: Option<ExitStatus>,
    /// All it said.
    pub said: String,
}

/// A running child; dropping it kills it and waits for its end.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    stop_signal: Option<&'static str>,
}

impl Process {
    /// Its pid (the wrappers it is started through become it by exec).
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>, BenchError> {
        self.child.try_wait().map_err(BenchError::io(format!("waiting for {}", self.name)))
    }

    /// All it has said.
    pub fn said(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Calls `ready` until it is content, for at most `limit`; an end of the child ends it, too.
    pub fn await_ready(
        &mut self,
        limit: Duration,
        stop: &Stop,
        mut ready: impl FnMut() -> Result<(), String>,
    ) -> Result<(), BenchError> {
        let until = Instant::now() + limit;
        loop {
            stop.check()?;
            if let Some(status) = self.exited()? {
                let last_words = last_words(&self.said());
                return Err(BenchError::ChildExited { name: self.name.clone(), status, last_words });
            }
            match ready() {
                Ok(()) => return Ok(()),
                Err(last_words) if Instant::now() > until => {
                    return Err(BenchError::NotReady {
                        name: self.name.clone(),
                        seconds: limit.as_secs(),
                        last_words,
                    });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Waits for its end, for at most `limit`.
    pub fn await_end(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Gives it time to end its children, and ends those of its process group that are left.
    fn ask_to_end(&mut self, signal: &str) {
        const PATIENCE: Duration = Duration::from_secs(5);
        let signaled = |signal: &str, to: &str| {
            let mut command = Command::new("kill");
            command.args([&format!("-{signal}"), "--", to]).stdin(Stdio::null());
            // Whom the signal does not find has ended already.
            let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        };
        let pid = self.child.id();
        if matches!(self.child.try_wait(), Ok(None)) {
            signaled(signal, &pid.to_string());
            self.await_end(PATIENCE);
        }
        signaled("KILL", &format!("-{pid}"));
    }

    fn kill(&mut self) {
        if let Some(signal) = self.stop_signal {
            self.ask_to_end(signal);
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            // It may end between the two calls; then there is nothing left to kill.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
