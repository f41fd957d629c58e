//! The log: lines in PgBouncer's form to stderr, a file and syslog.
//!
//! Decides the form of a line and that nobody ever waits for one: the thread that logs hands the text to a
//! thread of the log's own over a queue of bounded length, and what does not fit, or cannot be written because
//! a disk is full or a reader gone, is counted and told of later. Does not know what is worth a line.
//!
//! Everything logs with `tracing`'s macros. `error!` is ERROR, `warn!` WARNING, `info!` LOG, `debug!` DEBUG
//! (shown from verbose 1) and `trace!` NOISE (from 2); `error!(target: log::FATAL, ..)` is FATAL. A field named
//! `socket` (a client's or server's `C-7: db/user@addr:port`) stands before the message, all others after it.

mod line;
mod sink;
mod subscriber;
mod syslog;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fmt, io};

use self::sink::Queue;
use self::subscriber::LineSubscriber;
pub use self::syslog::Facility;

/// The target that makes an ERROR event a FATAL line.
pub const FATAL: &str = "fatal";

/// Where lines go and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Whether lines go to stderr: they do unless `-q` was given.
    pub stderr: bool,
    /// 0 for LOG and worse, 1 for DEBUG too, 2 for NOISE too.
    pub verbose: u8,
    /// `logfile`, if it is set: appended to.
    pub file: Option<PathBuf>,
    /// `syslog`, if it is on.
    pub syslog: Option<Syslog>,
}

/// How lines go to syslog: those of LOG and worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syslog {
    /// `syslog_ident`.
    pub ident: String,
    /// `syslog_facility`.
    pub facility: Facility,
}

/// Why the log is not as asked for.
#[derive(Debug)]
pub enum LogFault {
    /// The file cannot be opened for appending.
    File(PathBuf, io::Error),
    /// The log's thread cannot be started.
    Thread(io::Error),
    /// Another subscriber is set in this process already.
    AlreadySet,
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogFault::File(path, error) => {
                write!(f, "could not open logfile \"{}\": {error}", path.display())
            }
            LogFault::Thread(error) => write!(f, "could not start the log's thread: {error}"),
            LogFault::AlreadySet => f.write_str("the log is set up already"),
        }
    }
}

impl std::error::Error for LogFault {}

/// Sets the log up, once, after the process has become a daemon (threads do not survive a fork).
pub fn init(options: LogOptions) -> Result<(), LogFault> {
    let verbose = options.verbose;
    let queue = sink::start(options)?;
    tracing::subscriber::set_global_default(LineSubscriber::new(queue.clone()))
        .map_err(|_| LogFault::AlreadySet)?;
    QUEUE.get_or_init(|| queue);
    set_verbose(verbose);
    Ok(())
}

/// Takes new options, as after a reload, and opens the file anew even if its name is the same. If it cannot be
/// opened, everything stays as it was.
pub fn configure(options: LogOptions) -> Result<(), LogFault> {
    let verbose = options.verbose;
    if let Some(queue) = QUEUE.get() {
        queue.configure(options)?;
    }
    set_verbose(verbose);
    Ok(())
}

/// Opens the file anew: after a log rotation. If it cannot be opened, lines go on into the old one.
pub fn reopen() -> Result<(), LogFault> {
    QUEUE.get().map_or(Ok(()), |queue| queue.configure(queue.options()))
}

/// Changes what is shown, as [`LogOptions::verbose`].
pub fn set_verbose(verbose: u8) {
    subscriber::set_level(verbose);
}

/// Lines that were lost since the start.
pub fn dropped() -> u64 {
    QUEUE.get().map_or(0, Queue::dropped)
}

/// Waits until all lines logged so far are written, at most this long: before the process ends.
pub fn flush(limit: Duration) -> bool {
    QUEUE.get().is_none_or(|queue| queue.flush(limit))
}

static QUEUE: OnceLock<Queue> = OnceLock::new();
