//! Who a client claims to be, in the hub's words.

use std::net::IpAddr;

use auth::hba;
use client::login::{Identity, Replication};
use hub::Facts;

use crate::session::{Origin, Session};
use crate::socket::Stream;

/// What is known of a client beside what it says.
#[derive(Clone, Debug)]
pub struct Witness {
    address: Option<IpAddr>,
    is_tls: bool,
    certificate_name: Option<String>,
    system_user: Option<String>,
    is_own_user: bool,
}

impl Witness {
    /// What its connection shows.
    pub fn of(session: &Session, stream: &Stream) -> Witness {
        let certificate = stream.tls().and_then(|tls| tls.peer_certificates()).and_then(<[_]>::first);
        let peer = if session.origin == Origin::Unix { crate::peer::of(stream.socket()) } else { None };
        Witness {
            address: session.origin.address().map(|peer| peer.ip()),
            is_tls: stream.tls().is_some(),
            certificate_name: certificate.and_then(|certificate| crate::tls::common_name(certificate)),
            is_own_user: peer.as_ref().is_some_and(|peer| peer.is_own),
            system_user: peer.and_then(|peer| peer.name),
        }
    }

    /// Whether it came over TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// With what it says, as the hub wants it.
    pub fn facts<'a>(&'a self, identity: &'a Identity) -> Facts<'a> {
        Facts {
            database: &identity.database,
            database_may_exist: identity.database_may_exist(),
            user: &identity.user,
            origin: match self.address {
                Some(address) => hba::Origin::Tcp { address, tls: self.is_tls },
                None => hba::Origin::Unix,
            },
            certificate_name: self.certificate_name.as_deref(),
            system_user: self.system_user.as_deref(),
            is_own_user: self.is_own_user,
            replication: match identity.replication {
                Replication::No => hub::Replication::No,
                Replication::Physical => hub::Replication::Physical,
                Replication::Logical => hub::Replication::Logical,
            },
        }
    }
}

/// What a client claims, kept while somebody finds out about it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What it says.
    pub identity: Identity,
    /// What else is known.
    pub witness: Witness,
}

impl Claim {
    /// As the hub wants it.
    pub fn facts(&self) -> Facts<'_> {
        self.witness.facts(&self.identity)
    }

    /// Whether it came over TLS.
    pub fn is_tls(&self) -> bool {
        self.witness.is_tls
    }
}
