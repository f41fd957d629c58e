//! What a client's session waits for and for how long.

use std::sync::Arc;
use std::time::Duration;

use model::{Moment, Refusal};

use crate::session::{Core, Phase, Session, Steady};
use crate::split;
use crate::worker::Worker;

/// A wait of this length makes sure that there is something to wait for.
const SILENT_AFTER: Duration = Duration::from_millis(100);

/// An edge can tell of bytes that were read before it came. Of a client that has waited for a while it is asked
/// whether there is anything to wait for: else it would be refused in the end for nothing.
fn leave_if_silent(core: &mut Core) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    if steady.unread || core.stream.tls().is_some() || core.stream.has_news() {
        return;
    }
    core.readable = false;
    if let Some(ticket) = steady.ticket
        && steady.home.pool().forget(ticket)
    {
        steady.ticket = None;
    }
}

/// Looks at what may be overdue; what the client is told, if that ends its session.
pub fn check(worker: &mut Worker, core: &mut Core) -> Option<Refusal> {
    let Phase::Steady(steady) = &mut core.phase else { return None };
    if split::look_again(worker, steady) {
        return None;
    }
    if steady.ticket.is_some() {
        // `query_wait_timeout` is the pool's, whose tick ends the wait; the query's own limit counts here too.
        if steady.waiting_since.deadline(steady.link.policy().query_timeout) <= worker.now {
            return Some(Refusal::QueryTimeout);
        }
        if !steady.is_sure && steady.waiting_since + SILENT_AFTER <= worker.now {
            steady.is_sure = true;
            leave_if_silent(core);
            return None;
        }
        if !steady.told_queued
            && steady.waiting_since.deadline(steady.link.policy().query_wait_notify) <= worker.now
        {
            steady.told_queued = true;
            let mut notice = Vec::new();
            wire::encode::report(
                &mut notice,
                wire::encode::Severity::Notice,
                wire::sqlstate::SUCCESSFUL_COMPLETION,
                match steady.wants_pin {
                    false => "No server connection available in postgres backend, client being queued",
                    true => {
                        "As many clients as may keep their server for session state (max_pinned), client being queued"
                    }
                },
                None,
            );
            core.stream.send_bytes(&notice, &mut worker.outbox);
        }
        return None;
    }
    steady.link.on_timeout(worker.now)
}

/// When a server that is checked or set up for its client counts as dead.
fn preparation_deadline(worker: &Worker, steady: &Steady) -> Option<Moment> {
    let server = steady.link.server().filter(|_| !steady.link.wants_client_bytes())?;
    Some(server.requested_at.deadline(worker.shared.settings().general.server_connect_timeout))
}

/// Whether a server that is checked or set up for its client has taken too long.
pub fn is_preparation_overdue(worker: &Worker, core: &Core) -> bool {
    match &core.phase {
        Phase::Steady(steady) => preparation_deadline(worker, steady).is_some_and(|at| at <= worker.now),
        _ => false,
    }
}

/// Makes sure that a timer wakes the session in time.
pub fn arm(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) {
    let Phase::Steady(steady) = &core.phase else { return };
    let deadline = if let Some(overdue) = preparation_deadline(worker, steady) {
        overdue
    } else if steady.ticket.is_none() {
        steady.link.poll_timeout()
    } else {
        let notify = if steady.told_queued { Duration::ZERO } else { steady.link.policy().query_wait_notify };
        let query = steady.waiting_since.deadline(steady.link.policy().query_timeout);
        let silent = if steady.is_sure { Moment::NEVER } else { steady.waiting_since + SILENT_AFTER };
        let looks_at = split::looks_at(worker, steady);
        steady.waiting_since.deadline(notify).min(query).min(silent).min(looks_at)
    };
    let leaves_at = if core.hung_up { steady.leaves_at } else { Moment::NEVER };
    let deadline = deadline.min(leaves_at);
    if deadline < core.armed {
        core.armed = deadline;
        worker.timers.arm(deadline, session);
    }
}
