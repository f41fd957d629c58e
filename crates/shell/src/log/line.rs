//! One line of the log: `YYYY-MM-DD HH:MM:SS.mmm ZONE [pid] LEVEL message`. Does not know where it goes.

use std::fmt::Write;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::Level;

/// How bad it is, in PgBouncer's words; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Fatal,
    Error,
    Warning,
    Log,
    Debug,
    Noise,
}

impl Severity {
    pub(super) fn of(level: Level, fatal: bool) -> Severity {
        match level {
            Level::ERROR if fatal => Severity::Fatal,
            Level::ERROR => Severity::Error,
            Level::WARN => Severity::Warning,
            Level::INFO => Severity::Log,
            Level::DEBUG => Severity::Debug,
            Level::TRACE => Severity::Noise,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Severity::Fatal => "FATAL",
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Log => "LOG",
            Severity::Debug => "DEBUG",
            Severity::Noise => "NOISE",
        }
    }
}

/// What was logged.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: SystemTime,
    pub(super) severity: Severity,
    pub(super) text: String,
}

/// Writes lines. The date and the zone of a second are kept for the next line of the same second.
pub(super) struct Writer {
    zone: TimeZone,
    process_id: u32,
    second: i64,
    date: String,
    zone_name: String,
}

impl Writer {
    pub(super) fn new(zone: TimeZone, process_id: u32) -> Writer {
        Writer { zone, process_id, second: i64::MIN, date: String::new(), zone_name: String::new() }
    }

    /// Appends the entry's line with its newline. Newlines within become `\n\t`, so that a line of the log
    /// cannot be forged by what a peer sent; other control characters become `?`.
    pub(super) fn write(&mut self, entry: &Entry, out: &mut String) {
        // A clock outside jiff's years has gone wrong so far that 1970 is as good.
        let at = Timestamp::try_from(entry.at).unwrap_or(Timestamp::UNIX_EPOCH);
        if at.as_second() != self.second {
            let local = at.to_zoned(self.zone.clone());
            self.second = at.as_second();
            self.date = local.strftime("%Y-%m-%d %H:%M:%S").to_string();
            self.zone_name = local.strftime("%Z").to_string();
        }
        let (date, zone, pid) = (&self.date, &self.zone_name, self.process_id);
        let millis = at.subsec_millisecond().unsigned_abs();
        // Writing to a String cannot fail.
        let _ = write!(out, "{date}.{millis:03} {zone} [{pid}] {} ", entry.severity.word());
        for character in entry.text.chars() {
            match character {
                '\n' => out.push_str("\n\t"),
                '\t' => out.push('\t'),
                control if control.is_control() => out.push('?'),
                other => out.push(other),
            }
        }
        out.push('\n');
    }
}
