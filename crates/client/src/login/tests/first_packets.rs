//! Requests before the startup message, versions, and first packets that are none.

use super::*;

fn check(transport: Transport, segments: &[&[u8]], story: &str) -> Heard {
    let heard = hear(transport, &|| Challenge::Pass, segments.iter().copied());
    assert_eq!(heard.story(), story, "{transport:?} {segments:?}");
    heard
}

const SSL: &[u8] = &encode::SSL_REQUEST;
const GSS: &[u8] = &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30];

#[test]
fn tls_is_begun_where_it_may_be_had() {
    check(Transport::PlainTlsOffered, &[SSL, &hello()], "S, tls, who, in");
    check(Transport::PlainTlsRequired, &[SSL, &hello()], "S, tls, who, in");
    check(Transport::Plain, &[SSL, &hello()], "N, who, in");
    check(Transport::PlainTlsOffered, &[&hello()], "who, in");
    check(Transport::PlainTlsRequired, &[&hello()], "refused 28000 SSL required");
    check(Transport::Tls, &[&hello()], "who, in");
}

#[test]
fn bytes_behind_a_request_for_encryption_are_refused() {
    let glued = [SSL, &hello()].concat();
    let told = "refused 08P01 received unencrypted data after SSL request";
    for transport in [Transport::Plain, Transport::PlainTlsOffered, Transport::PlainTlsRequired] {
        let heard = check(transport, &[&glued], told);
        assert!(heard.sent.is_empty());
        check(transport, &[&[SSL, b"\0"].concat()], told);
        check(transport, &[&SSL[..3], &glued[3..]], told);
    }
    let told = "refused 08P01 received unencrypted data after GSSAPI encryption request";
    check(Transport::PlainTlsOffered, &[&[GSS, SSL].concat()], told);
}

#[test]
fn each_request_for_encryption_is_answered_once() {
    check(Transport::PlainTlsOffered, &[GSS, SSL, &hello()], "N, S, tls, who, in");
    check(Transport::Plain, &[SSL, GSS, &hello()], "N, N, who, in");
    let ssl = "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2";
    let gss = "unsupported frontend protocol 1234.5680: server supports 3.0 to 3.2";
    check(Transport::Plain, &[SSL, SSL], &format!("N, refused 0A000 {ssl}"));
    check(Transport::PlainTlsOffered, &[SSL, SSL], &format!("S, tls, refused 0A000 {ssl}"));
    check(Transport::Tls, &[SSL], &format!("refused 0A000 {ssl}"));
    check(Transport::Tls, &[GSS], &format!("refused 0A000 {gss}"));
    check(Transport::PlainTlsOffered, &[GSS, GSS], &format!("N, refused 0A000 {gss}"));
}

#[test]
fn a_cancel_request_is_passed_on_with_its_key() {
    let mut request = Vec::new();
    encode::cancel_request(&mut request, 7, b"abcd");
    check(Transport::Plain, &[&request], "cancel 7 abcd");
    check(Transport::PlainTlsRequired, &[&request], "cancel 7 abcd");
    check(Transport::PlainTlsOffered, &[SSL, &request], "S, tls, cancel 7 abcd");
    request.clear();
    encode::cancel_request(&mut request, 7, &[b'k'; 256]);
    check(Transport::Plain, &[&request], &format!("cancel 7 {}", "k".repeat(256)));
    request.clear();
    encode::cancel_request(&mut request, 7, b"abc");
    check(Transport::Plain, &[&request], "BadFirstPacket(BadCancelKey)");
}

#[test]
fn a_first_packet_of_no_sound_length_closes_without_a_word() {
    for length in [-5, 0, 3, 7, 10_001, i32::MAX, i32::MIN] {
        check(Transport::Plain, &[&length.to_be_bytes()], "BadFirstPacket(BadLength)");
    }
    check(Transport::Plain, &[b"GET / HTTP/1.1\r\n\r\n"], "BadFirstPacket(BadLength)");
    check(Transport::Plain, &[b"\x16\x03\x01\x02\0\x01"], "BadFirstPacket(BadLength)");
    check(Transport::Plain, &[&[0, 0, 0, 9, 0x04, 0xd2, 0x16, 0x2f, 0]], "BadFirstPacket(BadLength)");
}

#[test]
fn a_packet_that_stops_short_waits() {
    let whole = hello();
    for end in 0..whole.len() {
        let heard = check(Transport::Plain, &[&whole[..end]], "");
        assert_eq!(heard.rest, &whole[..end]);
    }
}

#[test]
fn parameters_without_their_end_are_refused() {
    let told = "refused 08P01 invalid startup packet layout: expected terminator as last byte";
    for body in [&b"user\0ann\0"[..], b"user\0ann", b"user\0", b"user", b"", b"\0\0", b"user\0ann\0\0x"] {
        let mut packet = (body.len() as u32 + 8).to_be_bytes().to_vec();
        packet.extend_from_slice(&[0, 3, 0, 0]);
        packet.extend_from_slice(body);
        check(Transport::Plain, &[&packet], told);
    }
}

#[test]
fn the_largest_packet_is_taken() {
    let bulk = "x".repeat(10_000 - startup(&[("user", USER), ("x", "")]).len());
    let packet = startup(&[("user", USER), ("x", &bulk)]);
    assert_eq!(packet.len(), 10_000);
    check(Transport::Plain, &[&packet], "who, in");
    let packet = startup(&[("user", USER), ("xx", &bulk)]);
    check(Transport::Plain, &[&packet], "BadFirstPacket(BadLength)");
}

fn check_version(major: u16, minor: u16, extra: &[(&str, &str)], sent: &[u8], spoken: Version) {
    let parameters = [&[("user", USER)], extra].concat();
    let packet = startup_of(Version { major, minor }, &parameters);
    let heard = hear(Transport::Plain, &|| Challenge::Pass, [&packet[..]]);
    assert_eq!(heard.sent, sent, "{major}.{minor} {extra:?}");
    let identity = heard.identity.expect("let through");
    assert_eq!(identity.version, spoken);
    assert_eq!(identity.takes_long_keys(), spoken == Version::V3_2);
}

#[test]
fn versions_are_negotiated_once_and_before_authentication() {
    let v3_1 = Version { major: 3, minor: 1 };
    check_version(3, 0, &[], b"", Version::V3_0);
    check_version(3, 1, &[], b"", v3_1);
    check_version(3, 2, &[], b"", Version::V3_2);
    let newest = b"v\0\0\0\x0c\0\x03\0\x02\0\0\0\0";
    check_version(3, 3, &[], newest, Version::V3_2);
    check_version(3, 9999, &[], newest, Version::V3_2);
    let listed = b"v\0\0\0\x15\0\x03\0\x02\0\0\0\x01_pq_.foo\0";
    check_version(3, 9999, &[("_pq_.foo", "1")], listed, Version::V3_2);
    check_version(3, 2, &[("_pq_.foo", "1")], listed, Version::V3_2);
    let listed = b"v\0\0\0\x1e\0\x03\0\0\0\0\0\x02_pq_.foo\0_pq_.bar\0";
    check_version(3, 0, &[("_pq_.foo", ""), ("_pq_.bar", "")], listed, Version::V3_0);
}

#[test]
fn other_major_versions_are_refused() {
    for (major, minor) in [(2, 0), (4, 0), (0, 0), (1, 0), (1234, 9)] {
        let packet = startup_of(Version { major, minor }, &[("user", USER)]);
        let told = "server supports 3.0 to 3.2";
        let story = format!("refused 0A000 unsupported frontend protocol {major}.{minor}: {told}");
        check(Transport::Plain, &[&packet], &story);
    }
}
