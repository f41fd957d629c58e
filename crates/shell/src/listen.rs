//! The sockets on which we listen. Decides which addresses the settings mean and when an address is taken;
//! does not know what is done with a connection.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{fmt, os};

use socket2::{Domain, SockAddr, Socket, Type};

/// Where to listen, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// `listen_addr`: addresses, names or `*`.
    pub addresses: Vec<String>,
    /// `listen_port`.
    pub port: u16,
    /// `listen_backlog`.
    pub backlog: i32,
    /// `so_reuseport`.
    pub reuse_port: bool,
    /// `tcp_defer_accept`.
    pub defer_accept: bool,
    /// The Unix socket, if there shall be one.
    pub unix: Option<UnixOptions>,
}

/// The Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixOptions {
    /// `unix_socket_dir`: a directory, or `@name` for an abstract socket.
    pub dir: String,
    /// `unix_socket_mode`; abstract sockets have none.
    pub mode: u32,
    /// `unix_socket_group`; abstract sockets have none.
    pub group: Option<String>,
}

/// A socket that listens, in non-blocking mode.
#[derive(Debug)]
pub enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// On a Unix socket.
    Unix {
        /// The socket.
        listener: UnixListener,
        /// Its name in the file system, if it has one that is ours.
        socket_file: Option<SocketFile>,
    },
}

/// Why we do not listen.
#[derive(Debug)]
pub enum ListenFault {
    /// An address cannot be listened on.
    Address(SocketAddr, io::Error),
    /// The group of the Unix socket is unknown or not ours.
    Group(String, io::Error),
    /// A socket that was handed to us is none to listen on.
    Inherited(io::Error),
    /// A name in `listen_addr` has no address.
    Name(String, io::Error),
    /// There is a `.lock` file: a PostgreSQL server's socket.
    UnixLocked(PathBuf),
    /// Somebody answers on the Unix socket.
    UnixInUse(String),
    /// The Unix socket cannot be made.
    Unix(String, io::Error),
}

impl fmt::Display for ListenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenFault::Address(address, error) => write!(f, "cannot listen on {address}: {error}"),
            ListenFault::Group(group, error) => {
                write!(f, "cannot give the unix socket to group \"{group}\": {error}")
            }
            ListenFault::Inherited(error) => write!(f, "socket from systemd cannot be used: {error}"),
            ListenFault::Name(name, error) => write!(f, "cannot listen on \"{name}\": {error}"),
            ListenFault::UnixLocked(path) => {
                write!(f, "unix socket is in use, cannot continue: \"{}\" exists", path.display())
            }
            ListenFault::UnixInUse(name) => {
                write!(f, "unix socket is in use, cannot continue: \"{name}\" answers")
            }
            ListenFault::Unix(name, error) => write!(f, "cannot listen on unix socket \"{name}\": {error}"),
        }
    }
}

impl std::error::Error for ListenFault {}

/// Listens on everything that the options name, or on nothing.
pub fn listen(options: &ListenOptions) -> Result<Vec<Listener>, ListenFault> {
    let mut listeners = Vec::new();
    for name in &options.addresses {
        listen_on_name(options, name.trim(), &mut listeners)?;
    }
    if let Some(unix) = &options.unix {
        listeners.push(listen_on_unix(unix, options.port, options.backlog)?);
    }
    for listener in &listeners {
        tracing::info!("listening on {listener}");
    }
    Ok(listeners)
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.fmt(f),
                Err(_) => f.write_str("a closed socket"),
            },
            Listener::Unix { listener, .. } => {
                let address = listener.local_addr().ok();
                match address.as_ref().and_then(|address| address.as_pathname()) {
                    Some(path) => write!(f, "unix:{}", path.display()),
                    None => f.write_str("unix:@ (abstract)"),
                }
            }
        }
    }
}

fn listen_on_name(
    options: &ListenOptions,
    name: &str,
    listeners: &mut Vec<Listener>,
) -> Result<(), ListenFault> {
    let addresses: Vec<SocketAddr> = if name == "*" {
        vec![(Ipv4Addr::UNSPECIFIED, options.port).into(), (Ipv6Addr::UNSPECIFIED, options.port).into()]
    } else {
        let found = (name, options.port).to_socket_addrs();
        let mut found: Vec<_> = found.map_err(|error| ListenFault::Name(name.to_owned(), error))?.collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let mut missing = None;
    let before = listeners.len();
    for address in addresses {
        match listen_on_address(options, address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            // A name or `*` may mean addresses of a family that this machine has switched off.
            Err(error) if is_absent(&error) => missing = Some(ListenFault::Address(address, error)),
            Err(error) => return Err(ListenFault::Address(address, error)),
        }
    }
    match missing {
        Some(fault) if listeners.len() == before => Err(fault),
        Some(fault) => {
            tracing::debug!("{fault}");
            Ok(())
        }
        None if listeners.len() == before => {
            Err(ListenFault::Name(name.to_owned(), io::ErrorKind::NotFound.into()))
        }
        None => Ok(()),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT))
}

