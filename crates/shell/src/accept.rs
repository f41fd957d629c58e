//! New clients: accepted by whichever worker wakes, watched by the one that has the fewest.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton::Gate;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use model::{ClientId, Moment, WorkerId};
use parking_lot::Mutex;

use crate::enter::Entering;
use crate::listen::Listener;
use crate::session::{Core, Mail, Phase, Session};
use crate::shared::Shared;
use crate::socket::{Socket, Stream};
use crate::sources::Source;
use crate::worker::LISTENERS;

/// How many more clients a worker may watch than the one with the fewest before it gives new ones away.
const IMBALANCE_MAX: usize = 4;

/// The sockets that clients connect to; every worker watches all of them.
#[derive(Clone)]
pub struct Listeners {
    all: Arc<Vec<Listener>>,
    closed: Arc<AtomicBool>,
    /// When the process had no descriptor left: the next try, and the last word about it.
    complained_at: Arc<Mutex<Moment>>,
}

impl Listeners {
    /// Sockets that are bound and listen.
    pub fn new(all: Vec<Listener>) -> Listeners {
        Listeners {
            all: Arc::new(all),
            closed: Arc::new(AtomicBool::new(false)),
            complained_at: Arc::new(Mutex::new(Moment::default())),
        }
    }

    fn fd(listener: &Listener) -> RawFd {
        match listener {
            Listener::Tcp(socket) => socket.as_raw_fd(),
            Listener::Unix { listener, .. } => listener.as_raw_fd(),
        }
    }

    /// Takes the files of Unix sockets away: the process ends.
    pub fn remove_files(&self) {
        for listener in self.all.iter() {
            if let Listener::Unix { socket_file: Some(file), .. } = listener {
                file.remove();
            }
        }
    }

    /// Has a worker's poll watch them.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn register(&self, registry: &Registry) -> io::Result<()> {
        for (index, listener) in self.all.iter().enumerate() {
            registry.register(
                &mut SourceFd(&Self::fd(listener)),
                Token(LISTENERS + index),
                Interest::READABLE,
            )?;
        }
        Ok(())
    }

    /// No more clients over TCP: the process drains. The Unix socket stays, for the console.
    pub fn close(&self, registry: &Registry) {
        self.closed.store(true, Ordering::Relaxed);
        for listener in self.all.iter() {
            if let Listener::Tcp(socket) = listener {
                let _ = registry.deregister(&mut SourceFd(&Self::fd(listener)));
                // It stays open because other workers share it; shut down, it refuses whoever comes.
                let _ = socket2::SockRef::from(socket).shutdown(std::net::Shutdown::Both);
            }
        }
    }

    /// The next client, if one waits.
    pub fn accept(&self, shared: &Arc<Shared>, worker: WorkerId) -> Option<Arc<Session>> {
        for listener in self.all.iter() {
            loop {
                match self.accept_one(listener) {
                    Ok(Some((socket, peer))) => {
                        if let Some(session) = admit(shared, worker, socket, peer) {
                            return Some(session);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.complain(shared, &error);
                        break;
                    }
                }
            }
        }
        None
    }

    fn accept_one(&self, listener: &Listener) -> io::Result<Option<(Socket, Option<SocketAddr>)>> {
        let accepted = match listener {
            Listener::Tcp(_) if self.closed.load(Ordering::Relaxed) => return Ok(None),
            Listener::Tcp(listener) => listener.accept().and_then(|(socket, peer)| {
                socket.set_nonblocking(true)?;
                Ok((Socket::Tcp(socket), Some(peer)))
            }),
            Listener::Unix { listener, .. } => listener.accept().and_then(|(socket, _)| {
                socket.set_nonblocking(true)?;
                Ok((Socket::Unix(socket), None))
            }),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// No descriptors, no memory: said once a second, and tried again as soon as one is closed.
    fn complain(&self, shared: &Shared, error: &io::Error) {
        let now = shared.clock.now();
        let mut last = self.complained_at.lock();
        if now.since(*last).as_secs() >= 1 {
            *last = now;
            tracing::warn!("accept() failed: {error}");
        }
        shared.retry_accept();
    }
}

fn admit(
    shared: &Arc<Shared>,
    worker: WorkerId,
    socket: Socket,
    peer: Option<SocketAddr>,
) -> Option<Arc<Session>> {
    if let Socket::Tcp(socket) = &socket
        && let Err(error) = shared.tcp_options().apply(socket)
    {
        tracing::debug!("socket options: {error}");
    }
    if !shared.admit_unproved() {
        // Too many that have not logged in: this one is closed without a word, as a full backlog would.
        return None;
    }
    let home = shared.least_busy(worker, IMBALANCE_MAX);
    let fd = socket.fd();
    let now = shared.clock.now();
    let session = Arc::new(Session {
        id: ClientId(shared.next_id()),
        worker: home,
        token: Mutex::new(None),
        peer,
        connected_unix: shared.clock.unix_seconds(),
        facts: Mutex::new(None),
        home: Mutex::new(None),
        seat: Mutex::new(None),
        is_proved: AtomicBool::new(false),
        is_gone: AtomicBool::new(false),
        gate: Gate::new(),
        mail: Mutex::new(Mail::default()),
        core: Mutex::new(Core {
            stream: Stream::plain(socket),
            pending: Vec::new(),
            readable: false,
            hung_up: false,
            phase: Phase::Entering(Box::new(Entering::new(shared, peer.is_none(), now))),
            armed: Moment::NEVER,
            requested_at: now,
        }),
    });
    let sources = &shared.workers[usize::from(home.0)].sources;
    let token = sources.add(Source::Client(Arc::clone(&session)));
    *session.token.lock() = Some(token);
    shared.client_came(&session);
    if let Err(error) = sources.register(fd, token) {
        tracing::warn!("a new client cannot be watched: {error}");
        sources.remove(token);
        *session.token.lock() = None;
        shared.client_gone(&session);
        return None;
    }
    Some(session)
}
