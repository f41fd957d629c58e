//! Notifications: sent by servers, heard by one connection for each database, taken to those who listen; and what must be
//! true of them. The sessions' side is in the order of calls that the shell keeps.

use std::collections::VecDeque;
use std::rc::Rc;

use hub::{Channel, Joined, Target};
use model::{ClientId, PoolId, Refusal};

use crate::client::Stage;
use crate::ears;
use crate::net::Event;
use crate::parts::{Letter, Steady, news};
use crate::plant::Plant;
use crate::script::CHANNELS;
use crate::world::World;

/// One message for clients that listen.
#[derive(Debug)]
pub(crate) struct Note {
    /// `None`: for whoever listens at all.
    pub(crate) channel: Option<Channel>,
    pub(crate) message: Vec<u8>,
}

/// What waits for one client.
pub(crate) type Notes = VecDeque<Rc<Note>>;

/// How long a client waits for what it has to hear, once it has nothing more to say, in looks.
const LOOKS_MAX: u32 = 1_000;
/// From one look to the next, in microseconds.
const LOOK_AGAIN: u64 = 5_000;

impl World {
    /// Pools of one database hear the same.
    pub(crate) fn database_of(&self, home: usize) -> usize {
        if self.plan.database_max.is_some() { 0 } else { home % 2 }
    }

    /// What a server has committed, all hear that listen.
    pub(crate) fn note_notified(&mut self, server: u32) {
        let sent = std::mem::take(&mut self.backends[server as usize].pg.notified);
        if sent.is_empty() {
            return;
        }
        let database = self.database_of(self.moored[server as usize].home);
        for (channel, payload) in sent {
            let number = self.notes.len();
            for client in 0..self.clients.len() {
                if self.database_of(self.clients[client].home) == database {
                    self.clients[client].ears.sent(number, &channel);
                }
            }
            for other in 0..self.backends.len() as u32 {
                let is_same = self.database_of(self.moored[other as usize].home) == database;
                let backend = &mut self.backends[other as usize];
                if other != server
                    && is_same
                    && backend.alive
                    && !backend.is_cut
                    && backend.pg.hears(&channel)
                {
                    backend.pg.notify(&channel, &payload);
                    let said = std::mem::take(&mut backend.pg.out);
                    let _ = self.net.write(backend.down, &said);
                }
            }
            self.tell_keepers(database, &channel, &payload);
            self.notes.push(ears::Note { database, channel, payload });
        }
    }

    /// A client says something.
    pub(crate) fn note_said(&mut self, client: u32, bytes: &[u8]) {
        let sent = self.notes.len();
        self.clients[client as usize].ears.say(bytes, &CHANNELS, sent);
    }

    /// What a client has been notified of.
    pub(crate) fn note_heard(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        let heard = std::mem::take(&mut client.heard);
        for (channel, payload) in heard {
            let (id, database) = (client.id, client.home);
            let database = if self.plan.database_max.is_some() { 0 } else { database % 2 };
            let is_it = |note: &ears::Note| note.payload == payload && note.database == database;
            let words = (String::from_utf8_lossy(&channel), String::from_utf8_lossy(&payload));
            let Some(number) = self.notes.iter().position(is_it) else {
                self.fault.get_or_insert(format!("client {id} hears {words:?}, which nobody has sent to it"));
                return;
            };
            if self.notes[number].channel != *channel {
                self.fault.get_or_insert(format!("client {id} hears {words:?} on another channel"));
            }
            if let Err(why) = client.ears.hear(number, &channel)
                && !client.tainted
            {
                self.fault.get_or_insert(format!("client {id} hears {words:?} {why}"));
            }
        }
        if std::mem::take(&mut client.is_warned) {
            client.ears.warned();
            let id = client.id;
            let has_lost = self.keepers.iter().any(|keeper| keeper.losses > 0);
            self.claim(has_lost, || format!("client {id} is warned of a loss, and there was none"));
        }
    }

    /// All that a client has asked is answered.
    pub(crate) fn note_settled(&mut self, index: u32) {
        let sent = self.notes.len();
        let client = &mut self.clients[index as usize];
        if !client.ideal.is_busy() {
            client.ears.settle(client.ideal.channels(), sent);
        }
    }

