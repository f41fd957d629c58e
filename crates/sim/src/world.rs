//! Everything there is in one run, and what happens at each event.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use baton::News;
use hub::Fanout;
use link::{Link, Out};
use model::{ClientId, Moment, Parameters, PoolMode, StateMode, Statements};

use crate::check::most_kept;
use crate::client::{Client, Heard, Stage, defaults, show_all};
use crate::ears::Note;
use crate::keeper::Keeper;
use crate::net::{End, Event, Net, Received};
use crate::parts::{Cancel, Home, Moored, Opening, Session, Steady, Stream, news};
use crate::plan::{Plan, Weather};
use crate::plant::Plant;
use crate::postgres::{Postgres, Settings, Step, Tongue};
use crate::rng::Rng;

/// The PostgreSQL behind one server connection.
pub(crate) struct Backend {
    pub(crate) pg: Postgres,
    pub(crate) up: u32,
    pub(crate) down: u32,
    pub(crate) alive: bool,
    /// The pooler has closed its side.
    hung_up: bool,
    sleeps: u32,
    is_called: bool,
    /// It has sent what it did not owe.
    pub(crate) lied: bool,
    /// The node that it is on.
    pub(crate) node: u32,
    /// Nothing that it says may be heard any more.
    pub(crate) is_cut: bool,
    /// It does nothing before this.
    pub(crate) frozen_until: Moment,
}

