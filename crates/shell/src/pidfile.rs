//! The pidfile: says that we run, and that nobody else shall. Does not know what the process does.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A pidfile of ours. It is removed when this is dropped.
#[derive(Debug)]
pub struct Pidfile {
    path: PathBuf,
    process_id: u32,
}

/// Why there is no pidfile.
#[derive(Debug)]
pub enum PidfileFault {
    /// The process that the file names is alive.
    Running(PathBuf, u32),
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
}

impl fmt::Display for PidfileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PidfileFault::Running(path, id) => {
                write!(f, "pidfile \"{}\" exists, another instance running? (pid {id})", path.display())
            }
            PidfileFault::Io(path, error) => write!(f, "pidfile \"{}\": {error}", path.display()),
        }
    }
}

impl std::error::Error for PidfileFault {}

impl Pidfile {
    /// Whether another process holds the file: looked at before the process becomes a daemon.
    pub fn check(path: &Path) -> Result<(), PidfileFault> {
        match fs::read_to_string(path) {
            Ok(text) => match text.trim().parse() {
                Ok(id) if id != std::process::id() && is_alive(id) => {
                    Err(PidfileFault::Running(path.to_owned(), id))
                }
                _ => Ok(()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(PidfileFault::Io(path.to_owned(), error)),
        }
    }

    /// Writes our process id, mode 0644. A stale file is replaced.
    pub fn create(path: &Path) -> Result<Pidfile, PidfileFault> {
        Pidfile::check(path)?;
        let io = |error| PidfileFault::Io(path.to_owned(), error);
        if path.exists() {
            tracing::info!("stale pidfile, removing");
            fs::remove_file(path).map_err(io)?;
        }
        let process_id = std::process::id();
        // `create_new`: who was as quick as we are has won.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map_err(io)?;
        file.set_permissions(fs::Permissions::from_mode(0o644)).map_err(io)?;
        writeln!(file, "{process_id}").map_err(io)?;
        Ok(Pidfile { path: path.to_owned(), process_id })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // Another process may have taken the file over, as at an online restart; then it is not ours to remove.
        let ours =
            fs::read_to_string(&self.path).is_ok_and(|text| text.trim() == self.process_id.to_string());
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("could not remove pidfile \"{}\": {error}", self.path.display());
        }
    }
}

fn is_alive(id: u32) -> bool {
    let Ok(id) = libc::pid_t::try_from(id) else { return false };
    if id <= 0 {
        return false;
    }
    // SAFETY: signal 0 only asks.
    let answer = unsafe { libc::kill(id, 0) };
    answer == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::temp::TempDir;

    #[test]
    fn file_holds_the_id_and_goes_with_its_owner() {
        let dir = TempDir::new();
        let path = dir.join("pid");
        let pidfile = Pidfile::create(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        drop(pidfile);
        assert!(!path.exists());
    }

    #[test]
    fn live_process_is_respected() {
        let dir = TempDir::new();
        let path = dir.join("pid");
        fs::write(&path, "1\n").unwrap();
        assert!(matches!(Pidfile::create(&path), Err(PidfileFault::Running(_, 1))));
        assert!(path.exists());
    }

    #[test]
    fn stale_and_senseless_files_are_replaced() {
        let dir = TempDir::new();
        let path = dir.join("pid");
        for text in ["4194305\n", "", "-1", "0", "word"] {
            fs::write(&path, text).unwrap();
            drop(Pidfile::create(&path).unwrap());
        }
    }

    #[test]
    fn file_of_a_successor_stays() {
        let dir = TempDir::new();
        let path = dir.join("pid");
        let pidfile = Pidfile::create(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(pidfile);
        assert!(path.exists());
    }
}
