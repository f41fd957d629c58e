//! Settings that go with the client: what must be said to a server that has others.

use std::sync::Arc;

use model::Parameters;
use model::parameters::Difference;
use server::Server;

use crate::link::Link;
use crate::out::Out;
use crate::state::levels::is_identity;

impl Link {
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
        server.parameters = Arc::new(parameters);
        true
    }

    /// What no session can set, the client is told as it is on this server.
    fn tell_fixed(&mut self, server: &Server, out: &mut Out) {
        for parameter in server.parameters.iter() {
            if model::parameters::is_fixed(&parameter.name)
                && self.client.parameters.value(&parameter.name) != Some(&parameter.value)
            {
                self.client.set_parameter(&parameter.name, &parameter.value);
                let (name, value) = (&parameter.name, &parameter.value);
                out.to_client.make(|bytes| wire::encode::parameter_status(bytes, name, value));
            }
        }
    }
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
