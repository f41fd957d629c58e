//! The console: its grammar, and a whole session.

use console::{Ask, Reply, Role, Session};
use wire::encode;

use super::cuts;
use crate::corpus;

pub(super) fn grammar(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = format!("{:?}", console::grammar::parse(&text));
}

pub(super) fn corpus() -> Vec<Vec<u8>> {
    let mut inputs = corpus::client_messages();
    for command in corpus::commands() {
        let mut bytes = Vec::new();
        encode::query(&mut bytes, &command);
        encode::parse(&mut bytes, b"", &[&command[..], &[0, 0, 0]].concat());
        encode::bind_text(&mut bytes, b"", b"", &[]);
        encode::target(&mut bytes, b'D', b'P', b"");
        encode::execute(&mut bytes, b"");
        encode::sync(&mut bytes);
        inputs.push(bytes);
    }
    inputs
}

pub(super) fn session(input: &[u8]) {
    let whole = converse(input, &[input.len()]);
    let cut = converse(input, &cuts(input));
    assert_eq!(whole, cut, "where a stream is cut makes no difference");
}

fn converse(input: &[u8], ends: &[usize]) -> (Vec<u8>, Vec<Ask>) {
    let mut session = Session::new(Role::Admin);
    let (mut out, mut asks) = (Vec::new(), Vec::new());
    let mut at = 0;
    for &end in ends {
        loop {
            let progress = session.on_bytes(&input[at..end], &mut out);
            assert!(progress.consumed <= end - at, "no more is consumed than there was");
            at += progress.consumed;
            let Some(ask) = progress.ask else { break };
            asks.push(ask.clone());
            match ask {
                Ask::Close => return (out, asks),
                Ask::Execute(_) => session.answer(Reply::Done, &mut out),
            }
        }
    }
    (out, asks)
}
