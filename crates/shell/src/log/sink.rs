//! The queue of lines and the thread that writes them. Nobody but that thread ever waits for a disk or a pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, Stderr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use jiff::tz::TimeZone;
use parking_lot::Mutex;

use super::line::{Entry, Severity, Writer};
use super::syslog::Connection;
use super::{LogFault, LogOptions};

/// The way to the log's thread.
#[derive(Clone)]
pub(super) struct Queue {
    sender: SyncSender<Order>,
    shared: Arc<Shared>,
}

struct Shared {
    dropped: AtomicU64,
    options: Mutex<LogOptions>,
}

enum Order {
    Write(Entry),
    Use(Outlets),
    Flushed(SyncSender<()>),
}

/// Where lines go.
struct Outlets {
    stderr: Option<Outlet<Stderr>>,
    file: Option<Outlet<File>>,
    syslog: Option<Connection>,
}

/// A descriptor that lines go to, unless it has just shown that it takes none.
struct Outlet<T> {
    to: T,
    left_out_until: Option<Instant>,
}

pub(super) fn start(options: LogOptions) -> Result<Queue, LogFault> {
    let outlets = Outlets::open(&options)?;
    let (sender, receiver) = mpsc::sync_channel(QUEUE_LINES_MAX);
    let shared = Arc::new(Shared { dropped: AtomicU64::new(0), options: Mutex::new(options) });
    let thread = Thread {
        outlets,
        writer: Writer::new(TimeZone::system(), std::process::id()),
        shared: Arc::clone(&shared),
        dropped_told: 0,
        told: Instant::now(),
        line: String::new(),
    };
    std::thread::Builder::new()
        .name("log".into())
        .spawn(move || thread.run(&receiver))
        .map_err(LogFault::Thread)?;
    Ok(Queue { sender, shared })
}

impl Queue {
    pub(super) fn put(&self, mut entry: Entry) {
        if entry.text.len() > LINE_BYTES_MAX {
            let end = (0..=LINE_BYTES_MAX).rev().find(|at| entry.text.is_char_boundary(*at));
            entry.text.truncate(end.unwrap_or(0));
        }
        if self.sender.try_send(Order::Write(entry)).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn options(&self) -> LogOptions {
        self.shared.options.lock().clone()
    }

    /// The files are opened here, so that the caller hears of a mistake.
    pub(super) fn configure(&self, options: LogOptions) -> Result<(), LogFault> {
        let outlets = Outlets::open(&options)?;
        *self.shared.options.lock() = options;
        // A full queue keeps the old outlets until the next reopening: better than to wait for a full disk.
        let _ = self.sender.try_send(Order::Use(outlets));
        Ok(())
    }

    pub(super) fn flush(&self, limit: Duration) -> bool {
        let (done, wait) = mpsc::sync_channel(1);
        self.sender.try_send(Order::Flushed(done)).is_ok() && wait.recv_timeout(limit).is_ok()
    }
}

impl Outlets {
    fn open(options: &LogOptions) -> Result<Outlets, LogFault> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|error| LogFault::File(path.to_owned(), error))
        };
        Ok(Outlets {
            stderr: options.stderr.then(|| Outlet::new(io::stderr())),
            file: options.file.as_deref().map(open).transpose()?.map(Outlet::new),
            syslog: options.syslog.clone().map(Connection::new),
        })
    }

    /// False if the line reached not all of its outlets.
    fn write(&mut self, entry: &Entry, line: &str) -> bool {
        let mut whole = true;
        if let Some(file) = &mut self.file {
            whole &= file.write(line);
        }
        if let Some(stderr) = &mut self.stderr {
            whole &= stderr.write(line);
        }
        if let Some(syslog) = self.syslog.as_mut().filter(|_| entry.severity <= Severity::Log) {
            whole &= syslog.send(entry).is_ok();
        }
        whole
    }
}

impl<T: AsFd> Outlet<T> {
    fn new(to: T) -> Outlet<T> {
        Outlet { to, left_out_until: None }
    }

    fn write(&mut self, line: &str) -> bool {
        if self.left_out_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        let written = write_or_give_up(self.to.as_fd(), line.as_bytes());
        let stuck = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        self.left_out_until = stuck.then(|| Instant::now() + STUCK_LEFT_OUT);
        written.is_ok()
    }
}

/// Writes all of `bytes`, but waits only [`WRITE_WAIT_MS_MAX`] for a reader that takes nothing: a pipe that is
/// full and not read must not stop the lines that go to the file.
fn write_or_give_up(outlet: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    while !bytes.is_empty() {
        let mut poll = libc::pollfd { fd: outlet.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one pollfd that lives until poll returns.
        match unsafe { libc::poll(&raw mut poll, 1, WRITE_WAIT_MS_MAX) } {
            0 => return Err(io::ErrorKind::TimedOut.into()),
            1.. => {}
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
            _ => return Err(io::Error::last_os_error()),
        }
        // A pipe that is ready takes PIPE_BUF bytes without waiting, but not more.
        let part = &bytes[..bytes.len().min(PIPE_BUF)];
        // SAFETY: the pointer and the length are those of a slice that is alive.
        let written = unsafe { libc::write(outlet.as_raw_fd(), part.as_ptr().cast(), part.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => {
                let error = io::Error::last_os_error();
                if !matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

struct Thread {
    outlets: Outlets,
    writer: Writer,
    shared: Arc<Shared>,
    dropped_told: u64,
    told: Instant,
    line: String,
}

impl Thread {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(DROPPED_TOLD_EVERY) {
                Ok(Order::Write(entry)) => self.write(&entry),
                Ok(Order::Use(outlets)) => self.outlets = outlets,
                // Who waited may have given up.
                Ok(Order::Flushed(done)) => drop(done.try_send(())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.told.elapsed() >= DROPPED_TOLD_EVERY {
                self.told = Instant::now();
                self.tell_dropped();
            }
        }
    }

    fn write(&mut self, entry: &Entry) {
        self.line.clear();
        self.writer.write(entry, &mut self.line);
        if !self.outlets.write(entry, &self.line) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn tell_dropped(&mut self) {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if dropped == self.dropped_told {
            return;
        }
        let text = format!("log lines lost: {} ({dropped} since the start)", dropped - self.dropped_told);
        self.dropped_told = dropped;
        let entry = Entry { at: SystemTime::now(), severity: Severity::Warning, text };
        self.line.clear();
        self.writer.write(&entry, &mut self.line);
        // This line is not counted when it cannot be written: it would be told of for ever.
        self.outlets.write(&entry, &self.line);
    }
}

/// At most 16 KB each.
const QUEUE_LINES_MAX: usize = 8192;
/// Longer texts are cut.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How long the log's own thread waits for a reader that takes nothing.
const WRITE_WAIT_MS_MAX: libc::c_int = 200;
/// POSIX promises at least 512; Linux has 4096.
const PIPE_BUF: usize = 512;
const DROPPED_TOLD_EVERY: Duration = Duration::from_secs(10);
/// How long an outlet that took nothing is not tried again.
const STUCK_LEFT_OUT: Duration = Duration::from_secs(5);
