//! Why a run could not be made, each cause in one line. What goes wrong *inside* a measured load
//! (refused logins, lost connections) is a result, not an error: see `load::Outcome`.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// A cause that ends the whole run.
#[derive(Debug)]
pub enum BenchError {
    /// A child ended before it answered.
    ChildExited {
        /// Which one.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The last words of its log.
        last_words: String,
    },
    /// More descriptors are needed than this process may ever have.
    Descriptors {
        /// How many the plan needs.
        needed: u64,
        /// The hard limit.
        allowed: u64,
    },
    /// Nothing answers where something should run already.
    Unreachable {
        /// What was looked for.
        name: String,
        /// What happened.
        why: String,
    },
    /// Stopped by a signal.
    Interrupted,
    /// The system refused something.
    Io {
        /// What was being done.
        doing: String,
        /// What it said.
        source: io::Error,
    },
    /// A program is not installed, or not built yet.
    MissingProgram {
        /// The program.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
        /// How to get it.
        remedy: &'static str,
    },
    /// A child runs but does not answer.
    NotReady {
        /// Which one.
        name: String,
        /// How long it was given.
        seconds: u64,
        /// The last thing seen.
        last_words: String,
    },
    /// The options contradict one another.
    Options(String),
    /// A port that was asked for is taken.
    PortInUse(u16),
    /// PostgreSQL refused what prepares the run.
    PostgreSql(crate::session::Failure),
    /// A program that prepares the run failed.
    ProgramFailed {
        /// The program.
        name: String,
        /// Its exit status.
        status: ExitStatus,
        /// What it said last.
        last_words: String,
    },
    /// Figures got worse since an earlier run, and that was to be an error.
    Regression {
        /// How many.
        worse: usize,
    },
}

impl BenchError {
    /// Turns an I/O error into ours, saying what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let doing = doing.into();
        move |source| BenchError::Io { doing, source }
    }

    /// 2 for what the user can put right on the command line, 130 for a signal, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            BenchError::Options(_) | BenchError::Descriptors { .. } | BenchError::MissingProgram { .. } => 2,
            BenchError::PortInUse(_) | BenchError::Unreachable { .. } => 2,
            BenchError::Interrupted => 130,
            _ => 1,
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChildExited { name, status, last_words } => {
                write!(f, "{name} did not start ({status}): {last_words}")
            }
            Self::Descriptors { needed, allowed } => write!(
                f,
                "this plan needs about {needed} open files a process and the hard limit is {allowed}; \
                 raise it (ulimit -Hn) or ask for fewer --idle-clients or --clients"
            ),
            Self::Unreachable { name, why } => write!(f, "{name} cannot be used: {why}"),
            Self::Interrupted => write!(f, "stopped by a signal"),
            Self::Io { doing, source } => write!(f, "{doing}: {source}"),
            Self::MissingProgram { name, path, remedy } => {
                write!(f, "{name} is not there ({}): {remedy}", path.display())
            }
            Self::NotReady { name, seconds, last_words } => {
                write!(f, "{name} did not answer a query within {seconds} s: {last_words}")
            }
            Self::Options(what) => write!(f, "{what}"),
            Self::PortInUse(port) => {
                write!(f, "port {port} is in use; choose another --base-port, or none to take free ones")
            }
            Self::PostgreSql(failure) => write!(f, "PostgreSQL: {failure}"),
            Self::ProgramFailed { name, status, last_words } => {
                write!(f, "{name} failed ({status}): {last_words}")
            }
            Self::Regression { worse } => write!(f, "{worse} figures got worse"),
        }
    }
}

impl std::error::Error for BenchError {}
