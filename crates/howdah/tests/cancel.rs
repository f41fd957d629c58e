//! Cancel requests: they stop the query of the client that asks, at the moment it asks, and nothing else.
//!
//! Rows P18 to P21, P36 and S22 to S25 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads and clocks

mod oracle;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oracle::{LIMIT, SESSION, TRANSACTION, USER, has_full_size, pooler, until_waiting};
use testkit::message::{self, bind, execute, parse, query, sync};
use testkit::{Address, CancelKey, Howdah, Login, Postgres, Raw, Version, eventually, send_cancel};

const SLEEP: &str = "select pg_sleep(60)";

/// How many sessions of the server run such a query now.
fn running(server: &Postgres, text: &str) -> usize {
    let sql = format!(
        "select count(*) from pg_stat_activity where state = 'active' and query = '{text}' \
         and pid <> pg_backend_pid()"
    );
    server.session(USER).value(&sql).parse().expect("a count")
}

fn until_running(text: &str) {
    let server = Postgres::shared(Version::wanted());
    eventually(LIMIT, || running(server, text) == 1);
}

#[test]
fn cancel_stops_the_query_of_the_client_that_asks() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "2").start();
    for entry in [TRANSACTION, SESSION] {
        let mut victim = howdah.session(USER, entry);
        let mut other = howdah.session(USER, entry);
        let mine = format!("{SLEEP} /* {entry} mine */");
        victim.send(query(&mine));
        other.send(query("select 'other' from pg_sleep(0.2)"));
        until_running(&mine);
        victim.cancel();
        let answer = victim.answers(1);
        assert!(message::is_canceled(&answer, 'I'), "{answer}");
        assert_eq!(victim.value("select 1"), "1");
        assert_eq!(other.answers(1), "T D C(SELECT 1) ZI");
    }
    has_full_size(&howdah, TRANSACTION, 2);
}

#[test]
fn cancel_inside_a_transaction_fails_it_and_keeps_the_server() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, TRANSACTION);
    assert_eq!(client.ask(query("begin")), "C(BEGIN) ZT");
    let pid = client.value("select pg_backend_pid()");
    let text = format!("{SLEEP} /* in a transaction */");
    client.send(message::all(&[parse("", &text, &[]), bind("", "", &[]), execute("", 0), sync()]));
    until_running(&text);
    client.cancel();
    assert_eq!(client.answers(1), "1 2 E(57014) ZE");
    assert_eq!(client.ask(query("rollback")), "C(ROLLBACK) ZI");
    assert_eq!(client.value("select pg_backend_pid()"), pid);
}

// P18

