//! Settings of a session: set for it or for a transaction, reset, shown.

use std::rc::Rc;

use super::text::{Reader, unquoted};
use super::{Outcome, Postgres};

/// What the server tells its clients of when it changes.
const REPORTED: [&str; 6] =
    ["DateStyle", "TimeZone", "application_name", "client_encoding", "in_hot_standby", "server_version"];
/// What it keeps to itself, as every session has it.
const UNREPORTED: [(&str, &str); 4] =
    [("extra_float_digits", "1"), ("lock_timeout", "0"), ("role", "none"), ("work_mem", "4MB")];

/// Whether the server tells its clients of changes.
pub(crate) fn is_reported(name: &[u8]) -> bool {
    REPORTED.iter().any(|other| other.as_bytes() == name)
}

/// A name as the server spells it.
fn spelled(name: &[u8]) -> Vec<u8> {
    let known = REPORTED.iter().copied().chain(UNREPORTED.iter().map(|(name, _)| *name));
    let found = known.map(str::as_bytes).find(|known| known.eq_ignore_ascii_case(name));
    found.map_or_else(|| name.to_ascii_lowercase(), <[u8]>::to_vec)
}

impl Postgres {
    /// What SHOW says.
    pub(crate) fn shown(&self, name: &[u8]) -> Option<Vec<u8>> {
        let name = spelled(name);
        let own = self.now.settings.get(&name).cloned();
        own.or_else(|| {
            let found = UNREPORTED.iter().find(|(other, _)| other.as_bytes() == name);
            found.map(|(_, value)| value.as_bytes().to_vec())
        })
    }

    /// Names that were set in this session, and their values.
    pub(super) fn own_settings(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let settings = &self.now.settings;
        self.now.own.iter().map(|name| (&name[..], settings.get(name).map_or(&[][..], |value| &value[..])))
    }

    pub(super) fn set(&mut self, name: &[u8], value: &[u8], is_local: bool) {
        let name = spelled(name);
        if name == b"TimeZone" {
            self.zones.insert(value.to_vec());
        }
        Rc::make_mut(&mut self.now.settings).insert(name.clone(), value.to_vec());
        if !is_local {
            Rc::make_mut(&mut self.now.lasting).insert(name.clone(), value.to_vec());
            Rc::make_mut(&mut self.now.own).insert(name);
        }
    }

    pub(super) fn reset(&mut self, name: &[u8]) {
        let name = spelled(name);
        let value = self.login.get(&name).cloned();
        for settings in [&mut self.now.settings, &mut self.now.lasting] {
            let settings = Rc::make_mut(settings);
            match value.clone() {
                Some(value) => settings.insert(name.clone(), value),
                None => settings.remove(&name),
            };
        }
        Rc::make_mut(&mut self.now.own).remove(&name);
    }

    /// All but who one is.
    pub(super) fn reset_all(&mut self) {
        let names: Vec<Vec<u8>> = self.now.settings.keys().cloned().collect();
        for name in names.iter().filter(|name| **name != b"role") {
            self.reset(name);
        }
    }

    /// `SET [LOCAL] name TO value`, `SET ROLE value`.
    pub(super) fn set_statement(&mut self, rest: &[u8]) -> Outcome {
        let mut reader = Reader(rest);
        let mut name = reader.word();
        let is_local = name == b"LOCAL";
        if is_local {
            name = reader.word();
        }
        let value = if name == b"ROLE" {
            reader.rest()
        } else {
            if !matches!(reader.word(), b"TO" | b"=") {
                return Outcome::Error("42601", "SET".into());
            }
            reader.rest()
        };
        match value {
            b"DEFAULT" => self.reset(&unquoted(name)),
            value => self.set(&unquoted(name), &unquoted(value), is_local),
        }
        self.complete("SET".into())
    }

    /// `RESET name`, `RESET ALL`.
    pub(super) fn reset_statement(&mut self, rest: &[u8]) -> Outcome {
        match rest {
            b"ALL" => self.reset_all(),
            name => self.reset(&unquoted(name)),
        }
        self.complete("RESET".into())
    }

    pub(super) fn show_statement(&mut self, name: &[u8], is_simple: bool) -> Outcome {
        let Some(value) = self.shown(&unquoted(name)) else {
            return Outcome::Error("42704", "unrecognized configuration parameter".into());
        };
        self.rows(&value, 1, 0, is_simple);
        self.complete("SHOW".into())
    }

    /// `SELECT [pg_catalog.]set_config('name', 'value', is_local), ...`
    pub(super) fn set_configs(&mut self, text: &[u8], is_simple: bool) -> Outcome {
        const CALL: &[u8] = b"set_config(";
        let mut rest = text;
        let mut value = None;
        while let Some(at) = rest.windows(CALL.len()).position(|window| window == CALL) {
            let mut reader = Reader(&rest[at + CALL.len()..]);
            let (Some(name), Some(new)) = (reader.string(), reader.string()) else {
                return Outcome::Error("42601", "set_config".into());
            };
            let is_local = reader.rest().starts_with(b"true");
            rest = reader.rest();
            self.set(&name, &new, is_local);
            value = Some(new);
        }
        let Some(value) = value else {
            return Outcome::Error("42601", String::from_utf8_lossy(text).into_owned());
        };
        self.rows(&value, 1, 0, is_simple);
        self.complete("SELECT 1".into())
    }
}
