//! One client and what its link makes of both sides' bytes: it does what the shell does, without sockets.

use std::sync::Arc;

use client::Client;
use model::{ClientId, Moment, Parameters, ServerId, Statements};
use server::Server;

use crate::{Granted, Link, Out, Policy, Side, Then};

const NOW: Moment = Moment(1);

/// A client, its link, and what is on its way.
pub struct Seat {
    pub link: Link,
    /// Sent by the client and not dealt with.
    pub from_client: Vec<u8>,
    /// Sent by the server and not dealt with.
    pub from_server: Vec<u8>,
    pub to_client: Vec<u8>,
    pub to_server: Vec<u8>,
    /// It may not make state that keeps its server.
    pub is_denied: bool,
    /// Databases that it makes or drops.
    pub databases: Vec<String>,
    /// What ended it, once something has.
    pub end: Option<Then>,
}

pub fn parameters(pairs: &[(&str, &str, bool)]) -> Arc<Parameters> {
    let mut parameters = Parameters::default();
    for (name, value, reported) in pairs {
        parameters.set(name.as_bytes(), value.as_bytes(), *reported);
    }
    Arc::new(parameters)
}

pub fn server(id: u64, parameters: Arc<Parameters>) -> Box<Server> {
    Box::new(Server::new(ServerId(id), parameters, 1, Box::default(), NOW))
}

pub fn append(to: &mut Vec<u8>, side: &Side, input: &[u8]) {
    for &span in side.spans() {
        to.extend_from_slice(side.bytes(input, span));
    }
}

impl Seat {
    pub fn new(id: u64, policy: &Policy, statements: &Arc<Statements>, parameters: Arc<Parameters>) -> Seat {
        let client = Client::new(ClientId(id), parameters);
        let link = Link::new(client, Arc::new(policy.clone()), Arc::clone(statements), NOW);
        Seat {
            link,
            from_client: Vec::new(),
            from_server: Vec::new(),
            to_client: Vec::new(),
            to_server: Vec::new(),
            is_denied: false,
            databases: Vec::new(),
            end: None,
        }
    }

    pub fn grant(&mut self, server: Box<Server>, check: bool) {
        let mut out = Out::default();
        let granted = self.link.granted(NOW, server, check, &mut out);
        append(&mut self.to_server, &out.to_server, &[]);
        append(&mut self.to_client, &out.to_client, &[]);
        assert_eq!(granted == Granted::Ready, self.link.wants_client_bytes());
        self.run_client();
    }

    pub fn client_says(&mut self, bytes: &[u8]) {
        self.from_client.extend_from_slice(bytes);
        self.run_client();
    }

    pub fn server_says(&mut self, bytes: &[u8]) {
        self.from_server.extend_from_slice(bytes);
        let mut out = Out::default();
        let progress = self.link.on_server(NOW, &self.from_server, &mut out);
        append(&mut self.to_server, &out.to_server, &self.from_server);
        append(&mut self.to_client, &out.to_client, &self.from_server);
        self.from_server.drain(..progress.consumed);
        self.note(progress.then);
        self.run_client();
    }

    fn run_client(&mut self) {
        if self.end.is_some() || !self.link.wants_client_bytes() {
            return;
        }
        loop {
            let mut out = Out::default();
            let progress = self.link.on_client(NOW, &self.from_client, &mut out);
            append(&mut self.to_server, &out.to_server, &self.from_client);
            append(&mut self.to_client, &out.to_client, &self.from_client);
            self.from_client.drain(..progress.consumed);
            let names = out.databases.iter().map(|name| String::from_utf8_lossy(name).into_owned());
            self.databases.extend(names);
            if progress.then != Then::Pin {
                return self.note(progress.then);
            }
            assert!(!self.link.release_due());
            if self.is_denied {
                return;
            }
            self.link.permit();
        }
    }

    fn note(&mut self, then: Then) {
        if self.end.is_none() && matches!(then, Then::Close(_) | Then::ServerGone(_)) {
            self.end = Some(then);
        }
    }

    /// Takes the server back, if it is free.
    pub fn release(&mut self) -> Option<Box<Server>> {
        let is_free = self.end.is_none() && self.link.release_due();
        is_free.then(|| self.leave()).flatten()
    }

    /// Takes the server from a client that is gone.
    pub fn leave(&mut self) -> Option<Box<Server>> {
        self.link.take_server(NOW)
    }
}
