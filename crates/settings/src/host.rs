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

/// Longer than any host name; a path longer than this fits no socket address either.
const BYTES_MAX: usize = 255;
