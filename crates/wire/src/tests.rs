//! Each decoder against sound, short, long and absurd bytes.

use crate::client::{BindHead, Parse, SaslInitial, Target};
use crate::server::{Authentication, ErrorFields, TransactionStatus};
use crate::startup::{First, StartupFault, Version};
use crate::{Header, HeaderFault, client, encode, server, startup};

fn check_client(tag: u8, length: u32, expect: Result<(), HeaderFault>) {
    assert_eq!(Header { tag, length }.check_client(), expect, "{} {length}", char::from(tag));
}

#[test]
fn a_length_under_four_or_negative_is_refused() {
    for length in [0, 3, u32::MAX, -5_i32 as u32, i32::MAX as u32 + 1] {
        check_client(b'Q', length, Err(HeaderFault::BadLength));
    }
    check_client(b'S', 4, Ok(()));
}

#[test]
fn a_message_longer_than_its_type_allows_is_refused() {
    check_client(b'S', 20_000, Err(HeaderFault::TooLong(10_000)));
    check_client(b'p', 65_539, Ok(()));
    check_client(b'p', 65_540, Err(HeaderFault::TooLong(65_535)));
    check_client(b'B', 0x3fff_ffff, Ok(()));
    check_client(b'B', i32::MAX as u32, Err(HeaderFault::TooLong(0x3fff_ffff)));
}

#[test]
fn a_type_that_no_client_sends_is_refused() {
    for tag in [0, b'G', b'Z', b'T', 0xff] {
        check_client(tag, 4, Err(HeaderFault::UnknownType));
    }
}

#[test]
fn a_header_needs_five_bytes() {
    assert_eq!(Header::peek(b"Q\0\0\0"), None);
    assert_eq!(Header::peek(b"Q\0\0\0\x05x"), Some(Header { tag: b'Q', length: 5 }));
}

#[test]
fn first_packets_are_told_apart() {
    assert_eq!(First::parse(&encode::SSL_REQUEST), Ok(First::SslRequest));
    assert_eq!(First::parse(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30]), Ok(First::GssEncRequest));
    let mut out = Vec::new();
    encode::cancel_request(&mut out, 7, b"12345678");
    assert_eq!(First::parse(&out), Ok(First::CancelRequest { process_id: 7, key: b"12345678" }));
}

#[test]
fn a_startup_message_gives_back_its_parameters_in_order() {
    let mut out = Vec::new();
    let parameters: [(&[u8], &[u8]); 2] = [(b"user", b"ann"), (b"database", b"")];
    assert!(encode::startup(&mut out, Version::V3_2, parameters.into_iter()));
    let Ok(First::Startup(message)) = First::parse(&out) else { panic!("not a startup message") };
    assert_eq!(message.version, Version::V3_2);
    assert!(message.parameters().eq(parameters));
    assert_eq!(startup::length(&out), Ok(Some(out.len())));
}

fn check_startup_fault(body: &[u8], fault: StartupFault) {
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend_from_slice(body);
    assert_eq!(First::parse(&packet), Err(fault), "{body:?}");
}

#[test]
fn a_malformed_first_packet_is_refused_with_its_cause() {
    check_startup_fault(b"\0\x03\0\0", StartupFault::BadLayout);
    check_startup_fault(b"\0\x03\0\0user\0ann", StartupFault::BadLayout);
    check_startup_fault(b"\0\x03\0\0user\0ann\0", StartupFault::BadLayout);
    check_startup_fault(b"\0\x03\0\0user\0ann\0\0more", StartupFault::BadLayout);
    check_startup_fault(b"\0\x02\0\0", StartupFault::UnsupportedVersion(Version { major: 2, minor: 0 }));
    check_startup_fault(b"\0\x04\0\0\0", StartupFault::UnsupportedVersion(Version { major: 4, minor: 0 }));
    check_startup_fault(b"\x04\xd2\x16\x2ejunk", StartupFault::BadCancelKey);
    check_startup_fault(b"\x04\xd2\x16\x2fjunk", StartupFault::BadLength);
}

#[test]
fn the_length_of_a_first_packet_is_bounded() {
    assert_eq!(startup::length(&[0, 0]), Ok(None));
    for word in [0_u32, 7, 10_001, u32::MAX] {
        assert_eq!(startup::length(&word.to_be_bytes()), Err(StartupFault::BadLength), "{word}");
    }
}

#[test]
fn parse_gives_name_text_and_what_identifies_the_statement() {
    let body = b"s1\0select $1\0\0\x01\0\0\0\x17";
    let parse = Parse::read(body).expect("sound");
    assert_eq!((parse.name, parse.query()), (&b"s1"[..], &b"select $1"[..]));
    assert_eq!(parse.rest, &body[3..]);
    for cut in 0..body.len() {
        assert!(Parse::read(&body[..cut]).is_err(), "cut at {cut}");
    }
    assert!(Parse::read(b"s1\0select\0\0\0x").is_err());
}

