//! Clients that come, ask once and go, always so many at a time. pgbench's `-C` is the honest measure of that,
//! but on few cores it is pgbench that ends first: its own work for a connection is half as much again as a
//! pooler's. This does only what the wire asks for.

use crate::generator::{Door, Tally, Window, in_parallel};
use crate::histogram::Histogram;
use crate::host::Stop;
use crate::protocol;
use crate::trouble::Trouble;
use crate::usage::UnixNanos;
use crate::visitor::{Lost, Visitor};
use mio::{Events, Poll, Token};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// A visit that takes longer has failed.
const VISIT_LIMIT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(50);
/// What a visit's replies fit in: all of them are small.
const SCRATCH_BYTES: usize = 16 << 10;

/// One thread's visitors.
struct Crowd<'a> {
    poll: Poll,
    visits: Vec<Option<Visit>>,
    door: &'a Door,
    startup: Vec<u8>,
    query: Vec<u8>,
    scratch: Vec<u8>,
    window: (Instant, Instant),
    latencies: Histogram,
    trouble: Trouble,
}

/// From connect() to goodbye.
struct Visit {
    visitor: Visitor,
    stage: Stage,
    began: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Entering,
    Asking,
}

/// How a visit goes on.
enum Next {
    Waits,
    Over,
}

/// So many visitors at a time, on several threads. A visit counts if it ended in the window, with its whole length.
pub fn run(door: &Door, clients: usize, threads: usize, window: Window, stop: &Stop) -> io::Result<Tally> {
    let threads = threads.clamp(1, clients.max(1));
    let share = |thread: usize| clients / threads + usize::from(thread < clients % threads);
    let (now, at) = (Instant::now(), UnixNanos::now());
    let from = now + window.warm_up;
    let bounds = (from, from + window.measured);
    let crowds = in_parallel((0..threads).map(share), |share| Crowd::open(door, bounds)?.run(share, stop))?;
    let mut whole = Tally {
        from: at.after(window.warm_up),
        until: at.after(window.warm_up + window.measured),
        ..Tally::default()
    };
    for (latencies, trouble) in crowds {
        whole.latencies.merge(&latencies);
        whole.trouble.merge(trouble);
    }
    Ok(whole)
}

impl<'a> Crowd<'a> {
    fn open(door: &'a Door, window: (Instant, Instant)) -> io::Result<Crowd<'a>> {
        Ok(Crowd {
            poll: Poll::new()?,
            visits: Vec::new(),
            door,
            startup: protocol::startup(&door.user, &door.database),
            query: protocol::query(&door.sql),
            scratch: vec![0; SCRATCH_BYTES],
            window,
            latencies: Histogram::default(),
            trouble: Trouble::default(),
        })
    }

    fn run(mut self, clients: usize, stop: &Stop) -> io::Result<(Histogram, Trouble)> {
        self.visits.resize_with(clients, || None);
        let mut events = Events::with_capacity(1_024);
        let mut looked = Instant::now();
        while Instant::now() < self.window.1 && !stop.asked() {
            for place in 0..clients {
                if self.visits[place].is_none() {
                    self.begin(place);
                }
            }
            match self.poll.poll(&mut events, Some(TICK)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                self.serve(event.token().0);
            }
            let now = Instant::now();
            if now - looked > TICK {
                looked = now;
                self.give_up(now);
            }
        }
        Ok((self.latencies, self.trouble))
    }

    fn begin(&mut self, place: usize) {
        let began = Instant::now();
        match Visitor::connect(self.door.address, self.poll.registry(), Token(place)) {
            Ok(visitor) => {
                self.visits[place] = Some(Visit { visitor, stage: Stage::Connecting, began });
            }
            Err(error) => self.trouble.add(|| error.to_string()),
        }
    }

    fn serve(&mut self, place: usize) {
        let Some(visit) = &mut self.visits[place] else { return };
        let next = match visit.stage {
            Stage::Connecting => visit.connected(&self.startup),
            _ => visit.read(&mut self.scratch, &self.query, &mut self.trouble),
        };
        match next {
            Ok(Next::Waits) => return,
            Err(why) => self.trouble.add(|| why),
            Ok(Next::Over) => {
                let now = Instant::now();
                if self.window.0 <= now && now < self.window.1 {
                    self.latencies.add(now - visit.began);
                }
                visit.visitor.say_goodbye();
            }
        }
        // Closing it takes it out of the poll as well.
        self.visits[place] = None;
        if Instant::now() < self.window.1 {
            self.begin(place);
        }
    }

    fn give_up(&mut self, now: Instant) {
        for visit in &mut self.visits {
            if visit.as_ref().is_some_and(|visit| now - visit.began > VISIT_LIMIT) {
                *visit = None;
                self.trouble.add(|| "no reply within the limit".to_owned());
            }
        }
    }
}

impl Visit {
    fn connected(&mut self, startup: &[u8]) -> Result<Next, Lost> {
        if self.visitor.is_connected()? {
            self.stage = Stage::Entering;
            self.visitor.send(startup)?;
        }
        Ok(Next::Waits)
    }

    fn read(&mut self, scratch: &mut [u8], query: &[u8], trouble: &mut Trouble) -> Result<Next, Lost> {
        loop {
            let heard = self.visitor.hear(scratch, trouble)?;
            match self.stage {
                Stage::Asking if heard.ready => return Ok(Next::Over),
                _ if heard.ready => {
                    self.stage = Stage::Asking;
                    self.visitor.send(query)?;
                }
                _ => {}
            }
            if !heard.more {
                return Ok(Next::Waits);
            }
        }
    }
}

#[cfg(test)]
mod tests;
