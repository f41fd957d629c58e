//! COPY in both directions and by both protocols, with everything that may come too early or too late.
//!
//! Rows P7 to P9 and P11 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{
    Oracle, TRANSACTION, Talk, USER, fresh_database, has_full_size, pooler, pooler_to, until_waiting,
};
use testkit::message::{
    self, bind, copy_data, copy_done, copy_fail, execute, flush, parse, query, sync, terminate,
};
use testkit::{Version, eventually};

/// A temporary table for the length of one transaction, which is all that a pooled server has.
const TABLE: &str = "begin; create temp table t (v int) on commit drop";
const COPY_IN: &str = "copy t from stdin";
const COPY_OUT: &str = "copy t to stdout";

fn extended(sql: &str) -> Vec<u8> {
    message::all(&[parse("", sql, &[]), bind("", "", &[]), execute("", 0)])
}

/// Runs a script within a transaction that has a table `t`, and rolls it back.
fn with_table(script: impl Fn(&mut Talk)) -> impl Fn(&mut Talk) {
    move |talk| {
        talk.ask(&[query(TABLE)]);
        script(talk);
        talk.ask(&[query("rollback")]);
    }
}

// P7

#[test]
fn copy_in_ends_well_or_as_the_client_says() {
    let oracle = Oracle::new();
    let done = with_table(|talk| {
        talk.send(&[query(COPY_IN)]);
        talk.messages(1);
        talk.ask(&[copy_data(b"1\n2"), copy_data(b"\n3\n"), copy_data(b""), copy_done()]);
        talk.ask(&[query("select sum(v) from t")]);
    });
    oracle.agree(done, "C(BEGIN) C(CREATE TABLE) ZT G C(COPY 3) ZT T D C(SELECT 1) ZT C(ROLLBACK) ZI");
    let at_once = with_table(|talk| talk.ask(&[query(COPY_IN), copy_data(b"1\n"), copy_done()]));
    oracle.agree(at_once, "C(BEGIN) C(CREATE TABLE) ZT G C(COPY 1) ZT C(ROLLBACK) ZI");
    let failed = with_table(|talk| {
        talk.ask(&[query(COPY_IN), copy_data(b"1\n"), copy_fail("the client has changed its mind")]);
    });
    oracle.agree(failed, "C(BEGIN) C(CREATE TABLE) ZT G E(57014) ZE C(ROLLBACK) ZI");
}

#[test]
fn data_behind_an_error_is_dropped() {
    let oracle = Oracle::new();
    let by_query = with_table(|talk| {
        talk.ask(&[query(COPY_IN), copy_data(b"x\n"), copy_data(b"1\n"), copy_data(b"2\n"), copy_done()]);
        talk.ask(&[query("rollback; begin; select 1")]);
    });
    let expected =
        "C(BEGIN) C(CREATE TABLE) ZT G E(22P02) ZE C(ROLLBACK) C(BEGIN) T D C(SELECT 1) ZT C(ROLLBACK) ZI";
    oracle.agree(by_query, expected);
    // Outside a transaction the server is free at its error, while data for it is still to come.
    let late = |talk: &mut Talk| {
        talk.ask(&[query("copy (select 1) from stdin")]);
        talk.ask(&[query("copy pg_no_such_table from stdin"), copy_data(b"1\n")]);
        talk.send(&[copy_data(b"2\n"), copy_done(), copy_done(), copy_fail("")]);
        talk.ask(&[query("select 1")]);
    };
    oracle.agree(late, "E(42601) ZI E(42P01) ZI T D C(SELECT 1) ZI");
}

#[test]
fn late_data_does_not_pin_a_server() {
    let server = fresh_database(Version::wanted(), "copy_late");
    server.session("copy_late").sql("create table t (v int)");
    let howdah = pooler_to(&server.connection("copy_late")).start();
    let mut clients: Vec<_> = (0..4).map(|_| howdah.session(USER, TRANSACTION)).collect();
    for client in &mut clients {
        assert_eq!(client.ask(message::all(&[query(COPY_IN), copy_data(b"x\n")])), "G E(22P02) ZI");
    }
    for client in &mut clients {
        client.send(message::all(&[copy_data(b"1\n"), copy_done()]));
    }
    // All of them have sent their late data, and none has said what it wants next.
    has_full_size(&howdah, TRANSACTION, 1);
    for client in &mut clients {
        assert_eq!(client.value("select count(*) from t"), "0");
    }
}

