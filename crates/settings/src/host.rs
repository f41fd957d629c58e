//! Where a server is: decides what a word in `host=` means. Resolves nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One entry of a `host=` list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// The directory of a Unix socket, or `@name` for Linux's abstract sockets.
    Unix(String),
    /// An address as it stands.
    Ip(IpAddr),
    /// A name for DNS.
    Name(String),
}

impl Host {
    /// Reads one word as PgBouncer does: `/dir` and `@dir` are Unix sockets, a colon makes it IPv6, then IPv4
    /// is tried, and all else is a name. `None` if it can be none of them.
    pub fn parse(word: &str) -> Option<Host> {
        if word.is_empty() || word.len() > BYTES_MAX || word.chars().any(|c| c.is_control()) {
            return None;
        }
        if word.starts_with(['/', '@']) {
            return (word.len() > 1).then(|| Host::Unix(word.to_owned()));
        }
        if word.contains(':') {
            return word.parse::<Ipv6Addr>().ok().map(|ip| Host::Ip(ip.into()));
        }
        if let Ok(ip) = word.parse::<Ipv4Addr>() {
            return Some(Host::Ip(ip.into()));
        }
        let strange = |c: char| c.is_whitespace() || "/@\\'\"[]()%=&?#;,".contains(c);
        (!word.contains(strange)).then(|| Host::Name(word.to_owned()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Unix(path) => f.write_str(path),
            Host::Ip(ip) => ip.fmt(f),
            Host::Name(name) => f.write_str(name),
        }
    }
}

/// The ports of an entry: one for all its hosts, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<u16>);

impl Ports {
    /// `None` for none at all.
    pub fn new(ports: Vec<u16>) -> Option<Ports> {
        (!ports.is_empty()).then_some(Ports(ports))
    }

    /// The port of the host at this place of the list.
    pub fn of(&self, place: usize) -> u16 {
        self.0.get(place).or(self.0.first()).copied().unwrap_or(PORT)
    }

    /// Whether they are enough for so many hosts, and not more.
    pub(crate) fn suit(&self, hosts: usize) -> bool {
        self.0.len() == 1 || self.0.len() == hosts
    }
}

impl Default for Ports {
    fn default() -> Ports {
        Ports(vec![PORT])
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(u16::to_string).collect();
        f.write_str(&all.join(","))
    }
}

/// PostgreSQL's own port.
const PORT: u16 = 5432;

/// Longer than any host name; a path longer than this fits no socket address either.
const BYTES_MAX: usize = 255;
