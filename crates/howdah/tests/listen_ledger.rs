//! Every notification reaches every listener: clients that LISTEN, UNLISTEN and NOTIFY at random, and a ledger of who
//! listened when, what was sent when, and who heard what.
//!
//! The rules are PostgreSQL's: the same script runs straight against it, and must hold there too. `HOWDAH_SEED` runs
//! one seed more.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oracle::{TRANSACTION, USER, pooler};
use testkit::message::{bind, execute, parse, query, sync};
use testkit::{Event, Howdah, Login, Message, Postgres, Raw, Version};

const CLIENTS: usize = 10;
const CHANNELS: usize = 5;
const OPERATIONS: usize = 60;
/// Longer than anything takes that comes at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is the same for all clients of one run.
struct Run<'a> {
    seed: u64,
    /// Moments are counted, not measured.
    clock: AtomicU64,
    ids: AtomicU64,
    connect: &'a (dyn Fn() -> Raw + Sync),
    /// Clients that send no more, or have failed.
    done: AtomicUsize,
}

impl Run<'_> {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn channel(&self, number: usize) -> String {
        format!("ledger_{:x}_{number}", self.seed)
    }

    fn number(&self, channel: &str) -> usize {
        let (prefix, number) = channel.rsplit_once('_').expect("a channel of ours");
        assert_eq!(prefix, format!("ledger_{:x}", self.seed), "a channel of another run");
        number.parse().expect("a number")
    }
}

/// A notification, sent between two moments.
#[derive(Clone, Copy)]
struct Sent {
    channel: usize,
    begun: u64,
    done: u64,
    is_committed: bool,
}

/// How long one session listened on one channel.
struct Ear {
    channel: usize,
    /// LISTEN was sent, and answered.
    asked: u64,
    from: u64,
    /// Whatever was sent before this moment has been heard.
    settled: u64,
    /// UNLISTEN was answered.
    until: u64,
}

/// What one session of a client saw, from its login to its end.
#[derive(Default)]
struct Account {
    name: String,
    ears: Vec<Ear>,
    /// Number of the notification, channel.
    heard: Vec<(u64, usize)>,
    /// When it was told that something may be lost.
    warned: Vec<u64>,
    /// Sent by itself behind its own LISTEN.
    own: Vec<u64>,
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// A client with one session after another.
struct Client<'a> {
    run: &'a Run<'a>,
    rng: Rng,
    raw: Raw,
    name: String,
    account: Account,
    /// The place in `account.ears` of each channel that it listens on.
    open: BTreeMap<usize, usize>,
    in_block: bool,
    past: Vec<Account>,
    sent: Vec<(u64, Sent)>,
}

