//! The connections that listen for many clients: made, told what to listen on, lost, and made again. What each does next is
//! for `hub::Fanout` to say.

use std::rc::Rc;

use hub::{Channel, Command, ListenerId, Next, ServerEnd};
use model::Moment;
use wire::Header;
use wire::encode::{self, Severity};

use crate::net::{End, Event, Received};
use crate::notes::Note;
use crate::parts::Letter;
use crate::plan::Weather;
use crate::plant::Plant;
use crate::postgres::{Postgres, Step};
use crate::world::World;

/// The connection of a listener.
pub(crate) struct Line {
    /// To PostgreSQL, and back.
    pub(crate) up: u32,
    down: u32,
    pg: Postgres,
    inbox: Vec<u8>,
}

/// One listener.
pub(crate) struct Keeper {
    id: ListenerId,
    database: usize,
    pub(crate) line: Option<Line>,
    wakes_at: Moment,
    pub(crate) losses: u64,
}

impl World {
    pub(crate) fn add_keeper(&mut self, id: ListenerId, database: usize) {
        self.keepers.push(Keeper { id, database, line: None, wakes_at: Moment::NEVER, losses: 0 });
    }

    pub(crate) fn wake_keeper(&mut self, id: ListenerId) {
        if let Some(at) = self.keepers.iter().position(|keeper| keeper.id == id) {
            self.net.soon(20, Event::Keeper(at as u32));
        }
    }

    /// Does what is next for a listener.
    pub(crate) fn keep_listening(&mut self, at: u32) {
        let keeper = &mut self.keepers[at as usize];
        if keeper.wakes_at <= self.net.now {
            keeper.wakes_at = Moment::NEVER;
        }
        loop {
            let keeper = &mut self.keepers[at as usize];
            match self.fanout.next(self.net.now, keeper.id) {
                Next::Connect(_) => {
                    // The longer it takes, the more is lost.
                    let is_slow = self.weather == Weather::Slow || (keeper.losses > 0 && self.is_rough);
                    let most = if is_slow { 30_000 } else { 1_000 };
                    self.net.soon(most, Event::KeeperConnected(at));
                }
                Next::Say(command) => self.ask_listener(at, &command),
                Next::Check => self.ask_listener(at, &Command::default()),
                Next::Rest(until) => {
                    if until < keeper.wakes_at {
                        keeper.wakes_at = until;
                        self.net.at(until, Event::Keeper(at));
                    }
                    return;
                }
                Next::End => return self.drop_line(at),
            }
        }
    }

    fn ask_listener(&mut self, at: u32, command: &Command) {
        let mut text = Vec::new();
        let words = command.unlisten.iter().map(|channel| (&b"UNLISTEN "[..], channel));
        for (verb, channel) in words.chain(command.listen.iter().map(|channel| (&b"LISTEN "[..], channel))) {
            text.extend_from_slice(&[verb, channel, b";"].concat());
        }
        if let Some(line) = &self.keepers[at as usize].line {
            let mut bytes = Vec::new();
            encode::query(&mut bytes, &text);
            let _ = self.net.write(line.up, &bytes);
        }
    }

    /// The attempt to connect has come to its end.
    pub(crate) fn keeper_connected(&mut self, at: u32) {
        let keeper = &mut self.keepers[at as usize];
        let is_held = self.homes.iter().any(|home| home.pool.is_held());
        if !is_held && matches!(self.weather, Weather::Fair | Weather::Slow) {
            let up = self.net.pipe(End::Keeper(at), End::Listened(at), usize::MAX);
            let down = self.net.pipe(End::Listened(at), End::Keeper(at), usize::MAX);
            let pg = Postgres::new(Rc::clone(&self.defaults));
            keeper.line = Some(Line { up, down, pg, inbox: Vec::new() });
            let end = ServerEnd { addr: String::new(), port: 0, process_id: at };
            self.fanout.opened(self.net.now, keeper.id, end);
        } else {
            let refused = self.fanout.failed(self.net.now, keeper.id);
            refused.into_iter().for_each(|session| self.tell(session, Letter::Listening(false)));
        }
        self.keep_listening(at);
    }

