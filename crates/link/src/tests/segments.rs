//! However the bytes of either side are cut, the same bytes come out.

use std::sync::Arc;

use proptest::prelude::*;

use crate::Policy;

use super::harness::{Seat, parameters, server};
use super::postgres::Postgres;
use super::random::{Lots, waiting_script};
use super::words::{client_bytes, client_words};

/// What each side is sent after each batch and each answer, if every read brings as much as `cut` says. All that
/// may differ are the numbers of statements: one that nobody holds for a moment has a new number after it.
fn transcript(script: &[String], mut cut: impl FnMut(usize) -> usize) -> Vec<(String, Vec<u8>)> {
    let mut postgres = Postgres::new(&[("app", "")]);
    let nothing = parameters(&[("app", "", true)]);
    let policy = Policy { prepared_max: 2, ..Policy::default() };
    let mut seat = Seat::new(1, &policy, &Arc::default(), Arc::clone(&nothing));
    seat.grant(server(1, nothing), false);
    let mut sent = Vec::new();
    for batch in script {
        let batch = client_bytes(batch);
        pieces(&batch, &mut cut, |piece| seat.client_says(piece));
        // The link may ask for more once it is answered.
        while !seat.to_server.is_empty() {
            let to_server = std::mem::take(&mut seat.to_server);
            sent.push((without_numbers(&client_words(&to_server)), std::mem::take(&mut seat.to_client)));
            postgres.feed(&to_server);
            pieces(&std::mem::take(&mut postgres.output), &mut cut, |piece| seat.server_says(piece));
        }
        sent.push((String::new(), std::mem::take(&mut seat.to_client)));
        assert_eq!(seat.end, None);
    }
    sent
}

fn without_numbers(words: &str) -> String {
    words
        .split('#')
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join("#")
}

fn pieces(mut bytes: &[u8], mut cut: impl FnMut(usize) -> usize, mut give: impl FnMut(&[u8])) {
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(cut(bytes.len()).clamp(1, bytes.len()));
        give(piece);
        bytes = rest;
    }
}

/// Without Syncs that a failing COPY may have eaten: whether the link must ask, depends on what it has read.
fn certain(script: Vec<String>) -> Vec<String> {
    let certain = |batch: String| batch.replace("S d(", "d(").replace("S f(", "f(");
    script.into_iter().map(certain).collect()
}

/// Some words grow over the size up to which a message is forwarded only when whole.
fn grown(script: &[String]) -> Vec<String> {
    let long = "7".repeat(20_000);
    script
        .iter()
        .map(|batch| {
            batch.replace("select 3", &format!("select {long}")).replace("d(1)", &format!("d({long})"))
        })
        .collect()
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_bytes(script in waiting_script(), seed: u64) {
        let script = certain(script);
        let whole = transcript(&script, |length| length);
        prop_assert!(transcript(&script, |_| 1) == whole);
        let mut lots = Lots(seed);
        prop_assert!(transcript(&script, |length| 1 + lots.below(length)) == whole);
    }

    #[test]
    fn any_cut_of_large_messages_gives_the_same_bytes(script in waiting_script(), seed: u64) {
        let script = grown(&certain(script));
        let whole = transcript(&script, |length| length);
        let mut lots = Lots(seed);
        let cut = |length| if lots.below(2) == 0 { 1 + lots.below(length) } else { 1 + lots.below(40) };
        prop_assert!(transcript(&script, cut) == whole);
    }
}