impl<'a> Client<'a> {
    fn new(run: &'a Run<'a>, number: usize) -> Client<'a> {
        let rng = Rng(run.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number as u64 + 1) << 32 | 1);
        let name = format!("client {number}");
        let account = Account { name: name.clone(), ..Account::default() };
        Client {
            run,
            rng,
            raw: (run.connect)(),
            name,
            account,
            open: BTreeMap::new(),
            in_block: false,
            past: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn note(&mut self, message: &Message) {
        let text = String::from_utf8_lossy(&message.body[4..]).into_owned();
        let mut parts = text.split('\0');
        let channel = self.run.number(parts.next().expect("a channel"));
        let payload = parts.next().expect("a payload");
        self.account.heard.push((payload.parse().expect("a number"), channel));
    }

    /// Sends, and reads until so many times it is ready. Notifications come between transactions alone.
    #[track_caller]
    fn ask(&mut self, bytes: impl AsRef<[u8]>, readies: usize) -> Vec<Message> {
        self.raw.send(bytes);
        let mut answer: Vec<Message> = Vec::new();
        let (mut is_replying, mut came_late, mut left) = (false, false, readies);
        while left > 0 {
            let message = self.next();
            match message.tag {
                b'A' => {
                    let place = format!("{}: notified within a transaction: {}", self.name, self.raw.seen());
                    assert!(is_replying || !self.in_block, "{place}");
                    came_late |= is_replying;
                    self.note(&message);
                }
                b'N' => self.warning(&message),
                b'S' => {}
                b'Z' => {
                    self.in_block = message.body[0] != b'I';
                    let place = format!("{}: notified within a transaction: {}", self.name, self.raw.seen());
                    assert!(!came_late || !self.in_block, "{place}");
                    (is_replying, came_late) = (false, false);
                    left -= 1;
                }
                _ => {
                    assert!(!came_late, "{}: notified within an answer: {}", self.name, self.raw.seen());
                    is_replying = true;
                    let error = message.tag == b'E';
                    assert!(!error, "{}: {} after {}", self.name, message.text(), self.raw.seen());
                    answer.push(message);
                }
            }
        }
        answer
    }

    #[track_caller]
    fn next(&mut self) -> Message {
        match self.raw.next(PATIENCE) {
            Event::Message(message) => message,
            other => panic!("seed {}: {}: {other:?}: {}", self.run.seed, self.name, self.raw.seen()),
        }
    }

    fn warning(&mut self, message: &Message) {
        if message.text().contains("notifications may have been lost") {
            let now = self.run.tick();
            self.account.warned.push(now);
        }
    }

    #[track_caller]
    fn sql(&mut self, text: &str) -> Vec<Message> {
        self.ask(query(text), 1)
    }

    fn begins_to_listen(&mut self, channel: usize, asked: u64) {
        let from = self.run.tick();
        let ears = &mut self.account.ears;
        self.open.entry(channel).or_insert_with(|| {
            ears.push(Ear { channel, asked, from, settled: 0, until: u64::MAX });
            ears.len() - 1
        });
    }

    fn listens_no_more(&mut self, channel: usize) {
        let now = self.run.tick();
        if let Some(at) = self.open.remove(&channel) {
            self.account.ears[at].until = now;
        }
    }

    fn listen(&mut self, channel: usize) {
        let asked = self.run.tick();
        let name = self.run.channel(channel);
        let text = format!("listen {name}");
        let is_true = match self.rng.below(7) {
            0..3 => {
                self.sql(&text);
                true
            }
            3 => {
                self.ask([parse("", &text, &[]), bind("", "", &[]), execute("", 0), sync()].concat(), 1);
                true
            }
            4 => {
                self.sql("begin");
                self.sql("select 1");
                self.sql(&text);
                self.sql("select 2");
                self.sql("commit");
                true
            }
            5 => {
                self.sql("begin");
                self.sql(&text);
                self.sql("rollback");
                false
            }
            _ => {
                self.sql("begin");
                self.sql("savepoint s");
                self.sql(&text);
                self.sql("rollback to s");
                self.sql("commit");
                false
            }
        };
        if is_true {
            self.begins_to_listen(channel, asked);
        }
    }

    fn unlisten(&mut self, channel: usize) {
        if self.rng.below(2) == 0 {
            self.settle(channel);
        }
        match self.rng.below(4) {
            0 => {
                self.sql("begin");
                self.sql(&format!("unlisten {}", self.run.channel(channel)));
                self.sql("rollback");
            }
            1 => {
                self.sql("unlisten *");
                (0..CHANNELS).for_each(|channel| self.listens_no_more(channel));
            }
            _ => {
                self.sql(&format!("unlisten {}", self.run.channel(channel)));
                self.listens_no_more(channel);
            }
        }
    }

    /// Numbers for notifications that are about to be sent.
    fn new_ids(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.run.ids.fetch_add(1, Ordering::SeqCst)).collect()
    }

    fn enter(&mut self, ids: &[u64], channel: usize, begun: u64, is_committed: bool) {
        let done = self.run.tick();
        self.sent.extend(ids.iter().map(|id| (*id, Sent { channel, begun, done, is_committed })));
    }

    fn notify(&mut self, channel: usize) {
        let begun = self.run.tick();
        let name = self.run.channel(channel);
        let count = 1 + self.rng.below(3);
        let ids = self.new_ids(count);
        let mut is_committed = true;
        match self.rng.below(6) {
            0 => {
                for id in &ids {
                    self.sql(&format!("notify {name}, '{id}'"));
                }
            }
            1 => {
                self.sql("begin");
                for id in &ids {
                    // What is the same within a transaction comes once.
                    self.sql(&format!("notify {name}, '{id}'; notify {name}, '{id}'"));
                }
                self.sql("commit");
            }
            2 => {
                self.sql("begin");
                for id in &ids {
                    self.sql(&format!("notify {name}, '{id}'"));
                }
                self.sql("rollback");
                is_committed = false;
            }
            3 => {
                let list = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
                self.sql(&format!("select pg_notify('{name}', n::text) from unnest(array[{list}]) n"));
            }
            4 => {
                let mut bytes = parse("", "select pg_notify($1, $2)", &[]);
                for id in &ids {
                    bytes.extend(bind("", "", &[Some(&name), Some(&id.to_string())]));
                    bytes.extend(execute("", 0));
                }
                bytes.extend(sync());
                self.ask(bytes, 1);
            }
            _ => {
                // All at once, and within other statements.
                let mut bytes = query("select 1");
                for id in &ids {
                    bytes.extend(query(&format!("select 1; notify {name}, '{id}'; select 2")));
                }
                bytes.extend(query("select 1"));
                self.ask(bytes, ids.len() + 2);
            }
        }
        self.enter(&ids, channel, begun, is_committed);
    }

    /// LISTEN and NOTIFY without a wait in between: it hears itself.
    fn listen_and_notify(&mut self, channel: usize) {
        let asked = self.run.tick();
        let name = self.run.channel(channel);
        let ids = self.new_ids(1);
        let listen = query(&format!("listen {name}"));
        let notify = query(&format!("notify {name}, '{}'", ids[0]));
        self.ask([listen, notify, query("select 1")].concat(), 3);
        self.account.own.push(ids[0]);
        self.begins_to_listen(channel, asked);
        self.enter(&ids, channel, asked, true);
    }

    /// Whatever was sent before on a channel has been heard once one's own is: they come in the order of their commits.
    fn settle(&mut self, channel: usize) {
        let Some(&at) = self.open.get(&channel) else { return };
        let mut warnings = self.account.warned.len();
        let begun = self.run.tick();
        let mut ids = Vec::new();
        loop {
            let id = self.new_ids(1)[0];
            ids.push(id);
            let name = self.run.channel(channel);
            self.sql(&format!("notify {name}, '{id}'"));
            while self.account.warned.len() == warnings && !self.has_heard(&ids) {
                let message = self.next();
                match message.tag {
                    b'A' => self.note(&message),
                    b'N' => self.warning(&message),
                    b'S' => {}
                    _ => panic!("{}: unasked for: {}", self.name, message.letter()),
                }
            }
            if self.has_heard(&ids) {
                break;
            }
            warnings = self.account.warned.len();
        }
        self.enter(&ids, channel, begun, true);
        self.account.ears[at].settled = begun;
    }

    fn has_heard(&self, ids: &[u64]) -> bool {
        self.account.heard.iter().rev().take(1000).any(|(heard, _)| ids.contains(heard))
    }

    fn reconnect(&mut self) {
        let fresh = (self.run.connect)();
        let old = std::mem::replace(&mut self.raw, fresh);
        if self.rng.below(2) == 0 {
            old.close()
        } else {
            old.reset()
        }
        let now = self.run.tick();
        for at in std::mem::take(&mut self.open).into_values() {
            self.account.ears[at].until = now;
        }
        let account = Account { name: self.name.clone(), ..Account::default() };
        self.past.push(std::mem::replace(&mut self.account, account));
    }

    fn stay_in_transaction(&mut self, channel: usize) {
        self.sql("begin");
        for _ in 0..self.rng.below(6) {
            self.sql("select 1");
        }
        if self.rng.below(2) == 0 {
            let begun = self.run.tick();
            let ids = self.new_ids(1);
            let name = self.run.channel(channel);
            self.sql(&format!("notify {name}, '{}'", ids[0]));
            self.sql("commit");
            self.enter(&ids, channel, begun, true);
        } else {
            self.sql("rollback");
        }
    }

    fn operate(&mut self) {
        let channel = self.rng.below(CHANNELS);
        match self.rng.below(100) {
            0..22 => self.listen(channel),
            22..34 => self.unlisten(channel),
            34..64 => self.notify(channel),
            64..70 => self.listen_and_notify(channel),
            70..78 => self.stay_in_transaction(channel),
            78..84 => drop(self.sql("copy (select n from generate_series(1, 200) n) to stdout")),
            84..87 => self.reconnect(),
            87..92 => self.settle(channel),
            _ => drop(self.sql("select 1")),
        }
    }

    /// Nobody sends any more but to see that all is heard.
    fn finish(mut self) -> (Vec<Account>, Vec<(u64, Sent)>) {
        for channel in self.open.keys().copied().collect::<Vec<_>>() {
            self.settle(channel);
        }
        self.past.push(self.account);
        (self.past, self.sent)
    }
}

