//! What can be wrong with settings, where, and what would be right.
//!
//! Nothing here ever holds the value of a key: a value may be a secret, or a piece of one.

use std::fmt;
use std::sync::Arc;

use crate::nearest::nearest;
use crate::table::{Section, Spec, Status};
use crate::value::Kind;

/// One mistake, and the place of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as it was named, `SET` for the console, `URL` for a connection string.
    pub file: String,
    /// The line, from 1; 0 if there is none.
    pub line: u32,
    /// The character in the line, from 1; 0 if there is no line.
    pub column: u32,
    /// The database, user or peer whose entry it is in.
    pub entry: Option<String>,
    /// The key at fault, as far as it can be told; may be empty.
    pub key: String,
    /// What is wrong.
    pub kind: ProblemKind,
    /// What is allowed instead.
    pub allowed: Option<String>,
    /// The known word that is most like the wrong one.
    pub nearest: Option<String>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The value is not one that the key takes.
    BadValue,
    /// More than the limit of files or bytes was to be read.
    FilesTooLarge,
    /// The file could not be read, for the reason that the reader of files gave.
    FileUnreadable {
        /// The file's name.
        path: String,
        /// Why.
        reason: String,
    },
    /// The file includes itself, through others perhaps.
    IncludeLoop {
        /// The file's name.
        path: String,
    },
    /// `%include` without a file.
    IncludeNothing,
    /// Files include files more than ten deep.
    IncludeTooDeep,
    /// A key stands before any section.
    KeyOutsideSection,
    /// The line is longer than any setting can be.
    LineTooLong,
    /// No `=` after the key.
    MissingEquals,
    /// Nothing that can be a key before the `=`.
    MissingKey,
    /// Nothing after the `=`.
    MissingValue,
    /// A database or user name that is longer than PostgreSQL's.
    NameTooLong,
    /// Another key must be set for this one.
    Needs {
        /// The other key.
        other: &'static str,
    },
    /// Bytes that are no UTF-8 text.
    NotText,
    /// A peer's name that is no number from 1 to 65535.
    PeerNotNumber,
    /// The name is the console's.
    ReservedName,
    /// There is no `[pgbouncer]`.
    SectionMissing,
    /// Something follows a closing quote.
    TextAfterQuote,
    /// There were more problems than are listed.
    TooManyProblems,
    /// A `'` with no end.
    UnclosedQuote,
    /// A `[` with no `]`.
    UnclosedSection,
    /// A line that begins with `%` and is no `%include FILE`.
    UnknownDirective,
    /// No such key in the section; it may be one of another.
    UnknownKey {
        /// The section that the key stands in.
        section: Section,
        /// The section that knows it.
        belongs: Option<Section>,
    },
    /// No such section.
    UnknownSection,
    /// The connection string is no `postgres://` URL.
    UrlNotPostgres,
    /// `%` in a URL without two hexadecimal digits after it, or with ones that make no text.
    UrlBadEscape,
    /// A parameter that libpq may know but that has no meaning here.
    UrlParameter,
    /// The hosts of the URL have different ports.
    UrlPortsDiffer,
}

impl ProblemKind {
    /// An unknown key, with the section that would know it.
    pub(crate) fn unknown_key(section: Section, key: &str) -> ProblemKind {
        let knows = |other: &Section| {
            let named = |spec: &&Spec| spec.name == key || spec.alias == Some(key);
            *other != section && other.specs().iter().any(named)
        };
        // A key of several sections most often stands in the first of these.
        let likely = [Section::Databases, Section::Users, Section::General, Section::Peers];
        ProblemKind::UnknownKey { section, belongs: likely.into_iter().find(knows) }
    }

