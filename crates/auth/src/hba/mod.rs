//! The HBA file: which method a connection must use, by where it comes from, its database and its user. The
//! first rule that matches decides. Does not know sockets or how files are read.

mod parse;

use std::collections::BTreeSet;
use std::net::IpAddr;

pub use parse::{HbaFault, INCLUDE_DEPTH_MAX, INCLUDES_MAX};

use crate::ident::IdentMaps;
use crate::{ClientMethod, Password, Problems};

/// The rules of one file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Hba {
    rules: Vec<Rule>,
}

/// What is known of a connection when its startup message has been read.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The database asked for.
    pub database: &'a str,
    /// The user named.
    pub user: &'a str,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether it is a physical replication connection, which only the database word `replication` matches.
    pub replication_physical: bool,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Unix socket: only `local` rules match.
    Unix,
    /// TCP: only `host`, `hostssl` and `hostnossl` rules match.
    Tcp {
        /// The peer; an IPv4 address inside IPv6 counts as IPv4.
        address: IpAddr,
        /// Whether TLS is on.
        tls: bool,
    },
}

/// What the first matching rule says.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// Never `Any`, `Pam` or `Hba`.
    pub method: ClientMethod,
    /// The ident map to use, for `cert` and `peer`.
    pub map: Option<&'a str>,
    /// The rest of an `ldap` line; it may hold a password.
    pub ldap_options: Option<&'a Password>,
    /// The rule's line in the file, for the log.
    pub line: u32,
}

impl Hba {
    /// Reads the file. A line with a mistake is reported and left out; all others count. `files` gives the
    /// content of the file behind `@name`, by its path relative to the HBA file's directory (or absolute).
    pub fn parse(text: &[u8], files: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> (Hba, Problems<HbaFault>) {
        let (rules, problems) = parse::rules(text, files);
        (Hba { rules }, problems)
    }

    /// What the first matching rule says; `None` (refuse: no authentication method is found) if none matches.
    pub fn decide(&self, facts: &Facts<'_>) -> Option<Decision<'_>> {
        self.rules.iter().find(|rule| rule.matches(facts)).map(|rule| Decision {
            method: rule.method,
            map: rule.map.as_deref(),
            ldap_options: rule.ldap_options.as_ref(),
            line: rule.line,
        })
    }

    /// Lines whose `map=` is in no ident file. They stay in force and let nobody in.
    pub fn lines_with_unknown_map(&self, maps: &IdentMaps) -> Vec<u32> {
        let unknown = |rule: &&Rule| rule.map.as_deref().is_some_and(|map| !maps.contains(map));
        self.rules.iter().filter(unknown).map(|rule| rule.line).collect()
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True if there are none, so that nobody gets in.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

#[derive(Clone, Debug)]
struct Rule {
    source: Source,
    databases: Names,
    users: Names,
    method: ClientMethod,
    map: Option<String>,
    ldap_options: Option<Password>,
    line: u32,
}

impl Rule {
    fn matches(&self, facts: &Facts<'_>) -> bool {
        self.source.matches(facts.origin)
            && self.databases.match_database(facts)
            && self.users.match_user(facts.user)
    }
}

/// The record type and address of a rule.
#[derive(Clone, Copy, Debug)]
enum Source {
    Local,
    Tcp { tls: TlsNeed, network: Network },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsNeed {
    Either,
    On,
    Off,
}

/// Addresses by their leading bits; IPv4 and IPv6 never match one another.
#[derive(Clone, Copy, Debug)]
enum Network {
    All,
    V4 { base: u32, mask: u32 },
    V6 { base: u128, mask: u128 },
}

impl Source {
    fn matches(self, origin: Origin) -> bool {
        match (self, origin) {
            (Source::Local, Origin::Unix) => true,
            (Source::Tcp { tls: need, network }, Origin::Tcp { address, tls }) => {
                let tls_fits = match need {
                    TlsNeed::Either => true,
                    TlsNeed::On => tls,
                    TlsNeed::Off => !tls,
                };
                tls_fits && network.contains(address)
            }
            (Source::Local, Origin::Tcp { .. }) | (Source::Tcp { .. }, Origin::Unix) => false,
        }
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Network::All, _) => true,
            (Network::V4 { base, mask }, IpAddr::V4(address)) => address.to_bits() & mask == base,
            (Network::V6 { base, mask }, IpAddr::V6(address)) => address.to_bits() & mask == base,
            (Network::V4 { .. }, IpAddr::V6(_)) | (Network::V6 { .. }, IpAddr::V4(_)) => false,
        }
    }
}

/// The databases or users of a rule.
#[derive(Clone, Debug, Default)]
struct Names {
    all: bool,
    same_user: bool,
    replication: bool,
    listed: BTreeSet<String>,
}

impl Names {
    fn match_database(&self, facts: &Facts<'_>) -> bool {
        if facts.replication_physical {
            return self.replication;
        }
        self.all || (self.same_user && facts.database == facts.user) || self.listed.contains(facts.database)
    }

    fn match_user(&self, user: &str) -> bool {
        self.all || self.listed.contains(user)
    }
}

#[cfg(test)]
mod tests;
