//! A small PostgreSQL: one session of it, as its documentation and its wire tell, with a toy for SQL.
//!
//! It knows names, portals, skipping to Sync, transactions, COPY and settings. Two things it takes more
//! simply than PostgreSQL: it looks at a new statement's name before its text, and in a failed transaction it
//! describes nothing but what may run there.

use std::collections::{BTreeMap, VecDeque};

use wire::Header;
use wire::client::{BindHead, Parse, Target};
use wire::encode::{self, Severity};
use wire::server::TransactionStatus as Status;

use super::session::{Kept, Session};

type Fault = &'static str;
type Settings = BTreeMap<String, String>;

/// The setting that the server reports; any other is not.
const REPORTED: &str = "app";

#[derive(Clone, Debug)]
struct Portal {
    text: String,
    rows_sent: usize,
    is_done: bool,
}

#[derive(Clone, Debug)]
struct Copy {
    is_extended: bool,
    rows: usize,
    /// What follows in the same string.
    rest: VecDeque<String>,
}

#[derive(Clone, Debug)]
pub struct Postgres {
    input: Vec<u8>,
    pub output: Vec<u8>,
    statements: BTreeMap<Vec<u8>, String>,
    portals: BTreeMap<Vec<u8>, Portal>,
    status: Status,
    /// Messages of the extended protocol came that no Sync has followed.
    batching: bool,
    skipping: bool,
    copy: Option<Copy>,
    session: Session,
    defaults: Settings,
    /// What a rollback goes back to.
    saved: Option<Kept>,
    /// Savepoints, with what a rollback to them goes back to.
    savepoints: Vec<(String, Kept)>,
    told: String,
    /// The name that was looked for last and is not there.
    unknown: String,
    pub is_dead: bool,
}

impl Postgres {
    pub fn new(defaults: &[(&str, &str)]) -> Postgres {
        let defaults: Settings =
            defaults.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Postgres {
            input: Vec::new(),
            output: Vec::new(),
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            status: Status::Idle,
            batching: false,
            skipping: false,
            copy: None,
            told: defaults.get(REPORTED).cloned().unwrap_or_default(),
            session: Session {
                kept: Kept { settings: defaults.clone(), ..Kept::default() },
                ..Session::default()
            },
            defaults,
            saved: None,
            savepoints: Vec::new(),
            unknown: String::new(),
            is_dead: false,
        }
    }

    /// Whether nothing of what was sent so far would be felt by another client, but names and settings.
    pub fn is_clean(&self) -> bool {
        self.input.is_empty()
            && self.output.is_empty()
            && self.status == Status::Idle
            && !self.batching
            && !self.skipping
            && self.copy.is_none()
            && !self.is_dead
            && self.session.is_clean()
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while let Some(header) = Header::peek(&self.input) {
            let total = header.total() as usize;
            if self.is_dead || self.input.len() < total {
                break;
            }
            let message: Vec<u8> = self.input.drain(..total).collect();
            self.message(header.tag, &message[5..]);
        }
    }

    fn put(&mut self, line: &str) {
        self.output.extend(super::words::server_bytes(line));
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        if self.copy.is_some() {
            return self.copy_message(tag, body);
        }
        match tag {
            b'X' => self.is_dead = true,
            b'S' => {
                self.skipping = false;
                self.finish();
            }
            _ if self.skipping => {}
            b'd' | b'c' | b'f' | b'H' => {}
            b'Q' => {
                self.statements.remove(&b""[..]);
                self.portals.remove(&b""[..]);
                let text = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
                let mut parts: VecDeque<String> =
                    text.split(';').filter(|part| !part.is_empty()).map(str::to_owned).collect();
                if parts.is_empty() {
                    parts.push_back(String::new());
                }
                if parts.iter().any(|part| part == "bad") {
                    self.fail("42601");
                    return self.finish();
                }
                self.run(parts);
            }
            b'F' => {
                match self.status {
                    Status::Failed => self.fail("25P02"),
                    _ => self.put("V"),
                }
                self.finish();
            }
            _ => {
                self.batching = true;
                if let Err(fault) = self.extended(tag, body) {
                    self.fail(fault);
                    self.skipping = true;
                }
            }
        }
    }

    fn copy_message(&mut self, tag: u8, body: &[u8]) {
        let Some(copy) = &mut self.copy else { return };
        let fault = match tag {
            b'd' if body == b"boom" => "22P04",
            b'd' => return copy.rows += 1,
            b'S' | b'H' => return,
            b'c' => {
                let Copy { is_extended, rows, rest } = self.copy.take().expect("checked above");
                self.put(&format!("C(COPY {rows})"));
                if !is_extended {
                    self.run(rest);
                }
                return;
            }
            b'f' => "57014",
            _ => {
                self.put("E(08P01) Fatal(08P01)");
                return self.is_dead = true;
            }
        };
        let is_extended = self.copy.take().is_some_and(|copy| copy.is_extended);
        self.fail(fault);
        if is_extended { self.skipping = true } else { self.finish() }
    }

