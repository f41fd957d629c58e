//! Who is believed, what is spoken, and what is known of the other side afterwards.

use settings::SslMode::{Allow, Prefer, Require, VerifyCa, VerifyFull};
use sha2::{Digest, Sha256};

use super::*;

#[track_caller]
fn check(accepting: &TlsOptions, asking: &TlsOptions, name: &str, right: bool) {
    let met = meet(accepting, asking, name);
    assert_eq!(met.is_ok(), right, "{:?}", met.err());
}

#[test]
fn server_is_checked_as_the_mode_says() {
    let (_dir, certificates, server) = authority();
    let (_other_dir, others, _) = authority();
    let accepting = with_key(Require, &server);
    let asking = |mode| with_authority(options(mode), &certificates.authority());
    let wrongly = |mode| with_authority(options(mode), &others.authority());
    for mode in [Allow, Prefer, Require] {
        check(&accepting, &options(mode), "localhost", true);
        check(&accepting, &wrongly(mode), "elsewhere", true);
    }
    check(&accepting, &asking(VerifyCa), "localhost", true);
    check(&accepting, &asking(VerifyCa), "elsewhere", true);
    check(&accepting, &wrongly(VerifyCa), "localhost", false);
    check(&accepting, &asking(VerifyFull), "localhost", true);
    check(&accepting, &asking(VerifyFull), "127.0.0.1", true);
    check(&accepting, &asking(VerifyFull), "elsewhere", false);
    check(&accepting, &asking(VerifyFull), "127.0.0.2", false);
    check(&accepting, &wrongly(VerifyFull), "localhost", false);
}

#[test]
fn certificate_of_version_1_is_taken_as_openssl_does() {
    for (certificate, key) in [("version1.crt", "version1.key"), ("version1_rsa.crt", "version1_rsa.key")] {
        for (v1_2, v1_3) in [(true, false), (false, true)] {
            let key = (fixture(certificate), fixture(key));
            let accepting = TlsOptions { v1_2, v1_3, ..with_key(Require, &key) };
            let asking = |mode| with_authority(options(mode), &fixture("version1_ca.crt"));
            check(&accepting, &options(Prefer), "db.example.org", true);
            check(&accepting, &asking(VerifyCa), "elsewhere", true);
            check(&accepting, &asking(VerifyFull), "db.example.org", true);
            check(&accepting, &asking(VerifyFull), "elsewhere", false);
            let (_dir, others, _) = authority();
            let wrongly = with_authority(options(VerifyCa), &others.authority());
            check(&accepting, &wrongly, "db.example.org", false);
        }
    }
}

#[test]
fn self_signed_certificate_is_its_own_authority() {
    let accepting = with_key(Require, &(fixture("self_signed.crt"), fixture("self_signed.key")));
    let asking = |mode| with_authority(options(mode), &fixture("self_signed.crt"));
    check(&accepting, &asking(VerifyCa), "elsewhere", true);
    check(&accepting, &asking(VerifyFull), "db.example.org", true);
    check(&accepting, &asking(VerifyFull), "elsewhere", false);
    let other = with_authority(options(VerifyCa), &fixture("version1_ca.crt"));
    check(&accepting, &other, "db.example.org", false);
}

#[test]
fn client_certificate_is_demanded_by_verify_ca_and_full() {
    let (_dir, certificates, server) = authority();
    let (_other_dir, others, _) = authority();
    let own = with_key(Require, &certificates.client("own", "ann"));
    let foreign = with_key(Require, &others.client("foreign", "ann"));
    for mode in [VerifyCa, VerifyFull] {
        let accepting = with_authority(with_key(mode, &server), &certificates.authority());
        check(&accepting, &own, "localhost", true);
        check(&accepting, &foreign, "localhost", false);
        check(&accepting, &options(Require), "localhost", false);
    }
}

#[test]
fn client_certificate_is_optional_elsewhere_but_checked_if_sent() {
    let (_dir, certificates, server) = authority();
    let (_other_dir, others, _) = authority();
    let own = with_key(Require, &certificates.client("own", "ann"));
    let foreign = with_key(Require, &others.client("foreign", "ann"));
    for mode in [Allow, Prefer, Require] {
        let accepting = with_authority(with_key(mode, &server), &certificates.authority());
        check(&accepting, &own, "localhost", true);
        check(&accepting, &foreign, "localhost", false);
        check(&accepting, &options(Require), "localhost", true);
        check(&with_key(mode, &server), &foreign, "localhost", true);
    }
}

#[test]
fn client_certificate_of_version_1_is_checked_too() {
    let (_dir, _, server) = authority();
    let accepting = with_authority(with_key(VerifyFull, &server), &fixture("version1_ca.crt"));
    let asking = with_key(Require, &(fixture("version1.crt"), fixture("version1.key")));
    let met = meet(&accepting, &asking, "localhost").unwrap();
    let certificate = &met.accepting.peer_certificates().unwrap()[0];
    assert_eq!(common_name(certificate).as_deref(), Some("db.example.org"));
    let self_signed = with_key(Require, &(fixture("self_signed.crt"), fixture("self_signed.key")));
    check(&accepting, &self_signed, "localhost", false);
}

