//! The real pgbench: its command line, what it prints, what it logs. Its log has every transaction with
//! the time of its end, on which the percentiles rest and the window for which CPU is counted: from the
//! first transaction, when all clients are in, to the last.

use crate::error::BenchError;
use crate::generator::Trouble;
use crate::histogram::Histogram;
use crate::host::Stop;
use crate::options::Mode;
use crate::postgres::DATABASE;
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
    /// The target's port.
    pub port: u16,
    /// The target's role.
    pub role: &'a str,
    /// `-c`.
    pub clients: usize,
    /// `-j`.
    pub threads: usize,
    /// `-T`.
    pub seconds: u32,
    /// `-M`.
    pub mode: Mode,
    /// `-C`.
    pub reconnect: bool,
}

/// What came out.
#[derive(Debug, Default)]
pub struct Run {
    /// By pgbench's own account; nothing if it gave none.
    pub tps: Option<f64>,
    /// Mean time to connect, with `-C`.
    pub connect_mean: Option<Duration>,
    /// From its log.
    pub latencies: Histogram,
    /// The window of the log.
    pub window: Option<(UnixNanos, UnixNanos)>,
    /// What went wrong.
    pub trouble: Trouble,
}

/// How long it may take beyond its time: logins, last transactions.
const SPARE: Duration = Duration::from_secs(30);

impl Pgbench<'_> {
    /// Runs it.
    pub fn run(&self, stop: &Stop) -> Result<Run, BenchError> {
        let doing = || BenchError::io("keeping pgbench's logs");
        let _ = fs::remove_dir_all(&self.logs);
        fs::create_dir_all(&self.logs).map_err(doing())?;
        let limit = Duration::from_secs(self.seconds.into()) + SPARE;
        let finished = self.program().finish(&self.logs.join("words"), limit, stop)?;
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

    fn program(&self) -> Program {
        let mut program = Program::new("pgbench", self.programs.join("pgbench"));
        program.cores = self.cores.clone();
        let threads = self.threads.clamp(1, self.clients);
        let numbers = [
            ("-c", self.clients.to_string()),
            ("-j", threads.to_string()),
            ("-T", self.seconds.to_string()),
            ("-M", self.mode.word().to_owned()),
            ("-h", "127.0.0.1".to_owned()),
            ("-p", self.port.to_string()),
            ("-U", self.role.to_owned()),
        ];
        let mut program = program.arguments(["-n", "-S", "-l"]);
        if self.reconnect {
            program = program.arguments(["-C"]);
        }
        for (name, value) in numbers {
            program = program.arguments([name.to_owned(), value]);
        }
        program.arguments([format!("--log-prefix={}", self.logs.join("t").display())]).arguments([DATABASE])
    }
}

impl Run {
    fn from_words(finished: &Finished, limit: Duration) -> Run {
        let mut run = Run::default();
        for line in finished.said.lines() {
            if let Some(rest) = line.strip_prefix("tps = ") {
                run.tps = rest.split_whitespace().next().and_then(|word| word.parse().ok());
            } else if let Some(rest) = line.strip_prefix("average connection time = ") {
                let millis = rest.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
                run.connect_mean = millis.map(|millis| Duration::from_secs_f64(millis.max(0.0) / 1_000.0));
            } else if let Some(rest) = line.strip_prefix("pgbench: error: ")
                && !rest.starts_with("Run was aborted")
            {
                run.trouble.add(|| rest.to_owned());
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

#[cfg(test)]
mod tests;