fn listen_on_address(options: &ListenOptions, address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // So that a restart need not wait for old connections to be forgotten.
    socket.set_reuse_address(true)?;
    if options.reuse_port {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        // `*` has a socket of its own for IPv4.
        socket.set_only_v6(true)?;
    }
    // Connections begin with it where the system hands it down; from the first one on, so before `listen`.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    #[cfg(target_os = "linux")]
    if options.defer_accept {
        defer_accept(&socket)?;
    }
    socket.listen(options.backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The kernel shows us a connection once its first bytes are there. Like PgBouncer we ask for one second,
/// after which it is shown without.
#[cfg(target_os = "linux")]
fn defer_accept(socket: &Socket) -> io::Result<()> {
    use os::fd::AsRawFd;

    let seconds: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const seconds).cast();
    // SAFETY: the pointer and the size are those of an int that lives until the call returns.
    let answer = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, value, size)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The name of the socket for a port in a directory, as PostgreSQL and PgBouncer build it.
pub fn unix_socket_name(dir: &str, port: u16) -> String {
    format!("{}/.s.PGSQL.{port}", dir.trim_end_matches('/'))
}

/// A Unix socket's address; a name that begins with `@` is an abstract one.
pub fn unix_address(name: &[u8]) -> io::Result<SockAddr> {
    use os::unix::ffi::OsStrExt;

    let mut name = name.to_vec();
    if let Some(first @ b'@') = name.first_mut() {
        *first = 0;
    }
    SockAddr::unix(Path::new(std::ffi::OsStr::from_bytes(&name)))
}

fn listen_on_unix(options: &UnixOptions, port: u16, backlog: i32) -> Result<Listener, ListenFault> {
    let name = unix_socket_name(&options.dir, port);
    let io = |error| ListenFault::Unix(name.clone(), error);
    let address = unix_address(name.as_bytes()).map_err(io)?;
    let has_file = !name.starts_with('@');
    if has_file {
        let lock = PathBuf::from(format!("{name}.lock"));
        if lock.exists() {
            return Err(ListenFault::UnixLocked(lock));
        }
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(io)?;
    probe.set_nonblocking(true).map_err(io)?;
    match probe.connect(&address) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Connecting to a file that is no socket is refused too; that one stays, and `bind` fails.
            let is_socket = |file: fs::Metadata| file.file_type().is_socket();
            if has_file && fs::symlink_metadata(&name).is_ok_and(is_socket) {
                fs::remove_file(&name).map_err(io)?;
            }
        }
        // Also one whose queue is full, or that belongs to another user: somebody is there.
        Ok(()) | Err(_) => return Err(ListenFault::UnixInUse(name)),
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(io)?;
    socket.bind(&address).map_err(io)?;
    let mut socket_file = None;
    if has_file {
        // Mode and group before `listen`: until then nobody can connect, whatever the umask is.
        fs::set_permissions(&name, fs::Permissions::from_mode(options.mode)).map_err(io)?;
        if let Some(group) = &options.group {
            let group_fault = |error| ListenFault::Group(group.clone(), error);
            let id = crate::privileges::group_id(group).map_err(group_fault)?;
            os::unix::fs::chown(&name, None, Some(id)).map_err(group_fault)?;
        }
        socket_file = Some(SocketFile::of(Path::new(&name)).map_err(io)?);
    }
    socket.listen(backlog).map_err(io)?;
    socket.set_nonblocking(true).map_err(io)?;
    Ok(Listener::Unix { listener: socket.into(), socket_file })
}

/// A Unix socket's name in the file system, which outlives the socket unless it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<SocketFile> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(SocketFile { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// Removes it, unless another process has put its own in its place.
    pub fn remove(&self) {
        if SocketFile::of(&self.path).is_ok_and(|found| found == *self)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!("could not remove unix socket \"{}\": {error}", self.path.display());
        }
    }
}
