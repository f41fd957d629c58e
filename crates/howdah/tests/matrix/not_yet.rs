//! Cells that do not hold yet, each with its reason. A listed cell that holds fails the test: take it off then.

use super::cell::Cell;

pub struct NotYet {
    pub kind: &'static str,
    /// Words: an ending, or an ending and a protocol with a slash between, as the report prints them; or `some`,
    /// where it depends on which server a client gets: then one of them has to fail.
    pub cells: &'static str,
    pub why: &'static str,
}

pub const NOT_YET: &[NotYet] = &[];

/// Why this cell is not expected to hold, and whether it may by chance.
pub fn reason(cell: Cell) -> Option<(&'static str, bool)> {
    let (ending, both) = (format!("{:?}", cell.ending), format!("{:?}/{:?}", cell.ending, cell.protocol));
    let entry = NOT_YET.iter().find(|entry| {
        let is_meant = |word: &str| word == ending || word == both || word == SOME;
        entry.kind == cell.kind.name && entry.cells.split_whitespace().any(is_meant)
    })?;
    Some((entry.why, entry.cells == SOME))
}

const SOME: &str = "some";
