//! Words are found as words.

use super::found_in;

#[track_caller]
fn check(line: &str, count: usize) {
    assert_eq!(found_in(line, true).count(), count, "{line}");
}

#[test]
fn unfinished_work_is_found() {
    check("        todo!()", 1);
    check("// FIXME: later, or todo!", 2);
    check("#[ignore = \"slow\"]", 1);
}

#[test]
fn ends_of_longer_words_are_not_found() {
    check("my_todo!()", 0);
    check("mkdir /homework", 0);
    check("src/home/page and {dir}/work/x", 0);
}

#[test]
fn places_of_one_machine_are_found_in_any_text() {
    assert_eq!(found_in("cd /root/x", false).count(), 1);
    assert_eq!(found_in("todo!", false).count(), 0);
}
