//! Certificates that webpki does not read, and OpenSSL does: those of version 1, which PostgreSQL's manual
//! shows how to make, and a self-signed one that is its own authority. Only as much of X.509 as these need.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use rustls::{CertificateError, Error, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Version;

/// Whether `certificate` is of version 1, or itself one of the authorities: then [`verify`] decides on it.
pub(super) fn concerns(certificate: &CertificateDer<'_>, authorities: &[CertificateDer<'_>]) -> bool {
    authorities.contains(certificate) || is_version_1(certificate)
}

/// Whether webpki would not read it for its age.
pub(super) fn is_version_1(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| parsed.version() == X509Version::V1)
}

/// Believes a certificate that is one of the authorities, or that one of them has signed itself.
pub(super) fn verify(
    certificate: &CertificateDer<'_>,
    authorities: &[CertificateDer<'_>],
    now: UnixTime,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let parsed = parse(certificate)?;
    check_time(&parsed, now)?;
    if authorities.contains(certificate) {
        return Ok(());
    }
    for authority in authorities {
        let Ok(issuer) = parse(authority) else { continue };
        let may_sign = issuer.version() == X509Version::V1 || issuer.is_ca();
        if may_sign
            && issuer.subject().as_raw() == parsed.issuer().as_raw()
            && check_time(&issuer, now).is_ok()
            && is_signed_by(certificate, issuer.public_key().raw, algorithms)
        {
            return Ok(());
        }
    }
    Err(CertificateError::UnknownIssuer.into())
}

/// Checks a handshake's signature by the key of a certificate that webpki does not read.
pub(super) fn verify_signature(
    certificate: &CertificateDer<'_>,
    scheme: SignatureScheme,
    message: &[u8],
    signature: &[u8],
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let parsed = parse(certificate)?;
    let mapped = algorithms.mapping.iter().find(|(known, _)| *known == scheme);
    let candidates = mapped.map_or(&[][..], |(_, candidates)| candidates);
    let key = Key::read(parsed.public_key().raw).ok_or(CertificateError::BadEncoding)?;
    if candidates.iter().any(|algorithm| key.verifies(*algorithm, message, signature)) {
        Ok(())
    } else {
        Err(CertificateError::BadSignature.into())
    }
}

/// Compares a name with the common name, which counts only where there is no alternative name at all.
pub(super) fn common_name_matches(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let Ok(parsed) = parse(certificate) else { return false };
    if !matches!(parsed.subject_alternative_name(), Ok(None)) {
        return false;
    }
    let Some(name) = super::common_name(certificate) else { return false };
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    // `*.example.org` is any one label before `.example.org`.
    let suffix = name.strip_prefix('*').filter(|suffix| suffix.starts_with('.') && suffix.len() > 1);
    match (suffix, host.split_once('.')) {
        (Some(suffix), Some((label, rest))) => !label.is_empty() && suffix[1..].eq_ignore_ascii_case(rest),
        _ => false,
    }
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Error> {
    match X509Certificate::from_der(certificate) {
        Ok(([], parsed)) => Ok(parsed),
        _ => Err(CertificateError::BadEncoding.into()),
    }
}

fn check_time(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let now = ASN1Time::from_timestamp(seconds).map_err(|_| CertificateError::BadEncoding)?;
    let validity = certificate.validity();
    if now < validity.not_before {
        Err(CertificateError::NotValidYet.into())
    } else if now > validity.not_after {
        Err(CertificateError::Expired.into())
    } else {
        Ok(())
    }
}

/// Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE, signature BIT STRING }
fn is_signed_by(
    certificate: &CertificateDer<'_>,
    issuer_key: &[u8],
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let parts = || {
        let (outer, _) = element(certificate, SEQUENCE)?;
        let (_, after_signed) = element(outer.content, SEQUENCE)?;
        let signed = &outer.content[..outer.content.len() - after_signed.len()];
        let (algorithm, rest) = element(after_signed, SEQUENCE)?;
        let (signature, _) = element(rest, BIT_STRING)?;
        Some((signed, algorithm.content, signature.content.strip_prefix(&[0])?, Key::read(issuer_key)?))
    };
    parts().is_some_and(|(signed, algorithm_id, signature, key)| {
        algorithms.all.iter().any(|algorithm| {
            algorithm.signature_alg_id().as_ref() == algorithm_id
                && key.verifies(*algorithm, signed, signature)
        })
    })
}

/// SubjectPublicKeyInfo ::= SEQUENCE { algorithm SEQUENCE, key BIT STRING }
struct Key<'a> {
    algorithm_id: &'a [u8],
    bits: &'a [u8],
}

impl<'a> Key<'a> {
    fn read(info: &'a [u8]) -> Option<Key<'a>> {
        let (outer, _) = element(info, SEQUENCE)?;
        let (algorithm, rest) = element(outer.content, SEQUENCE)?;
        let (bits, _) = element(rest, BIT_STRING)?;
        Some(Key { algorithm_id: algorithm.content, bits: bits.content.strip_prefix(&[0])? })
    }

    fn verifies(
        &self,
        algorithm: &dyn SignatureVerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        algorithm.public_key_alg_id().as_ref() == self.algorithm_id
            && algorithm.verify_signature(self.bits, message, signature).is_ok()
    }
}

struct Element<'a> {
    content: &'a [u8],
}

/// Reads one DER element with this tag; gives what comes after it, too.
fn element(bytes: &[u8], tag: u8) -> Option<(Element<'_>, &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        // Four bytes of length are more than any certificate has.
        let (length, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(l, _)| l.len() <= 4)?;
        (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((Element { content }, rest))
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
