//! The ident file: which system users (or certificate names) may log in as which database users. Does not know
//! who says what the system user is.

use std::collections::BTreeMap;
use std::fmt;

use crate::tokens::{TokenKind, Tokens, numbered_lines};
use crate::{Problems, Refusal};

/// All maps of one file.
#[derive(Clone, Debug, Default)]
pub struct IdentMaps {
    maps: BTreeMap<String, Vec<Entry>>,
}

#[derive(Clone, Debug)]
struct Entry {
    system_user: String,
    /// `None`: all users.
    user: Option<String>,
}

impl IdentMaps {
    /// Reads lines of `map system-user user`; a line with a mistake is reported and left out.
    pub fn parse(text: &[u8]) -> (IdentMaps, Problems<IdentFault>) {
        let mut maps = IdentMaps::default();
        let mut problems = Problems::new();
        for (number, line) in numbered_lines(text) {
            let mut tokens = Tokens::new(&line);
            if tokens.peek().kind == TokenKind::End {
                continue;
            }
            match entry(&mut tokens) {
                Ok((map, entry)) => maps.maps.entry(map).or_default().push(entry),
                Err((column, fault)) => problems.push(number, column, fault),
            }
        }
        (maps, problems)
    }

    /// True if the file has this map.
    pub fn contains(&self, map: &str) -> bool {
        self.maps.contains_key(map)
    }

    /// True if the map lets this system user log in as this user.
    pub fn allows(&self, map: &str, system_user: &str, user: &str) -> bool {
        self.maps.get(map).is_some_and(|entries| {
            entries.iter().any(|entry| {
                entry.system_user == system_user && entry.user.as_deref().is_none_or(|named| named == user)
            })
        })
    }
}

/// Whether a certificate's common name or a socket's system user may log in as `user`: by the map if the rule
/// names one, else by being the same.
pub fn check_identity(
    maps: &IdentMaps,
    map: Option<&str>,
    system_user: Option<&str>,
    user: &str,
) -> Result<(), Refusal> {
    let system_user = system_user.filter(|name| !name.is_empty()).ok_or(Refusal::IdentityMissing)?;
    let allowed = match map {
        Some(map) => maps.allows(map, system_user, user),
        None => system_user == user,
    };
    if allowed { Ok(()) } else { Err(Refusal::IdentityDiffers) }
}

fn entry(tokens: &mut Tokens<'_>) -> Result<(String, Entry), (usize, IdentFault)> {
    let map = field(tokens)?;
    let system_user = field(tokens)?;
    let user_is_all = tokens.peek().kind == TokenKind::Word("all".to_owned());
    let user = field(tokens)?;
    let extra = tokens.next();
    if extra.kind != TokenKind::End {
        return Err((extra.column, IdentFault::TextAfterEnd));
    }
    Ok((map, Entry { system_user, user: (!user_is_all).then_some(user) }))
}

fn field(tokens: &mut Tokens<'_>) -> Result<String, (usize, IdentFault)> {
    let token = tokens.next();
    let fault = match token.kind {
        TokenKind::Quoted(text) => return Ok(text),
        TokenKind::Word(text) if text.starts_with('/') => IdentFault::RegexUnsupported,
        TokenKind::Word(text) if text.starts_with('+') => IdentFault::GroupUnsupported,
        TokenKind::Word(text) => return Ok(text),
        TokenKind::Unclosed => IdentFault::QuoteUnclosed,
        TokenKind::NotUtf8 => IdentFault::NotUtf8,
        TokenKind::Comma | TokenKind::End => IdentFault::FieldMissing,
    };
    Err((token.column, fault))
}

/// What is wrong with a line of the ident file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentFault {
    /// Fewer than three fields, or a comma.
    FieldMissing,
    /// `+group` is not supported.
    GroupUnsupported,
    /// A byte that is not UTF-8.
    NotUtf8,
    /// A quote without its end.
    QuoteUnclosed,
    /// A regular expression (`/...`) is not supported.
    RegexUnsupported,
    /// More than three fields.
    TextAfterEnd,
}

impl fmt::Display for IdentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentFault::FieldMissing => "expected: map system-user database-user",
            IdentFault::GroupUnsupported => "+group is not supported",
            IdentFault::NotUtf8 => "not valid UTF-8",
            IdentFault::QuoteUnclosed => "quote is not closed",
            IdentFault::RegexUnsupported => "regular expressions are not supported",
            IdentFault::TextAfterEnd => "unexpected text after the database user",
        })
    }
}

#[cfg(test)]
mod tests;
