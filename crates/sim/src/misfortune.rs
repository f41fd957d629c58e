//! What goes wrong: servers that die, lie and refuse, clients that vanish, operators that change their minds.

use model::Refusal;
use pool::Killed;
use wire::encode::{self, Severity};

use crate::check::most_kept;
use crate::client::Stage;
use crate::net::Event;
use crate::parts::Letter;
use crate::plan::{self, Weather};
use crate::world::World;

impl World {
    pub(crate) fn misfortune(&mut self) {
        if !self.is_rough {
            return;
        }
        let gap = self.plan.misfortune_gap;
        self.net.soon(gap, Event::Misfortune);
        if self.plan.is_cluster && self.net.rng.chance(25) {
            return self.fail_over();
        }
        if self.net.rng.chance(self.plan.deaf_listeners) {
            return self.harm_listener();
        }
        match self.net.rng.below(100) {
            0..22 => self.server_dies(),
            22..34 => self.server_lies(),
            34..42 => self.server_says_goodbye(),
            42..48 => self.server_changes(),
            48..60 => self.client_vanishes(),
            60..70 => {
                self.weather = self.net.rng.pick(&[
                    Weather::Fair,
                    Weather::Refuses,
                    Weather::LoginFails,
                    Weather::NotNow,
                    Weather::Slow,
                ]);
            }
            70..80 => self.weather = Weather::Fair,
            80..86 => self.stale_cancel(),
            86..90 => self.reload(),
            90..92 => self.pause(),
            92..96 => self.resume(),
            96..98 => {
                let home = self.net.rng.index(self.homes.len());
                let ended = self.homes[home].pool.reconnect();
                self.close_ended(ended);
            }
            _ => self.kill(),
        }
    }

    fn some_server(&mut self) -> Option<u32> {
        if self.backends.is_empty() {
            return None;
        }
        // Those opened last are more likely to be alive.
        let recent = self.backends.len().saturating_sub(12);
        let has_state =
            |at: &usize| self.backends[*at].alive && !self.backends[*at].pg.leftovers().is_empty();
        if self.net.rng.chance(50)
            && let Some(index) = (recent..self.backends.len()).find(has_state)
        {
            return Some(index as u32);
        }
        let index = recent + self.net.rng.index(self.backends.len() - recent);
        self.backends[index].alive.then_some(index as u32)
    }

    pub(crate) fn die(&mut self, server: u32) {
        let backend = &mut self.backends[server as usize];
        backend.alive = false;
        self.net.cut(backend.down);
        self.net.pipes[backend.up as usize].broken = true;
    }

    fn server_dies(&mut self) {
        if let Some(server) = self.some_server() {
            self.die(server);
        }
    }

    /// It sends what it does not owe, and is not heard of again.
    fn server_lies(&mut self) {
        let Some(server) = self.some_server() else { return };
        let backend = &mut self.backends[server as usize];
        backend.lied = true;
        backend.alive = false;
        let mut lie = Vec::new();
        match self.net.rng.below(7) {
            0 => lie.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            1 => encode::ready_for_query(&mut lie, wire::server::TransactionStatus::Idle),
            2 => encode::data_row(&mut lie, std::iter::once(Some(&b"lie"[..]))),
            3 => lie.extend_from_slice(&[b'D', 0xff, 0xff, 0xff, 0xff, 1]),
            4 => lie.extend_from_slice(&[b'D', 0x00, 0x01, 0x00, 0x00, 1, 2, 3]),
            5 => encode::command_complete(&mut lie, b"SELECT 1"),
            _ => (0..self.net.rng.between(1, 40)).for_each(|_| lie.push(self.net.rng.next() as u8)),
        }
        let _ = self.net.write(backend.down, &lie);
        if self.net.rng.chance(30) {
            // It says nothing more, and nobody can know, until TCP gives it up.
            self.net.pipes[backend.down as usize].delay(std::time::Duration::from_millis(500));
        }
        self.net.end(backend.down);
    }

