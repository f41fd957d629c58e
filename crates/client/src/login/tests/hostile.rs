//! Bytes that are wrong, mutated, or cut at any place.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// Every method with its right answers, each message apart.
fn scripts() -> Vec<(fn() -> Challenge, Vec<Vec<u8>>)> {
    let [first, last] = sasl(PASSWORD, stored_exchange(None), None);
    vec![
        (|| Challenge::Pass, vec![hello()]),
        (|| Challenge::Plain(Expected::stored(clear())), vec![hello(), password(PASSWORD)]),
        (|| Challenge::Md5(Expected::stored(clear()), SALT), vec![hello(), md5_answer(PASSWORD)]),
        (|| Challenge::Scram(stored_exchange(None)), vec![hello(), first, last]),
    ]
}

fn check_message(message: &[u8], refusal: &str) {
    for (challenge, segments) in scripts().into_iter().skip(1) {
        for before in 1..segments.len() {
            let segments = segments[..before].iter().map(Vec::as_slice).chain([message]);
            let story = hear(Transport::Plain, &challenge, segments).story();
            assert!(story.ends_with(refusal), "{}: {story}", message.escape_ascii());
        }
    }
}

#[test]
fn only_password_messages_of_sound_length_are_taken_before_login() {
    for length in [-5_i32, 0, 3, i32::MIN] {
        let header = [&b"p"[..], &length.to_be_bytes()].concat();
        check_message(&header, "refused 08P01 bad packet header: invalid message length");
    }
    for length in [65_540, 1_000_000, i32::MAX] {
        let header = [&b"p"[..], &length.to_be_bytes()].concat();
        let told = "refused 08P01 bad packet header: message is longer than the 65535 bytes allowed";
        check_message(&header, told);
    }
    for tag in [0, b'Q', b'P', b'S', b'G', b'R', 0xff] {
        let told = format!("refused 08P01 expected password response, got message type {tag}");
        check_message(&[tag, 0, 0, 0, 4], &told);
        check_message(&[tag, 0xff, 0xff, 0xff, 0xff], &told);
    }
}

#[test]
fn terminate_closes_without_a_word() {
    check_message(&encode::TERMINATE, "Terminated");
    check_message(b"X\0\0\0\x03", "refused 08P01 bad packet header: invalid message length");
}

#[test]
fn a_password_without_one_zero_at_its_end_is_refused() {
    let told = "refused 08P01 invalid password packet size";
    for (challenge, segments) in scripts().into_iter().skip(1).take(2) {
        for body in [&b""[..], b"word", b"wo\0rd\0", b"\0\0"] {
            let mut message = Vec::new();
            encode::sasl_response(&mut message, body);
            let story = hear(Transport::Plain, &challenge, [&segments[0][..], &message]).story();
            assert!(story.ends_with(told), "{}: {story}", body.escape_ascii());
        }
    }
}

#[test]
fn the_inner_length_of_a_sasl_response_must_fit() {
    let data = b"n,,n=,r=abcdefgh";
    for length in [-1, 0, data.len() as i32 + 1, i32::MAX, i32::MIN] {
        let mut message = Vec::new();
        let body = [&b"SCRAM-SHA-256\0"[..], &length.to_be_bytes(), data].concat();
        encode::sasl_response(&mut message, &body);
        let challenge = || Challenge::Scram(stored_exchange(None));
        let story = hear(Transport::Plain, &challenge, [&hello()[..], &message]).story();
        assert_eq!(story, "who, R10, refused 08P01 malformed SASLInitialResponse message", "{length}");
    }
}

#[test]
fn the_longest_password_is_taken_whole() {
    let long = vec![b'x'; 65_534];
    let challenge = || Challenge::Plain(Expected::stored(clear()));
    let message = password(&long);
    assert_eq!(message.len(), super::super::INPUT_BYTES_MAX);
    let heard = hear(Transport::Plain, &challenge, [&hello()[..], &message]);
    assert!(heard.story().contains("28P01") && heard.rest.is_empty());
}

/// What a careless or hostile sender does to bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Set(Index, u8),
    Flip(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Repeat(Index),
    Length(i32),
}

