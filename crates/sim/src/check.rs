//! What must always be true, and what must be true when all is quiet again.

use std::time::Duration;

use baton::Holder;
use link::Reason;

use crate::client::Stage;
use crate::net::Event;
use crate::parts::{Conn, Moored, Steady};
use crate::postgres::unquoted;
use crate::world::World;

/// How many servers may be kept.
pub(crate) fn most_kept(limits: pool::Limits) -> u32 {
    if limits.pinned_max == 0 { u32::MAX } else { limits.pinned_max }
}

/// How long a client may wait once nothing goes wrong any more.
const PATIENCE: Duration = Duration::from_secs(30);

impl World {
    /// No more servers than the limits allow, at any instant.
    pub(crate) fn check_limits(&mut self) {
        let mut alive = 0;
        for home in 0..self.homes.len() {
            let place = &mut self.homes[home];
            place.allowed = place.allowed.min(place.alive.max(place.limits.most()));
            alive += place.alive;
            let (now, allowed) = (place.alive, place.allowed);
            self.claim(now <= allowed, || format!("pool {home} has {now} servers, {allowed} are allowed"));
        }
        if let Some(most) = self.plan.database_max {
            self.claim(alive <= most, || format!("{alive} servers of one database, {most} are allowed"));
        }
    }

    /// No more servers are kept than may be, but by clients that could not be asked.
    fn check_pins(&mut self, home: usize) {
        let kept = self.kept(home);
        let place = &mut self.homes[home];
        let allowed = place.pins_allowed;
        place.pins_allowed = allowed.min(kept.max(most_kept(place.limits)));
        self.claim(kept <= allowed, || format!("pool {home} has {kept} servers kept, {allowed} may be"));
    }

    /// How many servers are kept by clients that were allowed to.
    pub(crate) fn kept(&self, home: usize) -> u32 {
        let pool = &self.homes[home].pool;
        let is_kept = |moored: &&Moored| {
            moored.open && moored.home == home && !moored.is_beyond && pool.is_pinned(moored.slot)
        };
        self.moored.iter().filter(is_kept).count() as u32
    }

    /// What is looked at now and then: the pools' own order, and who waits for too long.
    pub(crate) fn watch(&mut self) {
        self.net.after(20_000, Event::Watch);
        let now = self.net.now;
        for home in &self.homes {
            home.pool.assert_consistent(now);
        }
        for session in 0..self.sessions.len() {
            let Some(steady) = &self.sessions[session].steady else { continue };
            let home = &self.homes[steady.home];
            // The time without a node counts for nobody.
            let since = steady.waiting_since.max(home.unheld_at);
            let deadline = since.deadline(steady.query_wait) + Duration::from_millis(5);
            if steady.ticket.is_some() && deadline < now && !home.pool.is_held() {
                self.claim(false, || format!("session {session} waits for longer than query_wait_timeout"));
            }
        }
        if self.is_rough {
            return;
        }
        for client in 0..self.clients.len() {
            if let Stage::Waiting(since) = self.clients[client].stage
                && now.since(since) > PATIENCE
            {
                let what = self.clients[client].awaited();
                self.claim(false, || format!("client {} waits for ever: {what}", client + 1));
            }
        }
    }

    /// A server that goes back to its pool is as its machine believes it to be.
    pub(crate) fn check_belief(&mut self, moored: u32, conn: &Conn) {
        let backend = &self.backends[moored as usize];
        if !backend.alive || backend.lied || self.fault.is_some() || !self.net.is_still(backend.down) {
            return;
        }
        let machine = &conn.machine;
        let has = backend.pg.shared_statements();
        let is_mapped = backend.pg.has_only_shared();
        let believed = machine.prepared.len();
        let is_busy = backend.pg.is_busy();
        let mut faults = Vec::new();
        if is_busy {
            faults.push("it is in the middle of something".to_owned());
        }
        if is_mapped && has != believed {
            faults.push(format!("it has {has} statements, {believed} are believed"));
        }
        faults.extend(backend.pg.leftovers().into_iter().map(|what| format!("it has somebody's {what}")));
        for parameter in machine.parameters.iter() {
            let real = backend.pg.shown(&parameter.name);
            let believed =
                if parameter.written { unquoted(&parameter.value) } else { parameter.value.to_vec() };
            if real.as_ref().is_none_or(|real| *real != believed) {
                let name = String::from_utf8_lossy(&parameter.name).into_owned();
                faults.push(format!("{name} is {real:?}, {:?} is believed", &*parameter.value));
            }
        }
        for name in backend.pg.settings().keys() {
            if machine.parameters.value(name).is_none() {
                faults.push(format!("{} is set, and not known to be", String::from_utf8_lossy(name)));
            }
        }
        if !faults.is_empty() {
            self.claim(false, || format!("server {moored} goes back and {}", faults.join("; ")));
        }
    }

