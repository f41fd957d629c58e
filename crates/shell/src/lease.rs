//! How a server changes hands: from the pool to a client, back, and on to the next in the queue.
//!
//! Whoever frees a server serves the next waiter itself; no thread is woken for it.

use std::sync::Arc;

use baton::Holder;
use link::{Granted as Start, Link, Tally, unpaired};
use model::{Moment, Parameters, Refusal};
use pool::{After, Grant, Near, Released};
use server::{Broken, Server};
use stats::Counters;

use crate::home::SharedPool;
use crate::keeper;
use crate::moored::{Conn, Moored};
use crate::session::{Core, Granted, Lease, Letter, Phase, Session, Steady};
use crate::split::{self, Fit};
use crate::worker::Worker;

/// A server that was idle for longer than this, in microseconds, is asked whether something waits in its socket:
/// one system call, which a busy pool never makes, and no client is answered with a goodbye that was meant for
/// nobody.
const PEEK_AFTER_US: u64 = 5_000;

/// What came of asking for a server.
pub enum Checkout {
    /// The client has one.
    Granted,
    /// It waits.
    Queued,
    /// It will get none.
    Refused(Box<Refusal>),
}

/// Who uses a server, or asks for one.
#[inline]
fn near(worker: &mut Worker, parameters: &Arc<Parameters>) -> Near {
    Near { worker: worker.id, settings: worker.digests.of(parameters) }
}

