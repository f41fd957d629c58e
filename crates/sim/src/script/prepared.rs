//! Statements that SQL prepares, runs and drops, under the names that the protocol gives as well.

use super::{NAMES, Script};

/// What is prepared by SQL: some of it is the same for all clients.
const BODIES: [&str; 6] = [
    "SELECT ECHO $1 1 5 @zone",
    "SELECT ECHO $1 1 4",
    "SELECT ECHO $1 2 90",
    "SELECT ECHO $1 1 5 @zone",
    "SELECT SLEEP $1 700",
    "SYNTAX",
];

impl Script<'_> {
    pub(super) fn by_sql(&mut self) -> String {
        let name = self.rng.pick(&NAMES);
        match self.rng.below(10) {
            0..3 => {
                // A comment at the end is no part of a statement.
                let own = format!("SELECT ECHO $1 1 8 /*c{}.*/ +", self.id);
                let body = if self.rng.chance(30) { own.as_str() } else { self.rng.pick(&BODIES) };
                format!("PREPARE {name} AS {body}")
            }
            3..8 if self.may_execute(name) => self.execute_of(name),
            8 if self.may_execute(name) => format!("EXPLAIN {}", self.execute_of(name)),
            _ => format!("DEALLOCATE {name}"),
        }
    }

    pub(super) fn execute_of(&self, name: &str) -> String {
        format!("EXECUTE {name}('{}')", self.tag)
    }

    /// What ends a transaction is not run by EXECUTE.
    pub(super) fn may_execute(&self, name: &str) -> bool {
        self.ideal.statements.get(name.as_bytes()).is_none_or(|statement| *statement.text != *b"ROLLBACK")
    }
}
