//! The md5 exchange against values that PostgreSQL 15 made.

use super::{Md5Secret, check_md5};
use crate::{LoginSecret, Password, Refusal, StoredSecret};

const SALT: [u8; 4] = [1, 2, 3, 4];

/// PostgreSQL's own for user `e` with password `pencil`.
const STORED: &[u8] = b"md516ead560cce489da9f2fd00912e06712";

#[test]
fn secret_is_the_one_postgres_stores() {
    let secret = Md5Secret::from_password(&Password::new("pencil"), "e");
    assert_eq!(secret.to_text().reveal(), STORED);
    assert_eq!(StoredSecret::parse(STORED), StoredSecret::Md5(secret));
}

#[test]
fn clear_and_md5_secrets_give_and_take_the_same_answer() {
    let clear = StoredSecret::parse(b"pencil");
    let md5 = StoredSecret::parse(STORED);
    for login in [&clear, &md5].map(LoginSecret::from_stored) {
        let answer = login.md5("e", SALT).unwrap();
        for stored in [&clear, &md5] {
            assert_eq!(check_md5(Some(stored), "e", SALT, answer.as_bytes()), Ok(()));
            let other_salt = check_md5(Some(stored), "e", [0; 4], answer.as_bytes());
            assert_eq!(other_salt, Err(Refusal::PasswordWrong));
        }
    }
}

#[track_caller]
fn check_refused(stored: Option<&StoredSecret>, given: &[u8], refusal: Refusal) {
    assert_eq!(check_md5(stored, "e", SALT, given), Err(refusal));
}

#[test]
fn wrong_answers_of_every_length_are_refused() {
    let stored = StoredSecret::parse(STORED);
    let right = LoginSecret::from_stored(&stored).md5("e", SALT).unwrap();
    check_refused(Some(&stored), b"", Refusal::PasswordEmpty);
    check_refused(Some(&stored), b"pencil", Refusal::PasswordWrong);
    check_refused(Some(&stored), STORED, Refusal::PasswordWrong);
    check_refused(Some(&stored), &right.as_bytes()[..34], Refusal::PasswordWrong);
    check_refused(Some(&stored), &[right.as_bytes(), b"0"].concat(), Refusal::PasswordWrong);
    check_refused(Some(&stored), &vec![b'x'; 1 << 20], Refusal::PasswordWrong);
}

#[test]
fn users_without_a_usable_secret_are_refused_whatever_they_answer() {
    let empty = Md5Secret::from_password(&Password::new(""), "e").response(SALT);
    check_refused(None, empty.as_bytes(), Refusal::PasswordWrong);
    check_refused(Some(&StoredSecret::Unusable), empty.as_bytes(), Refusal::PasswordWrong);
    let clear_of_nothing = StoredSecret::Clear(Password::new(""));
    check_refused(Some(&clear_of_nothing), empty.as_bytes(), Refusal::PasswordWrong);
}

#[test]
fn only_lower_case_digits_are_an_md5_secret() {
    let upper = STORED.to_ascii_uppercase();
    let upper = [b"md5", &upper[3..]].concat();
    for text in [upper.as_slice(), b"md5", &STORED[..34], b"md516ead560cce489da9f2fd00912e0671g"] {
        assert_eq!(StoredSecret::parse(text), StoredSecret::Clear(Password::new(text)));
    }
}
