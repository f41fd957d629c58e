//! One session's turn: read, ask the link, write; in the order of calls that the shell keeps.

use baton::Bits;
use link::{Standing, Then};
use model::{Moment, Refusal};

use crate::lease::Checkout;
use crate::net::{Event, Received};
use crate::parts::{Letter, Steady, news};
use crate::plant::Plant;
use crate::world::World;

const READS_MAX: usize = 32;

pub(crate) enum Turn {
    Moved,
    Rest,
    End(Option<Refusal>),
    ServerGone(bool),
}

impl World {
    /// Leaves news for a session, and sees to it that somebody works on it.
    pub(crate) fn post(&mut self, session: u32, bits: Bits) {
        if self.sessions[session as usize].gate.post(bits) {
            self.net.soon(30, Event::Turn(session));
        }
    }

    pub(crate) fn tell(&mut self, session: u32, letter: Letter) {
        self.sessions[session as usize].letters.push(letter);
        self.post(session, news::MAIL);
    }

    /// Does all there is to do for a session whose gate is ours, and leaves the gate.
    pub(crate) fn turn(&mut self, session: u32) {
        self.worker = (self.net.rng.below(4)) as u16;
        loop {
            let happened = self.sessions[session as usize].gate.news();
            if happened == 0 {
                return;
            }
            let Some(mut steady) = self.sessions[session as usize].steady.take() else {
                self.return_grant(session);
                continue;
            };
            if happened & (news::CLIENT_READABLE | news::CLIENT_HUNG_UP) != 0 {
                steady.readable = true;
            }
            steady.hung_up |= happened & news::CLIENT_HUNG_UP != 0;
            let again = self.drive(session, &mut steady, happened);
            if self.net.verbose {
                let now = self.net.now.0;
                eprintln!("{now:>10} session {session} after {happened:b}: {}", steady.summary());
            }
            if steady.is_over {
                self.sessions[session as usize].is_over = true;
            } else {
                self.sessions[session as usize].steady = Some(steady);
            }
            if again {
                let _ours = self.sessions[session as usize].gate.post(news::AGAIN);
                self.net.soon(30, Event::Turn(session));
                return;
            }
        }
    }

