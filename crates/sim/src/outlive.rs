//! Clients of a cluster whose server is lost: sent to another, or answered in its place; in the order of calls that the
//! shell keeps.

use link::Then;

use crate::lease::Checkout;
use crate::net::Received;
use crate::parts::Steady;
use crate::relay::Turn;
use crate::world::World;

impl World {
    /// The server is lost, and the client may stay. True if the session goes on now.
    pub(crate) fn outlive(&mut self, session: u32, steady: &mut Steady) -> bool {
        let repeats = steady.sent.may_repeat(&steady.link);
        self.out.clear();
        let is_over = steady.link.answer_for_the_dead(self.net.now, &mut self.out);
        if !repeats {
            steady.stream.send(&mut self.net, &self.out.to_client, &[]);
            self.bury(steady, is_over);
            return true;
        }
        self.bury(steady, true);
        let mut bytes = steady.sent.repeat();
        bytes.append(&mut steady.pending);
        steady.pending = bytes;
        (steady.unread, steady.stalled) = (true, false);
        match self.checkout(session, steady, true) {
            Checkout::Granted => true,
            Checkout::Queued => false,
            Checkout::Refused(refusal) => {
                self.close(session, steady, Some(refusal));
                false
            }
        }
    }

    /// The lost server's place is free at once, whatever its client still has to say to it.
    fn bury(&mut self, steady: &mut Steady, is_over: bool) {
        if let Some(mut lease) = steady.lease.take() {
            let moored = &mut self.moored[lease.moored as usize];
            (moored.leased_to, moored.is_beyond, moored.open) = (None, false, false);
            moored.berth.vacate();
            lease.side.stream.close(&mut self.net);
            self.server_gone(lease.moored);
        }
        steady.is_orphan = !is_over;
        if is_over {
            let _lost = steady.link.take_server(self.net.now);
        }
    }

    /// What an orphan says goes nowhere, and is answered at the end of its batch.
    pub(crate) fn orphan_turn(&mut self, steady: &mut Steady) -> Turn {
        if !steady.unread {
            match steady.stream.receive(&mut self.net, &mut self.scratch) {
                Received::Some(count, more) => {
                    steady.readable = more || steady.hung_up;
                    steady.pending.extend_from_slice(&self.scratch[..count]);
                }
                Received::Nothing => {
                    steady.readable = false;
                    return Turn::Rest;
                }
                Received::End => return Turn::End(None),
            }
        }
        steady.unread = false;
        self.out.clear();
        let progress = steady.link.on_client(self.net.now, &steady.pending, &mut self.out);
        steady.pending.drain(..progress.consumed);
        if steady.link.answer_for_the_dead(self.net.now, &mut self.out) {
            steady.is_orphan = false;
            let _lost = steady.link.take_server(self.net.now);
            steady.unread = !steady.pending.is_empty();
        }
        steady.stream.send(&mut self.net, &self.out.to_client, &[]);
        match progress.then {
            Then::Pin => {
                steady.link.permit();
                steady.unread = true;
                Turn::Moved
            }
            Then::Wait if progress.consumed == 0 => Turn::End(Some(model::Refusal::ServerCrashed)),
            Then::Wait => {
                steady.unread = true;
                Turn::Moved
            }
            Then::Close(refusal) => Turn::End(refusal.map(|refusal| *refusal)),
            Then::Read | Then::ServerGone(_) => Turn::Moved,
        }
    }
}
