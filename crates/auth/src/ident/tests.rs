//! Ident maps and their mistakes.

use super::{IdentFault, IdentMaps, check_identity};
use crate::Refusal;

const FILE: &str = "\
# comment
m  alice  db_alice
m  \"bob \"\"b\"\"\"  \"all\"   # a user of that name
m  carol  all
other alice x
";

fn maps() -> IdentMaps {
    let (maps, problems) = IdentMaps::parse(FILE.as_bytes());
    assert!(problems.is_empty(), "{problems:?}");
    maps
}

#[track_caller]
fn check(map: Option<&str>, system_user: Option<&str>, user: &str, expected: Result<(), Refusal>) {
    assert_eq!(check_identity(&maps(), map, system_user, user), expected);
}

#[test]
fn without_a_map_the_names_must_be_the_same() {
    check(None, Some("alice"), "alice", Ok(()));
    check(None, Some("alice"), "db_alice", Err(Refusal::IdentityDiffers));
    check(None, Some("Alice"), "alice", Err(Refusal::IdentityDiffers));
}

#[test]
fn a_map_lets_in_whom_it_names() {
    check(Some("m"), Some("alice"), "db_alice", Ok(()));
    check(Some("m"), Some("alice"), "alice", Err(Refusal::IdentityDiffers));
    check(Some("m"), Some("carol"), "anybody", Ok(()));
    check(Some("other"), Some("alice"), "db_alice", Err(Refusal::IdentityDiffers));
    check(Some("no such map"), Some("alice"), "alice", Err(Refusal::IdentityDiffers));
}

#[test]
fn quoted_all_is_a_user() {
    check(Some("m"), Some("bob \"b\""), "all", Ok(()));
    check(Some("m"), Some("bob \"b\""), "alice", Err(Refusal::IdentityDiffers));
}

#[test]
fn nobody_is_not_somebody() {
    check(None, None, "alice", Err(Refusal::IdentityMissing));
    check(None, Some(""), "", Err(Refusal::IdentityMissing));
}

#[track_caller]
fn check_problem(line: &[u8], column: u32, fault: IdentFault) {
    let (maps, problems) = IdentMaps::parse(&[line, b"\nm a b\n"].concat());
    let told: Vec<_> = problems.listed.iter().map(|told| (told.line, told.column, told.fault)).collect();
    assert_eq!(told, [(1, column, fault)]);
    assert!(maps.allows("m", "a", "b"), "the good line counts");
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    check_problem(b"m", 2, IdentFault::FieldMissing);
    check_problem(b"m x", 4, IdentFault::FieldMissing);
    check_problem(b"m x, y", 4, IdentFault::FieldMissing);
    check_problem(b"m x y z", 7, IdentFault::TextAfterEnd);
    check_problem(b"m /^x y", 3, IdentFault::RegexUnsupported);
    check_problem(b"m x +y", 5, IdentFault::GroupUnsupported);
    check_problem(b"m x \"y", 5, IdentFault::QuoteUnclosed);
    check_problem(b"m \xff y", 3, IdentFault::NotUtf8);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(file: Vec<u8>) {
        IdentMaps::parse(&file);
    }
}
