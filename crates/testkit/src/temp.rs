//! Temporary directories that go away with their owner, and free ports.
//!
//! A process that was killed cannot tidy up: the next one sweeps what it left, by the process id in the name.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, open to other users (PostgreSQL may run as one); removed at drop.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes a new directory; panics if that cannot be.
    pub fn new() -> TempDir {
        static SWEEP: Once = Once::new();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        SWEEP.call_once(sweep);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base().join(format!("{PREFIX}{}-{number}", std::process::id()));
        // A directory of that name can only be left over from a process with the same id.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own directory");
        TempDir { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside, which need not exist.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file inside and returns its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }
}

impl Default for TempDir {
    fn default() -> TempDir {
        TempDir::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed is swept by a later process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A port of the loopback address that nobody listens on.
///
/// Taken from below the range that the kernel gives to outgoing connections, so that none of those gets it
/// before the server that it is meant for; and begun at a place of each process's own.
pub fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..COUNT {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        // FIRST + COUNT is below 65,536.
        let port = (FIRST + offset) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}

/// Where temporary files go: short, since the path of a Unix socket may have 107 bytes only.
fn base() -> PathBuf {
    let wanted = std::env::temp_dir();
    if wanted.as_os_str().len() <= 40 && open_to_all(&wanted) { wanted } else { PathBuf::from("/tmp") }
}

/// True if every user may enter this directory.
pub(crate) fn open_to_all(path: &Path) -> bool {
    path.ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .all(|part| fs::metadata(part).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

fn sweep() {
    // Only here can it be seen which processes live.
    if !Path::new("/proc/self").exists() {
        return;
    }
    let Ok(entries) = fs::read_dir(base()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            // Somebody else's directory stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

const PREFIX: &str = "howdah-test-";
