//! What the server itself says of its session's state: asked where the words leave doubt, in one query over its own
//! views, between two transactions.
//!
//! Each row has three columns: the kind, a name, a value. A kind of which there is no row is not there.

use std::sync::Arc;

use model::Moment;
use model::parameters::Parameter;

use crate::channels::Channel;
use crate::from_server::Ear;
use crate::link::Link;
use crate::out::Out;
use crate::state::State;
use crate::state::deed::Kinds;
use crate::state::levels;
use sql::state::Reason;

/// What was asked, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Census {
    kinds: Kinds,
    unknown: Vec<Box<[u8]>>,
    unlisten: Vec<Channel>,
    found: Kinds,
    settings: Vec<(Box<[u8]>, Option<Box<[u8]>>)>,
    bytes: usize,
    failed: bool,
}

/// So often in a row it may fail.
const FAILURES_MAX: u8 = 3;
/// More than this a session's settings do not come to, in bytes.
const BYTES_MAX: usize = 256 << 10;

/// The letter of each kind and how it is found. Every name is of `pg_catalog`, whatever the search_path.
const QUESTIONS: [(Kinds, u8, &str); 5] = [
    (
        Kinds::LOCKS,
        b'l',
        "EXISTS(SELECT FROM pg_catalog.pg_locks WHERE locktype OPERATOR(pg_catalog.=) 'advisory' \
         AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())",
    ),
    (
        Kinds::TEMP,
        b't',
        "pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0 AND (\
         EXISTS(SELECT FROM pg_catalog.pg_class WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
         OR EXISTS(SELECT FROM pg_catalog.pg_type WHERE typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
         OR EXISTS(SELECT FROM pg_catalog.pg_proc WHERE pronamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()))",
    ),
    (Kinds::CURSORS, b'c', "EXISTS(SELECT FROM pg_catalog.pg_cursors WHERE is_holdable)"),
    (Kinds::LISTEN, b'n', "EXISTS(SELECT FROM pg_catalog.pg_listening_channels())"),
    (
        Kinds::PREPARED,
        b'p',
        // Those with our names go with their clients.
        "EXISTS(SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql \
         AND pg_catalog.left(name, 7) OPERATOR(pg_catalog.<>) 'howdah_')",
    ),
];

/// Whether the session remembers what a sequence has given. Asked alone: where it does not, it answers an error.
const SEQUENCES: &[u8] = b"SELECT 'q',NULL::pg_catalog.text,CAST(pg_catalog.lastval() AS pg_catalog.text)";
/// SQLSTATE of `lastval is not yet defined in this session`.
const NOT_DEFINED: &str = "55000";
/// SQLSTATE of a sequence that is remembered, and may not be read.
const NOT_ALLOWED: &str = "42501";

/// The query that asks for these kinds and for the values of these settings.
fn query(kinds: Kinds, unknown: &[Box<[u8]>]) -> Vec<u8> {
    if kinds == Kinds::SEQUENCES {
        return SEQUENCES.to_vec();
    }
    let mut text = Vec::with_capacity(256);
    let mut select = |part: &dyn Fn(&mut Vec<u8>)| {
        if !text.is_empty() {
            text.extend_from_slice(b" UNION ALL ");
        }
        part(&mut text);
    };
    for (_, letter, condition) in QUESTIONS.iter().filter(|(kind, ..)| kinds.has(*kind)) {
        select(&|text| {
            text.extend_from_slice(b"SELECT '");
            text.push(*letter);
            text.extend_from_slice(b"',NULL::pg_catalog.text,NULL::pg_catalog.text WHERE ");
            text.extend_from_slice(condition.as_bytes());
        });
    }
    if kinds.has(Kinds::SETTINGS) {
        select(&|text| {
            text.extend_from_slice(
                b"SELECT 's',name,pg_catalog.current_setting(name,true) FROM pg_catalog.pg_settings \
                  WHERE source OPERATOR(pg_catalog.=) 'session'",
            );
        });
        // No list of settings has it.
        select(&|text| {
            text.extend_from_slice(
                b"SELECT 'r','role',pg_catalog.current_setting('role') \
                  WHERE pg_catalog.current_setting('role') OPERATOR(pg_catalog.<>) 'none'",
            );
        });
    }
    for name in unknown {
        select(&|text| {
            text.extend_from_slice(b"SELECT 'v',E");
            crate::carry::quote(text, name, b'\'');
            text.extend_from_slice(b",pg_catalog.current_setting(E");
            crate::carry::quote(text, name, b'\'');
            text.extend_from_slice(b",true)");
        });
    }
    text
}

impl Census {
    /// A row has come, or one that cannot be read.
    pub(crate) fn row(&mut self, body: Option<&[u8]>) {
        let Some([kind, name, value]) = body.and_then(columns) else {
            self.failed = true;
            return;
        };
        self.bytes += name.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
        match (kind, name) {
            (Some([b's' | b'r' | b'v']), Some(name)) if self.bytes <= BYTES_MAX => {
                self.settings.push((name.into(), value.map(Box::from)));
            }
            (Some(b"q"), _) => self.found = self.found.with(Kinds::SEQUENCES),
            (Some([letter]), _) => match QUESTIONS.iter().find(|(_, other, _)| other == letter) {
                Some((kind, ..)) => self.found = self.found.with(*kind),
                None => self.failed = true,
            },
            _ => self.failed = true,
        }
    }

    pub(crate) fn asks_for_sequences(&self) -> bool {
        self.kinds.has(Kinds::SEQUENCES)
    }

