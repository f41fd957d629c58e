//! How a server changes hands: from the pool to a client, back, and on to the next; and what is done to servers
//! that have no client. In the order of calls that the shell keeps.

use std::sync::Arc;
use std::time::Duration;

use baton::Holder;
use link::unpaired::{self, Fate};
use link::{Granted as Start, Link};
use model::{Moment, Refusal, WorkerId};
use pool::{After, Grant, Released};
use server::Broken;

use crate::net::{Event, Received};
use crate::parts::{Cancel, Conn, Granted, Lease, Steady, news};
use crate::plant::Plant;
use crate::world::World;

const PEEK_AFTER: Duration = Duration::from_millis(5);

pub(crate) enum Checkout {
    Granted,
    Queued,
    Refused(Refusal),
}

impl World {
    fn worker(&self) -> WorkerId {
        WorkerId(self.worker)
    }

    pub(crate) fn checkout(&mut self, session: u32, steady: &mut Steady, again: bool) -> Checkout {
        let now = self.net.now;
        let worker = self.worker();
        let pool = &mut self.homes[steady.home].pool;
        let since = if !again || steady.waiting_since == Moment::NEVER { now } else { steady.waiting_since };
        let deadline = since.deadline(steady.query_wait);
        let answer = match (again, steady.wants_pin) {
            (true, false) => pool.checkout_first(now, worker, &session, since, deadline),
            (true, true) => pool.checkout_pinned_first(now, worker, &session, since, deadline),
            (false, false) => pool.checkout(now, worker, &session, deadline),
            (false, true) => pool.checkout_pinned(now, worker, &session, deadline),
        };
        match answer {
            pool::Checkout::Granted(Grant { server, check, pinned, .. }) => {
                self.accept(session, steady, Granted { server, check, pinned })
            }
            pool::Checkout::Queued { ticket, open } => {
                steady.ticket = Some(ticket);
                steady.waiting_since = now;
                self.open_servers(steady.home, open);
                Checkout::Queued
            }
            pool::Checkout::Refused(error) => Checkout::Refused(error.cached_refusal()),
        }
    }

    pub(crate) fn accept(&mut self, session: u32, steady: &mut Steady, granted: Granted) -> Checkout {
        let at = granted.server as usize;
        let Some((mut conn, edge)) = self.moored[at].berth.take_for(session) else {
            return self.checkout(session, steady, true);
        };
        let idle = self.net.now.since(conn.machine.requested_at);
        // What fills a whole read may be followed by more, of which no edge tells.
        let has_news =
            edge || conn.side.readable || (idle > PEEK_AFTER && conn.side.stream.has_news(&self.net));
        if has_news && self.read_alone(granted.server, &mut conn) != Fate::Clean {
            self.close_conn(granted.server, conn);
            return self.checkout(session, steady, true);
        }
        let Conn { mut side, mut machine } = conn;
        self.out.clear();
        if self.plant == Plant::SkipCarry {
            machine.parameters = steady.link.client.parameters.clone();
        }
        if self.plant == Plant::MixMeanings {
            machine.login = Arc::clone(&steady.link.client.parameters);
        }
        let start = steady.link.granted(self.net.now, machine, granted.check, &mut self.out);
        if start == Start::Preparing {
            side.stream.send(&mut self.net, &self.out.to_server, &[]);
        }
        steady.stream.send(&mut self.net, &self.out.to_client, &[]);
        if granted.pinned {
            steady.link.permit();
        }
        let holder = self.moored[at].leased_to;
        self.claim(holder.is_none(), || {
            format!("server {at} is given to session {session}, {holder:?} has it")
        });
        steady.stalled = false;
        steady.sent.begin();
        self.moored[at].leased_to = Some(session);
        self.moored[at].last_client = steady.link.client.id.0;
        self.sessions[session as usize].last_server = Some(granted.server);
        steady.lease = Some(Lease { moored: granted.server, side });
        Checkout::Granted
    }

