//! A bad network in user space: a proxy between a client and a server that delays, cuts, swallows and resets.
//!
//! It moves bytes and knows nothing of what they mean. Faults may be changed while connections are open.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::os;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// What happens to bytes that go one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Each piece waits that long.
    pub latency: Duration,
    /// At most so many bytes in a piece, each sent by itself.
    pub piece_max: Option<usize>,
    /// Read and thrown away: the other side hears nothing, and no end either.
    pub swallow: bool,
    /// Nothing is read, so that the sender's buffers fill up.
    pub hold: bool,
    /// After so many bytes of a connection (from its begin) it is cut.
    pub cut_after: Option<u64>,
    /// A cut is a reset and no orderly end.
    pub cut_by_reset: bool,
}

/// The proxy. Dropped, it closes everything.
pub struct Chaos {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: Mutex<SocketAddr>,
    stopped: AtomicBool,
    refusing: AtomicBool,
    accepted: AtomicU64,
    to_server: Mutex<Faults>,
    to_client: Mutex<Faults>,
    pairs: Mutex<Vec<Arc<Pair>>>,
}

/// One connection of a client and the one to the server that belongs to it.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    cut: AtomicBool,
    pumps_ended: AtomicU64,
}

impl Chaos {
    /// A proxy without faults to this server.
    pub fn start(server: SocketAddr) -> Chaos {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback address");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            stopped: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            to_server: Mutex::default(),
            to_client: Mutex::default(),
            pairs: Mutex::default(),
        });
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &ours));
        Chaos { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `host=... port=... dbname=...` of the proxy, as in the section `[databases]`.
    pub fn connection(&self, database: &str) -> String {
        format!("host=127.0.0.1 port={} dbname={database}", self.port())
    }

    /// How many connections have come so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// What happens from now on to bytes that go this way, in all connections.
    pub fn set(&self, direction: Direction, faults: Faults) {
        *lock(self.shared.faults(direction)) = faults;
    }

    /// The same both ways.
    pub fn set_both(&self, faults: Faults) {
        self.set(Direction::ToServer, faults);
        self.set(Direction::ToClient, faults);
    }

    /// No faults any more.
    pub fn heal(&self) {
        self.shared.refusing.store(false, Ordering::SeqCst);
        self.set_both(Faults::default());
    }

    /// New connections are closed at once, until [`Chaos::heal`].
    pub fn refuse(&self) {
        self.shared.refusing.store(true, Ordering::SeqCst);
    }

    /// New connections go to another server.
    pub fn redirect(&self, server: SocketAddr) {
        *lock(&self.shared.server) = server;
    }

    /// Closes all connections in order.
    pub fn close_all(&self) {
        for pair in lock(&self.shared.pairs).drain(..) {
            pair.cut(false);
        }
    }

    /// Ends all connections with a reset, both ways.
    pub fn reset_all(&self) {
        for pair in lock(&self.shared.pairs).drain(..) {
            pair.cut(true);
        }
    }

    /// Tells the receivers of this direction that no more will come; the other direction goes on.
    pub fn half_close(&self, direction: Direction) {
        for pair in lock(&self.shared.pairs).iter() {
            // It may be closed already.
            let _ = pair.target(direction).shutdown(Shutdown::Write);
        }
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.close_all();
        // Wakes the accepting thread, which then sees that it is over.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl Shared {
    fn faults(&self, direction: Direction) -> &Mutex<Faults> {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }
}

impl Pair {
    fn source(&self, direction: Direction) -> &TcpStream {
        match direction {
            Direction::ToServer => &self.client,
            Direction::ToClient => &self.server,
        }
    }

    fn target(&self, direction: Direction) -> &TcpStream {
        match direction {
            Direction::ToServer => &self.server,
            Direction::ToClient => &self.client,
        }
    }

    /// Ends both sockets. A reset needs the very last close, so the pumps are woken to let go of theirs.
    fn cut(&self, by_reset: bool) {
        self.cut.store(true, Ordering::SeqCst);
        for socket in [&self.client, &self.server] {
            if by_reset {
                // With this option set, the close by the last owner resets.
                let _ = os::reset_at_close(socket);
                let _ = socket.shutdown(Shutdown::Read);
            } else {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else { continue };
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        if shared.refusing.load(Ordering::SeqCst) {
            continue;
        }
        let target = *lock(&shared.server);
        // A server that is not there is shown to the client as an end.
        let Ok(server) = TcpStream::connect_timeout(&target, Duration::from_secs(5)) else { continue };
        let (cut, pumps_ended) = (AtomicBool::new(false), AtomicU64::new(0));
        let pair = Arc::new(Pair { client, server, cut, pumps_ended });
        for socket in [&pair.client, &pair.server] {
            // Without these the proxy would add delays of its own, or never look at new faults.
            let _ = socket.set_nodelay(true);
            let _ = socket.set_read_timeout(Some(GLANCE));
            let _ = socket.set_write_timeout(Some(GLANCE));
        }
        lock(&shared.pairs).push(Arc::clone(&pair));
        for direction in [Direction::ToServer, Direction::ToClient] {
            let (pair, shared) = (Arc::clone(&pair), Arc::clone(shared));
            std::thread::spawn(move || {
                pump(&pair, direction, &shared);
                // The sockets close when nobody has the pair any more.
                if pair.pumps_ended.fetch_add(1, Ordering::SeqCst) == 1 {
                    lock(&shared.pairs).retain(|other| !Arc::ptr_eq(other, &pair));
                }
            });
        }
    }
}

/// Moves bytes one way until the end.
fn pump(pair: &Pair, direction: Direction, shared: &Shared) {
    let mut buffer = [0; 16 * 1024];
    let mut moved = 0_u64;
    while !shared.stopped.load(Ordering::SeqCst) && !pair.cut.load(Ordering::SeqCst) {
        let faults = *lock(shared.faults(direction));
        if faults.hold {
            std::thread::sleep(GLANCE);
            continue;
        }
        let mut source = pair.source(direction);
        match source.read(&mut buffer) {
            Ok(0) => {
                // An end is passed on, unless everything is swallowed or there is another kind of end.
                if !faults.swallow && !pair.cut.load(Ordering::SeqCst) {
                    let _ = pair.target(direction).shutdown(Shutdown::Write);
                }
                return;
            }
            Ok(count) => {
                if !deliver(pair, direction, shared, &buffer[..count], &mut moved) {
                    return pair.cut(faults.cut_by_reset);
                }
            }
            Err(error) if is_a_glance(&error) => {}
            Err(_) => return pair.cut(true),
        }
    }
}

/// False when the connection is to be cut.
fn deliver(pair: &Pair, direction: Direction, shared: &Shared, mut bytes: &[u8], moved: &mut u64) -> bool {
    while !bytes.is_empty() {
        let faults = *lock(shared.faults(direction));
        if shared.stopped.load(Ordering::SeqCst) || pair.cut.load(Ordering::SeqCst) {
            return true;
        }
        let left = faults.cut_after.map_or(u64::MAX, |limit| limit.saturating_sub(*moved));
        if left == 0 {
            return false;
        }
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let size = bytes.len().min(faults.piece_max.unwrap_or(usize::MAX)).min(left);
        std::thread::sleep(faults.latency);
        let mut target = pair.target(direction);
        let done = if faults.swallow { Ok(size) } else { target.write(&bytes[..size]) };
        match done {
            Ok(count) => {
                bytes = &bytes[count..];
                *moved += count as u64;
            }
            Err(error) if is_a_glance(&error) => {}
            Err(_) => return false,
        }
    }
    // At the very byte: not only when the next one comes.
    lock(shared.faults(direction)).cut_after.is_none_or(|limit| *moved < limit)
}

fn is_a_glance(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Everything kept here is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a pump that waits looks whether the faults have changed.
const GLANCE: Duration = Duration::from_millis(20);