    /// Whether the server is only told to listen no more.
    pub(crate) fn asks_nothing(&self) -> bool {
        self.kinds.is_empty() && self.unknown.is_empty()
    }

    pub(crate) fn fail(&mut self, code: &str) {
        match code {
            NOT_DEFINED if self.kinds == Kinds::SEQUENCES => {}
            NOT_ALLOWED if self.kinds == Kinds::SEQUENCES => self.found = Kinds::SEQUENCES,
            _ => self.failed = true,
        }
    }
}

fn columns(body: &[u8]) -> Option<[Option<&[u8]>; 3]> {
    let mut rest = body.strip_prefix(&[0, 3])?;
    let mut columns = [None; 3];
    for column in &mut columns {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
            *column = Some(rest.get(..length)?);
            rest = &rest[length..];
        }
    }
    rest.is_empty().then_some(columns)
}

impl State {
    /// The server has told what it has, or could not.
    pub(crate) fn conclude(
        &mut self,
        census: Census,
        client: &mut client::Client,
        server: &mut server::Server,
    ) {
        if census.failed {
            self.failures += 1;
            if self.failures >= FAILURES_MAX {
                return self.held.add(Reason::Unread, "");
            }
            // Somebody's cancel request may have hit it: so it is asked again.
            self.doubts = self.doubts.with(census.kinds);
            self.unknown.extend(census.unknown);
            self.unlisten.extend(census.unlisten);
            return;
        }
        self.failures = 0;
        if !census.settings.is_empty() || census.kinds.has(Kinds::SETTINGS) {
            client.note_new_set();
        }
        self.held.shown(census.kinds, census.found);
        if census.kinds.has(Kinds::SETTINGS) {
            self.forget_all_but(&census, client, server);
        }
        for (name, value) in &census.settings {
            if levels::is_reported(name, server) || model::parameters::is_fixed(name) {
                continue;
            }
            for parameters in [&mut client.parameters, &mut server.parameters] {
                levels::edit(parameters, |parameters| match value {
                    Some(value) => parameters.set_as(name, value, false),
                    None => parameters.remove(name),
                });
            }
        }
    }

    /// What the server knows and has not as the session's own is not there any more. Names with a point may be of
    /// nobody's, which no view shows.
    fn forget_all_but(&self, census: &Census, client: &mut client::Client, server: &mut server::Server) {
        let is_shown =
            |name: &[u8]| census.settings.iter().any(|(shown, _)| shown.eq_ignore_ascii_case(name));
        let is_gone = |p: &&Parameter| !p.reported && !p.name.contains(&b'.') && !is_shown(&p.name);
        let gone: Vec<_> = server.parameters.iter().filter(is_gone).map(|p| Arc::clone(&p.name)).collect();
        for name in gone {
            levels::edit(&mut server.parameters, |parameters| parameters.remove(&name));
            levels::edit(&mut client.parameters, |parameters| parameters.remove(&name));
        }
    }
}

impl Link {
    /// The server is ready, and nothing is owed: whatever is in doubt, it is asked for.
    #[cold]
    pub(crate) fn ask(&mut self, out: &mut Out) {
        let (Some(state), Some(server)) = (&mut self.state, &mut self.server) else { return };
        let is_wanted = !state.doubts.is_empty() || !state.unknown.is_empty() || !state.unlisten.is_empty();
        // A statement of the client's that waits for this server to be quiet goes before it is told to listen no more.
        let is_put_off = self.unheard && state.doubts.is_empty() && state.unknown.is_empty();
        let is_due = is_wanted && !is_put_off && state.census.is_none();
        let is_idle = server.status == wire::server::TransactionStatus::Idle;
        if !is_due || !is_idle || !server.is_quiet() || self.client.sending > 0 {
            return;
        }
        let (mut kinds, unknown) = (std::mem::take(&mut state.doubts), std::mem::take(&mut state.unknown));
        let unlisten = std::mem::take(&mut state.unlisten);
        let others = kinds.without(Kinds::SEQUENCES);
        if kinds.has(Kinds::SEQUENCES) && !(others.is_empty() && unknown.is_empty() && unlisten.is_empty()) {
            (kinds, state.doubts) = (others, Kinds::SEQUENCES);
        }
        let mut text = Vec::new();
        for channel in &unlisten {
            text.extend_from_slice(b"UNLISTEN ");
            crate::carry::quote(&mut text, channel, b'"');
            text.push(b';');
        }
        text.extend_from_slice(&query(kinds, &unknown));
        server.owe_query();
        server.ledger.mark_last_census();
        out.to_server.make(|bytes| wire::encode::query(bytes, &text));
        state.census = Some(Census { kinds, unknown, unlisten, ..Census::default() });
    }

    /// The question may be answered.
    #[cold]
    pub(crate) fn heed_answer(&mut self, now: Moment, out: &mut Out) {
        let (Some(state), Some(server)) = (&mut self.state, &mut self.server) else { return };
        let is_idle = server.ledger.is_empty() && server.status == wire::server::TransactionStatus::Idle;
        if is_idle && state.census.is_none() && state.held.settle(now) {
            out.tally.pins += 1;
        }
    }
}

impl Ear<'_> {
    /// A row of the answer.
    #[cold]
    pub(crate) fn counted(&mut self, body: Option<&[u8]>) {
        if let Some(census) = self.state.as_deref_mut().and_then(|state| state.as_mut()?.census.as_mut()) {
            census.row(body);
        }
    }
}
