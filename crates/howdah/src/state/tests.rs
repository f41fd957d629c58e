//! What is said of a file: a line for each effect, with the statement's line.

use sql::state::{BUILT_IN, Functions};

use super::report;

#[test]
fn each_statement_is_named_with_its_line_class_and_hint() {
    let text =
        "-- a file\nselect 1;\nset a = 1;\n\nselect 'x\ny'; listen c;\ndo $$ $$; drop table t;\nunlisten c";
    let report = report("f.sql", text.as_bytes(), &BUILT_IN);
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
    let report = report("f.sql", b"\xff\x00\x1b[1m 'open", &BUILT_IN);
    assert!(report.contains("not read: pins until DISCARD ALL"), "{report}");
}

#[test]
fn functions_of_ones_own_are_known_where_the_settings_name_them() {
    let text = b"select app.set_tenant(7)";
    assert!(report("f.sql", text, &BUILT_IN).contains(": none"));
    let named = report("f.sql", text, &Functions::with(["set_tenant"]));
    assert!(named.contains("set_tenant: pins until DISCARD ALL: function named in the settings"), "{named}");
}

#[test]
fn what_sql_prepares_is_carried() {
    let report = report("f.sql", b"prepare p as select 1; explain execute p; execute p", &BUILT_IN);
    for line in ["PREPARE p: carried", "EXPLAIN EXECUTE p: none", "EXECUTE p: none"] {
        assert!(report.contains(line), "{report}");
    }
}
