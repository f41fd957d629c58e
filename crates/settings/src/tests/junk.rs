//! Files that nobody wrote: mutated, cut and enormous ones. Reading ends, and never panics.

use proptest::prelude::*;

use super::{good, read_with};
use crate::{Outcome, Settings, example};

/// A file with something of everything in it.
fn seed() -> Vec<u8> {
    let shown: String = example()
        .lines()
        .filter(|line| !line.starts_with(";;"))
        .fold(String::new(), |text, line| text + line.strip_prefix(';').unwrap_or(line) + "\n");
    format!("%include more.ini\n{shown}\n'odd name' = user='a ''b' password=x\n%include more.ini\n")
        .into_bytes()
}

fn outcome(text: &[u8]) -> Outcome {
    read_with(
        text,
        &[("more.ini", "[databases]\nm = host=a,b port=5\n; end"), ("again.ini", "%include again.ini")],
    )
}

/// Whatever came of it can be shown, and nothing but whole settings come without problems.
fn check(text: &[u8]) {
    let outcome = outcome(text);
    match &outcome.settings {
        Ok(settings) => assert_eq!(settings.show_config().rows.len(), crate::GENERAL.len()),
        Err(problems) => assert!(!problems.is_empty() && problems.len() < 300),
    }
    for problem in outcome.settings.err().into_iter().flatten() {
        assert!(problem.to_string().len() < 2000, "{problem}");
    }
    assert!(outcome.warnings.len() < 300);
}

/// One change to a text: what, where, and with what.
fn mutate(text: &mut Vec<u8>, (what, at, with): (u8, usize, u8)) {
    let at = at % (text.len() + 1);
    let marks = b"=='[]%;#\n\n \t\0\xff,:0-*\"";
    let mark = marks[usize::from(with) % marks.len()];
    match what % 6 {
        0 => text.insert(at, with),
        1 => text.insert(at, mark),
        2 if at < text.len() => text[at] = mark,
        3 if at < text.len() => drop(text.remove(at)),
        4 => drop(text.drain(at..(at + usize::from(with)).min(text.len()))),
        _ => {
            let copy = text[at..(at + usize::from(with)).min(text.len())].to_vec();
            text.splice(at..at, copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn mutated_file_is_read_or_refused(
        start in 0usize..60_000,
        length in 1usize..3_000,
        changes in prop::collection::vec((any::<u8>(), any::<usize>(), any::<u8>()), 1..12),
    ) {
        let seed = seed();
        let start = start % seed.len();
        let mut text = b"[pgbouncer]\n".to_vec();
        text.extend(&seed[start..(start + length).min(seed.len())]);
        for change in changes {
            mutate(&mut text, change);
        }
        check(&text);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&text);
        check(&[b"[pgbouncer]\n[databases]\na = ", text.as_slice()].concat());
    }

    #[test]
    fn any_value_is_set_or_refused_and_shown_again_the_same(key in 0usize..200, value in "\\PC{0,12}|[0-9.,-]{1,8}") {
        let key = &crate::GENERAL[key % crate::GENERAL.len()];
        if let Ok(settings) = Settings::default().with(key.spec.name, &value)
            && let Some(shown) = settings.show(key.spec.name).flatten()
            && shown != "***"
        {
            let again = Settings::default().with(key.spec.name, &shown);
            // Times are shown with six digits, so the second showing is what must not differ.
            prop_assert_eq!(again.map(|again| again.show(key.spec.name)), Ok(Some(Some(shown))));
        }
    }

    #[test]
    fn any_url_is_read_or_refused(url in "(postgres://)?\\PC{0,60}", cut in "postgres://[a%@:/?&=,\\[\\]0-9]{0,30}") {
        for url in [url, cut] {
            if let Err(problems) = Settings::from_url(&url) {
                prop_assert!(problems.iter().all(|problem| problem.column as usize <= url.chars().count() + 1));
            }
        }
    }
}

#[test]
fn megabytes_on_one_line_are_read_to_the_end() {
    let million = 1_000_000;
    for piece in [
        "x",
        "=",
        "'",
        "''",
        "[",
        "[]",
        "%",
        " ",
        "a=b ",
        "host=a ",
        "a='",
        "é",
        "x=1\n",
        "workers=1\n",
        "\n",
    ] {
        for head in
            ["", "[pgbouncer]\n", "[pgbouncer]\n[databases]\na = ", "[pgbouncer]\n[databases]\na = host='"]
        {
            check(format!("{head}{}", piece.repeat(million / piece.len())).as_bytes());
            // Just under the limit of a line.
            check(format!("{head}{}", piece.repeat(130_000 / piece.len())).as_bytes());
        }
    }
}

#[test]
fn ten_thousand_databases_are_read() {
    let entries: String = (0..10_000).map(|n| format!("db{n} = host=10.0.0.1 dbname=real{n}\n")).collect();
    assert_eq!(good(&format!("[pgbouncer]\n[databases]\n{entries}")).databases.len(), 10_000);
}
