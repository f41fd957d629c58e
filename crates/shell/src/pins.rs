//! Clients that keep their server for the state they left in it: whether they may, and what is said of those that do.

use std::fmt::Write as _;
use std::sync::Arc;

use link::{Pins, Reason};
use stats::{Counted, PinKind};

use crate::journal;
use crate::lease::{self, Checkout};
use crate::outbox::Outbox;
use crate::session::{Core, Phase, Session, Steady};
use crate::shared::Shared;
use crate::socket::Stream;
use crate::worker::Worker;

/// What is counted about a client that keeps its server.
#[derive(Default)]
pub struct Noted {
    reasons: Vec<(Reason, Counted)>,
}

/// The client's next statement would keep its server. Either it may, or it gives it back and waits until it may:
/// its bytes are looked at again with the server that it then has.
pub fn ask(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> Checkout {
    let Phase::Steady(steady) = &mut core.phase else { return Checkout::Queued };
    let Some(lease) = &mut steady.lease else { return Checkout::Queued };
    if lease.moored.home.pool().pin(lease.moored.slot) {
        steady.link.permit();
        return Checkout::Granted;
    }
    let is_through = lease.is_through(&mut worker.outbox);
    let is_clean = is_through && steady.link.server().is_some_and(|server| server.is_shareable());
    if !is_clean {
        // What is set on it for this client is not answered yet: before that nobody else may have it.
        steady.stalled = true;
        return Checkout::Granted;
    }
    steady.wants_pin = true;
    steady.link.client_is_silent();
    lease::give_up(worker, steady);
    lease::checkout(worker, session, core)
}

/// The client has made state in the middle of something, where nobody is asked.
#[cold]
pub fn count_beyond(steady: &Steady) {
    if let Some(lease) = &steady.lease {
        lease.moored.home.pool().pin_beyond(lease.moored.slot);
    }
}

/// After a move: a client may keep its server only now, or no longer, or for other reasons.
#[cold]
pub fn note(worker: &mut Worker, session: &Session, steady: &mut Steady, client: &mut Stream) {
    let Some(pins) = steady.link.pins() else {
        forget(&worker.shared, steady);
        return;
    };
    let is_new = steady.pinned.is_none();
    let noted = steady.pinned.get_or_insert_default();
    let is_same = noted.reasons.iter().map(|(reason, _)| *reason).eq(pins.reasons());
    if is_same {
        return;
    }
    let mut counts = worker.shared.pins.lock();
    let mut kept = Vec::new();
    for (reason, counted) in noted.reasons.drain(..) {
        match pins.has(reason) {
            true => kept.push((reason, counted)),
            false => counts.end(counted),
        }
    }
    for reason in pins.reasons() {
        let counted = match kept.iter().position(|(other, _)| *other == reason) {
            Some(at) => kept.swap_remove(at).1,
            None => counts.begin(kind(
                session,
                steady.link.client.parameters.value(b"application_name"),
                pins,
                reason,
            )),
        };
        noted.reasons.push((reason, counted));
    }
    drop(counts);
    if is_new {
        let words = words(pins);
        journal::pinned(session, &words);
        if steady.link.policy().notify_pins {
            notify(client, &words, &mut worker.outbox);
        }
    }
}

/// A client keeps its server no more.
#[cold]
pub fn forget(shared: &Shared, steady: &mut Steady) {
    if let Some(noted) = steady.pinned.take() {
        let mut counts = shared.pins.lock();
        noted.reasons.into_iter().for_each(|(_, counted)| counts.end(counted));
    }
}

/// Why, between commas.
pub fn reasons(pins: &Pins) -> String {
    pins.reasons().map(|reason| reason.says().0).collect::<Vec<_>>().join(", ")
}

fn kind(session: &Session, application_name: Option<&[u8]>, pins: &Pins, reason: Reason) -> PinKind {
    let who = session.who();
    let (what, _, instead) = reason.says();
    PinKind {
        database: who.as_ref().map(|who| who.database.clone()).unwrap_or_default(),
        user: who.as_ref().map(|who| who.user.clone()).unwrap_or_default(),
        application_name: String::from_utf8_lossy(application_name.unwrap_or_default()).into_owned(),
        reason: what,
        statement: pins.verb.to_string(),
        hint: instead,
    }
}

/// What kept it, until when, and what to do instead.
fn words(pins: &Pins) -> String {
    let mut words = String::new();
    for reason in pins.reasons() {
        let (what, until, instead) = reason.says();
        let gap = if words.is_empty() { "" } else { "; " };
        let _ = write!(words, "{gap}{what} by {}, until {until}; instead: {instead}", pins.verb);
    }
    words
}

fn notify(client: &mut Stream, words: &str, outbox: &mut Outbox) {
    let mut notice = Vec::new();
    wire::encode::report(
        &mut notice,
        wire::encode::Severity::Notice,
        wire::sqlstate::SUCCESSFUL_COMPLETION,
        &format!("the pooler keeps a server for this session alone: {words}"),
        None,
    );
    client.send_bytes(&notice, outbox);
}
