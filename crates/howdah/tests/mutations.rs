//! Ten thousand mutilated messages over real connections: each costs its sender what it deserves, and nobody else
//! anything.
//!
//! The seed of a run is printed; `HOWDAH_TEST_SEED` repeats it.
#![allow(clippy::disallowed_methods)] // tests run threads and clocks

mod oracle;

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oracle::{LIMIT, TRANSACTION, USER, fresh_database, has_full_size, pooler_to};
use testkit::message::{
    self, bind, close_portal, close_statement, copy_data, copy_done, copy_fail, describe_portal,
    describe_statement, execute, flush, function_call, parse, query, rows, startup, sync, terminate,
};
use testkit::{Howdah, Raw, Version, eventually};

const WANTED: usize = 10_000;
/// Enough for a slow machine to do a good part of them.
const TIME_MAX: Duration = Duration::from_secs(40);
const POOL_SIZE: usize = 4;

/// A cheap source of numbers; the same seed gives the same ones.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// What a client sends after its login, message by message. Nothing in it can do harm, whatever a byte becomes.
fn scripts() -> Vec<Vec<Vec<u8>>> {
    let startup =
        startup((3, 0), &[("user", USER), ("database", TRANSACTION), ("application_name", "mutant")]);
    let after = |messages: Vec<Vec<u8>>| [vec![startup.clone()], messages].concat();
    vec![
        after(vec![query("select 1"), query("begin"), query("select 2"), query("commit"), terminate()]),
        after(vec![
            parse("s", "select $1::text, $2::int", &[25, 23]),
            describe_statement("s"),
            bind("p", "s", &[Some("text"), None]),
            describe_portal("p"),
            execute("p", 1),
            close_portal("p"),
            close_statement("s"),
            flush(),
            sync(),
            terminate(),
        ]),
        after(vec![
            query("begin; create temp table t (v text) on commit drop"),
            query("copy t from stdin"),
            copy_data(b"line\n"),
            copy_done(),
            query("copy t to stdout"),
            query("rollback"),
        ]),
        after(vec![
            query("begin; create temp table t (v text) on commit drop; copy t from stdin"),
            copy_data(b"line\n"),
            copy_fail("no"),
            sync(),
            query("rollback"),
        ]),
        after(vec![
            function_call(177, &[Some("2"), Some("3")]),
            parse("", "select 1", &[]),
            bind("", "", &[]),
            sync(),
        ]),
        vec![message::ssl_request(), startup.clone(), query("select 1")],
        vec![message::cancel_request(12_345, b"none of mine")],
    ]
}

/// Changes the bytes of one message: one bit, one byte, a cut, an insertion, or its length.
fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    match numbers.below(8) {
        0 => bytes[at] ^= 1 << numbers.below(8),
        1 => bytes[at] = numbers.below(256) as u8,
        2 => bytes[at] = [0, 0xff, 0x7f, 0x80][numbers.below(4)],
        3 => bytes.truncate(at),
        4 => bytes.insert(at, numbers.below(256) as u8),
        5 => drop(bytes.remove(at)),
        6 => {
            let length = [0, 1, 3, 4, 5, 10_000, 1 << 20, i32::MAX, -1, i32::MIN][numbers.below(10)];
            let from = usize::from(bytes[0] != 0).min(bytes.len().saturating_sub(4));
            let until = (from + 4).min(bytes.len());
            bytes[from..until].copy_from_slice(&length.to_be_bytes()[..until - from]);
        }
        _ => {
            let again = bytes.clone();
            bytes.extend(again);
        }
    }
}

/// Sends one mutilated script and waits for the end of the connection.
fn send_mutant(howdah: &Howdah, scripts: &[Vec<Vec<u8>>], numbers: &mut Numbers) {
    let mut messages = scripts[numbers.below(scripts.len())].clone();
    // The startup packet has its turn less often: what follows it would never be seen.
    let first = usize::from(messages.len() > 1 && numbers.below(10) > 0);
    let victim = first + numbers.below(messages.len() - first);
    mutate(&mut messages[victim], numbers);
    let mut raw = Raw::connect(howdah.port());
    // It may be closed while we are still writing.
    let _ = raw.try_send(message::all(&messages));
    raw.half_close();
    if !ends(raw) {
        panic!("left open after {}", message::all(&messages).escape_ascii());
    }
}

/// Reads to the end, whatever the bytes mean. False if it does not come.
fn ends(raw: Raw) -> bool {
    let mut socket = raw.stream().tcp().expect("a TCP connection");
    socket.set_read_timeout(Some(LIMIT)).expect("an open socket");
    let mut buffer = [0; 4096];
    loop {
        match std::io::Read::read(&mut socket, &mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

/// Does right things all the time, and must get right answers.
fn innocent(howdah: &Howdah, number: usize, over: &AtomicBool) -> usize {
    let mut raw = howdah.session(USER, TRANSACTION);
    assert_eq!(raw.ask(message::all(&[parse("mine", "select $1::text", &[25]), sync()])), "1 ZI");
    let mut asked = 0;
    while !over.load(Ordering::Relaxed) {
        asked += 1;
        let mark = format!("{number}:{asked}");
        raw.send(message::all(&[bind("", "mine", &[Some(&mark)]), execute("", 0), sync()]));
        assert_eq!(rows(&raw.until_ready()), [[Some(mark.clone())]]);
        raw.send(query(&format!("begin; select '{mark}'; commit")));
        let messages = raw.until_ready();
        assert_eq!(testkit::letters(&messages), "C(BEGIN) T D C(SELECT 1) C(COMMIT) ZI");
        assert_eq!(rows(&messages), [[Some(mark)]]);
    }
    asked
}

#[test]
fn mutilated_messages_hurt_only_their_senders() {
    let seed =
        std::env::var("HOWDAH_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_121_u64);
    println!("HOWDAH_TEST_SEED={seed}");
    let server = fresh_database(Version::wanted(), "mutations");
    let howdah = pooler_to(&server.connection("mutations"))
        .setting("default_pool_size", &POOL_SIZE.to_string())
        .setting("log_connections", "0")
        .setting("log_disconnections", "0")
        .setting("log_pooler_errors", "0")
        .start();
    let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (howdah, over, sent) = (&howdah, &over, &sent);
        let senders: Vec<_> = (1..=6)
            .map(|number: u64| {
                scope.spawn(move || {
                    let scripts = scripts();
                    let mut numbers =
                        Numbers(seed.wrapping_mul(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                    while sent.fetch_add(1, Ordering::Relaxed) < WANTED && start.elapsed() < TIME_MAX {
                        send_mutant(howdah, &scripts, &mut numbers);
                    }
                })
            })
            .collect();
        let innocents: Vec<_> =
            (0..2).map(|number| scope.spawn(move || innocent(howdah, number, over))).collect();
        let outcomes: Vec<_> = senders.into_iter().map(|sender| sender.join().is_ok()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(|&fine| fine), "a sender failed; see above");
        for innocent in innocents {
            assert!(innocent.join().expect("an innocent client was hurt") > 0);
        }
    });
    has_full_size(&howdah, TRANSACTION, POOL_SIZE);
    eventually(LIMIT, || server.sessions_in("mutations") <= POOL_SIZE);
    assert!(!howdah.log().contains("panicked"), "{}", howdah.log());
}
