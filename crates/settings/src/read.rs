//! Reads pgbouncer.ini as PgBouncer does: sections, `key = value`, `%include`, entries of connection strings.
//!
//! Unlike PgBouncer it does not stop at the first mistake but lists them all. Opens no file: whoever calls
//! hands in [`Files`]. Knows no single key; those are in the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::checks;
use crate::connstr::{Fault, Pairs, is_blank};
use crate::problem::{Place, Problem, ProblemKind, Warning, WarningKind};
use crate::settings::Settings;
use crate::table::{DATABASE, Database, GENERAL, General, Key, PEER, Section, USER};
use crate::value::{Kind, whole};

/// Where the text of a file comes from; paths are as the settings name them.
pub trait Files {
    /// The whole file, or why not, in words for the operator.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

impl<F: Fn(&str) -> Result<Vec<u8>, String>> Files for F {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self(path)
    }
}

/// What reading came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The settings, or every problem found (at most some hundreds), in the order of the text and
    /// then of the keys that need one another.
    pub settings: Result<Settings, Vec<Problem>>,
    /// What is odd but stops nothing.
    pub warnings: Vec<Warning>,
    /// The files that were read, in order.
    pub files: Vec<String>,
}

/// Reads a file of settings and all that it includes.
pub fn read(path: &str, files: &dyn Files) -> Outcome {
    let mut reader = Reader {
        files,
        stack: Vec::new(),
        files_read: Vec::new(),
        bytes_read: 0,
        place: Where::Nowhere,
        settings: Settings::default(),
        general_at: None,
        set_at: BTreeMap::new(),
        monitored: Vec::new(),
        bound_to_mode: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
        warned: BTreeSet::new(),
    };
    reader.file(path, &Place::nowhere(path), "");
    reader.finish(path)
}

/// The section that lines belong to.
#[derive(Clone, Copy)]
enum Where {
    Nowhere,
    /// Its header was a problem; its lines are not more of them.
    Unknown,
    In(Section),
}

struct Reader<'f> {
    files: &'f dyn Files,
    /// The files being read, outermost first.
    stack: Vec<String>,
    files_read: Vec<String>,
    bytes_read: usize,
    place: Where,
    settings: Settings,
    /// Where `[pgbouncer]` was first seen.
    general_at: Option<Place>,
    /// Where the keys of `[pgbouncer]` were last set: the value's place.
    set_at: BTreeMap<&'static str, Place>,
    /// The entries with `target_session_attrs`.
    monitored: Vec<(String, Place)>,
    /// Those that not every `pool_mode` is for.
    bound_to_mode: Vec<(String, Place)>,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
    /// The keys and sections already warned of.
    warned: BTreeSet<&'static str>,
}

/// One line, with what it takes to say where something in it is.
struct Line<'a> {
    file: &'a Arc<str>,
    number: u32,
    text: &'a str,
}

impl Line<'_> {
    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let column = u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1);
        Place { file: self.file.clone(), line: self.number, column }
    }

    /// The offset of the next character from `at` on that is no blank.
    fn skip_blanks(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start_matches(is_blank).len()
    }
}