#[test]
fn copy_out_streams_and_may_fail_on_the_way() {
    let oracle = Oracle::new();
    let simple = |talk: &mut Talk| talk.ask(&[query("copy (select generate_series(1, 20)) to stdout")]);
    oracle.agree(simple, "H d*20 c C(COPY 20) ZI");
    let by_extended =
        |talk: &mut Talk| talk.ask(&[extended("copy (select generate_series(1, 3)) to stdout"), sync()]);
    oracle.agree(by_extended, "1 2 H d d d c C(COPY 3) ZI");
    let fails = |talk: &mut Talk| {
        talk.ask(&[query("copy (select 1 / (3 - n) from generate_series(1, 5) n) to stdout")]);
        talk.ask(&[extended("copy (select 1 / (3 - n) from generate_series(1, 5) n) to stdout"), sync()]);
    };
    oracle.agree(fails, "H d d E(22012) ZI 1 2 H d d E(22012) ZI");
}

#[test]
fn copy_may_stand_beside_other_statements() {
    let oracle = Oracle::new();
    let script = with_table(|talk| {
        talk.ask(&[
            query("copy t from stdin; select sum(v) from t; copy t to stdout; select 1"),
            copy_data(b"1\n2\n"),
            copy_done(),
        ]);
        talk.ask(&[
            query("copy t from stdin; copy t from stdin"),
            copy_data(b"3\n"),
            copy_done(),
            copy_data(b"4\n"),
            copy_done(),
        ]);
        talk.ask(&[query(COPY_OUT)]);
    });
    oracle.agree(
        script,
        "C(BEGIN) C(CREATE TABLE) ZT G C(COPY 2) T D C(SELECT 1) H d d c C(COPY 2) T D C(SELECT 1) ZT \
         G C(COPY 1) G C(COPY 1) ZT H d d d d c C(COPY 4) ZT C(ROLLBACK) ZI",
    );
}

// P8

#[test]
fn sync_inside_copy_is_not_answered() {
    let oracle = Oracle::new();
    let script = with_table(|talk| {
        talk.send(&[extended(COPY_IN), flush()]);
        talk.messages(3);
        talk.ask(&[copy_data(b"1\n"), sync(), flush(), copy_data(b"2\n"), copy_done(), sync()]);
    });
    oracle.agree(script, "C(BEGIN) C(CREATE TABLE) ZT 1 2 G C(COPY 2) ZT C(ROLLBACK) ZI");
    let at_once = with_table(|talk| {
        talk.ask(&[extended(COPY_IN), sync(), copy_data(b"1\n"), copy_done(), sync()]);
        talk.ask(&[query(COPY_OUT)]);
    });
    let expected = "C(BEGIN) C(CREATE TABLE) ZT 1 2 G C(COPY 1) ZT H d c C(COPY 1) ZT C(ROLLBACK) ZI";
    oracle.agree(at_once, expected);
}

#[test]
fn sync_before_an_error_in_copy_may_be_eaten() {
    let oracle = Oracle::new();
    // Eaten: the copy has begun, and reads it.
    let eaten = with_table(|talk| {
        talk.send(&[extended(COPY_IN), flush()]);
        talk.messages(3);
        talk.ask(&[sync(), copy_data(b"x\n"), copy_data(b"1\n"), copy_done(), sync()]);
    });
    oracle.agree(eaten, "C(BEGIN) C(CREATE TABLE) ZT 1 2 G E(22P02) ZE C(ROLLBACK) ZI");
    // Not eaten: the copy never begins.
    let answered = |talk: &mut Talk| {
        talk.send(&[
            extended("copy pg_no_such_table from stdin"),
            sync(),
            copy_data(b"1\n"),
            copy_done(),
            sync(),
        ]);
        talk.ready(2);
        talk.ask(&[query("select 1")]);
    };
    oracle.agree(answered, "1 2 E(42P01) ZI ZI T D C(SELECT 1) ZI");
    let by_fail = with_table(|talk| {
        talk.send(&[extended(COPY_IN), sync(), copy_fail("no"), sync()]);
        talk.ready(1);
    });
    oracle.agree(by_fail, "C(BEGIN) C(CREATE TABLE) ZT 1 2 G E(57014) ZE C(ROLLBACK) ZI");
}

