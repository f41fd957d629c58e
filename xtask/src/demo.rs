//! `cargo xtask demo`: a throw-away PostgreSQL, the pooler in front of it, and a crowd of clients to look at.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use testkit::os::{interrupted, note_interrupts, raise_open_files};
use testkit::{Howdah, Postgres, PostgresOptions, Raw, Signal, Version, cell};

use crate::process::{cargo, check};
use crate::{setup, workspace};

#[derive(Args)]
pub struct Options {
    /// Clean up and leave after the burst of clients
    #[arg(long)]
    pub exit_after_burst: bool,
    /// How many clients come
    #[arg(long, default_value_t = 1000)]
    pub clients: u32,
    /// How long the burst lasts
    #[arg(long, default_value_t = 15)]
    pub seconds: u32,
    /// Another pooler that reads the same files
    #[arg(long, hide = true, value_name = "PATH")]
    pub binary: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<(), String> {
    setup::run()?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build()?,
    };
    note_interrupts();
    // Each client is a file here, and a file in the pooler, which inherits this limit.
    raise_open_files(u64::from(options.clients) * 2 + 500).map_err(|error| error.to_string())?;

    println!("[demo] starting a throw-away PostgreSQL with max_connections = {MAX_CONNECTIONS}");
    let server = PostgresOptions::new(Version::V15).max_connections(MAX_CONNECTIONS).start();
    server.create_role(USER, PASSWORD);
    server.create_database(DATABASE, USER);
    println!("[demo] filling its database with pgbench's tables");
    fill(&server)?;

    println!("[demo] starting Howdah with a pool of {POOL_SIZE} server connections");
    let howdah = Howdah::new(binary)
        .port(free_or(6432))
        .database(DATABASE, &server.connection(DATABASE))
        .setting("default_pool_size", &POOL_SIZE.to_string())
        .setting("max_client_conn", &(options.clients + 100).to_string())
        .user(USER, PASSWORD)
        .start();
    let port = howdah.port();
    println!("\n  Try it:   psql -h 127.0.0.1 -p {port} -U {USER} {DATABASE}");
    println!(
        "  Console:  PGPASSWORD={} psql -h 127.0.0.1 -p {port} -U {} pgbouncer\n",
        testkit::howdah::ADMIN_PASSWORD,
        testkit::howdah::ADMIN
    );

