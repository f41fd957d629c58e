//! Folding, quotes, and where a long name is cut.

use super::Name;

fn check(written: &str, expect: &str) {
    assert_eq!(Name::written(written.as_bytes()).to_vec(), expect.as_bytes(), "{written}");
}

#[test]
fn a_name_is_folded_unquoted_and_joined() {
    check("TimeZone", "timezone");
    check("\"TimeZone\"", "TimeZone");
    check("My.\"Own \"\"x\"\"\"", "my.Own \"x\"");
    check("a /* . */ . b", "a.b");
    check("\"\"\"\"", "\"");
}

#[test]
fn a_long_name_is_cut_between_characters() {
    let long = "x".repeat(70);
    check(&long, &long[..63]);
    check(&format!("{}ä", "x".repeat(62)), &"x".repeat(62));
    check(&format!("{}ä", "x".repeat(61)), &format!("{}ä", "x".repeat(61)));
}

#[test]
fn temp_schema_is_known_however_it_is_written() {
    for (written, expect) in [
        ("pg_temp.t", true),
        ("PG_TEMP.t", true),
        ("\"pg_temp\".t", true),
        ("\"PG_TEMP\".t", false),
        ("pg_temp_12.t", true),
        ("pg_temp", false),
        ("public.pg_temp", false),
    ] {
        assert_eq!(Name::written(written.as_bytes()).is_in_temp_schema(), expect, "{written}");
    }
}
