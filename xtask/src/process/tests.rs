//! What cargo reports is read right.

use super::Count;

#[test]
fn result_lines_are_read() {
    let line =
        "test result: ok. 15 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.51s";
    assert_eq!(Count::in_line(line), Some(Count { passed: 15, failed: 0 }));
    let line =
        "test result: FAILED. 14 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.91s";
    assert_eq!(Count::in_line(line), Some(Count { passed: 14, failed: 1 }));
}

#[test]
fn other_lines_are_not() {
    assert_eq!(Count::in_line("test result_lines_are_read ... ok"), None);
    assert_eq!(Count::in_line("test result: ok. many passed"), None);
}
