//! Reads that go to standbys: which do, which never do, and that nobody misses what it has written.
#![allow(clippy::disallowed_methods)] // clients are threads

mod figures;
mod stage;
#[path = "stage/trio.rs"]
mod trio;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use figures::{Figures, is_full, sized};
use testkit::message::{all, bind, execute, parse, query, sync};
use testkit::{Howdah, Login, Postgres, PostgresOptions, Raw, StopMode, Version, cell, eventually};
use trio::{LIMIT, PORT, Trio, hinted, login, place, reader, routed, wait_until_split};

#[test]
fn transactions_that_say_so_go_to_standbys_and_nothing_else_does() {
    let trio = Trio::start();
    let howdah = trio.pooler("read_write_split=intent consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    let primary = trio.primary.port().to_string();
    let check = |client: &mut Raw, texts: &[&str], wanted: bool| {
        let mut port = String::new();
        for text in texts {
            match *text {
                "PORT" => port = client.value(PORT),
                text => drop(client.sql(text)),
            }
        }
        assert_eq!(trio.is_standby(&port), wanted, "{texts:?}: {port}");
        assert!(wanted || port == primary);
    };
    check(&mut client, &["PORT"], false);
    check(&mut client, &["begin", "PORT", "commit"], false);
    check(&mut client, &["begin read only", "PORT", "PORT", "commit"], true);
    check(&mut client, &["begin; set transaction read only", "PORT", "rollback"], true);
    check(
        &mut client,
        &["START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "PORT", "end"],
        true,
    );
    check(&mut client, &["begin isolation level serializable read only", "PORT", "commit"], false);
    check(&mut client, &["begin read write", "PORT", "commit"], false);
    check(&mut client, &["set default_transaction_read_only = on", "PORT"], true);
    check(&mut client, &["begin", "PORT", "commit"], true);
    check(&mut client, &["begin read write", "PORT", "commit"], false);
    check(&mut client, &["set default_transaction_read_only = off", "PORT"], false);
    let hint = |client: &mut Raw, who| client.value(&format!("/* howdah: {who} */ {PORT}"));
    assert!(trio.is_standby(&hint(&mut client, "standby")));
    assert_eq!(hint(&mut client, "primary"), primary);
    // What a session sets goes with it.
    client.sql("set application_name = 'goes along'");
    let name = client.value("/* howdah: standby */ select current_setting('application_name')");
    assert_eq!(name, "goes along");
    // The client is told nothing of the roles of servers.
    client.send(query(&format!("/* howdah: standby */ {PORT}")));
    assert_eq!(client.answers(1), "T D C(SELECT 1) ZI");
    client.send(query(PORT));
    assert_eq!(client.answers(1), "T D C(SELECT 1) ZI");
}

#[test]
fn what_stands_behind_a_read_goes_its_own_way() {
    let trio = Trio::start();
    trio.primary.sql("create table t (n int)");
    trio.settle();
    let howdah = trio.pooler("read_write_split=intent consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    let insert = query("insert into t values (1)");
    let read = query(&format!("/* howdah: standby */ {PORT}"));
    client.send(all(&[read.clone(), insert.clone(), read.clone(), insert.clone()]));
    let answer = "T D C(SELECT 1) ZI C(INSERT 0 1) ZI";
    assert_eq!(client.answers(4), format!("{answer} {answer}"));
    let whole = all(&[query("begin read only"), query(PORT), query("commit"), insert.clone()]);
    client.send(whole);
    assert_eq!(client.answers(4), "C(BEGIN) ZT T D C(SELECT 1) ZT C(COMMIT) ZI C(INSERT 0 1) ZI");
    let batch = all(&[
        parse("", &format!("/* howdah: standby */ {PORT}"), &[]),
        bind("", "", &[]),
        execute("", 0),
        sync(),
    ]);
    client.send(all(&[batch.clone(), insert.clone(), batch, insert]));
    let answer = "1 2 D C(SELECT 1) ZI C(INSERT 0 1) ZI";
    assert_eq!(client.answers(4), format!("{answer} {answer}"));
    assert_eq!(trio.primary.sql("select count(*) from t")[0][0].as_deref(), Some("5"));
}

#[test]
fn prepared_statements_work_wherever_they_go() {
    let trio = Trio::start();
    let howdah = trio.pooler("read_write_split=intent consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    let text = "/* howdah: standby */ select inet_server_port() + $1::int * 0";
    client.send(all(&[parse("s", text, &[]), sync()]));
    assert_eq!(client.answers(1), "1 ZI");
    let run = all(&[bind("", "s", &[Some("7")]), execute("", 0), sync()]);
    let port = |client: &mut Raw| {
        client.send(&run);
        let messages = client.until_ready();
        testkit::message::rows(&messages)[0][0].clone().expect("a port")
    };
    for _ in 0..10 {
        let seen = port(&mut client);
        assert!(trio.is_standby(&seen), "{seen}");
    }
    client.sql("begin");
    assert_eq!(port(&mut client), trio.primary.port().to_string());
    client.sql("commit");
    assert!(trio.is_standby(&port(&mut client)));
    // Prepared and run in one batch, and with a transaction in front of it.
    client.send(all(&[
        parse("", "begin read only", &[]),
        bind("", "", &[]),
        execute("", 0),
        parse("n", "select pg_is_in_recovery()", &[]),
        bind("", "n", &[]),
        execute("", 0),
        sync(),
    ]));
    let messages = client.until_ready();
    assert_eq!(testkit::message::letters(&messages), "1 2 C(BEGIN) 1 2 D C(SELECT 1) ZT");
    assert_eq!(testkit::message::rows(&messages)[0][0].as_deref(), Some("t"));
    client.sql("commit");
}

#[test]
fn what_a_standby_refuses_is_run_on_the_primary() {
    let trio = Trio::start();
    trio.primary.sql("create table t (n int); create sequence s");
    trio.settle();
    let howdah = trio.pooler("read_write_split=intent consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    let refused = || routed(&howdah, "primary", "refused or lost by a standby");
    assert_eq!(client.value("/* howdah: standby */ insert into t values (1) returning n"), "1");
    assert_eq!(refused(), 1);
    assert_eq!(client.value("/* howdah: standby */ select nextval('s')"), "1");
    assert_eq!(refused(), 2);
    let text = "/* howdah: standby */ insert into t values ($1) returning n";
    let batch = all(&[parse("i", text, &[]), bind("", "i", &[Some("2")]), execute("", 0), sync()]);
    client.send(batch);
    assert_eq!(client.answers(1), "1 2 D C(INSERT 0 1) ZI");
    for _ in 0..3 {
        client.send(all(&[bind("", "i", &[Some("3")]), execute("", 0), sync()]));
        assert_eq!(client.answers(1), "2 D C(INSERT 0 1) ZI");
    }
    assert_eq!(refused(), 6);
    // What is wrong is wrong everywhere, and is told once.
    client.send(query("/* howdah: standby */ select nothing"));
    assert_eq!(client.answers(1), "E(42703) ZI");
    client.send(query("/* howdah: standby */ select 1/0"));
    assert_eq!(client.answers(1), "E(22012) ZI");
    assert_eq!(trio.primary.sql("select count(*) from t")[0][0].as_deref(), Some("5"));
    assert!(trio.is_standby(&hinted(&mut client)));
}

#[test]
fn single_statements_that_only_read_are_found_out_and_nothing_else_goes_there() {
    let primary = PostgresOptions::new(Version::wanted())
        .setting("wal_keep_size", "128MB")
        .setting("log_statement", "all")
        .start();
    let standbys = [primary.standby(), primary.standby()];
    let trio = Trio { primary, standbys };
    trio.primary.sql("create table t (n int); create sequence s");
    trio.primary.sql(
        "create function hidden() returns bigint language sql as $$ select nextval('s') $$; \
         create function writes(int) returns int language sql as $$ insert into t values ($1) returning n $$",
    );
    trio.settle();
    let howdah = trio.pooler("read_write_split=statement").start();
    let mut client = howdah.login(&login());
    let places = trio.standbys.each_ref().map(place);
    let read = || -> u64 { places.iter().map(|place| routed(&howdah, place, "statement")).sum() };
    eventually(LIMIT, || {
        client.sql("select count(*) from t where n > 5");
        read() > 0
    });
    // With other literals, by the extended protocol and by name, they are the same statements.
    let before = read();
    for number in 0..5 {
        client.sql(&format!("select count(*) from t where n > {number}"));
    }
    let text = "select n from t where n = $1 order by n";
    client.send(all(&[parse("q", text, &[]), sync()]));
    client.answers(1);
    let run = all(&[bind("", "q", &[Some("1")]), execute("", 0), sync()]);
    let mut runs = 0;
    eventually(LIMIT, || {
        runs += 1;
        client.send(&run);
        assert_eq!(client.answers(1), "2 C(SELECT 0) ZI");
        read() >= before + 6
    });
    let counts = read();
    for number in 0..3 {
        client.sql(&format!("insert into t values ({number})"));
        client.sql("select nextval('s')");
        client.sql("select hidden()");
        client.sql(&format!("select writes({number})"));
        client.sql("select n from t for update");
        client.sql("with gone as (delete from t where n > 100 returning n) select * from gone");
        client.sql("select 1; insert into t values (9)");
        client.sql("select pg_advisory_xact_lock(1)");
        client.sql("begin");
        client.sql("select count(*) from t where n > 5");
        client.sql("commit");
        client.sql("select setval('s', 100), txid_current()");
        client.sql("create temporary table if not exists tt (n int)");
        client.sql("select count(*) from tt");
        client.sql("discard all");
        // So that all of them have been decided about.
        eventually(LIMIT, || {
            client.sql("select nextval('s')");
            routed(&howdah, "primary", "sequence") > 0
        });
    }
    assert_eq!(read(), counts, "none of these was one");
    assert_eq!(routed(&howdah, "primary", "refused or lost by a standby"), 0);
    for standby in &trio.standbys {
        let log = standby.log();
        for word in [
            "insert into",
            "nextval",
            "hidden",
            "writes(",
            "for update",
            "delete from",
            "advisory",
            "from tt",
        ] {
            let found = log.lines().find(|line| line.contains("LOG:") && line.contains(word));
            assert!(
                found.is_none_or(|line| !line.contains("statement:") && !line.contains("execute")),
                "{found:?}"
            );
        }
    }
}

/// Clients that write a number and read it again, each its own, until they are told to stop.
struct Cycle {
    over: AtomicBool,
    rounds: AtomicUsize,
    stale: AtomicUsize,
    by_port: std::sync::Mutex<BTreeMap<String, usize>>,
}

impl Cycle {
    fn new() -> Cycle {
        Cycle {
            over: AtomicBool::new(false),
            rounds: AtomicUsize::new(0),
            stale: AtomicUsize::new(0),
            by_port: std::sync::Mutex::default(),
        }
    }

    fn client(&self, howdah: &Howdah, who: usize) {
        let mut client = howdah.login(&login());
        let mut number = 0;
        while !self.over.load(Ordering::SeqCst) {
            number += 1;
            client.sql(&format!("update numbers set n = {number} where who = {who}"));
            for _ in 0..20 {
                client.sql("begin read only");
                let row =
                    &client.sql(&format!("select n, inet_server_port() from numbers where who = {who}"))[0];
                let (seen, port) = (row[0].clone().expect("a number"), row[1].clone().expect("a port"));
                client.sql("commit");
                if seen != number.to_string() {
                    self.stale.fetch_add(1, Ordering::SeqCst);
                }
                *self.by_port.lock().expect("no panic").entry(port).or_default() += 1;
                // As an application does: no reader is current at the very moment of a write.
                std::thread::sleep(sized(Duration::from_millis(10), PAUSE));
            }
            self.rounds.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn wait_for_rounds(&self, count: usize) {
        let wanted = self.rounds.load(Ordering::SeqCst) + count;
        eventually(Duration::from_secs(60), || self.rounds.load(Ordering::SeqCst) >= wanted);
    }

    fn reads_at(&self, server: &Postgres) -> usize {
        self.by_port.lock().expect("no panic").get(&server.port().to_string()).copied().unwrap_or(0)
    }
}

/// What clients of the experiment think between two reads: twenty of them in a second after each write.
const PAUSE: Duration = Duration::from_millis(50);

/// Tells the clients to go, also when a test fails while they are at it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn cycle(howdah: &Howdah, clients: usize, events: impl FnOnce(&Cycle)) -> Cycle {
    let cycle = Cycle::new();
    std::thread::scope(|scope| {
        for who in 0..clients {
            let cycle = &cycle;
            scope.spawn(move || cycle.client(howdah, who));
        }
        let over = Over(&cycle.over);
        events(&cycle);
        drop(over);
    });
    cycle
}

fn fill(trio: &Trio) {
    trio.primary.sql("create table numbers (who int primary key, n int)");
    trio.primary.sql("insert into numbers select who, 0 from generate_series(0, 99) who");
    trio.settle();
}

#[test]
fn nobody_misses_what_it_has_written_while_a_standby_is_behind() {
    let trio = Trio::start();
    fill(&trio);
    let howdah = trio.pooler("read_write_split=intent").start();
    drop(reader(&trio, &howdah));
    let [laggard, healthy] = &trio.standbys;
    let counts = cycle(&howdah, 16, |cycle| {
        cycle.wait_for_rounds(32);
        laggard.sql("select pg_wal_replay_pause()");
        // What it had when it stopped is old for everybody who has written since.
        cycle.wait_for_rounds(32);
        let before = cycle.reads_at(laggard);
        cycle.wait_for_rounds(48);
        assert_eq!(cycle.reads_at(laggard), before, "a laggard is not read from");
        laggard.sql("select pg_wal_replay_resume()");
        eventually(LIMIT, || cycle.reads_at(laggard) > before + 10 && cycle.reads_at(healthy) > 100);
    });
    assert_eq!(counts.stale.load(Ordering::SeqCst), 0, "stale reads");
    let reads = counts.by_port.lock().expect("no panic").clone();
    assert!(routed(&howdah, "primary", "no standby is fresh enough") > 0, "{reads:?}");
}

#[test]
fn a_standby_that_applies_late_is_read_from_by_nobody_who_has_just_written() {
    let figures = Figures::new("reads, one of two standbys 20 s behind");
    let trio = Trio::start();
    fill(&trio);
    if !is_full() {
        delay(&trio.standbys[0], "20s");
    }
    let howdah =
        trio.pooler(sized("read_write_split=intent", "read_write_split=intent max_replica_lag=2")).start();
    drop(reader(&trio, &howdah));
    let clients = sized(8, 64);
    let counts = cycle(&howdah, clients, |cycle| {
        if is_full() {
            falls_behind_and_comes_back(&trio, (&howdah, cycle), &figures);
        }
        cycle.wait_for_rounds(40);
        eventually(LIMIT, || cycle.reads_at(&trio.standbys[1]) > 50);
    });
    assert_eq!(counts.stale.load(Ordering::SeqCst), 0, "stale reads");
    figures.count("clients", clients, None);
    figures.count("reads", counts.by_port.lock().expect("no panic").values().sum(), None);
    figures.count("stale reads", counts.stale.load(Ordering::SeqCst), Some(0));
}

/// A standby replays commits so much later.
fn delay(standby: &Postgres, time: &str) {
    standby.set("recovery_min_apply_delay", time);
    standby.reload();
}

/// Both standbys are well, one falls behind, and comes back. Its limit is two seconds.
fn falls_behind_and_comes_back(trio: &Trio, (howdah, cycle): (&Howdah, &Cycle), figures: &Figures) {
    let [late, healthy] = &trio.standbys;
    let shares = |of: &[&Postgres], when: &str| {
        let counts = || [&trio.primary, late, healthy].map(|server| cycle.reads_at(server));
        let (before, ours) = (counts(), of.iter().map(|server| cycle.reads_at(server)).collect::<Vec<_>>());
        figures.go_on(when, Duration::from_secs(20));
        let whole = counts().iter().sum::<usize>() - before.iter().sum::<usize>();
        for (server, before) in of.iter().zip(ours) {
            let what = format!("{when}: part of the reads of a healthy standby");
            figures.share(&what, (cycle.reads_at(server) - before, whole), (20, 80));
        }
    };
    let mut session = late.session("postgres");
    let mut is_behind = |seconds: u32| {
        session.value(&format!(
            "select pg_last_wal_receive_lsn() <> pg_last_wal_replay_lsn() \
             and clock_timestamp() - pg_last_xact_replay_timestamp() > interval '{seconds} s'"
        )) == "t"
    };
    let state = || howdah.admin_value("SHOW NODES", &[("port", &late.port().to_string())], "state");
    shares(&[late, healthy], "both are well");
    delay(late, "20s");
    eventually(LIMIT, || is_behind(2));
    let begin = Instant::now();
    eventually(LIMIT, || state() == "lagging");
    figures.time("the laggard is out after", begin.elapsed(), Some(Duration::from_secs(1)));
    // What was under way is over.
    cycle.wait_for_rounds(64);
    let before = cycle.reads_at(late);
    shares(&[healthy], "one is 20 s behind");
    figures.count("reads of the laggard meanwhile", cycle.reads_at(late) - before, Some(0));
    delay(late, "0");
    eventually(LIMIT, || !is_behind(1));
    let begin = Instant::now();
    eventually(LIMIT, || state() == "up");
    figures.time("within half of its limit, it is back after", begin.elapsed(), None);
    figures.go_on("it takes its share again", Duration::from_secs(10));
    shares(&[late, healthy], "both are well again");
}

#[test]
fn healthy_standbys_share_the_reads() {
    let trio = Trio::start();
    for balance in ["round-robin", "least-connections", "random"] {
        let more = format!("read_write_split=intent load_balance_hosts={balance}");
        let howdah = trio.pooler(&more).start();
        let mut clients: Vec<Raw> = (0..8).map(|_| reader(&trio, &howdah)).collect();
        // Both have servers that may be used by now.
        for standby in &trio.standbys {
            let port = standby.port().to_string();
            eventually(LIMIT, || hinted(&mut clients[0]) == port);
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..40 {
            for client in &mut clients {
                *counts.entry(hinted(client)).or_default() += 1;
            }
        }
        for standby in &trio.standbys {
            let share = counts.get(&standby.port().to_string()).copied().unwrap_or(0);
            assert!((64..=256).contains(&share), "{balance}: {counts:?}");
        }
    }
}

#[test]
fn the_nearest_zone_is_read_from_and_a_host_without_weight_is_not() {
    let trio = Trio::start();
    let [near, far] = &trio.standbys;
    let howdah = trio
        .pooler("read_write_split=intent consistency=eventual host_zones=a,a,b host_weights=1,1,1")
        .setting("zone", "a")
        .database("ro", &trio.entry("standby", "host_weights=1,0,1"))
        .start();
    let mut client = reader(&trio, &howdah);
    for _ in 0..10 {
        assert_eq!(hinted(&mut client), near.port().to_string());
    }
    near.stop(StopMode::Fast);
    eventually(LIMIT, || hinted(&mut client) == far.port().to_string());
    near.start_again();
    eventually(LIMIT, || hinted(&mut client) == near.port().to_string());
    let mut others: Vec<Raw> = (0..4).map(|_| howdah.login(&Login::new("postgres", "ro"))).collect();
    for other in &mut others {
        other.sql("begin");
        assert_eq!(other.value(PORT), far.port().to_string());
    }
}

#[test]
fn death_of_a_standby_is_not_noticed() {
    let trio = Trio::start();
    fill(&trio);
    for mode in [StopMode::Immediate, StopMode::Fast] {
        let howdah = trio.pooler("read_write_split=intent").start();
        drop(reader(&trio, &howdah));
        let over = AtomicBool::new(false);
        let reads = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..16)
                .map(|who| {
                    let (howdah, over, reads) = (&howdah, &over, &reads);
                    scope.spawn(move || {
                        let mut client = howdah.login(&login());
                        while !over.load(Ordering::SeqCst) {
                            let text =
                                format!("/* howdah: standby */ select n from numbers where who = {who}");
                            assert_eq!(client.value(&text), "0");
                            reads.fetch_add(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            let stop = Over(&over);
            let more = |count| {
                let wanted = reads.load(Ordering::SeqCst) + count;
                eventually(LIMIT, || reads.load(Ordering::SeqCst) >= wanted);
            };
            more(500);
            trio.standbys[0].stop(mode);
            more(2_000);
            trio.standbys[0].start_again();
            let place = place(&trio.standbys[0]);
            let before = routed(&howdah, &place, "hint");
            eventually(LIMIT, || routed(&howdah, &place, "hint") > before + 50);
            drop(stop);
            clients.into_iter().for_each(|client| client.join().expect("no error"));
        });
    }
}

#[test]
fn reads_follow_a_failover() {
    let trio = Trio::start();
    fill(&trio);
    let howdah = trio.pooler("read_write_split=intent").start();
    let mut client = reader(&trio, &howdah);
    trio.primary.stop(StopMode::Fast);
    // While nobody can be written to, what was known stays known.
    assert!(trio.is_standby(&hinted(&mut client)));
    let [next, other] = &trio.standbys;
    next.promote();
    other.set("primary_conninfo", &format!("host=127.0.0.1 port={} user=postgres", next.port()));
    other.reload();
    client.sql("update numbers set n = 7 where who = 0");
    let text = "/* howdah: standby */ select n, inet_server_port() from numbers where who = 0";
    eventually(LIMIT, || {
        let row = client.sql(text).remove(0);
        assert_eq!(row[0].as_deref(), Some("7"));
        row[1].as_deref() == Some(&other.port().to_string())
    });
}

#[test]
fn a_reload_turns_the_split_off_and_on() {
    let trio = Trio::start();
    let howdah = trio.pooler("read_write_split=intent consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    let entry = |more: &str| trio.entry("read-write", more);
    let before = howdah.ini_text();
    let off = before.replace("read_write_split=intent", "read_write_split=off");
    assert_ne!(before, off);
    howdah.reload_ini(&off);
    eventually(LIMIT, || hinted(&mut client) == trio.primary.port().to_string());
    howdah.reload_ini(&before);
    wait_until_split(&trio, &mut client);
    // Without one of the hosts.
    let two = before.replace(
        &entry("read_write_split=intent consistency=eventual"),
        &format!(
            "host=127.0.0.1,127.0.0.1 port={},{} dbname=postgres target_session_attrs=read-write \
             read_write_split=intent consistency=eventual",
            trio.primary.port(),
            trio.standbys[1].port()
        ),
    );
    assert_ne!(before, two);
    howdah.reload_ini(&two);
    eventually(LIMIT, || (0..10).all(|_| hinted(&mut client) == trio.standbys[1].port().to_string()));
}

#[test]
fn a_laggard_loses_the_connections_of_entries_for_standbys_and_gets_them_back() {
    let trio = Trio::start();
    fill(&trio);
    let limits = "max_replica_lag_bytes=200000 load_balance_hosts=least-connections";
    let howdah = trio
        .pooler("")
        .database("ro", &trio.entry("standby", limits))
        .database("any_ro", &trio.entry("prefer-standby", limits))
        .start();
    let state = |server: &Postgres| {
        howdah.admin_value("SHOW NODES", &[("port", &server.port().to_string())], "state")
    };
    let [laggard, healthy] = &trio.standbys;
    let ports = |database: &str| {
        let mut clients: Vec<Raw> = (0..4).map(|_| howdah.login(&Login::new("postgres", database))).collect();
        let mut ports = Vec::new();
        for client in &mut clients {
            client.sql("begin");
            ports.push(client.value(PORT));
        }
        ports
    };
    for database in ["ro", "any_ro"] {
        let seen = ports(database);
        assert!(seen.iter().all(|port| trio.is_standby(port)), "{seen:?}");
        assert!(seen.contains(&laggard.port().to_string()) && seen.contains(&healthy.port().to_string()));
    }
    laggard.sql("select pg_wal_replay_pause()");
    trio.primary.sql("create table more as select repeat('x', 100) from generate_series(1, 20000)");
    let seen = |server: &Postgres| {
        let rows = howdah.admin("SHOW NODES");
        let port = server.port().to_string();
        let row = rows.iter().find(|row| cell(row, "port") == Some(&port)).expect("a node").clone();
        let value = |column| cell(&row, column).expect("a column").to_owned();
        (value("lag_bytes").parse::<u64>().expect("a number"), value("state"))
    };
    eventually(LIMIT, || {
        let (lag, state) = seen(laggard);
        assert_eq!(state == "lagging", lag > 200_000, "out by the sample that shows it: {lag} {state}");
        state == "lagging"
    });
    let written = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    let replayed = "select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint";
    let position =
        |server: &Postgres, sql| server.session("postgres").value(sql).parse::<u64>().expect("a number");
    let whole = position(&trio.primary, written) - position(laggard, replayed);
    eventually(LIMIT, || seen(laggard).0 >= whole);
    // It is taken back at half of its limit and not before; and one that is in stays in up to the limit.
    let (behind, _) = seen(laggard);
    let between = behind + behind / 2;
    for (limit, wanted) in [
        (between, "lagging"),
        (3 * behind, "up"),
        (between, "up"),
        (behind / 2, "lagging"),
        (200_000, "lagging"),
    ] {
        let ini = howdah.ini_text().replace("=200000", &format!("={limit}"));
        howdah.reload_ini(&ini);
        // Judged since, by what the primary has written meanwhile.
        let (before, _) = seen(laggard);
        trio.primary.sql("select pg_logical_emit_message(false, 'x', 'x')");
        eventually(LIMIT, || seen(laggard).0 > before);
        let (lag, state) = seen(laggard);
        assert_eq!(state, wanted, "{lag} of {limit}");
    }
    let only = |server: &Postgres| vec![server.port().to_string(); 4];
    for database in ["ro", "any_ro"] {
        eventually(LIMIT, || ports(database) == only(healthy));
    }
    // Nobody is left: `standby` waits, `prefer-standby` takes the primary.
    healthy.stop(StopMode::Fast);
    eventually(LIMIT, || state(healthy) == "down");
    eventually(LIMIT, || ports("any_ro") == only(&trio.primary));
    // It comes back when it is well within its limit, and not while it is only just so.
    laggard.sql("select pg_wal_replay_resume()");
    eventually(LIMIT, || state(laggard) == "up");
    eventually(LIMIT, || ports("ro") == only(laggard));
    eventually(LIMIT, || ports("any_ro") == only(laggard));
}
