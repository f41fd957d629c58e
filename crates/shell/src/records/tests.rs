//! Bytes through two sessions and a pair of sockets: what one side is given the other side gets, however it was cut.

use std::os::unix::net::UnixStream;

use super::*;

/// What a worker reads into.
const SCRATCH_BYTES: usize = 64 << 10;

struct Side {
    socket: Socket,
    tls: Connection,
}

/// Two sides whose handshake is over.
fn sides() -> (Side, Side) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let (mut accepting, mut asking) = crate::tls::tests::met();
    // As `Stream::start_tls` does.
    accepting.set_buffer_limit(None);
    asking.set_buffer_limit(None);
    let near = Side { socket: Socket::Unix(near), tls: Connection::Server(accepting) };
    (near, Side { socket: Socket::Unix(far), tls: Connection::Client(asking) })
}

fn text(count: usize) -> Vec<u8> {
    (0..count as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Reads until nothing more is there; whether that is the end.
fn read(side: &mut Side, into: &mut [u8], got: &mut Vec<u8>) -> bool {
    loop {
        match receive(&side.socket, &mut side.tls, into) {
            Received::Some(count, more) => {
                got.extend_from_slice(&into[..count]);
                if !more {
                    // As the relay does: it waits for an edge.
                    return false;
                }
            }
            Received::Nothing => return false,
            Received::End => return true,
            Received::Broken => panic!("broken"),
        }
    }
}

#[track_caller]
fn check(total: usize, piece: usize, room: usize) {
    let (mut near, mut far) = sides();
    let (sent, mut got, mut into) = (text(total), Vec::new(), vec![0; room]);
    for piece in sent.chunks(piece) {
        let (first, second) = piece.split_at(piece.len() / 2);
        seal(&mut far.tls, &[IoSlice::new(first), IoSlice::new(second)]).unwrap();
        while !flush(&far.socket, &mut far.tls).unwrap() {
            assert!(!read(&mut near, &mut into, &mut got));
        }
        assert!(!read(&mut near, &mut into, &mut got));
    }
    assert!(got == sent, "{} of {total} bytes in pieces of {piece}, read into {room}", got.len());
    far.tls.send_close_notify();
    assert!(flush(&far.socket, &mut far.tls).unwrap());
    assert!(read(&mut near, &mut into, &mut got) && got == sent);
}

#[test]
fn what_one_side_seals_the_other_gets() {
    for room in [SCRATCH_BYTES, 2 * HELD_MAX, 8 << 10, 100] {
        check(0, 1, room);
        check(5_000, 7, room);
        check(2_000_000, 65_536, room);
        check(3_000_000, 1_000_000, room);
    }
}

/// Sealed bytes come cut anywhere: all is read by the end of its last piece.
#[test]
fn records_cut_anywhere_are_whole_in_the_end() {
    let sent = text(200_000);
    for cut in [1, 5, 1_000, 16_384, 16_406, 18_000, 45_056, 45_057, 70_000] {
        let (mut near, mut far) = sides();
        seal(&mut far.tls, &[IoSlice::new(&sent)]).unwrap();
        let mut sealed = Vec::new();
        while far.tls.wants_write() {
            far.tls.write_tls(&mut sealed).unwrap();
        }
        let (mut got, mut into) = (Vec::new(), vec![0; SCRATCH_BYTES]);
        let step = if cut < 1_000 { 997 } else { cut };
        let mut rest = &sealed[..];
        for count in [cut].into_iter().chain(std::iter::repeat(step)) {
            let (piece, behind) = rest.split_at(count.min(rest.len()));
            assert_eq!(far.socket.write(piece).unwrap(), piece.len());
            assert!(!read(&mut near, &mut into, &mut got));
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        assert!(got == sent, "cut at {cut}");
    }
}

/// What came before the fault still counts; then it is over, however often one asks.
#[test]
fn a_spoilt_record_ends_it_behind_those_that_were_sound() {
    let (mut near, mut far) = sides();
    let mut sealed = Vec::new();
    for word in [&b"sound"[..], b"spoilt"] {
        seal(&mut far.tls, &[IoSlice::new(word)]).unwrap();
        far.tls.write_tls(&mut sealed).unwrap();
    }
    *sealed.last_mut().unwrap() ^= 1;
    assert_eq!(far.socket.write(&sealed).unwrap(), sealed.len());
    let mut into = vec![0; SCRATCH_BYTES];
    assert_eq!(receive(&near.socket, &mut near.tls, &mut into), Received::Some(5, true));
    assert_eq!(&into[..5], b"sound");
    for _ in 0..2 {
        assert_eq!(receive(&near.socket, &mut near.tls, &mut into), Received::End);
    }
    // And the other side is told.
    let mut got = Vec::new();
    assert!(read(&mut far, &mut into, &mut got) && got.is_empty());
}

#[test]
fn what_belongs_together_is_one_record() {
    let (_, mut far) = sides();
    let words: Vec<_> = (0..16).map(|_| IoSlice::new(b"0123456789")).collect();
    seal(&mut far.tls, &words).unwrap();
    let mut sealed = Vec::new();
    far.tls.write_tls(&mut sealed).unwrap();
    assert_eq!(sealed.len(), 5 + 160 + 1 + 16);
}
