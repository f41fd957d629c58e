//! Who a client claims to be, in the hub's words.

use std::net::IpAddr;

use auth::hba::Origin;
use client::login::{Identity, Replication};
use hub::Facts;

use crate::session::Session;
use crate::socket::Stream;

/// What a client claims, kept while somebody finds out about it.
#[derive(Clone, Debug)]
pub struct Claim {
    database: String,
    database_may_exist: bool,
    user: String,
    address: Option<IpAddr>,
    /// It came over TLS.
    pub is_tls: bool,
    certificate_name: Option<String>,
    system_user: Option<String>,
    is_own_user: bool,
    replication: hub::Replication,
}

impl Claim {
    /// What is known of a client once its startup message is read.
    pub fn of(session: &Session, stream: &Stream, identity: &Identity) -> Claim {
        let certificate = stream.tls().and_then(|tls| tls.peer_certificates()).and_then(<[_]>::first);
        let peer = if session.peer.is_none() { crate::peer::of(stream.socket()) } else { None };
        Claim {
            database: identity.database.clone(),
            database_may_exist: identity.database_may_exist(),
            user: identity.user.clone(),
            address: session.peer.map(|peer| peer.ip()),
            is_tls: stream.tls().is_some(),
            certificate_name: certificate.and_then(|certificate| crate::tls::common_name(certificate)),
            is_own_user: peer.as_ref().is_some_and(|peer| peer.is_own),
            system_user: peer.and_then(|peer| peer.name),
            replication: match identity.replication {
                Replication::No => hub::Replication::No,
                Replication::Physical => hub::Replication::Physical,
                Replication::Logical => hub::Replication::Logical,
            },
        }
    }

    /// As the hub wants it.
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            database: &self.database,
            database_may_exist: self.database_may_exist,
            user: &self.user,
            origin: match self.address {
                Some(address) => Origin::Tcp { address, tls: self.is_tls },
                None => Origin::Unix,
            },
            certificate_name: self.certificate_name.as_deref(),
            system_user: self.system_user.as_deref(),
            is_own_user: self.is_own_user,
            replication: self.replication,
        }
    }
}
