//! Becoming another user at the start (`user`, `-u`), for good. Does not know why.

use std::ffi::CString;
use std::{fmt, io};

/// Why the process keeps its user.
#[derive(Debug)]
pub enum PrivilegesFault {
    /// There is no such user.
    NoSuchUser(String),
    /// The system refuses.
    Refused(String, io::Error),
}

impl fmt::Display for PrivilegesFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivilegesFault::NoSuchUser(name) => write!(f, "could not find user \"{name}\""),
            PrivilegesFault::Refused(name, error) => write!(f, "could not become user \"{name}\": {error}"),
        }
    }
}

impl std::error::Error for PrivilegesFault {}

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: CString,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

/// Whether the process may do everything: then a pooler refuses to run.
pub fn is_root() -> bool {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Becomes this user, with all of the user's groups, before other threads are started.
pub fn become_user(name: &str) -> Result<(), PrivilegesFault> {
    let user = User::find(name)?;
    // SAFETY: cannot fail.
    if unsafe { libc::geteuid() } == user.uid {
        return Ok(());
    }
    let checked = |answer: libc::c_int| match answer {
        0 => Ok(()),
        _ => Err(PrivilegesFault::Refused(name.to_owned(), io::Error::last_os_error())),
    };
    // Groups first: without root's rights they cannot be changed any more.
    // SAFETY: `initgroups` reads a string with its zero byte; the others take numbers.
    checked(unsafe { libc::initgroups(user.name.as_ptr(), user.gid as _) })?;
    // SAFETY: see above.
    checked(unsafe { libc::setgid(user.gid) })?;
    // SAFETY: see above.
    checked(unsafe { libc::setuid(user.uid) })?;
    // SAFETY: see above. If it can be undone, it was not done.
    if user.uid != 0 && unsafe { libc::setuid(0) } == 0 {
        return Err(PrivilegesFault::Refused(name.to_owned(), io::Error::other("the change can be undone")));
    }
    Ok(())
}

impl User {
    /// Looks a user up by name.
    pub fn find(name: &str) -> Result<User, PrivilegesFault> {
        let missing = || PrivilegesFault::NoSuchUser(name.to_owned());
        let c_name = CString::new(name).map_err(|_| missing())?;
        let mut buffer = vec![0 as libc::c_char; 16 * 1024];
        // SAFETY: zeroes are a valid `passwd`, which is only read after the call has filled it.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers live until the call returns, and the length is that of the buffer.
        let error = unsafe {
            libc::getpwnam_r(
                c_name.as_ptr(),
                &raw mut entry,
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        match (error, found.is_null()) {
            (0, false) => Ok(User { name: c_name, uid: entry.pw_uid, gid: entry.pw_gid }),
            (0, true) => Err(missing()),
            _ => Err(PrivilegesFault::Refused(name.to_owned(), io::Error::from_raw_os_error(error))),
        }
    }
}

/// Goes on in a child process that has no terminal; the parent ends. Before any thread is started.
pub fn go_to_background() -> io::Result<()> {
    // SAFETY: no other thread runs yet, so the child is as whole as the parent.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: nothing of this process is left to be written or closed.
        _ => unsafe { libc::_exit(0) },
    }
    // SAFETY: neither call touches memory; a fresh child leads no group, so the first cannot fail.
    unsafe { libc::setsid() };
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for standard in 0..3 {
        use std::os::fd::AsRawFd;
        // SAFETY: both are descriptors of this process.
        if unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Lets the process have as many descriptors as it may; answers how many that are.
pub fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that outlives the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: as above. Where it fails the old limit stays, and is not what is answered then.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    limit.rlim_cur
}

/// The number of a group of this name; a number stands for itself.
pub fn group_id(name: &str) -> io::Result<libc::gid_t> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no such group");
    let c_name = CString::new(name).map_err(|_| missing())?;
    let mut buffer = vec![0 as libc::c_char; 64 * 1024];
    // SAFETY: zeroes are a valid `group`, which is only read after the call has filled it.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers live until the call returns, and the length is that of the buffer.
    let error = unsafe {
        libc::getgrnam_r(c_name.as_ptr(), &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    match (error, found.is_null()) {
        (0, false) => Ok(entry.gr_gid),
        (0, true) => Err(missing()),
        _ => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name() {
        assert_eq!(User::find("root").unwrap().uid, 0);
        assert!(matches!(User::find("no such user"), Err(PrivilegesFault::NoSuchUser(_))));
        assert!(matches!(User::find("nul\0"), Err(PrivilegesFault::NoSuchUser(_))));
        assert_eq!(group_id("root").unwrap(), 0);
        assert_eq!(group_id("17").unwrap(), 17);
        assert!(group_id("no such group").is_err());
    }
}
