//! What is known of a client on its way in.

use client::login::{
    AwaitAcceptance, AwaitChallenge, AwaitServer, AwaitVerdict, Carried, Identity, Login, Transport,
};
use hub::CancelKey;
use model::Moment;

use crate::entry::Place;
use crate::passthrough::Relay;
use crate::shared::Shared;

/// What a login waits for.
pub enum Stage {
    /// Bytes of the client.
    Reading(Login),
    /// How the client must prove itself.
    Challenge(AwaitChallenge),
    /// The outcome of a slow check.
    Verdict(AwaitVerdict),
    /// The first server of its pool, which knows the parameters.
    FirstServer(Box<Admitted>),
    /// Its server, which asks it who it is or lets it in.
    Server(AwaitServer),
    /// Nothing: it is being moved, or over.
    Over,
}

/// A client that may come in and is not told yet.
pub struct Admitted {
    /// Where its login stands.
    pub acceptance: AwaitAcceptance,
    /// Where it goes.
    pub place: Place,
    /// What it asked for that its servers are to be given.
    pub carried: Carried,
    /// What it may cancel by.
    pub key: Option<CancelKey>,
    /// Its place in the queue for the first server.
    pub ticket: Option<pool::Ticket>,
}

/// A client on its way in.
pub struct Entering {
    /// What it waits for.
    pub stage: Stage,
    /// Who it says it is, and where it goes if it proves that.
    pub claimed: Option<(Identity, hub::Seat)>,
    /// The way to the server that lets it in, if one does.
    pub relay: Option<Box<Relay>>,
    /// It came by a Unix socket.
    pub is_unix: bool,
    /// It spoke TLS from the first byte.
    pub is_direct_tls: bool,
    /// Something was read of it.
    pub has_read: bool,
    /// Until when it must be in.
    pub deadline: Moment,
}

impl Entering {
    /// A client that was just accepted.
    pub fn new(shared: &Shared, is_unix: bool, now: Moment) -> Entering {
        let transport = if is_unix { Transport::Plain } else { shared.transport() };
        Entering {
            stage: Stage::Reading(Login::new(transport)),
            claimed: None,
            relay: None,
            is_unix,
            is_direct_tls: false,
            has_read: false,
            deadline: now.deadline(shared.login_timeout()),
        }
    }

    /// It is given up: what it waits for must not find it.
    pub fn abandon(self) {
        if let Stage::FirstServer(admitted) = self.stage
            && let Some(ticket) = admitted.ticket
        {
            admitted.place.home.pool().forget(ticket);
        }
    }
}
