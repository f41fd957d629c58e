//! PostgreSQL's own load generator, through a pooler or not.
//!
//! Runs the real `pgbench` and reads its report; judges nothing but whether there were errors.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::os::{self, Signal};
use crate::postgres::Postgres;

/// One run, built up by its methods.
#[derive(Clone, Debug)]
pub struct Pgbench {
    program: PathBuf,
    arguments: Vec<String>,
    user: String,
    database: String,
    password: Option<String>,
}

/// What a run has reported.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether pgbench itself was content.
    pub success: bool,
    pub transactions: u64,
    pub tps: f64,
    /// Everything that it wrote to its standard error.
    pub complaints: String,
}

impl Pgbench {
    /// Against a port of the loopback address, with the client programs of this server's version.
    pub fn new(server: &Postgres, port: u16, user: &str, database: &str) -> Pgbench {
        Pgbench::with(server.program("pgbench"), &[port], user, database)
    }

    /// By this program, against the first of several ports that lets it in: libpq's list of hosts.
    pub fn with(program: PathBuf, ports: &[u16], user: &str, database: &str) -> Pgbench {
        let hosts: Vec<&str> = ports.iter().map(|_| "127.0.0.1").collect();
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let arguments = vec![format!("--host={}", hosts.join(",")), format!("--port={}", ports.join(","))];
        Pgbench { program, arguments, user: user.into(), database: database.into(), password: None }
    }

    pub fn password(mut self, password: &str) -> Pgbench {
        self.password = Some(password.into());
        self
    }

    /// Any argument of pgbench's, e.g. `--select-only`, `--client=1000`, `--protocol=prepared`, `--connect`.
    pub fn argument(mut self, argument: &str) -> Pgbench {
        self.arguments.push(argument.into());
        self
    }

    /// Makes and fills its tables: 100,000 accounts for each unit of `scale`.
    #[track_caller]
    pub fn fill(&self, scale: u32) {
        let report =
            self.clone().argument("--initialize").argument("--quiet").argument(&format!("--scale={scale}"));
        let report = report.run();
        assert!(report.success, "pgbench cannot fill its tables:\n{}", report.complaints);
    }

    /// Runs to the end. Up to a thousand clients need that many files: the limit is raised first.
    #[track_caller]
    pub fn run(&self) -> Report {
        os::raise_open_files(4000).expect("a limit can be asked for");
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["--username", &self.user, &self.database]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.password.iter().map(|password| ("PGPASSWORD", password)));
        let child = os::spawn(command, Signal::Kill).expect("pgbench can be started");
        let output = child.wait_with_output().expect("own process");
        let text = String::from_utf8_lossy(&output.stdout);
        let after = |begin: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(begin))?;
            rest.split(['/', ' ']).find(|word| !word.is_empty())
        };
        let transactions =
            after("number of transactions actually processed:").and_then(|word| word.parse().ok());
        let tps = after("tps =").and_then(|word| word.parse().ok());
        Report {
            success: output.status.success(),
            transactions: transactions.unwrap_or(0),
            tps: tps.unwrap_or(0.0),
            complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