    /// Whether a client that has nothing more to say still has something to hear.
    pub(crate) fn still_listens(&mut self, index: u32) -> bool {
        let client = &mut self.clients[index as usize];
        let Some(number) = client.ears.due() else { return false };
        if client.tainted || client.ideal.is_busy() || client.stage == Stage::Over {
            return false;
        }
        client.looks += 1;
        if client.looks < LOOKS_MAX {
            self.net.after(LOOK_AGAIN, Event::Wake(index));
            return true;
        }
        let (id, note) = (client.id, self.notes[number].clone());
        let payload = String::from_utf8_lossy(&note.payload).into_owned();
        self.claim(false, || format!("client {id} never hears {payload}"));
        false
    }

    /// Leaves a note for a session.
    pub(crate) fn give(&mut self, session: u32, note: &Rc<Note>) {
        if self.sessions[session as usize].is_over {
            return;
        }
        if self.plant == Plant::DropNotes && note.channel.is_some() && self.net.rng.chance(10) {
            return;
        }
        let most = self.plan.notes_max;
        let notes = self.sessions[session as usize].notes.get_or_insert_default();
        if notes.len() < most {
            notes.push_back(Rc::clone(note));
            return self.post(session, news::MAIL);
        }
        self.sessions[session as usize].notes = None;
        self.tell(session, Letter::End(Refusal::NotificationsUnread(most as u64)));
    }

    /// Asks for the channels that the client's next statement must not go without, if it waits for any.
    pub(crate) fn wish(&mut self, session: u32, steady: &mut Steady) {
        let Some(channels) = steady.link.wished_channels().map(<[Channel]>::to_vec) else { return };
        if steady.listener.is_none() {
            self.sessions[session as usize].notes = None;
        }
        let database = self.database_of(steady.home);
        let target =
            || Target { places: Vec::new(), dbname: format!("d{database}"), encoding: (*b"UTF8").into() };
        let member = (ClientId(steady.link.client.id.0), session, PoolId(steady.home as u32));
        let (at, joined) = self.fanout.join(self.net.now, steady.listener, target, member, &channels);
        steady.listener = at;
        match joined {
            Joined::Waits { listener, begin } => {
                if begin {
                    self.add_keeper(listener, database);
                }
                self.wake_keeper(listener);
                if self.plant == Plant::HearTooSoon {
                    self.heard(session, steady, true);
                }
            }
            Joined::Refused(_) => self.heard(session, steady, false),
        }
    }

    /// The channels that it waits for are heard, or will not be.
    pub(crate) fn heard(&mut self, session: u32, steady: &mut Steady, is_heard: bool) {
        if let Some(notes) = &mut self.sessions[session as usize].notes {
            let listened = |channel: &Channel| steady.link.listened_on(channel);
            notes.retain(|note| note.channel.as_ref().is_none_or(listened));
        }
        steady.link.channels_heard(is_heard);
        steady.stalled = false;
    }

    /// At the end of a turn: what has changed is made known, and what waits is written.
    pub(crate) fn attend(&mut self, session: u32, steady: &mut Steady) {
        let Some(listener) = steady.listener else { return };
        let id = ClientId(steady.link.client.id.0);
        if let Some(channels) = steady.link.settled_channels() {
            if self.fanout.settle(self.net.now, listener, id, channels) {
                self.wake_keeper(listener);
            }
            if channels.is_empty() {
                steady.listener = None;
                self.sessions[session as usize].notes = None;
                return;
            }
        }
        let Some(notes) = &mut self.sessions[session as usize].notes else { return };
        if !steady.link.may_be_notified() {
            if steady.link.is_idle_in_transaction() {
                let listened = |channel: &Channel| steady.link.listened_on(channel);
                notes.retain(|note| note.channel.as_ref().is_none_or(listened));
            }
            return;
        }
        while !steady.stream.is_backed_up()
            && !steady.stream.is_broken()
            && let Some(note) = notes.pop_front()
        {
            let is_for_it = note.channel.as_ref().is_none_or(|channel| steady.link.listens_on(channel));
            if is_for_it || self.plant == Plant::TellStrangers {
                steady.stream.send_bytes(&mut self.net, &note.message);
            }
        }
    }

    /// The session ends.
    pub(crate) fn stop_listening(&mut self, session: u32, steady: &mut Steady) {
        if let Some(listener) = steady.listener.take() {
            let id = ClientId(steady.link.client.id.0);
            if self.fanout.settle(self.net.now, listener, id, &[]) {
                self.wake_keeper(listener);
            }
            self.sessions[session as usize].notes = None;
        }
    }
}