#[test]
fn bind_names_are_found_at_its_head_or_not_yet() {
    let body = b"portal\0stmt\0rest of it";
    let head = BindHead::peek(body).expect("whole");
    assert_eq!((head.portal, head.statement, head.size()), (&b"portal"[..], &b"stmt"[..], 12));
    assert_eq!(BindHead::peek(&body[..11]), None);
}

#[test]
fn describe_and_close_name_a_statement_or_a_portal() {
    assert_eq!(client::target(b"Sname\0"), Ok((Target::Statement, &b"name"[..])));
    assert_eq!(client::target(b"P\0"), Ok((Target::Portal, &b""[..])));
    for bad in [&b""[..], b"S", b"Sname", b"Xname\0", b"Sname\0x"] {
        assert!(client::target(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn the_inner_length_of_a_sasl_response_must_be_exact() {
    let body = |length: i32| [b"SCRAM\0".as_slice(), &length.to_be_bytes(), b"data"].concat();
    assert_eq!(SaslInitial::parse(&body(4)).map(|s| s.data), Ok(Some(&b"data"[..])));
    for length in [-1, 0, 3, 5, i32::MAX, i32::MIN] {
        assert!(SaslInitial::parse(&body(length)).is_err(), "{length}");
    }
    assert_eq!(SaslInitial::parse(b"SCRAM\0\xff\xff\xff\xff").map(|s| s.data), Ok(None));
}

#[test]
fn an_error_may_lack_any_field_and_its_end() {
    assert_eq!(ErrorFields::parse(b""), ErrorFields::default());
    let full = ErrorFields::parse(b"SFEHLER\0VERROR\0C42601\0Msyntax\0\0");
    assert_eq!(full.severity, Some(&b"ERROR"[..]));
    assert_eq!(full.code, Some(&b"42601"[..]));
    assert_eq!(full.message, Some(&b"syntax"[..]));
    assert_eq!(ErrorFields::parse(b"SFATAL\0Mcut").message, None);
    assert!(ErrorFields::parse(b"SFATAL\0").is_fatal());
}

#[test]
fn authentication_requests_are_told_apart() {
    assert_eq!(server::authentication(&[0, 0, 0, 0]), Ok(Authentication::Ok));
    assert_eq!(
        server::authentication(&[0, 0, 0, 5, 1, 2, 3, 4]),
        Ok(Authentication::Md5Password { salt: [1, 2, 3, 4] })
    );
    assert!(server::authentication(&[0, 0, 0, 5, 1]).is_err());
    assert_eq!(server::authentication(&[0, 0, 0, 7]), Ok(Authentication::Unsupported(7)));
    let Ok(Authentication::Sasl(offered)) = server::authentication(b"\0\0\0\x0aSCRAM-SHA-256\0\0") else {
        panic!("not SASL")
    };
    assert!(offered.offers("SCRAM-SHA-256") && !offered.offers("SCRAM-SHA-256-PLUS"));
}

#[test]
fn only_three_transaction_states_exist() {
    for byte in 0..=255 {
        let status = TransactionStatus::from_byte(byte);
        assert_eq!(status.is_ok(), b"ITE".contains(&byte));
        assert!(status.is_err() || status.map(TransactionStatus::byte) == Ok(byte));
    }
}

#[test]
fn a_report_reads_back_as_it_was_written() {
    let mut out = Vec::new();
    encode::report(&mut out, encode::Severity::Fatal, "08P01", "no more", Some("of that"));
    let header = Header::peek(&out).expect("a header");
    assert_eq!((header.tag, header.total()), (b'E', out.len() as u64));
    let fields = ErrorFields::parse(&out[5..]);
    assert!(fields.is_fatal());
    assert_eq!(fields.code, Some(&b"08P01"[..]));
}

#[test]
fn the_shape_of_rows_is_their_names_and_types_alone() {
    let column = |name: &[u8], numbers: [u8; 18]| [name, &[0], &numbers].concat();
    let numbers = |table: u8, kind: u8, format: u8| {
        let mut numbers = [0; 18];
        (numbers[3], numbers[9], numbers[17]) = (table, kind, format);
        numbers
    };
    let body = |column: Vec<u8>| [&[0, 1], &*column].concat();
    let shape = |body: &[u8]| server::row_shape(body);
    let first = shape(&body(column(b"a", numbers(1, 23, 0)))).expect("a description");
    assert_eq!(shape(&body(column(b"a", numbers(2, 23, 1)))), Ok(first.clone()));
    assert_ne!(shape(&body(column(b"a", numbers(1, 25, 0)))), Ok(first.clone()));
    assert_ne!(shape(&body(column(b"b", numbers(1, 23, 0)))), Ok(first));
    assert_eq!(shape(&[0, 0]), Ok(vec![0, 0]));
    for broken in [&b""[..], &[0], &[0, 1], &[0, 1, b'a', 0], &[255, 255, b'a', 0], &[0, 0, 0]] {
        assert!(shape(broken).is_err(), "{broken:?}");
    }
}
