//! Clients that enter numbered rows while harm is done, and the proof: what was acknowledged is there once.
#![allow(dead_code)] // each file of tests uses a part of it

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use testkit::message::query;
use testkit::{Login, Raw, eventually};

/// How long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(60);

/// Who the clients are, and what they enter.
#[derive(Clone, Copy)]
pub enum Style {
    /// One statement in a message.
    Single,
    /// BEGIN, INSERT and COMMIT, each answered before the next.
    Block,
}

/// The clients' doings.
pub struct Ledger {
    over: AtomicBool,
    done: AtomicUsize,
    start: Instant,
    /// When somebody was acknowledged last, in microseconds since the start.
    told_at: AtomicU64,
    /// The longest time that nobody was.
    stall: AtomicU64,
    /// How many answers each client has had, good or bad.
    answers: Vec<AtomicUsize>,
    /// The longest that one of them took, in microseconds.
    longest: AtomicU64,
}

/// What one client knows of its rows: those that were acknowledged, those of which nobody knows, and how often
/// its connection was lost.
#[derive(Default)]
pub struct Account {
    pub told: Vec<usize>,
    pub unknown: Vec<usize>,
    pub lost: usize,
    pub errors: Vec<String>,
}

/// The table that they enter rows into.
pub const TABLE: &str = "create table entries (who int, turn int)";

/// The longest time between two transactions of pgbench, in seconds.
pub const PGBENCH_STALL: &str = "select max(gap)::numeric(8, 3) from (select extract(epoch from mtime - lag(mtime) over \
    (order by mtime)) as gap from pgbench_history) as gaps";

impl Ledger {
    fn new(clients: usize) -> Ledger {
        Ledger {
            over: AtomicBool::new(false),
            done: AtomicUsize::new(0),
            start: Instant::now(),
            told_at: AtomicU64::new(0),
            stall: AtomicU64::new(0),
            answers: (0..clients).map(|_| AtomicUsize::new(0)).collect(),
            longest: AtomicU64::new(0),
        }
    }

    /// Clients of these ports in turn enter rows while `harm` is done; each answers for itself.
    pub fn keep(
        (ports, login): (&[u16], &Login),
        (clients, style): (usize, Style),
        harm: impl FnOnce(&Ledger),
    ) -> (Vec<Account>, Ledger) {
        let ledger = Ledger::new(clients);
        let accounts = std::thread::scope(|scope| {
            let ledger = &ledger;
            let clients: Vec<_> = (0..clients)
                .map(|who| (who, ports[who % ports.len()]))
                .map(|(who, port)| scope.spawn(move || ledger.client((port, login), who, style)))
                .collect();
            let over = Over(&ledger.over);
            ledger.wait_for_more(300);
            ledger.stall.store(0, Ordering::SeqCst);
            ledger.longest.store(0, Ordering::SeqCst);
            harm(ledger);
            ledger.wait_for_more(300);
            drop(over);
            clients.into_iter().map(|client| client.join().expect("no panic")).collect()
        });
        (accounts, ledger)
    }

    /// The longest time since the harm began that nobody was acknowledged anything.
    pub fn stall(&self) -> Duration {
        Duration::from_micros(self.stall.load(Ordering::SeqCst))
    }

    /// The longest since then that a client has waited for the end of a transaction, whatever it was.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::SeqCst))
    }

    /// Waits until every client has had an answer; tells how long that took.
    pub fn wait_for_everybody(&self) -> Duration {
        let counts = || self.answers.iter().map(|count| count.load(Ordering::SeqCst));
        let (before, start): (Vec<usize>, _) = (counts().collect(), Instant::now());
        eventually(LIMIT, || counts().zip(&before).all(|(count, before)| count > *before));
        start.elapsed()
    }

    /// Waits until so many more entries are acknowledged.
    pub fn wait_for_more(&self, count: usize) {
        let wanted = self.done.load(Ordering::SeqCst) + count;
        eventually(LIMIT, || self.done.load(Ordering::SeqCst) >= wanted);
    }

    fn client(&self, (port, login): (u16, &Login), who: usize, style: Style) -> Account {
        let mut account = Account::default();
        let mut turn = 0;
        while !self.over.load(Ordering::SeqCst) {
            let Ok(mut raw) = Raw::try_login(port, login) else { continue };
            raw.set_limit(LIMIT);
            while !self.over.load(Ordering::SeqCst) {
                turn += 1;
                let start = Instant::now();
                let answer = enter(&mut raw, who, turn, style);
                self.longest.fetch_max(start.elapsed().as_micros() as u64, Ordering::SeqCst);
                self.answers[who].fetch_add(1, Ordering::SeqCst);
                match answer {
                    Answer::Told => {
                        account.told.push(turn);
                        self.note();
                    }
                    Answer::Unknown(words) => {
                        account.unknown.push(turn);
                        account.errors.push(words);
                    }
                    Answer::Lost => {
                        account.unknown.push(turn);
                        account.lost += 1;
                        break;
                    }
                }
            }
        }
        account
    }

    fn note(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
        let now = self.start.elapsed().as_micros() as u64;
        let before = self.told_at.fetch_max(now, Ordering::SeqCst);
        self.stall.fetch_max(now.saturating_sub(before), Ordering::SeqCst);
    }
}

/// Each row that was acknowledged is there once, and none that was refused. Answers what errors there were.
#[track_caller]
pub fn check(accounts: Vec<Account>, session: &mut Raw) -> Vec<String> {
    let mut errors = Vec::new();
    for (who, account) in accounts.into_iter().enumerate() {
        let rows = session.sql(&format!("select turn from entries where who = {who} order by turn"));
        let kept: Vec<usize> =
            rows.iter().map(|row| row[0].as_deref().expect("a turn").parse().expect("a number")).collect();
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "client {who}: doubled");
        for turn in &account.told {
            assert!(
                kept.binary_search(turn).is_ok(),
                "client {who}: turn {turn} was acknowledged and is lost"
            );
        }
        for turn in kept.iter().filter(|turn| account.told.binary_search(turn).is_err()) {
            assert!(account.unknown.contains(turn), "client {who}: turn {turn} was refused and is there");
        }
        assert_eq!(account.lost, 0, "client {who} lost its connection");
        errors.extend(account.errors);
    }
    errors
}

enum Answer {
    Told,
    Unknown(String),
    Lost,
}

fn enter(raw: &mut Raw, who: usize, turn: usize, style: Style) -> Answer {
    let insert = format!("insert into entries values ({who}, {turn})");
    let texts = match style {
        Style::Single => vec![insert],
        Style::Block => vec!["begin".to_owned(), insert, "commit".to_owned()],
    };
    for text in texts {
        if raw.try_send(query(&text)).is_err() {
            return Answer::Lost;
        }
        let answer = raw.answers(1);
        if !answer.ends_with("ZI") && !answer.ends_with("ZT") {
            return Answer::Lost;
        }
        if answer.contains("E(") {
            return Answer::Unknown(answer);
        }
    }
    Answer::Told
}

/// Tells the clients to go, also when a test fails while they are at it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
