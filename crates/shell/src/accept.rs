//! New clients: accepted by whichever worker wakes, watched by the one that has the fewest.
//!
//! A listener's options are those that its connections begin with, where the system hands them down: then a
//! new client costs no `setsockopt`. A worker takes so many clients at a time as it was woken for, so that it
//! need not be told by a failed `accept` that there are no more.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton::Gate;
use mio::unix::SourceFd;
use mio::{Registry, Token};
use model::{ClientId, Moment, WorkerId};
use parking_lot::Mutex;

use crate::entering::Entering;
use crate::leftover::Leftover;
use crate::level::{Wakes, watch};
use crate::listen::{Listener, SocketFile};
use crate::session::{Core, Mail, Origin, Phase, Place, Session};
use crate::shared::Shared;
use crate::socket::{Socket, Stream};
use crate::sockopt::TcpOptions;
use crate::sources::Source;
use crate::worker::LISTENERS;

/// How many more clients a worker may watch than the one with the fewest before it gives new ones away.
const IMBALANCE_MAX: usize = 4;

/// The sockets that clients connect to; every worker watches all of them.
#[derive(Clone)]
pub struct Listeners {
    all: Arc<Vec<Door>>,
    /// What is handed down to TCP connections; `None` if nothing can be.
    handed_down: Arc<Mutex<Option<TcpOptions>>>,
    closed: Arc<AtomicBool>,
    /// When the process had no descriptor left: the next try, and the last word about it.
    complained_at: Arc<Mutex<Moment>>,
    /// This worker's poll does not watch them, until there are descriptors again.
    looks_away: bool,
    /// Nor while the worker rests.
    rests: bool,
}

impl Listeners {
    /// Sockets that are bound and listen. `are_own`: nobody could connect before they had the options that are
    /// never changed, so that what comes with the settings can be handed down too.
    pub fn new(all: Vec<Listener>, are_own: bool, options: TcpOptions) -> Listeners {
        let all: Vec<Door> = all.into_iter().map(Door::of).collect();
        let hands_down = are_own && HANDS_DOWN && all.iter().all(|door| door.hand_down(&options).is_ok());
        Listeners {
            all: Arc::new(all),
            handed_down: Arc::new(Mutex::new(hands_down.then_some(options))),
            closed: Arc::new(AtomicBool::new(false)),
            complained_at: Arc::new(Mutex::new(Moment::default())),
            looks_away: false,
            rests: false,
        }
    }