#[test]
fn names_of_the_client_are_read() {
    let (_dir, certificates, server) = authority();
    let accepting = with_authority(with_key(VerifyFull, &server), &certificates.authority());
    let asking = with_key(Require, &certificates.client("own", "ann"));
    let met = meet(&accepting, &asking, "localhost").unwrap();
    let certificate = &met.accepting.peer_certificates().unwrap()[0];
    assert_eq!(common_name(certificate).as_deref(), Some("ann"));
    let own = &met.asking.peer_certificates().unwrap()[0];
    assert_eq!(alternative_names(own), ["localhost"]);
    assert_eq!((common_name(b"no certificate"), alternative_names(b"")), (None, vec![]));
}

#[track_caller]
fn check_description(change: impl Fn(TlsOptions) -> TlsOptions, expected: &str) {
    let (_dir, _, server) = authority();
    let met = meet(&change(with_key(Require, &server)), &options(Require), "localhost").unwrap();
    assert_eq!(describe(&met.accepting), expected);
    assert_eq!(describe(&met.asking), expected);
}

#[test]
fn versions_and_suites_are_those_of_the_options() {
    let newer = |tls13_ciphers: &str| {
        let tls13_ciphers = tls13_ciphers.to_owned();
        move |options| TlsOptions { tls13_ciphers: tls13_ciphers.clone(), ..options }
    };
    let older = |ciphers: &str| {
        let ciphers = ciphers.to_owned();
        move |options| TlsOptions { v1_3: false, ciphers: ciphers.clone(), ..options }
    };
    check_description(|options| options, "TLSv1.3/TLS_AES_256_GCM_SHA384");
    check_description(newer("TLS_AES_128_GCM_SHA256"), "TLSv1.3/TLS_AES_128_GCM_SHA256");
    check_description(newer("TLS_CHACHA20_POLY1305_SHA256"), "TLSv1.3/TLS_CHACHA20_POLY1305_SHA256");
    check_description(older("secure"), "TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384");
    check_description(older("HIGH:!aNULL"), "TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384");
    check_description(
        older("no-such:ECDHE-ECDSA-AES128-GCM-SHA256"),
        "TLSv1.2/ECDHE-ECDSA-AES128-GCM-SHA256",
    );
    check_description(older("no-such"), "TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384");
}

#[test]
fn no_connection_has_no_description() {
    let (_dir, _, server) = authority();
    let config = ClientTls::load(&with_key(Require, &server)).unwrap().config.unwrap();
    assert_eq!(describe(&ServerConnection::new(config).unwrap()), "-");
}

#[test]
fn channel_binding_is_the_digest_of_the_certificate() {
    let (_dir, _, server) = authority();
    let tls = ClientTls::load(&with_key(Require, &server)).unwrap();
    let met = meet(&with_key(Require, &server), &options(Require), "localhost").unwrap();
    let certificate = &met.asking.peer_certificates().unwrap()[0];
    let expected = Sha256::digest(certificate);
    assert_eq!(tls.channel_binding.as_deref(), Some(expected.as_slice()));
    assert_eq!(channel_binding(certificate).as_deref(), Some(expected.as_slice()));
    assert_eq!(channel_binding(b"no certificate"), None);
}

#[test]
fn alpn_is_ours_or_none() {
    let (_dir, _, server) = authority();
    let met = meet(&with_key(Require, &server), &options(Require), "localhost").unwrap();
    assert_eq!(met.accepting.alpn_protocol(), None);
    let accepting = ClientTls::load(&with_key(Require, &server)).unwrap().config.unwrap();
    for (protocol, right) in [(ALPN, true), (b"http/1.1", false)] {
        let asking = ServerTls::load(&options(Require)).unwrap().config.unwrap();
        let mut asking = rustls::ClientConfig::clone(&asking);
        asking.alpn_protocols = vec![protocol.to_vec()];
        let name = servers::server_name("localhost", [127, 0, 0, 1].into());
        let mut asking = ClientConnection::new(Arc::new(asking), name).unwrap();
        let mut accepting = ServerConnection::new(Arc::clone(&accepting)).unwrap();
        let mut wire = Vec::new();
        asking.write_tls(&mut wire).unwrap();
        accepting.read_tls(&mut wire.as_slice()).unwrap();
        assert_eq!(accepting.process_new_packets().is_ok(), right);
    }
}

#[test]
fn second_connection_resumes_the_session() {
    let (_dir, _, server) = authority();
    let accepting = ClientTls::load(&with_key(Require, &server)).unwrap().config.unwrap();
    let asking = ServerTls::load(&options(Require)).unwrap().config.unwrap();
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let name = servers::server_name("localhost", [127, 0, 0, 1].into());
        let mut client = ClientConnection::new(Arc::clone(&asking), name).unwrap();
        let mut server = ServerConnection::new(Arc::clone(&accepting)).unwrap();
        while client.wants_write() || server.wants_write() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            let mut wire = Vec::new();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().unwrap();
        }
        kinds.push(client.handshake_kind().unwrap());
    }
    assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
}
