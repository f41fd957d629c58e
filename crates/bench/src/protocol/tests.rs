//! Claims about `protocol`, each as small as it can be.

use super::*;
use proptest::prelude::*;

fn replies(pieces: &[&[u8]]) -> Vec<Reply> {
    let mut scanner = ReplyScanner::default();
    let mut seen = Vec::new();
    for piece in pieces {
        scanner.scan(piece, |reply| seen.push(reply));
    }
    seen
}

fn error(code: &str, text: &str) -> Vec<u8> {
    let fields = format!("SERROR\0C{code}\0M{text}\0\0");
    message(b'E', &[fields.as_bytes()])
}

fn stream() -> Vec<u8> {
    [
        message(b'T', &[&[0; 40]]),
        message(b'D', &[b"ZZZZZZZZ"]),
        message(b'C', &[b"SELECT 1\0"]),
        message(b'Z', &[b"I"]),
        message(b'3', &[]),
        error("42P01", "no such table"),
        message(b'Z', &[b"E"]),
    ]
    .concat()
}

fn expected() -> Vec<Reply> {
    let lost = ServerError { code: "42P01".into(), message: "no such table".into() };
    vec![Reply::Ready, Reply::Error(lost), Reply::Ready]
}

#[test]
fn only_ready_and_errors_are_seen() {
    assert_eq!(replies(&[&stream()]), expected());
}

#[test]
fn a_message_without_body_is_complete_with_its_header() {
    assert_eq!(replies(&[&message(b'Z', &[])]), [Reply::Ready]);
}

#[test]
fn a_length_below_four_is_nonsense() {
    assert_eq!(replies(&[&[b'D', 0, 0, 0, 3]]), [Reply::Nonsense]);
    assert_eq!(replies(&[&[b'D', 255, 0, 0, 3]]), [Reply::Nonsense]);
}

#[test]
fn a_long_error_is_kept_only_in_part() {
    let mut scanner = ReplyScanner::default();
    scanner.scan(&error("XX000", &"x".repeat(1_000_000)), |reply| {
        assert!(matches!(reply, Reply::Error(error) if error.message.len() < 3_000));
    });
}

#[test]
fn a_startup_packet_counts_itself() {
    let packet = startup("u", "d");
    assert_eq!(packet[..8], [0, 0, 0, packet.len() as u8, 0, 3, 0, 0]);
    assert!(packet.ends_with(b"database\0d\0application_name\0bench\0\0"));
}

proptest! {
    #[test]
    fn where_the_stream_is_cut_changes_nothing(cuts in proptest::collection::vec(0usize..200, 0..12)) {
        let stream = stream();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.push(0);
        cuts.push(stream.len());
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        prop_assert_eq!(replies(&pieces), expected());
    }

    #[test]
    fn no_bytes_make_the_scanner_fall(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        replies(&[&bytes]);
    }
}
