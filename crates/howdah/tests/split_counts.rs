//! What is counted of reads and why they went where they did; what a standby refuses; and the primary's part of them.
#![allow(clippy::disallowed_methods)] // the stage starts programs

mod stage;
#[path = "stage/trio.rs"]
mod trio;

use std::collections::BTreeMap;

use testkit::message::{all, bind, execute, parse, query, sync};
use testkit::{Howdah, Raw, eventually};
use trio::{LIMIT, PORT, Trio, hinted, login, place, reader, routed};

const REFUSED: &str = "refused or lost by a standby";
const REFUTED: &str = "refused by a standby before";

#[test]
fn each_statement_is_counted_under_the_reason_that_kept_it_on_the_primary() {
    let trio = Trio::start();
    trio.primary.sql(
        "create table t (n int); create sequence s; create unlogged table u (n int); \
         create function own() returns int language sql volatile as $$ select 1 $$",
    );
    trio.settle();
    let howdah = trio.pooler("read_write_split=statement consistency=eventual").start();
    let mut client = howdah.login(&login());
    for (sql, reason) in [
        ("insert into t values (1)", "write"),
        ("create table if not exists t (n int)", "write"),
        ("with gone as (delete from t returning n) select * from gone", "data-modifying WITH"),
        ("select n from t for share", "row lock"),
        ("select 1; select 2", "several statements"),
        ("show work_mem", "session command"),
        ("do $$ begin end $$", "DO or CALL"),
        ("copy t to stdout", "COPY"),
        ("select 'a\\b'", "not readable"),
        ("select own()", "volatile function"),
        ("select nextval('s')", "sequence"),
        ("select pg_try_advisory_xact_lock(1)", "advisory lock"),
        ("select pg_is_in_recovery()", "system function"),
        ("select count(*) from u", "unlogged table"),
        ("select count(*) from pg_class", "system catalog"),
    ] {
        let before = routed(&howdah, "primary", reason);
        // The first of a kind is only found out about.
        eventually(LIMIT, || {
            client.send(query(sql));
            client.until_ready();
            routed(&howdah, "primary", reason) > before
        });
    }
    let before = routed(&howdah, "primary", "not declared to read");
    client.sql("begin");
    client.sql("commit");
    assert_eq!(routed(&howdah, "primary", "not declared to read"), before + 1);
    let rows = howdah.admin("SHOW ROUTES");
    let places: Vec<_> = rows.iter().map(|row| row[..row.len() - 1].to_vec()).collect();
    let distinct: std::collections::BTreeSet<_> = places.iter().collect();
    assert_eq!(distinct.len(), places.len(), "no reason stands there twice");
}

