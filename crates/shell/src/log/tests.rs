//! Lines as they are written, and outlets that fail.

use std::fs;
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;

use super::line::{Entry, Severity, Writer};
use super::sink::{self, Queue};
use super::{Facility, LogOptions, Syslog, syslog};

fn entry(text: &str) -> Entry {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_007);
    Entry { at, severity: Severity::Log, text: text.into() }
}

#[track_caller]
fn check_line(zone: TimeZone, entry: &Entry, expected: &str) {
    let mut line = String::new();
    Writer::new(zone, 42).write(entry, &mut line);
    assert_eq!(line, expected);
}

#[test]
fn line_has_the_form_of_pgbouncer() {
    check_line(TimeZone::UTC, &entry("process up"), "2023-11-14 22:13:20.007 UTC [42] LOG process up\n");
}

#[test]
fn line_has_the_local_time_and_zone() {
    let Ok(zone) = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0") else { panic!("a sound zone") };
    check_line(zone, &entry("x"), "2023-11-14 17:13:20.007 EST [42] LOG x\n");
}

#[test]
fn newlines_cannot_forge_a_line() {
    let forged = entry("user \"a\n2023-11-14 LOG forged\r\x1b[2J\"");
    let expected = "2023-11-14 22:13:20.007 UTC [42] LOG user \"a\n\t2023-11-14 LOG forged??[2J\"\n";
    check_line(TimeZone::UTC, &forged, expected);
}

#[test]
fn syslog_datagram_has_priority_and_name() {
    let facility = Facility::from_name("local0").unwrap();
    let syslog = Syslog { ident: "pgbouncer".into(), facility };
    assert_eq!(syslog::datagram(&syslog, &entry("a\nb"), 42), "<134>pgbouncer[42]: a b");
}

fn options(file: &std::path::Path) -> LogOptions {
    LogOptions { stderr: false, verbose: 0, file: Some(file.to_owned()), syslog: None }
}

const LIMIT: Duration = Duration::from_secs(20);

fn put(queue: &Queue, text: &str) {
    queue.put(entry(text));
    assert!(queue.flush(LIMIT));
}

#[test]
fn file_is_appended_to_and_opened_anew() {
    let dir = testkit::temp::TempDir::new();
    let (path, rotated) = (dir.join("log"), dir.join("log.1"));
    fs::write(&path, "before\n").unwrap();
    let queue = sink::start(options(&path)).unwrap();
    put(&queue, "one");
    fs::rename(&path, &rotated).unwrap();
    put(&queue, "two");
    queue.configure(queue.options()).unwrap();
    put(&queue, "three");
    let last_words = |path| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(last_words(&rotated), ["before", "one", "two"]);
    assert_eq!(last_words(&path), ["three"]);
}

#[test]
fn file_that_cannot_be_opened_leaves_the_old_one_in_use() {
    let dir = testkit::temp::TempDir::new();
    let path = dir.join("log");
    let queue = sink::start(options(&path)).unwrap();
    let fault = queue.configure(options(&dir.join("no/such/dir"))).unwrap_err();
    assert!(fault.to_string().contains("no/such/dir"), "{fault}");
    put(&queue, "still");
    assert!(fs::read_to_string(&path).unwrap().ends_with("still\n"));
}

#[test]
fn full_disk_is_counted() {
    let queue = sink::start(options("/dev/full".as_ref())).unwrap();
    put(&queue, "lost");
    assert_eq!(queue.dropped(), 1);
}

#[test]
fn full_queue_drops_lines_and_does_not_wait() {
    // A pipe that nobody reads: the log's thread waits for it, who logs must not.
    let dir = testkit::temp::TempDir::new();
    let path = dir.join("pipe");
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a string with its zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let _reader = fs::File::options().read(true).write(true).open(&path).unwrap();
    let queue = sink::start(options(&path)).unwrap();
    let long = "x".repeat(16 * 1024);
    for _ in 0..10_000 {
        queue.put(entry(&long));
    }
    assert!(queue.dropped() > 0);
}