    /// What is allowed wherever this is wrong; `None` if it depends on the key.
    fn allowed(&self) -> Option<String> {
        let text = match self {
            ProblemKind::FilesTooLarge => "1000 files of 64 MB together",
            ProblemKind::IncludeLoop { .. } => "each file once on the way to it",
            ProblemKind::KeyOutsideSection => "a section such as [pgbouncer] before it",
            ProblemKind::LineTooLong => "128 KB",
            ProblemKind::MissingEquals => "key = value",
            ProblemKind::MissingKey => "a key of letters, digits, _ . - and *, or any name in single quotes",
            ProblemKind::MissingValue => "a value that is not empty",
            ProblemKind::NameTooLong => "63 bytes for a database, 127 for a user",
            ProblemKind::NotText => "UTF-8",
            ProblemKind::PeerNotNumber => "a whole number from 1 to 65535",
            ProblemKind::ReservedName => "any name but pgbouncer",
            ProblemKind::SectionMissing => "[pgbouncer], which may be empty",
            ProblemKind::TextAfterQuote => "a space between two key=value pairs",
            ProblemKind::UnclosedQuote => "a ' at both ends, and two of them for one inside",
            ProblemKind::UnclosedSection | ProblemKind::UnknownSection => {
                "[pgbouncer], [databases], [users] or [peers]"
            }
            ProblemKind::IncludeNothing | ProblemKind::UnknownDirective => "%include FILE",
            ProblemKind::Needs { other } => return Some(format!("{other} set too")),
            ProblemKind::UnknownKey { section: Section::General, .. } => "the keys in docs/settings.md",
            ProblemKind::UnknownKey { section, .. } => {
                let names: Vec<_> = section.specs().iter().map(|spec| spec.name).collect();
                return Some(names.join(", "));
            }
            ProblemKind::UrlNotPostgres => "postgres://user[:password]@host[:port]/database",
            ProblemKind::UrlBadEscape => "% and two hexadecimal digits of UTF-8 text",
            ProblemKind::UrlPortsDiffer => "one port for all hosts",
            ProblemKind::BadValue
            | ProblemKind::FileUnreadable { .. }
            | ProblemKind::IncludeTooDeep
            | ProblemKind::TooManyProblems
            | ProblemKind::UrlParameter => return None,
        };
        Some(text.to_owned())
    }
}

/// Where a problem is found.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Place {
    /// No line: a whole file, or a command.
    pub(crate) fn nowhere(file: &str) -> Place {
        Place { file: file.into(), line: 0, column: 0 }
    }

    /// A problem here, with what is allowed and, for an unknown key, the nearest known one.
    pub(crate) fn problem(&self, key: &str, kind: ProblemKind) -> Problem {
        let nearest = match &kind {
            ProblemKind::UnknownKey { section, belongs: None } => {
                nearest(key, section.specs().iter().map(|spec| spec.name))
            }
            ProblemKind::UnknownSection => nearest(key, Section::ALL.map(Section::name)),
            ProblemKind::UnknownDirective => nearest(key, ["%include"]),
            _ => None,
        };
        Problem {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            entry: None,
            key: key.to_owned(),
            allowed: kind.allowed(),
            nearest: nearest.map(str::to_owned),
            kind,
        }
    }

    /// A value here that its key does not take.
    pub(crate) fn bad_value(&self, spec: &Spec, value: &str) -> Problem {
        let nearest = match spec.kind {
            Kind::Words(words) => {
                // The first word of the list that is none of them.
                let wrong = value.split(',').map(str::trim).find(|item| !is_among(item, words));
                wrong.and_then(|item| nearest(item, words.iter().copied()))
            }
            kind => nearest(value, kind.words().iter().copied()),
        };
        let mut allowed = spec.kind.allowed();
        if value.contains([';', '#']) {
            allowed.push_str(" (a comment needs a line of its own)");
        }
        Problem {
            allowed: Some(allowed),
            nearest: nearest.map(str::to_owned),
            ..self.problem(spec.name, ProblemKind::BadValue)
        }
    }

    /// A warning here.
    pub(crate) fn warning(&self, key: &str, kind: WarningKind) -> Warning {
        Warning {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            key: key.to_owned(),
            kind,
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ProblemKind::BadValue => "value not allowed",
            ProblemKind::FilesTooLarge => "too many or too large files",
            ProblemKind::FileUnreadable { path, reason } => {
                return write!(f, "cannot read {}: {reason}", path.escape_debug());
            }
            ProblemKind::IncludeLoop { path } => return write!(f, "{} includes itself", path.escape_debug()),
            ProblemKind::IncludeNothing => "no file to include",
            ProblemKind::IncludeTooDeep => "files are included more than 10 deep",
            ProblemKind::KeyOutsideSection => "stands before any section",
            ProblemKind::LineTooLong => "line too long",
            ProblemKind::MissingEquals => "no = after the key",
            ProblemKind::MissingKey => "no key before the =",
            ProblemKind::MissingValue => "no value",
            ProblemKind::NameTooLong => "name too long",
            ProblemKind::Needs { other } => return write!(f, "needs {other}"),
            ProblemKind::NotText => "not UTF-8 text",
            ProblemKind::PeerNotNumber => "not the number of a peer",
            ProblemKind::ReservedName => "this name is the console's",
            ProblemKind::SectionMissing => "there is no section [pgbouncer]",
            ProblemKind::TextAfterQuote => "no space after the closing quote",
            ProblemKind::TooManyProblems => "too many problems; the rest is not listed",
            ProblemKind::UnclosedQuote => "the quote is not closed",
            ProblemKind::UnclosedSection => "no ] after the section's name",
            ProblemKind::UnknownDirective => "no such directive",
            ProblemKind::UnknownKey { section, belongs: Some(other) } => {
                return write!(f, "unknown key in {section}; it belongs in {other}");
            }
            ProblemKind::UnknownKey { section, belongs: None } => {
                return write!(f, "unknown key in {section}");
            }
            ProblemKind::UnknownSection => "unknown section",
            ProblemKind::UrlNotPostgres => "not a PostgreSQL URL",
            ProblemKind::UrlBadEscape => "bad % escape",
            ProblemKind::UrlParameter => "unknown parameter",
            ProblemKind::UrlPortsDiffer => "the ports of the hosts differ",
        };
        f.write_str(text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, &self.file, self.line, self.column)?;
        if let Some(entry) = &self.entry {
            write!(f, "{}: ", entry.escape_debug())?;
        }
        if !self.key.is_empty() && Some(&self.key) != self.entry.as_ref() {
            write!(f, "{}: ", self.key.escape_debug())?;
        }
        self.kind.fmt(f)?;
        // Where the nearest key is known, the list of all keys only hides it.
        let listed = matches!(self.kind, ProblemKind::UnknownKey { .. }) && self.nearest.is_some();
        if let (Some(allowed), false) = (&self.allowed, listed) {
            write!(f, "; allowed: {allowed}")?;
        }
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest}?"),
            None => Ok(()),
        }
    }
}

