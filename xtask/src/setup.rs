//! What the other commands need on a Debian machine: found, or installed, and said either way.

use std::path::Path;

use testkit::Version;
use testkit::install::{ensure_packages, on_path, say};

/// Installs what is missing; says nothing of what is there but in one line at the end.
pub fn run() -> Result<(), String> {
    let mut missing: Vec<&str> = Vec::new();
    for (package, present) in needed() {
        if !present() && !missing.contains(&package) {
            missing.push(package);
        }
    }
    ensure_packages(&missing);
    for version in [Version::V15, Version::V18] {
        let programs = version.programs();
        let present = programs.join("postgres").exists();
        if !present {
            return Err(format!("PostgreSQL {} is not in {}", version.number(), programs.display()));
        }
    }
    say("PostgreSQL 15 and 18, their client programs, the peers of the benchmark and a C compiler are there");
    Ok(())
}

/// A Debian package, and how to see that it is not needed any more.
type Need = (&'static str, fn() -> bool);

fn needed() -> [Need; 11] {
    [
        ("gcc", || on_path("cc")),
        ("libc6-dev", || Path::new("/usr/include/stdlib.h").exists()),
        ("postgresql-15", || Path::new("/usr/lib/postgresql/15/bin/pgbench").exists()),
        ("postgresql-client-15", || Path::new("/usr/lib/postgresql/15/bin/psql").exists()),
        // What the benchmark compares with, and what it puts load on with.
        ("pgbouncer", || Path::new("/usr/sbin/pgbouncer").exists()),
        ("haproxy", || Path::new("/usr/sbin/haproxy").exists()),
        ("pgpool2", || Path::new("/usr/sbin/pgpool").exists()),
        ("sysbench", || on_path("sysbench")),
        ("openssl", || on_path("openssl")),
        ("python3", || on_path("python3")),
        ("python3-pip", || has_pip() || packaged_server_is_there()),
    ]
}

fn has_pip() -> bool {
    on_path("pip") || on_path("pip3") || Path::new("/usr/lib/python3/dist-packages/pip").exists()
}

/// Nothing is left to be downloaded then.
fn packaged_server_is_there() -> bool {
    testkit::install::cache().join("pg18").exists()
}
