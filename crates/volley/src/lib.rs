//! Many small sends in one system call, where the kernel has io_uring.
//!
//! A [`Volley`] is loaded with sends to different sockets and fired. Nothing of it is asynchronous: each send is
//! made at once, within the call that fires, and may not wait. So no bytes have to stay anywhere while a kernel
//! reads them later, nothing has to be canceled when a socket closes, and what a socket did not take comes back as
//! from a plain `send` that is told not to block.
//!
//! It knows sockets only by their descriptors, and nothing of what is sent.
#![allow(clippy::disallowed_methods, reason = "it makes a pair of sockets to try itself")]
#![warn(missing_docs)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::Volley;
#[cfg(not(target_os = "linux"))]
pub use other::Volley;

use std::cell::Cell;
use std::os::fd::RawFd;

thread_local! {
    /// The round of this thread's volley while anything is loaded.
    static LOADED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Whether this thread's volley is in this round and something is loaded: a socket that was loaded in it must not be
/// closed yet.
#[inline]
pub fn is_loaded(round: u32) -> bool {
    LOADED.get() == Some(round)
}

/// The sends of one volley.
pub const SENDS_MAX: usize = 64;
/// The largest send that is worth being copied, in bytes.
pub const SEND_BYTES_MAX: usize = 8 << 10;
/// The bytes of one volley.
pub const VOLLEY_BYTES_MAX: usize = 128 << 10;

/// What a socket did not take of its send, for whatever reason: trying again says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The socket.
    pub fd: RawFd,
    /// The last bytes of the send, or all of them.
    pub rest: Vec<u8>,
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
