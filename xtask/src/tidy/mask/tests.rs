//! What is code and what only looks like it.

use super::code_only;

#[track_caller]
fn check(text: &str, expected: &str) {
    let squeezed: Vec<_> = code_only(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(squeezed.join(" "), expected);
}

#[test]
fn comments_are_blank() {
    check("a // { \n b /* { /* } */ { */ c", "a b c");
}

#[test]
fn strings_are_blank() {
    check(r#"a("{\"{", b"{", "\\") }"#, "a( , b , ) }");
}

#[test]
fn raw_strings_are_blank() {
    check("a(r\"{\\\", r#\"{\"{\"#, br##\"{\"#\"##) }", "a( , , ) }");
}

#[test]
fn characters_are_blank_and_lifetimes_are_not() {
    check(r"a('{', '\'', '\u{7b}', b'}') <'a> &'static", "a( , , , b ) <'a> &'static");
}

#[test]
fn names_that_end_in_r_are_no_raw_strings() {
    check("writer\"{\"", "writer");
}

#[test]
fn lines_stay_lines() {
    assert_eq!(code_only("\"a\nb\"\n/*\n*/\n").lines().count(), 4);
}
