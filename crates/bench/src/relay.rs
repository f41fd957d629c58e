//! The floor: a relay that knows no protocol. Each client has its own server connection, and a
//! transaction costs a receive and a send each way and nothing else. No pooler can be cheaper.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// From a listener to a server.
#[derive(Debug)]
pub struct Route {
    /// Where clients come.
    pub listener: std::net::TcpListener,
    /// Where their bytes go.
    pub server: SocketAddr,
}

/// Relays for ever, in this one thread.
pub fn serve(routes: Vec<Route>) -> io::Result<()> {
    let poll = Poll::new()?;
    let mut doors = Vec::new();
    for (index, route) in routes.into_iter().enumerate() {
        route.listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(route.listener);
        poll.registry().register(&mut listener, Token(index), Interest::READABLE)?;
        doors.push((listener, route.server));
    }
    Relay { poll, doors, pairs: Vec::new(), vacant: Vec::new() }.run()
}

/// The pair is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Over;

struct Relay {
    poll: Poll,
    doors: Vec<(TcpListener, SocketAddr)>,
    pairs: Vec<Option<Box<Pair>>>,
    vacant: Vec<usize>,
}

/// The token of a pair's client; its server's is the next. Listeners come first.
fn token_of(pair: usize) -> usize {
    DOORS_MAX + 2 * pair
}

const DOORS_MAX: usize = 16;

struct Pair {
    client: Side,
    server: Side,
    /// The server's side may be written to.
    connected: bool,
}

struct Side {
    stream: TcpStream,
    /// What the other side sent and this one has not taken yet.
    unsent: Vec<u8>,
    read_closed: bool,
}

impl Relay {
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1_024);
        let mut scratch = vec![0; 1 << 16];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            let mut over = Vec::new();
            for event in &events {
                let token = event.token().0;
                if token < DOORS_MAX {
                    self.accept(token)?;
                    continue;
                }
                let index = (token - DOORS_MAX) / 2;
                let Some(pair) = &mut self.pairs[index] else { continue };
                let turn = Turn {
                    from_client: token & 1 == 0,
                    read_closed: event.is_read_closed(),
                    readable: event.is_readable() || event.is_error(),
                };
                if pair.turn(turn, &mut scratch).is_err() {
                    self.pairs[index] = None;
                    over.push(index);
                }
            }
            // Only now may others take these places: an event of the old pair may have stood in the queue.
            self.vacant.append(&mut over);
        }
    }

    fn accept(&mut self, door: usize) -> io::Result<()> {
        let (listener, server) = &self.doors[door];
        loop {
            let (client, _) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let Ok(server) = TcpStream::connect(*server) else { continue };
            client.set_nodelay(true)?;
            let mut pair = Pair { client: Side::new(client), server: Side::new(server), connected: false };
            let index = self.vacant.pop().unwrap_or(self.pairs.len());
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut pair.client.stream, Token(token_of(index)), both)?;
            self.poll.registry().register(&mut pair.server.stream, Token(token_of(index) + 1), both)?;
            if index == self.pairs.len() {
                self.pairs.push(None);
            }
            self.pairs[index] = Some(Box::new(pair));
        }
    }
}

/// What an event said.
struct Turn {
    from_client: bool,
    read_closed: bool,
    readable: bool,
}

impl Pair {
    fn turn(&mut self, turn: Turn, scratch: &mut [u8]) -> Result<(), Over> {
        let Pair { client, server, connected } = self;
        if !*connected {
            if turn.from_client {
                // Its bytes stay in the kernel until the server can take them.
                client.read_closed |= turn.read_closed;
                return Ok(());
            }
            if server.stream.peer_addr().is_err() {
                return if turn.read_closed { Err(Over) } else { Ok(()) };
            }
            *connected = true;
            server.stream.set_nodelay(true).map_err(|_| Over)?;
            pump(client, server, scratch)?;
        }
        let (from, to) = if turn.from_client { (client, server) } else { (server, client) };
        from.read_closed |= turn.read_closed;
        if !from.unsent.is_empty() {
            pump(to, from, scratch)?;
        }
        if turn.readable || turn.read_closed { pump(from, to, scratch) } else { Ok(()) }
    }
}

impl Side {
    fn new(stream: TcpStream) -> Side {
        Side { stream, unsent: Vec::new(), read_closed: false }
    }
}

/// Moves bytes one way until there are none, or no room for them.
fn pump(from: &mut Side, to: &mut Side, scratch: &mut [u8]) -> Result<(), Over> {
    loop {
        while !to.unsent.is_empty() {
            match to.stream.write(&to.unsent) {
                Ok(count) => drop(to.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Over),
            }
        }
        let count = match from.stream.read(scratch) {
            Ok(0) => return Err(Over),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Err(Over),
        };
        let sent = match to.stream.write(&scratch[..count]) {
            Ok(sent) => sent,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => return Err(Over),
        };
        to.unsent.extend_from_slice(&scratch[sent..count]);
        // A short read emptied the socket: more will come with an edge of its own.
        if sent == count && count < scratch.len() && !from.read_closed {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
