//! A client's login: bytes to the machine, its wants to the hub and the control plane, answers back.

use std::sync::Arc;

use baton::Bits;
use client::login::{
    Authenticated, AwaitAcceptance, AwaitServer, Carried, Greeting, Identity, Login, Next, Requested, Step,
    Transport,
};
use hub::CancelKey;
use link::Link;
use model::parameters::Parameters;
use model::{Moment, Refusal};
use wire::server::TransactionStatus;

use crate::admin::Admin;
use crate::entering::{Admitted, Entering, Stage};
use crate::entry::{Entry, Place, link_policy};
use crate::home::Home;
use crate::journal;
use crate::lease;
use crate::moored::Moored;
use crate::passthrough;
use crate::reception::{Kind, Reception};
use crate::relay;
use crate::session::{ClientFacts, Core, Letter, Phase, Session, Steady, news};
use crate::shared::{Identified, Shared};
use crate::socket::Received;
use crate::split::Split;
use crate::worker::Worker;

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// What came of a step.
enum Outcome {
    /// Look again.
    On,
    /// Wait for bytes, an answer or the deadline.
    Wait,
    /// The connection ends, with words or without.
    End(Option<Refusal>),
}

/// Does what can be done. True if it wants another turn.
pub fn drive(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, happened: Bits) -> bool {
    let mut out = Vec::new();
    let mut outcome = Outcome::On;
    if happened & news::MAIL != 0 {
        outcome = read_mail(worker, session, core, &mut out);
    }
    if happened & news::TIMER != 0 {
        core.armed = Moment::NEVER;
        if let Phase::Entering(entering) = &core.phase
            && entering.deadline <= worker.now
        {
            let waits = passthrough::waits_for_server(&entering.stage);
            outcome = Outcome::End(Some(Refusal::ClientLoginTimeout(waits)));
        }
    }
    while let Outcome::On = outcome {
        outcome = read(worker, session, core, &mut out);
    }
    core.stream.send_bytes(&out, &mut worker.outbox);
    if let Outcome::End(refusal) = outcome {
        relay::close(worker, session, core, refusal);
        return false;
    }
    match &core.phase {
        Phase::Entering(entering) => {
            if entering.deadline < core.armed {
                core.armed = entering.deadline;
                worker.timers.arm(entering.deadline, session);
            }
            false
        }
        // It is in: what it sent behind its password is dealt with at once.
        Phase::Steady(_) | Phase::Admin(_) => true,
        Phase::Closed => false,
    }
}

fn entering(core: &mut Core) -> Option<&mut Entering> {
    match &mut core.phase {
        Phase::Entering(entering) => Some(entering),
        _ => None,
    }
}

fn read_mail(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, out: &mut Vec<u8>) -> Outcome {
    let (granted, letters) = {
        let mut mail = session.mail.lock();
        (mail.granted.take(), mail.take_letters())
    };
    let mut outcome = Outcome::On;
    if let Some(granted) = granted {
        // The server was asked for only to know its parameters, which its pool has noted by now.
        if let Some((conn, _)) = granted.server.berth.take_for(Arc::clone(session)) {
            lease::give_back(worker, &granted.server, conn);
        }
        if let Some(entering) = entering(core)
            && let Stage::FirstServer(mut admitted) = std::mem::replace(&mut entering.stage, Stage::Over)
        {
            admitted.ticket = None;
            outcome = receive(worker, session, core, *admitted, Known::ByPool, out);
        }
    }
    let mut letters = letters.into_iter();
    while let Some(letter) = letters.next() {
        let Some(entering) = entering(core) else {
            // It is in: what else there is concerns its session. The gate is ours, so it is seen next.
            let _ours = session.send(letter);
            continue;
        };
        let stage = std::mem::replace(&mut entering.stage, Stage::Over);
        let next = match (letter, stage) {
            (Letter::Challenge(challenge), Stage::Challenge(state)) => state.identified(challenge, out),
            (Letter::Checked(checked), Stage::Verdict(state)) => state.checked(checked),
            (Letter::End(Refusal::QueryWaitTimeout), Stage::FirstServer(_)) => {
                // The login's own limit, kept by the pool.
                lease::discard(worker, letters);
                return Outcome::End(Some(Refusal::ClientLoginTimeout(true)));
            }
            (Letter::End(refusal), _) => {
                lease::discard(worker, letters);
                return Outcome::End(Some(refusal));
            }
            (Letter::Asked(said), Stage::Server(state)) => state.said(&said.message, said.is_question, out),
            (Letter::Dedicated(Ok(moored)), Stage::Server(state)) => {
                outcome = let_in(worker, session, core, state, moored, out);
                continue;
            }
            (Letter::Dedicated(Ok(moored)), Stage::FirstServer(admitted)) => {
                let own = moored.berth.look(|_, conn| conn.map(|conn| Arc::clone(&conn.machine.parameters)));
                outcome = receive(worker, session, core, *admitted, Known::Own(own), out);
                if let Some(refusal) = lease::accept_dedicated(worker, session, core, moored) {
                    outcome = Outcome::End(Some(refusal));
                }
                continue;
            }
            (Letter::Dedicated(Err(refusal)), _) => return Outcome::End(Some(refusal)),
            (letter, stage) => {
                entering.stage = stage;
                lease::discard(worker, std::iter::once(letter));
                continue;
            }
        };
        outcome = follow(worker, session, core, next, out);
    }
    outcome
}

