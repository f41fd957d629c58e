//! Clients of a cluster whose server is lost: sent to another, or answered in its place; they themselves stay.

use std::sync::Arc;

use link::Then;
use model::Refusal;

use crate::keeper;
use crate::lease::{self, Checkout};
use crate::session::{Core, Phase, Session, Steady};
use crate::socket::Received;
use crate::split::{self, Split};
use crate::worker::Worker;

/// What a client sent since it got its server, as long as nothing was answered.
#[derive(Default)]
pub struct Sent {
    bytes: Vec<u8>,
    /// Part of it is not kept, or an answer has come.
    is_spent: bool,
    /// How often it was sent again.
    repeats: u8,
    /// Where its reads go, if they may go to standbys.
    pub split: Option<Split>,
}

/// More than this is not kept, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// A client whose words kill every server they are sent to is told in the end.
const REPEATS_MAX: u8 = 5;
/// So many standbys may be lost with a read before it goes to the primary.
const STANDBYS_MAX: u8 = 2;

impl Steady {
    /// The client has sent these bytes to its server; or has had an answer at once.
    #[inline]
    pub fn note_sent(&mut self, bytes: &[u8], is_answered: bool) {
        if self.link.policy().rides_out {
            let sent = self.sent.get_or_insert_default();
            if is_answered {
                sent.answered();
            }
            if sent.is_spent || sent.bytes.len() + bytes.len() > KEPT_BYTES_MAX {
                sent.spend();
            } else {
                sent.bytes.extend_from_slice(bytes);
            }
        }
    }

    /// The client has a server to which it has said nothing yet.
    #[inline]
    pub fn note_granted(&mut self) {
        if let Some(sent) = &mut self.sent {
            sent.bytes.clear();
            sent.is_spent = false;
        }
    }
}

impl Sent {
    /// Of a client whose reads may go to standbys.
    pub fn of(split: Split) -> Sent {
        Sent { split: Some(split), ..Sent::default() }
    }

    /// Whether it cannot be sent again.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Takes it out, to be sent again.
    pub fn take_back(&mut self) -> Vec<u8> {
        self.repeats = self.repeats.saturating_add(1);
        std::mem::take(&mut self.bytes)
    }

    /// The client has been sent something of an answer.
    pub fn answered(&mut self) {
        self.spend();
        self.repeats = 0;
    }

    fn spend(&mut self) {
        self.is_spent = true;
        self.bytes.clear();
    }
}

/// The server is lost, and the client may stay. True if the session goes on now; else it waits.
pub fn outlive(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Result<bool, Box<Refusal>> {
    let Phase::Steady(steady) = &mut core.phase else { return Ok(false) };
    let is_on_standby = split::of(steady).is_some_and(|split| split.is_on_standby());
    let repeats = may_repeat(steady, is_on_standby);
    worker.out.clear();
    let is_over = steady.link.answer_for_the_dead(worker.now, &mut worker.out);
    if !repeats {
        core.stream.send(&worker.out.to_client, &[], &mut worker.outbox);
        bury(worker, steady, is_over);
        return Ok(true);
    }
    // What was said for the dead is heard by nobody: another server will give the answer.
    bury(worker, steady, true);
    split::repeat(steady, &mut core.pending);
    if is_on_standby {
        // It is looked at again where it goes.
        if steady.sent.as_ref().is_some_and(|sent| sent.repeats >= STANDBYS_MAX)
            && let Some(split) = split::of(steady)
        {
            split.must_write();
        }
        return Ok(true);
    }
    match lease::checkout_again(worker, session, core) {
        Checkout::Granted => Ok(true),
        Checkout::Queued => Ok(false),
        Checkout::Refused(refusal) => Err(refusal),
    }
}

/// On a standby nothing that lasts can have been done.
fn may_repeat(steady: &Steady, is_on_standby: bool) -> bool {
    steady.sent.as_ref().is_some_and(|sent| {
        !sent.is_spent
            && !sent.bytes.is_empty()
            && sent.repeats < REPEATS_MAX
            && (is_on_standby || steady.link.may_repeat(&sent.bytes))
    })
}

/// The lost server's place is free at once, whatever its client still has to say to it.
fn bury(worker: &mut Worker, steady: &mut Steady, is_over: bool) {
    if let Some(lease) = steady.lease.take() {
        if let Some(split) = split::of(steady) {
            split.parted(&worker.shared);
        }
        let reason = steady.link.server().map(link::unpaired::reason).unwrap_or_default();
        keeper::bury(worker, &lease.moored, *lease.side, &reason);
    }
    steady.is_orphan = !is_over;
    if is_over {
        let _lost = steady.link.take_server(worker.now);
    }
}

/// What an orphan says goes nowhere, and is answered at the end of its batch. `None` if there was nothing.
pub fn listen(worker: &mut Worker, core: &mut Core) -> Option<Then> {
    let Phase::Steady(steady) = &mut core.phase else { return None };
    if !steady.unread {
        match core.stream.receive(&mut worker.scratch) {
            Received::Some(count, more) => {
                core.readable = more || core.hung_up;
                core.pending.push(&worker.scratch[..count]);
            }
            Received::Nothing => {
                core.readable = false;
                return None;
            }
            Received::End | Received::Broken => return Some(Then::Close(None)),
        }
    }
    steady.unread = false;
    worker.out.clear();
    let progress = steady.link.on_client(worker.now, &core.pending, &mut worker.out);
    core.pending.consume(progress.consumed);
    if steady.link.answer_for_the_dead(worker.now, &mut worker.out) {
        steady.is_orphan = false;
        let _lost = steady.link.take_server(worker.now);
        // The next batch may have come with the end of this one.
        steady.unread = !core.pending.is_empty();
    }
    core.stream.send(&worker.out.to_client, &[], &mut worker.outbox);
    match progress.then {
        // It is asked for what there is no server for: on the dead one it may do as it likes.
        Then::Pin => {
            steady.link.permit();
            steady.unread = true;
            Some(Then::Read)
        }
        Then::Wait if progress.consumed == 0 => Some(Then::Close(Some(Box::new(Refusal::ServerCrashed)))),
        Then::Wait => {
            steady.unread = true;
            Some(Then::Read)
        }
        then => Some(then),
    }
}
