//! What a certificate says: names, and the data that binds SCRAM to it. Does not know whether it is believed.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::signature_algorithm::SignatureAlgorithm;

/// `tls-server-end-point` (RFC 5929, section 4.1): the certificate's digest by the hash of its own signature,
/// or by SHA-256 where that is MD5 or SHA-1. `None` where the RFC defines nothing, as for Ed25519.
pub fn channel_binding(certificate: &[u8]) -> Option<Box<[u8]>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let algorithm = &parsed.signature_algorithm;
    let mut oid = algorithm.algorithm.to_id_string();
    if let Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) = SignatureAlgorithm::try_from(algorithm) {
        oid = parameters.hash_algorithm_oid().to_id_string();
    }
    let digest: Box<[u8]> = match oid.as_str() {
        MD5_RSA | SHA1_RSA | SHA1_ECDSA | SHA1 | SHA256_RSA | SHA256_ECDSA | SHA256_DSA | SHA256 => {
            Sha256::digest(certificate).as_slice().into()
        }
        SHA224_RSA | SHA224_ECDSA | SHA224 => Sha224::digest(certificate).as_slice().into(),
        SHA384_RSA | SHA384_ECDSA | SHA384 => Sha384::digest(certificate).as_slice().into(),
        SHA512_RSA | SHA512_ECDSA | SHA512 => Sha512::digest(certificate).as_slice().into(),
        _ => return None,
    };
    Some(digest)
}

/// The subject's first common name; `None` if there is none, or one with a zero byte, which would be read
/// differently by others.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    (!name.is_empty() && !name.contains('\0')).then(|| name.to_owned())
}

/// The subject's alternative names that are DNS names or mail addresses.
pub fn alternative_names(certificate: &[u8]) -> Vec<String> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let Ok(Some(extension)) = parsed.subject_alternative_name() else { return Vec::new() };
    let names = extension.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => Some(*name),
        _ => None,
    });
    names.filter(|name| !name.contains('\0')).map(str::to_owned).collect()
}

const MD5_RSA: &str = "1.2.840.113549.1.1.4";
const SHA1_RSA: &str = "1.2.840.113549.1.1.5";
const SHA224_RSA: &str = "1.2.840.113549.1.1.14";
const SHA256_RSA: &str = "1.2.840.113549.1.1.11";
const SHA384_RSA: &str = "1.2.840.113549.1.1.12";
const SHA512_RSA: &str = "1.2.840.113549.1.1.13";
const SHA1_ECDSA: &str = "1.2.840.10045.4.1";
const SHA224_ECDSA: &str = "1.2.840.10045.4.3.1";
const SHA256_ECDSA: &str = "1.2.840.10045.4.3.2";
const SHA384_ECDSA: &str = "1.2.840.10045.4.3.3";
const SHA512_ECDSA: &str = "1.2.840.10045.4.3.4";
const SHA256_DSA: &str = "2.16.840.1.101.3.4.3.2";
const SHA1: &str = "1.3.14.3.2.26";
const SHA224: &str = "2.16.840.1.101.3.4.2.4";
const SHA256: &str = "2.16.840.1.101.3.4.2.1";
const SHA384: &str = "2.16.840.1.101.3.4.2.2";
const SHA512: &str = "2.16.840.1.101.3.4.2.3";
