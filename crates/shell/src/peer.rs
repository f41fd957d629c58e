//! Who is at the other end of a Unix socket.

use std::os::fd::AsRawFd;

use crate::socket::Socket;

/// A process at the other end.
pub struct Peer {
    /// The name of its system user.
    pub name: Option<String>,
    /// It runs as the same user as this process.
    pub is_own: bool,
    /// Its number.
    pub process_id: u32,
}

/// Asks the system; `None` for TCP.
pub fn of(socket: &Socket) -> Option<Peer> {
    let Socket::Unix(socket) = socket else { return None };
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both pointers are to locals that live longer than the call, and `length` is the size of the first.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut credentials).cast(),
            &mut length,
        )
    };
    if result != 0 {
        return None;
    }
    // SAFETY: geteuid cannot fail and touches no memory of ours.
    let own = unsafe { libc::geteuid() };
    Some(Peer {
        name: user_name(credentials.uid),
        is_own: credentials.uid == own,
        process_id: credentials.pid as u32,
    })
}

fn user_name(uid: libc::uid_t) -> Option<String> {
    let mut buffer = vec![0 as libc::c_char; 16 * 1024];
    // SAFETY: zeroes are a valid `passwd`, which is only read after the call has filled it.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers live until the call returns, and the length is that of the buffer.
    let error =
        unsafe { libc::getpwuid_r(uid, &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so the name is a string with its zero within the buffer.
    let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
    name.to_str().ok().map(str::to_owned)
}