/// Something odd that does not stop the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
    /// The key, the entry or the section that is odd.
    pub key: String,
    /// What is odd.
    pub kind: WarningKind,
}

/// What is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// The key is set twice; the last value holds.
    DuplicateKey,
    /// The key has no meaning for Howdah and never will.
    Meaningless,
    /// What the key or the section does is not built yet.
    NotBuilt,
    /// What this value of the key does is not built yet.
    NotBuiltValue {
        /// The value, one of those that the table names.
        value: &'static str,
    },
    /// A second `[pgbouncer]` sets every key back to its default, as in PgBouncer.
    SectionResets,
    /// There were more warnings than are listed.
    TooManyWarnings,
}

impl WarningKind {
    /// What a key of this status is warned of.
    pub(crate) fn of(status: Status, value: &str) -> Option<WarningKind> {
        match status {
            Status::Built | Status::Ignored => None,
            Status::NotBuilt => Some(WarningKind::NotBuilt),
            Status::Meaningless => Some(WarningKind::Meaningless),
            Status::BuiltExcept(values) => values
                .iter()
                .find(|unbuilt| unbuilt.eq_ignore_ascii_case(value))
                .map(|value| WarningKind::NotBuiltValue { value }),
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WarningKind::DuplicateKey => "set more than once; the last value holds",
            WarningKind::Meaningless => "accepted, but has no meaning in Howdah",
            WarningKind::NotBuilt => "accepted, but not built in Howdah yet: it does nothing",
            WarningKind::NotBuiltValue { value } => {
                return write!(f, "accepted, but {value} is not built in Howdah yet");
            }
            WarningKind::SectionResets => "a second [pgbouncer] sets every key back to its default",
            WarningKind::TooManyWarnings => "too many warnings; the rest is not listed",
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, &self.file, self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key.escape_debug())?;
        }
        self.kind.fmt(f)
    }
}

fn place(f: &mut fmt::Formatter<'_>, file: &str, line: u32, column: u32) -> fmt::Result {
    match line {
        0 => write!(f, "{file}: "),
        _ => write!(f, "{file}:{line}:{column}: "),
    }
}

fn is_among(item: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(item))
}
