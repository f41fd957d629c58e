//! Clients that log in to a server of their own (`pool_mode = passthrough`): let into their pool first, so that all
//! limits hold, and then brought together with a server that asks them who they are.
//!
//! The control plane has the server until it has said yes; its questions come here by letter, and the answers go back
//! by a channel whose end tells that the client is gone.

use std::sync::Arc;

use client::login::{Answer, AwaitServer, Carried, Identity, Parameter, Requested};
use hub::{CancelKey, Seat};
use model::Refusal;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::connect::Other;
use crate::entering::{Admitted, Stage};
use crate::entry::{Entry, Place};
use crate::journal;
use crate::session::{Letter, Session};
use crate::shared::Shared;

/// A login that a server judges.
pub struct Relay {
    place: Place,
    key: Option<CancelKey>,
    answers: UnboundedSender<Answer>,
}

/// The client is let into its pool, and a server is to be asked about it.
///
/// # Errors
/// What stands against it before any server is asked.
pub fn begin(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    (identity, seat): &(Identity, Seat),
    requested: Requested,
    is_tls: bool,
) -> Result<Relay, Refusal> {
    if !seat.is_passthrough() {
        // Changed since it was asked for a proof.
        return Err(Refusal::DatabaseChanged);
    }
    let (entry, key) = shared.enter(session, seat, identity, client::login::Evidence::None)?;
    let Entry::Pool(place) = entry else { return Err(Refusal::NotAllowed) };
    journal::login_attempt(shared, session);
    let mut carried = requested.verbatim();
    add_host(&mut carried, shared, session);
    let (answers, from_client) = unbounded_channel();
    let (told, to) = (Arc::clone(session), Arc::clone(shared));
    let tell = move |said| to.post(&told, Letter::Asked(said));
    let binding = shared.client_tls.load().channel_binding.clone().filter(|_| is_tls);
    let other = Other { answers: from_client, binding, tell: Box::new(tell), was_told: false };
    shared.open_dedicated(session, &place.home, identity, &carried, Some(other));
    Ok(Relay { place, key, answers })
}

impl Relay {
    /// The client has answered.
    pub fn answer(&self, answer: Answer) {
        // Whoever no longer listens has said why by letter, or will.
        let _ = self.answers.send(answer);
    }

    /// The server has let the client in.
    pub fn let_in(self, shared: &Shared, session: &Session, waiting: AwaitServer) -> Admitted {
        let Relay { place, key, .. } = self;
        shared.let_in(session, &place.home);
        let carried = Carried::default();
        Admitted { acceptance: waiting.let_in(), place, carried, key, ticket: None }
    }
}

/// A login that is ended by the limit of time: whether it waited for a server, and not the server for it.
pub fn waits_for_server(stage: &Stage) -> bool {
    matches!(stage, Stage::FirstServer(_) | Stage::Server(_))
}

/// `application_name_add_host`, on the client's own startup message.
fn add_host(carried: &mut Carried, shared: &Shared, session: &Session) {
    let Some(suffix) = shared.application_name_suffix(session) else { return };
    let name = b"application_name";
    let named = carried.parameters.iter_mut().rev().find(|own| own.name.eq_ignore_ascii_case(name));
    match named {
        Some(own) => own.value = [&*own.value, suffix.as_bytes()].concat().into(),
        None => {
            let value = ["app", &suffix].concat().into_bytes().into();
            carried.parameters.push(Parameter { name: name.as_slice().into(), value });
        }
    }
}
