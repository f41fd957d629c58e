//! Settings from a connection string alone: `postgres://user[:password]@host[:port]/db?sslmode=...`.
//!
//! Decides what each part of the URL means for us; the defaults are explained at
//! [`Settings::from_url`](crate::Settings::from_url).

use std::net::Ipv4Addr;

use model::PoolMode;

use crate::host::Host;
use crate::nearest::nearest;
use crate::problem::{Place, Problem, ProblemKind};
use crate::settings::Settings;
use crate::table::{DATABASE, Database, GENERAL, General, Key};
use crate::value::Kind;
use crate::words::AuthType;

/// The settings, or every problem of the URL.
pub(crate) fn settings(text: &str) -> Result<Settings, Vec<Problem>> {
    let mut url = Url {
        text,
        general: General {
            listen_addr: vec!["127.0.0.1".to_owned()],
            unix_socket_dir: String::new(),
            pool_mode: PoolMode::Transaction,
            auth_type: AuthType::Any,
            ..General::default()
        },
        database: Database::default(),
        is_password_cut: false,
        problems: Vec::new(),
    };
    url.read();
    if url.database.hosts.is_empty() {
        url.database.hosts.push(Host::Ip(Ipv4Addr::LOCALHOST.into()));
    }
    if url.database.user.is_none() && url.problems.is_empty() {
        url.problem(0, "user", ProblemKind::MissingValue);
    }
    if !url.problems.is_empty() {
        return Err(url.problems);
    }
    let name = url.database.dbname.clone().or(url.database.user.clone()).unwrap_or_default();
    let mut database = url.database;
    database.dbname = Some(name.clone());
    if name == "pgbouncer" {
        // The console has this name, so the database is reached as any other name there is.
        return Ok(Settings { general: url.general, autodb: Some(database), ..Settings::default() });
    }
    let databases = [(name, database)].into();
    Ok(Settings { general: url.general, databases, ..Settings::default() })
}

struct Url<'a> {
    text: &'a str,
    general: General,
    database: Database,
    is_password_cut: bool,
    problems: Vec<Problem>,
}

impl Url<'_> {
    fn read(&mut self) {
        let text = self.text;
        let scheme = ["postgres://", "postgresql://"].into_iter().find(|scheme| text.starts_with(scheme));
        let Some(scheme) = scheme else {
            return self.problem(0, "", ProblemKind::UrlNotPostgres);
        };
        let rest = &text[scheme.len()..];
        let (rest, query) = cut(rest, '?');
        let (authority, path) = cut(rest, '/');
        // A password may hold an `@` that nobody escaped; a host may not.
        let (user, hosts) = match authority.rfind('@') {
            Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
            None => (None, authority),
        };
        if let Some(user) = user {
            let (user, password) = cut(user, ':');
            self.set("user", user);
            self.set("password", password.unwrap_or(""));
        }
        self.hosts(hosts);
        self.set("dbname", path.unwrap_or(""));
        self.is_password_cut = query.is_some_and(|query| query.contains('@'));
        for parameter in query.unwrap_or("").split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = cut(parameter, '=');
            match value {
                Some(value) => self.parameter(key, value),
                None => self.problem(self.offset(parameter), "", ProblemKind::MissingEquals),
            }
        }
    }

    fn hosts(&mut self, text: &str) {
        let mut names = Vec::new();
        let mut ports: Vec<&str> = Vec::new();
        for host in text.split(',').filter(|host| !host.is_empty()) {
            let (name, port) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
                Some((ipv6, rest)) => (ipv6, rest.strip_prefix(':')),
                None => cut(host, ':'),
            };
            if !name.is_empty() {
                names.push(name);
            }
            ports.extend(port);
        }
        if ports.windows(2).any(|pair| pair[0] != pair[1]) {
            self.problem(self.offset(text), "port", ProblemKind::UrlPortsDiffer);
        }
        for name in names {
            let Some(value) = self.decode("host", name) else { continue };
            match Host::parse(&value.text) {
                Some(host) => self.database.hosts.push(host),
                None => {
                    let mut problem = self.place(self.offset(name)).problem("host", ProblemKind::BadValue);
                    problem.allowed = Some(Kind::Host.allowed());
                    self.problems.push(problem);
                }
            }
        }
        self.set("port", ports.first().unwrap_or(&""));
    }

    fn parameter(&mut self, key: &str, value: &str) {
        if let Some((_, general)) = TO_GENERAL.iter().find(|(name, _)| *name == key) {
            let Some(value) = self.decode(key, value) else { return };
            let place = self.place(self.offset(value.piece));
            if let Some(found) = Key::find(GENERAL, general)
                && !(found.set)(&mut self.general, &value.text)
            {
                self.problems
                    .push(Problem { key: key.to_owned(), ..place.bad_value(&found.spec, &value.text) });
            }
        } else if TO_DATABASE.contains(&key) {
            self.set(key, value);
        } else {
            let known = TO_GENERAL.iter().map(|(name, _)| *name).chain(TO_DATABASE);
            // With an `@` behind the `?`, this may be the end of a password that nobody escaped.
            let shown = if self.is_password_cut { "" } else { key };
            let problem = Problem {
                allowed: Some(known.clone().collect::<Vec<_>>().join(", ")),
                nearest: nearest(shown, known).map(str::to_owned),
                ..self.place(self.offset(value)).problem(shown, ProblemKind::UrlParameter)
            };
            self.problems.push(problem);
        }
    }

    /// Sets a key of the database from a piece of the URL; an empty piece is none.
    fn set(&mut self, key: &str, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let Some(value) = self.decode(key, piece) else { return };
        let place = self.place(self.offset(piece));
        if let Some(found) = Key::find(DATABASE, key)
            && !(found.set)(&mut self.database, &value.text)
        {
            self.problems.push(place.bad_value(&found.spec, &value.text));
        }
    }

    /// Undoes the URL's `%` escapes.
    fn decode<'b>(&mut self, key: &str, piece: &'b str) -> Option<Decoded<'b>> {
        let mut bytes = Vec::with_capacity(piece.len());
        let mut rest = piece.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                self.problem(self.offset(piece), key, ProblemKind::UrlBadEscape);
                return None;
            };
            bytes.extend(u8::try_from(high * 16 + low));
            rest = &after[2..];
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Some(Decoded { text, piece }),
            _ => {
                self.problem(self.offset(piece), key, ProblemKind::UrlBadEscape);
                None
            }
        }
    }

    /// Where a piece begins in the text it was cut from.
    fn offset(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len())
    }

    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let column = u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX);
        Place { file: "URL".into(), line: 1, column }
    }

    fn problem(&mut self, at: usize, key: &str, kind: ProblemKind) {
        let problem = self.place(at).problem(key, kind);
        self.problems.push(problem);
    }
}

/// A piece of the URL and the text it stands for.
struct Decoded<'b> {
    text: String,
    piece: &'b str,
}

/// What is before the first `mark`, and what is behind it if there is one.
fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

/// libpq's parameters that are keys of a database here.
const TO_DATABASE: [&str; 7] =
    ["host", "port", "user", "password", "dbname", "application_name", "client_encoding"];

/// libpq's parameters and the general keys they set.
const TO_GENERAL: [(&str, &str); 5] = [
    ("sslmode", "server_tls_sslmode"),
    ("sslrootcert", "server_tls_ca_file"),
    ("sslcert", "server_tls_cert_file"),
    ("sslkey", "server_tls_key_file"),
    ("connect_timeout", "server_connect_timeout"),
];
