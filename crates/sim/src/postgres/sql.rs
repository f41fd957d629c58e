//! The few statements that the small PostgreSQL understands. Each names its owner: a tag such as `c12.5`.

use std::collections::VecDeque;
use std::rc::Rc;

use wire::encode;
use wire::server::TransactionStatus;

use super::{Copying, Outcome, Postgres, Running};

/// Whether the server tells its clients of changes.
pub(super) fn is_reported(name: &[u8]) -> bool {
    name != b"extra_float_digits"
}

/// Whether a statement answers rows.
pub(super) fn has_rows(text: &[u8]) -> bool {
    [&b"ECHO"[..], b"SLEEP", b"SHOW", b"SELECT"].iter().any(|word| text.starts_with(word))
}

/// The statements of a simple query.
pub(super) fn split(text: &[u8]) -> VecDeque<Vec<u8>> {
    let mut list = VecDeque::from([Vec::new()]);
    let mut is_quoted = false;
    for &byte in text {
        match byte {
            b';' if !is_quoted => list.push_back(Vec::new()),
            _ => {
                is_quoted ^= byte == b'\'';
                list.back_mut().expect("it is never empty").push(byte);
            }
        }
    }
    list.retain(|statement| !statement.is_empty());
    list
}

/// The text of a prepared statement with its one value in place.
pub(super) fn with_value(text: &[u8], value: &[u8]) -> Vec<u8> {
    match text.windows(2).position(|pair| pair == b"$1") {
        Some(at) => [&text[..at], value, &text[at + 2..]].concat(),
        None => text.to_vec(),
    }
}

fn number(word: Option<&[u8]>) -> usize {
    word.and_then(|word| std::str::from_utf8(word).ok()).and_then(|word| word.parse().ok()).unwrap_or(0)
}

