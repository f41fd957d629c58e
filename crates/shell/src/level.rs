//! Descriptors that a poll goes on telling of for as long as they are ready; of all others it tells once.

use std::io;
use std::os::fd::RawFd;

use mio::{Registry, Token};

/// Which of the polls that sleep are woken when several watch the same descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// All.
    All,
    /// One of them: many threads woken for one client would be a crowd at the door.
    One,
}

/// Whether this system has such watches.
pub const HAS_LEVELS: bool = cfg!(target_os = "linux");

/// Has a poll watch a descriptor for something to read.
///
/// # Errors
/// Those of `epoll_ctl`.
#[cfg(target_os = "linux")]
pub fn watch(registry: &Registry, fd: RawFd, token: Token, wakes: Wakes) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let exclusive = if wakes == Wakes::One { libc::EPOLLEXCLUSIVE } else { 0 };
    let events = (libc::EPOLLIN | exclusive) as u32;
    let mut event = libc::epoll_event { events, u64: token.0 as u64 };
    // SAFETY: both descriptors are open, and the event lives until the call returns.
    let answer = unsafe { libc::epoll_ctl(registry.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where there are none, it tells once.
///
/// # Errors
/// Those of the system's call.
#[cfg(not(target_os = "linux"))]
pub fn watch(registry: &Registry, fd: RawFd, token: Token, _wakes: Wakes) -> io::Result<()> {
    registry.register(&mut mio::unix::SourceFd(&fd), token, mio::Interest::READABLE)
}
