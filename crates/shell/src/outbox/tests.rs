//! Claims about streams that write through an outbox, with volleys where the kernel has them and without.

use std::io::Read;
use std::os::unix::net::UnixStream;

use super::*;
use crate::socket::{Socket, Stream};

fn outboxes() -> impl Iterator<Item = Outbox> {
    [IoBackend::Epoll, IoBackend::IoUring].into_iter().map(|wanted| Outbox::new(WorkerId(0), wanted).0)
}

fn pair() -> (Stream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    (Stream::plain(Socket::Unix(near)), far)
}

fn send(stream: &mut Stream, bytes: &[u8], outbox: &mut Outbox) {
    if !stream.load([bytes].into_iter(), outbox) {
        stream.send_bytes(bytes, outbox);
    }
}

/// All that is there now.
fn drain(far: &mut UnixStream) -> Vec<u8> {
    let mut read = Vec::new();
    let end = far.read_to_end(&mut read);
    assert!(end.is_ok() || end.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
    read
}

#[test]
fn what_is_sent_twice_in_a_turn_arrives_in_order() {
    for mut outbox in outboxes() {
        let (mut stream, mut far) = pair();
        outbox.begin_turn();
        send(&mut stream, b"one ", &mut outbox);
        send(&mut stream, b"two ", &mut outbox);
        stream.send_bytes(b"three", &mut outbox);
        assert_eq!(drain(&mut far), b"one two three");
    }
}

#[test]
fn a_turn_that_wrote_nothing_holds_no_gate() {
    for mut outbox in outboxes() {
        let (mut stream, _far) = pair();
        outbox.begin_turn();
        send(&mut stream, b"", &mut outbox);
        assert!(!outbox.is_used());
        send(&mut stream, &vec![1; volley::SEND_BYTES_MAX + 1], &mut outbox);
        assert!(!outbox.is_used());
        send(&mut stream, b"x", &mut outbox);
        assert_eq!(outbox.is_used(), outbox.has_volleys());
    }
}

/// Small ones, large ones, and a reader who is late: nothing is lost, doubled or moved.
#[test]
fn what_a_full_socket_does_not_take_is_kept_in_order() {
    for mut outbox in outboxes() {
        let (mut stream, mut far) = pair();
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        for number in 0..2_000_u32 {
            let length = [40, 7_000, 3, 20_000][number as usize % 4];
            let piece: Vec<u8> = (0..length).map(|place| (number + place) as u8).collect();
            sent.extend_from_slice(&piece);
            outbox.begin_turn();
            send(&mut stream, &piece, &mut outbox);
            if number % 3 == 0 {
                stream.settle(&mut outbox);
            }
            if number % 100 == 99 {
                arrived.extend(drain(&mut far));
                stream.flush();
            }
        }
        stream.settle(&mut outbox);
        while {
            arrived.extend(drain(&mut far));
            !stream.flush()
        } {}
        arrived.extend(drain(&mut far));
        assert!(!stream.is_broken() && arrived == sent);
    }
}

#[test]
fn a_peer_that_is_gone_breaks_its_stream_and_no_other() {
    for mut outbox in outboxes() {
        let ((mut stream, far), (mut other, mut other_far)) = (pair(), pair());
        drop(far);
        send(&mut stream, b"to nobody", &mut outbox);
        send(&mut other, b"to somebody", &mut outbox);
        stream.settle(&mut outbox);
        other.settle(&mut outbox);
        assert!(stream.is_broken() && !other.is_broken());
        assert_eq!(drain(&mut other_far), b"to somebody");
    }
}

/// It never should end so; if it does, nobody is given its bytes.
#[test]
fn a_stream_that_ends_unsent_leaves_its_descriptor_to_nobody() {
    for mut outbox in outboxes().filter(Outbox::has_volleys) {
        let (mut stream, mut far) = pair();
        let before = stream.socket().fd();
        send(&mut stream, b"mine", &mut outbox);
        drop(stream);
        let (next, mut next_far) = pair();
        assert_ne!(next.socket().fd(), before);
        outbox.fire();
        assert_eq!((drain(&mut far), drain(&mut next_far)), (b"mine".to_vec(), Vec::new()));
    }
}
