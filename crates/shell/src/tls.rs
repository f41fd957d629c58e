//! TLS towards clients and towards servers, as the settings ask for it.
//!
//! Reads certificate and key files, decides which certificates are believed, and says what is wrong in terms
//! of the file that is. Does not do handshakes: who has a socket does those, with the configurations from here.

mod certificate;
mod clients;
mod files;
mod legacy;
mod servers;
mod suites;
mod verify;

#[cfg(test)]
pub(crate) mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use parking_lot::RwLock;
use settings::SslMode;

pub use self::certificate::{alternative_names, channel_binding, common_name};
pub use self::clients::ClientTls;
pub use self::servers::ServerTls;
pub(crate) use self::servers::server_name;
pub use self::suites::describe;

/// The protocol's name in TLS's ALPN: required of clients that begin with TLS at once.
pub const ALPN: &[u8] = b"postgresql";

/// The settings `client_tls_*` or `server_tls_*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// `..._sslmode`.
    pub mode: SslMode,
    /// `..._key_file`.
    pub key_file: Option<PathBuf>,
    /// `..._cert_file`.
    pub cert_file: Option<PathBuf>,
    /// `..._ca_file`.
    pub ca_file: Option<PathBuf>,
    /// `..._protocols` has TLS 1.2.
    pub v1_2: bool,
    /// `..._protocols` has TLS 1.3.
    pub v1_3: bool,
    /// `..._ciphers`; empty means `default`.
    pub ciphers: String,
    /// `..._tls13_ciphers`; empty means all.
    pub tls13_ciphers: String,
}

/// Why a configuration cannot be had.
#[derive(Debug)]
pub enum TlsFault {
    /// The mode needs a file of authorities.
    AuthorityNeeded(SslMode),
    /// The file has a certificate that cannot be used.
    BadCertificate(PathBuf, rustls::Error),
    /// The file has a key that cannot be used.
    BadKey(PathBuf, rustls::Error),
    /// The file is not in the form of PEM.
    BadPem(PathBuf, String),
    /// A certificate without its key, or the other way round, or neither where they are needed.
    CertificateAndKeyNeeded,
    /// The key is encrypted; there is nobody to ask for its password.
    EncryptedKey(PathBuf),
    /// The key is not that of the certificate.
    KeyOfAnother {
        /// `..._cert_file`.
        certificate: PathBuf,
        /// `..._key_file`.
        key: PathBuf,
    },
    /// There is no certificate in the file.
    NoCertificate(PathBuf),
    /// There is no private key in the file.
    NoKey(PathBuf),
    /// Neither TLS 1.2 nor 1.3 is allowed.
    NoVersion,
    /// Neither is there a file of authorities in the settings, nor one of the system's.
    NoSystemAuthorities,
    /// rustls refuses the whole.
    Refused(rustls::Error),
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFault::AuthorityNeeded(mode) => write!(f, "sslmode {} needs a CA file", mode.name()),
            TlsFault::BadCertificate(path, error) => write!(f, "\"{}\": {error}", path.display()),
            TlsFault::BadKey(path, error) => write!(f, "\"{}\": bad key: {error}", path.display()),
            TlsFault::BadPem(path, words) => write!(f, "\"{}\": not PEM: {words}", path.display()),
            TlsFault::CertificateAndKeyNeeded => {
                f.write_str("both a certificate file and a key file are needed")
            }
            TlsFault::EncryptedKey(path) => {
                write!(f, "\"{}\": the key is encrypted with a password", path.display())
            }
            TlsFault::KeyOfAnother { certificate, key } => {
                let (certificate, key) = (certificate.display(), key.display());
                write!(f, "\"{key}\": not the key of the certificate in \"{certificate}\"")
            }
            TlsFault::NoCertificate(path) => write!(f, "\"{}\": no certificate in it", path.display()),
            TlsFault::NoKey(path) => write!(f, "\"{}\": no private key in it", path.display()),
            TlsFault::NoVersion => {
                f.write_str("TLS 1.2 and 1.3 are both excluded; older ones are not spoken")
            }
            TlsFault::NoSystemAuthorities => {
                f.write_str("no CA file is set, and the system has none where it is looked for")
            }
            TlsFault::Refused(error) => error.fmt(f),
            TlsFault::Unreadable(path, error) => write!(f, "\"{}\": {error}", path.display()),
        }
    }
}

impl std::error::Error for TlsFault {}

/// A value that a reload replaces as a whole: who has read it keeps what was read.
#[derive(Debug)]
pub struct Reloadable<T>(RwLock<Arc<T>>);

impl<T> Reloadable<T> {
    /// Begins with this value.
    pub fn new(value: T) -> Reloadable<T> {
        Reloadable(RwLock::new(Arc::new(value)))
    }

    /// The value as it is now.
    pub fn load(&self) -> Arc<T> {
        Arc::clone(&self.0.read())
    }

    /// Puts another value in its place.
    pub fn replace(&self, value: T) {
        *self.0.write() = Arc::new(value);
    }

    /// Puts what `make` makes in the place of the value; if it fails, the value stays.
    pub fn reload<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<(), E> {
        let made = Arc::new(make()?);
        *self.0.write() = made;
        Ok(())
    }
}