impl Reader<'_> {
    fn finish(mut self, path: &str) -> Outcome {
        let main_was_read = self.files_read.first().is_some_and(|first| first == path);
        let is_misspelt = self.problems.iter().any(|problem| {
            problem.kind == ProblemKind::UnknownSection
                && problem.nearest.as_deref() == Some(Section::General.name())
        });
        if self.general_at.is_none() && main_was_read && !is_misspelt {
            let start = Place { file: path.into(), line: 1, column: 1 };
            self.problem(start.problem("", ProblemKind::SectionMissing));
        }
        self.problems.extend(checks::unmonitored(&self.settings, &self.monitored));
        self.problems.extend(checks::misfit_modes(&self.settings, &self.bound_to_mode));
        let general = &mut self.settings.general;
        for problem in checks::problems(general, &self.set_at) {
            self.problems.push(problem);
        }
        general.conffile.get_or_insert_with(|| path.to_owned());
        let settings = if self.problems.is_empty() { Ok(self.settings) } else { Err(self.problems) };
        Outcome { settings, warnings: self.warnings, files: self.files_read }
    }

    /// Reads one file; `from` and `key` are what names it.
    fn file(&mut self, path: &str, from: &Place, key: &str) {
        let too_large =
            |reader: &Self| reader.files_read.len() >= FILES_MAX || reader.bytes_read > BYTES_TOTAL_MAX;
        let kind = if self.stack.iter().any(|above| above == path) {
            ProblemKind::IncludeLoop { path: path.to_owned() }
        } else if self.stack.len() > NESTING_MAX {
            ProblemKind::IncludeTooDeep
        } else if too_large(self) {
            ProblemKind::FilesTooLarge
        } else {
            match self.files.read(path) {
                Ok(bytes) => return self.text(path, &bytes, from, key),
                Err(reason) => ProblemKind::FileUnreadable { path: path.to_owned(), reason },
            }
        };
        self.problem(from.problem(key, kind));
    }

    fn text(&mut self, path: &str, bytes: &[u8], from: &Place, key: &str) {
        self.files_read.push(path.to_owned());
        self.bytes_read = self.bytes_read.saturating_add(bytes.len());
        if self.bytes_read > BYTES_TOTAL_MAX {
            return self.problem(from.problem(key, ProblemKind::FilesTooLarge));
        }
        self.stack.push(path.to_owned());
        let file: Arc<str> = path.into();
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if self.is_full() {
                break;
            }
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            self.raw_line(&file, number, line);
        }
        self.stack.pop();
    }

    fn raw_line(&mut self, file: &Arc<str>, number: u32, bytes: &[u8]) {
        let is_blank_byte = |byte: &u8| is_blank(char::from(*byte));
        match bytes.iter().find(|byte| !is_blank_byte(byte)) {
            // A comment may hold what it likes.
            None | Some(b'#' | b';') => return,
            Some(_) => {}
        }
        let whole_line = |text| Line { file, number, text };
        if bytes.len() > LINE_BYTES_MAX {
            return self.problem(whole_line("").place(0).problem("", ProblemKind::LineTooLong));
        }
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let good = str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or("");
                let place = whole_line(good).place(good.len());
                return self.problem(place.problem("", ProblemKind::NotText));
            }
        };
        let line = whole_line(text);
        match text.find('\0') {
            Some(at) => self.problem(line.place(at).problem("", ProblemKind::NotText)),
            None => self.line(&line),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        let mut at = line.skip_blanks(0);
        // PgBouncer lets the first key follow its section's header on the same line.
        while line.text[at..].starts_with('[') {
            let Some(length) = line.text[at..].find(']') else {
                self.place = Where::Unknown;
                return self.problem(line.place(at).problem("", ProblemKind::UnclosedSection));
            };
            self.section(line, at, &line.text[at + 1..at + length]);
            at = line.skip_blanks(at + length + 1);
        }
        let rest = &line.text[at..];
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            return;
        }
        if rest.starts_with('%') {
            return self.directive(line, at);
        }
        let (key, after) = match key_of(rest) {
            Ok(found) => found,
            Err(kind) => return self.unreadable(line, at, "", kind),
        };
        let equals = at + after + (rest[after..].len() - rest[after..].trim_start_matches([' ', '\t']).len());
        if !line.text[equals..].starts_with('=') {
            let kind = if key.is_empty() { ProblemKind::MissingKey } else { ProblemKind::MissingEquals };
            return self.unreadable(line, at, key, kind);
        }
        if key.is_empty() {
            return self.unreadable(line, at, key, ProblemKind::MissingKey);
        }
        self.key(line, key, at, line.skip_blanks(equals + 1));
    }

    /// A line that is no key and value. It may be anything, so its first word is told only if it is a key.
    fn unreadable(&mut self, line: &Line<'_>, at: usize, word: &str, kind: ProblemKind) {
        if !matches!(self.place, Where::Unknown) {
            let key = Key::find(GENERAL, word).map_or("", |key| key.spec.name);
            self.problem(line.place(at).problem(key, kind));
        }
    }

    fn section(&mut self, line: &Line<'_>, at: usize, name: &str) {
        let place = line.place(at);
        let Some(section) = Section::ALL.into_iter().find(|section| section.name() == name) else {
            self.place = Where::Unknown;
            return self.problem(place.problem(name, ProblemKind::UnknownSection));
        };
        self.place = Where::In(section);
        if let Some(kind) = WarningKind::of(section.status(), "")
            && self.warned.insert(section.name())
        {
            self.warning(place.warning(&section.to_string(), kind));
        }
        if section != Section::General {
            return;
        }
        if self.general_at.is_some() {
            self.warning(place.warning(&section.to_string(), WarningKind::SectionResets));
            let before = std::mem::take(&mut self.settings.general);
            // As in PgBouncer, a key without a default has nothing to go back to.
            for key in GENERAL.iter().filter(|key| key.spec.default.is_none()) {
                (key.copy)(&mut self.settings.general, &before);
            }
            self.set_at.clear();
        }
        self.general_at.get_or_insert(place);
    }

    fn directive(&mut self, line: &Line<'_>, at: usize) {
        let rest = &line.text[at..];
        let word = &rest[..rest.find(is_blank).unwrap_or(rest.len())];
        let path = rest[word.len()..].trim_matches(is_blank);
        if word != "%include" {
            return self.problem(line.place(at).problem(word, ProblemKind::UnknownDirective));
        }
        if path.is_empty() {
            return self.problem(line.place(at).problem(word, ProblemKind::IncludeNothing));
        }
        let from = line.place(line.skip_blanks(at + word.len()));
        self.file(path, &from, word);
    }

    fn key(&mut self, line: &Line<'_>, key: &str, key_at: usize, value_at: usize) {
        let end = value_at.max(line.text.trim_end_matches(is_blank).len());
        let value = &line.text[value_at..end];
        match self.place {
            Where::Unknown => {}
            Where::Nowhere => self.problem(line.place(key_at).problem(key, ProblemKind::KeyOutsideSection)),
            Where::In(Section::General) => self.general(line, key, key_at, value, value_at),
            Where::In(Section::Databases) => self.database(line, key, key_at, value, value_at),
            Where::In(Section::Users) => {
                let user = self.entry(line, Section::Users, USER, key, value, value_at);
                self.name(line, key, key_at, USER_BYTES_MAX);
                let repeated = self.settings.users.insert(key.to_owned(), user).is_some();
                self.duplicate(line, key, key_at, repeated);
            }
            Where::In(Section::Peers) => self.peer(line, key, key_at, value, value_at),
        }
    }

    fn general(&mut self, line: &Line<'_>, key: &str, key_at: usize, value: &str, value_at: usize) {
        let Some(found): Option<&Key<General>> = Key::find(GENERAL, key) else {
            let kind = ProblemKind::unknown_key(Section::General, key);
            return self.problem(line.place(key_at).problem(key, kind));
        };
        let spec = &found.spec;
        if !(found.set)(&mut self.settings.general, value) {
            self.problem(line.place(value_at).bad_value(spec, value));
        }
        let repeated = self.set_at.insert(spec.name, line.place(value_at)).is_some();
        self.duplicate(line, key, key_at, repeated);
        if let Some(kind) = WarningKind::of(spec.status, value)
            && self.warned.insert(spec.name)
        {
            self.warning(line.place(key_at).warning(spec.name, kind));
        }
    }

    fn database(&mut self, line: &Line<'_>, name: &str, at: usize, value: &str, value_at: usize) {
        let database: Database = self.entry(line, Section::Databases, DATABASE, name, value, value_at);
        self.name(line, name, at, DATABASE_BYTES_MAX);
        if name == RESERVED_NAME {
            self.problem(line.place(at).problem(name, ProblemKind::ReservedName));
        }
        if let Some(problem) = checks::entry_problem(&database, &line.place(at)) {
            self.problem(in_entry(name, problem));
        }
        if database.target_session_attrs.is_some() && self.monitored.len() < PROBLEMS_MAX {
            self.monitored.push((name.to_owned(), line.place(at)));
        }
        if checks::is_bound_to_mode(&database) && self.bound_to_mode.len() < PROBLEMS_MAX {
            self.bound_to_mode.push((name.to_owned(), line.place(at)));
        }
        let repeated = if name == "*" {
            self.settings.autodb.replace(database).is_some()
        } else {
            self.settings.databases.insert(name.to_owned(), database).is_some()
        };
        self.duplicate(line, name, at, repeated);
    }

    fn peer(&mut self, line: &Line<'_>, name: &str, at: usize, value: &str, value_at: usize) {
        let problems_before = self.problems.len();
        let peer = self.entry(line, Section::Peers, PEER, name, value, value_at);
        let unset = matches!(&peer.host, crate::Host::Unix(path) if path.is_empty());
        if unset && self.problems.len() == problems_before {
            let needs = ProblemKind::Needs { other: "host" };
            self.problem(line.place(at).problem(name, needs));
        }
        match whole(name).and_then(|number| u32::try_from(number).ok()) {
            Some(number @ 1..=65535) => {
                let repeated = self.settings.peers.insert(number, peer).is_some();
                self.duplicate(line, name, at, repeated);
            }
            _ => self.problem(line.place(at).problem(name, ProblemKind::PeerNotNumber)),
        }
    }

    /// The connection string of an entry. After a secret, or after a word that is no key, more such words may
    /// be the rest of a value that lacks its quotes: they are not repeated.
    fn entry<T: Default>(
        &mut self,
        line: &Line<'_>,
        section: Section,
        keys: &'static [Key<T>],
        name: &str,
        text: &str,
        text_at: usize,
    ) -> T {
        let mut entry = T::default();
        let mut given = BTreeSet::new();
        let mut may_be_value = false;
        for pair in Pairs::new(text) {
            if self.is_full() {
                break;
            }
            let pair = match pair {
                Ok(pair) => pair,
                Err(fault) => {
                    let problem = faulty(line, keys, name, &fault, text_at);
                    self.problem(problem);
                    continue;
                }
            };
            // Telling a column costs a walk along the line, so only what needs it pays.
            let key_place = || line.place(text_at + pair.key_at);
            let Some(found) = Key::find(keys, pair.key) else {
                let kind = ProblemKind::unknown_key(section, pair.key);
                let shown = if may_be_value { "" } else { pair.key };
                let mut problem = in_entry(name, key_place().problem(shown, kind));
                if may_be_value {
                    problem.allowed = Some(PAIRS_ALLOWED.to_owned());
                }
                self.problem(problem);
                may_be_value = true;
                continue;
            };
            let spec = &found.spec;
            may_be_value |= spec.kind == Kind::Secret;
            if !(found.set)(&mut entry, &pair.value) {
                let place = line.place(text_at + pair.value_at);
                self.problem(in_entry(name, place.bad_value(spec, &pair.value)));
            }
            if !given.insert(spec.name) && self.warnings.len() <= WARNINGS_MAX {
                self.warning(key_place().warning(spec.name, WarningKind::DuplicateKey));
            }
            // A section that is not built was warned of as a whole.
            if WarningKind::of(section.status(), "").is_none()
                && let Some(kind) = WarningKind::of(spec.status, &pair.value)
                && self.warned.insert(spec.name)
            {
                self.warning(key_place().warning(spec.name, kind));
            }
        }
        entry
    }

    fn name(&mut self, line: &Line<'_>, name: &str, at: usize, bytes_max: usize) {
        if name.len() > bytes_max {
            let start: String = name.chars().take(SHOWN_MAX).collect();
            self.problem(line.place(at).problem(&start, ProblemKind::NameTooLong));
        }
    }

    fn duplicate(&mut self, line: &Line<'_>, key: &str, at: usize, repeated: bool) {
        if repeated {
            self.warning(line.place(at).warning(key, WarningKind::DuplicateKey));
        }
    }

    fn is_full(&self) -> bool {
        self.problems.len() > PROBLEMS_MAX
    }

    fn problem(&mut self, mut problem: Problem) {
        if self.is_full() {
            return;
        }
        if self.problems.len() == PROBLEMS_MAX {
            problem = Problem { allowed: None, nearest: None, entry: None, key: String::new(), ..problem };
            problem.kind = ProblemKind::TooManyProblems;
        }
        if problem.key.len() > SHOWN_MAX {
            problem.key = problem.key.chars().take(SHOWN_MAX).collect();
        }
        self.problems.push(problem);
    }

    fn warning(&mut self, mut warning: Warning) {
        if self.warnings.len() > WARNINGS_MAX {
            return;
        }
        if self.warnings.len() == WARNINGS_MAX {
            warning = Warning { key: String::new(), kind: WarningKind::TooManyWarnings, ..warning };
        }
        self.warnings.push(warning);
    }
}

