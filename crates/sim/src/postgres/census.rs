//! The pooler's question what a session has, answered from what it has.

use wire::encode;

use super::text::Reader;
use super::{Outcome, Postgres};

/// Faults of a server's answer, planted to see that they are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tongue {
    #[default]
    True,
    /// It has locks that it does not show.
    HidesLocks,
    /// It shows locks that it does not have.
    InventsLocks,
    /// It says that it has forgotten what it had of sequences, and has not.
    KeepsDraws,
}

pub(super) type Row = [Option<Vec<u8>>; 3];

impl Postgres {
    /// Whether a text is that question.
    pub(super) fn is_census(text: &[u8]) -> bool {
        text.starts_with(b"SELECT '") && text.get(9) == Some(&b'\'')
    }

    pub(super) fn answer_census(&mut self, text: &[u8], is_simple: bool) -> Outcome {
        if text.starts_with(b"SELECT 'q'") {
            return self.answer_draws(is_simple);
        }
        let text = String::from_utf8_lossy(text).into_owned();
        let mut rows: Vec<Row> = Vec::new();
        for part in text.split(" UNION ALL ") {
            let letter = part.as_bytes().get(8).copied().unwrap_or_default();
            self.answer_part(letter, part.as_bytes(), &mut rows);
        }
        self.census_rows(&rows, is_simple)
    }

    pub(super) fn census_rows(&mut self, rows: &[Row], is_simple: bool) -> Outcome {
        if is_simple {
            let fields = ["kind", "name", "value"].map(|name| encode::Field { name, oid: 25, width: -1 });
            encode::row_description(&mut self.out, fields.into_iter());
        }
        for row in rows {
            encode::data_row(&mut self.out, row.iter().map(Option::as_deref));
        }
        self.complete(format!("SELECT {}", rows.len()))
    }

    fn answer_part(&self, letter: u8, part: &[u8], rows: &mut Vec<Row>) {
        let objects = &self.now.objects;
        let has_locks = match self.tongue {
            Tongue::True | Tongue::KeepsDraws => !self.locks.is_empty(),
            Tongue::HidesLocks => false,
            Tongue::InventsLocks => true,
        };
        let is_there =
            match letter {
                b'l' => has_locks,
                b't' => !objects.temps.is_empty(),
                b'c' => objects.cursors.values().any(|cursor| cursor.is_held),
                b'n' => !objects.channels.is_empty(),
                b'p' => self.has_prepared_by_sql(),
                // PostgreSQL's list of settings leaves this one out.
                b'r' => {
                    let role = self.shown(b"role").filter(|role| role != b"none");
                    rows.extend(role.map(|role| [Some(b"r".to_vec()), Some(b"role".to_vec()), Some(role)]));
                    return;
                }
                b's' => {
                    let settings = self.own_settings().filter(|(name, _)| *name != b"role");
                    rows.extend(settings.map(|(name, value)| {
                        [Some(b"s".to_vec()), Some(name.to_vec()), Some(value.to_vec())]
                    }));
                    return;
                }
                b'v' => {
                    let name = Reader(part.get(11..).unwrap_or_default()).string().unwrap_or_default();
                    let value = self.shown(&name);
                    rows.push([Some(b"v".to_vec()), Some(name), value]);
                    return;
                }
                _ => return,
            };
        if is_there {
            rows.push([Some(vec![letter]), None, None]);
        }
    }
}