/// One run.
pub(crate) struct World {
    pub(crate) net: Net,
    pub(crate) plan: Plan,
    pub(crate) plant: Plant,
    pub(crate) weather: Weather,
    /// Misfortunes may still come.
    pub(crate) is_rough: bool,
    pub(crate) scratch: Vec<u8>,
    pub(crate) out: Out,
    pub(crate) homes: Vec<Home>,
    pub(crate) clients: Vec<Client>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) moored: Vec<Moored>,
    pub(crate) backends: Vec<Backend>,
    pub(crate) openings: Vec<Opening>,
    pub(crate) openings_left: u32,
    pub(crate) cancels: Vec<Cancel>,
    pub(crate) cancels_left: u32,
    pub(crate) worker: u16,
    /// What all servers have by now.
    pub(crate) defaults: Rc<Settings>,
    /// The node that is written to, or was last.
    pub(crate) node: u32,
    /// What all nodes have committed.
    pub(crate) committed: HashSet<Vec<u8>>,
    /// Who listens on what.
    pub(crate) fanout: Fanout<u32>,
    pub(crate) keepers: Vec<Keeper>,
    /// All notifications that were committed.
    pub(crate) notes: Vec<Note>,
    /// The first thing that was wrong.
    pub(crate) fault: Option<String>,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Plant, verbose: bool) -> World {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(&mut rng);
        let mut net = Net::new(rng);
        net.delay_max = plan.delay_max;
        net.verbose = verbose;
        let fanout = plan.fanout;
        let mut world = World {
            scratch: vec![0; plan.scratch],
            weather: Weather::Fair,
            is_rough: plan.is_rough,
            plan,
            plant,
            net,
            out: Out::default(),
            homes: Vec::new(),
            clients: Vec::new(),
            sessions: Vec::new(),
            moored: Vec::new(),
            backends: Vec::new(),
            openings: Vec::new(),
            openings_left: 0,
            cancels: Vec::new(),
            cancels_left: 0,
            worker: 0,
            defaults: defaults(),
            node: 0,
            committed: HashSet::new(),
            fanout: Fanout::new(fanout),
            keepers: Vec::new(),
            notes: Vec::new(),
            fault: None,
        };
        world.make_homes();
        for _ in 0..world.plan.clients {
            let home = world.net.rng.index(world.homes.len());
            let exchanges = world.plan.exchanges;
            let left = world.net.rng.between(1, exchanges) as u32;
            let client = world.add_client(home, left);
            world.clients[client as usize].excused = world.is_rough;
            world.net.soon(3_000, Event::Wake(client));
        }
        if world.is_rough {
            world.net.soon(2_000, Event::Misfortune);
        }
        world.net.after(100_000, Event::Watch);
        world
    }

    fn make_homes(&mut self) {
        let plans = self.plan.homes.clone();
        let statements = Statements::default();
        for plan in plans {
            let mut limits = plan.limits;
            if self.plant == Plant::LimitOffByOne {
                limits.size += 1;
            }
            let mut parameters = Parameters::default();
            for (name, value) in self.defaults.iter() {
                parameters.set(name, value, true);
            }
            self.homes.push(Home {
                pool: pool::Pool::new(limits),
                limits: plan.limits,
                policy: Arc::clone(&plan.policy),
                traits: plan.traits,
                statements: Arc::new(statements.beside()),
                askers: HashSet::new(),
                query_wait: plan.query_wait,
                welcome: Arc::new(parameters),
                alive: 0,
                allowed: plan.limits.most(),
                pins_allowed: most_kept(plan.limits),
                unheld_at: Moment::default(),
                tick_at: Moment::NEVER,
            });
        }
    }

    /// A client that has just logged in.
    pub(crate) fn add_client(&mut self, home: usize, left: u32) -> u32 {
        let index = self.clients.len() as u32;
        let id = u64::from(index) + 1;
        let up = self.net.pipe(End::Client(index), End::Session(index), usize::MAX);
        let capacity = self.plan.capacity;
        let down = self.net.pipe(End::Session(index), End::Client(index), capacity);
        let mut wishes: Vec<(&[u8], &[u8])> = Vec::new();
        let name = format!("c{id}.app");
        if self.net.rng.chance(50) {
            wishes.push((b"application_name", name.as_bytes()));
        }
        if self.net.rng.chance(20) {
            wishes.push((b"extra_float_digits", b"2"));
        }
        let mut traits = self.homes[home].traits;
        if self.net.verbose {
            eprintln!("{:>10} client {id} is of pool {home}: {traits:?}", self.net.now.0);
        }
        traits.discards &= wishes.is_empty() || traits.state != StateMode::Off;
        let mut ideal = Postgres::new(Rc::clone(&self.defaults));
        let policy = &self.homes[home].policy;
        ideal.refuses = policy.state == StateMode::Refuse && policy.mode != PoolMode::Session;
        ideal.begin_with(&wishes);
        let mut parameters = (*self.homes[home].welcome).clone();
        for (name, value) in &wishes {
            parameters.set(name, value, false);
        }
        let parameters =
            if wishes.is_empty() { Arc::clone(&self.homes[home].welcome) } else { Arc::new(parameters) };
        let machine = client::Client::new(ClientId(id), parameters);
        let policy = Arc::clone(&self.homes[home].policy);
        let steady = Steady {
            stream: Stream::new(up, down),
            pending: Vec::new(),
            readable: false,
            hung_up: false,
            armed: Moment::NEVER,
            link: Link::new(machine, policy, Arc::clone(&self.homes[home].statements), self.net.now),
            home,
            ticket: None,
            waiting_since: Moment::NEVER,
            lease: None,
            stalled: false,
            unread: false,
            query_wait: self.homes[home].query_wait,
            listener: None,
            wants_pin: false,
            is_orphan: false,
            is_mid_message: false,
            sent: crate::sent::Sent::default(),
            is_over: false,
        };
        self.sessions.push(Session {
            gate: baton::Gate::new(),
            granted: None,
            letters: Vec::new(),
            notes: None,
            steady: Some(Box::new(steady)),
            is_over: false,
            last_server: None,
        });
        self.clients.push(Client::new(id, home, (up, down), ideal, traits, left));
        index
    }

    /// Notes what is wrong, unless something was before.
    pub(crate) fn claim(&mut self, is_true: bool, fault: impl FnOnce() -> String) {
        if !is_true && self.fault.is_none() {
            self.fault = Some(fault());
        }
    }

    /// Does what happens at one event.
    pub(crate) fn happen(&mut self, event: Event) {
        if self.net.verbose {
            eprintln!("{:>10} {event:?}", self.net.now.0);
        }
        match event {
            Event::Arrive(pipe) => {
                if self.net.arrive(pipe) {
                    self.arrived(pipe);
                }
            }
            Event::Writable(pipe) => match self.net.pipes[pipe as usize].writer {
                End::Session(session) => self.post(session, news::CLIENT_WRITABLE),
                End::Server(server) => self.edge(server),
                End::Client(_) | End::Backend(_) | End::Keeper(_) | End::Listened(_) => {}
            },
            Event::Wake(client) => self.wake(client),
            Event::Vanish(client) => {
                if self.clients[client as usize].stage != Stage::Over {
                    self.vanish(client);
                }
            }
            Event::Turn(session) => self.turn(session),
            Event::Timer(session) => self.post(session, news::TIMER),
            Event::Work(server) => self.work(server),
            Event::Awake(server, serial) => {
                let backend = &mut self.backends[server as usize];
                if backend.frozen_until > self.net.now {
                    let thaws_at = backend.frozen_until;
                    self.net.at(thaws_at, event);
                } else if backend.sleeps == serial && backend.alive {
                    backend.pg.finish(false);
                    self.work(server);
                }
            }
            Event::Connected(opening) => self.connected(opening),
            Event::Tick(home) => self.tick(home as usize),
            Event::CancelAsked(client) => {
                // The key of a client that has left leads nowhere.
                if !self.sessions[client as usize].is_over {
                    self.tell(client, crate::parts::Letter::Cancel);
                }
            }
            Event::CancelLands(cancel) => self.cancel_lands(cancel),
            Event::CancelEnds(cancel) => {
                let Cancel { server, slot, .. } = self.cancels[cancel as usize];
                self.cancels_left -= 1;
                if let Some(slot) = slot {
                    let home = self.moored[server as usize].home;
                    if let Some(server) = self.homes[home].pool.cancel_done(slot) {
                        self.check(server);
                    }
                }
            }
            Event::Keeper(keeper) => self.keep_listening(keeper),
            Event::KeeperConnected(keeper) => self.keeper_connected(keeper),
            Event::Elected => self.elected(),
            Event::Misfortune => self.misfortune(),
            Event::Watch => self.watch(),
        }
        self.arm_ticks();
        self.check_limits();
    }

    fn arrived(&mut self, pipe: u32) {
        let is_end = self.net.pipes[pipe as usize].eof;
        match self.net.pipes[pipe as usize].reader {
            End::Client(client) => self.hear(client),
            End::Session(session) => {
                let bits = if is_end { news::CLIENT_HUNG_UP } else { 0 };
                self.post(session, news::CLIENT_READABLE | bits);
            }
            End::Backend(server) => {
                if !std::mem::replace(&mut self.backends[server as usize].is_called, true) {
                    self.net.soon(40, Event::Work(server));
                }
            }
            End::Server(server) => self.edge(server),
            End::Keeper(keeper) => self.keeper_hears(keeper, pipe),
            End::Listened(keeper) => self.listened(keeper, pipe),
        }
    }

    fn edge(&mut self, server: u32) {
        match self.moored[server as usize].berth.edge() {
            News::Client(session) => self.post(session, news::SERVER_EDGE),
            News::Idle | News::Kept => self.look(server),
            News::Gone => {}
        }
    }

    fn hear(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.stage == Stage::Over || client.deaf {
            return;
        }
        let was_tainted = client.tainted;
        let heard = client.hear(&mut self.net, &mut self.scratch);
        if client.tainted && !was_tainted {
            self.net.soon(20_000, Event::Vanish(index));
        }
        self.note_heard(index);
        let client = &mut self.clients[index as usize];
        match heard {
            Err(fault) => self.claim(false, || fault),
            Ok(Heard::Waits | Heard::Closed) => {}
            Ok(Heard::CopyAsked) => {
                let exchange = client.copy_rest(&mut self.net);
                client.say(&mut self.net, &exchange.bytes);
                self.maybe_cancel(index, exchange.is_slow);
            }
            Ok(Heard::Answered) => {
                self.note_acknowledged(index);
                self.note_settled(index);
                let client = &mut self.clients[index as usize];
                self.homes[client.home].note_answered(client);
                if matches!(client.stage, Stage::Waiting(_)) {
                    client.stage = Stage::Thinking;
                    let most = self.plan.think_max;
                    self.net.soon(most, Event::Wake(index));
                }
            }
        }
    }

    fn wake(&mut self, index: u32) {
        let rough = self.is_rough;
        let client = &mut self.clients[index as usize];
        if client.deaf {
            client.deaf = false;
            return self.hear(index);
        }
        if client.stage != Stage::Thinking {
            return;
        }
        if client.left == 0 {
            if !self.still_listens(index) {
                self.leave(index);
            }
            return;
        }
        let exchange = client.next(&mut self.net);
        self.homes[client.home].note_draws(client, &exchange.bytes);
        self.note_said(index, &exchange.bytes);
        let client = &mut self.clients[index as usize];
        if rough && self.net.rng.chance(3) && !exchange.bytes.is_empty() {
            // It vanishes in the middle of what it says.
            let cut = self.net.rng.index(exchange.bytes.len());
            let _ = self.net.write(client.up, &exchange.bytes[..cut]);
            return self.vanish(index);
        }
        client.say(&mut self.net, &exchange.bytes);
        if self.net.rng.chance(4) && client.stage != Stage::Over {
            client.deaf = true;
            self.net.soon(10_000, Event::Wake(index));
        }
        self.maybe_cancel(index, exchange.is_slow);
    }

    fn maybe_cancel(&mut self, index: u32, is_slow: bool) {
        let percent = if is_slow { 30 } else { 4 };
        if self.net.rng.chance(percent) {
            self.clients[index as usize].cancels += 1;
            self.net.soon(3_000, Event::CancelAsked(index));
        }
    }

    fn leave(&mut self, index: u32) {
        let up = self.clients[index as usize].up;
        if self.net.rng.chance(70) {
            let _ = self.net.write(up, &wire::encode::TERMINATE);
        }
        self.vanish(index);
    }

    /// The client is gone, whatever it was doing.
    pub(crate) fn vanish(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        client.stage = Stage::Over;
        self.net.pipes[client.down as usize].broken = true;
        self.net.end(client.up);
        if self.net.rng.chance(20) {
            // A cancel with a key that is about to be stale.
            self.net.soon(500, Event::CancelAsked(index));
        }
    }

    /// The PostgreSQL behind a server connection reads and answers.
    pub(crate) fn work(&mut self, server: u32) {
        let backend = &mut self.backends[server as usize];
        backend.is_called = false;
        if !backend.alive {
            return;
        }
        if backend.frozen_until > self.net.now {
            backend.is_called = true;
            let thaws_at = backend.frozen_until;
            return self.net.at(thaws_at, Event::Work(server));
        }
        loop {
            match self.net.read(backend.up, &mut self.scratch) {
                Received::Some(count, _) => {
                    if self.net.verbose {
                        let text = show_all(&self.scratch[..count]);
                        eprintln!("{:>10} server {server} reads{text}", self.net.now.0);
                    }
                    backend.pg.feed(&self.scratch[..count]);
                }
                Received::Nothing => break,
                Received::End => {
                    backend.hung_up = true;
                    break;
                }
            }
        }
        let was_running = backend.pg.is_running();
        let is_over = loop {
            match backend.pg.step() {
                Step::Done => {}
                Step::Hungry => break backend.hung_up,
                Step::Over => break true,
                Step::Runs(micros) => {
                    if !was_running || backend.pg.last_tag.is_some() {
                        backend.sleeps += 1;
                        self.net.after(micros, Event::Awake(server, backend.sleeps));
                    }
                    break false;
                }
            }
            if let Some(tag) = backend.pg.last_tag.take() {
                let leased = self.moored[server as usize].leased_to;
                Self::check_executor(&mut self.fault, leased, &tag, server);
            }
        };
        if let Some(tag) = backend.pg.last_tag.take() {
            let leased = self.moored[server as usize].leased_to;
            Self::check_executor(&mut self.fault, leased, &tag, server);
        }
        if let Some(outrage) = backend.pg.outrage.take()
            && self.fault.is_none()
        {
            self.fault = Some(format!("server {server}: {outrage}"));
        }
        self.note_commits(server);
        let backend = &mut self.backends[server as usize];
        let said = std::mem::take(&mut backend.pg.out);
        if !said.is_empty() {
            if self.net.verbose {
                eprintln!("{:>10} server {server} says{}", self.net.now.0, show_all(&said));
            }
            let _ = self.net.write(backend.down, &said);
        }
        if is_over {
            backend.alive = false;
            self.net.end(backend.down);
            self.net.pipes[backend.up as usize].broken = true;
        }
    }

    /// Who has the server is whose statement runs on it.
    fn check_executor(fault: &mut Option<String>, leased: Option<u32>, tag: &[u8], server: u32) {
        let tag = String::from_utf8_lossy(tag);
        let id = tag
            .strip_prefix('c')
            .and_then(|rest| rest.split('.').next())
            .and_then(|id| id.parse::<u32>().ok());
        if let (Some(session), Some(id), None) = (leased, id, &fault)
            && session + 1 != id
        {
            *fault = Some(format!("server {server} runs {tag} while session {session} has it"));
        }
    }

    fn cancel_lands(&mut self, at: u32) {
        let Cancel { server, meant_for, .. } = self.cancels[at as usize];
        let backend = &mut self.backends[server as usize];
        if backend.alive && self.weather == Weather::Fair {
            let before = backend.pg.is_running();
            if let Some(tag) = backend.pg.cancel() {
                let tag = String::from_utf8_lossy(&tag).into_owned();
                self.claim(tag.starts_with(&format!("c{meant_for}.")), || {
                    format!("a cancel for client {meant_for} stops {tag} on server {server}")
                });
                if before {
                    self.backends[server as usize].sleeps += 1;
                }
                self.work(server);
            }
        }
        self.net.soon(300, Event::CancelEnds(at));
    }

    pub(crate) fn add_backend(&mut self, server: u32) -> (u32, u32) {
        let up = self.net.pipe(End::Server(server), End::Backend(server), self.plan.capacity);
        let down = self.net.pipe(End::Backend(server), End::Server(server), usize::MAX);
        let mut pg = Postgres::new(Rc::clone(&self.defaults));
        pg.tongue = match self.plant {
            Plant::HideLocks => Tongue::HidesLocks,
            Plant::InventLocks => Tongue::InventsLocks,
            Plant::KeepDraws => Tongue::KeepsDraws,
            _ => Tongue::True,
        };
        self.backends.push(Backend {
            pg,
            up,
            down,
            alive: true,
            hung_up: false,
            sleeps: 0,
            is_called: false,
            lied: false,
            node: self.node,
            is_cut: false,
            frozen_until: Moment::default(),
        });
        (up, down)
    }
}
