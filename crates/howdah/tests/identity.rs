//! Every client gets its own answers: queries carry who asked and the how-manieth it is, and so must the answers.
//!
//! Clients are killed at random meanwhile, in the middle of whatever they do. Row R6 of the tests' plan.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use std::sync::atomic::{AtomicUsize, Ordering};

use oracle::{TRANSACTION, USER, has_full_size, pooler};
use testkit::message::{self, bind, execute, flush, parse, query, rows, sync};
use testkit::{Howdah, Raw, Version};

/// A cheap source of numbers, different in each client; a seed repeats a client's doings.
struct Numbers(u64);

impl Numbers {
    fn of(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A client that knows what it has asked.
struct Client {
    raw: Raw,
    number: u64,
    asked: u64,
    numbers: Numbers,
}

impl Client {
    fn new(howdah: &Howdah, number: u64) -> Client {
        let raw = howdah.session(USER, TRANSACTION);
        Client { raw, number, asked: 0, numbers: Numbers::of(number) }
    }

    /// What the next answer must say.
    fn next_mark(&mut self) -> String {
        self.asked += 1;
        format!("{}:{}", self.number, self.asked)
    }

    #[track_caller]
    fn expect(&mut self, marks: &[String]) {
        let messages = self.raw.until_ready();
        let answers: Vec<String> = rows(&messages).into_iter().filter_map(|mut row| row.remove(0)).collect();
        assert_eq!(answers, marks, "{}", testkit::letters(&messages));
    }

    /// Asks in one of several ways; returns how many queries that were.
    fn ask(&mut self) -> usize {
        let mark = self.next_mark();
        match self.numbers.below(8) {
            0..3 => {
                self.raw.send(query(&format!("select '{mark}'")));
                self.expect(&[mark]);
                1
            }
            3 => {
                let size = 1 + self.numbers.below(20_000);
                self.raw.send(query(&format!("select '{mark}', repeat('x', {size})")));
                self.expect(&[mark]);
                1
            }
            4 => {
                self.raw.send(message::all(&[
                    parse("", "select $1", &[25]),
                    bind("", "", &[Some(&mark)]),
                    execute("", 0),
                    sync(),
                ]));
                self.expect(&[mark]);
                1
            }
            5 => self.ask_by_name(mark),
            6 => {
                let second = self.next_mark();
                self.raw.send(query("begin"));
                self.expect(&[]);
                self.raw.send(query(&format!("select '{mark}'; select '{second}'")));
                self.expect(&[mark, second]);
                self.raw.send(query(if self.numbers.below(2) == 0 { "commit" } else { "rollback" }));
                self.expect(&[]);
                4
            }
            _ => self.ask_in_a_row(mark),
        }
    }

    fn ask_by_name(&mut self, mark: String) -> usize {
        let name = format!("s{}", self.numbers.below(3));
        let text = format!("select $1 /* {} */", self.numbers.below(5));
        self.raw.send(message::all(&[
            message::close_statement(&name),
            parse(&name, &text, &[25]),
            sync(),
            bind("", &name, &[Some(&mark)]),
            execute("", 0),
            sync(),
        ]));
        self.expect(&[]);
        self.expect(&[mark]);
        1
    }

    /// A pipeline of several batches, one of which may fail.
    fn ask_in_a_row(&mut self, first: String) -> usize {
        let marks = [first, self.next_mark(), self.next_mark(), self.next_mark()];
        let fails = self.numbers.below(6) as usize;
        for (at, mark) in marks.iter().enumerate() {
            let text = if at == fails { "select 1/0".to_owned() } else { format!("select '{mark}'") };
            self.raw.send(message::all(&[parse("", &text, &[]), bind("", "", &[]), execute("", 0), sync()]));
        }
        for (at, mark) in marks.into_iter().enumerate() {
            self.expect(if at == fails { &[] } else { std::slice::from_ref(&mark) });
        }
        4
    }

    /// Leaves in the middle of something.
    fn vanish(mut self) {
        let mark = self.next_mark();
        let half = match self.numbers.below(6) {
            0 => query(&format!("select '{mark}'")),
            1 => query("begin"),
            2 => query(&format!("select '{mark}' from generate_series(1, 10000)")),
            3 => message::all(&[
                parse("", &format!("select '{mark}'"), &[]),
                bind("", "", &[]),
                execute("", 0),
            ]),
            4 => message::all(&[parse("", &format!("select '{mark}'"), &[]), flush()]),
            _ => query(&format!("select '{mark}'"))[..9].to_vec(),
        };
        self.raw.send(half);
        match self.numbers.below(3) {
            0 => self.raw.reset(),
            1 => self.raw.close(),
            _ => drop(self.raw),
        }
    }
}

/// `clients` threads ask until `wanted` queries are answered; about every fortieth time one of them vanishes and
/// another takes its place.
#[track_caller]
fn check(workers: usize, size: usize, clients: u64, wanted: usize) {
    let howdah = pooler(Version::wanted())
        .setting("default_pool_size", &size.to_string())
        .setting("workers", &workers.to_string())
        .setting("max_prepared_statements", "4")
        .start();
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for place in 0..clients {
            let (howdah, answered) = (&howdah, &answered);
            scope.spawn(move || {
                let mut client = Client::new(howdah, place);
                while answered.load(Ordering::Relaxed) < wanted {
                    answered.fetch_add(client.ask(), Ordering::Relaxed);
                    if client.numbers.below(40) == 0 {
                        let number = client.number + clients;
                        client.vanish();
                        client = Client::new(howdah, number);
                    }
                }
            });
        }
    });
    has_full_size(&howdah, TRANSACTION, size);
}

#[test]
fn one_worker_gives_everybody_their_own_answers() {
    check(1, 3, 24, 30_000);
}

#[test]
fn four_workers_give_everybody_their_own_answers() {
    check(4, 5, 32, 30_000);
}
