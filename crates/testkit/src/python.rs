//! Python packages for tests: installed once, beside the tests' other downloads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::install::{cache, ensure_packages, on_path, run_quietly, say};

/// One at a time: two would install the same.
static TURN: Mutex<()> = Mutex::new(());

/// A directory with Python packages, to be named in PYTHONPATH.
pub fn python_packages(packages: &[&str]) -> PathBuf {
    made_once(&format!("python-{}", packages.join("-")), |place| {
        if !on_path("python3") {
            ensure_packages(&["python3"]);
        }
        if run_quietly(Command::new(python()).args(["-m", "pip", "--version"])).is_err() {
            ensure_packages(&["python3-pip"]);
        }
        let mut command = Command::new(python());
        command
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"])
            .arg(place);
        command.args(packages);
        if let Err(why) = run_quietly(&mut command) {
            panic!("{command:?} failed:\n{why}");
        }
    })
}

/// The one whose version the packages were made for.
pub fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}

/// Makes a directory in the cache if it is not there, whole or not at all.
pub fn made_once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    // A panic of another has left nothing: what is whole is put in place by a rename.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = cache().join(name);
    if !place.exists() {
        say(&format!("making {name}"));
        let beside = cache().join(format!("{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&beside);
        fs::create_dir_all(&beside).expect("the cache can be written");
        make(&beside);
        // Another process may have been quicker; its own is as good.
        if fs::rename(&beside, &place).is_err() {
            let _ = fs::remove_dir_all(&beside);
        }
    }
    place
}