/// The client's own server has let it in.
fn let_in(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    state: AwaitServer,
    moored: Arc<Moored>,
    out: &mut Vec<u8>,
) -> Outcome {
    let Some(relay) = entering(core).and_then(|entering| entering.relay.take()) else {
        lease::discard(worker, std::iter::once(Letter::Dedicated(Ok(moored))));
        return Outcome::End(None);
    };
    let admitted = relay.let_in(&worker.shared, session, state);
    count_login(worker, &admitted.place.home);
    let own = moored.berth.look(|_, conn| conn.map(|conn| Arc::clone(&conn.machine.parameters)));
    let outcome = receive(worker, session, core, admitted, Known::Own(own), out);
    let refused = lease::accept_dedicated(worker, session, core, Arc::clone(&moored));
    // What became known of its node meanwhile was said to nobody.
    worker.shared.judge(&moored);
    match refused {
        Some(refusal) => Outcome::End(Some(refusal)),
        None => outcome,
    }
}

/// Reads what is there and gives it to the machine.
fn read(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, out: &mut Vec<u8>) -> Outcome {
    let Some(entering) = entering(core) else { return Outcome::Wait };
    if !matches!(&entering.stage, Stage::Reading(login) if login.reads()) {
        // A client that leaves while it waits is noticed by its hang-up.
        if core.hung_up {
            return watch_hang_up(worker, core);
        }
        return Outcome::Wait;
    }
    if !core.readable {
        return Outcome::Wait;
    }
    match core.stream.receive(&mut worker.scratch) {
        Received::End | Received::Broken => return Outcome::End(None),
        Received::Nothing => {
            core.readable = false;
            return Outcome::Wait;
        }
        Received::Some(count, more) => {
            core.readable = more || core.hung_up;
            if begins_tls(core, worker.scratch[0]) {
                return direct_tls(worker, core, count);
            }
            core.pending.push(&worker.scratch[..count]);
        }
    }
    step(worker, session, core, out)
}

fn watch_hang_up(worker: &mut Worker, core: &mut Core) -> Outcome {
    if !core.readable || core.pending.len() > client::login::INPUT_BYTES_MAX {
        return Outcome::Wait;
    }
    match core.stream.receive(&mut worker.scratch) {
        Received::End | Received::Broken => Outcome::End(None),
        Received::Nothing => {
            core.readable = false;
            Outcome::Wait
        }
        Received::Some(count, _) => {
            core.pending.push(&worker.scratch[..count]);
            Outcome::On
        }
    }
}

fn begins_tls(core: &mut Core, first: u8) -> bool {
    let is_plain = core.stream.tls().is_none();
    let Some(entering) = entering(core) else { return false };
    let is_first = !std::mem::replace(&mut entering.has_read, true);
    is_first && is_plain && !entering.is_unix && first == TLS_HANDSHAKE
}

/// TLS from the first byte (`sslnegotiation=direct`): the bytes read are the handshake's.
fn direct_tls(worker: &mut Worker, core: &mut Core, count: usize) -> Outcome {
    let Some(tls) = worker.shared.accept_tls() else { return Outcome::End(None) };
    core.stream.start_tls(tls);
    if !core.stream.feed_tls(&worker.scratch[..count]) {
        return Outcome::End(None);
    }
    if let Some(entering) = entering(core) {
        entering.is_direct_tls = true;
        entering.stage = Stage::Reading(Login::new(Transport::Tls));
    }
    core.readable = true;
    Outcome::On
}

