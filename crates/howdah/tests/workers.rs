//! Workers that rest while others can do their work, and come back when there is more: nobody loses an answer by it,
//! and nobody gets another's.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use std::sync::atomic::{AtomicBool, Ordering};

use oracle::{LIMIT, TRANSACTION, USER, has_full_size, pooler};
use testkit::wait::holds_within;
use testkit::{Howdah, Version, eventually};

const CLIENTS: usize = 24;
const POOL_SIZE: usize = 6;

/// How often the log says so.
fn count(howdah: &Howdah, words: &str) -> usize {
    howdah.log().matches(words).count()
}

/// Clients that ask without a pause, each for what no other asks for, until that is so.
fn ask_until(howdah: &Howdah, is_over: impl Fn() -> bool) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let over = &over;
            scope.spawn(move || {
                let mut session = howdah.session(USER, TRANSACTION);
                for asked in 0.. {
                    let mark = format!("{number}:{asked}");
                    assert_eq!(session.value(&format!("select '{mark}'")), mark);
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let came = holds_within(LIMIT, &is_over);
        over.store(true, Ordering::Relaxed);
        assert!(came, "what was waited for did not come");
    });
}

/// Clients that ask one after the other, so that every poll has something to tell, until that is so.
fn trickle_until(howdah: &Howdah, is_over: impl Fn() -> bool) {
    let mut sessions: Vec<_> = (0..CLIENTS).map(|_| howdah.session(USER, TRANSACTION)).collect();
    eventually(LIMIT, || {
        for (number, session) in sessions.iter_mut().enumerate() {
            assert_eq!(session.value(&format!("select {number}")), number.to_string());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        is_over()
    });
}

#[test]
fn workers_rest_and_come_back_and_nobody_loses_an_answer() {
    let howdah = pooler(Version::wanted())
        .setting("default_pool_size", &POOL_SIZE.to_string())
        .setting("workers", "3")
        .setting("workers_awake", "needed")
        .setting("verbose", "1")
        .start();
    howdah.wait_for_log("worker 1 rests");
    howdah.wait_for_log("worker 2 rests");
    for _ in 0..2 {
        let back = count(&howdah, " comes back");
        ask_until(&howdah, || count(&howdah, " comes back") > back);
        trickle_until(&howdah, || count(&howdah, " rests") == count(&howdah, " comes back") + 2);
    }
    has_full_size(&howdah, TRANSACTION, POOL_SIZE);
}

#[test]
fn the_console_hears_of_clients_and_servers_of_workers_that_rest() {
    let howdah = pooler(Version::wanted())
        .setting("default_pool_size", &POOL_SIZE.to_string())
        .setting("workers", "4")
        .setting("workers_awake", "needed")
        .start();
    let mut sessions: Vec<_> = (0..CLIENTS).map(|_| howdah.session(USER, TRANSACTION)).collect();
    sessions.iter_mut().for_each(|session| assert_eq!(session.value("select 1"), "1"));
    howdah.admin("kill");
    let closed = sessions.iter_mut().map(|session| session.expect_closed());
    assert!(closed.into_iter().all(|last| last.contains("57P01") || last.is_empty()));
}
