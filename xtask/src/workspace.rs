//! Where the workspace is and what cargo says is in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The directory with the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// `cargo metadata` for this machine's platform.
pub fn metadata() -> Result<Value, String> {
    let version = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV names no host")?;
    let arguments = ["metadata", "--format-version=1", "--filter-platform", host];
    let output = crate::process::cargo(&arguments).output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Where cargo puts what it builds.
pub fn target(metadata: &Value) -> PathBuf {
    PathBuf::from(text(metadata, "target_directory"))
}

/// The path of a program that was built with `--release`.
pub fn release_program(name: &str) -> Result<PathBuf, String> {
    Ok(target(&metadata()?).join("release").join(name))
}

/// The path of a program as its tests use it.
pub fn debug_program(name: &str) -> Result<PathBuf, String> {
    Ok(target(&metadata()?).join("debug").join(name))
}

/// A test program of cargo's: its crate and its name.
pub struct TestTarget {
    pub package: String,
    pub name: String,
}

/// All integration tests (`tests/*.rs`) of the workspace.
pub fn test_targets(metadata: &Value) -> Vec<TestTarget> {
    let members = list(metadata, "packages").iter().filter(|package| package["source"].is_null());
    let mut found = Vec::new();
    for package in members {
        for target in list(package, "targets") {
            if list(target, "kind").iter().any(|kind| kind == "test") {
                found.push(TestTarget {
                    package: text(package, "name").into(),
                    name: text(target, "name").into(),
                });
            }
        }
    }
    found
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}
