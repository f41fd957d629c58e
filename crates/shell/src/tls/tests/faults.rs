//! What is wrong with files is said with the name of the file.

use std::fs;

use settings::SslMode::{Disable, Require, VerifyCa, VerifyFull};

use super::*;

#[track_caller]
fn check(options: &TlsOptions, expected: &str) {
    let fault = ClientTls::load(options).unwrap_err().to_string();
    assert!(fault.contains(expected), "{fault}");
}

#[test]
fn nothing_is_read_where_tls_is_off() {
    let missing = (PathBuf::from("/no/such.crt"), PathBuf::from("/no/such.key"));
    assert!(ClientTls::load(&with_key(Disable, &missing)).unwrap().config.is_none());
    assert!(ServerTls::load(&with_key(Disable, &missing)).unwrap().config.is_none());
}

#[test]
fn fault_names_the_file() {
    let (dir, certificates, (cert, key)) = authority();
    let path = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let missing = PathBuf::from("/no/such/file");
    check(&with_key(Require, &(missing.clone(), key.clone())), "\"/no/such/file\": No such file");
    check(&with_key(Require, &(cert.clone(), missing.clone())), "\"/no/such/file\": No such file");
    check(&with_key(Require, &(key.clone(), key.clone())), "server.key\": no certificate in it");
    check(&with_key(Require, &(cert.clone(), cert.clone())), "server.crt\": no private key in it");
    check(&with_key(Require, &(cert.clone(), fixture("encrypted.key"))), "encrypted with a password");
    let (_, other_key) = certificates.client("other", "ann");
    check(&with_key(Require, &(cert.clone(), other_key)), "other.key\": not the key of the certificate");
    let torn = path("torn.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    check(&with_key(Require, &(torn.clone(), key.clone())), "torn.crt\"");
    let senseless = path("x.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    check(&with_key(Require, &(senseless.clone(), key.clone())), "x.crt\"");
    let right = with_key(Require, &(cert, key));
    check(&with_authority(right.clone(), &senseless), "x.crt\"");
    check(&with_authority(right, &path("empty", "")), "empty\": no certificate in it");
}

#[test]
fn what_a_mode_needs_must_be_there() {
    let (_dir, _, server) = authority();
    check(&options(Require), "both a certificate file and a key file");
    check(&with_key(VerifyCa, &server), "sslmode verify-ca needs a CA file");
    check(&with_key(VerifyFull, &server), "sslmode verify-full needs a CA file");
    let no_version = TlsOptions { v1_2: false, v1_3: false, ..with_key(Require, &server) };
    check(&no_version, "older ones are not spoken");
    let half = TlsOptions { key_file: None, ..with_key(Require, &server) };
    assert!(matches!(ServerTls::load(&half), Err(TlsFault::CertificateAndKeyNeeded)));
}

#[test]
fn failed_reload_keeps_what_was() {
    let current = Reloadable::new(ClientTls::DISABLED);
    let (_dir, _, server) = authority();
    current.reload(|| ClientTls::load(&with_key(Require, &server))).unwrap();
    let held = current.load();
    current.reload(|| ClientTls::load(&options(Require))).unwrap_err();
    assert!(Arc::ptr_eq(&held, &current.load()));
}
