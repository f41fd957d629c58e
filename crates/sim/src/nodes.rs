//! Nodes that come and go behind a cluster's pools: one at a time may be written to, and what an old one still says
//! reaches nobody.
//!
//! Which node that is, is decided here as `cluster` would: pools are held while there is none, servers of the old one
//! are closed when they are free, or at once.

use baton::Holder;
use model::Moment;

use crate::net::Event;
use crate::parts::Letter;
use crate::plant::Plant;
use crate::world::World;

/// How a node stops being the one that is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is gone.
    Dies,
    /// It is silent, and goes on later as if nothing had happened.
    Freezes,
    /// It says goodbye to all.
    ShutsDown,
    /// It lets everybody finish.
    StepsDown,
}

impl World {
    /// Another node takes over, some time after the old one has ended.
    pub(crate) fn fail_over(&mut self) {
        let end = self.net.rng.pick(&[End::Dies, End::Freezes, End::Freezes, End::ShutsDown, End::StepsDown]);
        let thaws_at = self.net.now + std::time::Duration::from_micros(self.net.rng.between(1_000, 60_000));
        for home in &mut self.homes {
            home.pool.hold(self.net.now);
        }
        for server in 0..self.moored.len() as u32 {
            let backend = &mut self.backends[server as usize];
            if backend.node != self.node || !self.moored[server as usize].open {
                continue;
            }
            match end {
                _ if !backend.alive => {}
                End::Dies => self.die(server),
                End::Freezes => backend.frozen_until = thaws_at,
                End::ShutsDown => self.say_goodbye(server),
                End::StepsDown => {}
            }
            self.banish(server, matches!(end, End::Dies | End::Freezes));
        }
        self.net.soon(30_000, Event::Elected);
    }

    /// There is a node to write to again.
    pub(crate) fn elected(&mut self) {
        self.node += 1;
        for home in 0..self.homes.len() {
            self.homes[home].unheld_at = self.net.now;
            let opens = self.homes[home].pool.unhold(self.net.now);
            self.open_servers(home, opens);
        }
    }

    /// A server of an old node is closed: when it is free, or at once.
    fn banish(&mut self, server: u32, at_once: bool) {
        let moored = &self.moored[server as usize];
        let (home, slot) = (moored.home, moored.slot);
        if self.plant == Plant::HearTheDead {
            return;
        }
        let ended = if at_once {
            self.backends[server as usize].is_cut = true;
            let holder = self.moored[server as usize].berth.look(|holder, _| holder.clone());
            if let Holder::Client(session) = holder {
                // It has the server in hand, and lets go of it itself.
                return self.tell(session, Letter::Cut(server));
            }
            self.homes[home].pool.cut(slot)
        } else {
            self.homes[home].pool.retire(slot)
        };
        if let Some(ended) = ended {
            self.close_given_up(ended.server);
        }
    }

    /// Nothing is said to a node that is cut off, and nothing that it says is heard. One that is frozen and still
    /// believes that it is the one is the reason.
    pub(crate) fn check_node(&mut self, server: u32) {
        let backend = &self.backends[server as usize];
        let is_old =
            backend.is_cut || (backend.node < self.node && backend.frozen_until != Moment::default());
        self.claim(!is_old, || format!("server {server} is of an old node, and is talked to"));
    }

    /// What was committed is committed once, and nothing is acknowledged that was not.
    pub(crate) fn note_commits(&mut self, server: u32) {
        for tag in std::mem::take(&mut self.backends[server as usize].pg.committed) {
            let is_new = self.committed.insert(tag.clone());
            let tag = String::from_utf8_lossy(&tag).into_owned();
            self.claim(is_new, || format!("server {server} commits {tag}, which was committed before"));
        }
        self.note_notified(server);
    }

    /// All that a client has asked is answered.
    pub(crate) fn note_acknowledged(&mut self, client: u32) {
        let client = &mut self.clients[client as usize];
        let acknowledged = std::mem::take(&mut client.ideal.committed);
        if client.tainted {
            return;
        }
        let lost = acknowledged.iter().find(|tag| !self.committed.contains(*tag));
        let lost = lost.map(|tag| String::from_utf8_lossy(tag).into_owned());
        self.claim(lost.is_none(), || format!("{lost:?} was acknowledged, and nobody has committed it"));
    }
}
