//! Any text is read to its end; splitting and blanks change nothing.

use proptest::prelude::*;

use super::all_told;
use crate::state::{Options, scan};

/// Statements that are whole: whatever follows a semicolon behind them is not theirs.
const WHOLE: [&str; 14] = [
    "select 1",
    "select 'a;''b', $q$;$q$, \"c;d\" /* ; */",
    "set a = 'b'",
    "begin",
    "rollback to s",
    "create rule r as on insert to t do (select 1; select 2)",
    "create function f() returns int begin atomic select case when a then 1 end; end",
    "create temp table t (a int)",
    "select set_config('a', $1, false)",
    "prepare p as select nextval('s')",
    "deallocate all",
    "select E'\\';' from t where pg_try_advisory_lock(1)",
    "frobnicate",
    "update pg_settings set setting = 'x'",
];

/// Pieces that go badly together.
const PIECES: [&str; 30] = [
    "'",
    "''",
    "\"",
    "$$",
    "$a$",
    "$1",
    "/*",
    "*/",
    "--",
    "\n",
    "\\",
    ";",
    "(",
    ")",
    ".",
    "::",
    "e'",
    "U&\"",
    "set ",
    "into ",
    "temp ",
    "pg_temp",
    "create ",
    "function ",
    "begin atomic ",
    " end",
    "set_config(",
    "as ",
    "execute ",
    "explain ",
];

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40).prop_map(|list| list.concat())
}

fn whole() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(&WHOLE[..]), 0..6)
}

fn options() -> impl Strategy<Value = Options<'static>> {
    any::<[bool; 2]>().prop_map(|[standard_conforming_strings, is_ascii_safe]| Options {
        standard_conforming_strings,
        is_ascii_safe,
        ..Options::default()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read(text in proptest::collection::vec(any::<u8>(), 0..200), options in options()) {
        let effects = scan(&text, options);
        prop_assert_eq!(effects.is_plain(), effects.list().is_empty());
    }

    #[test]
    fn any_pieces_are_read_and_the_quick_look_agrees(text in pieces(), options in options()) {
        all_told(&text, options);
        for statement in scan(text.as_bytes(), options).statements() {
            let end = statement.offset + statement.text.len();
            prop_assert_eq!(&text.as_bytes()[statement.offset..end], statement.text);
        }
    }

    #[test]
    fn effects_of_a_string_are_those_of_its_statements(list in whole()) {
        let whole = list.join(";");
        let mut expect = Vec::new();
        for (number, text) in list.iter().enumerate() {
            let one = all_told(text, Options::default());
            let one = one.split(" | ").filter(|part| !part.is_empty());
            expect.extend(one.map(|part| part.replacen("0:", &format!("{number}:"), 1)));
        }
        prop_assert_eq!(all_told(&whole, Options::default()), expect.join(" | "));
        prop_assert_eq!(scan(whole.as_bytes(), Options::default()).statements().count(), list.len());
    }

    #[test]
    fn comments_and_blanks_around_change_nothing(list in whole(), blanks in "( |\n|/\\*;'\\*/|--;\"\n){0,4}") {
        let whole = list.join(";");
        let other = format!("{blanks}{}{blanks}", list.join(&format!("{blanks};{blanks}")));
        prop_assert_eq!(all_told(&whole, Options::default()), all_told(&other, Options::default()));
    }
}
