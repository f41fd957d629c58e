//! Claims about `access`, each as small as it can be.

use super::*;

fn check(url: &str, expected: &str) {
    let said = match Access::parse(url) {
        Ok(access) => format!("{access} {}", access.password.as_deref().unwrap_or("-")),
        Err(error) => error.to_string(),
    };
    assert!(said.contains(expected), "{url}: {said}");
}

#[test]
fn a_url_names_user_host_port_and_database() {
    check("postgres://me@db.example:6432/shop", "postgres://me@db.example:6432/shop -");
    check("postgresql://me@db/shop", "postgres://me@db:5432/shop -");
    check("postgres://me@[::1]:1/shop", "postgres://me@[::1]:1/shop -");
    check("postgres://me@db", "postgres://me@db:5432/me -");
}

#[test]
fn a_password_may_hold_anything_escaped() {
    check("postgres://me:a%40b%3a@db/x", "postgres://me@db:5432/x a@b:");
}

#[test]
fn what_is_no_url_is_refused_without_being_repeated() {
    check("mysql://me:secret@db", "does not begin");
    check("postgres://db/x", "names no user");
    check("postgres://me:secret@db:port/x", "no port");
    check("postgres://me:sec%ret@db/x", "no escape");
    check("postgres://me:secret@db/x?sslmode=require", "has options");
    let error = Access::parse("postgres://me:secret@db:port/x").expect_err("refused");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn no_password_is_printed() {
    let access = Access::parse("postgres://me:secret@db/x").expect("a URL");
    assert!(!format!("{access:?} {access}").contains("secret"));
}
