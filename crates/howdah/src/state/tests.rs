//! What is said of a file: a line for each effect, with the statement's line.

use super::report;

#[test]
fn each_statement_is_named_with_its_line_class_and_hint() {
    let text =
        "-- a file\nselect 1;\nset a = 1;\n\nselect 'x\ny'; listen c;\ndo $$ $$; drop table t;\nunlisten c";
    let report = report("f.sql", text.as_bytes());
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(
        lines,
        [
            "f.sql:2: select 1: none",
            "f.sql:3: SET a: carried",
            "f.sql:5: select 'x y': none",
            "f.sql:6: LISTEN c: pins until UNLISTEN: LISTEN; instead: listen on a connection that does nothing else",
            "f.sql:7: DO: the server is asked; instead: make state in statements of its own, or end it within",
            "f.sql:7: DROP t: none: ends state",
            "f.sql:8: UNLISTEN c: none: ends state",
            "f.sql: 1 carried, 1 pin, 1 of which the server is asked; 4 statements without state",
        ]
    );
}

#[test]
fn bytes_that_are_no_text_are_told_of_without_harm() {
    let report = report("f.sql", b"\xff\x00\x1b[1m 'open");
    assert!(report.contains("not read: pins until DISCARD ALL"), "{report}");
}