fn step(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, out: &mut Vec<u8>) -> Outcome {
    // Whoever speaks TLS at once must say what for, so that no other protocol's bytes can be meant for us.
    let speaks_postgresql =
        core.stream.tls().is_some_and(|tls| tls.alpn_protocol() == Some(crate::tls::ALPN));
    let Some(entering) = entering(core) else { return Outcome::Wait };
    if entering.is_direct_tls && !speaks_postgresql {
        return Outcome::End(None);
    }
    let Stage::Reading(login) = std::mem::replace(&mut entering.stage, Stage::Over) else {
        return Outcome::Wait;
    };
    let Step { consumed, next } = login.handle(&core.pending, out);
    core.pending.consume(consumed.min(core.pending.len()));
    follow(worker, session, core, next, out)
}

fn follow(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    next: Next,
    out: &mut Vec<u8>,
) -> Outcome {
    let Some(entering) = entering(core) else { return Outcome::Wait };
    match next {
        Next::Read(Login::Server(state)) => {
            entering.stage = Stage::Server(state);
            Outcome::Wait
        }
        Next::Read(login) => {
            entering.stage = Stage::Reading(login);
            if core.pending.is_empty() { Outcome::On } else { unread(core) }
        }
        Next::Relayed(requested, state) => {
            entering.stage = Stage::Server(state);
            relay(worker, session, core, requested)
        }
        Next::Answer(answer, state) => {
            entering.stage = Stage::Server(state);
            if let Some(relay) = &entering.relay {
                relay.answer(answer);
            }
            Outcome::Wait
        }
        Next::StartTls(state) => {
            entering.stage = Stage::Reading(state.established());
            let Some(tls) = worker.shared.accept_tls() else { return Outcome::End(None) };
            core.stream.send_bytes(out, &mut worker.outbox);
            out.clear();
            core.stream.start_tls(tls);
            Outcome::On
        }
        Next::Identify(identity, state) => {
            entering.stage = Stage::Challenge(state);
            let (seat, answer) = worker.shared.identify(session, &core.stream, &identity);
            if let Phase::Entering(entering) = &mut core.phase {
                entering.claimed = Some((identity, seat));
            }
            match answer {
                Identified::Later => Outcome::Wait,
                Identified::Now(challenge) => challenged(worker, session, core, challenge, out),
            }
        }
        Next::CheckPassword(check, state) => {
            entering.stage = Stage::Verdict(state);
            worker.shared.check_password(session, check);
            Outcome::Wait
        }
        Next::Authenticated(authenticated, acceptance) => {
            let Some(claimed) = entering.claimed.take() else { return Outcome::End(None) };
            admit(worker, session, core, claimed, authenticated, acceptance, out)
        }
        Next::Cancel { process_id, key } => {
            worker.shared.cancel_request(session, process_id, &key, &mut worker.runnable);
            Outcome::End(None)
        }
        Next::Refuse(refusal) => Outcome::End(Some(refusal)),
        Next::Close(_) => Outcome::End(None),
    }
}

/// The client is to log in to a server of its own.
fn relay(worker: &mut Worker, session: &Arc<Session>, core: &mut Core, requested: Requested) -> Outcome {
    let Some(claimed) = entering(core).and_then(|entering| entering.claimed.take()) else {
        return Outcome::End(None);
    };
    let facts = ClientFacts::of(&core.stream, &claimed);
    session.mail.lock().who = Some(worker.shared.share_facts(facts));
    let is_tls = core.stream.tls().is_some();
    match passthrough::begin(&worker.shared, session, &claimed, requested, is_tls) {
        Ok(relay) => {
            if let Some(entering) = entering(core) {
                entering.relay = Some(Box::new(relay));
            }
            Outcome::Wait
        }
        Err(refusal) => Outcome::End(Some(refusal)),
    }
}

/// Bytes are left that the machine could not use yet: more are needed, if more are there.
fn unread(core: &Core) -> Outcome {
    if core.readable { Outcome::On } else { Outcome::Wait }
}

fn challenged(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    challenge: client::login::Challenge,
    out: &mut Vec<u8>,
) -> Outcome {
    let Some(entering) = entering(core) else { return Outcome::Wait };
    match std::mem::replace(&mut entering.stage, Stage::Over) {
        Stage::Challenge(state) => {
            let next = state.identified(challenge, out);
            follow(worker, session, core, next, out)
        }
        stage => {
            entering.stage = stage;
            Outcome::Wait
        }
    }
}

