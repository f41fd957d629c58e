//! Servers that lie: real sockets, and behind each a script of the test's.
//!
//! A script gets one connection at a time, on a thread of its own, and may do with it whatever it likes; the end
//! of the connection ends it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::message::{self, Message};
use crate::os;
use crate::reply;

/// A listening liar. Dropped, it closes everything.
pub struct FakeServer {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    stopped: AtomicBool,
    accepted: AtomicU32,
    sockets: Mutex<Vec<TcpStream>>,
    received: Mutex<Vec<(u32, Message)>>,
    cancels: Mutex<Vec<Vec<u8>>>,
}

/// One connection to the liar. The methods fail once the other side is gone; a script passes that on with `?`.
pub struct FakeSession {
    /// 1 for the first connection, and so on; also the process id in its key.
    pub number: u32,
    socket: TcpStream,
    inbox: Vec<u8>,
    resets: bool,
    state: Arc<State>,
}

/// What a client begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    Startup { version: (u16, u16), parameters: Vec<(String, String)> },
    SslRequest,
    GssencRequest,
    CancelRequest(Vec<u8>),
}

impl FakeServer {
    /// Runs `script` for every connection.
    pub fn start(script: impl Fn(&mut FakeSession) -> io::Result<()> + Send + Sync + 'static) -> FakeServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback address");
        let address = listener.local_addr().expect("a bound socket");
        let state = Arc::new(State::default());
        let (ours, script) = (Arc::clone(&state), Arc::new(script));
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                if ours.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                let Ok(mut session) = FakeSession::new(socket, &ours) else { continue };
                let script = Arc::clone(&script);
                std::thread::spawn(move || {
                    // The other side may leave at any time: that ends the script and is no fault.
                    let _ = script(&mut session);
                    if !session.resets {
                        let _ = session.socket.shutdown(Shutdown::Both);
                    }
                });
            }
        });
        FakeServer { address, state }
    }

    /// Logs everybody in, then runs `script` with each message; what it returns is sent.
    pub fn answering(script: impl Fn(u32, &Message) -> Vec<u8> + Send + Sync + 'static) -> FakeServer {
        FakeServer::start(move |session| {
            session.welcome()?;
            loop {
                let message = session.recv()?;
                if message.tag == b'X' {
                    return Ok(());
                }
                let answer = script(session.number, &message);
                session.send(&answer)?;
            }
        })
    }

    /// Logs everybody in and answers every Query and Sync as a server with one value would.
    pub fn honest() -> FakeServer {
        FakeServer::answering(|_, message| match message.tag {
            b'Q' => reply::one_value("1"),
            b'P' => reply::parse_complete(),
            b'B' => reply::bind_complete(),
            b'D' => reply::row_description(&["value"]),
            b'E' => [reply::data_row(&[Some("1")]), reply::command_complete("SELECT 1")].concat(),
            b'S' => reply::ready(b'I'),
            _ => Vec::new(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `host=... port=... dbname=...`, as in the section `[databases]`.
    pub fn connection(&self, database: &str) -> String {
        format!("host=127.0.0.1 port={} dbname={database}", self.address.port())
    }

    /// How many connections have come so far, CancelRequests included.
    pub fn accepted(&self) -> u32 {
        self.state.accepted.load(Ordering::SeqCst)
    }

    /// All messages after the startup so far, with the number of their connection.
    pub fn received(&self) -> Vec<(u32, Message)> {
        lock(&self.state.received).clone()
    }

    /// The texts of all Query messages so far.
    pub fn queries(&self) -> Vec<String> {
        let queries = self.received().into_iter().filter(|(_, message)| message.tag == b'Q');
        queries.map(|(_, message)| message.strings().into_iter().next().unwrap_or_default()).collect()
    }

    /// The keys (process id and secret) of all CancelRequests so far.
    pub fn cancels(&self) -> Vec<Vec<u8>> {
        lock(&self.state.cancels).clone()
    }

    /// Closes all connections there are; new ones are welcome.
    pub fn close_all(&self) {
        for socket in lock(&self.state.sockets).drain(..) {
            // It may have been closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        self.close_all();
        // Wakes the accepting thread, which then sees that it is over.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl FakeSession {
    fn new(socket: TcpStream, state: &Arc<State>) -> io::Result<FakeSession> {
        socket.set_nodelay(true)?;
        lock(&state.sockets).push(socket.try_clone()?);
        let number = state.accepted.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(FakeSession { number, socket, inbox: Vec::new(), resets: false, state: Arc::clone(state) })
    }

    /// Waits for whatever the client begins with.
    pub fn opening(&mut self) -> io::Result<Opening> {
        let length = loop {
            if let Some(length) = self.inbox.first_chunk::<4>() {
                break usize::try_from(i32::from_be_bytes(*length)).map_err(io::Error::other)?;
            }
            self.fill()?;
        };
        while self.inbox.len() < length.max(8) {
            self.fill()?;
        }
        let packet: Vec<u8> = self.inbox.drain(..length).collect();
        let number = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        Ok(match (number(4), number(6)) {
            (1234, 5679) => Opening::SslRequest,
            (1234, 5680) => Opening::GssencRequest,
            (1234, 5678) => {
                lock(&self.state.cancels).push(packet[8..].to_vec());
                Opening::CancelRequest(packet[8..].to_vec())
            }
            version => {
                let strings = Message { tag: 0, body: packet[8..].to_vec() }.strings();
                let pairs = strings.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                Opening::Startup { version, parameters: pairs.collect() }
            }
        })
    }

    /// Refuses TLS and GSS, ends on a CancelRequest, and returns the parameters of the StartupMessage.
    pub fn startup(&mut self) -> io::Result<Vec<(String, String)>> {
        loop {
            match self.opening()? {
                Opening::Startup { parameters, .. } => return Ok(parameters),
                Opening::SslRequest | Opening::GssencRequest => self.send(b"N")?,
                Opening::CancelRequest(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
    }

    /// Logs the client in without a password.
    pub fn welcome(&mut self) -> io::Result<Vec<(String, String)>> {
        let parameters = self.startup()?;
        self.send(&reply::welcome(self.number))?;
        Ok(parameters)
    }

    /// The next message.
    pub fn recv(&mut self) -> io::Result<Message> {
        loop {
            if let Some((message, taken)) = message::split(&self.inbox) {
                self.inbox.drain(..taken);
                lock(&self.state.received).push((self.number, message.clone()));
                return Ok(message);
            }
            self.fill()?;
        }
    }

    /// Reads messages up to the next Query or Sync.
    pub fn recv_batch(&mut self) -> io::Result<Vec<Message>> {
        let mut batch = Vec::new();
        loop {
            let message = self.recv()?;
            let last = matches!(message.tag, b'Q' | b'S' | b'F');
            batch.push(message);
            if last {
                return Ok(batch);
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// Says nothing more and waits until the client has gone.
    pub fn fall_silent(&mut self) -> io::Result<()> {
        loop {
            self.fill()?;
        }
    }

    /// Ends the connection with a reset.
    pub fn reset(&mut self) -> io::Result<()> {
        os::reset_at_close(&self.socket)?;
        self.resets = true;
        // Every clone of the socket must be gone before the kernel closes it.
        let port = self.socket.peer_addr()?.port();
        lock(&self.state.sockets).retain(|other| other.peer_addr().is_ok_and(|peer| peer.port() != port));
        Err(io::ErrorKind::ConnectionReset.into())
    }

    /// The socket, for whatever else a script has in mind.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        let count = self.socket.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.inbox.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A list is whole at any time: pushes do not stop half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
