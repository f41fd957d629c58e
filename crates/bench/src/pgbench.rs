//! The real pgbench: its command line, what it prints, what it logs. Its log has every transaction with
//! the time of its end, on which the percentiles rest and the window for which CPU is counted: from the
//! first transaction, when all clients are in, to the last.

use crate::access::Access;
use crate::error::BenchError;
use crate::generator::Trouble;
use crate::histogram::Histogram;
use crate::host::Stop;
use crate::options::Mode;
use crate::plan::{Login, Script};
use crate::process::{Finished, Program};
use crate::usage::UnixNanos;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One run of pgbench.
#[derive(Debug)]
pub struct Pgbench<'a> {
    /// PostgreSQL's directory of programs.
    pub programs: &'a Path,
    /// An empty directory for its logs.
    pub logs: PathBuf,
    /// Its cores.
    pub cores: Option<String>,
    /// Where to, and as whom.
    pub access: &'a Access,
    /// How it logs in there.
    pub login: Login,
    /// What it runs.
    pub script: Script,
    /// The database's.
    pub scale: u32,
    /// `-c`.
    pub clients: usize,
    /// `-j`.
    pub threads: usize,
    /// For how long.
    pub amount: Amount,
    /// How long it may take beyond its time: logins, last transactions. After that it has hung.
    pub spare: Duration,
    /// `-M`.
    pub mode: Mode,
    /// `-C`.
    pub reconnect: bool,
}

/// How much it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// `-T`.
    Seconds(u32),
    /// `-t`: transactions of each client.
    Each(u32),
}

/// What came out.
#[derive(Debug, Default)]
pub struct Run {
    /// By pgbench's own account; nothing if it gave none.
    pub tps: Option<f64>,
    /// Mean time to connect, with `-C`.
    pub connect_mean: Option<Duration>,
    /// Until all were in, without `-C`.
    pub connect_all: Option<Duration>,
    /// Mean time of each statement, with `-r`.
    pub statements: Vec<(String, Duration)>,
    /// From its log.
    pub latencies: Histogram,
    /// The window of the log.
    pub window: Option<(UnixNanos, UnixNanos)>,
    /// What went wrong.
    pub trouble: Trouble,
}

/// How often it is run for longer before what came out is taken for what there is.
const TRIES_MAX: usize = 3;
/// One of the rows that the database was filled with.
const WIDE_ROW: &str = "\\set id random(1, 20)\nselect filler from bench_wide where id = :id;\n";

/// What a client sets lasts for its session; the variable tells that it has.
const SETS: &str = "\\if :done = 0\n\\set kind :client_id % 10\n\\set memory 4096 + 64 * :kind\n\\set limit 60000 + :kind\n\
    set work_mem = :memory;\nset statement_timeout = :limit;\n\\set done 1\n\\endif\n\
    \\set aid random(1, 100000 * :scale)\nselect abalance from pgbench_accounts where aid = :aid;\n";

/// With and without state a client pauses for as long, and does the same otherwise.
const STATEFUL: &str = "\\set dice random(1, 100)\n\\set aid random(1, 100000 * :scale)\n\
    \\if :dice <= :percent\nselect pg_advisory_lock(:client_id);\n\\sleep 20 ms\n\
    select abalance from pgbench_accounts where aid = :aid;\nselect pg_advisory_unlock(:client_id);\n\
    \\else\n\\sleep 20 ms\nselect abalance from pgbench_accounts where aid = :aid;\n\\endif\n";

/// Transactions a second that clients with pauses are asked for: what they need is counted, not how fast they are.
const STATEFUL_RATE: u32 = 1_000;