    fn server_says_goodbye(&mut self) {
        if let Some(server) = self.some_server() {
            self.say_goodbye(server);
        }
    }

    pub(crate) fn say_goodbye(&mut self, server: u32) {
        let mut words = Vec::new();
        encode::report(&mut words, Severity::Fatal, "57P01", "terminating connection", None);
        let backend = &mut self.backends[server as usize];
        let _ = self.net.write(backend.down, &words);
        backend.alive = false;
        self.net.end(backend.down);
        self.net.pipes[backend.up as usize].broken = true;
    }

    /// The servers' own settings change: each session tells, some before and some later.
    fn server_changes(&mut self) {
        let value: &[u8] = if self.net.rng.chance(50) { b"on" } else { b"off" };
        std::rc::Rc::make_mut(&mut self.defaults).insert(b"in_hot_standby".to_vec(), value.to_vec());
        for index in 0..self.backends.len() {
            let backend = &mut self.backends[index];
            if backend.alive {
                backend.pg.set_default(b"in_hot_standby", value);
                let said = std::mem::take(&mut backend.pg.out);
                let _ = self.net.write(backend.down, &said);
            }
        }
    }

    fn client_vanishes(&mut self) {
        let client = self.net.rng.index(self.clients.len());
        if self.clients[client].stage != Stage::Over {
            self.vanish(client as u32);
        }
    }

    fn stale_cancel(&mut self) {
        let client = self.net.rng.index(self.clients.len());
        self.clients[client].cancels += 1;
        self.net.soon(100, Event::CancelAsked(client as u32));
    }

    fn reload(&mut self) {
        let home = self.net.rng.index(self.homes.len());
        let limits = plan::limits(&mut self.net.rng);
        let (mode, state) = (self.homes[home].policy.mode, self.homes[home].policy.state);
        let mut policy = plan::policy(&mut self.net.rng, mode, state, true);
        policy.rides_out = self.plan.is_cluster;
        policy.listen_fanout = self.homes[home].policy.listen_fanout;
        policy.reset_always = self.homes[home].policy.reset_always;
        if self.homes[home].policy.prepared_max == 0 {
            policy.prepared_max = 0;
        }
        let policy = std::sync::Arc::new(policy);
        self.homes[home].policy = std::sync::Arc::clone(&policy);
        self.set_limits(home, limits);
        for session in 0..self.sessions.len() {
            if self.clients[session].home == home && !self.sessions[session].is_over {
                self.tell(session as u32, Letter::Policy(std::sync::Arc::clone(&policy)));
            }
        }
    }

    pub(crate) fn set_limits(&mut self, home: usize, limits: pool::Limits) {
        let kept = self.kept(home);
        let place = &mut self.homes[home];
        place.limits = limits;
        place.pins_allowed = place.pins_allowed.min(kept).max(most_kept(limits));
        place.allowed = place.allowed.min(place.alive).max(limits.most());
        let due = place.pool.set_limits(self.net.now, limits);
        self.carry_out(home, due);
    }

    fn pause(&mut self) {
        let home = self.net.rng.index(self.homes.len());
        let ended = self.homes[home].pool.pause();
        self.close_ended(ended);
    }

    pub(crate) fn resume(&mut self) {
        for home in 0..self.homes.len() {
            let opens = self.homes[home].pool.resume(self.net.now);
            self.open_servers(home, opens);
        }
    }

    fn kill(&mut self) {
        let home = self.net.rng.index(self.homes.len());
        let Killed { servers, clients } = self.homes[home].pool.kill();
        self.close_ended(servers);
        for session in clients {
            self.tell(session, Letter::End(Refusal::DatabaseRemoved));
        }
        for session in 0..self.sessions.len() {
            if self.clients[session].home == home && !self.sessions[session].is_over {
                self.tell(session as u32, Letter::End(Refusal::DatabaseRemoved));
            }
        }
    }
}