    fn unlease(&mut self, steady: &mut Steady) -> Option<(u32, Conn)> {
        let machine = steady.link.take_server(self.net.now)?;
        let lease = steady.lease.take()?;
        self.moored[lease.moored as usize].leased_to = None;
        Some((lease.moored, Conn { side: lease.side, machine }))
    }

    pub(crate) fn release(&mut self, steady: &mut Steady) {
        steady.wants_pin = false;
        if self.plant == Plant::LoseNames && self.net.rng.chance(5) {
            steady.link.client.clear_names();
        }
        self.give_up(steady);
    }

    /// The client's next statement would keep its server. Either it may, or it gives it back and waits until it may.
    pub(crate) fn ask_to_keep(&mut self, session: u32, steady: &mut Steady) -> Checkout {
        let Some(lease) = &steady.lease else { return Checkout::Queued };
        let slot = self.moored[lease.moored as usize].slot;
        if self.plant == Plant::KeepUnasked || self.homes[steady.home].pool.pin(slot) {
            steady.link.permit();
            return Checkout::Granted;
        }
        let is_through = lease.side.pending.is_empty() && !lease.side.stream.is_backed_up();
        if !is_through || !steady.link.server().is_some_and(|server| server.is_shareable()) {
            // What is set on it for this client is not answered yet: before that nobody else may have it.
            steady.stalled = true;
            return Checkout::Granted;
        }
        steady.wants_pin = true;
        steady.link.client_is_silent();
        self.give_up(steady);
        self.checkout(session, steady, false)
    }

    /// The client has made state in the middle of something, where nobody is asked.
    pub(crate) fn count_beyond(&mut self, steady: &Steady) {
        let Some(lease) = &steady.lease else { return };
        let moored = &mut self.moored[lease.moored as usize];
        let pool = &mut self.homes[steady.home].pool;
        moored.is_beyond |= !pool.is_pinned(moored.slot);
        pool.pin_beyond(moored.slot);
    }

    fn give_up(&mut self, steady: &mut Steady) {
        let Some((moored, conn)) = self.unlease(steady) else { return };
        if steady.link.policy().reset_always {
            self.left(moored, conn);
        } else {
            self.give_back(moored, conn);
        }
    }

    fn give_back(&mut self, moored: u32, conn: Conn) {
        let at = moored as usize;
        let (home, slot) = (self.moored[at].home, self.moored[at].slot);
        self.check_belief(moored, &conn);
        self.moored[at].is_beyond = false;
        let worker = self.worker();
        let after = self.homes[home].pool.release(self.net.now, slot, worker, Released::Clean);
        self.settle(moored, conn, after);
    }

    pub(crate) fn settle(&mut self, moored: u32, conn: Conn, after: After<u32, u32>) {
        match after {
            After::Handover { mut client, grant, .. } => {
                let _edge = self.moored[moored as usize].berth.moor(conn, Holder::Pool);
                if self.plant == Plant::LoseWaiter && self.net.rng.chance(10) {
                    return;
                }
                if self.plant == Plant::SwapGrant && self.net.rng.chance(20) {
                    client = self.net.rng.below(self.sessions.len() as u64) as u32;
                }
                self.hand_over(client, &grant);
            }
            After::Idle => {
                let is_readable = conn.side.readable;
                if self.moored[moored as usize].berth.moor(conn, Holder::Pool) || is_readable {
                    self.look(moored);
                }
            }
            After::Canceling => {
                let _edge = self.moored[moored as usize].berth.moor(conn, Holder::Pool);
            }
            After::Dedicated | After::Close => self.close_conn(moored, conn),
        }
    }

    /// A client that waited has a server.
    pub(crate) fn hand_over(&mut self, client: u32, grant: &Grant<u32>) {
        self.sessions[client as usize].granted =
            Some(Granted { server: grant.server, check: grant.check, pinned: grant.pinned });
        self.post(client, news::MAIL);
    }

