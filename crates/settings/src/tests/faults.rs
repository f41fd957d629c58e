//! Files that are wrong: each problem with its place, its key, what is allowed and the nearest known word.

mod entries;
mod general;

use super::{lines, read_with};
use crate::ProblemKind;

/// Reads `head` and `text`; every line of `wanted` is `line:column: ...` of one problem, where `…` stands for
/// anything up to the next `;` or the end.
#[track_caller]
fn check(head: &str, text: &str, wanted: &str) {
    let problems = read_with(format!("{head}{text}").as_bytes(), &[]).settings.err().unwrap_or_default();
    let seen: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
    let wanted: Vec<String> = wanted.lines().map(|line| format!("pgbouncer.ini:{line}")).collect();
    let same =
        seen.len() == wanted.len() && seen.iter().zip(&wanted).all(|(seen, wanted)| fits(seen, wanted));
    assert!(same, "{text}\nseen\n{}\nwanted\n{}", seen.join("\n"), wanted.join("\n"));
    for problem in &problems {
        assert!(problem.line > 0 && problem.column > 0 && problem.allowed.is_some(), "{problem}");
    }
}

fn fits(seen: &str, wanted: &str) -> bool {
    let mut rest = seen;
    for (index, piece) in wanted.split('…').enumerate() {
        if index > 0 {
            rest = rest.find(';').map_or("", |at| &rest[at..]);
        }
        match rest.strip_prefix(piece) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

#[test]
fn bytes_that_are_no_text_are_told() {
    let told = |text: &[u8]| lines(&read_with(text, &[]).settings.unwrap_err());
    assert_eq!(told(b"[pgbouncer]\nuser = \xff"), "pgbouncer.ini:2:8: not UTF-8 text; allowed: UTF-8");
    assert_eq!(told(b"[pgbouncer]\nuser = a\0b"), "pgbouncer.ini:2:9: not UTF-8 text; allowed: UTF-8");
    let long = [b"[pgbouncer]\nuser = ".as_slice(), &[b'x'; 1_000_000], b"\npool_mode = x"].concat();
    let wanted =
        "pgbouncer.ini:2:1: line too long; allowed: 128 KB\npgbouncer.ini:3:13: pool_mode: value not";
    assert!(told(&long).starts_with(wanted), "{}", told(&long));
}

#[test]
fn file_that_cannot_be_read_is_named_with_the_reason() {
    let outcome = crate::read("none.ini", &|_: &str| Err("permission denied".to_owned()));
    assert_eq!(lines(&outcome.settings.unwrap_err()), "none.ini: cannot read none.ini: permission denied");
    let outcome = read_with(b"[pgbouncer]\n  %include  other.ini\npool_mod = x", &[]);
    let wanted = "pgbouncer.ini:2:13: %include: cannot read other.ini: no such file\n\
        pgbouncer.ini:3:1: pool_mod: unknown key in [pgbouncer]; did you mean pool_mode?";
    assert_eq!(lines(&outcome.settings.unwrap_err()), wanted);
}

#[test]
fn include_loops_and_depths_are_told_where_they_close() {
    let others = [("a", "%include b"), ("b", "\n%include a"), ("self", "%include pgbouncer.ini")];
    let outcome = read_with(b"[pgbouncer]\n%include a\n%include self\n", &others);
    let wanted = "b:2:10: %include: a includes itself; allowed: each file once on the way to it\n\
        self:1:10: %include: pgbouncer.ini includes itself; allowed: each file once on the way to it";
    assert_eq!(lines(&outcome.settings.unwrap_err()), wanted);
    let files = |path: &str| Ok(format!("%include {path}x").into_bytes());
    let problems = crate::read("x", &files).settings.unwrap_err();
    assert_eq!(problems[0].to_string(), "xxxxxxxxxxx:1:10: %include: files are included more than 10 deep");
}

#[test]
fn problem_in_an_included_file_names_that_file() {
    let outcome = read_with(b"[pgbouncer]\n%include a\n", &[("a", "\n pool_mode = x")]);
    assert!(outcome.settings.unwrap_err()[0].to_string().starts_with("a:2:14: pool_mode: value not allowed"));
}

#[test]
fn files_that_multiply_are_stopped() {
    let files = |path: &str| match path.len() {
        8 => Ok(Vec::new()),
        _ => Ok(format!("%include {path}x\n").repeat(20).into_bytes()),
    };
    let outcome = crate::read("x", &files);
    assert_eq!(outcome.files.len(), 1000);
    let problems = outcome.settings.unwrap_err();
    assert!(problems.iter().any(|problem| problem.kind == ProblemKind::FilesTooLarge));
}

#[test]
fn problems_beyond_a_limit_are_not_listed() {
    let problems = read_with("[pgbouncer]\nx = 1\n".repeat(5000).as_bytes(), &[]).settings.unwrap_err();
    assert_eq!(problems.len(), 201);
    assert_eq!(problems[200].to_string(), "pgbouncer.ini:402:1: too many problems; the rest is not listed");
}

#[test]
fn all_problems_of_a_file_are_told_at_once() {
    let text = "[pgbouncer]\npool_mod = x\npool_mode = x\n[databases]\na = prot=1 port=0\n[oops]\nx\n[users]\nu = x=1\n";
    let problems = read_with(text.as_bytes(), &[]).settings.unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
    assert_eq!(places, [(2, 1), (3, 13), (5, 5), (5, 17), (6, 1), (9, 5)]);
}

/// A password with blanks and no quotes, or under a mistyped key, falls into words that look like keys.
#[test]
fn no_problem_repeats_a_piece_of_a_secret() {
    let entries = [
        "a = host=h password=hush hush",
        "a = host=h password=x hush=hush",
        "a = host=h password=x hush = hush",
        "a = host=h pasword=hush hush",
        "a = host=h pasword=x hush=hush",
        "a = host=h password='x'hush",
        "a = host=h password='hush",
        "a = password=x ''hush'=1",
        "a = hush",
        "password = hush",
        "a hush",
        "hush",
        "\"a\" \"hush\"",
        "'hush",
        "hush: hush",
    ];
    for head in ["[pgbouncer]\n[databases]\n", "[pgbouncer]\n[users]\n", "[pgbouncer]\n"] {
        for entry in entries {
            let outcome = read_with(format!("{head}{entry}").as_bytes(), &[]);
            let problems = outcome.settings.unwrap_err();
            assert!(
                !problems.is_empty() && !format!("{problems:?}").contains("hush"),
                "{entry}: {problems:?}"
            );
            assert!(!format!("{:?}", outcome.warnings).contains("hush"), "{entry}");
        }
    }
}