/// The client has proved who it is: may it come in?
fn admit(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    claimed: (Identity, hub::Seat),
    authenticated: Authenticated,
    acceptance: AwaitAcceptance,
    out: &mut Vec<u8>,
) -> Outcome {
    let Authenticated { evidence, requested } = authenticated;
    let facts = ClientFacts::of(&core.stream, &claimed);
    let (identity, seat) = claimed;
    session.mail.lock().who = Some(worker.shared.share_facts(facts));
    let (entry, key) = match worker.shared.enter(session, &seat, &identity, evidence) {
        Ok(entered) => entered,
        Err(refusal) => return Outcome::End(Some(refusal)),
    };
    // A kind of client that was here before is not judged again.
    let known = known(&entry);
    if let (Some(known), Entry::Pool(place)) = (&known, &entry)
        && let Some(reception) = place.home.receptions.find(&place.policy, known, &requested)
    {
        journal::login_attempt(&worker.shared, session);
        count_login(worker, &place.home);
        let home = Arc::clone(&place.home);
        return welcome(worker, session, core, home, acceptance, &reception, key, out);
    }
    let asked = requested.clone();
    let carried = match entry.settle(requested) {
        Ok(carried) => carried,
        Err(refusal) => return Outcome::End(Some(refusal)),
    };
    journal::login_attempt(&worker.shared, session);
    let place = match entry {
        Entry::Console(role) => return open_console(core, role, acceptance, key, out),
        // Who has proved itself to us only gets no server by that.
        Entry::Pool(place) if place.is_passthrough => return Outcome::End(Some(Refusal::DatabaseChanged)),
        Entry::Pool(place) => place,
    };
    count_login(worker, &place.home);
    let mut admitted = Admitted { acceptance, place, carried, key, ticket: None };
    if admitted.place.is_replication {
        worker.shared.open_dedicated(session, &admitted.place.home, &identity, &admitted.carried, None);
    } else if let Some(known) = known {
        let kind = Kind { policy: Arc::clone(&admitted.place.policy), known, requested: asked };
        return receive(worker, session, core, admitted, Known::Kind(kind), out);
    } else {
        let home = Arc::clone(&admitted.place.home);
        let deadline = worker.now.deadline(worker.shared.login_timeout());
        let answer = home.pool().checkout(worker.now, worker.id, session, deadline);
        match answer {
            pool::Checkout::Refused(error) => return Outcome::End(Some(error.cached_refusal())),
            pool::Checkout::Queued { ticket, open } => {
                admitted.ticket = Some(ticket);
                worker.shared.open_servers(&home, open);
            }
            pool::Checkout::Granted(grant) => {
                // A server became idle between the two looks.
                if let Some((conn, _)) = grant.server.berth.take_for(Arc::clone(session)) {
                    lease::give_back(worker, &grant.server, conn);
                }
                return receive(worker, session, core, admitted, Known::ByPool, out);
            }
        }
    }
    if let Some(entering) = entering(core) {
        entering.stage = Stage::FirstServer(Box::new(admitted));
    }
    Outcome::Wait
}

fn count_login(worker: &Worker, home: &Home) {
    home.counters[usize::from(worker.id.0)].add_client_login_count(1);
}

/// What the client's pool knows of its servers' parameters; nothing where its server is to be its own.
fn known(entry: &Entry) -> Option<Arc<Parameters>> {
    match entry {
        Entry::Pool(place) if !place.is_dedicated() => place.home.welcome.lock().clone(),
        Entry::Pool(_) | Entry::Console(_) => None,
    }
}

fn open_console(
    core: &mut Core,
    role: console::Role,
    acceptance: AwaitAcceptance,
    key: Option<CancelKey>,
    out: &mut Vec<u8>,
) -> Outcome {
    let parameters = console::welcome(crate::VERSION);
    let parameters = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    greet(acceptance, &Greeting::new(parameters, &[]), key, out);
    core.phase = Phase::Admin(Box::new(Admin { console: console::Session::new(role) }));
    Outcome::Wait
}

/// What is known of the server's parameters.
enum Known {
    /// What its pool knows, for clients of this kind.
    Kind(Kind),
    /// What its pool knows.
    ByPool,
    /// What the server reported that is the client's alone.
    Own(Option<Arc<Parameters>>),
}

