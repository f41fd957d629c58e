//! Lies from either side: nothing panics, nothing is given on, the liar's connection ends.

use std::sync::Arc;

use proptest::prelude::*;

use crate::unpaired::{self, Fate};
use crate::{Out, Policy, Then};

use super::harness::{Seat, parameters, server};
use super::random::{Lots, waiting_script};
use super::words::client_bytes;

/// Bodies that some message or other has.
const BODIES: &[&[u8]] = &[
    b"",
    b"I",
    b"T",
    b"E",
    b"DISCARD ALL\0",
    b"DEALLOCATE ALL\0",
    b"RESET\0",
    b"a\0b\0",
    b"SERROR\0C26000\0Mx\0\0",
    b"SFATAL\0C57P01\0\0",
    b"\0\0",
    b"\0x\0\0\0",
    b"s\0x\0\0\0",
    b"\0s\0\0\0\0\0\0\0",
    b"Ss\0",
    b"Ps\0",
    b"\0\0\0\0\0",
    b"deallocate s\0",
];

/// Messages of any type with any body, some with lengths that are lies, and plain noise.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![
        8 => prop::sample::select(&b"123CDEGHIKNRSTVWZcdnstPBQFXHfpAv"[..]),
        1 => any::<u8>(),
    ];
    let body = prop_oneof![
        4 => prop::sample::select(BODIES).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    let message =
        (tag, body, prop_oneof![20 => Just(0_i64), 1 => -6..6_i64, 1 => any::<i32>().prop_map(i64::from)]);
    let message = message.prop_map(|(tag, body, lie)| {
        let length = (body.len() as i64 + 4 + lie) as u32;
        [&[tag][..], &length.to_be_bytes(), &body].concat()
    });
    prop::collection::vec(message, 0..20).prop_map(|messages| messages.concat())
}

fn seat(policy: &Policy) -> Seat {
    let nothing = parameters(&[]);
    let mut seat = Seat::new(1, policy, &Arc::default(), Arc::clone(&nothing));
    seat.grant(server(1, nothing), false);
    seat
}

proptest! {
    #[test]
    fn a_server_that_lies_is_given_to_nobody_while_it_owes(script in waiting_script(), lies in noise(), seed: u64) {
        let mut seat = seat(&Policy::default());
        let mut lots = Lots(seed);
        let bytes: Vec<u8> = script.iter().flat_map(|batch| client_bytes(batch)).collect();
        let (mut said, mut lied) = (0, 0);
        while seat.end.is_none() && (said < bytes.len() || lied < lies.len()) {
            let step = 1 + lots.below(40);
            if lots.below(2) == 0 {
                seat.client_says(&bytes[said..(said + step).min(bytes.len())]);
                said = (said + step).min(bytes.len());
            } else {
                seat.server_says(&lies[lied..(lied + step).min(lies.len())]);
                lied = (lied + step).min(lies.len());
            }
            let is_quiet = seat.link.server().is_some_and(|server| server.is_quiet());
            prop_assert!(is_quiet || !seat.link.release_due());
        }
        if let Some(Then::ServerGone(_)) = seat.end {
            let server = seat.leave().expect("it is still in the link");
            prop_assert!(server.broken.is_some());
            prop_assert!(!server.is_shareable());
        }
    }

    #[test]
    fn a_stranger_without_a_client_is_clean_or_closed(lies in noise(), is_session: bool) {
        let mode = if is_session { model::PoolMode::Session } else { model::PoolMode::Transaction };
        let policy = Policy { mode, ..Policy::default() };
        let mut seat = seat(&policy);
        seat.client_says(&client_bytes("Q(begin)"));
        seat.server_says(&super::words::server_bytes("C(BEGIN) Z(T)"));
        let mut server = seat.leave().expect("a server");
        let mut out = Out::default();
        let mut fate = unpaired::left(&mut server, &policy, &mut out);
        let mut rest = &lies[..];
        while fate == Fate::Cleaning && !rest.is_empty() {
            let (consumed, next) = unpaired::on_server(&mut server, &policy, rest, &mut out);
            prop_assert!(out.to_client.is_empty());
            if consumed == 0 && next == Fate::Cleaning {
                break;
            }
            (rest, fate) = (&rest[consumed..], next);
        }
        prop_assert!(fate != Fate::Clean || server.is_shareable());
    }

    #[test]
    fn a_client_that_lies_ends_alone(lies in noise(), prepared_max in 0..3_usize, seed: u64) {
        let policy = Policy { prepared_max, ..Policy::default() };
        let mut seat = seat(&policy);
        let mut lots = Lots(seed);
        let mut rest = &lies[..];
        while !rest.is_empty() && seat.end.is_none() {
            let (piece, more) = rest.split_at(1 + lots.below(rest.len()));
            seat.client_says(piece);
            rest = more;
        }
        prop_assert!(!matches!(seat.end, Some(Then::ServerGone(_))));
        let mut server = seat.leave().expect("a server");
        let is_untouched = seat.to_server.is_empty();
        let fate = unpaired::left(&mut server, &policy, &mut Out::default());
        prop_assert!(fate == Fate::Close || server.is_shareable());
        prop_assert!(!is_untouched || fate == Fate::Clean);
    }

    #[test]
    fn a_client_alone_that_lies_is_heard_no_further(lies in noise()) {
        let mut seat = Seat::new(1, &Policy::default(), &Arc::default(), parameters(&[]));
        let progress = seat.link.on_client_alone(&lies);
        prop_assert!(progress.consumed <= lies.len());
        let mut out = Out::default();
        let consumed = seat.link.cancel_waiting(&lies, &mut out);
        prop_assert!(consumed <= lies.len());
        prop_assert_eq!(consumed > 0, !out.to_client.is_empty());
    }
}
