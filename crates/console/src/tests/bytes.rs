//! Bytes of any kind: no panic, no endless loop, and what comes back is always whole messages.

use proptest::prelude::*;

use super::client::obey;
use crate::{Ask, Role, Session};

/// A session's worth of every message, one after the other.
fn script() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut add = |tag: u8, body: &[u8]| {
        wire::encode::message(&mut bytes, tag, |out| out.extend_from_slice(body));
    };
    add(b'Q', b"SHOW POOLS\0");
    add(b'P', b"s\0SHOW LISTS\0\0\0");
    add(b'B', b"p\0s\0\0\0\0\0\0\x02\0\x01\0\0");
    add(b'D', b"Ss\0");
    add(b'D', b"Pp\0");
    add(b'E', b"p\0\0\0\0\x03");
    add(b'E', b"p\0\0\0\0\0");
    add(b'C', b"Pp\0");
    add(b'H', b"");
    add(b'S', b"");
    add(b'F', b"\0\0\0\0");
    add(b'Q', b"SET verbose = '2'\0");
    add(b'd', b"data");
    add(b'c', b"");
    add(b'f', b"why\0");
    add(b'X', b"");
    bytes
}

/// Feeds `bytes` in pieces and checks the replies' framing.
fn feed(bytes: &[u8], piece: usize) {
    let mut session = Session::new(Role::Admin);
    let mut out = Vec::new();
    let mut unread: Vec<u8> = Vec::new();
    'pieces: for piece in bytes.chunks(piece) {
        unread.extend_from_slice(piece);
        loop {
            let progress = session.on_bytes(&unread, &mut out);
            unread.drain(..progress.consumed);
            match progress.ask {
                Some(Ask::Execute(command)) => session.answer(obey(&command), &mut out),
                Some(Ask::Close) => break 'pieces,
                None => break,
            }
        }
    }
    let mut rest = out.as_slice();
    while !rest.is_empty() {
        let header = wire::Header::peek(rest).expect("a header");
        header.check_server().expect("a sound header");
        rest = &rest[usize::try_from(header.total()).expect("a size")..];
    }
}

#[test]
fn every_byte_of_a_session_may_be_any_other() {
    let script = script();
    for at in 0..script.len() {
        for value in 0..=u8::MAX {
            let mut bytes = script.clone();
            bytes[at] = value;
            feed(&bytes, bytes.len());
        }
    }
}

#[test]
fn session_may_end_at_every_byte() {
    let script = script();
    for end in 1..script.len() {
        feed(&script[..end], 7);
    }
}

proptest! {
    #[test]
    fn mutated_sessions_never_panic(
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        piece in 1_usize..64,
    ) {
        let mut bytes = script();
        for (at, value) in mutations {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        feed(&bytes, piece);
    }

    #[test]
    fn whole_messages_with_any_bodies_never_panic(
        messages in prop::collection::vec(
            (prop::sample::select(b"QPBDECHSFdcfXp?".to_vec()), prop::collection::vec(any::<u8>(), 0..40)),
            1..20,
        ),
    ) {
        let mut bytes = Vec::new();
        for (tag, body) in messages {
            wire::encode::message(&mut bytes, tag, |out| out.extend_from_slice(&body));
        }
        feed(&bytes, bytes.len());
    }
}