    pub(crate) fn return_grant(&mut self, session: u32) {
        self.sessions[session as usize].letters.clear();
        if let Some(Granted { server, .. }) = self.sessions[session as usize].granted.take()
            && let Some((conn, edge)) = self.moored[server as usize].berth.take_for(session)
        {
            if edge {
                self.keep(server, conn);
            } else {
                self.give_back(server, conn);
            }
        }
    }

    pub(crate) fn close_server(&mut self, steady: &mut Steady) {
        if let Some((moored, conn)) = self.unlease(steady) {
            self.close_conn(moored, conn);
        }
    }

    pub(crate) fn abandon(&mut self, steady: &mut Steady) {
        let Some((moored, conn)) = self.unlease(steady) else { return };
        let is_working = !conn.machine.ledger.is_empty() && conn.machine.broken.is_none();
        if is_working {
            self.send_cancel(Cancel { server: moored, slot: None, meant_for: steady.link.client.id.0 });
        }
        self.left(moored, conn);
    }

    pub(crate) fn cancel(&mut self, session: u32, steady: &mut Steady) {
        let meant_for = steady.link.client.id.0;
        if self.plant == Plant::CancelAfterRelease
            && let Some(server) = self.sessions[session as usize].last_server
        {
            return self.send_cancel(Cancel { server, slot: None, meant_for });
        }
        if let Some(lease) = &steady.lease {
            let is_running = steady.link.server().is_some_and(|server| !server.ledger.is_empty());
            let moored = lease.moored;
            let slot = self.moored[moored as usize].slot;
            if is_running
                && steady.link.wants_client_bytes()
                && self.homes[steady.home].pool.cancel_sent(slot)
            {
                self.send_cancel(Cancel { server: moored, slot: Some(slot), meant_for });
            }
            return;
        }
        if let Some(ticket) = steady.ticket
            && self.homes[steady.home].pool.forget(ticket)
        {
            steady.ticket = None;
            steady.wants_pin = false;
            self.answer_canceled(steady);
        } else if steady.link.awaits_channels() {
            self.answer_canceled(steady);
        }
    }

    fn answer_canceled(&mut self, steady: &mut Steady) {
        if let Received::Some(count, more) = steady.stream.receive(&mut self.net, &mut self.scratch) {
            steady.readable = more;
            steady.pending.extend_from_slice(&self.scratch[..count]);
        }
        self.out.clear();
        let consumed = steady.link.cancel_waiting(&steady.pending, &mut self.out);
        steady.pending.drain(..consumed);
        steady.stream.send(&mut self.net, &self.out.to_client, &[]);
        steady.unread = !steady.pending.is_empty();
    }

    fn send_cancel(&mut self, cancel: Cancel) {
        self.cancels.push(cancel);
        self.cancels_left += 1;
        let most = self.net.delay_max * 2;
        self.net.soon(most, Event::CancelLands(self.cancels.len() as u32 - 1));
    }

    /// The client has left: the server needs a reset, a rollback, nothing, or its end.
    fn left(&mut self, moored: u32, mut conn: Conn) {
        let home = self.moored[moored as usize].home;
        let policy = self.homes[home].policy.clone();
        self.out.clear();
        let is_stuck = conn.side.stream.is_backed_up() || !conn.side.pending.is_empty();
        let mut fate =
            if is_stuck { Fate::Close } else { unpaired::left(&mut conn.machine, &policy, &mut self.out) };
        if self.plant == Plant::SkipReset && fate == Fate::Cleaning {
            conn.machine.ledger = server::Ledger::default();
            self.out.clear();
            fate = Fate::Clean;
        }
        match fate {
            Fate::Clean => self.give_back(moored, conn),
            Fate::Close => self.close_conn(moored, conn),
            Fate::Cleaning => {
                let slot = self.moored[moored as usize].slot;
                self.homes[home].pool.detach(slot);
                if self.homes[home].pool.has_given_up(slot) {
                    return self.close_conn(moored, conn);
                }
                conn.side.stream.send(&mut self.net, &self.out.to_server, &[]);
                self.keep(moored, conn);
            }
        }
    }

