//! The few things of the operating system that the standard library does not offer.
//!
//! All unsafe code of this crate is here, each use with its reason. Knows nothing of PostgreSQL or Howdah.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, channel, sync_channel};

/// The signals that tests send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Hangup,
    Interrupt,
    Quit,
    Kill,
    User1,
    User2,
    Terminate,
    Stop,
    Continue,
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Signal::Hangup => libc::SIGHUP,
            Signal::Interrupt => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Kill => libc::SIGKILL,
            Signal::User1 => libc::SIGUSR1,
            Signal::User2 => libc::SIGUSR2,
            Signal::Terminate => libc::SIGTERM,
            Signal::Stop => libc::SIGSTOP,
            Signal::Continue => libc::SIGCONT,
        }
    }
}

/// Sends a signal to one process that the caller has started.
pub fn send_signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // Zero and negative numbers mean groups of processes: never those.
    if pid <= 1 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: kill takes two numbers and touches no memory of ours.
    check(unsafe { libc::kill(pid, signal.number()) })
}

/// True for uid 0, which PostgreSQL refuses to run as.
pub fn is_root() -> bool {
    // SAFETY: geteuid cannot fail and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// Starts a child that the kernel ends with `death_signal` as soon as this process is gone, however it went.
///
/// The kernel ties that promise to the thread that forked, and test threads come and go; so one thread that
/// lives as long as the process starts all children.
pub fn spawn(command: Command, death_signal: Signal) -> io::Result<Child> {
    type Order = (Command, Signal, SyncSender<io::Result<Child>>);
    static STARTER: OnceLock<std::sync::mpsc::Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, inbox) = channel::<Order>();
        std::thread::Builder::new()
            .name("starter".into())
            .spawn(move || {
                for (command, signal, answer) in inbox {
                    // A caller that is gone needs no answer.
                    let _ = answer.send(spawn_here(command, signal));
                }
            })
            .expect("one thread can be started");
        orders
    });
    let (answer, result) = sync_channel(1);
    // The starter never ends before the process: both halves stay connected.
    starter.send((command, death_signal, answer)).expect("the starter lives");
    result.recv().expect("the starter answers")
}

fn spawn_here(mut command: Command, death_signal: Signal) -> io::Result<Child> {
    let parent = std::process::id();
    let number = death_signal.number();
    // SAFETY: the closure runs between fork and exec and calls only async-signal-safe functions.
    unsafe {
        command.pre_exec(move || {
            #[cfg(target_os = "linux")]
            {
                check(libc::prctl(libc::PR_SET_PDEATHSIG, number as libc::c_ulong))?;
                // The parent may have died before prctl: then no signal will come.
                if libc::getppid() as u32 != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            #[cfg(not(target_os = "linux"))]
            let _ = (parent, number);
            Ok(())
        });
    }
    command.spawn()
}

/// Waits for and takes the lock of a file; it ends when the file is closed.
pub fn lock_exclusively(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) })
}

/// Makes the close of this socket a reset (RST) in place of an orderly end.
pub fn reset_at_close(socket: &TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the pointer and the length describe `linger`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    })
}

/// Raises the number of files this process and its children may open; returns what holds now.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to `limit`, which outlives them.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        if limit.rlim_cur < wanted {
            limit.rlim_cur = wanted.min(limit.rlim_max);
            check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        }
    }
    Ok(limit.rlim_cur)
}

/// Runs `last` when this process exits in the ordinary way (not after a crash).
pub fn at_exit(last: fn()) {
    static LAST: OnceLock<fn()> = OnceLock::new();
    extern "C" fn call() {
        if let Some(last) = LAST.get() {
            last();
        }
    }
    if LAST.set(last).is_ok() {
        // SAFETY: `call` is a plain function that lives as long as the program.
        unsafe { libc::atexit(call) };
    }
}

/// Set by the first SIGINT or SIGTERM once [`note_interrupts`] was called.
pub fn interrupted() -> bool {
    INTERRUPTED.load(std::sync::atomic::Ordering::SeqCst)
}

/// From now on SIGINT and SIGTERM only set a flag, so that a program can clean up.
pub fn note_interrupts() {
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.store(true, std::sync::atomic::Ordering::SeqCst);
    }
    let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
    unsafe {
        libc::signal(libc::SIGINT, handler);
        libc::signal(libc::SIGTERM, handler);
    }
}

static INTERRUPTED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