    fn drive(&mut self, session: u32, steady: &mut Steady, happened: Bits) -> bool {
        if happened & news::SERVER_EDGE != 0
            && let Some(lease) = &mut steady.lease
        {
            lease.side.readable |= self.moored[lease.moored as usize].berth.take_edge();
        }
        let mut is_cut = false;
        if happened & news::MAIL != 0
            && let Some(end) = self.read_mail(session, steady, &mut is_cut)
        {
            self.close(session, steady, end);
            return false;
        }
        if is_cut && !self.lose_server(session, steady, false) {
            return false;
        }
        if happened & news::TIMER != 0 {
            steady.armed = Moment::NEVER;
            if let Some(refusal) = self.check_deadlines(steady) {
                self.close(session, steady, Some(refusal));
                return false;
            }
        }
        for _ in 0..READS_MAX {
            let mut turn = self.server_turn(session, steady);
            if matches!(turn, Turn::Rest) {
                turn = self.client_turn(session, steady);
                if matches!(turn, Turn::Rest) {
                    self.attend(session, steady);
                    self.check_kept(session, steady);
                    self.arm(session, steady);
                    return false;
                }
            }
            match turn {
                Turn::Moved | Turn::Rest => self.finish_turn(steady),
                Turn::End(refusal) => {
                    self.close(session, steady, refusal);
                    return false;
                }
                Turn::ServerGone(told) => {
                    if !self.lose_server(session, steady, told) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn finish_turn(&mut self, steady: &mut Steady) {
        if steady.link.has_pinned_unasked() {
            self.count_beyond(steady);
        }
        match self.standing(steady) {
            Standing::Kept => {}
            Standing::Free => {
                let is_through = |lease: &crate::parts::Lease| {
                    lease.side.pending.is_empty() && !lease.side.stream.is_backed_up()
                };
                if steady.lease.as_ref().is_some_and(is_through) {
                    self.release(steady);
                }
            }
            Standing::Spoilt => self.close_server(steady),
        }
    }

    fn standing(&self, steady: &Steady) -> Standing {
        let server = steady.link.server();
        let is_free = match self.plant {
            Plant::ReleaseTooEarly => {
                steady.link.client.sending == 0
                    && server.is_some_and(|server| server.sending == 0 && !server.ledger.is_empty())
            }
            Plant::ReleaseKept => {
                steady.link.pins().is_some() && server.is_some_and(|server| server.is_shareable())
            }
            _ => false,
        };
        if is_free { Standing::Free } else { steady.link.standing() }
    }

    fn server_turn(&mut self, session: u32, steady: &mut Steady) -> Turn {
        let Some(lease) = &mut steady.lease else { return Turn::Rest };
        if steady.stream.is_backed_up() && !steady.stream.flush(&mut self.net) {
            return Turn::Rest;
        }
        if steady.stream.is_broken() {
            return Turn::End(None);
        }
        let side = &mut lease.side;
        // The edge may say that it takes bytes again, and the client may have nothing more to say.
        if self.plant != Plant::ForgetBacklog {
            side.stream.flush(&mut self.net);
        }
        if !side.readable {
            return Turn::Rest;
        }
        let count = match side.stream.receive(&mut self.net, &mut self.scratch) {
            Received::Some(count, more) => {
                side.readable = more;
                count
            }
            Received::Nothing => {
                side.readable = false;
                return Turn::Rest;
            }
            Received::End => return Turn::ServerGone(false),
        };
        let moored = lease.moored;
        self.check_node(moored);
        if steady.link.wants_client_bytes() {
            self.note_lies(session, moored);
        }
        let Some(lease) = &mut steady.lease else { return Turn::Rest };
        let side = &mut lease.side;
        let kept = !side.pending.is_empty();
        if kept {
            side.pending.extend_from_slice(&self.scratch[..count]);
        }
        let input = if kept { &side.pending[..] } else { &self.scratch[..count] };
        self.out.clear();
        let progress = steady.link.on_server(self.net.now, input, &mut self.out);
        steady.stream.send(&mut self.net, &self.out.to_client, input);
        if !self.out.to_client.is_empty() {
            steady.sent.answered();
        }
        side.stream.send(&mut self.net, &self.out.to_server, input);
        let length = input.len();
        keep_rest(&mut side.pending, kept, length, progress.consumed, &self.scratch[..count]);
        steady.stalled = false;
        match progress.then {
            Then::Read | Then::Wait | Then::Pin => Turn::Moved,
            Then::Close(refusal) => Turn::End(refusal.map(|refusal| *refusal)),
            Then::ServerGone(told) => Turn::ServerGone(told),
        }
    }

    fn client_turn(&mut self, session: u32, steady: &mut Steady) -> Turn {
        if steady.stream.is_backed_up() {
            steady.stream.flush(&mut self.net);
        }
        if steady.stream.is_broken() {
            return Turn::End(None);
        }
        if !steady.readable && !steady.unread {
            return Turn::Rest;
        }
        match steady.lease {
            Some(_) => self.with_server(session, steady),
            None if steady.is_orphan => self.orphan_turn(steady),
            None => self.without_server(session, steady),
        }
    }

    fn without_server(&mut self, session: u32, steady: &mut Steady) -> Turn {
        if steady.hung_up && steady.readable {
            match steady.stream.receive(&mut self.net, &mut self.scratch) {
                Received::End => return Turn::End(None),
                Received::Nothing => steady.readable = false,
                Received::Some(count, _) => {
                    steady.pending.extend_from_slice(&self.scratch[..count]);
                    let progress = steady.link.on_client_alone(&steady.pending);
                    steady.pending.drain(..progress.consumed);
                    if let Then::Close(refusal) = progress.then {
                        return Turn::End(refusal.map(|refusal| *refusal));
                    }
                    steady.unread = !steady.pending.is_empty();
                }
            }
            if !steady.unread {
                // Behind what needs no server there may be the end.
                return if steady.readable { Turn::Moved } else { Turn::Rest };
            }
        }
        if steady.ticket.is_some() || steady.link.awaits_channels() {
            return Turn::Rest;
        }
        match self.checkout(session, steady, false) {
            Checkout::Granted => Turn::Moved,
            Checkout::Queued => Turn::Rest,
            Checkout::Refused(refusal) => Turn::End(Some(refusal)),
        }
    }

    fn with_server(&mut self, session: u32, steady: &mut Steady) -> Turn {
        let Some(lease) = &mut steady.lease else { return Turn::Rest };
        let server = &mut lease.side.stream;
        if server.is_backed_up() && !server.flush(&mut self.net) {
            return Turn::Rest;
        }
        if server.is_broken() {
            lease.side.readable = true;
            return Turn::ServerGone(false);
        }
        if !steady.link.wants_client_bytes() || steady.stalled {
            return Turn::Rest;
        }
        let mut count = 0;
        if !steady.unread {
            match steady.stream.receive(&mut self.net, &mut self.scratch) {
                Received::Some(read, more) => {
                    steady.readable = more || steady.hung_up;
                    count = read;
                }
                Received::Nothing => {
                    steady.readable = false;
                    steady.link.client_is_silent();
                    return if steady.link.release_due() { Turn::Moved } else { Turn::Rest };
                }
                Received::End => return Turn::End(None),
            }
        }
        let kept = !steady.pending.is_empty();
        if kept {
            steady.pending.extend_from_slice(&self.scratch[..count]);
        }
        let input = if kept { &steady.pending[..] } else { &self.scratch[..count] };
        self.out.clear();
        let progress = steady.link.on_client(self.net.now, input, &mut self.out);
        server.send(&mut self.net, &self.out.to_server, input);
        steady.stream.send(&mut self.net, &self.out.to_client, input);
        if !self.out.to_client.is_empty() {
            steady.sent.answered();
        }
        steady.sent.note(&input[..progress.consumed]);
        let moored = lease.moored;
        let length = input.len();
        keep_rest(&mut steady.pending, kept, length, progress.consumed, &self.scratch[..count]);
        steady.unread = false;
        if !self.out.to_server.is_empty() {
            self.check_node(moored);
        }
        match progress.then {
            Then::Read | Then::ServerGone(_) => Turn::Moved,
            Then::Pin => {
                steady.unread = true;
                match self.ask_to_keep(session, steady) {
                    Checkout::Granted => Turn::Moved,
                    Checkout::Queued => Turn::Rest,
                    Checkout::Refused(refusal) => Turn::End(Some(refusal)),
                }
            }
            Then::Wait => {
                steady.stalled = true;
                steady.unread = true;
                self.wish(session, steady);
                Turn::Moved
            }
            Then::Close(refusal) => Turn::End(refusal.map(|refusal| *refusal)),
        }
    }

    fn lose_server(&mut self, session: u32, steady: &mut Steady, told: bool) -> bool {
        let was_preparing = steady.lease.is_some() && !steady.link.wants_client_bytes();
        let refusal = crate::lease::broken_preparation(&steady.link);
        let refusal = refusal.or_else(|| steady.link.state_lost());
        let loses_nothing = !told && !was_preparing && steady.link.loses_nothing();
        steady.is_mid_message |= self.is_mid_message(steady);
        if !was_preparing && !told && !steady.is_mid_message && steady.link.may_outlive() {
            return self.outlive(session, steady);
        }
        self.close_server(steady);
        if loses_nothing {
            return true;
        }
        if was_preparing && !told && refusal.is_none() {
            return match self.checkout(session, steady, true) {
                Checkout::Granted => true,
                Checkout::Queued => false,
                Checkout::Refused(refusal) => {
                    self.close(session, steady, Some(refusal));
                    false
                }
            };
        }
        let words = if told { None } else { Some(refusal.unwrap_or(Refusal::ServerCrashed)) };
        self.close(session, steady, words);
        false
    }

    /// `Some` if the session ends; `is_cut` if its server must not be heard any more.
    fn read_mail(&mut self, session: u32, steady: &mut Steady, is_cut: &mut bool) -> Option<Option<Refusal>> {
        let granted = self.sessions[session as usize].granted.take();
        let letters = std::mem::take(&mut self.sessions[session as usize].letters);
        if let Some(granted) = granted {
            self.claim(steady.ticket.is_some(), || {
                format!("session {session} is granted what it does not wait for")
            });
            steady.ticket = None;
            if let Checkout::Refused(refusal) = self.accept(session, steady, granted) {
                return Some(Some(refusal));
            }
        }
        for letter in letters {
            match letter {
                Letter::End(refusal) => return Some(Some(refusal)),
                Letter::Cancel => self.cancel(session, steady),
                Letter::Listening(is_heard) => self.heard(session, steady, is_heard),
                Letter::Policy(policy) => steady.link.set_policy(policy),
                Letter::Cut(server) => {
                    if let Some(lease) = steady.lease.as_mut().filter(|lease| lease.moored == server) {
                        lease.side.stream.break_off();
                        *is_cut = true;
                    }
                }
            }
        }
        None
    }

    fn check_deadlines(&mut self, steady: &mut Steady) -> Option<Refusal> {
        if steady.ticket.is_some() {
            let deadline = steady.waiting_since.deadline(steady.link.policy().query_timeout);
            return (deadline <= self.net.now).then_some(Refusal::QueryTimeout);
        }
        steady.link.on_timeout(self.net.now)
    }

    fn arm(&mut self, session: u32, steady: &mut Steady) {
        let deadline = if steady.ticket.is_none() {
            steady.link.poll_timeout()
        } else {
            steady.waiting_since.deadline(steady.link.policy().query_timeout)
        };
        if deadline < steady.armed {
            steady.armed = deadline;
            self.net.at(deadline, Event::Timer(session));
        }
    }

    /// Whether the client has half a message of its server: words of ours would be read as a part of it.
    fn is_mid_message(&self, steady: &Steady) -> bool {
        let server = steady.link.server();
        self.plant != Plant::WordsInMessage
            && server.is_some_and(|server| server.receiving > 0 && !server.swallowing)
    }

    /// Ends a session.
    pub(crate) fn close(&mut self, session: u32, steady: &mut Steady, refusal: Option<Refusal>) {
        steady.is_over = true;
        self.stop_listening(session, steady);
        self.sessions[session as usize].is_over = true;
        steady.is_mid_message |= self.is_mid_message(steady);
        if let Some(refusal) = refusal.filter(|_| !steady.is_mid_message) {
            let mut words = Vec::new();
            client::refuse::encode(&mut words, &refusal);
            steady.stream.send_bytes(&mut self.net, &words);
        }
        steady.stream.flush(&mut self.net);
        steady.stream.close(&mut self.net);
        if let Some(ticket) = steady.ticket.take() {
            self.homes[steady.home].pool.forget(ticket);
        }
        self.abandon(steady);
        self.return_grant(session);
    }
}

/// Keeps what the link did not take.
fn keep_rest(pending: &mut Vec<u8>, kept: bool, length: usize, consumed: usize, scratch: &[u8]) {
    if kept {
        if consumed == length {
            *pending = Vec::new();
        } else {
            pending.drain(..consumed);
        }
    } else if consumed < length {
        pending.extend_from_slice(&scratch[consumed..]);
    }
}
