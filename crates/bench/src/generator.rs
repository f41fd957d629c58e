//! A closed loop: so many clients, each with one query under way, always. Used where pgbench cannot
//! tell (exact percentiles, thousands of clients, idle ones); it never opens or closes a connection
//! while it measures: that is [`crate::churn`].
//!
//! Call order: `Swarm::log_in`, then `ask_once` or `run` any number of times, then drop it.

use crate::histogram::Histogram;
use crate::host::Stop;
use crate::protocol;
pub use crate::trouble::Trouble;
use crate::usage::UnixNanos;
use crate::visitor::Visitor;
use mio::{Events, Poll, Token};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Where to log in and what to ask.
#[derive(Debug, Clone)]
pub struct Door {
    /// The target.
    pub address: SocketAddr,
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// The one statement.
    pub sql: String,
}

/// How long to run.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Not counted.
    pub warm_up: Duration,
    /// Counted.
    pub measured: Duration,
}

/// What was seen in a window.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Latencies of the transactions that ended in the window.
    pub latencies: Histogram,
    /// What went wrong.
    pub trouble: Trouble,
    /// The window.
    pub from: UnixNanos,
    /// Its end.
    pub until: UnixNanos,
}

/// Clients that are logged in.
#[derive(Debug)]
pub struct Swarm {
    poll: Poll,
    clients: Vec<Client>,
    door: Door,
    query: Vec<u8>,
    scratch: Vec<u8>,
    events: Events,
    repeat: bool,
    window: Option<(Instant, Instant)>,
    latencies: Histogram,
    trouble: Trouble,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Connecting or logging in.
    entering: usize,
    /// With a query under way.
    busy: usize,
    /// Lost, or never let in.
    gone: usize,
}

#[derive(Debug)]
struct Client {
    visitor: Visitor,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Entering,
    Idle,
    Busy { since: Instant },
    Gone,
}

/// Logins under way at a time: fewer than any backlog.
const ENTERING_MAX: usize = 64;
/// Queries under way at a time where clients only ask once: fewer than any pool.
const ASKING_MAX: usize = 8;
/// How long the last replies of a window may take.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(50);

impl Swarm {
    /// Logs `clients` clients in, within `limit`. Those that are refused are trouble, not an error.
    pub fn log_in(door: &Door, clients: usize, limit: Duration, stop: &Stop) -> io::Result<Swarm> {
        let mut swarm = Swarm {
            poll: Poll::new()?,
            clients: Vec::with_capacity(clients),
            door: door.clone(),
            query: protocol::query(&door.sql),
            scratch: vec![0; 1 << 16],
            events: Events::with_capacity(1_024),
            repeat: false,
            window: None,
            latencies: Histogram::default(),
            trouble: Trouble::default(),
            counts: Counts::default(),
        };
        let until = Instant::now() + limit;
        while (swarm.clients.len() < clients || swarm.counts.entering > 0) && !stop.asked() {
            while swarm.clients.len() < clients && swarm.counts.entering < ENTERING_MAX {
                swarm.open_one()?;
            }
            if Instant::now() > until {
                swarm.give_up_entering();
                break;
            }
            swarm.turn()?;
        }
        Ok(swarm)
    }

    /// How many clients are in.
    pub fn logged_in(&self) -> usize {
        self.clients.len() - self.counts.gone - self.counts.entering
    }

    /// What has gone wrong since the last window.
    pub fn take_trouble(&mut self) -> Trouble {
        std::mem::take(&mut self.trouble)
    }

    /// One query each, a few at a time so that nobody has to wait for a server, and all replies; all
    /// within `limit`.
    pub fn ask_once(&mut self, limit: Duration, stop: &Stop) -> io::Result<()> {
        let until = Instant::now() + limit;
        for index in 0..self.clients.len() {
            if self.clients[index].phase == Phase::Idle {
                self.ask(index, Instant::now());
            }
            while self.counts.busy >= ASKING_MAX && Instant::now() < until && !stop.asked() {
                self.turn()?;
            }
        }
        self.drain(until.saturating_duration_since(Instant::now()), stop)
    }

    /// Runs the loop for a window, and leaves with all clients idle again.
    pub fn run(&mut self, window: Window, stop: &Stop) -> io::Result<Tally> {
        let now = (Instant::now(), UnixNanos::now());
        let (from, until) = (now.0 + window.warm_up, now.0 + window.warm_up + window.measured);
        self.window = Some((from, until));
        self.latencies = Histogram::default();
        self.repeat = true;
        for index in 0..self.clients.len() {
            if self.clients[index].phase == Phase::Idle {
                self.ask(index, Instant::now());
            }
        }
        while Instant::now() < until && self.counts.busy > 0 && !stop.asked() {
            self.turn()?;
        }
        self.repeat = false;
        self.drain(DRAIN_LIMIT, stop)?;
        self.window = None;
        Ok(Tally {
            latencies: std::mem::take(&mut self.latencies),
            trouble: self.take_trouble(),
            from: now.1.after(window.warm_up),
            until: now.1.after(window.warm_up + window.measured),
        })
    }