    let done = burst(options, &server, &howdah);
    if done.is_ok() && !options.exit_after_burst && !interrupted() {
        println!("[demo] all stays up; Ctrl-C ends it");
        while !interrupted() && !howdah.has_ended() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    println!("\n[demo] stopping both and removing their files");
    drop(howdah);
    drop(server);
    done
}

fn build() -> Result<PathBuf, String> {
    println!("[demo] building the pooler");
    if check(cargo(&["build", "--release", "-p", "howdah"])).failed > 0 {
        return Err("the pooler does not build".into());
    }
    workspace::release_program("howdah")
}

fn fill(server: &Postgres) -> Result<(), String> {
    let mut pgbench = Command::new(server.program("pgbench"));
    pgbench.args(["--initialize", "--quiet", "--scale=10", "--host=127.0.0.1"]);
    pgbench.arg(format!("--port={}", server.port())).args(["--username", USER, DATABASE]);
    let output = pgbench.output().map_err(|error| format!("pgbench: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Runs pgbench and shows, once a second, what it and both servers say.
fn burst(options: &Options, server: &Postgres, howdah: &Howdah) -> Result<(), String> {
    println!("[demo] {} clients run pgbench's select-only load for {} s", options.clients, options.seconds);
    let mut pgbench = Command::new(server.program("pgbench"));
    pgbench.args(["--select-only", "--no-vacuum", "--progress=1", "--jobs=2", "--host=127.0.0.1"]);
    pgbench.arg(format!("--port={}", howdah.port())).arg(format!("--client={}", options.clients));
    pgbench.arg(format!("--time={}", options.seconds)).args(["--username", USER, DATABASE]);
    pgbench.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = testkit::os::spawn(pgbench, Signal::Kill).map_err(|error| format!("pgbench: {error}"))?;
    // Both were asked for above.
    let lines = read_in_background(child.stderr.take().expect("a pipe"));
    let report = read_in_background(child.stdout.take().expect("a pipe"));

    let mut view = View::new(options.clients, server, howdah);
    let mut complaints = Vec::new();
    loop {
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => match line.strip_prefix("progress: ") {
                Some(progress) => view.show(progress),
                None => complaints.push(line),
            },
            Err(RecvTimeoutError::Timeout) if !interrupted() => view.look(),
            Err(RecvTimeoutError::Timeout) => {
                // It may have ended by itself at this very moment.
                let _ = child.kill();
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    view.end();
    let status = child.wait().map_err(|error| format!("pgbench: {error}"))?;
    if interrupted() {
        return Ok(());
    }
    report
        .iter()
        .filter(|line| {
            line.starts_with("number of") || line.starts_with("tps") || line.starts_with("latency")
        })
        .for_each(|line| println!("  {line}"));
    complaints.retain(|line| line.contains("error") || line.contains("fatal") || line.contains("aborted"));
    if !status.success() || !complaints.is_empty() {
        complaints.truncate(20);
        return Err(format!("pgbench had errors ({status}):\n{}\n{}", complaints.join("\n"), howdah.log()));
    }
    println!(
        "  server connections seen in pg_stat_activity: at most {}, of a pool of {POOL_SIZE}",
        view.most
    );
    if view.most > POOL_SIZE { Err("more than the pool has".into()) } else { Ok(()) }
}

/// The live line.
struct View {
    clients: u32,
    activity: Raw,
    console: Raw,
    servers: usize,
    waiting: String,
    most: usize,
    on_terminal: bool,
}

impl View {
    fn new(clients: u32, server: &Postgres, howdah: &Howdah) -> View {
        let on_terminal = std::io::stdout().is_terminal();
        let (activity, console) = (server.session("postgres"), howdah.console());
        View { clients, activity, console, servers: 0, waiting: String::new(), most: 0, on_terminal }
    }

    /// Asks both sides.
    fn look(&mut self) {
        let sql = format!("select count(*) from pg_stat_activity where datname = '{DATABASE}'");
        self.servers = self.activity.value(&sql).parse().unwrap_or(0);
        self.most = self.most.max(self.servers);
        let pools = self.console.table("SHOW POOLS");
        let ours = pools.iter().find(|row| cell(row, "database") == Some(DATABASE));
        self.waiting = ours.and_then(|row| cell(row, "cl_waiting")).unwrap_or("?").to_owned();
    }

    /// Prints the line; `progress` is pgbench's, like `3.0 s, 41234.5 tps, lat 24.1 ms stddev 3.2, 0 failed`.
    fn show(&mut self, progress: &str) {
        self.look();
        let mut parts = progress.split(", ");
        let time = parts.next().unwrap_or_default();
        let tps = parts.next().unwrap_or_default();
        let latency = parts.next().and_then(|part| part.split(" stddev").next()).unwrap_or_default();
        let line = format!(
            "  {time:>7}  {} clients  {tps:>14}  {latency:>14}  {} server connections  {} waiting",
            self.clients, self.servers, self.waiting
        );
        if self.on_terminal {
            print!("\r{line:<100}");
            // A terminal that is gone is no reason to stop.
            let _ = std::io::stdout().flush();
        } else {
            println!("{line}");
        }
    }

    fn end(&self) {
        if self.on_terminal {
            println!();
        }
    }
}

fn read_in_background(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The port that a pooler usually has, if it is free.
fn free_or(wanted: u16) -> u16 {
    let free = std::net::TcpListener::bind(("127.0.0.1", wanted)).is_ok();
    if free { wanted } else { testkit::free_port() }
}

const MAX_CONNECTIONS: u32 = 50;
const POOL_SIZE: usize = 20;
const USER: &str = "demo";
const PASSWORD: &str = "demo";
const DATABASE: &str = "demo";