    /// A client that has nothing to wait for keeps its server for what is there, and for nothing else.
    pub(crate) fn check_kept(&mut self, session: u32, steady: &Steady) {
        let (Some(pins), Some(lease), Some(server)) =
            (steady.link.pins(), &steady.lease, steady.link.server())
        else {
            return;
        };
        self.check_pins(steady.home);
        let moored = &self.moored[lease.moored as usize];
        let is_counted = self.homes[steady.home].pool.is_pinned(moored.slot);
        let backend = &self.backends[lease.moored as usize];
        let is_still = self.net.is_still(backend.up) && self.net.is_still(backend.down);
        let is_quiet = server.is_quiet()
            && server.status == wire::server::TransactionStatus::Idle
            && !steady.link.is_mid_message()
            && is_still;
        if !is_quiet || !backend.alive || backend.lied {
            return;
        }
        let mut there = backend.pg.leftovers();
        if !backend.pg.draws.is_empty() {
            there.push("last values of sequences");
        }
        let kinds = [
            (Reason::AdvisoryLock, "advisory locks"),
            (Reason::TempObject, "temporary tables"),
            (Reason::HoldCursor, "cursors"),
            (Reason::Listen, "channels"),
            (Reason::Prepared, "statements prepared by SQL"),
            (Reason::Sequence, "last values of sequences"),
        ];
        let gone: Vec<&str> = kinds
            .iter()
            .filter(|(reason, what)| pins.has(*reason) && !there.contains(what))
            .map(|(_, what)| *what)
            .collect();
        let at = lease.moored;
        self.claim(is_counted, || format!("session {session} keeps server {at}, and is not counted"));
        self.claim(gone.is_empty(), || {
            format!("session {session} keeps server {at} for {gone:?}, which is gone")
        });
    }

    /// Whether nobody does anything any more.
    pub(crate) fn is_quiet(&self) -> bool {
        self.openings_left + self.cancels_left == 0
            && self.clients.iter().all(|client| client.stage == Stage::Over)
            && self.sessions.iter().all(|session| session.is_over)
            && self.moored.iter().enumerate().all(|(index, moored)| {
                !moored.open
                    || moored.berth.look(|holder, conn| *holder == Holder::Pool && conn.is_some())
                        && self.net.is_still(self.backends[index].down)
                        && self.net.is_still(self.backends[index].up)
            })
    }

    /// All is quiet: nothing is leaked, nothing is left over.
    pub(crate) fn check_quiet(&mut self) {
        for home in 0..self.homes.len() {
            let counts = self.homes[home].pool.counts(self.net.now);
            let open = self.moored.iter().filter(|moored| moored.home == home && moored.open).count() as u32;
            let idle = counts.idle + counts.used;
            let busy = counts.active + counts.tested + counts.being_canceled + counts.login + counts.closing;
            let is_whole = idle == open && busy == 0 && counts.waiting == 0 && open == self.homes[home].alive;
            self.claim(is_whole, || format!("pool {home} is not quiet: {open} are open, {counts:?}"));
        }
        let known: usize = self.homes.iter().map(|home| home.statements.len()).sum();
        self.claim(known <= 2_048 * self.homes.len(), || format!("{known} statements are remembered"));
        for client in 0..self.clients.len() {
            self.claim(self.sessions[client].granted.is_none(), || {
                format!("session {client} died with a grant")
            });
        }
    }

    /// A fault for who waits although nothing happens any more.
    pub(crate) fn complain_of_unrest(&mut self) {
        let waiting: Vec<_> = self
            .clients
            .iter()
            .filter(|client| client.stage != Stage::Over)
            .map(|client| (client.id, client.home, client.stage))
            .collect();
        let sessions: Vec<_> = (0..self.sessions.len()).filter(|&at| !self.sessions[at].is_over).collect();
        let servers: Vec<_> = self
            .moored
            .iter()
            .enumerate()
            .filter(|(_, moored)| moored.open)
            .map(|(index, moored)| {
                (index, moored.berth.look(|holder, conn| (holder.clone(), conn.is_some())), moored.leased_to)
            })
            .collect();
        let under_way = (self.openings_left, self.cancels_left);
        let unread: Vec<_> = self
            .backends
            .iter()
            .enumerate()
            .filter(|(index, backend)| {
                let is_still = self.net.is_still(backend.up) && self.net.is_still(backend.down);
                self.moored[*index].open && !is_still
            })
            .map(|(index, backend)| {
                let sides = [backend.up, backend.down].map(|pipe| self.net.is_still(pipe));
                (index, sides, backend.alive, backend.lied)
            })
            .collect();
        let counts: Vec<_> = self.homes.iter().map(|home| home.pool.counts(self.net.now)).collect();
        self.claim(false, || {
            format!(
                "no rest at the end: clients {waiting:?}, sessions {sessions:?}, servers {servers:?}, unread \
                 {unread:?}, under way {under_way:?}, {counts:?}"
            )
        });
    }

    /// What a client is told by a server that lies proves nothing about the pooler.
    pub(crate) fn note_lies(&mut self, session: u32, moored: u32) {
        let client = &mut self.clients[session as usize];
        if self.backends[moored as usize].lied && !std::mem::replace(&mut client.tainted, true) {
            self.net.soon(20_000, Event::Vanish(session));
        }
    }
}
