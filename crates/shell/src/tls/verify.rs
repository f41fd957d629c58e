//! Which certificates are believed: a server's, by the mode, and a client's. The signature in the handshake is
//! checked in every mode: without it even an unverified certificate would mean nothing.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::TlsFault;
use super::files::Authorities;
use super::legacy;

/// What of a server's certificate is checked.
#[derive(Debug)]
pub(super) enum Check {
    /// Nothing: `prefer`, `require`.
    Nothing,
    /// An authority has signed it: `verify-ca`.
    Chain(Authorities),
    /// And it is for the name that we connect to: `verify-full`.
    ChainAndName(Authorities),
}

/// Decides on servers.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerVerifier {
    pub(super) fn new(check: Check, provider: &CryptoProvider) -> ServerVerifier {
        ServerVerifier { check, algorithms: provider.signature_verification_algorithms }
    }

    fn check_chain(
        &self,
        authorities: &Authorities,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if legacy::concerns(certificate, &authorities.certificates) {
            return legacy::verify(certificate, &authorities.certificates, now, &self.algorithms);
        }
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &authorities.store, intermediates, now, algorithms)
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.check {
            Check::Nothing => {}
            Check::Chain(authorities) => self.check_chain(authorities, end_entity, intermediates, now)?,
            Check::ChainAndName(authorities) => {
                self.check_chain(authorities, end_entity, intermediates, now)?;
                check_name(end_entity, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn check_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    // As libpq: a certificate without alternative names is for the host in its common name.
    if legacy::common_name_matches(certificate, &name.to_str()) {
        return Ok(());
    }
    match ParsedCertificate::try_from(certificate) {
        Ok(parsed) => verify_server_name(&parsed, name),
        Err(_) => Err(CertificateError::NotValidForName.into()),
    }
}

/// Decides on clients: webpki's decision, but for certificates that it does not read.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    webpki: Arc<dyn ClientCertVerifier>,
    authorities: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientVerifier {
    /// `mandatory`: a client without a certificate is turned away.
    pub(super) fn new(
        authorities: Authorities,
        mandatory: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<ClientVerifier, TlsFault> {
        let Authorities { store, certificates } = authorities;
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
        let builder = if mandatory { builder } else { builder.allow_unauthenticated() };
        let webpki = builder.build().map_err(|error| TlsFault::Refused(Error::General(error.to_string())))?;
        let algorithms = provider.signature_verification_algorithms;
        Ok(ClientVerifier { webpki, authorities: certificates, algorithms })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.webpki.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.webpki.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.webpki.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if legacy::is_version_1(end_entity) {
            legacy::verify(end_entity, &self.authorities, now, &self.algorithms)?;
            return Ok(ClientCertVerified::assertion());
        }
        self.webpki.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn tls12_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    if legacy::is_version_1(certificate) {
        legacy::verify_signature(certificate, signed.scheme, message, signed.signature(), algorithms)?;
        return Ok(HandshakeSignatureValid::assertion());
    }
    verify_tls12_signature(message, certificate, signed, algorithms)
}

fn tls13_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    if legacy::is_version_1(certificate) {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
        let key = SubjectPublicKeyInfoDer::from(parsed.public_key().raw);
        return verify_tls13_signature_with_raw_key(message, &key, signed, algorithms);
    }
    verify_tls13_signature(message, certificate, signed, algorithms)
}
