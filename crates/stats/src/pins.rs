//! Why clients keep their servers, counted by who and what they did: so many kinds, and the rest in one row.

use std::collections::HashMap;

/// So many kinds are told apart. An application that gives itself a new name each time does not make us grow.
pub const ROWS_MAX: usize = 1_000;

/// Bytes of a name that are kept.
const NAME_BYTES_MAX: usize = 64;

/// What is told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PinKind {
    /// The database entry.
    pub database: String,
    /// The name the client logged in with.
    pub user: String,
    /// The client's name for itself.
    pub application_name: String,
    /// Why, in words.
    pub reason: &'static str,
    /// What the statement that made the state began with.
    pub statement: String,
    /// What to do instead.
    pub hint: &'static str,
}

/// How many clients keep their servers for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinCount {
    /// Who and why; `other` in all columns for what is not told apart.
    pub kind: PinKind,
    /// So many do now.
    pub current: u64,
    /// So many times one began to.
    pub total: u64,
}

/// A client that is counted, to be given back when it no longer keeps its server for this reason.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Counted(usize);

/// The counts of all.
#[derive(Debug, Default)]
pub struct PinCounts {
    rows: Vec<PinCount>,
    by_kind: HashMap<PinKind, usize>,
}

impl PinCounts {
    /// A client begins to keep its server.
    pub fn begin(&mut self, mut kind: PinKind) -> Counted {
        for name in [&mut kind.database, &mut kind.user, &mut kind.application_name, &mut kind.statement] {
            let cut = (0..=NAME_BYTES_MAX).rev().find(|at| name.is_char_boundary(*at));
            name.truncate(if name.len() > NAME_BYTES_MAX { cut.unwrap_or(0) } else { name.len() });
        }
        let at = match self.by_kind.get(&kind) {
            Some(&at) => at,
            None => self.add(kind),
        };
        let row = &mut self.rows[at];
        row.current += 1;
        row.total += 1;
        Counted(at)
    }

    /// It no longer does.
    pub fn end(&mut self, counted: Counted) {
        let row = &mut self.rows[counted.0];
        row.current = row.current.saturating_sub(1);
    }

    /// All that was counted.
    pub fn rows(&self) -> &[PinCount] {
        &self.rows
    }

    fn add(&mut self, kind: PinKind) -> usize {
        if self.rows.len() > ROWS_MAX {
            return ROWS_MAX;
        }
        let is_last = self.rows.len() == ROWS_MAX;
        let kind = if is_last { PinKind::other() } else { kind };
        self.rows.push(PinCount { kind: kind.clone(), current: 0, total: 0 });
        let at = self.rows.len() - 1;
        if !is_last {
            self.by_kind.insert(kind, at);
        }
        at
    }
}

impl PinKind {
    fn other() -> PinKind {
        let other = || "other".to_owned();
        PinKind {
            database: other(),
            user: other(),
            application_name: other(),
            reason: "other",
            statement: other(),
            hint: "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(application: &str) -> PinKind {
        PinKind {
            database: "d".to_owned(),
            user: "u".to_owned(),
            application_name: application.to_owned(),
            reason: "LISTEN",
            statement: "LISTEN".to_owned(),
            hint: "do not",
        }
    }

    #[test]
    fn clients_of_a_kind_share_a_row() {
        let mut counts = PinCounts::default();
        let first = counts.begin(kind("a"));
        let second = counts.begin(kind("a"));
        let _third = counts.begin(kind("b"));
        counts.end(second);
        let rows = |counts: &PinCounts| -> Vec<(u64, u64)> {
            counts.rows().iter().map(|row| (row.current, row.total)).collect()
        };
        assert_eq!(rows(&counts), [(1, 2), (1, 1)]);
        counts.end(first);
        assert_eq!(rows(&counts), [(0, 2), (1, 1)]);
    }

    #[test]
    fn rows_are_bounded_and_the_rest_is_one() {
        let mut counts = PinCounts::default();
        for number in 0..ROWS_MAX + 50 {
            let counted = counts.begin(kind(&number.to_string()));
            if number % 2 == 0 {
                counts.end(counted);
            }
        }
        assert_eq!(counts.rows().len(), ROWS_MAX + 1);
        let other = &counts.rows()[ROWS_MAX];
        assert_eq!((&*other.kind.user, other.current, other.total), ("other", 25, 50));
        let _again = counts.begin(kind("0"));
        assert_eq!(counts.rows()[0].total, 2, "who was told apart still is");
    }

    #[test]
    fn names_are_cut_between_characters() {
        let mut counts = PinCounts::default();
        let _counted = counts.begin(kind(&"\u{fc}".repeat(100)));
        let _shared = counts.begin(kind(&"\u{fc}".repeat(200)));
        assert_eq!(counts.rows().len(), 1);
        assert_eq!(counts.rows()[0].kind.application_name.len(), NAME_BYTES_MAX);
    }
}