/// Asks the pool for a server.
#[inline]
pub fn checkout(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Checkout {
    let Phase::Steady(steady) = &mut core.phase else { return Checkout::Queued };
    if steady.link.policy().dedicated {
        return own_server_lost();
    }
    let deadline = worker.now.deadline(steady.link.policy().query_wait_timeout);
    let near = near(worker, &steady.link.client.parameters);
    let mut pool = steady.home.pool();
    if steady.home.is_reader && is_out(&pool, worker.now) {
        drop(pool);
        split::turn_back(worker, steady);
        return checkout(worker, session, core);
    }
    let answer = match steady.wants_pin {
        false => pool.checkout(worker.now, near, session, deadline),
        true => pool.checkout_pinned(worker.now, near, session, deadline),
    };
    drop(pool);
    answered(worker, session, core, answer)
}

/// As `checkout`, for a client whose server turned out to be dead: it keeps its turn.
pub fn checkout_again(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Checkout {
    let Phase::Steady(steady) = &mut core.phase else { return Checkout::Queued };
    if steady.link.policy().dedicated {
        return own_server_lost();
    }
    let since = if steady.waiting_since == Moment::NEVER { worker.now } else { steady.waiting_since };
    let deadline = since.deadline(steady.link.policy().query_wait_timeout);
    let near = near(worker, &steady.link.client.parameters);
    let mut pool = steady.home.pool();
    if steady.home.is_reader && is_out(&pool, worker.now) {
        drop(pool);
        split::turn_back(worker, steady);
        return checkout_again(worker, session, core);
    }
    let answer = match steady.wants_pin {
        false => pool.checkout_first(worker.now, near, session, since, deadline),
        true => pool.checkout_pinned_first(worker.now, near, session, since, deadline),
    };
    drop(pool);
    answered(worker, session, core, answer)
}

/// Whether a standby's pool has nobody to give. Asked under the lock under which a client would begin to wait: who waits
/// when that comes true is told.
fn is_out(pool: &SharedPool, now: Moment) -> bool {
    pool.is_held() || pool.is_failing(now)
}

#[inline]
fn answered(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    answer: pool::Checkout<Arc<Moored>>,
) -> Checkout {
    let Phase::Steady(steady) = &mut core.phase else { return Checkout::Queued };
    match answer {
        pool::Checkout::Granted(Grant { server, check, pinned, .. }) => {
            accept(worker, session, core, Granted { server, check, pinned, waited_us: 0 })
        }
        pool::Checkout::Queued { ticket, open } => {
            steady.ticket = Some(ticket);
            steady.waiting_since = worker.now;
            steady.told_queued = false;
            steady.is_sure = false;
            worker.shared.open_servers(&steady.home, open);
            Checkout::Queued
        }
        pool::Checkout::Refused(_) if steady.home.is_reader => {
            split::turn_back(worker, steady);
            checkout(worker, session, core)
        }
        pool::Checkout::Refused(error) => Checkout::Refused(Box::new(error.cached_refusal())),
    }
}

/// Takes a server that the pool has granted, and looks first whether it is still alive: what an idle server
/// had to say is no client's business.
#[inline]
pub fn accept(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, granted: Granted) -> Checkout {
    let Phase::Steady(steady) = &mut core.phase else { return Checkout::Queued };
    let Some((mut conn, edge)) = granted.server.berth.take_for(Arc::clone(session)) else {
        // A grant names a server that lies in its berth; it can be gone only through a kill.
        return checkout_again(worker, session, core);
    };
    let counters = &steady.home.counters[usize::from(worker.id.0)];
    counters.add_server_assignment_count(1);
    if granted.waited_us > 0 {
        counters.add_wait_time_us(granted.waited_us.into());
    }
    let idle_us = worker.now.micros_since(conn.machine.requested_at);
    let has_news = edge || conn.side.readable || (idle_us > PEEK_AFTER_US && conn.side.stream.has_news());
    if has_news && keeper::read(worker, &granted.server, &mut conn) != unpaired::Fate::Clean {
        keeper::close(worker, &granted.server, conn);
        return checkout_again(worker, session, core);
    }
    if steady.home.is_reader {
        match split::may_read(worker, steady, conn.machine.since) {
            Fit::Yes => {}
            Fit::No => {
                give_back(worker, &granted.server, conn);
                return checkout(worker, session, core);
            }
            Fit::NotYet => {
                give_back(worker, &granted.server, conn);
                worker.timers.arm(worker.now + split::LOOK_AGAIN, session);
                return Checkout::Queued;
            }
        }
    }
    let Conn { mut side, machine } = conn;
    worker.out.clear();
    let start = steady.link.granted(worker.now, machine, granted.check, &mut worker.out);
    if start == Start::Preparing {
        side.stream.send(&worker.out.to_server, &[], &mut worker.outbox);
    }
    if !worker.out.to_client.is_empty() {
        core.stream.send(&worker.out.to_client, &[], &mut worker.outbox);
    }
    if granted.pinned {
        steady.link.permit();
    }
    // What it waited for of the server before, it waits for no more.
    steady.stalled = false;
    steady.note_granted();
    steady.lease = Some(Lease { moored: granted.server, side });
    Checkout::Granted
}

/// Who had a server of its own gets no other: those of the pool are logged in as whom we know, and not as whom that
/// server knew.
#[cold]
fn own_server_lost() -> Checkout {
    Checkout::Refused(Box::new(Refusal::OwnServerLost))
}

/// Takes a server that was opened for this client alone. What it is told, if that is lost already.
pub fn accept_dedicated(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    moored: Arc<Moored>,
) -> Option<Refusal> {
    if !matches!(core.phase, Phase::Steady(_)) {
        worker.shared.close_given_up(&moored, "its client is gone");
        return None;
    }
    let granted = Granted { server: moored, check: false, pinned: false, waited_us: 0 };
    match accept(worker, session, core, granted) {
        Checkout::Refused(refusal) => Some(*refusal),
        Checkout::Granted | Checkout::Queued => None,
    }
}

/// Letters that nobody will read: a server among them is nobody's.
pub fn discard(worker: &mut Worker, letters: impl IntoIterator<Item = Letter>) {
    for letter in letters {
        if let Letter::Dedicated(Ok(moored)) = letter {
            worker.shared.close_given_up(&moored, "its client is gone");
        }
    }
}

/// Takes the server away from the client. What it still has in a volley goes out first: its socket may be closed
/// next, or be another client's.
#[inline]
fn part(worker: &mut Worker, steady: &mut Steady) -> Option<(Box<Server>, Lease)> {
    let machine = steady.link.take_server(worker.now)?;
    let mut lease = steady.lease.take()?;
    lease.side.stream.settle(&mut worker.outbox);
    if let Some(split) = split::of(steady) {
        split.parted(&worker.shared);
    }
    Some((machine, lease))
}

/// The link is done with its server: back to the pool, or straight to the next waiter.
#[inline]
pub fn release(worker: &mut Worker, steady: &mut Steady) {
    steady.wants_pin = false;
    give_up(worker, steady);
}

/// As `release`, of a client that goes on to ask for another.
#[inline]
pub fn give_up(worker: &mut Worker, steady: &mut Steady) {
    let Some((machine, lease)) = part(worker, steady) else { return };
    let conn = Conn { side: lease.side, machine };
    if steady.link.policy().reset_always {
        keeper::left(worker, &lease.moored, conn);
    } else {
        give_back(worker, &lease.moored, conn);
    }
}

/// A clean server goes back to the pool.
#[inline]
pub fn give_back(worker: &mut Worker, moored: &Arc<Moored>, conn: Conn) {
    let home = &moored.home;
    let near = near(worker, &conn.machine.parameters);
    let mut pool = home.pool();
    let after = pool.release(worker.now, moored.slot, near, Released::Clean);
    settle(worker, moored, conn, after, pool);
}

/// Does what the pool says about a server that is free. The pool stays locked until the server is moored, so
/// that nobody is granted one that is not there.
#[inline]
pub fn settle(
    worker: &mut Worker,
    moored: &Arc<Moored>,
    conn: Conn,
    after: After<Arc<Session>, Arc<Moored>>,
    pool: std::sync::MutexGuard<'_, SharedPool>,
) {
    match after {
        After::Handover { client, grant, waited } => {
            drop(pool);
            // An edge that came meanwhile is seen by who takes it.
            let _edge = moored.berth.moor(conn, Holder::Pool);
            if client.grant(Granted::after(grant, waited)) {
                worker.runnable.push_back(client);
            }
        }
        After::Idle => {
            // A read that filled the buffer may have left something behind, of which no edge will tell.
            let unread = conn.side.readable;
            let edge = moored.berth.moor(conn, Holder::Pool) || unread;
            drop(pool);
            if edge {
                keeper::look(worker, moored);
            }
        }
        After::Canceling => {
            let _edge = moored.berth.moor(conn, Holder::Pool);
            drop(pool);
        }
        After::Dedicated | After::Close => {
            drop(pool);
            keeper::close(worker, moored, conn);
        }
    }
}

/// A session that ended before it took its grant gives the server on.
pub fn return_grant(worker: &mut Worker, session: &Arc<Session>) -> bool {
    let (letters, granted) = {
        let mut mail = session.mail.lock();
        (mail.take_letters(), mail.granted.take())
    };
    discard(worker, letters);
    if let Some(Granted { server, .. }) = granted
        && let Some((conn, edge)) = server.berth.take_for(Arc::clone(session))
    {
        if edge {
            keeper::keep(worker, &server, conn);
        } else {
            give_back(worker, &server, conn);
        }
    }
    false
}

/// The server is closed, whatever it was doing.
pub fn close_server(worker: &mut Worker, steady: &mut Steady) {
    let Some((machine, lease)) = part(worker, steady) else { return };
    keeper::close(worker, &lease.moored, Conn { side: lease.side, machine });
}

/// The client is gone: its server is cleaned, or closed and what it does canceled.
pub fn abandon(worker: &mut Worker, steady: &mut Steady) {
    let Some((machine, lease)) = part(worker, steady) else { return };
    let is_working = !machine.ledger.is_empty() && machine.broken.is_none();
    let is_dedicated = steady.link.policy().dedicated;
    let moored = lease.moored;
    if is_working {
        // Closing the socket does not stop the query: PostgreSQL notices when it next writes.
        worker.shared.cancel(&moored, &machine, None);
    }
    let conn = Conn { side: lease.side, machine };
    if is_dedicated {
        keeper::end(worker, &moored, conn);
    } else {
        keeper::left(worker, &moored, conn);
    }
}

/// Why the preparation of a server failed, if that is for the client to know: a setting that it asked for.
pub fn broken_preparation(link: &Link) -> Option<Refusal> {
    match &link.server()?.broken {
        Some(Broken::OursFailed(code, text)) if link.has_carried() => {
            Some(Refusal::ServerLoginFailed(code.to_string(), text.to_string()))
        }
        _ => None,
    }
}

/// The client asked, on another connection, to stop what this session does.
pub fn cancel(worker: &mut Worker, core: &mut Core) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    if let Some(lease) = &steady.lease {
        // While the pooler sets something of its own, or nothing runs, there is nothing of the client's to stop.
        if steady.link.is_running()
            && lease.moored.home.pool().cancel_sent(lease.moored.slot)
            && let Some(server) = steady.link.server()
        {
            worker.shared.cancel(&lease.moored, server, Some(lease.moored.slot));
        }
        return;
    }
    if let Some(ticket) = steady.ticket
        && steady.home.pool().forget(ticket)
    {
        steady.ticket = None;
        steady.wants_pin = false;
        crate::waiting::answer_canceled(worker, core);
    } else if steady.link.awaits_channels() {
        crate::waiting::answer_canceled(worker, core);
    }
}

/// Adds up what a link did.
#[inline]
pub fn count(counters: &Counters, tally: &Tally) {
    if tally.queries > 0 {
        counters.add_query_count(u64::from(tally.queries));
        counters.add_query_time_us(tally.query_us);
    }
    if tally.transactions > 0 {
        counters.add_xact_count(u64::from(tally.transactions));
        counters.add_xact_time_us(tally.transaction_us);
    }
    if tally.client_parses > 0 {
        counters.add_client_parse_count(u64::from(tally.client_parses));
    }
    if tally.server_parses > 0 {
        counters.add_server_parse_count(u64::from(tally.server_parses));
    }
    if tally.binds > 0 {
        counters.add_bind_count(u64::from(tally.binds));
    }
    if tally.pins > 0 {
        counters.add_pin_count(u64::from(tally.pins));
    }
}
