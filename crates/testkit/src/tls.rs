//! A throw-away certificate authority, and certificates by it, as PEM files.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use crate::postgres::make_private;

/// The files of one authority in one directory.
///
/// `ca.crt`; `server.crt` and `server.key` for `localhost` and the loopback addresses; more by
/// [`Certificates::client`] and [`Certificates::server`].
pub struct Certificates {
    directory: PathBuf,
    authority: Issuer<'static, KeyPair>,
}

impl Certificates {
    /// Makes an authority and a server's certificate, and writes them into this directory.
    pub fn write(directory: &Path) -> Certificates {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = named("howdah test authority", &[]);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = parameters.self_signed(&key).expect("a certificate");
        fs::write(directory.join("ca.crt"), certificate.pem()).expect("own directory");
        let authority = Issuer::new(parameters, key);
        let certificates = Certificates { directory: directory.to_path_buf(), authority };
        certificates.server("server", &["localhost", "127.0.0.1", "::1"]);
        certificates
    }

    /// Makes `NAME.crt` and `NAME.key` of a server with these names and addresses.
    pub fn server(&self, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        let common = names.first().copied().unwrap_or(file);
        self.issue(file, named(common, names), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Makes `NAME.crt` and `NAME.key` of a client with this common name.
    pub fn client(&self, file: &str, common_name: &str) -> (PathBuf, PathBuf) {
        self.issue(file, named(common_name, &[]), ExtendedKeyUsagePurpose::ClientAuth)
    }

    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    pub fn server_certificate(&self) -> PathBuf {
        self.directory.join("server.crt")
    }

    pub fn server_key(&self) -> PathBuf {
        self.directory.join("server.key")
    }

    fn issue(
        &self,
        file: &str,
        mut parameters: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> (PathBuf, PathBuf) {
        parameters.extended_key_usages = vec![usage];
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.authority).expect("a certificate");
        let paths = (self.directory.join(format!("{file}.crt")), self.directory.join(format!("{file}.key")));
        fs::write(&paths.0, certificate.pem()).expect("own directory");
        fs::write(&paths.1, key.serialize_pem()).expect("own directory");
        make_private(&paths.1);
        paths
    }
}

fn named(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let mut parameters = CertificateParams::new(names).expect("proper names");
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, common_name);
    parameters.distinguished_name = subject;
    parameters
}