    /// PostgreSQL has something to read of a listener.
    pub(crate) fn listened(&mut self, at: u32, pipe: u32) {
        let Some(line) = self.keepers[at as usize].line.as_mut().filter(|line| line.up == pipe) else {
            return;
        };
        while let Received::Some(count, _) = self.net.read(line.up, &mut self.scratch) {
            line.pg.feed(&self.scratch[..count]);
        }
        while line.pg.step() == Step::Done {}
        let said = std::mem::take(&mut line.pg.out);
        let _ = self.net.write(line.down, &said);
    }

    /// A notification of a database, to its listeners.
    pub(crate) fn tell_keepers(&mut self, database: usize, channel: &[u8], payload: &[u8]) {
        for keeper in self.keepers.iter_mut().filter(|keeper| keeper.database == database) {
            if let Some(line) = &mut keeper.line
                && line.pg.hears(channel)
            {
                line.pg.notify(channel, payload);
                let said = std::mem::take(&mut line.pg.out);
                let _ = self.net.write(line.down, &said);
            }
        }
    }

    /// A listener hears something.
    pub(crate) fn keeper_hears(&mut self, at: u32, pipe: u32) {
        loop {
            let keeper = &mut self.keepers[at as usize];
            let Some(line) = keeper.line.as_mut().filter(|line| line.down == pipe) else { return };
            match self.net.read(line.down, &mut self.scratch) {
                Received::Some(count, _) => line.inbox.extend_from_slice(&self.scratch[..count]),
                Received::Nothing => return,
                Received::End => return self.lose_listener(at),
            }
            while let Some(message) = self.next_of_listener(at) {
                self.listener_message(at, &message);
            }
        }
    }

    fn next_of_listener(&mut self, at: u32) -> Option<Vec<u8>> {
        let inbox = &mut self.keepers[at as usize].line.as_mut()?.inbox;
        let total = Header::peek(inbox)?.total() as usize;
        (inbox.len() >= total).then(|| inbox.drain(..total).collect())
    }

    fn listener_message(&mut self, at: u32, message: &[u8]) {
        let (id, now) = (self.keepers[at as usize].id, self.net.now);
        match message[0] {
            b'A' => {
                let name = message[9..].split(|&byte| byte == 0).next().unwrap_or_default();
                let mut to = Vec::new();
                let mut shared: Option<Channel> = None;
                self.fanout.notified(now, id, name, |channel, session| {
                    shared.get_or_insert_with(|| channel.clone());
                    to.push(*session);
                });
                if self.plant == Plant::TellStrangers {
                    to = (0..self.sessions.len() as u32).collect();
                }
                if shared.is_some() {
                    let note = Rc::new(Note { channel: shared, message: message.to_vec() });
                    to.into_iter().for_each(|session| self.give(session, &note));
                }
            }
            b'Z' => {
                let done = self.fanout.done(now, id);
                if !done.missed.is_empty() && self.plant != Plant::LoseInSilence {
                    let mut words = Vec::new();
                    let text = "notifications may have been lost";
                    encode::report(&mut words, Severity::Warning, "01000", text, None);
                    let note = Rc::new(Note { channel: None, message: words });
                    done.missed.into_iter().for_each(|session| self.give(session, &note));
                }
                done.heard.into_iter().for_each(|session| self.tell(session, Letter::Listening(true)));
                self.keep_listening(at);
            }
            _ => {}
        }
    }

    /// The connection of a listener is gone.
    pub(crate) fn lose_listener(&mut self, at: u32) {
        self.drop_line(at);
        let keeper = &mut self.keepers[at as usize];
        keeper.losses += 1;
        let refused = self.fanout.lost(self.net.now, keeper.id);
        refused.into_iter().for_each(|session| self.tell(session, Letter::Listening(false)));
        self.keep_listening(at);
    }

    /// One that listens dies, or is to be connected anew.
    pub(crate) fn harm_listener(&mut self) {
        let has_line = |keeper: &Keeper| keeper.line.is_some();
        let Some(at) = self.keepers.iter().position(has_line) else { return };
        if self.net.rng.chance(50) {
            return self.lose_listener(at as u32);
        }
        if let Some(line) = &self.keepers[at].line {
            let (up, down) = (line.up, line.down);
            self.net.cut(down);
            self.net.pipes[up as usize].broken = true;
        }
    }

    fn drop_line(&mut self, at: u32) {
        if let Some(line) = self.keepers[at as usize].line.take() {
            self.net.end(line.up);
            self.net.pipes[line.down as usize].broken = true;
        }
    }
}