#[test]
fn waiting_client_is_answered_without_a_server() {
    let howdah = pooler(Version::wanted()).start();
    let mut holder = howdah.session(USER, TRANSACTION);
    let mut waiting = howdah.session(USER, TRANSACTION);
    let mut behind = howdah.session(USER, TRANSACTION);
    assert_eq!(holder.ask(query("begin")), "C(BEGIN) ZT");
    let pid = holder.value("select pg_backend_pid()");
    let batch = message::all(&[parse("", "select 1", &[]), bind("", "", &[]), execute("", 0), sync()]);
    for bytes in [query("select 1"), batch] {
        waiting.send(&bytes);
        until_waiting(&howdah, TRANSACTION, 1);
        waiting.cancel();
        assert_eq!(waiting.answers(1), "E(57014) ZI");
        until_waiting(&howdah, TRANSACTION, 0);
    }
    // Who waits behind it does not lose its turn.
    waiting.send(query("select 1"));
    until_waiting(&howdah, TRANSACTION, 1);
    behind.send(query("select 'behind'"));
    until_waiting(&howdah, TRANSACTION, 2);
    waiting.cancel();
    assert_eq!(waiting.answers(1), "E(57014) ZI");
    assert_eq!(holder.value("select pg_backend_pid()"), pid);
    assert_eq!(holder.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(message::rows(&behind.until_ready()), [[Some("behind".to_owned())]]);
    assert_eq!(waiting.value("select pg_backend_pid()"), pid);
}

// P19 and S25

#[test]
fn idle_client_hears_nothing_of_its_cancel() {
    let howdah = pooler(Version::wanted()).start();
    for entry in [TRANSACTION, SESSION] {
        let mut client = howdah.session(USER, entry);
        for _ in 0..5 {
            client.cancel();
            assert_eq!(client.value("select 'mine'"), "mine");
        }
        client.close();
    }
    let mut client = howdah.session(USER, TRANSACTION);
    assert_eq!(client.ask(query("begin")), "C(BEGIN) ZT");
    client.cancel();
    assert_eq!(client.ask(query("select 1")), "T D C(SELECT 1) ZT");
    assert_eq!(client.ask(query("commit")), "C(COMMIT) ZI");
}

#[test]
fn cancel_of_one_that_has_just_finished_does_not_hit_the_next() {
    let howdah = pooler(Version::wanted()).start();
    let mut first = howdah.session(USER, TRANSACTION);
    let mut second = howdah.session(USER, TRANSACTION);
    for _ in 0..100 {
        assert_eq!(first.value("select 1"), "1");
        second.send(query("select 'second' from pg_sleep(0.001)"));
        first.cancel();
        assert_eq!(second.answers(1), "T D C(SELECT 1) ZI");
    }
}

// S23 and P36

#[test]
fn wrong_keys_do_nothing_and_are_closed() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "2").start();
    let mut victim = howdah.session(USER, TRANSACTION);
    let text = format!("{SLEEP} /* wrong keys */");
    victim.send(query(&text));
    until_running(&text);
    let address = Address::from(howdah.port());
    let right = victim.key.clone().expect("logged in");
    let mut wrong = Vec::new();
    for bit in 0..32 {
        let mut secret = right.secret.clone();
        secret[bit / 8] ^= 1 << (bit % 8);
        wrong.push(CancelKey { secret, ..right.clone() });
        wrong.push(CancelKey { pid: right.pid ^ (1 << bit), ..right.clone() });
    }
    wrong.push(CancelKey { pid: 0, secret: vec![0; 4] });
    wrong.push(CancelKey { secret: Vec::new(), ..right.clone() });
    wrong.push(CancelKey { secret: vec![7; 256], ..right.clone() });
    wrong.push(CancelKey { secret: [right.secret.as_slice(), &[0]].concat(), ..right.clone() });
    for key in &wrong {
        send_cancel(&address, key);
    }
    assert_eq!(running(Postgres::shared(Version::wanted()), &text), 1);
    send_cancel(&address, &right);
    let answer = victim.answers(1);
    assert!(message::is_canceled(&answer, 'I'), "{answer}");
}

#[test]
fn keys_differ_and_are_not_the_servers() {
    let howdah = pooler(Version::V18).start();
    let mut keys: Vec<(u32, Vec<u8>)> = Vec::new();
    for minor in [0, 2] {
        for _ in 0..50 {
            let mut raw = howdah.login(&Login::new(USER, TRANSACTION).protocol(3, minor));
            let key = raw.key.clone().expect("a key");
            assert!(key.secret.len() == if minor == 0 { 4 } else { key.secret.len() });
            assert!((4..=32).contains(&key.secret.len()), "{} bytes", key.secret.len());
            assert_ne!(raw.value("select pg_backend_pid()"), key.pid.to_string());
            keys.push((key.pid, key.secret));
        }
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 100);
}

#[test]
fn long_key_cancels_too() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.login(&Login::new(USER, TRANSACTION).protocol(3, 2));
    let key = client.key.clone().expect("a key");
    assert_eq!(key.secret.len(), 32);
    let text = format!("{SLEEP} /* long key */");
    client.send(query(&text));
    until_running(&text);
    let cut = CancelKey { secret: key.secret[..4].to_vec(), ..key.clone() };
    send_cancel(&Address::from(howdah.port()), &cut);
    assert_eq!(running(Postgres::shared(Version::wanted()), &text), 1);
    client.cancel();
    let answer = client.answers(1);
    assert!(message::is_canceled(&answer, 'I'), "{answer}");
}

// P20 and P21

/// Counted by all clients of a race.
#[derive(Default)]
struct Race {
    cancels: AtomicUsize,
    hits_waiting: AtomicUsize,
    hits_running: AtomicUsize,
    foreign: AtomicUsize,
    over: AtomicBool,
}

/// Ends the race when a victim does, however it does: a failed one must not leave the others running.
struct EndsRace<'a>(&'a Race);

