//! The least of a pooler that still hands servers over: one server, one queue under a lock, sessions with gates.
//!
//! The functions follow the shell's of the same name, in their order of calls. What a worker does to a session
//! it does to a lock that is only tried: two at work at once would fail there.

use baton::{Berth, Bits, Gate, Holder, News};

use crate::sync::{Arc, AtomicUsize, Mutex, Ordering};

/// What can be posted at a session's gate.
pub const MAIL: Bits = 1;
pub const SERVER_EDGE: Bits = 2;
pub const HUNG_UP: Bits = 4;
pub const CLIENT_READABLE: Bits = 8;

/// The server connection: there is only one, and it is moved.
#[derive(Debug, PartialEq, Eq)]
pub struct Conn;

/// What only the one behind the gate touches.
#[derive(Debug, Default)]
pub struct Core {
    pub lease: Option<Conn>,
    pub waits: bool,
    pub is_over: bool,
    readable: bool,
    wants: bool,
}

/// A client.
pub struct Session {
    gate: Gate,
    granted: Mutex<bool>,
    pub core: Mutex<Core>,
}

/// Where the pool has its one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Idle,
    Tested,
    Active,
}

/// The pool: a server and a queue.
#[derive(Debug)]
pub struct Pool {
    pub place: Place,
    pub waiters: Vec<usize>,
}

/// Everything.
pub struct World {
    pub pool: Mutex<Pool>,
    pub berth: Berth<usize, Conn>,
    pub sessions: Vec<Session>,
    /// What lies in the server's socket.
    pub unread: AtomicUsize,
    /// How often somebody has looked after the server: the first look finds it unclean.
    cleanings: AtomicUsize,
}

impl World {
    /// The server is idle and nobody wants it.
    pub fn new(sessions: usize) -> World {
        let world = World {
            pool: Mutex::new(Pool { place: Place::Idle, waiters: Vec::new() }),
            berth: Berth::new(Conn),
            sessions: (0..sessions)
                .map(|_| Session { gate: Gate::new(), granted: Mutex::new(false), core: Mutex::default() })
                .collect(),
            unread: AtomicUsize::new(0),
            cleanings: AtomicUsize::new(0),
        };
        assert!(!world.berth.hand_to(Holder::Pool), "no edge yet");
        world
    }

    /// Gives the idle server to a session, before the threads begin.
    pub fn lend(&self, session: usize) {
        self.pool.lock().unwrap().place = Place::Active;
        let (conn, _) = self.berth.take_for(session).unwrap();
        self.sessions[session].core.lock().unwrap().lease = Some(conn);
    }

    /// Takes the idle server to be cleaned, before the threads begin.
    pub fn keep_from_start(&self) {
        self.pool.lock().unwrap().place = Place::Tested;
        let conn = self.berth.take_to_keep().unwrap();
        assert!(!self.berth.moor(conn, Holder::Keeper), "no edge yet");
    }

    /// Puts a session into the queue, before the threads begin.
    pub fn enqueue(&self, session: usize) {
        self.pool.lock().unwrap().waiters.push(session);
        self.sessions[session].core.lock().unwrap().waits = true;
    }

    /// A worker is told of something about a session.
    pub fn post(&self, session: usize, bits: Bits) {
        if self.sessions[session].gate.post(bits) {
            self.turn(session);
        }
    }

    /// Bytes arrive at the server's socket: whose poll it is in tells.
    pub fn server_speaks(&self) {
        self.unread.fetch_add(1, Ordering::SeqCst);
        match self.berth.edge() {
            News::Client(session) => self.post(session, SERVER_EDGE),
            News::Idle | News::Kept => self.look(),
            News::Gone => {}
        }
    }

    fn turn(&self, session: usize) {
        loop {
            let happened = self.sessions[session].gate.news();
            if happened == 0 {
                return;
            }
            let mut core = self.sessions[session].core.try_lock().expect("two work on one session");
            self.drive(session, &mut core, happened);
        }
    }