impl Pgbench<'_> {
    /// Runs it; again, and for longer, where connecting took up most of its time.
    pub fn run(&self, stop: &Stop) -> Result<Run, BenchError> {
        let mut amount = self.amount;
        for _ in 1..TRIES_MAX {
            let run = self.run_once(amount, stop)?;
            match self.longer(&run, amount) {
                Some(longer) => amount = longer,
                None => return Ok(run),
            }
        }
        self.run_once(amount, stop)
    }

    /// pgbench's time begins before its clients are connected, and it starts nothing after its end: hundreds of
    /// real server connections can take more than the second that is to be measured.
    fn longer(&self, run: &Run, amount: Amount) -> Option<Amount> {
        let (Amount::Seconds(asked), Amount::Seconds(seconds)) = (self.amount, amount) else { return None };
        let measured = run.window.map_or(Duration::ZERO, |(from, until)| until.since(from));
        if self.reconnect || run.trouble.count > 0 || measured * 2 >= Duration::from_secs(asked.into()) {
            return None;
        }
        // It does not tell how long connecting took if nothing came after it.
        let lost = run.connect_all.map_or(seconds, |time| time.as_secs() as u32 + 1);
        Some(Amount::Seconds(seconds + lost))
    }

    fn run_once(&self, amount: Amount, stop: &Stop) -> Result<Run, BenchError> {
        let doing = || BenchError::io("keeping pgbench's logs");
        let _ = fs::remove_dir_all(&self.logs);
        fs::create_dir_all(&self.logs).map_err(doing())?;
        let seconds = match amount {
            Amount::Seconds(seconds) => seconds,
            Amount::Each(_) => 0,
        };
        let limit = Duration::from_secs(seconds.into()) + self.spare;
        if let Some(text) = self.script_text() {
            fs::write(self.script_file(), text).map_err(doing())?;
        }
        let finished = self.program(amount).finish(&self.logs.join("words"), limit, stop)?;
        let mut run = Run::from_words(&finished, limit);
        for entry in fs::read_dir(&self.logs).map_err(doing())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("t.") {
                let file = fs::File::open(entry.path()).map_err(doing())?;
                run.read_log(BufReader::new(file)).map_err(doing())?;
            }
        }
        fs::remove_dir_all(&self.logs).map_err(doing())?;
        Ok(run)
    }

    fn program(&self, amount: Amount) -> Program {
        let mut program = Program::new("pgbench", self.programs.join("pgbench"));
        program.cores = self.cores.clone();
        let Access { host, port, user, password, database } = self.access;
        // Said either way: left to itself it tries TLS wherever a server has it.
        let tls = if self.login == Login::Tls { "require" } else { "disable" };
        program.environment = vec![("PGSSLMODE", tls.to_owned()), ("PGGSSENCMODE", "disable".to_owned())];
        program.environment.extend(password.clone().map(|password| ("PGPASSWORD", password)));
        let threads = self.threads.clamp(1, self.clients);
        let numbers = [
            ("-c", self.clients.to_string()),
            ("-j", threads.to_string()),
            match amount {
                Amount::Seconds(seconds) => ("-T", seconds.to_string()),
                Amount::Each(count) => ("-t", count.to_string()),
            },
            ("-M", self.mode.word().to_owned()),
            ("-h", host.clone()),
            ("-p", port.to_string()),
            ("-U", if self.login == Login::Scram { format!("{user}_scram") } else { user.clone() }),
        ];
        let mut program = program.arguments(["-n", "-l"]);
        program = match self.script {
            Script::Select => program.arguments(["-S"]),
            // Its statements one by one: where a client waits is a finding.
            Script::TpcB => program.arguments(["-r"]),
            Script::WideRow => self.with_file(program),
            Script::Sets => self.with_file(program).arguments(["-D", "done=0"]),
            Script::Stateful { percent } => self
                .with_file(program)
                .arguments(["-D".to_owned(), format!("percent={percent}")])
                .arguments(["-R".to_owned(), STATEFUL_RATE.to_string()]),
        };
        if matches!(self.script, Script::Sets | Script::Stateful { .. }) {
            program = program.arguments(["-D".to_owned(), format!("scale={}", self.scale)]);
        }
        if self.reconnect {
            program = program.arguments(["-C"]);
        }
        for (name, value) in numbers {
            program = program.arguments([name.to_owned(), value]);
        }
        program.arguments([format!("--log-prefix={}", self.logs.join("t").display())]).arguments([database])
    }

    fn with_file(&self, program: Program) -> Program {
        program.arguments(["-f".into(), self.script_file().into_os_string()])
    }

    fn script_text(&self) -> Option<&'static str> {
        match self.script {
            Script::Select | Script::TpcB => None,
            Script::WideRow => Some(WIDE_ROW),
            Script::Sets => Some(SETS),
            Script::Stateful { .. } => Some(STATEFUL),
        }
    }

    fn script_file(&self) -> PathBuf {
        self.logs.join("script.sql")
    }
}

