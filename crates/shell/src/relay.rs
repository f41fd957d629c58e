//! The only loop that moves a client's bytes: read, ask the link, write; first the server's side, then the
//! client's, until neither has anything more.
//!
//! It knows nothing of messages. It reads into the worker's scratch buffer, hands the link what is there and
//! writes the spans that the link names; only what is not whole, or what the kernel does not take, is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use baton::Bits;
use link::{Standing, Tally, Then};
use model::{Moment, Refusal};

use crate::control::Order;
use crate::deadlines;
use crate::fanout;
use crate::journal;
use crate::lease::{self, Checkout};
use crate::leftover::Kept;
use crate::outlive;
use crate::pins;
use crate::session::{Core, Letter, Phase, Session, Steady, news};
use crate::socket::{Received, Stream};
use crate::split::{self, Choice, Split};
use crate::worker::Worker;

/// Reads of one session before others have their turn.
const READS_MAX: usize = 32;

/// What is read of a client that has hung up and waits for a server, in bytes.
const HUNG_UP_BYTES_MAX: usize = 64 << 10;
/// What a client asked before it said goodbye and hung up may take this long; then it is canceled.
const GOODBYE_GRACE: Duration = Duration::from_secs(2);

/// How one side's turn ended.
enum Turn {
    /// Something was moved: look again.
    Moved,
    /// Nothing to do until an edge or an answer comes.
    Rest,
    /// The session ends, with these words if there are any.
    End(Option<Box<Refusal>>),
    /// The server is at its end; `true`: the client knows why.
    ServerGone(bool),
}

/// Does what can be done for a client that is logged in. True if it wants another turn.
pub fn drive(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, happened: Bits) -> bool {
    if happened & news::SERVER_EDGE != 0
        && let Phase::Steady(steady) = &mut core.phase
        && let Some(lease) = &mut steady.lease
    {
        // Without a lease it was for the server before: whoever has that one now has taken note of the edge.
        lease.side.readable |= lease.moored.berth.take_edge();
    }
    if happened & (news::MAIL | news::TIMER) != 0 && !heed(worker, session, core, happened) {
        return false;
    }
    let mut reads = 0;
    loop {
        reads += 1;
        if reads > READS_MAX {
            return true;
        }
        match server_turn(worker, core) {
            Turn::Moved => {
                finish_turn(worker, session, core);
                if is_at_rest(core) {
                    break;
                }
                continue;
            }
            Turn::Rest => {}
            Turn::End(refusal) => {
                close(worker, session, core, refusal.map(|refusal| *refusal));
                return false;
            }
            Turn::ServerGone(told) => {
                if lose_server(worker, session, core, told) {
                    continue;
                }
                return false;
            }
        }
        match client_turn(worker, session, core) {
            Turn::Moved => {
                finish_turn(worker, session, core);
                if is_at_rest(core) {
                    break;
                }
            }
            Turn::Rest => break,
            Turn::End(refusal) => {
                core.has_left = refusal.is_none();
                close(worker, session, core, refusal.map(|refusal| *refusal));
                return false;
            }
            Turn::ServerGone(told) => {
                if !lose_server(worker, session, core, told) {
                    return false;
                }
            }
        }
    }
    if listens(core) {
        fanout::attend(worker, session, core);
    }
    if is_to_leave(core) {
        close(worker, session, core, Some(Refusal::OwnServerLeaves));
        return false;
    }
    deadlines::arm(worker, session, core);
    false
}

#[inline]
fn listens(core: &Core) -> bool {
    matches!(&core.phase, Phase::Steady(steady) if steady.listener.is_some())
}

/// Whether the session is to end with its transaction, and has none.
#[inline]
fn is_to_leave(core: &Core) -> bool {
    let Phase::Steady(steady) = &core.phase else { return false };
    steady.is_leaving && core.pending.is_empty() && steady.link.is_between_transactions()
}