    /// Takes the files of Unix sockets away: the process ends.
    pub fn remove_files(&self) {
        for listener in self.all.iter() {
            if let Door::Unix(_, Some(file)) = listener {
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
            if matches!(listener, Door::Unix(..)) || !self.closed.load(Ordering::Relaxed) {
                watch(registry, listener.fd(), Token(LISTENERS + index), Wakes::One)?;
            }
        }
        Ok(())
    }

    /// No more clients over TCP: the process drains. The Unix socket stays, for the console.
    pub fn close(&self, registry: &Registry) {
        self.closed.store(true, Ordering::Relaxed);
        for listener in self.all.iter() {
            if let Door::Tcp(socket) = listener {
                let _ = registry.deregister(&mut SourceFd(&listener.fd()));
                // It stays open because other workers share it; shut down, it refuses whoever comes.
                let _ = socket2::SockRef::from(socket).shutdown(std::net::Shutdown::Both);
            }
        }
    }

    /// How many clients a worker takes at once that was woken with so many events. Where the poll goes on telling
    /// of those that wait, it takes about its share and asks again with the next batch.
    pub fn share(events: usize) -> usize {
        if cfg!(target_os = "linux") { 1 + events / 4 } else { usize::MAX }
    }

    /// The next client, if one waits.
    pub fn accept(&mut self, shared: &Arc<Shared>, worker: WorkerId) -> Option<Arc<Session>> {
        for index in 0..self.all.len() {
            loop {
                match self.accept_one(&self.all[index]) {
                    Ok(Some((socket, peer))) => {
                        self.hand_over(shared, &socket);
                        if let Some(session) = admit(shared, worker, socket, peer) {
                            return Some(session);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.complain(shared, &error);
                        self.look_away(shared, worker);
                        return None;
                    }
                }
            }
        }
        None
    }

    fn accept_one(&self, door: &Door) -> io::Result<Option<(Socket, Option<SocketAddr>)>> {
        let accepted = match door {
            Door::Tcp(_) if self.closed.load(Ordering::Relaxed) => return Ok(None),
            Door::Tcp(listener) => {
                listener.accept().map(|(socket, peer)| (Socket::Tcp(socket.into()), Some(peer)))
            }
            Door::Unix(listener, _) => {
                listener.accept().map(|(socket, _)| (Socket::Unix(socket.into()), None))
            }
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

    /// Sees to the options of a connection: those that it did not begin with are set now, and handed down to
    /// those that come after it.
    fn hand_over(&self, shared: &Shared, socket: &Socket) {
        let Socket::Tcp(socket) = socket else { return };
        let options = shared.tcp_options();
        let mut handed_down = self.handed_down.lock();
        if *handed_down == Some(options) {
            return;
        }
        if let Err(error) = options.apply(socket) {
            tracing::debug!("socket options: {error}");
        }
        if handed_down.is_some() && self.all.iter().all(|door| door.hand_down(&options).is_ok()) {
            *handed_down = Some(options);
        }
    }

    /// There is no descriptor for a new client: a poll that goes on telling of it would be of no use.
    fn look_away(&mut self, shared: &Shared, worker: WorkerId) {
        if cfg!(target_os = "linux") && !self.looks_away {
            self.looks_away = true;
            self.deregister(shared.workers[usize::from(worker.0)].sources.registry());
        }
    }

    /// Another try: there may be descriptors now.
    pub fn look_again(&mut self, registry: &Registry) {
        if std::mem::take(&mut self.looks_away) && !self.rests {
            self.register_again(registry);
        }
    }

    /// New clients are for those who are on duty.
    pub fn rest(&mut self, registry: &Registry) {
        self.rests = true;
        self.deregister(registry);
    }

    /// The worker is on duty again.
    pub fn look_after_rest(&mut self, registry: &Registry) {
        if std::mem::take(&mut self.rests) && !self.looks_away {
            self.register_again(registry);
        }
    }

    fn register_again(&self, registry: &Registry) {
        if let Err(error) = self.register(registry) {
            tracing::error!("new clients cannot be watched for: {error}");
        }
    }

    fn deregister(&self, registry: &Registry) {
        for door in self.all.iter() {
            // One that is not watched is as it should be.
            let _ = registry.deregister(&mut SourceFd(&door.fd()));
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

/// Whether a connection begins with the options of the socket that it came to.
const HANDS_DOWN: bool = cfg!(target_os = "linux");

/// A listener as a poll watches it.
enum Door {
    Tcp(mio::net::TcpListener),
    Unix(mio::net::UnixListener, Option<SocketFile>),
}

impl Door {
    fn of(listener: Listener) -> Door {
        match listener {
            Listener::Tcp(listener) => Door::Tcp(mio::net::TcpListener::from_std(listener)),
            Listener::Unix { listener, socket_file } => {
                Door::Unix(mio::net::UnixListener::from_std(listener), socket_file)
            }
        }
    }

    fn fd(&self) -> RawFd {
        match self {
            Door::Tcp(listener) => listener.as_raw_fd(),
            Door::Unix(listener, _) => listener.as_raw_fd(),
        }
    }

    fn hand_down(&self, options: &TcpOptions) -> io::Result<()> {
        match self {
            Door::Tcp(listener) => options.hand_down(listener),
            Door::Unix(..) => Ok(()),
        }
    }
}

fn admit(
    shared: &Arc<Shared>,
    worker: WorkerId,
    socket: Socket,
    peer: Option<SocketAddr>,
) -> Option<Arc<Session>> {
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
        token: Place::default(),
        origin: Origin::of(peer),
        connected_unix: u32::try_from(shared.clock.unix_seconds()).unwrap_or(u32::MAX),
        is_proved: AtomicBool::new(false),
        is_gone: AtomicBool::new(false),
        gate: Gate::new(),
        mail: Mutex::new(Mail::default()),
        core: Mutex::new(Core {
            stream: Stream::plain(socket),
            pending: Leftover::new(),
            readable: false,
            hung_up: false,
            has_left: false,
            phase: Phase::Entering(Box::new(Entering::new(shared, peer.is_none(), now))),
            armed: Moment::NEVER,
            requested_at: now,
        }),
    });
    let sources = &shared.workers[usize::from(home.0)].sources;
    let token = sources.add(Source::Client(Arc::clone(&session)));
    session.token.put(token);
    shared.client_came(&session);
    if let Err(error) = sources.register(fd, token) {
        tracing::warn!("a new client cannot be watched: {error}");
        sources.remove(token);
        let _none = session.token.take();
        shared.client_gone(&session);
        return None;
    }
    Some(session)
}