impl Run {
    fn from_words(finished: &Finished, limit: Duration) -> Run {
        let mut run = Run::default();
        let mut in_statements = false;
        let mut lines = finished.said.lines().peekable();
        while let Some(line) = lines.next() {
            if in_statements {
                run.statements.extend(statement(line));
            } else if line.starts_with("statement latencies in milliseconds") {
                in_statements = true;
            } else if let Some(rest) = line.strip_prefix("tps = ") {
                run.tps = rest.split_whitespace().next().and_then(|word| word.parse().ok());
            } else if let Some(rest) = line.strip_prefix("average connection time = ") {
                run.connect_mean = rest.split_whitespace().next().and_then(millis);
            } else if let Some(rest) = line.strip_prefix("initial connection time = ") {
                run.connect_all = rest.split_whitespace().next().and_then(millis);
            } else if let Some(rest) = line.strip_prefix("pgbench: error: ")
                && !rest.starts_with("Run was aborted")
            {
                run.trouble.add(|| cause(rest, lines.peek().copied()));
            }
        }
        match finished.status {
            None => run.trouble.add(|| format!("pgbench hung: killed after {} s", limit.as_secs())),
            Some(status) if !status.success() && run.trouble.count == 0 => {
                run.trouble.add(|| crate::host::last_words(&finished.said));
            }
            Some(_) => {}
        }
        run
    }

    /// Lines of: client, transaction, latency in us, script, end in s, end in us.
    fn read_log(&mut self, log: impl BufRead) -> io::Result<()> {
        for line in log.lines() {
            let line = line?;
            let mut fields = line.split_ascii_whitespace().skip(2);
            let latency = fields.next().and_then(|word| word.parse().ok());
            let mut ends = fields.skip(1).map_while(|word| word.parse::<u64>().ok());
            let (Some(latency), Some(seconds), Some(micros)) = (latency, ends.next(), ends.next()) else {
                // A failed transaction has a word for its latency.
                continue;
            };
            self.latencies.add(Duration::from_micros(latency));
            let end = UnixNanos(seconds * 1_000_000_000 + micros * 1_000);
            let (first, last) = self.window.unwrap_or((end, end));
            self.window = Some((first.min(end), last.max(end)));
        }
        Ok(())
    }
}

/// An error without the place where it happened, which is told anyway; sometimes the next line has the cause.
fn cause(text: &str, next: Option<&str>) -> String {
    let place = text.strip_prefix("connection to server at ").and_then(|rest| rest.split_once(" failed:"));
    match place.map(|(_, cause)| cause.trim()) {
        None => text.to_owned(),
        Some("") => next.unwrap_or("no connection").trim().to_owned(),
        Some(cause) => cause.to_owned(),
    }
}

fn millis(word: &str) -> Option<Duration> {
    let millis = word.parse::<f64>().ok().filter(|millis| millis.is_finite())?;
    Some(Duration::from_secs_f64(millis.max(0.0) / 1_000.0))
}

/// A line of: milliseconds, failures (since version 15), statement. What pgbench does by itself takes no time.
fn statement(line: &str) -> Option<(String, Duration)> {
    let (time, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let text = match rest.split_once(char::is_whitespace) {
        Some((failures, text)) if failures.parse::<u64>().is_ok() => text.trim(),
        _ => rest,
    };
    Some((text.to_owned(), millis(time)?)).filter(|(text, _)| !text.starts_with('\\'))
}

#[cfg(test)]
mod tests;
