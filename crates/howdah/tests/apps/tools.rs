//! Compilers and libraries of other languages: kept beside the tests' other downloads, and made once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::install::{ensure_packages, on_path};
use testkit::python::made_once;
pub use testkit::python::{python, python_packages};

/// The sources of a Python package, unpacked.
pub fn python_sources(name: &str, version: &str) -> PathBuf {
    let sources = made_once(&format!("sources-{name}-{version}"), |place| {
        let mut command = Command::new(python());
        command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
        command.arg(format!("{name}=={version}")).current_dir(place);
        must(command);
        let mut unpack = Command::new("tar");
        unpack.args(["-xzf", &format!("{name}-{version}.tar.gz")]).current_dir(place);
        must(unpack);
    });
    sources.join(format!("{name}-{version}"))
}

/// The classpath of a Maven project, built.
pub fn java_project(name: &str) -> String {
    let built = made_once(&format!("java-{name}-{}", digest(&super::files(name))), |place| {
        ensure_packages(&missing(&[("maven", on_path("mvn")), ("default-jdk-headless", on_path("javac"))]));
        copy(&super::files(name), place);
        let mut command = Command::new("mvn");
        command.args(["-q", "-B", "package", "dependency:copy-dependencies"]).current_dir(place);
        must(command);
    });
    let target = built.join("target");
    format!("{}:{}/*", target.join("classes").display(), target.join("dependency").display())
}

/// A program in Go, built.
pub fn go_program(name: &str) -> PathBuf {
    let built = made_once(&format!("go-{name}-{}", digest(&super::files(name))), |place| {
        ensure_go();
        copy(&super::files(name), place);
        let mut command = go(place);
        command.args(["build", "-o", "program", "."]);
        must(command);
    });
    built.join("program")
}

/// The sources of a Go module with its tests, at a place where they can be run.
pub fn go_sources(module: &str, version: &str) -> PathBuf {
    made_once(&format!("go-sources-{}-{version}", module.replace('/', "-")), |place| {
        ensure_go();
        let mut command = go(place);
        command.args(["mod", "download", "-json", &format!("{module}@{version}")]);
        let output = command.output().expect("go runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \""));
        let directory =
            line.map(|rest| rest.trim_end_matches(['"', ','])).unwrap_or_else(|| panic!("{text}"));
        copy(Path::new(directory), place);
        // What is in the cache of modules may not be written to.
        must({
            let mut command = Command::new("chmod");
            command.args(["-R", "u+w", "."]).current_dir(place);
            command
        });
    })
}

/// A directory with packages of npm, to be named in NODE_PATH.
pub fn node_packages(packages: &[&str]) -> PathBuf {
    let made = made_once(&format!("node-{}", named(packages)), |place| {
        ensure_packages(&missing(&[("nodejs", on_path("node")), ("npm", on_path("npm"))]));
        let mut command = Command::new("npm");
        command
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(place)
            .args(packages);
        must(command);
    });
    made.join("node_modules")
}

/// Ruby with ActiveRecord as Debian has them.
pub fn ruby() -> Command {
    let present = |package: &str| Path::new("/usr/share/doc").join(package).exists();
    let packages = ["ruby", "ruby-activerecord", "ruby-pg"].map(|package| (package, present(package)));
    ensure_packages(&missing(&packages));
    Command::new("ruby")
}

/// Names of packages as one of a directory.
fn named(packages: &[&str]) -> String {
    packages.join("-").replace(['/', '@', ':'], "_")
}

/// Go, in this directory.
pub fn go(directory: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(directory).env("GOFLAGS", "-mod=mod").env("GOWORK", "off");
    command
}

fn ensure_go() {
    ensure_packages(&missing(&[("golang-go", on_path("go"))]));
}

fn missing<'a>(needs: &[(&'a str, bool)]) -> Vec<&'a str> {
    needs.iter().filter(|(_, present)| !present).map(|&(package, _)| package).collect()
}

fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.arg("-R").arg(from.join(".")).arg(to);
    must(command);
}

/// Changes with any file below.
fn digest(directory: &Path) -> String {
    let mut paths = vec![directory.to_path_buf()];
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let mut below: Vec<PathBuf> =
                fs::read_dir(&path).expect("own files").flatten().map(|entry| entry.path()).collect();
            below.sort();
            paths.extend(below);
        } else {
            for byte in fs::read(&path).expect("own files") {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    format!("{sum:016x}")
}

fn must(mut command: Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
