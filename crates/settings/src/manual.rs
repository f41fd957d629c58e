//! The manual page `docs/settings.md` and the example `docs/example.ini`, both made from the table.

use std::fmt::Write;

use crate::table::{Change, GENERAL, General, Section, Spec, Status};

/// The text of `docs/settings.md`.
pub fn manual() -> String {
    let mut text = MANUAL_HEAD.to_owned();
    for section in Section::ALL {
        text.push_str(&format!("\n## {section}\n\n{}\n", about(section)));
        let mut group = "";
        for spec in section.specs() {
            if section == Section::General && spec.group != group {
                group = spec.group;
                text.push_str(&format!("\n### {group}\n"));
            }
            text.push_str(&entry(spec));
        }
    }
    text
}

/// The text of `docs/example.ini`: every key with its default, commented out.
pub fn example() -> String {
    let mut text = EXAMPLE_HEAD.to_owned();
    let mut group = "";
    let defaults = General::default();
    for key in GENERAL {
        let spec = &key.spec;
        if spec.group != group {
            group = spec.group;
            text.push_str(&format!("\n;;; {group}\n"));
        }
        text.push('\n');
        text.push_str(&wrapped(&sentence(spec), ";; "));
        let default = spec.default.map(str::to_owned).or((key.show)(&defaults)).unwrap_or_default();
        text.push_str(format!(";{} = {default}", spec.name).trim_end());
        text.push('\n');
    }
    for section in [Section::Databases, Section::Users, Section::Peers] {
        text.push_str(&format!("\n{section}\n"));
        text.push_str(&wrapped(about(section), ";; "));
        text.push_str(";;\n");
        for spec in section.specs() {
            text.push_str(&wrapped(&format!("{}: {}", spec.name, sentence(spec)), ";; "));
        }
        text.push_str(match section {
            Section::Databases => EXAMPLE_DATABASES,
            Section::Users => ";app = pool_mode=session max_user_connections=10\n",
            Section::General | Section::Peers => ";2 = host=127.0.0.1 port=6433\n",
        });
    }
    text
}

fn about(section: Section) -> &'static str {
    match section {
        Section::General => {
            "One `key = value` a line. Every further `[pgbouncer]` sets all keys back to their defaults, \
             except those that have none."
        }
        Section::Databases => {
            "One `name = key=value key=value ...` a line, the values as described above. The name is what \
             clients ask for; `*` is the entry for all names that have none of their own. `pgbouncer` is the \
             console and cannot be used; `howdah` is the console too, unless there is an entry of that name."
        }
        Section::Users => {
            "One `name = key=value ...` a line: what is different for this user. For the pool's mode and \
             sizes and for `query_wait_timeout` the user goes before the database, and the database before \
             `[pgbouncer]`. Other times hold only above 0, so a user cannot switch one off."
        }
        Section::Peers => {
            "One `number = key=value ...` a line, for each process that shares the port, its own number \
             included. Not built yet: accepted, and warned of."
        }
    }
}

/// A key of the manual: its name, a line of facts, the documentation.
fn entry(spec: &Spec) -> String {
    let default = match spec.default {
        None => "no default".to_owned(),
        Some("") => "default empty".to_owned(),
        Some(default) => format!("default `{default}`"),
    };
    let change = match spec.change {
        Change::Reload => "takes effect on RELOAD",
        Change::Reconnect => "takes effect on RELOAD, servers reconnect",
        Change::Restart => "needs a restart",
    };
    let mut text = format!("\n#### `{}`\n\n", spec.name);
    let _ = writeln!(text, "*{}; {default}; {change}.*\n\n{}", spec.kind.name(), sentence(spec));
    if let Some(alias) = spec.alias {
        let _ = writeln!(text, "\nThe older name `{alias}` is read too.");
    }
    if !plain(spec) {
        let _ = writeln!(text, "\nAllowed: {}.", spec.kind.allowed());
    }
    text
}

/// The type's name says already what is allowed.
fn plain(spec: &Spec) -> bool {
    use crate::value::Kind::{Flag, List, Path, Secret, Text};
    matches!(spec.kind, Flag | List | Path | Secret | Text)
}

/// The documentation with the status behind it.
fn sentence(spec: &Spec) -> String {
    let status = match spec.status {
        Status::Built => String::new(),
        Status::BuiltExcept(values) => {
            format!(" Not built yet: {} (accepted, and warned of).", values.join(", "))
        }
        Status::NotBuilt => " Not built yet: accepted, and warned of.".to_owned(),
        Status::Meaningless => " Accepted, and warned of.".to_owned(),
        Status::Ignored => " Accepted in silence.".to_owned(),
    };
    format!("{}{status}", spec.paragraph())
}

/// Lines of at most [`WIDTH`] characters, each after `prefix`.
fn wrapped(paragraph: &str, prefix: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && prefix.len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{prefix}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{prefix}{line}");
    text
}

const WIDTH: usize = 100;

const MANUAL_HEAD: &str = "\
# Settings

<!-- Made by `cargo xtask gen-docs` from the table in crates/settings; change it there. -->

Howdah reads PgBouncer's own file, and the keys mean what they mean there. `howdah check FILE` reads a file \
and tells everything that is wrong with it, and every key that is accepted but does nothing yet, without \
starting anything. A commented file with every key is [example.ini](example.ini).

## The file

- `[section]` lines part it; `key = value` lines fill it. A line whose first character is `;` or `#` is a \
comment; later in a line both belong to the value. The value is the rest of the line without the blanks at \
its ends.
- A key is made of letters, digits, `_`, `.`, `-` and `*`. Any other goes in single quotes: `'my db' = ...`.
- `%include FILE` reads another file at this place, in the section that holds here. A relative path begins at \
the working directory of the process. Files may include files up to ten deep.
- Whole numbers may be hexadecimal (`0x1f`) and, with a `0` before them, are octal. Switches are `0` and `1`. \
Times are seconds and may have decimals. Words are the same in upper and lower case.
- Entries of `[databases]`, `[users]` and `[peers]` hold `key=value` pairs between blanks. A value with blanks \
stands in single quotes, and `''` is one quote inside them. A value cannot be empty.

A mistake is told with file, line, column, the key, what is allowed and the nearest key there is, and no \
value is ever repeated, for it may be a secret. All mistakes are told at once. After a mistake nothing is \
started, and on RELOAD the old settings stay in force. A key that is given twice is warned of, and the last \
one holds.

RELOAD and SIGHUP read the file again and undo what SET changed. Keys that need a restart keep their value \
until then, and SET passes over them in silence. SHOW CONFIG tells the values in force.
";

const EXAMPLE_HEAD: &str = "\
;; Every setting of Howdah with its default. Take the ; before a key away to change it.
;; Made by cargo xtask gen-docs; docs/settings.md tells more.

[pgbouncer]
";

const EXAMPLE_DATABASES: &str = "\
;app = host=127.0.0.1 port=5432 dbname=app
;reports = host=10.0.0.7,10.0.0.8 user=reporter password='it''s secret' pool_size=5
;* = host=/var/run/postgresql
";