#[test]
fn what_every_standby_would_refuse_is_tried_there_once() {
    let trio = Trio::start();
    trio.primary.sql(
        "create sequence s; create table t (n int); create function sly() returns bigint \
         language plpgsql stable as $$ begin return nextval('s'); end $$",
    );
    trio.settle();
    let howdah = trio.pooler("read_write_split=statement consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    let mut drawn = 0;
    let mut draw = |client: &mut Raw| {
        drawn += 1;
        let value = match drawn % 2 {
            0 => client.value("select sly()"),
            _ => {
                let batch = [parse("", "select sly()", &[]), bind("", "", &[]), execute("", 0), sync()];
                client.send(all(&batch));
                testkit::message::rows(&client.until_ready())[0][0].clone().expect("a number")
            }
        };
        assert_eq!(value, drawn.to_string(), "each was run once, and none was lost");
    };
    eventually(LIMIT, || {
        draw(&mut client);
        routed(&howdah, "primary", REFUTED) > 0
    });
    for _ in 0..20 {
        draw(&mut client);
    }
    // Other clients of the pool need not find out themselves.
    let mut other = howdah.login(&login());
    for _ in 0..5 {
        draw(&mut other);
    }
    assert_eq!(routed(&howdah, "primary", REFUSED), 1);
    assert!(routed(&howdah, "primary", REFUTED) >= 25);
    // Other texts go on being read there.
    let standbys = || trio.standbys.each_ref().map(|standby| routed(&howdah, &place(standby), "statement"));
    let before: u64 = standbys().iter().sum();
    eventually(LIMIT, || {
        client.sql("select count(*) from t");
        standbys().iter().sum::<u64>() > before
    });
    // A change of the schema is a new beginning: it may be another function now.
    client.sql("alter function sly() volatile");
    eventually(LIMIT, || {
        draw(&mut client);
        routed(&howdah, "primary", "volatile function") > 0
    });
    assert_eq!(routed(&howdah, "primary", REFUSED), 1);
}

#[test]
fn what_only_this_standby_cannot_do_now_is_tried_again() {
    let trio = Trio::start();
    trio.settle();
    let howdah = trio.pooler("read_write_split=statement consistency=eventual").start();
    let mut client = reader(&trio, &howdah);
    for standby in &trio.standbys {
        standby.sql("select pg_wal_replay_pause()");
    }
    trio.primary.sql("create table late (n int)");
    // The catalog knows it, and the standbys do not yet.
    eventually(LIMIT, || {
        client.sql("select count(*) from late");
        routed(&howdah, "primary", REFUSED) > 2
    });
    assert_eq!(routed(&howdah, "primary", REFUTED), 0);
    for standby in &trio.standbys {
        standby.sql("select pg_wal_replay_resume()");
    }
    trio.settle();
    let standbys = || trio.standbys.each_ref().map(|standby| routed(&howdah, &place(standby), "statement"));
    let (before, refused): (u64, u64) = (standbys().iter().sum(), routed(&howdah, "primary", REFUSED));
    for _ in 0..10 {
        client.sql("select count(*) from late");
    }
    assert_eq!(standbys().iter().sum::<u64>(), before + 10);
    assert_eq!(routed(&howdah, "primary", REFUSED), refused);
}

/// Where reads that say so only by their transaction are run.
fn shares(clients: &mut [Raw], rounds: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..rounds {
        for client in &mut *clients {
            client.sql("begin read only");
            *counts.entry(client.value(PORT)).or_default() += 1;
            client.sql("commit");
        }
    }
    counts
}

fn readers(trio: &Trio, howdah: &Howdah, count: usize) -> Vec<Raw> {
    let mut clients: Vec<Raw> = (0..count).map(|_| reader(trio, howdah)).collect();
    for standby in &trio.standbys {
        let port = standby.port().to_string();
        eventually(LIMIT, || hinted(&mut clients[0]) == port);
    }
    clients
}

#[test]
fn the_primary_reads_as_much_as_it_is_told_to() {
    let trio = Trio::start();
    let primary = trio.primary.port().to_string();
    for (balance, weight, wanted) in [
        ("round-robin", 0, 0..=0),
        ("round-robin", 1, 50..=150),
        ("round-robin", 8, 200..=280),
        ("least-connections", 1, 50..=150),
        ("random", 1, 50..=150),
        ("disable", 5, 0..=0),
    ] {
        let more = format!(
            "read_write_split=intent consistency=eventual load_balance_hosts={balance} \
             primary_read_weight={weight}"
        );
        let howdah = trio.pooler(&more).start();
        let mut clients = match balance {
            "disable" => vec![reader(&trio, &howdah)],
            _ => readers(&trio, &howdah, 3),
        };
        let rounds = 300 / clients.len();
        let counts = shares(&mut clients, rounds);
        let share = counts.get(&primary).copied().unwrap_or(0);
        assert!(wanted.contains(&share), "{balance} {weight}: {counts:?}");
        assert_eq!(routed(&howdah, "primary", "its share of the reads"), share as u64);
        // Who names a standby gets one, and what a transaction reads on the primary is no write.
        assert!((0..10).all(|_| trio.is_standby(&hinted(&mut clients[0]))), "{balance} {weight}");
    }
}

#[test]
fn reads_of_the_primary_go_on_elsewhere_when_it_is_gone() {
    let trio = Trio::start();
    let more = "read_write_split=intent consistency=eventual primary_read_weight=20";
    let howdah = trio.pooler(more).start();
    let mut clients = readers(&trio, &howdah, 3);
    let primary = trio.primary.port().to_string();
    assert!(shares(&mut clients, 20).contains_key(&primary));
    trio.primary.stop(testkit::StopMode::Immediate);
    eventually(LIMIT, || howdah.admin_value("SHOW NODES", &[("port", &primary)], "state") == "down");
    let counts = shares(&mut clients, 20);
    assert_eq!(counts.values().sum::<usize>(), 60);
    assert!(!counts.contains_key(&primary), "{counts:?}");
}

#[test]
fn what_a_client_reads_on_the_primary_counts_as_no_write_of_its() {
    let trio = Trio::start();
    let howdah = trio.pooler("read_write_split=intent primary_read_weight=1").start();
    let mut clients = readers(&trio, &howdah, 1);
    // Were it one, the standbys would never be fresh enough for who reads without a pause.
    let counts = shares(&mut clients, 300);
    let there: usize = counts.iter().filter(|(port, _)| trio.is_standby(port)).map(|(_, count)| count).sum();
    assert!(there > 150, "{counts:?}");
}
