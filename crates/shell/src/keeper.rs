//! Servers without a client: cleaned after one, looked at when they speak up, closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton::Holder;
use link::unpaired::{self, Fate};

use crate::journal;
use crate::moored::{Conn, Moored, ServerSide};
use crate::socket::Received;
use crate::worker::Worker;

/// The client has left: the server needs a reset, a rollback, nothing, or its end.
pub fn left(worker: &mut Worker, moored: &Arc<Moored>, mut conn: Conn) {
    let policy = Arc::clone(&moored.home.cleaning.lock());
    worker.out.clear();
    let is_stuck = conn.side.stream.is_backed_up() || !conn.side.pending.is_empty();
    let fate =
        if is_stuck { Fate::Close } else { unpaired::left(&mut conn.machine, &policy, &mut worker.out) };
    match fate {
        Fate::Clean => crate::lease::give_back(worker, moored, conn),
        Fate::Close => close(worker, moored, conn),
        Fate::Cleaning => {
            let is_given_up = {
                let mut pool = moored.home.pool();
                pool.detach(moored.slot);
                pool.has_given_up(moored.slot)
            };
            if is_given_up {
                return close_because(worker, moored, conn, "given up while a client had it");
            }
            conn.side.stream.send_now(&worker.out.to_server, &[]);
            keep(worker, moored, conn);
        }
    }
}

/// An edge of a server that no client has: looks at it, unless somebody else has it by now.
pub fn look(worker: &mut Worker, moored: &Arc<Moored>) {
    let is_idle = moored.berth.look(|holder, _| matches!(holder, Holder::Pool));
    let taken = if !is_idle {
        moored.berth.take_kept()
    } else if moored.home.pool().take_idle(moored.slot) {
        moored.berth.take_to_keep()
    } else {
        None
    };
    if let Some(conn) = taken {
        keep(worker, moored, conn);
    }
}

/// A server that had a cancel request in flight shows that it lives before anybody gets it.
pub fn check(worker: &mut Worker, moored: &Arc<Moored>) {
    let Some(mut conn) = moored.berth.take_to_keep() else { return };
    worker.out.clear();
    unpaired::check(&mut conn.machine, &mut worker.out);
    conn.side.stream.send_now(&worker.out.to_server, &[]);
    keep(worker, moored, conn);
}

/// Reads what there is, and gives the server back when it is clean.
pub fn keep(worker: &mut Worker, moored: &Arc<Moored>, mut conn: Conn) {
    loop {
        match read(worker, moored, &mut conn) {
            Fate::Clean => {
                moored.kept_since.store(0, Ordering::Relaxed);
                return crate::lease::give_back(worker, moored, conn);
            }
            Fate::Close => return close(worker, moored, conn),
            Fate::Cleaning => {}
        }
        if moored.kept_since.load(Ordering::Relaxed) == 0 {
            moored.kept_since.store(worker.now.0, Ordering::Relaxed);
            worker.shared.kept.lock().push(Arc::clone(moored));
        }
        // An edge between the last read and the mooring is ours to see.
        if !moored.berth.moor(conn, Holder::Keeper) {
            return;
        }
        match moored.berth.take_kept() {
            Some(taken) => conn = taken,
            None => return,
        }
    }
}

/// Reads from a server that has no client until nothing is left.
pub fn read(worker: &mut Worker, moored: &Arc<Moored>, conn: &mut Conn) -> Fate {
    let policy = Arc::clone(&moored.home.cleaning.lock());
    loop {
        conn.side.stream.flush();
        if conn.side.stream.is_broken() {
            return Fate::Close;
        }
        let count = match conn.side.stream.receive(&mut worker.scratch) {
            Received::Some(count, _) => count,
            Received::Nothing => {
                conn.side.readable = false;
                let is_clean = conn.machine.is_shareable() && conn.side.pending.is_empty();
                return if is_clean { Fate::Clean } else { Fate::Cleaning };
            }
            Received::End | Received::Broken => return Fate::Close,
        };
        conn.side.pending.push(&worker.scratch[..count]);
        worker.out.clear();
        let (consumed, fate) =
            unpaired::on_server(&mut conn.machine, &policy, &conn.side.pending, &mut worker.out);
        if consumed == conn.side.pending.len() {
            conn.side.pending.clear();
        } else {
            conn.side.pending.consume(consumed);
        }
        if fate == Fate::Close {
            return Fate::Close;
        }
        conn.side.stream.send_now(&worker.out.to_server, &[]);
    }
}

/// Closes a server and tells the pool that its place is free.
pub fn close(worker: &mut Worker, moored: &Arc<Moored>, conn: Conn) {
    let reason = unpaired::reason(&conn.machine);
    close_because(worker, moored, conn, &reason);
    if let Some(at) = moored.node {
        worker.shared.heard(at, cluster::Sign::Lost);
    }
}

/// Closes a server that only its client could use.
pub fn end(worker: &mut Worker, moored: &Arc<Moored>, conn: Conn) {
    close_because(worker, moored, conn, "its client has left");
}

fn close_because(worker: &mut Worker, moored: &Arc<Moored>, mut conn: Conn, reason: &str) {
    journal::server_closed(&worker.shared, moored, reason);
    if conn.machine.sending == 0 {
        conn.side.stream.send_bytes(&wire::encode::TERMINATE, &mut worker.outbox);
    }
    vacate(worker, moored);
    drop(conn);
    worker.shared.server_gone(moored, worker.now);
}

/// A lost server's socket goes and its place is free, while its client may still be told of what it owes.
pub fn bury(worker: &mut Worker, moored: &Arc<Moored>, mut side: ServerSide, reason: &str) {
    journal::server_closed(&worker.shared, moored, reason);
    side.stream.settle(&mut worker.outbox);
    vacate(worker, moored);
    drop(side);
    worker.shared.server_gone(moored, worker.now);
    if let Some(at) = moored.node {
        worker.shared.heard(at, cluster::Sign::Lost);
    }
}

/// Closes a server that did not answer while it was cleaned or checked.
pub fn close_overdue(worker: &mut Worker, moored: &Arc<Moored>) {
    if let Some(conn) = moored.berth.take_kept() {
        close_because(worker, moored, conn, "no answer while it was cleaned or checked");
    }
}

/// Closes a server that the pool has given up already: too many, too old, killed.
pub fn close_given_up(worker: &mut Worker, moored: &Arc<Moored>, reason: &str) {
    if let Some(conn) = moored.berth.take_to_keep() {
        close_because(worker, moored, conn, reason);
    }
}

fn vacate(worker: &mut Worker, moored: &Arc<Moored>) {
    moored.berth.vacate();
    if let Some(token) = moored.token.lock().take() {
        worker.shared.workers[usize::from(moored.worker.0)].sources.remove(token);
    }
}
