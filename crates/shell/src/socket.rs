//! A connected socket, plain or under TLS, and what could not be written to it yet.
//!
//! Every read goes into the worker's one scratch buffer. The heap is used only for what the kernel did not take.

use std::io::{self, IoSlice, Write};
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;

use link::Side;
use rustix::net::{RecvFlags, SendFlags};

use crate::leftover::Leftover;
use crate::outbox::Outbox;
use crate::records;

/// Pieces written by one system call.
const SLICES_MAX: usize = 16;

/// A non-blocking stream socket.
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Its descriptor, for the poll.
    pub fn fd(&self) -> RawFd {
        match self {
            Socket::Tcp(socket) => socket.as_raw_fd(),
            Socket::Unix(socket) => socket.as_raw_fd(),
        }
    }

    /// Our end; `None` for a Unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(socket) => socket.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    // Straight to the kernel: in a process with threads, the C library wraps each `recv` and `send` in the
    // book-keeping of thread cancellation, which costs as much as a whole turn's decisions.

    #[inline]
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let (count, _) = rustix::net::recv(self.borrow(), into, RecvFlags::empty())?;
        Ok(count)
    }

    fn look(&self, into: &mut [u8]) -> io::Result<usize> {
        let (count, _) = rustix::net::recv(self.borrow(), into, RecvFlags::PEEK)?;
        Ok(count)
    }

    #[inline]
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.borrow(), bytes, SendFlags::NOSIGNAL)?)
    }

    #[inline]
    fn borrow(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }

    pub(crate) fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&*socket).write_vectored(slices),
            Socket::Unix(socket) => (&*socket).write_vectored(slices),
        }
    }

    /// Whether a byte, an end or an error waits to be read, without taking it.
    fn peek(&self) -> bool {
        let mut byte = [0_u8; 1];
        let result = match self {
            Socket::Tcp(socket) => socket.peek(&mut byte),
            Socket::Unix(socket) => socket2::SockRef::from(socket).peek(as_uninit(&mut byte)),
        };
        !matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn shut_down(&self) {
        // A socket that is gone already needs no farewell.
        let _ = match self {
            Socket::Tcp(socket) => socket.shutdown(std::net::Shutdown::Write),
            Socket::Unix(socket) => socket.shutdown(std::net::Shutdown::Write),
        };
    }
}

fn as_uninit(bytes: &mut [u8]) -> &mut [std::mem::MaybeUninit<u8>] {
    // SAFETY: an initialised byte is a possibly uninitialised byte, and what is read into it is initialised.
    unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [std::mem::MaybeUninit<u8>]) }
}

/// What a read came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes; `true` if there may be more at once.
    Some(usize, bool),
    /// Nothing now: an edge will tell.
    Nothing,
    /// The other side has closed.
    End,
    /// The connection is broken.
    Broken,
}

/// A socket with its TLS session and its backlog.
pub struct Stream {
    socket: ManuallyDrop<Socket>,
    tls: Option<Box<rustls::Connection>>,
    /// What the kernel did not take yet.
    backlog: Leftover,
    broken: bool,
    /// The last volley that it had a send in.
    round: u32,
}

impl Stream {
    /// A stream without TLS.
    pub fn plain(socket: Socket) -> Stream {
        Stream {
            socket: ManuallyDrop::new(socket),
            tls: None,
            backlog: Leftover::new(),
            broken: false,
            round: 0,
        }
    }

    /// A stream whose TLS session stands or is to be shaken hands on.
    pub fn with_tls(socket: Socket, tls: Option<rustls::Connection>) -> Stream {
        let mut stream = Stream::plain(socket);
        if let Some(tls) = tls {
            stream.start_tls(tls);
        }
        stream
    }

    /// Starts TLS on a stream whose cleartext has been answered.
    pub fn start_tls(&mut self, mut tls: rustls::Connection) {
        // What is read from one side is limited, so what waits to be written to the other is too.
        tls.set_buffer_limit(None);
        self.tls = Some(Box::new(tls));
    }

