//! Where each kind of piece ends.

use super::{Lexer, Token};

/// The pieces, joined by `|` as they are written; `?` is what is unread.
fn pieces(text: &str, standard: bool) -> String {
    let mut lexer = Lexer::new(text.as_bytes(), standard);
    let mut list = Vec::new();
    while let Some(token) = lexer.next() {
        list.push(match token {
            Token::Unread => "?".to_owned(),
            _ => String::from_utf8_lossy(&text.as_bytes()[lexer.start..lexer.at]).into_owned(),
        });
    }
    list.join("|")
}

fn check(text: &str, expect: &str) {
    assert_eq!(pieces(text, true), expect, "{text}");
}

fn check_off(text: &str, expect: &str) {
    assert_eq!(pieces(text, false), expect, "{text}");
}

#[test]
fn strings_end_where_postgresql_ends_them() {
    check("'a' b", "'a'|b");
    check("'a''b' c", "'a''b'|c");
    check(r"'a\' b", r"'a\'|b");
    check(r"'a\' c'", r"'a\'|c|?");
    check_off(r"'a\' b' c", r"'a\' b'|c");
    check(r"E'a\' b' c", r"E'a\' b'|c");
    check(r"e'a\\' b", r"e'a\\'|b");
    check(r"e'''' b", r"e''''|b");
    check(r"U&'\0041' b", r"U&'\0041'|b");
    check(r"u & 'a'", "u|&|'a'");
    check("B'01' X'ff'", "B'01'|X'ff'");
    check(r"b'\' c", r"b'\'|c");
    check_off(r"b'\' c", r"b'\'|c");
    check("N'a''b' c", "N'a''b'|c");
    check_off(r"n'\'' c", r"n'\''|c");
    check("date'2020'", "date|'2020'");
    check("table'x", "table|?");
    check("'open", "?");
    check("e'open\\'", "?");
    check("e'open\\", "?");
}

#[test]
fn string_goes_on_after_a_newline_as_it_began() {
    check("E'a'\n'\\'' b", "E'a'\n'\\''|b");
    check("E'a' -- c\n '\\'' b", "E'a' -- c\n '\\''|b");
    check("'a' 'b'", "'a'|'b'");
    check("'a' -- c", "'a'");
    check("'a'\n/**/'b'", "'a'|'b'");
    check("'a'\n'b", "?");
}

#[test]
fn names_in_quotes_hold_anything() {
    check("\"a;b\" c", "\"a;b\"|c");
    check("\"a\"\"b\" c", "\"a\"\"b\"|c");
    check("\"--\" c", "\"--\"|c");
    check("U&\"ab\" c", "?|c");
    check("U&\"\\0061b\" c", "?|c");
    check("U&\"!0061b\" UESCAPE '!'", "?|UESCAPE|'!'");
    check("a\"b\"", "a|\"b\"");
    check("\"open", "?");
}

#[test]
fn dollars_quote_count_and_belong_to_names() {
    check("$$a;'b$$ c", "$$a;'b$$|c");
    check("$t$ $$ $T$ $t$ c", "$t$ $$ $T$ $t$|c");
    check("$t1$a$t1$ c", "$t1$a$t1$|c");
    check("$1 $23", "$1|$23");
    check("$1$t$x$t$", "$1|$t$x$t$");
    check("$1t$x$t$", "$1|t$x$t$");
    check("a$b$c$b$", "a$b$c$b$");
    check("1$t$x$t$", "1|$t$x$t$");
    check("$ a", "$|a");
    check("$t a", "$|t|a");
    check("$t$ open", "?");
    check("$t$ a $t $ $t", "?");
    check("$ä$;$ä$ b", "$ä$;$ä$|b");
    check("$$$$", "$$$$");
}

#[test]
fn comments_are_left_out() {
    check("a -- b\nc", "a|c");
    check("a -- b\rc", "a|c");
    check("a--", "a");
    check("a - - b", "a|-|-|b");
    check("a/* b /* c */ d */e", "a|e");
    check("a*/**/b", "a|*|b");
    check("a/*/b*/c", "a|c");
    check("a/**/'x'/*'*/b", "a|'x'|b");
    check("a </* ' */ b", "a|<|b");
    check("a /* open /* */", "a|?");
    check("/*", "?");
    check("--'\nb", "b");
}

#[test]
fn operators_and_numbers_stay_harmless() {
    check("a::b:=c=>d", "a|::|b|:|=|c|=|>|d");
    check("1.5e10 0x1F 1_000", "1|.|5|e10|0|x1F|1|_000");
    check("1e'\\''", "1|e'\\''");
    check("a\u{b}b\u{c}c", "a|b|c");
    check("été x", "été|x");
    check("", "");
}