#[test]
fn server_is_free_after_a_copy_whose_sync_was_eaten() {
    let server = fresh_database(Version::wanted(), "copy_eaten");
    server.session("copy_eaten").sql("create table t (v int)");
    let howdah = pooler_to(&server.connection("copy_eaten")).start();
    let mut client = howdah.session(USER, TRANSACTION);
    for _ in 0..20 {
        let parts = [extended(COPY_IN), sync(), copy_data(b"x\n"), copy_done(), sync()];
        assert_eq!(client.ask(message::all(&parts)), "1 2 G E(22P02) ZI");
        has_full_size(&howdah, TRANSACTION, 1);
        let parts = [extended(COPY_IN), sync(), copy_data(b"1\n"), copy_done(), sync()];
        assert_eq!(client.ask(message::all(&parts)), "1 2 G C(COPY 1) ZI");
        has_full_size(&howdah, TRANSACTION, 1);
    }
}

// P9

#[test]
fn query_during_copy_in_ends_the_session() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.ask(&[query(TABLE)]);
        talk.send(&[query(COPY_IN)]);
        talk.messages(1);
        talk.send(&[query("select 1")]);
        talk.end();
    };
    oracle.agree_at_a_cost(script, "C(BEGIN) C(CREATE TABLE) ZT G E(08P01) E(08P01) EOF");
}

// P11

#[test]
fn copy_messages_outside_copy_are_ignored() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.send(&[copy_data(b"1\n"), copy_done(), copy_fail("what"), copy_data(b"")]);
        talk.ask(&[query("select 1")]);
        talk.ask(&[copy_done(), extended("select 2"), copy_fail("x"), sync(), copy_done()]);
        talk.ask(&[query("begin"), copy_data(b"1")]);
        talk.ask(&[copy_done(), query("commit")]);
        talk.send(&[copy_data(b"x"), terminate()]);
        talk.end();
    };
    let expected = "T D C(SELECT 1) ZI 1 2 D C(SELECT 1) ZI C(BEGIN) ZT C(COMMIT) ZI EOF";
    oracle.agree(script, expected);
}

// P22 and P7 together

#[test]
fn client_that_goes_during_copy_leaves_nothing_behind() {
    let server = fresh_database(Version::wanted(), "copy_gone");
    server.session("copy_gone").sql("create table t (v int)");
    let howdah = pooler_to(&server.connection("copy_gone")).start();
    for round in 0..6 {
        let mut client = howdah.session(USER, TRANSACTION);
        client.send(message::all(&[query(COPY_IN), copy_data(b"1\n")]));
        assert_eq!(client.recv().letter(), "G");
        match round % 3 {
            0 => client.reset(),
            1 => client.close(),
            _ => drop(client),
        }
        let mut next = howdah.session(USER, TRANSACTION);
        assert_eq!(next.value("select count(*) from t"), "0");
        eventually(oracle::LIMIT, || server.sessions_in("copy_gone") == 1);
    }
}

#[test]
fn client_in_copy_holds_its_server() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    assert_eq!(client.ask(query(TABLE)), "C(BEGIN) C(CREATE TABLE) ZT");
    client.send(query(COPY_IN));
    assert_eq!(client.recv().letter(), "G");
    other.send(query("select 1"));
    until_waiting(&howdah, TRANSACTION, 1);
    assert_eq!(client.ask(message::all(&[copy_data(b"1\n"), copy_done()])), "C(COPY 1) ZT");
    assert_eq!(client.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(other.answers(1), "T D C(SELECT 1) ZI");
}
