//! Where a list of hosts is fetched from: decides what `topology=` means. Fetches nothing.

use std::fmt;
use std::net::SocketAddr;

use crate::host::Host;

/// `topology` of a database: an engine that knows the members, and where to ask it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Topology {
    /// Patroni's REST API: each of these answers for all members. Never empty.
    pub urls: Vec<Url>,
}

/// The address of a REST API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Url {
    /// `https`.
    pub tls: bool,
    /// A name or an address.
    pub host: Host,
    /// The port.
    pub port: u16,
}

impl Topology {
    /// Reads `patroni:URL[,URL...]`; a URL is `http://host[:port]` or `https://host[:port]`.
    pub(crate) fn parse(text: &str) -> Option<Topology> {
        let urls = text.strip_prefix(ENGINE)?.split(',');
        let urls: Vec<Url> = urls.map(|url| Url::parse(url.trim())).collect::<Option<_>>()?;
        (urls.len() <= URLS_MAX).then_some(Topology { urls })
    }
}

impl Url {
    fn parse(text: &str) -> Option<Url> {
        let (tls, rest) = match text.split_once("://")? {
            ("http", rest) => (false, rest),
            ("https", rest) => (true, rest),
            _ => return None,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // An IPv6 address stands in brackets, as in every URL.
        let (host, port) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((address, "")) => (address, None),
            Some((address, port)) => (address, Some(port.strip_prefix(':')?)),
            None if rest.contains('[') => return None,
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let is_v6 = rest.starts_with('[');
        let host = Host::parse(host).filter(|host| match host {
            Host::Unix(_) => false,
            Host::Ip(address) => address.is_ipv6() == is_v6,
            Host::Name(_) => !is_v6,
        })?;
        let port = match port {
            Some(digits) if !digits.starts_with('+') => digits.parse().ok().filter(|port| *port > 0)?,
            Some(_) => return None,
            None => PORT,
        };
        Some(Url { tls, host, port })
    }

    /// `host:port`, as it stands in a request.
    pub fn authority(&self) -> String {
        match &self.host {
            Host::Ip(address) => SocketAddr::new(*address, self.port).to_string(),
            host => format!("{host}:{}", self.port),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<String> = self.urls.iter().map(Url::to_string).collect();
        write!(f, "{ENGINE}{}", urls.join(","))
    }
}

const ENGINE: &str = "patroni:";
/// Patroni's own.
const PORT: u16 = 8008;
const URLS_MAX: usize = 32;
