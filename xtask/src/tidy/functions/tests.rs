//! Functions are found where they are, and the ratchet only goes one way.

use super::{Text, check, functions};

#[test]
fn functions_are_found_with_their_size_and_depth() {
    let text = "trait T {\n    fn none(&self);\n}\nfn one() -> [u8; 2] {\n    if a {\n        b\n    }\n}\n";
    let found = functions(text);
    assert_eq!(found.len(), 1);
    let one = &found[0];
    assert_eq!((one.name.as_str(), one.line, one.lines, one.depth), ("one", 4, 5, 1));
}

#[test]
fn pointers_to_functions_are_no_functions() {
    assert!(functions("type A = fn (u8);\nlet x: fn(u8) = y;").is_empty());
}

#[track_caller]
fn faults(lines: usize, above: &str, allowed: &str) -> Vec<String> {
    let body = "    x();\n".repeat(lines - 2);
    let text = Text { path: "a.rs".into(), text: format!("{above}fn f() {{\n{body}}}\n") };
    let mut faults = Vec::new();
    check(&[text], allowed, false, &mut faults);
    faults
}

#[test]
fn long_function_is_a_fault_unless_allowed() {
    assert!(faults(70, "", "").is_empty());
    assert_eq!(faults(71, "", ""), ["a.rs:1: f has 71 lines (at most 70)"]);
    assert!(faults(71, "", "a.rs f 71").is_empty());
}

#[test]
fn allowed_function_may_only_shrink() {
    assert_eq!(faults(80, "", "a.rs f 75"), ["a.rs:1: f has grown from 75 to 80 lines"]);
    assert_eq!(faults(75, "", "a.rs f 80").len(), 1);
    assert_eq!(faults(20, "", "a.rs f 80").len(), 1);
}

#[test]
fn table_is_excused() {
    assert!(faults(100, "/// All of them.\n// long: table\n#[inline]\n", "").is_empty());
    assert_eq!(faults(100, "// long: table\n\n", "").len(), 1);
}