    /// An edge of a server that no client has.
    pub(crate) fn look(&mut self, moored: u32) {
        let at = moored as usize;
        let is_idle = self.moored[at].berth.look(|holder, _| *holder == Holder::Pool);
        let (home, slot) = (self.moored[at].home, self.moored[at].slot);
        if is_idle && !self.homes[home].pool.take_idle(slot) {
            return;
        }
        let berth = &self.moored[at].berth;
        if let Some(conn) = if is_idle { berth.take_to_keep() } else { berth.take_kept() } {
            self.keep(moored, conn);
        }
    }

    /// A server that had a cancel request in flight shows that it lives.
    pub(crate) fn check(&mut self, moored: u32) {
        let Some(mut conn) = self.moored[moored as usize].berth.take_to_keep() else { return };
        self.out.clear();
        unpaired::check(&mut conn.machine, &mut self.out);
        conn.side.stream.send(&mut self.net, &self.out.to_server, &[]);
        self.keep(moored, conn);
    }

    fn keep(&mut self, moored: u32, mut conn: Conn) {
        loop {
            match self.read_alone(moored, &mut conn) {
                Fate::Clean => return self.give_back(moored, conn),
                Fate::Close => return self.close_conn(moored, conn),
                Fate::Cleaning => {}
            }
            if !self.moored[moored as usize].berth.moor(conn, Holder::Keeper) {
                return;
            }
            match self.moored[moored as usize].berth.take_kept() {
                Some(taken) => conn = taken,
                None => return,
            }
        }
    }

    fn read_alone(&mut self, moored: u32, conn: &mut Conn) -> Fate {
        let policy = self.homes[self.moored[moored as usize].home].policy.clone();
        loop {
            conn.side.stream.flush(&mut self.net);
            if conn.side.stream.is_broken() {
                return Fate::Close;
            }
            let count = match conn.side.stream.receive(&mut self.net, &mut self.scratch) {
                Received::Some(count, _) => count,
                Received::Nothing => {
                    conn.side.readable = false;
                    let is_clean = conn.machine.is_shareable() && conn.side.pending.is_empty();
                    return if is_clean { Fate::Clean } else { Fate::Cleaning };
                }
                Received::End => return Fate::Close,
            };
            self.check_node(moored);
            conn.side.pending.extend_from_slice(&self.scratch[..count]);
            self.out.clear();
            let (consumed, fate) =
                unpaired::on_server(&mut conn.machine, &policy, &conn.side.pending, &mut self.out);
            conn.side.pending.drain(..consumed);
            if fate == Fate::Close {
                return Fate::Close;
            }
            conn.side.stream.send(&mut self.net, &self.out.to_server, &[]);
        }
    }

    /// Closes a server and tells the pool that its place is free.
    pub(crate) fn close_conn(&mut self, moored: u32, mut conn: Conn) {
        if conn.machine.sending == 0 {
            conn.side.stream.send_bytes(&mut self.net, &wire::encode::TERMINATE);
        }
        self.moored[moored as usize].berth.vacate();
        self.moored[moored as usize].open = false;
        conn.side.stream.close(&mut self.net);
        self.server_gone(moored);
    }

    /// Closes a server that the pool has given up already.
    pub(crate) fn close_given_up(&mut self, moored: u32) {
        if let Some(conn) = self.moored[moored as usize].berth.take_to_keep() {
            self.close_conn(moored, conn);
        }
    }
}

/// Why the preparation of a server failed, if that is for the client to know.
pub(crate) fn broken_preparation(link: &Link) -> Option<Refusal> {
    match &link.server()?.broken {
        Some(Broken::OursFailed(code, text)) if link.has_carried() => {
            Some(Refusal::ServerLoginFailed(code.to_string(), text.to_string()))
        }
        _ => None,
    }
}
