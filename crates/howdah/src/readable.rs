//! `howdah check --reads`: which statements of a file may go to a standby, as far as it can be said without a catalog.
//!
//! What a statement is, is for the crate `reads` to say; here it is only put into words.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use reads::{Name, Needs, Why};
use sql::fingerprint::masked;
use sql::state::{Options, scan};

use crate::state::{first_words, newlines};

pub fn check(path: &str) -> ExitCode {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("howdah: {path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let owned = path.to_owned();
    let reader = std::thread::Builder::new().stack_size(reads::STACK_BYTES);
    match reader.spawn(move || report(&owned, &text)).map(std::thread::JoinHandle::join) {
        Ok(Ok(report)) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("howdah: {path}: not read to its end");
            ExitCode::FAILURE
        }
    }
}

/// A line for each statement; then the counts.
fn report(path: &str, text: &[u8]) -> String {
    let mut report = String::new();
    let (mut reads, mut primary) = (0, 0);
    let (mut line, mut counted_to) = (1, 0);
    for statement in scan(text, Options::default()).statements() {
        line += newlines(&text[counted_to..statement.offset]);
        counted_to = statement.offset;
        let verdict = judged(statement.text);
        reads += usize::from(verdict.is_ok());
        primary += usize::from(verdict.is_err());
        let words = match verdict {
            Ok(needs) => if_so(&needs),
            Err(why) => format!("primary: {}", why.words()),
        };
        let _ = writeln!(report, "{path}:{line}: {}: {words}", first_words(statement.text));
    }
    let _ = writeln!(report, "{path}: {reads} may be reads, {primary} go to the primary");
    report
}

fn judged(text: &[u8]) -> Result<Needs, Why> {
    let masked = masked(text).map_err(|unfit| reads::unfit(text, unfit))?;
    reads::read(&masked)
}

/// What the catalog must agree to.
fn if_so(needs: &Needs) -> String {
    let Needs { functions, operators, types, relations, fields: _, ctes } = needs;
    let known: BTreeSet<Name> = relations.iter().filter(|name| !ctes.contains(&name.name)).cloned().collect();
    let mut parts = Vec::new();
    for (what, names) in
        [("tables", &known), ("functions", functions), ("operators", operators), ("types", types)]
    {
        let list: Vec<String> = names.iter().map(told).collect();
        if !list.is_empty() {
            parts.push(format!("{what} {}", list.join(" ")));
        }
    }
    if parts.is_empty() {
        "read".to_owned()
    } else {
        format!("read, if the catalog agrees: {}", parts.join(", "))
    }
}

fn told(name: &Name) -> String {
    match &name.schema {
        Some(schema) => format!("{}.{}", schema.escape_debug(), name.name.escape_debug()),
        None => name.name.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::report;

    #[test]
    fn each_statement_is_named_with_its_line_and_verdict() {
        let text = "select 1;\n-- two\nselect lower(a) from t;\ninsert into t values (1); select nextval('s')\n;select";
        let report = report("f.sql", text.as_bytes());
        assert_eq!(
            report.lines().collect::<Vec<_>>(),
            [
                "f.sql:1: select 1: read",
                "f.sql:3: select lower(a) from t: read, if the catalog agrees: tables t, functions lower",
                "f.sql:4: insert into t values (1): primary: write",
                "f.sql:4: select nextval('s'): primary: sequence",
                "f.sql:5: select: read",
                "f.sql: 3 may be reads, 2 go to the primary",
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_told_of_without_harm() {
        let report = report("f.sql", b"select \xff\x00\x1b[1m 'open");
        assert!(report.contains("primary: not readable"), "{report}");
    }
}
