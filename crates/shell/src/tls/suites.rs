//! Versions and cipher suites: the settings' words, OpenSSL's names, and what rustls has.
//!
//! rustls has none but sound suites, so PgBouncer's words `default`, `secure`, `fast`, `normal` and `all` mean
//! all of them. A list that names suites is obeyed as a filter; its order is not.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, CommonState, ProtocolVersion, SupportedProtocolVersion, version};

use super::{TlsFault, TlsOptions};

/// OpenSSL's names, which PostgreSQL and PgBouncer show, too.
const NAMES: [(&str, CipherSuite); 9] = [
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// What a connection speaks, as `TLSv1.3/TLS_AES_256_GCM_SHA384`; `-` before the handshake is over.
pub fn describe(connection: &CommonState) -> String {
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        _ => return "-".to_owned(),
    };
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    let name = NAMES.iter().find(|(_, known)| Some(*known) == suite).map_or("?", |(name, _)| *name);
    format!("{version}/{name}")
}

/// rustls's cryptography by ring, with the suites that the options leave.
pub(super) fn provider(options: &TlsOptions) -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    let older = wanted(&options.ciphers);
    let newer = wanted(&options.tls13_ciphers);
    provider.cipher_suites.retain(|suite| {
        let list = if suite.tls13().is_some() { &newer } else { &older };
        list.as_ref().is_none_or(|list| list.contains(&suite.suite()))
    });
    Arc::new(provider)
}

/// The versions that the options leave.
pub(super) fn versions(options: &TlsOptions) -> Result<Vec<&'static SupportedProtocolVersion>, TlsFault> {
    let mut versions = Vec::new();
    if options.v1_3 {
        versions.push(&version::TLS13);
    }
    if options.v1_2 {
        versions.push(&version::TLS12);
    }
    if versions.is_empty() { Err(TlsFault::NoVersion) } else { Ok(versions) }
}

/// The suites that a list names; `None` for all of them.
fn wanted(list: &str) -> Option<Vec<CipherSuite>> {
    let mut named = Vec::new();
    for word in list.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        if ALL.iter().any(|all| all.eq_ignore_ascii_case(word)) {
            return None;
        }
        match NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            Some((_, suite)) => named.push(*suite),
            // `!aNULL` and the like take away what rustls never had.
            None if word.starts_with(['!', '-', '@']) => {}
            None => tracing::warn!("TLS cipher \"{word}\" is not known here and is passed over"),
        }
    }
    if named.is_empty() { None } else { Some(named) }
}

/// PgBouncer's words, and the most common of OpenSSL's.
const ALL: [&str; 7] = ["default", "secure", "fast", "normal", "all", "HIGH", "FIPS"];