    fn drive(&self, session: usize, core: &mut Core, happened: Bits) {
        if core.is_over {
            return self.return_grant(session);
        }
        if happened & MAIL != 0 && std::mem::take(&mut *self.sessions[session].granted.lock().unwrap()) {
            core.waits = false;
            self.accept(session, core);
        }
        if happened & HUNG_UP != 0 {
            return self.close(session, core);
        }
        core.wants |= happened & CLIENT_READABLE != 0;
        if core.lease.is_none() && core.wants && !core.waits {
            self.checkout(session, core);
        }
        if core.lease.is_some() {
            core.wants = false;
            if happened & SERVER_EDGE != 0 {
                core.readable |= self.berth.take_edge();
            }
            if std::mem::take(&mut core.readable) {
                self.unread.swap(0, Ordering::SeqCst);
            }
        }
    }

    fn checkout(&self, session: usize, core: &mut Core) {
        let mut pool = self.pool.lock().unwrap();
        if pool.place == Place::Idle {
            pool.place = Place::Active;
            drop(pool);
            self.accept(session, core);
        } else {
            pool.waiters.push(session);
            core.waits = true;
        }
    }

    fn accept(&self, session: usize, core: &mut Core) {
        let Some((conn, edge)) = self.berth.take_for(session) else {
            return self.checkout(session, core);
        };
        if edge {
            self.unread.swap(0, Ordering::SeqCst);
        }
        core.lease = Some(conn);
    }

    fn close(&self, session: usize, core: &mut Core) {
        core.is_over = true;
        if std::mem::take(&mut core.waits) {
            self.pool.lock().unwrap().waiters.retain(|&waiter| waiter != session);
        }
        if let Some(conn) = core.lease.take() {
            self.give_back(conn);
        }
        self.return_grant(session);
    }

    fn return_grant(&self, session: usize) {
        if std::mem::take(&mut *self.sessions[session].granted.lock().unwrap())
            && let Some((conn, edge)) = self.berth.take_for(session)
        {
            if edge {
                self.keep(conn);
            } else {
                self.give_back(conn);
            }
        }
    }

    /// The client is done with its server.
    pub fn release(&self, session: usize) {
        // In the shell this is a part of a turn.
        if self.sessions[session].gate.post(SERVER_EDGE) {
            let conn = self.sessions[session].core.try_lock().expect("two work on one session").lease.take();
            if let Some(conn) = conn {
                self.give_back(conn);
            }
            self.turn(session);
        }
    }

    fn give_back(&self, conn: Conn) {
        let mut pool = self.pool.lock().unwrap();
        if pool.waiters.is_empty() {
            pool.place = Place::Idle;
            // The pool stays locked until the server is moored.
            let edge = self.berth.moor(conn, Holder::Pool);
            drop(pool);
            if edge {
                self.look();
            }
            return;
        }
        let waiter = pool.waiters.remove(0);
        pool.place = Place::Active;
        drop(pool);
        // An edge that came meanwhile is seen by who takes it.
        let _edge = self.berth.moor(conn, Holder::Pool);
        *self.sessions[waiter].granted.lock().unwrap() = true;
        self.post(waiter, MAIL);
    }

    /// An edge of a server that no client has.
    pub fn look(&self) {
        let taken = if self.berth.look(|holder, _| *holder == Holder::Pool) {
            let mut pool = self.pool.lock().unwrap();
            if pool.place != Place::Idle {
                return;
            }
            pool.place = Place::Tested;
            drop(pool);
            self.berth.take_to_keep()
        } else {
            self.berth.take_kept()
        };
        if let Some(conn) = taken {
            self.keep(conn);
        }
    }

    /// Looks; the first time it finds that the server is not clean yet, and leaves it until it says more.
    fn keep(&self, mut conn: Conn) {
        loop {
            self.unread.swap(0, Ordering::SeqCst);
            if self.cleanings.fetch_add(1, Ordering::SeqCst) > 0 {
                return self.give_back(conn);
            }
            if !self.berth.moor(conn, Holder::Keeper) {
                return;
            }
            match self.berth.take_kept() {
                Some(taken) => conn = taken,
                None => return,
            }
        }
    }

