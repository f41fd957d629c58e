//! The floor: a relay that knows no protocol. Each client has its own server connection, and a
//! transaction costs a receive and a send each way and nothing else. No pooler can be cheaper that makes
//! a call for each; with a volley, all sends of a batch of events are one call.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use volley::Volley;

/// From a listener to a server.
#[derive(Debug)]
pub struct Route {
    /// Where clients come.
    pub listener: std::net::TcpListener,
    /// Where their bytes go.
    pub server: SocketAddr,
}

/// Relays for ever, in this one thread.
pub fn serve(routes: Vec<Route>, in_volleys: bool) -> io::Result<()> {
    let poll = Poll::new()?;
    let mut doors = Vec::new();
    for (index, route) in routes.into_iter().enumerate() {
        route.listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(route.listener);
        poll.registry().register(&mut listener, Token(index), Interest::READABLE)?;
        doors.push((listener, route.server));
    }
    let volley = if in_volleys { Some(Volley::new(1)?) } else { None };
    Relay { poll, doors, pairs: Vec::new(), vacant: Vec::new(), volley }.run()
}

/// The pair is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Over;

struct Relay {
    poll: Poll,
    doors: Vec<(TcpListener, SocketAddr)>,
    pairs: Vec<Option<Box<Pair>>>,
    vacant: Vec<usize>,
    volley: Option<Volley>,
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
    /// The last volley that it had a send in.
    round: u32,
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
                if pair.turn(turn, &mut scratch, &mut self.volley).is_err() {
                    pair.end(&mut self.volley);
                    self.pairs[index] = None;
                    over.push(index);
                }
            }
            self.fire(&mut scratch, &mut over);
            // Only now may others take these places: an event of the old pair may have stood in the queue.
            self.vacant.append(&mut over);
        }
    }

    /// Ends the batch: what its sends leave over is kept, as after any other.
    fn fire(&mut self, scratch: &mut [u8], over: &mut Vec<usize>) {
        let Some(volley) = &mut self.volley else { return };
        volley.fire();
        if !volley.has_missed() {
            return;
        }
        for (index, place) in self.pairs.iter_mut().enumerate() {
            let Some(pair) = place else { continue };
            if pair.go_on(volley, scratch).is_err() {
                *place = None;
                over.push(index);
            }
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
    fn turn(&mut self, turn: Turn, scratch: &mut [u8], volley: &mut Option<Volley>) -> Result<(), Over> {
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
            pump(client, server, scratch, volley)?;
        }
        let (from, to) = if turn.from_client { (client, server) } else { (server, client) };
        from.read_closed |= turn.read_closed;
        if !from.unsent.is_empty() {
            pump(to, from, scratch, volley)?;
        }
        if turn.readable || turn.read_closed { pump(from, to, scratch, volley) } else { Ok(()) }
    }
}

impl Pair {
    /// After a volley: writes what was missed, or waits until it can.
    fn go_on(&mut self, volley: &mut Volley, scratch: &mut [u8]) -> Result<(), Over> {
        let Pair { client, server, .. } = self;
        if client.keep_missed(volley) {
            pump(server, client, scratch, &mut None)?;
        }
        if server.keep_missed(volley) {
            pump(client, server, scratch, &mut None)?;
        }
        Ok(())
    }

    /// What it has in the volley goes out while its descriptors are its own.
    fn end(&mut self, volley: &mut Option<Volley>) {
        if let Some(volley) = volley {
            volley.fire();
            self.client.keep_missed(volley);
            self.server.keep_missed(volley);
        }
    }
}

impl Side {
    fn new(stream: TcpStream) -> Side {
        Side { stream, unsent: Vec::new(), read_closed: false, round: 0 }
    }

    /// Keeps what a volley could not send. True if there is any.
    fn keep_missed(&mut self, volley: &mut Volley) -> bool {
        let Some(rest) = volley.take_miss(self.stream.as_raw_fd()) else { return false };
        self.unsent.extend_from_slice(&rest);
        true
    }

    /// Sends now or with the volley. How much of it is done with.
    fn send(&mut self, bytes: &[u8], volley: &mut Option<Volley>) -> Result<usize, Over> {
        if let Some(volley) = volley {
            if self.round == volley.round() || !volley.has_room(bytes.len()) {
                volley.fire();
            }
            if volley.has_missed() && self.keep_missed(volley) {
                return Ok(0);
            }
            if volley.has_room(bytes.len()) {
                volley.load(self.stream.as_raw_fd(), [bytes].into_iter());
                self.round = volley.round();
                return Ok(bytes.len());
            }
        }
        match self.stream.write(bytes) {
            Ok(sent) => Ok(sent),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(_) => Err(Over),
        }
    }
}

/// Moves bytes one way until there are none, or no room for them.
fn pump(from: &mut Side, to: &mut Side, scratch: &mut [u8], volley: &mut Option<Volley>) -> Result<(), Over> {
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
        let sent = to.send(&scratch[..count], volley)?;
        to.unsent.extend_from_slice(&scratch[sent..count]);
        // A short read emptied the socket: more will come with an edge of its own.
        if sent == count && count < scratch.len() && !from.read_closed {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