    /// Statements of one string, and the ReadyForQuery at its end.
    fn run(&mut self, mut parts: VecDeque<String>) {
        while let Some(part) = parts.pop_front() {
            match self.execute(&part, usize::MAX, &mut 0, false) {
                Ok(true) => {
                    self.copy = Some(Copy { is_extended: false, rows: 0, rest: parts });
                    return;
                }
                Ok(false) => {}
                Err(fault) => {
                    self.fail(fault);
                    break;
                }
            }
        }
        self.finish();
    }

    fn extended(&mut self, tag: u8, body: &[u8]) -> Result<(), Fault> {
        match tag {
            b'P' => {
                let parse = Parse::read(body).map_err(|_| "08P01")?;
                let text = String::from_utf8_lossy(parse.query()).into_owned();
                if parse.name.is_empty() {
                    self.statements.remove(&b""[..]);
                } else if self.statements.contains_key(parse.name) {
                    return Err("42P05");
                }
                // An empty text is no statement that could not be run.
                if !text.is_empty() {
                    self.may_run(&text)?;
                }
                if text == "bad" {
                    return Err("42601");
                }
                self.statements.insert(parse.name.into(), text);
                self.put("1");
            }
            b'B' => {
                let head = BindHead::peek(body).ok_or("08P01")?;
                self.unknown.clear();
                let text = self.statements.get(head.statement).ok_or("26000")?.clone();
                self.may_run(&text)?;
                if !head.portal.is_empty() && self.portals.contains_key(head.portal) {
                    return Err("42P03");
                }
                self.portals.insert(head.portal.into(), Portal { text, rows_sent: 0, is_done: false });
                self.put("2");
            }
            b'D' => {
                let (target, name) = wire::client::target(body).map_err(|_| "08P01")?;
                let text = match target {
                    Target::Statement => self.statements.get(name).ok_or("26000")?,
                    Target::Portal => &self.portals.get(name).ok_or("34000")?.text,
                };
                self.may_run(text)?;
                let shape = if self.has_rows(text) { "T" } else { "n" };
                self.put(if target == Target::Statement { "t" } else { "" });
                self.put(shape);
            }
            b'C' => {
                let (target, name) = wire::client::target(body).map_err(|_| "08P01")?;
                match target {
                    Target::Statement => drop(self.statements.remove(name)),
                    Target::Portal => drop(self.portals.remove(name)),
                }
                self.put("3");
            }
            b'E' => {
                let name = body.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
                let most = u32::from_be_bytes(*body.last_chunk().ok_or("08P01")?) as usize;
                let mut portal = self.portals.get(&name).ok_or("34000")?.clone();
                self.may_run(&portal.text)?;
                if portal.is_done && !self.has_rows(&portal.text) {
                    return Err("55000");
                }
                let most = if most == 0 { usize::MAX } else { most };
                portal.is_done = true;
                if self.execute(&portal.text, most, &mut portal.rows_sent, true)? {
                    self.copy = Some(Copy { is_extended: true, rows: 0, rest: VecDeque::new() });
                }
                if self.portals.contains_key(&name) {
                    self.portals.insert(name, portal);
                }
            }
            _ => return Err("08P01"),
        }
        Ok(())
    }

    fn has_rows(&self, text: &str) -> bool {
        let named = |name: &str| self.statements.get(name.as_bytes());
        match (text.strip_prefix("execute "), text.strip_prefix("explain execute ")) {
            (Some(name), _) => named(name).is_some_and(|text| has_rows(text)),
            (_, Some(name)) => named(name).is_some(),
            _ => has_rows(text),
        }
    }

    fn may_run(&self, text: &str) -> Result<(), Fault> {
        let ends = matches!(text, "rollback" | "commit" | "ROLLBACK") || text.starts_with("rollback to ");
        if self.status == Status::Failed && !ends {
            return Err("25P02");
        }
        Ok(())
    }