/// The key at the start of a line and where it ends.
fn key_of(text: &str) -> Result<(&str, usize), ProblemKind> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let length = quoted.find('\'').ok_or(ProblemKind::UnclosedQuote)?;
        return Ok((&quoted[..length], length + 2));
    }
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "_.-*".contains(c));
    let length = text.find(ends).unwrap_or(text.len());
    Ok((&text[..length], length))
}

fn in_entry(name: &str, problem: Problem) -> Problem {
    Problem { entry: Some(name.chars().take(SHOWN_MAX).collect()), ..problem }
}

/// The problem of a fault in an entry's connection string.
fn faulty<T>(
    line: &Line<'_>,
    keys: &'static [Key<T>],
    name: &str,
    fault: &Fault<'_>,
    text_at: usize,
) -> Problem {
    let known = Key::find(keys, fault.word).map_or("", |key| key.spec.name);
    let mut problem = line.place(text_at + fault.at).problem(known, fault.kind.clone());
    if matches!(fault.kind, ProblemKind::MissingEquals | ProblemKind::MissingKey) {
        let mut allowed = PAIRS_ALLOWED.to_owned();
        if Key::find(GENERAL, name).is_some() {
            allowed.push_str(&format!(" ({name} is a key of [pgbouncer])"));
        }
        problem.allowed = Some(allowed);
    }
    in_entry(name, problem)
}

const PAIRS_ALLOWED: &str =
    "key=value pairs between spaces, such as host=127.0.0.1 port=5432 (values with spaces in single quotes)";

/// The console's name. `howdah` is another name of it only where no database is called so.
const RESERVED_NAME: &str = "pgbouncer";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Twice the longest password and more.
const LINE_BYTES_MAX: usize = 128 * 1024;
const NESTING_MAX: usize = 10;
const FILES_MAX: usize = 1000;
const BYTES_TOTAL_MAX: usize = 64 * 1024 * 1024;
const PROBLEMS_MAX: usize = 200;
const WARNINGS_MAX: usize = 200;
/// Of a name that is told back.
const SHOWN_MAX: usize = 64;
const DATABASE_BYTES_MAX: usize = 63;
const USER_BYTES_MAX: usize = 127;
