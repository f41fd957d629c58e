//! Where and as whom one logs in to PostgreSQL, read from `postgres://user:password@host:port/database`.

use crate::error::BenchError;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// A way in.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// A name or an address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// Its password, where one is asked for.
    pub password: Option<String>,
    /// The database.
    pub database: String,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Without the password.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "postgres://{}@{host}:{}/{}", self.user, self.port, self.database)
    }
}

impl Access {
    /// Reads a URL. It may hold a password, so no error repeats it.
    pub fn parse(url: &str) -> Result<Access, BenchError> {
        let refuse =
            |why: &str| BenchError::Options(format!("the URL {why}: postgres://USER@HOST:PORT/DATABASE"));
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
        let rest = rest.ok_or_else(|| refuse("does not begin with postgres://"))?;
        if rest.contains('?') {
            return Err(refuse("has options, of which none is known here"));
        }
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = place.rsplit_once('@').ok_or_else(|| refuse("names no user"))?;
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (who, None),
        };
        let (host, port) = split_port(place).ok_or_else(|| refuse("has no port that is one"))?;
        let plain = |text: &str| unescape(text).ok_or_else(|| refuse("has a % that is no escape"));
        let user = plain(user)?;
        if user.is_empty() || host.is_empty() {
            return Err(refuse("names no user or no host"));
        }
        let database = if database.is_empty() { user.clone() } else { plain(database)? };
        Ok(Access { host: host.to_owned(), port, user, password: password.map(plain).transpose()?, database })
    }

    /// The address that the name stands for.
    pub fn address(&self) -> Result<SocketAddr, BenchError> {
        let doing = format!("looking up {}", self.host);
        let mut found = (self.host.as_str(), self.port).to_socket_addrs().map_err(BenchError::io(doing))?;
        found.next().ok_or_else(|| BenchError::Options(format!("{} has no address", self.host)))
    }

    /// The same place, as somebody else.
    pub fn by(&self, user: &str, password: Option<&str>) -> Access {
        Access { user: user.to_owned(), password: password.map(str::to_owned), ..self.clone() }
    }
}

fn split_port(place: &str) -> Option<(&str, u16)> {
    const USUAL: u16 = 5432;
    if let Some(inner) = place.strip_prefix('[') {
        let (host, rest) = inner.split_once(']')?;
        return Some((host, if rest.is_empty() { USUAL } else { rest.strip_prefix(':')?.parse().ok()? }));
    }
    match place.rsplit_once(':') {
        None => Some((place, USUAL)),
        Some((host, port)) => Some((host, port.parse().ok()?)),
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
