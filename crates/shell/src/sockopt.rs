//! Options of TCP sockets, to clients and to servers alike. Does not know which is which.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// PgBouncer's `tcp_*` settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// `tcp_keepalive`.
    pub keepalive: bool,
    /// `tcp_keepidle`; zero leaves it to the system.
    pub keepidle: Duration,
    /// `tcp_keepintvl`; zero leaves it to the system.
    pub keepintvl: Duration,
    /// `tcp_keepcnt`; zero leaves it to the system.
    pub keepcnt: u32,
    /// `tcp_user_timeout`; zero leaves it to the system.
    pub user_timeout: Duration,
    /// `tcp_socket_buffer` in bytes; zero leaves it to the system.
    pub socket_buffer_bytes: usize,
}

impl TcpOptions {
    /// PgBouncer's defaults.
    pub const DEFAULT: TcpOptions = TcpOptions {
        keepalive: true,
        keepidle: Duration::ZERO,
        keepintvl: Duration::ZERO,
        keepcnt: 0,
        user_timeout: Duration::ZERO,
        socket_buffer_bytes: 0,
    };

    /// Sets all of them, and TCP_NODELAY always: a pooler sends whole messages.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = SockRef::from(socket);
        socket.set_tcp_nodelay(true)?;
        if self.socket_buffer_bytes > 0 {
            socket.set_send_buffer_size(self.socket_buffer_bytes)?;
            socket.set_recv_buffer_size(self.socket_buffer_bytes)?;
        }
        if self.keepalive {
            let mut keepalive = TcpKeepalive::new();
            if !self.keepidle.is_zero() {
                keepalive = keepalive.with_time(self.keepidle);
            }
            if !self.keepintvl.is_zero() {
                keepalive = keepalive.with_interval(self.keepintvl);
            }
            if self.keepcnt > 0 {
                keepalive = keepalive.with_retries(self.keepcnt);
            }
            // This switches it on, too.
            socket.set_tcp_keepalive(&keepalive)?;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if !self.user_timeout.is_zero() {
            socket.set_tcp_user_timeout(Some(self.user_timeout))?;
        }
        Ok(())
    }

    /// Sets them on a socket that listens, for the connections that will come to it. What is left to the system
    /// is set to what the system would choose, because another value may have been handed down before.
    ///
    /// # Errors
    /// Those of `setsockopt`; sizes of buffers, once set, cannot be left to the system again.
    #[cfg(target_os = "linux")]
    pub fn hand_down(&self, listener: &impl AsFd) -> io::Result<()> {
        if self.socket_buffer_bytes > 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let fresh = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        let socket = SockRef::from(listener);
        socket.set_tcp_keepalive(&keepalive_defaults(&fresh)?)?;
        socket.set_tcp_user_timeout(None)?;
        self.apply(listener)?;
        socket.set_keepalive(self.keepalive)
    }

    /// Nothing can be relied on to be handed down.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn hand_down(&self, _listener: &impl AsFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The time, interval and count of probes that the system gives to a socket.
#[cfg(target_os = "linux")]
fn keepalive_defaults(fresh: &socket2::Socket) -> io::Result<TcpKeepalive> {
    let keepalive = TcpKeepalive::new()
        .with_time(fresh.tcp_keepalive_time()?)
        .with_interval(fresh.tcp_keepalive_interval()?)
        .with_retries(fresh.tcp_keepalive_retries()?);
    Ok(keepalive)
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn options_are_set() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let options = TcpOptions {
            keepidle: Duration::from_secs(11),
            keepintvl: Duration::from_secs(12),
            keepcnt: 13,
            user_timeout: Duration::from_millis(1400),
            socket_buffer_bytes: 65_536,
            ..TcpOptions::DEFAULT
        };
        options.apply(&socket).unwrap();
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(11));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(12));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 13);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_millis(1400)));
        assert!(socket.send_buffer_size().unwrap() >= 65_536);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn connections_begin_with_what_was_handed_down() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = TcpOptions { keepidle: Duration::from_secs(11), keepcnt: 13, ..TcpOptions::DEFAULT };
        own.hand_down(&listener).unwrap();
        let _client = std::net::TcpStream::connect(address).unwrap();
        let accepted = Socket::from(listener.accept().unwrap().0);
        assert!(accepted.tcp_nodelay().unwrap() && accepted.keepalive().unwrap());
        assert_eq!(accepted.tcp_keepalive_time().unwrap(), Duration::from_secs(11));
        assert_eq!(accepted.tcp_keepalive_retries().unwrap(), 13);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_left_to_the_system_again_is_what_a_fresh_socket_has() {
        let fresh = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let own = TcpOptions { keepidle: Duration::from_secs(11), keepcnt: 13, ..TcpOptions::DEFAULT };
        own.hand_down(&listener).unwrap();
        TcpOptions { keepalive: false, ..TcpOptions::DEFAULT }.hand_down(&listener).unwrap();
        assert!(!listener.keepalive().unwrap());
        assert_eq!(listener.tcp_keepalive_time().unwrap(), fresh.tcp_keepalive_time().unwrap());
        assert_eq!(listener.tcp_keepalive_retries().unwrap(), fresh.tcp_keepalive_retries().unwrap());
    }

    #[test]
    fn keepalive_can_be_off() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        TcpOptions { keepalive: false, ..TcpOptions::DEFAULT }.apply(&socket).unwrap();
        assert!(!socket.keepalive().unwrap());
    }
}
