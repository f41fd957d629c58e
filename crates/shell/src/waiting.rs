//! A client that is canceled while it waits for a server: its query is read, and answered without one.

use crate::session::{Core, Phase};
use crate::socket::Received;
use crate::worker::Worker;

/// Answers the query that the client was waiting with; it has left the queue.
pub fn answer_canceled(worker: &mut Worker, core: &mut Core) {
    let Phase::Steady(steady) = &mut core.phase else { return };
    if let Received::Some(count, more) = core.stream.receive(&mut worker.scratch) {
        core.readable = more;
        core.pending.push(&worker.scratch[..count]);
    }
    worker.out.clear();
    let consumed = steady.link.cancel_waiting(&core.pending, &mut worker.out);
    core.pending.consume(consumed);
    core.stream.send(&worker.out.to_client, &[], &mut worker.outbox);
    steady.unread = !core.pending.is_empty();
}