    /// Takes replies until none is owed; those that do not come are trouble, and their clients gone.
    fn drain(&mut self, limit: Duration, stop: &Stop) -> io::Result<()> {
        let until = Instant::now() + limit;
        while self.counts.busy > 0 && Instant::now() < until && !stop.asked() {
            self.turn()?;
        }
        for index in 0..self.clients.len() {
            if matches!(self.clients[index].phase, Phase::Busy { .. }) {
                self.lose(index, || "no reply within the limit".to_owned());
            }
        }
        Ok(())
    }

    fn open_one(&mut self) -> io::Result<()> {
        let token = Token(self.clients.len());
        let visitor = Visitor::connect(self.door.address, self.poll.registry(), token)?;
        self.clients.push(Client { visitor, phase: Phase::Connecting });
        self.counts.entering += 1;
        Ok(())
    }

    fn give_up_entering(&mut self) {
        for index in 0..self.clients.len() {
            if matches!(self.clients[index].phase, Phase::Connecting | Phase::Entering) {
                self.lose(index, || "not logged in within the limit".to_owned());
            }
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let polled = match self.poll.poll(&mut events, Some(TICK)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        };
        for event in &events {
            self.serve(event.token().0, event.is_read_closed());
        }
        self.events = events;
        polled
    }

    /// `drain`: the end of the connection may stand behind its last bytes.
    fn serve(&mut self, index: usize, drain: bool) {
        match self.clients[index].phase {
            Phase::Gone => return,
            Phase::Connecting => return self.connected(index),
            _ => {}
        }
        loop {
            let heard = match self.clients[index].visitor.hear(&mut self.scratch, &mut self.trouble) {
                Ok(heard) => heard,
                Err(why) => return self.lose(index, || why),
            };
            if heard.ready {
                self.ready(index);
            }
            if self.clients[index].phase == Phase::Gone || !(heard.more || (drain && heard.got)) {
                return;
            }
        }
    }

    fn connected(&mut self, index: usize) {
        let client = &mut self.clients[index];
        match client.visitor.is_connected() {
            Ok(false) => return,
            Ok(true) => {}
            Err(why) => return self.lose(index, || why),
        }
        client.phase = Phase::Entering;
        let packet = protocol::startup(&self.door.user, &self.door.database);
        self.send(index, &packet);
    }

    fn ready(&mut self, index: usize) {
        match self.clients[index].phase {
            Phase::Entering => {
                self.counts.entering -= 1;
                self.clients[index].phase = Phase::Idle;
            }
            Phase::Busy { since } => {
                let now = Instant::now();
                if self.window.is_some_and(|(from, until)| from <= now && now < until) {
                    self.latencies.add(now - since);
                }
                self.counts.busy -= 1;
                self.clients[index].phase = Phase::Idle;
                if self.repeat {
                    self.ask(index, now);
                }
            }
            Phase::Idle => self.lose(index, || "a reply that nobody asked for".to_owned()),
            Phase::Connecting | Phase::Gone => {}
        }
    }

    fn ask(&mut self, index: usize, now: Instant) {
        self.clients[index].phase = Phase::Busy { since: now };
        self.counts.busy += 1;
        let query = std::mem::take(&mut self.query);
        self.send(index, &query);
        self.query = query;
    }

    fn send(&mut self, index: usize, bytes: &[u8]) {
        if let Err(why) = self.clients[index].visitor.send(bytes) {
            self.lose(index, || why);
        }
    }

    fn lose(&mut self, index: usize, why: impl FnOnce() -> String) {
        match self.clients[index].phase {
            Phase::Connecting | Phase::Entering => self.counts.entering -= 1,
            Phase::Busy { .. } => self.counts.busy -= 1,
            Phase::Idle => {}
            Phase::Gone => return,
        }
        self.clients[index].phase = Phase::Gone;
        self.counts.gone += 1;
        self.trouble.add(why);
        self.clients[index].visitor.shut_down();
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        for client in &mut self.clients {
            if client.phase == Phase::Idle {
                client.visitor.say_goodbye();
            }
        }
    }
}

/// A closed loop on several threads, each with its share of the clients. All log in before any asks.
pub fn closed_loop(
    door: &Door,
    clients: usize,
    threads: usize,
    window: Window,
    stop: &Stop,
) -> io::Result<Tally> {
    let threads = threads.clamp(1, clients.max(1));
    let share = |thread: usize| clients / threads + usize::from(thread < clients % threads);
    let limit = Duration::from_secs(30);
    let mut swarms = in_parallel((0..threads).map(share), |share| Swarm::log_in(door, share, limit, stop))?;
    let mut trouble = Trouble::default();
    for swarm in &mut swarms {
        trouble.merge(swarm.take_trouble());
    }
    let tallies = in_parallel(swarms, |mut swarm| swarm.run(window, stop))?;
    let mut whole = Tally::default();
    for tally in tallies {
        whole.latencies.merge(&tally.latencies);
        trouble.merge(tally.trouble);
        (whole.from, whole.until) = (tally.from, tally.until);
    }
    whole.trouble = trouble;
    Ok(whole)
}

/// The same on a thread for each input; the outputs in their order.
pub(crate) fn in_parallel<I: Send, O: Send>(
    inputs: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> io::Result<O> + Sync,
) -> io::Result<Vec<O>> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = inputs.into_iter().map(|input| scope.spawn(move || work(input))).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the load generator fell")))
        });
        joined.collect()
    })
}

#[cfg(test)]
mod tests;