/// The whole ledger.
struct Ledger {
    seed: u64,
    accounts: Vec<Account>,
    sent: BTreeMap<u64, Sent>,
    /// When connections that listen were ended on purpose.
    kills: Vec<u64>,
}

impl Ledger {
    fn check(&self) {
        let mut due = 0;
        for account in &self.accounts {
            self.check_heard(account);
            due += self.check_missed(account);
        }
        println!(
            "seed {}: {} sessions, {} notifications sent, {} heard, {due} of them had to be, {} losses on purpose",
            self.seed,
            self.accounts.len(),
            self.sent.len(),
            self.accounts.iter().map(|account| account.heard.len()).sum::<usize>(),
            self.kills.len()
        );
    }

    /// Nothing that was not for it, nothing twice, nothing out of order.
    fn check_heard(&self, account: &Account) {
        let who = format!("seed {}: {}", self.seed, account.name);
        let mut seen = BTreeSet::new();
        let mut newest = [0; CHANNELS];
        for (id, channel) in &account.heard {
            assert!(seen.insert(*id), "{who} hears {id} twice");
            let sent = self.sent.get(id).unwrap_or_else(|| panic!("{who} hears {id}, which nobody sent"));
            assert!(sent.is_committed, "{who} hears {id}, which was rolled back");
            assert_eq!(sent.channel, *channel, "{who} hears {id} on another channel");
            let is_own =
                |ear: &Ear| ear.channel == *channel && ear.asked <= sent.done && sent.begun <= ear.until;
            assert!(
                account.ears.iter().any(is_own),
                "{who} hears {id}, sent between {} and {}, and did not listen then",
                sent.begun,
                sent.done
            );
            assert!(sent.done >= newest[*channel], "{who} hears {id} behind what was sent after it");
            newest[*channel] = newest[*channel].max(sent.begun);
        }
    }

