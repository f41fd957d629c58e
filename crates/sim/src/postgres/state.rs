//! What statements leave in a session besides settings: locks, temporary tables, cursors, channels.

use wire::server::TransactionStatus;

use super::text::{between, unquoted};
use super::transaction::{Cursor, Temp};
use super::{Outcome, Postgres, Tongue};

/// Rows of a cursor.
const CURSOR_ROWS: usize = 3;

/// Whether a statement makes state that keeps its session's server: what `session_state = refuse` refuses.
pub(super) fn keeps_server(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    let begins = |word: &[u8]| text.starts_with(word);
    begins(b"LISTEN ")
        || begins(b"CREATE TEMP TABLE ") && !has(b"ON COMMIT DROP")
        || begins(b"DECLARE ") && has(b"WITH HOLD")
        || begins(b"SELECT pg_advisory_lock(")
        || begins(b"SELECT pg_try_advisory_lock(")
}

impl Postgres {
    /// What would be found by the next client of this session. Settings are looked at elsewhere.
    pub(crate) fn leftovers(&self) -> Vec<&'static str> {
        let objects = &self.now.objects;
        let kinds = [
            (!self.locks.is_empty(), "advisory locks"),
            (!objects.temps.is_empty(), "temporary tables"),
            (!objects.cursors.is_empty(), "cursors"),
            (!objects.channels.is_empty(), "channels"),
            (self.has_prepared_by_sql(), "statements prepared by SQL"),
        ];
        kinds.iter().filter(|(is_there, _)| *is_there).map(|(_, words)| *words).collect()
    }

    /// `None`: it is none of these.
    pub(super) fn state_statement(
        &mut self,
        verb: &[u8],
        text: &[u8],
        words: &[&[u8]],
        is_simple: bool,
    ) -> Option<Outcome> {
        let name = words.get(1).copied().unwrap_or_default();
        Some(match verb {
            b"SELECT" if name == b"v" => self.read_temp(words.get(3).copied().unwrap_or_default(), is_simple),
            b"SELECT" => return self.call(name, text, is_simple),
            b"CREATE" => self.create_temp(text, words.get(3).copied().unwrap_or_default()),
            b"DROP" => {
                let table = words.get(2).copied().unwrap_or_default();
                match self.now.objects().temps.remove(table) {
                    Some(_) => self.complete("DROP TABLE".into()),
                    None => Outcome::Error("42P01", "table does not exist".into()),
                }
            }
            b"DECLARE" => self.declare(text, name),
            b"FETCH" => self.fetch(words.get(3).copied().unwrap_or_default(), is_simple),
            b"CLOSE" => self.close_cursor(name),
            b"LISTEN" => {
                self.now.objects().channels.insert(unquoted(name));
                self.complete("LISTEN".into())
            }
            b"UNLISTEN" => {
                let channels = &mut self.now.objects().channels;
                match name {
                    b"*" => channels.clear(),
                    name => drop(channels.remove(&unquoted(name))),
                }
                self.complete("UNLISTEN".into())
            }
            b"NOTIFY" => {
                let channel = name.strip_suffix(b",").unwrap_or(name).to_vec();
                let note = (channel, between(text, b'\'', b'\'').to_vec());
                let notes = &mut self.now.objects().notes;
                if !notes.contains(&note) {
                    notes.push(note);
                }
                self.complete("NOTIFY".into())
            }
            b"INSERT" => {
                let value = between(text, b'\'', b'\'').to_vec();
                self.draws.draw(b"serial", &value);
                self.now.objects().written.push(value);
                self.complete("INSERT 0 1".into())
            }
            _ => return None,
        })
    }

    fn create_temp(&mut self, text: &[u8], table: &[u8]) -> Outcome {
        if let Some(Err(outcome)) = self.executed(text) {
            return outcome;
        }
        if self.now.objects.temps.contains_key(table) {
            return Outcome::Error("42P07", "table already exists".into());
        }
        let is_short = text.windows(14).any(|window| window == b"ON COMMIT DROP");
        let value = between(text, b'\'', b'\'').to_vec();
        self.now.objects().temps.insert(table.to_vec(), Temp { value, is_short });
        self.complete("SELECT 1".into())
    }

    fn read_temp(&mut self, table: &[u8], is_simple: bool) -> Outcome {
        let Some(temp) = self.now.objects.temps.get(table) else {
            return Outcome::Error("42P01", "table does not exist".into());
        };
        let value = temp.value.clone();
        self.rows(&value, 1, 0, is_simple);
        self.complete("SELECT 1".into())
    }

    fn declare(&mut self, text: &[u8], name: &[u8]) -> Outcome {
        let is_held = text.windows(9).any(|window| window == b"WITH HOLD");
        if !is_held && self.status == TransactionStatus::Idle {
            return Outcome::Error("25P01", "DECLARE CURSOR outside a transaction".into());
        }
        if self.now.objects.cursors.contains_key(name) {
            return Outcome::Error("42P03", "cursor already exists".into());
        }
        let value = between(text, b'\'', b'\'').to_vec();
        self.now.objects().cursors.insert(name.to_vec(), Cursor { value, is_held, fetched: 0 });
        self.complete("DECLARE CURSOR".into())
    }

    fn fetch(&mut self, name: &[u8], is_simple: bool) -> Outcome {
        let Some(cursor) = self.now.objects().cursors.get_mut(name) else {
            return Outcome::Error("34000", "cursor does not exist".into());
        };
        cursor.fetched += 1;
        let count = usize::from(cursor.fetched <= CURSOR_ROWS);
        let value = [&cursor.value[..], b" ", cursor.fetched.to_string().as_bytes()].concat();
        self.rows(&value, count, 0, is_simple);
        self.complete(format!("FETCH {count}"))
    }

    fn close_cursor(&mut self, name: &[u8]) -> Outcome {
        if name == b"ALL" {
            self.now.objects().cursors.clear();
            return self.complete("CLOSE CURSOR ALL".into());
        }
        match self.now.objects().cursors.remove(name) {
            Some(_) => self.complete("CLOSE CURSOR".into()),
            None => Outcome::Error("34000", "cursor does not exist".into()),
        }
    }

    /// `SELECT name(arguments)`.
    fn call(&mut self, name: &[u8], text: &[u8], is_simple: bool) -> Option<Outcome> {
        let function = name.split(|&byte| byte == b'(').next().unwrap_or_default();
        let argument = between(text, b'(', b')').to_vec();
        let value: Vec<u8> = match function {
            b"pg_advisory_lock" | b"pg_try_advisory_lock" => {
                *self.locks.entry(argument).or_default() += 1;
                b"t".to_vec()
            }
            b"pg_advisory_unlock" => {
                let count = self.locks.get_mut(&argument);
                let had = count.is_some_and(|count| {
                    *count -= 1;
                    true
                });
                self.locks.retain(|_, count| *count > 0);
                if had { b"t".to_vec() } else { b"f".to_vec() }
            }
            b"pg_advisory_unlock_all" => {
                self.locks.clear();
                Vec::new()
            }
            // Not PostgreSQL's: what a look at pg_locks would show.
            b"locks_held" => {
                self.locks.iter().map(|(key, n)| format!("{key:?}{n}")).collect::<String>().into()
            }
            b"pg_listening_channels" => {
                let channels: Vec<Vec<u8>> = self.now.objects.channels.iter().cloned().collect();
                channels.join(&b' ')
            }
            _ => match self.sequence_call(function, &argument, text)? {
                Ok(value) => value,
                Err(outcome) => return Some(outcome),
            },
        };
        self.rows(&value, 1, 0, is_simple);
        Some(self.complete("SELECT 1".into()))
    }

    pub(super) fn discard(&mut self, what: &[u8]) -> Outcome {
        match what {
            b"ALL" => {
                if self.status != TransactionStatus::Idle {
                    return Outcome::Error("25001", "DISCARD ALL in a transaction".into());
                }
                self.reset_all();
                self.reset(b"role");
                *self.now.objects() = super::transaction::Objects::default();
                self.saved = None;
                self.statements.clear();
                self.locks.clear();
                self.draws.forget();
            }
            b"TEMP" => self.now.objects().temps.clear(),
            b"SEQUENCES" if self.tongue == Tongue::KeepsDraws => {}
            b"SEQUENCES" => self.draws.forget(),
            _ => {}
        }
        self.complete(format!("DISCARD {}", String::from_utf8_lossy(what)))
    }
}