impl Mutation {
    fn apply(&self, message: &mut Vec<u8>, length_at: usize) {
        let size = message.len();
        if size == 0 {
            return;
        }
        match self {
            Mutation::Set(at, byte) => message[at.index(size)] = *byte,
            Mutation::Flip(at, bit) => message[at.index(size)] ^= 1 << (bit % 8),
            Mutation::Insert(at, byte) => message.insert(at.index(size), *byte),
            Mutation::Remove(at) => drop(message.remove(at.index(size))),
            Mutation::Cut(at) => message.truncate(at.index(size).max(1)),
            Mutation::Repeat(at) => message.extend_from_within(at.index(size)..),
            Mutation::Length(length) => {
                let word = length.to_be_bytes();
                message.iter_mut().skip(length_at).zip(word).for_each(|(byte, new)| *byte = new);
            }
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (at(), any::<u8>()).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        at().prop_map(Mutation::Remove),
        at().prop_map(Mutation::Cut),
        at().prop_map(Mutation::Repeat),
        prop_oneof![-8..70_000, any::<i32>()].prop_map(Mutation::Length),
    ]
}

fn check_mutations(script: usize, message: usize) {
    let (challenge, segments) = scripts().swap_remove(script);
    let strategy = proptest::collection::vec(mutation(), 1..4);
    // A failing case is printed whole; it becomes a case of a table.
    let config = ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&strategy, |mutations| {
        let mut segments = segments.clone();
        let original = segments[message].clone();
        let length_at = usize::from(message > 0);
        for mutation in &mutations {
            mutation.apply(&mut segments[message], length_at);
        }
        let heard = hear(Transport::Plain, &challenge, segments.iter().map(Vec::as_slice));
        let let_in = heard.words.last().is_some_and(|word| word.starts_with("in"));
        // In an answer every byte counts; a startup message may well be another sound one.
        let intact = message == 0 || segments[message].starts_with(&original);
        prop_assert!(!let_in || intact, "{}", heard.story());
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("script {script}, message {message}: {failure}"));
}

#[test]
fn mutated_startup_messages_never_panic() {
    check_mutations(0, 0);
}

#[test]
fn mutated_passwords_let_nobody_in() {
    check_mutations(1, 1);
}

#[test]
fn mutated_md5_answers_let_nobody_in() {
    check_mutations(2, 1);
}

#[test]
fn mutated_sasl_messages_let_nobody_in() {
    check_mutations(3, 1);
    check_mutations(3, 2);
}

#[test]
fn mutated_requests_never_panic() {
    let mut cancel = Vec::new();
    encode::cancel_request(&mut cancel, 7, &[b'k'; 32]);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (proptest::collection::vec(mutation(), 1..4), any::<bool>());
    let outcome = runner.run(&strategy, |(mutations, tls)| {
        let mut message = if tls { encode::SSL_REQUEST.to_vec() } else { cancel.clone() };
        mutations.iter().for_each(|mutation| mutation.apply(&mut message, 0));
        hear(Transport::Plain, &|| Challenge::Pass, [&message[..]]);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_place_where_bytes_are_cut_changes_nothing(
        script in 0_usize..4,
        cuts in proptest::collection::vec(any::<Index>(), 0..12),
        tail in proptest::collection::vec(any::<u8>(), 0..20),
        wrong in any::<Option<(Index, u8)>>(),
    ) {
        let (challenge, segments) = scripts().swap_remove(script);
        let mut bytes = segments.concat();
        bytes.extend_from_slice(&tail);
        if let Some((at, byte)) = wrong {
            // Not in the code of the first packet: bytes behind a request for encryption count by when they come.
            let place = 8 + at.index(bytes.len() - 8);
            bytes[place] = byte;
        }
        let whole = hear(Transport::Plain, &challenge, [&bytes[..]]);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces = hear(Transport::Plain, &challenge, places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
        prop_assert_eq!(&whole.words, &pieces.words);
        prop_assert_eq!(&whole.sent, &pieces.sent);
        let let_in = whole.words.last().is_some_and(|word| word.starts_with("in"));
        prop_assert!(!let_in || whole.rest == pieces.rest);
    }
}
