//! The auth_file: users and their stored secrets, one `"user" "secret"` a line. Does not know how the file is
//! read or what a secret is used for.
//!
//! PgBouncer stops at the first line it cannot read, so that one mistake locks out everybody below it. Here a
//! bad line is reported (with its place, never with its text) and left out, and all others count.

use std::collections::BTreeMap;
use std::fmt;

use crate::method::UnknownAs;
use crate::{Problems, StoredSecret};

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Userlist {
    /// By user name; a user named twice has the secret named last, as in PgBouncer.
    pub users: BTreeMap<String, StoredSecret>,
}

impl Userlist {
    /// Reads the file. `;` at the start of a line begins a comment; two quotes inside quotes are one; what
    /// follows the secret is ignored, and so is what stands between user and secret.
    pub fn parse(file: &[u8]) -> (Userlist, Problems<UserlistFault>) {
        let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
        let mut list = Userlist::default();
        let mut problems = Problems::new();
        for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
            let blank = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if blank == line.len() || line[blank] == b';' {
                continue;
            }
            match entry(line, blank) {
                Ok((user, secret)) => {
                    list.users.insert(user, secret);
                }
                Err((offset, fault)) => problems.push(at + 1, column(line, offset), fault),
            }
        }
        (list, problems)
    }

    /// The user's secret; `None` if the file does not name the user.
    pub fn secret(&self, user: &str) -> Option<&StoredSecret> {
        self.users.get(user)
    }

    /// What most users of the file have, so that a user who is not in it looks like them.
    pub fn unknown_as(&self) -> UnknownAs {
        let scram = self.users.values().filter(|secret| matches!(secret, StoredSecret::Scram(_))).count();
        if scram * 2 > self.users.len() { UnknownAs::Scram } else { UnknownAs::Md5 }
    }
}

/// What is wrong with a line of the auth_file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserlistFault {
    /// The user name is not UTF-8.
    NameNotUtf8,
    /// The user name has no bytes.
    NameEmpty,
    /// The user name is longer than [`USER_BYTES_MAX`].
    NameTooLong,
    /// A NUL byte in a name or secret: no client could send it.
    NulByte,
    /// The line does not begin with `"`.
    NoUser,
    /// There is no second quoted text.
    NoSecret,
    /// A quote without its end.
    QuoteUnclosed,
    /// The secret is longer than [`SECRET_BYTES_MAX`].
    SecretTooLong,
    /// The secret begins as a SCRAM verifier and is none.
    VerifierMalformed,
}

impl fmt::Display for UserlistFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UserlistFault::NameNotUtf8 => "user name is not valid UTF-8",
            UserlistFault::NameEmpty => "user name is empty",
            UserlistFault::NameTooLong => "username too long in auth file",
            UserlistFault::NulByte => "NUL byte in auth file",
            UserlistFault::NoUser => "expected \"user\" \"password\"",
            UserlistFault::NoSecret => "expected a quoted password after the user name",
            UserlistFault::QuoteUnclosed => "quote is not closed",
            UserlistFault::SecretTooLong => "password too long in auth file",
            UserlistFault::VerifierMalformed => "malformed SCRAM-SHA-256 secret",
        })
    }
}

/// One line, from the first byte that is not blank; a fault comes with its offset.
fn entry(line: &[u8], start: usize) -> Result<(String, StoredSecret), (usize, UserlistFault)> {
    if line[start] != b'"' {
        return Err((start, UserlistFault::NoUser));
    }
    let (user, after) = unquoted(line, start)?;
    let Some(gap) = line[after..].iter().position(|byte| *byte == b'"') else {
        return Err((after, UserlistFault::NoSecret));
    };
    let secret_start = after + gap;
    let (secret, _) = unquoted(line, secret_start)?;
    let secret = zeroize::Zeroizing::new(secret);
    if user.is_empty() {
        return Err((start, UserlistFault::NameEmpty));
    }
    if user.len() > USER_BYTES_MAX {
        return Err((start, UserlistFault::NameTooLong));
    }
    if secret.len() > SECRET_BYTES_MAX {
        return Err((secret_start, UserlistFault::SecretTooLong));
    }
    if user.contains(&0) || secret.contains(&0) {
        return Err((start, UserlistFault::NulByte));
    }
    let user = String::from_utf8(user).map_err(|_| (start, UserlistFault::NameNotUtf8))?;
    match StoredSecret::parse(&secret) {
        // An empty secret is a known user whom no password lets in; a broken verifier is a mistake.
        StoredSecret::Unusable if !secret.is_empty() => Err((secret_start, UserlistFault::VerifierMalformed)),
        parsed => Ok((user, parsed)),
    }
}

/// The text between the quote at `open` and the one that ends it, and the offset behind that.
fn unquoted(line: &[u8], open: usize) -> Result<(Vec<u8>, usize), (usize, UserlistFault)> {
    // Grown once, so that no copy of a secret is left behind.
    let mut text = Vec::with_capacity(line.len() - open);
    let mut at = open + 1;
    while let Some(byte) = line.get(at) {
        if *byte != b'"' {
            text.push(*byte);
            at += 1;
        } else if line.get(at + 1) == Some(&b'"') {
            text.push(b'"');
            at += 2;
        } else {
            return Ok((text, at + 1));
        }
    }
    Err((open, UserlistFault::QuoteUnclosed))
}

/// Counts characters, where the line is UTF-8: continuation bytes do not count.
fn column(line: &[u8], offset: usize) -> usize {
    line[..offset].iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count() + 1
}

/// The longest user name, in bytes.
pub const USER_BYTES_MAX: usize = 127;

/// The longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 65_530;

#[cfg(test)]
mod tests;
