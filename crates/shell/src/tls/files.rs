//! Certificates and keys in PEM files. Does not know what they are good for.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::TlsFault;

/// A certificate with its chain and its key: what we show of ourselves.
///
/// rustls has a quicker way to this, which refuses certificates of version 1 as webpki does.
pub(super) fn identity(
    cert_file: &Path,
    key_file: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<SingleCertAndKey>, TlsFault> {
    let chain = certificates(cert_file)?;
    let (_, parsed) = X509Certificate::from_der(&chain[0]).map_err(|_| {
        let error = rustls::CertificateError::BadEncoding.into();
        TlsFault::BadCertificate(cert_file.to_owned(), error)
    })?;
    let key = key(key_file)?;
    let key = provider.key_provider.load_private_key(key);
    let key = key.map_err(|error| TlsFault::BadKey(key_file.to_owned(), error))?;
    let public = key.public_key();
    if public.is_some_and(|public| *public != *parsed.public_key().raw) {
        return Err(TlsFault::KeyOfAnother { certificate: cert_file.to_owned(), key: key_file.to_owned() });
    }
    Ok(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key))))
}

/// All certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let text = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| bad_pem(path, &error))?;
    if all.is_empty() { Err(TlsFault::NoCertificate(path.to_owned())) } else { Ok(all) }
}

/// The first private key of a file.
fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound if contains(&text, b"ENCRYPTED") => TlsFault::EncryptedKey(path.to_owned()),
        pem::Error::NoItemsFound => TlsFault::NoKey(path.to_owned()),
        error => bad_pem(path, &error),
    })
}

/// Authorities, as rustls wants them and as they stood in the file.
#[derive(Debug)]
pub(super) struct Authorities {
    pub(super) store: RootCertStore,
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// The authorities of a file. Some that cannot be used are passed over with a warning, as long as one can.
pub(super) fn authorities(path: &Path) -> Result<Authorities, TlsFault> {
    let certificates = certificates(path)?;
    let mut store = RootCertStore::empty();
    let mut last_fault = None;
    for certificate in &certificates {
        if let Err(error) = store.add(certificate.clone()) {
            last_fault = Some(TlsFault::BadCertificate(path.to_owned(), error));
        }
    }
    match last_fault {
        Some(fault) if store.is_empty() => return Err(fault),
        Some(fault) => tracing::debug!("a CA certificate is passed over: {fault}"),
        None => {}
    }
    Ok(Authorities { store, certificates })
}

/// The file of the authorities that this system trusts.
pub(super) fn system_authorities() -> Result<PathBuf, TlsFault> {
    let found = SYSTEM_AUTHORITIES.iter().map(PathBuf::from).find(|path| path.exists());
    found.ok_or(TlsFault::NoSystemAuthorities)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFault> {
    fs::read(path).map_err(|error| TlsFault::Unreadable(path.to_owned(), error))
}

fn bad_pem(path: &Path, error: &pem::Error) -> TlsFault {
    TlsFault::BadPem(path.to_owned(), error.to_string())
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

/// Debian, Red Hat, Alpine and the BSDs.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];
