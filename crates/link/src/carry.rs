//! Settings that go with the client: what must be said to a server that has others.

use std::sync::Arc;

use model::Parameters;
use model::parameters::Difference;
use server::{Ledger, Server};
use wire::Header;
use wire::client::tag;

use crate::from_client::is_sendable;
use crate::link::Link;
use crate::out::{Out, Side};
use crate::state::levels::is_identity;

/// The server's settings before anything was set for its client.
pub(crate) struct PutOff(Arc<Parameters>);

impl Link {
    /// What the client logged in with is held against what servers have by themselves: once.
    #[cold]
    pub(crate) fn learn_own(&mut self, server: &mut Server) {
        self.knows_own = true;
        if let Some(own) = server.foreign_to(&self.client.login) {
            self.client.set_own(own);
        }
    }

    /// Whether what is to be set may be sent together with the client's own bytes: a server has taken all of it before,
    /// so that it will not fail and leave the client's statement without. Who the session is must be certain.
    pub(crate) fn may_go_together(&self, server: &Server) -> bool {
        let same = |name: &[u8]| self.client.parameters.value(name) == server.parameters.value(name);
        self.is_proven
            && same(b"role")
            && same(b"session_authorization")
            && server.parameters.value(b"role").is_none()
    }

    /// What was put off until the client has something to say.
    #[cold]
    pub(crate) fn carry_now(&mut self, input: &[u8], out: &mut Out) -> Option<PutOff> {
        // A goodbye needs nothing, and of what is not whole nothing is sent.
        let says = |header: Header| header.tag != tag::TERMINATE && is_sendable(header, input.len());
        if !Header::peek(input).is_some_and(says) {
            return None;
        }
        let mut server = self.server.take()?;
        let before = PutOff(Arc::clone(&server.parameters));
        self.carry_due = false;
        self.carrying = self.carry_parameters(&mut server, out);
        self.server = Some(server);
        Some(before)
    }

    /// Nothing of the client's was sent after all: so nothing is set for it.
    #[cold]
    pub(crate) fn take_back(&mut self, before: PutOff, out: &mut Out) {
        if let Some(server) = &mut self.server {
            server.ledger = Ledger::default();
            server.parameters = before.0;
            out.to_server = Side::default();
            (self.carrying, self.carry_due) = (true, true);
        }
    }

    /// Sets on the server what the client relies on, in one message, and resets what it does not know of.
    /// False if there is nothing to do.
    pub(crate) fn carry_parameters(&mut self, server: &mut Server, out: &mut Out) -> bool {
        self.tell_fixed(server, out);
        let difference = model::parameters::difference(&self.client.parameters, &server.parameters);
        if difference.is_empty() {
            return false;
        }
        let text = carry_query(&difference, &self.client.parameters, &server.parameters);
        let mut parameters = (*server.parameters).clone();
        difference.set.iter().for_each(|parameter| parameters.put(parameter));
        difference.reset.iter().for_each(|name| parameters.remove(name));
        server.owe_query();
        out.to_server.make(|bytes| wire::encode::query(bytes, &text));
        server.parameters = match parameters == *self.client.parameters {
            true => Arc::clone(&self.client.parameters),
            false => Arc::new(parameters),
        };
        true
    }

    /// What no session can set, the client is told as it is on this server.
    fn tell_fixed(&mut self, server: &Server, out: &mut Out) {
        let becomes_another = [b"role".as_slice(), b"session_authorization"]
            .iter()
            .any(|name| self.client.parameters.value(name) != server.parameters.value(name));
        for parameter in server.parameters.iter() {
            // What the server says of whoever it is now is not said of our client: it will say it anew.
            let is_of_another = becomes_another && parameter.name.eq_ignore_ascii_case(b"is_superuser");
            if model::parameters::is_fixed(&parameter.name)
                && !is_of_another
                && self.client.parameters.value(&parameter.name) != Some(&parameter.value)
            {
                self.client.set_parameter(&parameter.name, &parameter.value);
                let (name, value) = (&parameter.name, &parameter.value);
                out.to_client.make(|bytes| wire::encode::parameter_status(bytes, name, value));
            }
        }
    }
}

/// Behind a RESET and within its batch: sets these to what the client is to have.
pub(crate) fn restoring_query(names: &[Arc<[u8]>], wanted: &Parameters) -> Vec<u8> {
    let mut text = b"SELECT ".to_vec();
    for parameter in names.iter().filter_map(|name| wanted.entry(name)).filter(|p| !p.written) {
        if text.last() == Some(&b')') {
            text.push(b',');
        }
        configure(&mut text, &parameter.name, &parameter.value);
    }
    text
}

/// One simple query that sets and resets. `set_config` takes a value as `SHOW` gives it, where `SET` would
/// quote a list such as search_path as one name; `E''` reads alike under either way to treat a backslash.
///
/// Who the session is comes last, because not everybody may set everything; for the same reason a role of the
/// client before is given up first.
fn carry_query(difference: &Difference<'_>, wants: &Parameters, has: &Parameters) -> Vec<u8> {
    let mut text = Vec::with_capacity(64);
    let is_other = |name: &[u8]| {
        difference.set.iter().any(|p| p.name.eq_ignore_ascii_case(name))
            || difference.reset.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    let had_role = has.value(b"role").is_some();
    let is_other_session = is_other(b"session_authorization");
    if had_role {
        reset(&mut text, b"role");
    }
    if is_other_session {
        reset(&mut text, b"session_authorization");
    }
    for name in difference.reset.iter().filter(|name| !is_identity(name)) {
        reset(&mut text, name);
    }
    for parameter in difference.set.iter().filter(|p| p.written && !is_identity(&p.name)) {
        write(&mut text, &parameter.name, &parameter.value);
    }
    let mut others = difference.set.iter().filter(|p| !p.written && !is_identity(&p.name)).peekable();
    let has_others = others.peek().is_some();
    for (index, parameter) in others.enumerate() {
        text.extend_from_slice(if index == 0 { b"SELECT " } else { b"," });
        configure(&mut text, &parameter.name, &parameter.value);
    }
    let mut separates = has_others;
    let mut identity = |name: &[u8]| {
        let Some(parameter) = wants.entry(name) else { return };
        if std::mem::take(&mut separates) {
            text.push(b';');
        }
        if parameter.written {
            write(&mut text, name, &parameter.value);
        } else {
            text.extend_from_slice(b"SELECT ");
            configure(&mut text, name, &parameter.value);
            separates = true;
        }
    };
    if is_other_session {
        identity(b"session_authorization");
    }
    if had_role || is_other_session || is_other(b"role") {
        identity(b"role");
    }
    text
}

fn reset(text: &mut Vec<u8>, name: &[u8]) {
    text.extend_from_slice(b"RESET ");
    quote(text, name, b'"');
    text.push(b';');
}

fn write(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    text.extend_from_slice(b"SET ");
    quote(text, name, b'"');
    text.extend_from_slice(b" TO ");
    text.extend_from_slice(value);
    text.push(b';');
}

fn configure(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    text.extend_from_slice(b"pg_catalog.set_config(E");
    quote(text, name, b'\'');
    text.extend_from_slice(b",E");
    quote(text, value, b'\'');
    text.extend_from_slice(b",false)");
}

pub(crate) fn quote(text: &mut Vec<u8>, word: &[u8], mark: u8) {
    text.push(mark);
    for &byte in word {
        if byte == mark || (byte == b'\\' && mark == b'\'') {
            text.push(byte);
        }
        text.push(byte);
    }
    text.push(mark);
}