impl Drop for EndsRace<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// A cheap source of numbers, different in each client.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A client whose settings differ from its neighbours', so that servers are prepared for it again and again.
fn racer(howdah: &Howdah, number: u64) -> (Raw, Numbers) {
    let name = format!("racer {}", number % 3);
    let raw = howdah.login(&Login::new(USER, TRANSACTION).parameter("application_name", &name));
    (raw, Numbers(0x9e37_79b9_7f4a_7c15 ^ (number + 1)))
}

/// Cancels its own queries, at any moment from before they are read until after they are answered: they take
/// up to `slowness` ms.
fn victim(howdah: &Howdah, race: &Race, number: u64, wanted: usize, slowness: u64) {
    let _end = EndsRace(race);
    let (mut raw, mut numbers) = racer(howdah, number);
    while race.cancels.fetch_add(1, Ordering::Relaxed) < wanted {
        raw.send(query(&format!("select {number} from pg_sleep(0.0{:02})", numbers.below(slowness))));
        let until = Instant::now() + Duration::from_micros(numbers.below(500 * slowness));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        raw.cancel();
        match raw.answers(1).as_str() {
            "E(57014) ZI" => drop(race.hits_waiting.fetch_add(1, Ordering::Relaxed)),
            "T E(57014) ZI" | "T D E(57014) ZI" => drop(race.hits_running.fetch_add(1, Ordering::Relaxed)),
            "T D C(SELECT 1) ZI" => {}
            other => panic!("{other}; seen before: {}", raw.seen()),
        }
    }
}

/// Never cancels anything: nothing of its own may be.
fn bystander(howdah: &Howdah, race: &Race, number: u64) {
    let (mut raw, mut numbers) = racer(howdah, number);
    while !race.over.load(Ordering::Relaxed) {
        let mine = format!("{number}-{}", numbers.below(1 << 40));
        raw.send(query(&format!("select '{mine}' from pg_sleep(0.000{})", numbers.below(9))));
        let messages = raw.until_ready();
        if testkit::letters(&messages) == "T D C(SELECT 1) ZI" {
            assert_eq!(message::rows(&messages), [[Some(mine)]]);
        } else {
            race.foreign.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Runs a race and returns it.
#[track_caller]
fn run_race(size: usize, workers: &str, clients: u64, cancels: usize, slowness: u64) -> Race {
    let howdah = pooler(Version::wanted())
        .setting("default_pool_size", &size.to_string())
        .setting("workers", workers)
        .start();
    let race = Race::default();
    std::thread::scope(|scope| {
        let (howdah, race) = (&howdah, &race);
        for number in 0..clients {
            if number % 4 == 0 {
                scope.spawn(move || victim(howdah, race, number, cancels, slowness));
            } else {
                scope.spawn(move || bystander(howdah, race, number));
            }
        }
    });
    assert_eq!(race.foreign.load(Ordering::Relaxed), 0, "queries of others were canceled");
    has_full_size(&howdah, TRANSACTION, size);
    race
}

#[test]
fn cancels_of_clients_that_mostly_wait_hit_nobody_else() {
    for (size, workers) in [(1, "1"), (4, "4")] {
        let race = run_race(size, workers, 64, 400, 4);
        assert!(race.hits_waiting.into_inner() > 0, "no cancel has hit anything: the race was none");
    }
}

#[test]
fn cancels_of_clients_that_mostly_run_hit_nobody_else() {
    for (size, workers) in [(1, "1"), (2, "2"), (4, "4")] {
        let race = run_race(size, workers, size as u64 + 4, 300, 16);
        assert!(race.hits_running.into_inner() > 0, "no cancel has hit anything: the race was none");
    }
}

// S24

#[test]
fn cancels_of_clients_that_are_gone_leave_nothing_open() {
    let howdah = pooler(Version::wanted()).start();
    let client = howdah.session(USER, TRANSACTION);
    let key = client.key.clone().expect("a key");
    client.close();
    let before = howdah.open_files();
    let mut open: Vec<Raw> = Vec::new();
    for _ in 0..200 {
        let mut raw = Raw::connect(howdah.port());
        raw.send(message::cancel_request(key.pid, &key.secret));
        open.push(raw);
    }
    open.iter_mut().for_each(|raw| drop(raw.expect_closed()));
    drop(open);
    eventually(LIMIT, || howdah.open_files() <= before);
}
