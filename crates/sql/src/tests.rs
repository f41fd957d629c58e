//! What is a DEALLOCATE of one name, and what only looks like one.

use super::deallocated_name;

fn check(text: &str, expect: Option<&str>) {
    assert_eq!(deallocated_name(text.as_bytes()).as_deref(), expect.map(str::as_bytes), "{text}");
}

#[test]
fn a_deallocate_of_one_name_is_recognised() {
    check("DEALLOCATE s1", Some("s1"));
    check("deallocate prepare S1 ;", Some("s1"));
    check(" /* a /* nested */ one */ -- and\n DEALLOCATE \"Mixed \"\"Case\";", Some("Mixed \"Case"));
    check("deallocate prepare", Some("prepare"));
    check("deallocate \"all\"", Some("all"));
}

#[test]
fn anything_else_is_not() {
    for text in [
        "",
        "select 1",
        "deallocate",
        "deallocate all",
        "deallocate a; select 1",
        "deallocate a b",
        "deallocate 'a'",
        "deallocate \"open",
        "/* open deallocate a",
        "deallocated a",
        "discard all",
        "do $$deallocate a$$",
    ] {
        check(text, None);
    }
}