/// Makes what the client is told, and lets it in.
fn receive(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    admitted: Admitted,
    known: Known,
    out: &mut Vec<u8>,
) -> Outcome {
    let Admitted { acceptance, place, carried, key, .. } = admitted;
    let is_dedicated = place.is_dedicated();
    let Place { home, policy, .. } = place;
    let (own, kind) = match known {
        Known::Kind(kind) => (Some(Arc::clone(&kind.known)), Some(kind)),
        Known::ByPool => (None, None),
        Known::Own(own) => (own, None),
    };
    let known = own.or_else(|| home.welcome.lock().clone()).unwrap_or_default();
    let (terms, parameters) = if is_dedicated {
        (Arc::new(link_policy(&policy, true)), known)
    } else {
        (home.receptions.terms(&policy), merge(&known, &carried, session, &worker.shared))
    };
    let notice = Some(policy.login_notify_message.as_str()).filter(|text| !text.is_empty());
    let reported = parameters.iter().filter(|parameter| parameter.reported);
    let told = reported.map(|parameter| (&*parameter.name, &*parameter.value));
    let greeting = Greeting::new(told, notice.as_slice());
    let reception = Arc::new(Reception { terms, parameters, greeting });
    // With its address in it, what a client is told is its own.
    if let Some(kind) = kind.filter(|_| !policy.application_name_add_host) {
        home.receptions.keep(kind, &reception);
    }
    welcome(worker, session, core, home, acceptance, &reception, key, out)
}

fn greet(acceptance: AwaitAcceptance, greeting: &Greeting, key: Option<CancelKey>, out: &mut Vec<u8>) {
    let accepted = acceptance.accepted(out);
    match &key {
        Some(key) => accepted.welcome(greeting, key.process_id, key.secret(), out),
        None => accepted.welcome(greeting, 0, &[0; 4], out),
    }
    wire::encode::ready_for_query(out, TransactionStatus::Idle);
}

/// Tells the client about its session, and begins it.
#[expect(clippy::too_many_arguments, reason = "all of it is the login's outcome, used once")]
fn welcome(
    worker: &mut Worker,
    session: &Arc<Session>,
    core: &mut Core,
    home: Arc<Home>,
    acceptance: AwaitAcceptance,
    reception: &Reception,
    key: Option<CancelKey>,
    out: &mut Vec<u8>,
) -> Outcome {
    greet(acceptance, &reception.greeting, key, out);
    let machine = client::Client::new(session.id, Arc::clone(&reception.parameters));
    let statements = Arc::clone(&home.statements);
    let unread = !core.pending.is_empty();
    if !unread {
        // The room that the login took; an idle client keeps none.
        core.pending.clear();
    }
    let sent = Split::begin(&worker.shared, &home, reception.terms.splits);
    core.phase = Phase::Steady(Steady {
        link: Link::new(machine, Arc::clone(&reception.terms), statements, worker.now),
        home,
        ticket: None,
        waiting_since: Moment::NEVER,
        told_queued: false,
        wants_pin: false,
        pinned: None,
        is_sure: false,
        lease: None,
        listener: None,
        stalled: false,
        unread,
        leaves_at: Moment::NEVER,
        is_leaving: false,
        is_mid_message: false,
        sent,
        is_orphan: false,
    });
    core.armed = Moment::NEVER;
    core.requested_at = worker.now;
    Outcome::Wait
}

/// What the client relies on: what the pool's first server reported, and what it asked for itself. Clients that
/// ask for nothing share the pool's own set.
fn merge(known: &Arc<Parameters>, carried: &Carried, session: &Session, shared: &Shared) -> Arc<Parameters> {
    let host_suffix = shared.application_name_suffix(session);
    if carried.parameters.is_empty() && host_suffix.is_none() {
        return Arc::clone(known);
    }
    let mut parameters = (**known).clone();
    // PostgreSQL does not heed it there: who logs in stays who it is, until SET says otherwise.
    let is_heeded = |name: &[u8]| !name.eq_ignore_ascii_case(b"session_authorization");
    for parameter in carried.parameters.iter().filter(|parameter| is_heeded(&parameter.name)) {
        parameters.set(&parameter.name, &parameter.value, false);
    }
    if let Some(suffix) = host_suffix {
        let name = parameters.value(b"application_name").filter(|name| !name.is_empty()).unwrap_or(b"app");
        let name = [name, suffix.as_bytes()].concat();
        parameters.set(b"application_name", &name, false);
    }
    if parameters == **known { Arc::clone(known) } else { shared.share_parameters(parameters) }
}