    /// All that it had to hear. Answers how many that were.
    fn check_missed(&self, account: &Account) -> usize {
        let heard: BTreeSet<u64> = account.heard.iter().map(|(id, _)| *id).collect();
        let mut due = 0;
        for (id, sent) in self.sent.iter().filter(|(_, sent)| sent.is_committed) {
            let must = |ear: &Ear| {
                let is_own = account.own.contains(id) && ear.asked <= sent.begun;
                ear.channel == sent.channel && (ear.from < sent.begun || is_own) && sent.done < ear.settled
            };
            if !account.ears.iter().any(must) {
                continue;
            }
            due += 1;
            let is_excused = self.kills.iter().any(|kill| {
                *kill < sent.done && account.warned.iter().any(|at| *at > *kill && *at > sent.begun)
            });
            assert!(
                heard.contains(id) || is_excused,
                "seed {}: {} never hears {id} on channel {}, sent between {} and {}; warned at {:?}, losses at {:?}",
                self.seed,
                account.name,
                sent.channel,
                sent.begun,
                sent.done,
                account.warned,
                self.kills
            );
        }
        due
    }
}

/// Says that a client sends no more, also of one that has failed: so that the others do not wait for it.
struct IsDone<'a>(&'a Run<'a>);

impl Drop for IsDone<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::AcqRel);
    }
}

