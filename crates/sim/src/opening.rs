//! Server connections that are opened, the limits they are opened under, and what is due by time.
//!
//! The limit of a database over several pools is kept here as the hub does: an idle server elsewhere makes room,
//! else the pool is told to ask again.

use std::sync::Arc;
use std::time::Duration;

use model::{Moment, Parameters, Refusal, ServerId, WorkerId};
use pool::{Due, Ended, Failure, LoginError, Opens};
use server::Server;

use crate::net::Event;
use crate::parts::{Conn, Letter, Moored, Opening, ServerSide, Stream};
use crate::plan::Weather;
use crate::world::World;

impl World {
    pub(crate) fn open_servers(&mut self, home: usize, opens: Opens) {
        for slot in opens {
            if !self.make_room(home) {
                self.homes[home].pool.open_refused(self.net.now, slot);
                continue;
            }
            self.homes[home].alive += 1;
            self.openings_left += 1;
            self.openings.push(Opening { home, slot, node: self.node });
            let most = if self.weather == Weather::Slow { 30_000 } else { 1_000 };
            self.net.soon(most, Event::Connected(self.openings.len() as u32 - 1));
        }
    }

    fn alive(&self) -> u32 {
        self.homes.iter().map(|home| home.alive).sum()
    }

    /// Whether one more server may be opened; an idle one of another pool may have to go.
    fn make_room(&mut self, home: usize) -> bool {
        let Some(most) = self.plan.database_max else { return true };
        if self.alive() < most {
            return true;
        }
        let oldest = (0..self.homes.len())
            .filter(|&other| other != home)
            .filter_map(|other| Some((self.homes[other].pool.oldest_idle()?, other)))
            .min();
        if let Some((_, other)) = oldest
            && let Some(ended) = self.homes[other].pool.evict_idle()
        {
            self.close_given_up(ended.server);
        }
        self.alive() < most
    }

    /// A server's socket is closed.
    pub(crate) fn server_gone(&mut self, moored: u32) {
        let Moored { home, slot, .. } = self.moored[moored as usize];
        self.homes[home].alive -= 1;
        let opens = self.homes[home].pool.closed(self.net.now, slot);
        self.open_servers(home, opens);
        self.place_free();
    }

    /// A pool that was refused a server may have it now.
    fn place_free(&mut self) {
        if self.plan.database_max.is_none() {
            return;
        }
        for home in 0..self.homes.len() {
            let opens = self.homes[home].pool.poke(self.net.now);
            self.open_servers(home, opens);
        }
    }

    /// A connection attempt has come to its end.
    pub(crate) fn connected(&mut self, at: u32) {
        let Opening { home, slot, node } = self.openings[at as usize];
        self.openings_left -= 1;
        let now = self.net.now;
        let is_nowhere = node != self.node || self.homes[home].pool.is_held();
        let failure = match self.weather {
            _ if is_nowhere => Some(Failure::Connect),
            Weather::Fair | Weather::Slow => None,
            Weather::Refuses => Some(Failure::Connect),
            Weather::NotNow => Some(Failure::NotNow),
            Weather::LoginFails => {
                Some(Failure::Login(LoginError { code: "28P01".into(), message: "no".into() }))
            }
        };
        let Some(failure) = failure else { return self.logged_in(home, slot) };
        self.homes[home].alive -= 1;
        let words = LoginError { code: "28P01".into(), message: "no".into() };
        let failed = self.homes[home].pool.open_failed(now, slot, failure);
        for session in failed.refused {
            self.tell(session, Letter::End(words.refusal()));
        }
        self.open_servers(home, failed.open);
        self.place_free();
    }

    fn logged_in(&mut self, home: usize, slot: pool::Slot) {
        let now = self.net.now;
        let index = self.moored.len() as u32;
        let (up, down) = self.add_backend(index);
        let mut parameters = Parameters::default();
        for (name, value) in self.defaults.iter() {
            parameters.set(name, value, true);
        }
        let welcome = &mut self.homes[home].welcome;
        let parameters = if parameters == **welcome { Arc::clone(welcome) } else { Arc::new(parameters) };
        let key = index.to_be_bytes();
        let machine = Server::new(ServerId(u64::from(index)), parameters, index, Box::new(key), now);
        let side = ServerSide { stream: Stream::new(down, up), pending: Vec::new(), readable: false };
        let conn = Conn { side: Box::new(side), machine: Box::new(machine) };
        let berth = baton::Berth::new(conn);
        self.moored.push(Moored {
            home,
            slot,
            berth,
            open: true,
            leased_to: None,
            last_client: 0,
            is_beyond: false,
        });
        let worker = WorkerId(self.net.rng.below(4) as u16);
        let opened = self.homes[home].pool.opened(now, slot, index, worker);
        self.open_servers(home, opened.open);
        if let Some(conn) = self.moored[index as usize].berth.take_to_keep() {
            self.settle(index, conn, opened.after);
        }
    }

    /// A pool's time has come.
    pub(crate) fn tick(&mut self, home: usize) {
        self.homes[home].tick_at = Moment::NEVER;
        let due = self.homes[home].pool.tick(self.net.now);
        self.carry_out(home, due);
    }

    pub(crate) fn carry_out(&mut self, home: usize, due: Due<u32, u32>) {
        for Ended { server, .. } in due.close {
            self.close_given_up(server);
        }
        self.open_servers(home, due.open);
        for handover in due.handovers {
            self.hand_over(handover.client, &handover.grant);
        }
        for expired in due.expired {
            self.tell(expired.client, Letter::End(Refusal::QueryWaitTimeout));
        }
    }

    pub(crate) fn close_ended(&mut self, ended: Vec<Ended<u32>>) {
        for Ended { server, .. } in ended {
            self.close_given_up(server);
        }
    }

    /// Makes sure that every pool is looked at in time.
    pub(crate) fn arm_ticks(&mut self) {
        for (index, home) in self.homes.iter_mut().enumerate() {
            // A clock is never exact.
            let next = home.pool.next_tick().max(self.net.now) + Duration::from_micros(1);
            if next < home.tick_at {
                home.tick_at = next;
                self.net.at(home.tick_at, Event::Tick(index as u32));
            }
        }
    }
}
