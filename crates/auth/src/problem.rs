//! A mistake in a file the operator wrote: where it is and what it is, never the text itself (it may be a
//! password). Does not know which file; whoever read it does.

/// One mistake, at a line and column counted from 1. The column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<F> {
    /// The line.
    pub line: u32,
    /// The character in that line.
    pub column: u32,
    /// What is wrong there.
    pub fault: F,
}

/// The mistakes of one file: the first [`PROBLEMS_MAX`] are kept, the others counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems<F> {
    /// In the order of the file.
    pub listed: Vec<Problem<F>>,
    /// How many more there were.
    pub more: usize,
}

impl<F> Problems<F> {
    pub(crate) fn new() -> Problems<F> {
        Problems { listed: Vec::new(), more: 0 }
    }

    pub(crate) fn push(&mut self, line: usize, column: usize, fault: F) {
        if self.listed.len() == PROBLEMS_MAX {
            self.more += 1;
            return;
        }
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.listed.push(Problem { line: narrow(line), column: narrow(column), fault });
    }

    /// True if the file has no mistake.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

/// How many mistakes of one file are told one by one.
pub const PROBLEMS_MAX: usize = 100;