/// Runs a seed to its end. `harm` is called again and again meanwhile, and says whether it did any.
fn run(seed: u64, connect: &(dyn Fn() -> Raw + Sync), harm: &(dyn Fn() -> bool + Sync)) {
    println!("seed {seed}");
    let run =
        Run { seed, clock: AtomicU64::new(1), ids: AtomicU64::new(1), connect, done: AtomicUsize::new(0) };
    let is_over = AtomicBool::new(false);
    let (results, kills) = std::thread::scope(|scope| {
        let harmer = scope.spawn(|| {
            let mut kills = Vec::new();
            while !is_over.load(Ordering::Acquire) {
                let at = run.tick();
                if harm() {
                    kills.push(at);
                }
                std::thread::sleep(Duration::from_millis(70));
            }
            kills
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let run = &run;
                scope.spawn(move || {
                    let own = IsDone(run);
                    let mut client = Client::new(run, number);
                    (0..OPERATIONS).for_each(|_| client.operate());
                    drop(own);
                    testkit::eventually(PATIENCE, || run.done.load(Ordering::Acquire) == CLIENTS);
                    client.finish()
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Release);
        (results, harmer.join().expect("whoever does harm"))
    });
    let mut ledger = Ledger { seed, accounts: Vec::new(), sent: BTreeMap::new(), kills };
    for result in results {
        let (accounts, sent) = result.unwrap_or_else(|_| panic!("seed {seed}: a client failed"));
        ledger.accounts.extend(accounts);
        ledger.sent.extend(sent);
    }
    ledger.check();
}

fn seeds() -> Vec<u64> {
    let wanted = std::env::var("HOWDAH_SEED").ok().and_then(|seed| seed.parse().ok());
    [1, 2, 3].into_iter().chain(wanted).collect()
}

fn through(howdah: &Howdah) -> impl Fn() -> Raw + Sync + '_ {
    || howdah.session(USER, TRANSACTION)
}

#[test]
fn every_notification_reaches_every_listener_of_postgresql_itself() {
    let server = Postgres::shared(Version::wanted());
    for seed in seeds() {
        run(seed << 8, &|| Raw::login(server.port(), &Login::new(USER, USER)), &|| false);
    }
}

#[test]
fn every_notification_reaches_every_listener_through_few_servers() {
    for seed in seeds() {
        let howdah =
            pooler(Version::wanted()).setting("default_pool_size", "2").setting("workers", "3").start();
        run(seed << 8 | 1, &through(&howdah), &|| false);
    }
}

/// Each client keeps a server of its own while it listens, and the pooler asks that server questions.
#[test]
fn every_notification_reaches_every_listener_that_keeps_its_server() {
    for seed in seeds() {
        let howdah = pooler(Version::wanted())
            .setting("default_pool_size", &(2 * CLIENTS + 2).to_string())
            .setting("max_pinned", "0")
            .setting("listen_fanout", "0")
            .start();
        run(seed << 8 | 2, &through(&howdah), &|| false);
    }
}

/// The connection that listens for all is lost again and again: what nobody heard then, everybody is warned of.
#[test]
fn every_notification_reaches_every_listener_or_they_are_warned() {
    let server = Postgres::shared(Version::wanted());
    for seed in seeds() {
        let howdah = pooler(Version::wanted())
            .setting("default_pool_size", &(2 * CLIENTS + 2).to_string())
            .setting("max_pinned", "0")
            .start();
        let turn = AtomicU64::new(0);
        let harm = || match turn.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => {
                howdah.admin("reconnect");
                true
            }
            _ => {
                let own = howdah.admin("show listeners");
                let pids = own.iter().filter_map(|row| testkit::cell(row, "remote_pid")?.parse::<u32>().ok());
                let mut killed = false;
                for pid in pids {
                    killed |=
                        server.sql(&format!("select pg_terminate_backend({pid})")) == [[Some("t".into())]];
                }
                killed
            }
        };
        run(seed << 8 | 3, &through(&howdah), &harm);
    }
}

/// The tightest case: the sender waits for nothing but the answer to LISTEN.
#[test]
fn what_is_sent_right_behind_the_answer_to_listen_is_heard() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "3").start();
    let (mut own, mut other) = (howdah.session(USER, TRANSACTION), howdah.session(USER, TRANSACTION));
    for round in 0..300 {
        let channel = format!("behind_{round}");
        let is_open = round % 2 == 0;
        if is_open {
            other.ask(query(&format!("begin; notify {channel}, 'x'")));
        }
        own.ask(query(&format!("listen {channel}")));
        other.ask(query(
            if is_open { "commit".to_owned() } else { format!("notify {channel}, 'x'") }.as_str(),
        ));
        let deadline = Instant::now() + PATIENCE;
        loop {
            match own.next(deadline.saturating_duration_since(Instant::now())) {
                Event::Message(message) if message.tag == b'A' => {
                    assert!(String::from_utf8_lossy(&message.body[4..]).starts_with(&channel));
                    break;
                }
                Event::Message(_) => {}
                other => panic!("round {round}: {other:?}"),
            }
        }
        if round % 3 == 0 {
            own.ask(query(&format!("unlisten {channel}")));
        }
    }
}
