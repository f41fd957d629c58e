//! Which session or server an event of a worker's poll belongs to.
//!
//! Each worker has one table. Its own thread looks a batch of events up under one short lock; any thread may
//! add a socket or take one away. A place that is used again has another generation, so that an event that was
//! already on its way finds nobody.

use std::os::fd::RawFd;
use std::sync::Arc;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use parking_lot::Mutex;

use crate::moored::Moored;
use crate::session::Session;

/// Whose socket it is.
#[derive(Clone)]
pub enum Source {
    /// A client's.
    Client(Arc<Session>),
    /// A server's.
    Server(Arc<Moored>),
}

/// A place of a worker's table.
pub(crate) struct Place {
    generation: u32,
    source: Option<Source>,
}

#[derive(Default)]
struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
}

/// The sockets of one worker.
pub struct Sources {
    table: Mutex<Table>,
    registry: Registry,
}

/// Tokens from here on are not places of the table.
pub const RESERVED: usize = usize::MAX - 4096;

impl Sources {
    /// An empty table beside the worker's poll.
    pub fn new(registry: Registry) -> Sources {
        Sources { table: Mutex::default(), registry }
    }

    /// What sockets are registered with.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reserves a place. Events come once [`Sources::register`] is called.
    pub fn add(&self, source: Source) -> Token {
        let mut table = self.table.lock();
        let index = match table.free.pop() {
            Some(index) => index,
            None => {
                table.places.push(Place { generation: 0, source: None });
                (table.places.len() - 1) as u32
            }
        };
        let place = &mut table.places[index as usize];
        place.source = Some(source);
        Token((place.generation as usize & 0x7fff_ffff) << 32 | index as usize)
    }

    /// Registers the socket, for good and for both directions.
    ///
    /// # Errors
    /// Those of `epoll_ctl`: no memory, or the limit on watches is reached.
    pub fn register(&self, fd: RawFd, token: Token) -> std::io::Result<()> {
        self.registry.register(&mut SourceFd(&fd), token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Takes a socket away; its descriptor is closed by its owner.
    pub fn remove(&self, token: Token) {
        let mut table = self.table.lock();
        let index = token.0 & 0xffff_ffff;
        let Some(place) = table.places.get_mut(index) else { return };
        if place.generation as usize & 0x7fff_ffff != token.0 >> 32 || place.source.is_none() {
            return;
        }
        place.generation = place.generation.wrapping_add(1);
        let source = place.source.take();
        table.free.push(index as u32);
        drop(table);
        // Dropped without the lock: it may be the last reference to a whole session.
        drop(source);
    }

    /// Looks up a batch of tokens; those whose socket is gone are left out.
    pub fn look_up<T>(&self, events: impl Iterator<Item = (Token, T)>, into: &mut Vec<(Source, T)>) {
        let table = self.table.lock();
        for (token, event) in events {
            if let Some(place) = table.places.get(token.0 & 0xffff_ffff)
                && place.generation as usize & 0x7fff_ffff == token.0 >> 32
                && let Some(source) = &place.source
            {
                into.push((source.clone(), event));
            }
        }
    }

    /// All of them, for the console.
    pub fn all(&self) -> Vec<Source> {
        self.table.lock().places.iter().filter_map(|place| place.source.clone()).collect()
    }
}
