//! What systemd and we tell one another: sockets that it opened for us, and how we are. Does nothing elsewhere.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use socket2::{Domain, Socket};

use crate::listen::{ListenFault, Listener};

/// What we tell systemd (`Type=notify` and `notify-reload`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// We serve clients, also after a reload.
    Ready,
    /// A reload has begun; `Ready` must follow.
    Reloading,
    /// We are about to end.
    Stopping,
    /// A line for `systemctl status`.
    Status(&'a str),
}

/// Tells systemd, if it wants to know. That it cannot be told is no reason to stop, so nothing is returned.
pub fn notify(notice: Notice<'_>) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(address.as_encoded_bytes(), notice) {
        tracing::warn!("could not notify systemd: {error}");
    }
}

fn send(address: &[u8], notice: Notice<'_>) -> io::Result<()> {
    let text = match notice {
        Notice::Ready => "READY=1".to_owned(),
        Notice::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_usec()),
        Notice::Stopping => "STOPPING=1".to_owned(),
        // A newline would begin another assignment.
        Notice::Status(line) => format!("STATUS={}", line.replace('\n', " ")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    let address = crate::listen::unix_address(address)?;
    socket2::SockRef::from(&socket).send_to(text.as_bytes(), &address)?;
    Ok(())
}

fn monotonic_usec() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: one timespec that lives until the call returns.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// The listening sockets that systemd opened for this process, none if it did not. To be called once: the
/// sockets are owned by who gets them.
pub fn listeners() -> Result<Vec<Listener>, ListenFault> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let ours = number("LISTEN_PID") == Some(std::process::id());
    let count = number("LISTEN_FDS").filter(|_| ours).unwrap_or(0).min(DESCRIPTORS_MAX);
    // SAFETY: systemd hands these descriptors over to this process, and nobody else here takes them.
    (0..count as RawFd).map(|at| listener(unsafe { OwnedFd::from_raw_fd(FIRST_DESCRIPTOR + at) })).collect()
}

fn listener(descriptor: OwnedFd) -> Result<Listener, ListenFault> {
    let socket = Socket::from(descriptor);
    let domain = (|| {
        if !socket.is_listener()? {
            return Err(io::Error::other("not a listening socket"));
        }
        socket.set_cloexec(true)?;
        socket.set_nonblocking(true)?;
        socket.domain()
    })();
    match domain {
        Ok(Domain::IPV4 | Domain::IPV6) => Ok(Listener::Tcp(socket.into())),
        Ok(Domain::UNIX) => Ok(Listener::Unix { listener: socket.into(), socket_file: None }),
        Ok(_) => Err(ListenFault::Inherited(io::Error::other("neither TCP nor a Unix socket"))),
        Err(error) => Err(ListenFault::Inherited(error)),
    }
}

/// sd_listen_fds(3).
const FIRST_DESCRIPTOR: RawFd = 3;
const DESCRIPTORS_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use testkit::temp::TempDir;

    #[track_caller]
    fn check(notice: Notice<'_>, starts_with: &str) {
        let dir = TempDir::new();
        let path = dir.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str().as_bytes(), notice).unwrap();
        let mut buffer = [0; 256];
        let size = socket.recv(&mut buffer).unwrap();
        let text = std::str::from_utf8(&buffer[..size]).unwrap();
        assert!(text.starts_with(starts_with), "{text}");
    }

    #[test]
    fn notices_are_datagrams() {
        check(Notice::Ready, "READY=1");
        check(Notice::Stopping, "STOPPING=1");
        check(Notice::Reloading, "RELOADING=1\nMONOTONIC_USEC=");
        check(Notice::Status("stats: 1\nREADY=1"), "STATUS=stats: 1 READY=1");
    }

    #[test]
    fn inherited_descriptor_must_listen() {
        let dir = TempDir::new();
        let listening = std::os::unix::net::UnixListener::bind(dir.join("s")).unwrap();
        assert!(matches!(listener(listening.into()), Ok(Listener::Unix { .. })));
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(matches!(listener(tcp.into()), Ok(Listener::Tcp(_))));
        let datagram = UnixDatagram::unbound().unwrap();
        assert!(matches!(listener(datagram.into()), Err(ListenFault::Inherited(_))));
    }
}