/// Reads the mail and looks at what may be overdue. False if that ended the session.
fn heed(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, happened: Bits) -> bool {
    let mut is_cut = false;
    if happened & news::MAIL != 0
        && let Some(end) = read_mail(worker, session, core, &mut is_cut)
    {
        close(worker, session, core, end);
        return false;
    }
    if is_cut && !lose_server(worker, session, core, false) {
        return false;
    }
    if happened & news::TIMER != 0 {
        core.armed = Moment::NEVER;
        if deadlines::is_preparation_overdue(worker, core) && !lose_server(worker, session, core, false) {
            return false;
        }
        if let Some(refusal) = deadlines::check(worker, core) {
            close(worker, session, core, Some(refusal));
            return false;
        }
    }
    true
}

/// Whether a look at either side would find nothing: so that most turns end after their one move.
#[inline]
fn is_at_rest(core: &Core) -> bool {
    let Phase::Steady(steady) = &core.phase else { return false };
    let is_calm = |stream: &Stream| !stream.is_backed_up() && !stream.is_broken();
    !core.readable
        && !steady.unread
        && steady.leaves_at == Moment::NEVER
        && is_calm(&core.stream)
        && steady.lease.as_ref().is_none_or(|lease| !lease.side.readable && is_calm(&lease.side.stream))
}

fn steady(core: &mut Core) -> Option<(&mut Steady, &mut Stream)> {
    match &mut core.phase {
        Phase::Steady(steady) => Some((steady, &mut core.stream)),
        _ => None,
    }
}

/// After each move: the server goes back as soon as it is free, and the work is counted.
fn finish_turn(worker: &mut Worker, session: &Session, core: &mut Core) {
    let Some((steady, client)) = steady(core) else { return };
    if !worker.out.tally.is_empty() {
        lease::count(&steady.home.counters[usize::from(worker.id.0)], &worker.out.tally);
        worker.out.tally = Tally::default();
    }
    if steady.link.has_pinned_unasked() {
        pins::count_beyond(steady);
    }
    if steady.link.pins().is_some() || steady.pinned.is_some() {
        pins::note(worker, session, steady, client);
    }
    match steady.link.standing() {
        Standing::Kept => {}
        Standing::Free => {
            let outbox = &mut worker.outbox;
            if steady.lease.as_mut().is_some_and(|lease| lease.is_through(outbox)) {
                lease::release(worker, steady);
            }
        }
        Standing::Spoilt => lease::close_server(worker, steady),
    }
}

fn server_turn(worker: &mut Worker, core: &mut Core) -> Turn {
    let Some((steady, client)) = steady(core) else { return Turn::Rest };
    let Some(lease) = &mut steady.lease else { return Turn::Rest };
    // A client that does not read holds its server up, and nobody else.
    if client.is_backed_up() && !client.flush() {
        return Turn::Rest;
    }
    if client.is_broken() {
        return Turn::End(None);
    }
    let side = &mut lease.side;
    if side.stream.is_backed_up() {
        // Its socket may take bytes again; the client may have nothing more to say that would bring us here.
        side.stream.flush();
    }
    if !side.readable {
        return Turn::Rest;
    }
    let count = match side.stream.receive(&mut worker.scratch) {
        Received::Some(count, more) => {
            // Its last bytes and its end can come in one edge: then a short read is not the last.
            side.readable = more || lease.moored.hung_up.load(Ordering::Relaxed);
            count
        }
        Received::Nothing => {
            side.readable = false;
            return Turn::Rest;
        }
        Received::End | Received::Broken => return Turn::ServerGone(false),
    };
    steady.home.counters[usize::from(worker.id.0)].add_sent_bytes(count as u64);
    let kept = Kept::begin(&mut side.pending, &worker.scratch[..count]);
    let input = kept.input(&side.pending, &worker.scratch[..count]);
    worker.out.clear();
    let progress = steady.link.on_server(worker.now, input, &mut worker.out);
    client.send(&worker.out.to_client, input, &mut worker.outbox);
    if let Some(sent) = steady.sent.as_mut().filter(|_| !worker.out.to_client.is_empty())
        && !steady.link.is_taking_back()
    {
        sent.answered();
        steady.link.set_may_retry(false);
    }
    if !worker.out.to_server.is_empty() {
        side.stream.send(&worker.out.to_server, input, &mut worker.outbox);
    }
    kept.end(&mut side.pending, &worker.scratch[..count], progress.consumed);
    steady.stalled = false;
    if steady.home.is_reader && steady.link.is_retry_due() {
        split::again(worker, core);
        return Turn::Moved;
    }
    match progress.then {
        Then::Read | Then::Wait | Then::Pin => Turn::Moved,
        Then::Close(refusal) => Turn::End(refusal),
        Then::ServerGone(told) => Turn::ServerGone(told),
    }
}

