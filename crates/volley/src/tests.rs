//! Claims about `Volley`, each as small as it can be. Where the kernel has no io_uring they say nothing.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::*;

fn pairs(count: usize) -> Vec<(UnixStream, UnixStream)> {
    (0..count).map(|_| UnixStream::pair().unwrap()).collect()
}

fn volley() -> Option<Volley> {
    match Volley::new(7) {
        Ok(volley) => Some(volley),
        Err(error) => {
            eprintln!("no io_uring here: {error}");
            None
        }
    }
}

fn load(volley: &mut Volley, socket: &UnixStream, parts: &[&[u8]]) {
    volley.load(socket.as_raw_fd(), parts.iter().copied());
}

#[test]
fn each_socket_receives_its_own_bytes() {
    let Some(mut volley) = volley() else { return };
    for count in [1, 2, SENDS_MAX] {
        let mut pairs = pairs(count);
        let round = volley.round();
        for (index, (near, _)) in pairs.iter().enumerate() {
            assert!(volley.has_room(9));
            load(&mut volley, near, &[b"socket ", &[b'0' + (index / 10) as u8, b'0' + (index % 10) as u8]]);
        }
        volley.fire();
        assert!(volley.is_empty() && !volley.has_missed());
        assert_eq!(volley.round(), round + 1);
        for (index, (_, far)) in pairs.iter_mut().enumerate() {
            let mut read = [0; 64];
            let count = far.read(&mut read).unwrap();
            assert_eq!(String::from_utf8_lossy(&read[..count]), format!("socket {index:02}"));
        }
    }
}

#[test]
fn there_is_room_for_so_many_sends_and_bytes_and_no_more() {
    let Some(mut volley) = volley() else { return };
    let pairs = pairs(SENDS_MAX);
    assert!(!volley.has_room(SEND_BYTES_MAX + 1));
    for (near, _) in &pairs {
        assert!(volley.has_room(1));
        load(&mut volley, near, &[b"x"]);
    }
    assert!(!volley.has_room(1));
    volley.fire();
    let largest = [1; SEND_BYTES_MAX];
    for (near, _) in &pairs[..VOLLEY_BYTES_MAX / SEND_BYTES_MAX] {
        assert!(volley.has_room(SEND_BYTES_MAX));
        load(&mut volley, near, &[&largest]);
    }
    assert!(!volley.has_room(1));
    volley.fire();
    assert!(!volley.has_missed());
}

/// Filled to the brim, together with others and alone: nothing is lost, doubled or moved.
#[test]
fn what_a_full_socket_does_not_take_comes_back() {
    let Some(mut volley) = volley() else { return };
    for with_others in [false, true] {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (beside, mut beside_far) = UnixStream::pair().unwrap();
        let (mut sent, mut rest) = (Vec::new(), None);
        for number in 0..1_000_000_u32 {
            let piece: Vec<u8> =
                (0..1_500_u32).flat_map(|word| (number * 1_500 + word).to_be_bytes()).collect();
            load(&mut volley, &near, &[&piece]);
            if with_others {
                load(&mut volley, &beside, &[b"!"]);
            }
            volley.fire();
            sent.extend_from_slice(&piece);
            rest = volley.take_miss(near.as_raw_fd());
            assert!(!volley.has_missed());
            if with_others {
                beside_far.read_exact(&mut [0]).unwrap();
            }
            if rest.is_some() {
                break;
            }
        }
        let rest = rest.unwrap();
        drop(near);
        let mut arrived = Vec::new();
        far.read_to_end(&mut arrived).unwrap();
        arrived.extend_from_slice(&rest);
        assert!(arrived == sent);
    }
}

#[test]
fn a_socket_that_is_broken_misses_everything_and_disturbs_nobody() {
    let Some(mut volley) = volley() else { return };
    let (near, far) = UnixStream::pair().unwrap();
    let (beside, mut beside_far) = UnixStream::pair().unwrap();
    drop(far);
    load(&mut volley, &near, &[b"to nobody"]);
    load(&mut volley, &beside, &[b"to somebody"]);
    volley.fire();
    assert_eq!(volley.take_misses(), [Miss { fd: near.as_raw_fd(), rest: b"to nobody".to_vec() }]);
    let mut read = [0; 11];
    beside_far.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"to somebody");
    assert!((&near).write(b"x").is_err());
}