    /// Gives a TLS session bytes that were read before it began. False if they are no TLS.
    pub fn feed_tls(&mut self, mut bytes: &[u8]) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        while !bytes.is_empty() {
            let is_sound = tls.read_tls(&mut bytes).is_ok() && tls.process_new_packets().is_ok();
            if records::flush(&self.socket, tls).is_err() || !is_sound {
                return false;
            }
        }
        true
    }

    /// The TLS session.
    pub fn tls(&self) -> Option<&rustls::Connection> {
        self.tls.as_deref()
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether something waits for the kernel to take it.
    #[inline]
    pub fn is_backed_up(&self) -> bool {
        !self.backlog.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether closing the socket is all that is left to do: there is no TLS session to end, and what was written
    /// is with the kernel.
    pub fn is_plain_and_sent(&self) -> bool {
        self.tls.is_none() && self.backlog.is_empty()
    }

    /// Whether a write failed: nothing more can be sent.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Nothing more is sent, and nothing more should be read.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.backlog.clear();
    }

    /// Whether there is something to read, without reading it.
    pub fn has_news(&self) -> bool {
        self.socket.peek()
    }

    /// Looks at what is there, up to the room given, and leaves it there. Of a stream without TLS.
    pub fn peek(&self, into: &mut [u8]) -> Received {
        loop {
            return match self.socket.look(into) {
                Ok(0) => Received::End,
                Ok(count) => Received::Some(count, true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
                Err(_) => Received::Broken,
            };
        }
    }

    /// Reads what is there, up to the room given.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> Received {
        match &mut self.tls {
            None => receive_plain(&self.socket, into),
            Some(tls) => {
                let received = records::receive(&self.socket, tls, into);
                self.broken |= records::flush(&self.socket, tls).is_err();
                received
            }
        }
    }

    /// Sends what a link wants written, with the worker's next volley if it has any.
    #[inline]
    pub fn send(&mut self, side: &Side, input: &[u8], outbox: &mut Outbox) {
        let parts = side.spans().iter().map(|span| side.bytes(input, *span));
        if !self.load(parts, outbox) {
            self.send_now(side, input);
        }
    }

    /// Puts parts that belong together into the volley. False if they are to be written at once: without volleys,
    /// under TLS, behind what is kept, or because they are too much to be copied.
    #[inline]
    pub fn load<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]> + Clone, outbox: &mut Outbox) -> bool {
        if !outbox.has_volleys() || self.tls.is_some() {
            return false;
        }
        self.settle(outbox);
        if !self.backlog.is_empty() || self.broken {
            return false;
        }
        let count = parts.clone().map(<[u8]>::len).sum();
        if count == 0 {
            return false;
        }
        let Some(volley) = outbox.volley_for(count) else { return false };
        if !volley.has_room(count) {
            volley.fire();
        }
        volley.load(self.socket.fd(), parts);
        self.round = volley.round();
        true
    }

    /// Sees to it that nothing of it is in a volley, so that it may be written to, closed, or left to others.
    #[inline]
    pub fn settle(&mut self, outbox: &mut Outbox) {
        if self.round == outbox.round() {
            outbox.fire();
        }
        if let Some(rest) = outbox.take_miss(self.socket.fd()) {
            self.keep_missed(&rest);
        }
    }

    /// Keeps what a volley could not send, and tries at once: only a socket that has refused tells when it takes
    /// bytes again, or says why it never will.
    #[cold]
    pub fn keep_missed(&mut self, rest: &[u8]) {
        self.backlog.push(rest);
        self.flush();
    }

    /// Writes what a link wants written, as far as the kernel takes it; keeps the rest. For a stream that is in no
    /// volley: a server's that has no client.
    #[inline]
    pub fn send_now(&mut self, side: &Side, input: &[u8]) {
        match side.spans() {
            [] => {}
            [one] => self.write(side.bytes(input, *one)),
            many => {
                for chunk in many.chunks(SLICES_MAX) {
                    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                    for (slice, span) in slices.iter_mut().zip(chunk) {
                        *slice = IoSlice::new(side.bytes(input, *span));
                    }
                    self.send_slices(&slices[..chunk.len()]);
                }
                if self.tls.is_some() {
                    self.flush();
                }
            }
        }
    }

    /// Writes bytes behind all that was sent before, as far as the kernel takes them; keeps the rest.
    pub fn send_bytes(&mut self, bytes: &[u8], outbox: &mut Outbox) {
        self.settle(outbox);
        self.write(bytes);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if self.tls.is_none() && self.backlog.is_empty() && !self.broken {
            match self.socket.write(bytes) {
                Ok(count) if count == bytes.len() => {}
                result => self.keep_rest(&[IoSlice::new(bytes)], result),
            }
            return;
        }
        self.queue(bytes);
        self.flush();
    }

    fn send_slices(&mut self, slices: &[IoSlice<'_>]) {
        if self.broken {
            return;
        }
        if let Some(tls) = &mut self.tls {
            // Together: what is written in pieces becomes a record each.
            self.broken = records::seal(tls, slices).is_err();
            return;
        }
        let result = if self.backlog.is_empty() { self.socket.write_vectored(slices) } else { Ok(0) };
        match result {
            Ok(count) if count == slices.iter().map(|slice| slice.len()).sum::<usize>() => {}
            result => self.keep_rest(slices, result),
        }
    }

    /// Keeps what the kernel did not take of a write.
    #[cold]
    fn keep_rest(&mut self, slices: &[IoSlice<'_>], result: io::Result<usize>) {
        let mut taken = match result {
            Ok(count) => count,
            Err(error) if is_transient(&error) => 0,
            Err(_) => {
                self.broken = true;
                return;
            }
        };
        for slice in slices {
            let skip = taken.min(slice.len());
            self.backlog.push(&slice[skip..]);
            taken -= skip;
        }
        if !self.backlog.is_empty() {
            self.flush();
        }
    }

    fn queue(&mut self, bytes: &[u8]) {
        match &mut self.tls {
            Some(tls) => self.broken |= records::seal(tls, &[IoSlice::new(bytes)]).is_err(),
            None => self.backlog.push(bytes),
        }
    }

    /// Tries again to write what is kept. True if nothing is left.
    pub fn flush(&mut self) -> bool {
        if self.broken {
            self.backlog.clear();
            return true;
        }
        if let Some(tls) = &mut self.tls {
            return match records::flush(&self.socket, tls) {
                Ok(done) => done,
                Err(_) => {
                    self.broken = true;
                    true
                }
            };
        }
        let mut taken = 0;
        let waiting = &*self.backlog;
        while taken < waiting.len() {
            match self.socket.write(&waiting[taken..]) {
                Ok(count) => taken += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.broken = true;
                    taken = waiting.len();
                }
            }
        }
        self.backlog.consume(taken);
        self.backlog.is_empty()
    }

    /// Says goodbye: what was written before is still delivered. What the peer had sent is read away first,
    /// because a socket that is closed with bytes unread takes back the last that it sent.
    pub fn farewell(&mut self, scratch: &mut [u8]) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush();
        self.socket.shut_down();
        for _ in 0..16 {
            match self.socket.read(scratch) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
}

impl Drop for Stream {
    /// Closes the socket. Every way to here settles first; if one did not, the bytes in the volley would go to whoever
    /// gets the descriptor next, so then nobody gets it.
    fn drop(&mut self) {
        if volley::is_loaded(self.round) {
            tracing::error!("a stream ended with bytes unsent: its descriptor is never used again");
            return;
        }
        // SAFETY: nothing uses it after this, because the stream is gone.
        unsafe { ManuallyDrop::drop(&mut self.socket) };
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn receive_plain(socket: &Socket, into: &mut [u8]) -> Received {
    loop {
        return match socket.read(into) {
            Ok(0) => Received::End,
            // A short read has emptied the socket: what comes later makes an edge of its own.
            Ok(count) => Received::Some(count, count == into.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
            Err(_) => Received::Broken,
        };
    }
}
