//! The few statements that the small PostgreSQL understands. Each names its owner: a tag such as `c12.5`.
//!
//! ECHO, SLEEP, FAIL, COPYIN and COPYOUT are its own; `SELECT` before them changes nothing, but lets a pooler read them.

use wire::encode;
use wire::server::TransactionStatus;

use super::text::Reader;
use super::{Copying, Outcome, Postgres, Running};

const OWN: [&[u8]; 5] = [b"ECHO", b"SLEEP", b"FAIL", b"COPYIN", b"COPYOUT"];

/// Whether a statement answers rows.
pub(super) fn has_rows(text: &[u8]) -> bool {
    [&b"ECHO"[..], b"SLEEP", b"SHOW", b"SELECT", b"FETCH"].iter().any(|word| text.starts_with(word))
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
        let plain = text.strip_prefix(b"SELECT ").unwrap_or(text);
        let mut words = plain.split(|&byte| byte == b' ');
        let verb = words.next().unwrap_or_default();
        if !OWN.contains(&verb) {
            return (self.utility(text, is_simple), sent);
        }
        let tag = words.next().unwrap_or_default();
        self.last_tag = Some(tag.to_vec());
        let outcome = match verb {
            b"ECHO" => {
                let (rows, size) = (number(words.next()), number(words.next()));
                let left = rows.saturating_sub(sent);
                let now = if most == 0 { left } else { left.min(most) };
                let constant = self.constant_in(text);
                self.rows(&[tag, owner_of(text), &constant].concat(), now, size, is_simple);
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
                self.has_copied = true;
                self.copying = Some(Copying { tag: tag.to_vec(), rows: 0 });
                Outcome::Copies
            }
            _ => {
                let rows = number(words.next());
                encode::message(&mut self.out, b'H', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
                for _ in 0..rows {
                    encode::message(&mut self.out, b'd', |out| out.extend_from_slice(tag));
                }
                encode::message(&mut self.out, b'c', |_| {});
                self.complete(format!("COPY {rows}"))
            }
        };
        (outcome, sent)
    }

    fn utility(&mut self, text: &[u8], is_simple: bool) -> Outcome {
        let words: Vec<&[u8]> = text.split(|&byte| byte == b' ').collect();
        let (verb, name) = (words[0], words.get(1).copied().unwrap_or_default());
        if verb == b"SELECT" && Self::is_census(text) {
            return self.answer_census(text, is_simple);
        }
        if let Some(outcome) = self.state_statement(verb, text, &words, is_simple) {
            return outcome;
        }
        let mut reader = Reader(text);
        reader.word();
        match verb {
            b"BEGIN" => {
                self.status = TransactionStatus::InTransaction;
                self.complete("BEGIN".into())
            }
            b"ROLLBACK" if name == b"TO" => {
                let savepoint = words.get(2).copied().unwrap_or_default().to_vec();
                if !self.is_in_block() || !self.roll_back_to(&savepoint) {
                    return Outcome::Error("3B001", "savepoint does not exist".into());
                }
                self.status = TransactionStatus::InTransaction;
                self.complete("ROLLBACK".into())
            }
            b"COMMIT" | b"ROLLBACK" => self.end_transaction(verb == b"COMMIT"),
            b"SAVEPOINT" if !self.is_in_block() => Outcome::Error("25P01", "no transaction".into()),
            b"SAVEPOINT" => {
                self.savepoint(name);
                self.complete("SAVEPOINT".into())
            }
            b"RELEASE" if !self.is_in_block() || !self.release(name) => {
                Outcome::Error("3B001", "savepoint does not exist".into())
            }
            b"RELEASE" => self.complete("RELEASE".into()),
            b"SET" => self.set_statement(reader.rest()),
            b"SHOW" => self.show_statement(name, is_simple),
            b"SELECT" => self.set_configs(text, is_simple),
            b"RESET" => self.reset_statement(reader.rest()),
            b"DISCARD" => self.discard(name),
            b"PREPARE" => self.prepare(reader.rest()),
            b"EXECUTE" => self.execute_by_sql(text, is_simple),
            b"EXPLAIN" => self.explain(text, is_simple),
            b"DEALLOCATE" => self.deallocate(reader.rest()),
            _ => Outcome::Error("42601", String::from_utf8_lossy(text).into_owned()),
        }
    }

    fn is_in_block(&self) -> bool {
        self.status != TransactionStatus::Idle
    }

    fn end_transaction(&mut self, is_commit: bool) -> Outcome {
        let is_commit = is_commit && self.status != TransactionStatus::Failed;
        if is_commit {
            self.commit()
        } else {
            self.roll_back()
        }
        self.status = TransactionStatus::Idle;
        // What follows in the same batch is a transaction of its own.
        self.save();
        self.complete(if is_commit { "COMMIT".into() } else { "ROLLBACK".into() })
    }

    pub(super) fn complete(&mut self, tag: String) -> Outcome {
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

/// The client that a prepared text belongs to: `/*c7.*/`.
fn owner_of(text: &[u8]) -> &[u8] {
    let find = |mark: &[u8; 2]| text.windows(2).position(|pair| pair == mark);
    match (find(b"/*"), find(b"*/")) {
        (Some(start), Some(end)) if start < end => &text[start..end + 2],
        _ => &[],
    }
}
