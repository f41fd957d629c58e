//! The auth_file's quoting, secrets and mistakes.

use super::{SECRET_BYTES_MAX, Userlist, UserlistFault};
use crate::method::UnknownAs;
use crate::{PROBLEMS_MAX, Password, StoredSecret};

fn clear(text: &str) -> StoredSecret {
    StoredSecret::Clear(Password::new(text))
}

#[track_caller]
fn check(file: &str, users: &[(&str, StoredSecret)]) {
    let (list, problems) = Userlist::parse(file.as_bytes());
    assert!(problems.is_empty(), "{problems:?}");
    let expected = users.iter().map(|(user, secret)| ((*user).to_owned(), secret.clone())).collect();
    assert_eq!(list.users, expected);
}

/// One bad line between two good ones: told with its place, and the good ones count.
#[track_caller]
fn check_problem(line: &[u8], column: u32, fault: UserlistFault) {
    let file = [b"\"first\" \"x\"\n", line, b"\n\"last\" \"y\"\n"].concat();
    let (list, problems) = Userlist::parse(&file);
    assert_eq!(list.users.keys().collect::<Vec<_>>(), ["first", "last"]);
    let told: Vec<_> = problems.listed.iter().map(|told| (told.line, told.column, told.fault)).collect();
    assert_eq!(told, [(2, column, fault)]);
}

#[test]
fn users_and_secrets_are_read() {
    check(
        "; comment\n\n\"a\" \"secret\"\r\n  \"b\"\t\"x\" \"ignored\" \n\"c\" \"\"",
        &[("a", clear("secret")), ("b", clear("x")), ("c", StoredSecret::Unusable)],
    );
}

#[test]
fn two_quotes_are_one() {
    check("\"a\"\"b\" \"\"\"\"\n", &[("a\"b", clear("\""))]);
    check("\"a\" \"x\"\"y\"\"\"\n", &[("a", clear("x\"y\""))]);
}

#[test]
fn comment_signs_and_blanks_inside_quotes_are_kept() {
    check("\" ; a\" \" # b \"\n", &[(" ; a", clear(" # b "))]);
}

#[test]
fn user_named_twice_has_the_last_secret() {
    check("\"a\" \"x\"\n\"a\" \"y\"\n", &[("a", clear("y"))]);
}

#[test]
fn byte_order_mark_is_passed_over() {
    check("\u{feff}\"a\" \"x\"", &[("a", clear("x"))]);
}

#[test]
fn kinds_of_secret_are_told_apart() {
    let (list, problems) = Userlist::parse(
        b"\"m\" \"md516ead560cce489da9f2fd00912e06712\"\n\
\"s\" \"SCRAM-SHA-256$4096:4uWnNc8fnE89r223z3FzSw==$Y83pca+OEhUeQabWFtZ99Rkjnsk8aSTWt/eB3XhpUuc=:cyVmK5/isNM4ttY7Xc6CsZCZrJdPOV1a3fRhuXBKxtU=\"\n",
    );
    assert!(problems.is_empty());
    assert!(matches!(list.secret("m"), Some(StoredSecret::Md5(_))));
    assert!(matches!(list.secret("s"), Some(StoredSecret::Scram(_))));
    assert_eq!(list.secret("nobody"), None);
    assert_eq!(list.unknown_as(), UnknownAs::Md5);
}

#[test]
fn password_need_not_be_utf8() {
    let (list, problems) = Userlist::parse(b"\"a\" \"\xff\xfe\"");
    assert!(problems.is_empty());
    assert_eq!(list.secret("a"), Some(&StoredSecret::Clear(Password::new(b"\xff\xfe"))));
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    check_problem(b"user secret", 1, UserlistFault::NoUser);
    check_problem(b"  # \"user\" \"secret\"", 3, UserlistFault::NoUser);
    check_problem(b"\"user\"", 7, UserlistFault::NoSecret);
    check_problem(b"\"user\" secret", 7, UserlistFault::NoSecret);
    check_problem(b"\"user \"\"", 1, UserlistFault::QuoteUnclosed);
    check_problem(b"\"user\" \"secret", 8, UserlistFault::QuoteUnclosed);
    check_problem("\"\u{e9}\u{e9}\" \"secret".as_bytes(), 6, UserlistFault::QuoteUnclosed);
    check_problem(b"\"\" \"secret\"", 1, UserlistFault::NameEmpty);
    check_problem(b"\"a\xff\" \"secret\"", 1, UserlistFault::NameNotUtf8);
    check_problem(b"\"a\0\" \"secret\"", 1, UserlistFault::NulByte);
    check_problem(b"\"a\" \"SCRAM-SHA-256$1:x\"", 5, UserlistFault::VerifierMalformed);
}

#[test]
fn lengths_are_bounded() {
    let line = |user: usize, secret: usize| format!("\"{}\" \"{}\"", "u".repeat(user), "s".repeat(secret));
    assert!(Userlist::parse(line(127, SECRET_BYTES_MAX).as_bytes()).1.is_empty());
    check_problem(line(128, 1).as_bytes(), 1, UserlistFault::NameTooLong);
    check_problem(line(1, SECRET_BYTES_MAX + 1).as_bytes(), 5, UserlistFault::SecretTooLong);
}

#[test]
fn problems_beyond_the_limit_are_counted() {
    let (_, problems) = Userlist::parse("x\n".repeat(PROBLEMS_MAX + 7).as_bytes());
    assert_eq!(problems.listed.len(), PROBLEMS_MAX);
    assert_eq!(problems.more, 7);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(file: Vec<u8>) {
        Userlist::parse(&file);
    }

    #[test]
    fn any_name_and_password_can_be_quoted(user in "[^\0\n]{1,20}", secret in "[^\0\n]{1,20}") {
        let quoted = |text: &str| text.replace('"', "\"\"");
        let file = format!("\"{}\" \"{}\"\n", quoted(&user), quoted(&secret));
        let (list, problems) = Userlist::parse(file.as_bytes());
        proptest::prop_assert!(problems.is_empty());
        proptest::prop_assert_eq!(list.secret(&user), Some(&clear(&secret)));
    }
}