fn client_turn(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Turn {
    if core.stream.is_backed_up() {
        core.stream.flush();
    }
    if core.stream.is_broken() {
        return Turn::End(None);
    }
    let Phase::Steady(steady) = &mut core.phase else { return Turn::Rest };
    if steady.leaves_at != Moment::NEVER {
        let is_over = steady.link.is_answered() || (core.hung_up && steady.leaves_at <= worker.now);
        return if is_over { Turn::End(None) } else { Turn::Rest };
    }
    if !core.readable && !steady.unread {
        return Turn::Rest;
    }
    if steady.lease.is_none() {
        return if steady.is_orphan {
            orphan_turn(worker, core)
        } else {
            without_server(worker, session, core)
        };
    }
    with_server(worker, session, core)
}

/// The client has news for a server that is lost.
fn orphan_turn(worker: &mut Worker, core: &mut Core) -> Turn {
    match outlive::listen(worker, core) {
        None => Turn::Rest,
        Some(Then::Close(refusal)) => Turn::End(refusal),
        Some(_) => Turn::Moved,
    }
}

/// The client has news and no server: it is given one before its bytes are read, so that those of a client
/// that waits stay in the kernel. One that has hung up is read, because it may only be saying goodbye.
fn without_server(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Turn {
    let Phase::Steady(steady) = &mut core.phase else { return Turn::Rest };
    // Read to the end: behind a query may lie the reset that makes it nobody's.
    while core.hung_up && core.readable && core.pending.len() < HUNG_UP_BYTES_MAX {
        match core.stream.receive(&mut worker.scratch) {
            Received::Broken => return Turn::End(None),
            // Who has only closed its own side may still want to know.
            Received::End if steady.unread => break,
            Received::End => return Turn::End(None),
            Received::Nothing => core.readable = false,
            Received::Some(count, _) => {
                core.pending.push(&worker.scratch[..count]);
                let progress = steady.link.on_client_alone(&core.pending);
                core.pending.consume(progress.consumed);
                if let Then::Close(refusal) = progress.then {
                    return Turn::End(refusal);
                }
                steady.unread = !core.pending.is_empty();
            }
        }
    }
    if core.hung_up && !steady.unread {
        return Turn::Rest;
    }
    if steady.ticket.is_some() {
        return Turn::Rest;
    }
    if steady.link.awaits_channels() {
        return Turn::Rest;
    }
    if split::of(steady).is_some() {
        match split::decide(worker, core) {
            Choice::Go => {}
            Choice::Rest => return Turn::Rest,
            Choice::End => return Turn::End(None),
        }
    }
    match lease::checkout(worker, session, core) {
        Checkout::Granted => with_server(worker, session, core),
        Checkout::Queued => Turn::Rest,
        Checkout::Refused(refusal) => Turn::End(Some(refusal)),
    }
}

/// A client that has a server has nothing to say, or is gone.
fn without_bytes(now: Moment, core: &mut Core, received: &Received) -> Turn {
    let Phase::Steady(steady) = &mut core.phase else { return Turn::Rest };
    match received {
        Received::Nothing => {
            core.readable = false;
            steady.link.client_is_silent();
            if steady.link.release_due() { Turn::Moved } else { Turn::Rest }
        }
        Received::End if !steady.link.is_answered() => {
            steady.leaves_at = now + GOODBYE_GRACE;
            Turn::Moved
        }
        _ => Turn::End(None),
    }
}

fn with_server(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Turn {
    let Phase::Steady(steady) = &mut core.phase else { return Turn::Rest };
    let Some(lease) = &mut steady.lease else { return Turn::Rest };
    let server = &mut lease.side.stream;
    if server.is_backed_up() && !server.flush() {
        return Turn::Rest;
    }
    if server.is_broken() {
        // What it said before it went may still be there, and says more than we could.
        lease.side.readable = true;
        return Turn::ServerGone(false);
    }
    if !steady.link.wants_client_bytes() || steady.stalled {
        return Turn::Rest;
    }
    let mut count = 0;
    if !steady.unread {
        count = match core.stream.receive(&mut worker.scratch) {
            Received::Some(count, more) => {
                core.readable = more || core.hung_up;
                count
            }
            nothing => return without_bytes(worker.now, core, &nothing),
        };
        steady.home.counters[usize::from(worker.id.0)].add_received_bytes(count as u64);
    }
    core.requested_at = worker.now;
    let kept = Kept::begin(&mut core.pending, &worker.scratch[..count]);
    let mut input = kept.input(&core.pending, &worker.scratch[..count]);
    let mut is_cut = false;
    if steady.sent.as_ref().and_then(|sent| sent.split.as_ref()).is_some_and(Split::goes_by_units) {
        let share = split::share(&mut steady.link, &mut steady.sent, input);
        is_cut = share < input.len();
        input = &input[..share];
    }
    worker.out.clear();
    let progress = steady.link.on_client(worker.now, input, &mut worker.out);
    server.send(&worker.out.to_server, input, &mut worker.outbox);
    core.stream.send(&worker.out.to_client, input, &mut worker.outbox);
    steady.note_sent(&input[..progress.consumed], !worker.out.to_client.is_empty());
    vacate(worker, steady);
    kept.end(&mut core.pending, &worker.scratch[..count], progress.consumed);
    (steady.unread, steady.stalled) = (is_cut, steady.stalled | is_cut);
    match progress.then {
        Then::Read | Then::ServerGone(_) => Turn::Moved,
        Then::Wait => {
            steady.stalled = true;
            steady.unread = true;
            fanout::wish(worker, session, core);
            Turn::Moved
        }
        Then::Pin => {
            steady.unread = true;
            if steady.home.is_reader && split::leave(worker, steady) {
                return Turn::Moved;
            }
            match pins::ask(worker, session, core) {
                Checkout::Granted => Turn::Moved,
                Checkout::Queued => Turn::Rest,
                Checkout::Refused(refusal) => Turn::End(Some(refusal)),
            }
        }
        Then::Close(None) if !steady.link.is_answered() => {
            // What was asked before the goodbye is done and answered, as PostgreSQL does.
            steady.leaves_at = worker.now + GOODBYE_GRACE;
            Turn::Moved
        }
        Then::Close(refusal) => Turn::End(refusal),
    }
}

/// What the client has just sent may concern whole databases.
#[inline]
fn vacate(worker: &mut Worker, steady: &Steady) {
    if !worker.out.databases.is_empty() {
        let names = std::mem::take(&mut worker.out.databases);
        worker.shared.order(Order::Vacate { home: Arc::clone(&steady.home), names });
    }
}

/// The server is gone. True if the client needs not know: it had not said anything to it yet.
fn lose_server(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, told: bool) -> bool {
    let Phase::Steady(steady) = &mut core.phase else { return false };
    let was_preparing = steady.lease.is_some() && !steady.link.wants_client_bytes();
    let refusal = lease::broken_preparation(&steady.link);
    let refusal = refusal.or_else(|| steady.link.state_lost());
    let is_dedicated = steady.link.policy().dedicated;
    let loses_nothing = !told && !was_preparing && !is_dedicated && steady.link.loses_nothing();
    steady.note_mid_message();
    if !was_preparing && !told && !steady.is_mid_message && steady.link.may_outlive() {
        return match outlive::outlive(worker, session, core) {
            Ok(goes_on) => goes_on,
            Err(refusal) => {
                close(worker, session, core, Some(*refusal));
                false
            }
        };
    }
    lease::close_server(worker, steady);
    if loses_nothing {
        return true;
    }
    if was_preparing && !told && refusal.is_none() {
        return match lease::checkout_again(worker, session, core) {
            Checkout::Granted => true,
            Checkout::Queued => false,
            Checkout::Refused(refusal) => {
                close(worker, session, core, Some(*refusal));
                false
            }
        };
    }
    let lost = match is_dedicated {
        true => Refusal::OwnServerLost,
        false => Refusal::ServerCrashed,
    };
    let words = if told { None } else { Some(refusal.unwrap_or(lost)) };
    close(worker, session, core, words);
    false
}

/// Reads the letters. `Some` if the session ends; `is_cut` if its server must not be heard any more.
fn read_mail(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    is_cut: &mut bool,
) -> Option<Option<Refusal>> {
    let (granted, letters) = {
        let mut mail = session.mail.lock();
        (mail.granted.take(), mail.take_letters())
    };
    if let Some(granted) = granted {
        if let Phase::Steady(steady) = &mut core.phase {
            steady.ticket = None;
        }
        match lease::accept(worker, session, core, granted) {
            Checkout::Granted | Checkout::Queued => {}
            Checkout::Refused(refusal) => return Some(Some(*refusal)),
        }
    }
    for letter in letters {
        match letter {
            Letter::End(refusal) => return Some(Some(refusal)),
            Letter::Cancel => lease::cancel(worker, core),
            Letter::Cut(server) => {
                if let Phase::Steady(steady) = &mut core.phase
                    && let Some(lease) = steady.lease.as_mut().filter(|lease| lease.moored.id == server)
                {
                    lease.side.stream.break_off();
                    *is_cut = true;
                }
            }
            Letter::Terms(terms) => {
                if let Phase::Steady(steady) = &mut core.phase {
                    steady.link.set_policy(terms);
                    split::renew(&worker.shared, steady);
                }
            }
            Letter::Leave(server) => {
                if let Phase::Steady(steady) = &mut core.phase {
                    steady.is_leaving |= steady.lease.as_ref().is_some_and(|lease| lease.moored.id == server);
                }
            }
            // For whom was not let in yet.
            letter @ Letter::Dedicated(_) => lease::discard(worker, std::iter::once(letter)),
            Letter::Listening(is_heard) => fanout::heard(session, core, is_heard),
            Letter::Reroute => {
                if let Phase::Steady(steady) = &mut core.phase
                    && steady.home.is_reader
                    && steady.lease.is_none()
                {
                    steady.ticket = None;
                }
            }
            Letter::Asked(_) | Letter::Challenge(_) | Letter::Checked(_) | Letter::Reply(_) => {}
        }
    }
    None
}

/// Ends a session: words for the client, its server cleaned or closed, everything it counted for given back.
pub fn close(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, refusal: Option<Refusal>) {
    if let Phase::Steady(steady) = &mut core.phase {
        steady.note_mid_message();
    }
    fanout::leave(worker, session, core);
    // What it counted for is free before anybody can see that it is gone.
    worker.shared.client_gone(session);
    let phase = std::mem::replace(&mut core.phase, Phase::Closed);
    core.stream.settle(&mut worker.outbox);
    let is_mid_message = matches!(&phase, Phase::Steady(steady) if steady.is_mid_message);
    if let Some(refusal) = refusal.as_ref().filter(|_| !is_mid_message) {
        let mut words = Vec::new();
        client::refuse::encode(&mut words, refusal);
        core.stream.send_bytes(&words, &mut worker.outbox);
    }
    if !core.has_left || (core.readable && !core.hung_up) || !core.stream.is_plain_and_sent() {
        core.stream.farewell(&mut worker.scratch);
    }
    if let Some(token) = session.token.take() {
        worker.shared.workers[usize::from(session.worker.0)].sources.remove(token);
    }
    journal::client_closed(&worker.shared, session, refusal.as_ref());
    match phase {
        Phase::Steady(mut steady) => {
            pins::forget(&worker.shared, &mut steady);
            if let Some(ticket) = steady.ticket.take() {
                steady.home.pool().forget(ticket);
            }
            lease::abandon(worker, &mut steady);
        }
        Phase::Entering(entering) => entering.abandon(),
        Phase::Admin(_) | Phase::Closed => {}
    }
    lease::return_grant(worker, session);
    // What is kept alive by a timer or a waiting thread is only a name.
    core.pending.clear();
}