impl Postgres {
    /// Executes one statement. `is_simple`: with a row description. `sent`: rows that a portal has given
    /// already; at most `most` more, unless that is 0. Answers the rows given so far.
    pub(super) fn execute(
        &mut self,
        text: &[u8],
        is_simple: bool,
        sent: usize,
        most: usize,
    ) -> (Outcome, usize) {
        if text.is_empty() {
            self.out.extend_from_slice(&encode::EMPTY_QUERY);
            return (Outcome::Complete, sent);
        }
        let mut words = text.split(|&byte| byte == b' ');
        let verb = words.next().unwrap_or_default();
        let first = words.next();
        if matches!(verb, b"ECHO" | b"SLEEP" | b"FAIL" | b"COPYIN" | b"COPYOUT") {
            self.last_tag = first.map(<[u8]>::to_vec);
        }
        let tag = first.unwrap_or_default();
        let outcome = match verb {
            b"ECHO" => {
                let (rows, size) = (number(words.next()), number(words.next()));
                let left = rows.saturating_sub(sent);
                let now = if most == 0 { left } else { left.min(most) };
                self.rows(&[tag, owner_of(text)].concat(), now, size, is_simple);
                if most > 0 && now == most {
                    return (Outcome::Suspended, sent + now);
                }
                self.complete(format!("SELECT {now}"));
                return (Outcome::Complete, sent + now);
            }
            b"SLEEP" => {
                let micros = number(words.next()) as u64;
                self.running = Some(Running { tag: tag.to_vec(), micros, is_described: is_simple });
                Outcome::Runs
            }
            b"FAIL" => Outcome::Error("22012", String::from_utf8_lossy(tag).into_owned()),
            b"COPYIN" => {
                encode::message(&mut self.out, b'G', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
                self.copying = Some(Copying { tag: tag.to_vec(), rows: 0 });
                Outcome::Copies
            }
            b"COPYOUT" => {
                let rows = number(words.next());
                encode::message(&mut self.out, b'H', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
                for _ in 0..rows {
                    encode::message(&mut self.out, b'd', |out| out.extend_from_slice(tag));
                }
                encode::message(&mut self.out, b'c', |_| {});
                self.complete(format!("COPY {rows}"))
            }
            _ => self.utility(text, verb, tag, words.next(), is_simple),
        };
        (outcome, sent)
    }

    fn utility(
        &mut self,
        text: &[u8],
        verb: &[u8],
        name: &[u8],
        value: Option<&[u8]>,
        is_simple: bool,
    ) -> Outcome {
        match verb {
            b"BEGIN" => {
                self.status = TransactionStatus::InTransaction;
                self.complete("BEGIN".into())
            }
            b"COMMIT" | b"ROLLBACK" => self.end_transaction(verb == b"COMMIT"),
            b"SET" => {
                let Some(value) = value else { return Outcome::Error("42601", "SET".into()) };
                Rc::make_mut(&mut self.settings).insert(name.to_vec(), value.to_vec());
                self.complete("SET".into())
            }
            b"SHOW" => {
                let setting = self.settings.get(name).cloned().unwrap_or_default();
                self.rows(&setting, 1, 0, is_simple);
                self.complete("SHOW".into())
            }
            b"SELECT" => self.set_configs(text),
            b"RESET" => {
                let name: Vec<u8> = name.iter().copied().filter(|&byte| byte != b'"').collect();
                match self.defaults.get(&name).cloned() {
                    Some(value) => Rc::make_mut(&mut self.settings).insert(name, value),
                    None => Rc::make_mut(&mut self.settings).remove(&name),
                };
                self.complete("RESET".into())
            }
            b"DISCARD" => {
                if self.status != TransactionStatus::Idle {
                    return Outcome::Error("25001", "DISCARD ALL in a transaction".into());
                }
                self.settings = Rc::clone(&self.defaults);
                self.saved = None;
                self.statements.clear();
                self.complete("DISCARD ALL".into())
            }
            b"DEALLOCATE" if name == b"ALL" => {
                self.statements.clear();
                self.complete("DEALLOCATE ALL".into())
            }
            b"DEALLOCATE" => match self.statements.remove(name) {
                Some(_) => self.complete("DEALLOCATE".into()),
                None => Outcome::Error("26000", "no such statement".into()),
            },
            _ => Outcome::Error("42601", String::from_utf8_lossy(text).into_owned()),
        }
    }

    fn end_transaction(&mut self, is_commit: bool) -> Outcome {
        let is_commit = is_commit && self.status != TransactionStatus::Failed;
        if let Some(saved) = self.saved.take()
            && !is_commit
        {
            self.settings = saved;
        }
        self.portals.clear();
        self.status = TransactionStatus::Idle;
        // What follows in the same batch is a transaction of its own.
        self.saved = Some(Rc::clone(&self.settings));
        self.complete(if is_commit { "COMMIT".into() } else { "ROLLBACK".into() })
    }

    /// `SELECT pg_catalog.set_config(E'name',E'value',false),...`
    fn set_configs(&mut self, text: &[u8]) -> Outcome {
        let mut strings = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.windows(2).position(|pair| pair == b"E'") {
            rest = &rest[at + 2..];
            let mut string = Vec::new();
            loop {
                match rest {
                    [b'\\', b'\\', ..] => (string.push(b'\\'), rest = &rest[2..]).1,
                    [b'\'', b'\'', ..] => (string.push(b'\''), rest = &rest[2..]).1,
                    [b'\'', ..] => break,
                    [byte, ..] => (string.push(*byte), rest = &rest[1..]).1,
                    [] => return Outcome::Error("42601", "no end of string".into()),
                }
            }
            strings.push(string);
        }
        if strings.is_empty() {
            return Outcome::Error("42601", String::from_utf8_lossy(text).into_owned());
        }
        for pair in strings.chunks(2) {
            if let [name, value] = pair {
                Rc::make_mut(&mut self.settings).insert(name.clone(), value.clone());
            }
        }
        self.rows(b"set", 1, 0, true);
        self.complete("SELECT 1".into())
    }

    fn complete(&mut self, tag: String) -> Outcome {
        encode::command_complete(&mut self.out, tag.as_bytes());
        Outcome::Complete
    }

    pub(super) fn row_description(&mut self) {
        let field = encode::Field { name: "tag", oid: 25, width: -1 };
        encode::row_description(&mut self.out, std::iter::once(field));
    }

    pub(super) fn rows(&mut self, value: &[u8], count: usize, size: usize, is_described: bool) {
        if is_described {
            self.row_description();
        }
        let value = [value, &vec![b'.'; size][..]].concat();
        for _ in 0..count {
            encode::data_row(&mut self.out, std::iter::once(Some(&value[..])));
        }
    }
}

/// The client that a prepared text belongs to: `/*c7.*/` at its end.
fn owner_of(text: &[u8]) -> &[u8] {
    text.windows(2).position(|pair| pair == b"/*").map_or(&[], |at| &text[at..])
}
