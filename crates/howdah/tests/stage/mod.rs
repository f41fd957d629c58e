//! What the tests of operations share: the pooler in front of a role and a database of one test's own.
//!
//! With `HOWDAH_TEST_BINARY` in the environment the same tests run against another pooler that takes the same
//! files: what its users rely on is seen that way, too.
#![allow(dead_code)] // each file of tests uses a part of it

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use testkit::{
    Howdah, HowdahOptions, Login, Message, Postgres, Raw, Refusal, cell, eventually, eventually_shown,
};

/// The password of every role of the stage.
pub const PASSWORD: &str = "stage-password";

/// How long a test waits for what must come.
pub const LIMIT: Duration = Duration::from_secs(15);

/// Lets root run it, where there is nobody else.
const ROOT_ALLOWED: &str = "HOWDAH_ALLOW_ROOT";

pub fn binary() -> PathBuf {
    std::env::var_os("HOWDAH_TEST_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_howdah")), PathBuf::from)
}

/// The shared server, with a role and a database of this name.
pub fn server_for(name: &str) -> &'static Postgres {
    let server = Postgres::shared_wanted();
    server.create_role(name, PASSWORD);
    server.create_database(name, name);
    server
}

/// A pooler that knows no database and, beside its administrators, nobody.
pub fn bare() -> HowdahOptions {
    Howdah::new(binary())
}

/// A pooler in front of a role and a database of this name, which it makes first. No password is asked for.
pub fn pooler(name: &str) -> HowdahOptions {
    let server = server_for(name);
    bare().database(name, &server.connection(name)).user(name, PASSWORD)
}

/// A login with the stage's password.
pub fn login(name: &str) -> Login {
    Login::new(name, name).password(PASSWORD)
}

/// The number of server connections to a database, as PostgreSQL counts them.
pub fn servers_of(database: &str) -> usize {
    Postgres::shared_wanted().sessions_in(database)
}

/// Waits until a pool's row in SHOW POOLS has these values.
#[track_caller]
pub fn wait_for_pool(howdah: &Howdah, database: &str, wanted: &[(&str, &str)]) {
    eventually_shown(howdah, "SHOW POOLS", |rows| {
        let has = |row: &Vec<(String, String)>| {
            cell(row, "database") == Some(database)
                && wanted.iter().all(|&(name, value)| cell(row, name) == Some(value))
        };
        rows.iter().any(has)
    });
}

/// A session in the middle of a transaction: it has a server and keeps it.
#[track_caller]
pub fn holder(howdah: &Howdah, name: &str) -> Raw {
    let mut raw = howdah.session(name, name);
    raw.sql("begin");
    raw.sql("select 1");
    raw
}

/// Takes the first error that comes; whatever comes before it is skipped.
#[track_caller]
pub fn next_error(raw: &mut Raw) -> Refusal {
    loop {
        let message: Message = raw.recv();
        if message.tag == b'E' {
            return Refusal::from(&message);
        }
    }
}

/// The refusal of a login that must not succeed.
#[track_caller]
pub fn refused(howdah: &Howdah, login: &Login) -> Refusal {
    match Raw::try_login(howdah.port(), login) {
        Ok(_) => panic!("let in: {login:?}"),
        Err(refusal) => refusal,
    }
}

/// The Unix socket, once somebody listens there: that is a moment after the TCP port.
#[track_caller]
pub fn local(howdah: &Howdah) -> PathBuf {
    let socket = howdah.socket();
    eventually(LIMIT, || Raw::try_connect(&socket.as_path().into()).is_ok());
    socket
}

/// Waits until nobody listens on the TCP port: connections are refused at once, and do not pile up unseen.
#[track_caller]
pub fn wait_until_deaf(howdah: &Howdah) {
    eventually(LIMIT, || {
        let error = Raw::try_connect(&howdah.port().into()).err();
        error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
}

/// Asserts SQLSTATE and text of a refusal that ends the connection.
#[track_caller]
pub fn check_fatal(refusal: &Refusal, sqlstate: &str, text: &str) {
    let seen = (refusal.severity.as_str(), refusal.sqlstate.as_str(), refusal.text.as_str());
    assert_eq!(seen, ("FATAL", sqlstate, text));
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], directory: &Path) -> (Output, String) {
    let mut command = Command::new(binary());
    command.env(ROOT_ALLOWED, "1").args(arguments).current_dir(directory).stdin(Stdio::null());
    let output = command.output().expect("the program can be started");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output, text)
}
