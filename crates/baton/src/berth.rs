//! Where a server connection lies while no client has it, and where its socket's edges are noted.

use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// Who has a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder<C> {
    /// It is moored and free for the pool to give away.
    Pool,
    /// It is being cleaned, checked or looked at by whoever took it.
    Keeper,
    /// This client.
    Client(C),
    /// It is closed.
    Nobody,
}

/// What to do about an edge of the server's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News<C> {
    /// Tell this client's session.
    Client(C),
    /// It lies idle: ask the pool for it, then look.
    Idle,
    /// It is being kept: take it if it is moored, then look.
    Kept,
    /// Nothing.
    Gone,
}

#[derive(Debug)]
struct State<C, S> {
    holder: Holder<C>,
    moored: Option<S>,
}

/// The place of one server connection.
#[derive(Debug)]
pub struct Berth<C, S> {
    state: Mutex<State<C, S>>,
    /// An edge came that nobody has looked at. Set under the lock, with the holder who is told.
    edge: AtomicBool,
}

impl<C: Clone, S> Berth<C, S> {
    /// A berth with a server that the pool does not lend yet: edges are noted, and nobody comes to look before
    /// the pool says that it is idle.
    pub fn new(server: S) -> Berth<C, S> {
        let state = Mutex::new(State { holder: Holder::Pool, moored: Some(server) });
        Berth { state, edge: AtomicBool::new(false) }
    }

    /// The socket has an edge: notes it and says whom to tell.
    #[inline]
    pub fn edge(&self) -> News<C> {
        let state = lock(&self.state);
        self.edge.store(true, Ordering::Release);
        match &state.holder {
            Holder::Pool => News::Idle,
            Holder::Keeper => News::Kept,
            Holder::Client(client) => News::Client(client.clone()),
            Holder::Nobody => News::Gone,
        }
    }

    /// For the client that has the server and was told of an edge: whether there was one that it has not taken yet.
    /// The caller will read until there is nothing more. Without the lock: another edge sets it again and tells again.
    #[inline]
    pub fn take_edge(&self) -> bool {
        self.edge.swap(false, Ordering::AcqRel)
    }

    /// Lays a server down, for the pool or to be kept. True if an edge came that nobody has looked at: then
    /// whoever lays it down must see to it.
    #[must_use]
    #[inline]
    pub fn moor(&self, server: S, holder: Holder<C>) -> bool {
        let mut state = lock(&self.state);
        debug_assert!(state.moored.is_none());
        state.moored = Some(server);
        state.holder = holder;
        self.edge.load(Ordering::Acquire)
    }

    /// Leaves a moored server to another holder. True if an edge came that nobody has looked at.
    #[must_use]
    pub fn hand_to(&self, holder: Holder<C>) -> bool {
        let mut state = lock(&self.state);
        state.holder = holder;
        self.edge.load(Ordering::Acquire)
    }

    /// Takes the server for a client. The second value is whether an edge came that nobody has looked at.
    ///
    /// Only for whom the pool has granted it; `None` if it is not there, which would be a fault of ours.
    #[inline]
    pub fn take_for(&self, client: C) -> Option<(S, bool)> {
        let mut state = lock(&self.state);
        let server = state.moored.take()?;
        state.holder = Holder::Client(client);
        Some((server, self.forget_edge()))
    }

    /// Takes the server to look after it, for whom the pool has given it up or just made it. `None` if somebody
    /// else has it: then that one will see the edge.
    pub fn take_to_keep(&self) -> Option<S> {
        self.take_if(|_| true)
    }

    /// Takes the server if it is being kept. Whoever only saw that it was may come too late: it can have been
    /// given back to the pool, and granted by it, meanwhile.
    pub fn take_kept(&self) -> Option<S> {
        self.take_if(|holder| matches!(holder, Holder::Keeper))
    }

    fn take_if(&self, is_ours: impl FnOnce(&Holder<C>) -> bool) -> Option<S> {
        let mut state = lock(&self.state);
        if !is_ours(&state.holder) {
            return None;
        }
        let server = state.moored.take()?;
        state.holder = Holder::Keeper;
        self.forget_edge();
        Some(server)
    }

    /// Under the lock: nearly always there is none, and a load costs a tenth of an exchange.
    #[inline]
    fn forget_edge(&self) -> bool {
        let edge = self.edge.load(Ordering::Acquire);
        if edge {
            self.edge.store(false, Ordering::Release);
        }
        edge
    }

    /// The server is no longer anybody's: it is closed.
    pub fn vacate(&self) {
        let mut state = lock(&self.state);
        state.holder = Holder::Nobody;
        state.moored = None;
    }

    /// Looks at the server while it is moored.
    pub fn look<T>(&self, look: impl FnOnce(&Holder<C>, Option<&S>) -> T) -> T {
        let state = lock(&self.state);
        look(&state.holder, state.moored.as_ref())
    }
}