    /// Runs one statement. True if it waits for CopyData.
    fn execute(
        &mut self,
        text: &str,
        most: usize,
        sent: &mut usize,
        is_extended: bool,
    ) -> Result<bool, Fault> {
        if is_extended || !text.is_empty() {
            self.may_run(text)?;
        }
        self.saved.get_or_insert_with(|| self.session.kept.clone());
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        if self.has_rows(text) && !is_extended {
            self.put("T");
        }
        if let Some(answer) = self.session.statement(text, &self.defaults) {
            self.put(&answer?);
            return Ok(false);
        }
        match (verb, first) {
            ("", _) => self.put("I"),
            ("savepoint", name) => {
                if self.status == Status::Idle {
                    return Err("25P01");
                }
                self.savepoints.push((name.to_owned(), self.session.kept.clone()));
                self.put("C(SAVEPOINT)");
            }
            ("release", name) => {
                let at = self.savepoints.iter().rposition(|(other, _)| other == name).ok_or("3B001")?;
                self.savepoints.truncate(at);
                self.put("C(RELEASE)");
            }
            ("rollback", "to") => {
                let name = second;
                let at = self.savepoints.iter().rposition(|(other, _)| other == name).ok_or("3B001")?;
                self.savepoints.truncate(at + 1);
                self.session.kept = self.savepoints[at].1.clone();
                self.status = Status::InTransaction;
                self.put("C(ROLLBACK)");
            }
            ("select" | "show" | "rows", _) => {
                let value = self.session.kept.settings.get(rest).cloned().unwrap_or_default();
                let value = if verb == "show" { value.as_str() } else { rest };
                let count = if verb == "rows" { rest.parse().expect("a number") } else { 1_usize };
                let now = most.min(count - *sent);
                self.put(&format!("D({value}) ").repeat(now));
                *sent += now;
                let is_over = *sent < count || now == most;
                self.put(&if is_over { "s".to_owned() } else { format!("C(SELECT {now})") });
            }
            ("SELECT", _) => {
                self.configure(rest);
                self.put("D(1) C(SELECT 1)");
            }
            ("begin", _) => {
                self.status = Status::InTransaction;
                self.put("C(BEGIN)");
            }
            ("commit", _) if self.status != Status::Failed => {
                self.put("C(COMMIT)");
                self.end_transaction(true);
            }
            ("commit" | "rollback" | "ROLLBACK", _) => {
                self.put("C(ROLLBACK)");
                self.end_transaction(false);
            }
            ("set", _) if !rest.contains('=') => {
                self.session.kept.settings.insert(first.to_owned(), second.to_owned());
                self.put("C(SET)");
            }
            ("copy", "in") => {
                self.put("G");
                return Ok(true);
            }
            ("copy", "boom") => {
                self.put("G");
                return Err("23514");
            }
            ("copy", _) => self.put("H d(1) d(2) c C(COPY 2)"),
            ("deallocate", "all") => {
                self.statements.clear();
                self.put("C(DEALLOCATE ALL)");
            }
            ("deallocate", name) => {
                self.unknown = name.to_owned();
                self.statements.remove(name.as_bytes()).ok_or("26000")?;
                self.put("C(DEALLOCATE)");
            }
            ("discard" | "DISCARD", _) if self.status != Status::Idle => return Err("25001"),
            ("discard" | "DISCARD", _) => {
                self.statements.clear();
                self.portals.clear();
                self.session.discard(&self.defaults);
                self.put("C(DISCARD ALL)");
            }
            ("prepare" | "PREPARE", name) => {
                let body = second.strip_prefix("as ").ok_or("42601")?;
                if self.statements.contains_key(name.as_bytes()) {
                    return Err("42P05");
                }
                if body == "wrong" {
                    return Err("42P01");
                }
                self.statements.insert(name.as_bytes().to_vec(), body.to_owned());
                self.put("C(PREPARE)");
            }
            ("execute" | "EXECUTE", name) => {
                self.unknown = name.to_owned();
                let text = self.statements.get(name.as_bytes()).ok_or("26000")?.clone();
                return self.execute(&text, most, sent, true);
            }
            ("explain", "execute") => {
                self.unknown = second.to_owned();
                self.statements.get(second.as_bytes()).ok_or("26000")?;
                self.put("D(plan) C(EXPLAIN)");
            }
            // Of something else: what was prepared gives what it gave.
            ("alter", _) => self.put("C(ALTER TABLE)"),
            ("fail", _) => return Err("22012"),
            _ => return Err("42601"),
        }
        Ok(false)
    }

    /// The pooler's own way to set: `pg_catalog.set_config(E'name',E'value',false),...`.
    fn configure(&mut self, calls: &str) {
        for call in calls.split("pg_catalog.set_config(").skip(1) {
            let words: Vec<&str> =
                call.split("E'").skip(1).map(|word| word.split('\'').next().unwrap_or("")).collect();
            self.session.kept.settings.insert(words[0].to_owned(), words[1].to_owned());
        }
    }

    fn fail(&mut self, code: Fault) {
        let words = match code {
            "26000" => format!("prepared statement \"{}\" does not exist", self.unknown),
            _ => String::new(),
        };
        encode::report(&mut self.output, Severity::Error, code, &words, None);
        match self.status {
            Status::Idle => self.end_transaction(false),
            _ => self.status = Status::Failed,
        }
    }

    fn end_transaction(&mut self, is_commit: bool) {
        let saved = self.saved.take();
        if !is_commit && let Some(saved) = saved {
            self.session.kept = saved;
        }
        self.savepoints.clear();
        self.status = Status::Idle;
        self.portals.clear();
    }

    /// The end of a string or batch, which ends its implicit transaction.
    fn finish(&mut self) {
        self.batching = false;
        if self.status == Status::Idle {
            self.end_transaction(true);
        }
        let value = self.session.kept.settings.get(REPORTED).cloned().unwrap_or_default();
        if value != self.told {
            encode::parameter_status(&mut self.output, REPORTED.as_bytes(), value.as_bytes());
            self.told = value;
        }
        encode::ready_for_query(&mut self.output, self.status);
    }
}

fn has_rows(text: &str) -> bool {
    ["select ", "show ", "rows ", "SELECT "].iter().any(|verb| text.starts_with(verb))
}