    /// After all threads: nobody is lost, nothing is unread, and one has the server.
    pub fn check(&self) {
        let pool = self.pool.lock().unwrap();
        let moored = self.berth.look(|holder, conn| (holder.clone(), conn.is_some()));
        let mut holders = usize::from(moored.1);
        for (at, session) in self.sessions.iter().enumerate() {
            let core = session.core.try_lock().expect("nobody is at work");
            holders += usize::from(core.lease.is_some());
            assert!(!*session.granted.lock().unwrap(), "session {at} has a grant and does not know");
            assert!(!(core.is_over && core.lease.is_some()), "session {at} is over and keeps its server");
            assert_eq!(core.waits, pool.waiters.contains(&at), "session {at} waits if it is in the queue");
            assert!(session.gate.post(MAIL), "somebody never left the gate of session {at}");
        }
        assert_eq!(holders, 1, "one has the server");
        let is_agreed = match pool.place {
            Place::Idle => moored == (Holder::Pool, true),
            Place::Tested => moored == (Holder::Keeper, true),
            // Somebody died with a grant: what it was granted is looked after in its name.
            Place::Active => moored.0 == Holder::Keeper || !moored.1,
        };
        assert!(is_agreed, "the pool says {:?}, the server is {moored:?}", pool.place);
        assert!(pool.place != Place::Idle || pool.waiters.is_empty(), "nobody waits for an idle server");
        assert_eq!(self.unread.load(Ordering::SeqCst), 0, "an edge was lost");
    }
}

/// One race: how the world begins, and what happens at once, each in a thread of its own.
#[derive(Clone)]
pub struct Race {
    pub name: &'static str,
    begin: fn() -> World,
    threads: Vec<fn(&World)>,
}

impl Race {
    /// Runs it, and checks what is left.
    pub fn run(&self) {
        let world = Arc::new((self.begin)());
        let threads: Vec<_> = self
            .threads
            .iter()
            .map(|&thread| {
                let world = Arc::clone(&world);
                crate::sync::spawn(move || thread(&world))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        world.check();
    }
}

/// The races that are tried.
pub fn races() -> Vec<Race> {
    let race = |name, begin, threads| Race { name, begin, threads };
    vec![
        race("server freed while it speaks", waiter, vec![|w| w.release(0), World::server_speaks]),
        race(
            "server freed while the waiter hangs up",
            waiter,
            vec![|w| w.release(0), |w| w.post(1, HUNG_UP)],
        ),
        race(
            "server freed while it speaks and the waiter hangs up",
            waiter,
            vec![|w| w.release(0), World::server_speaks, |w| w.post(1, HUNG_UP)],
        ),
        race(
            "client hangs up while its server speaks and another asks",
            lent,
            vec![|w| w.post(0, HUNG_UP), World::server_speaks, |w| w.post(1, CLIENT_READABLE)],
        ),
        race(
            "idle server speaks while two ask for it",
            idle,
            vec![World::server_speaks, |w| w.post(0, CLIENT_READABLE), |w| w.post(1, CLIENT_READABLE)],
        ),
        race(
            "kept server speaks twice while one asks for it",
            kept,
            vec![World::server_speaks, World::server_speaks, |w| w.post(0, CLIENT_READABLE)],
        ),
        race(
            "kept server speaks while one asks for it and hangs up",
            kept,
            vec![World::server_speaks, |w| w.post(0, CLIENT_READABLE), |w| w.post(0, HUNG_UP)],
        ),
    ]
}

fn idle() -> World {
    World::new(2)
}

fn lent() -> World {
    let world = World::new(2);
    world.lend(0);
    world
}

fn waiter() -> World {
    let world = lent();
    world.enqueue(1);
    world
}

fn kept() -> World {
    let world = World::new(1);
    world.keep_from_start();
    world
}
