//! Messages as such: the simple protocol, what a server says unasked, goodbyes, and frames that are none.
//!
//! Rows P12 to P14, P16, P25 to P27 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests wait

mod oracle;

use oracle::{Oracle, SESSION, TRANSACTION, Talk, USER, pooler, pooler_to, until_waiting};
use testkit::message::{
    self, bind, copy_data, describe_statement, execute, flush, message_of_length, parse, query, sync,
    terminate,
};
use testkit::{FakeServer, Howdah, Version, eventually, reply};

fn extended(sql: &str) -> Vec<u8> {
    message::all(&[parse("", sql, &[]), bind("", "", &[]), execute("", 0)])
}

// P12

#[test]
fn one_query_may_have_many_statements() {
    let oracle = Oracle::new();
    let whole = |talk: &mut Talk| talk.ask(&[query("begin; select 1; commit; select 2")]);
    oracle.agree(whole, "C(BEGIN) T D C(SELECT 1) C(COMMIT) T D C(SELECT 1) ZI");
    let open = |talk: &mut Talk| {
        talk.ask(&[query("select 1; begin; select 2")]);
        talk.ask(&[query("select 3; rollback; select 4")]);
    };
    oracle.agree(
        open,
        "T D C(SELECT 1) C(BEGIN) T D C(SELECT 1) ZT T D C(SELECT 1) C(ROLLBACK) T D C(SELECT 1) ZI",
    );
    let failed = |talk: &mut Talk| {
        talk.ask(&[query("select 1; select 1/0; select 2")]);
        talk.ask(&[query("begin; select 1/0; commit")]);
        talk.ask(&[query("commit; select 1")]);
    };
    oracle.agree(failed, "T D C(SELECT 1) E(22012) ZI C(BEGIN) E(22012) ZE C(ROLLBACK) T D C(SELECT 1) ZI");
    let chained = |talk: &mut Talk| {
        talk.ask(&[query("begin; commit and chain")]);
        talk.ask(&[query("rollback and chain")]);
        talk.ask(&[query("savepoint a; select 1/0")]);
        talk.ask(&[query("rollback to a")]);
        talk.ask(&[query("commit")]);
    };
    oracle.agree(
        chained,
        "C(BEGIN) C(COMMIT) ZT C(ROLLBACK) ZT C(SAVEPOINT) E(22012) ZE C(ROLLBACK) ZT C(COMMIT) ZI",
    );
}

// P13

#[test]
fn empty_queries_have_an_answer_of_their_own() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        for text in ["", ";;", " -- nothing\n", "/* nothing */;"] {
            talk.ask(&[query(text)]);
        }
        talk.ask(&[extended(""), sync()]);
        talk.ask(&[parse("", "", &[]), describe_statement(""), sync()]);
    };
    oracle.agree(script, "I ZI I ZI I ZI I ZI 1 2 I ZI 1 t n ZI");
}

// P14

#[test]
fn notices_come_where_the_server_says_them() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.ask(&[query("do $$ begin raise notice 'one'; raise warning 'two'; end $$; select 1")]);
        talk.ask(&[extended("do $$ begin raise notice 'three'; end $$"), sync()]);
        talk.ask(&[query("set client_min_messages = 'log'; reset client_min_messages; commit")]);
    };
    oracle.agree(
        script,
        "N(00000) N(01000) C(DO) T D C(SELECT 1) ZI 1 2 N(00000) C(DO) ZI C(SET) C(RESET) N(25P01) C(COMMIT) ZI",
    );
}

#[test]
fn notice_at_a_servers_login_is_nobodys_answer() {
    let server = FakeServer::start(|session| {
        session.startup()?;
        session.send(&reply::authentication_ok())?;
        session.send(&reply::notice("welcome to this server"))?;
        session.send(&reply::backend_key_data(session.number, b"key!"))?;
        session.send(&reply::ready(b'I'))?;
        loop {
            if session.recv()?.tag == b'Q' {
                session.send(&reply::one_value("1"))?;
            }
        }
    });
    let howdah = pooler_to(&server.connection("any")).start();
    for _ in 0..3 {
        let mut client = howdah.session(USER, TRANSACTION);
        assert_eq!(client.ask(query("select 1")), "T D C(SELECT 1) ZI");
    }
}

// P16

#[test]
fn notifications_reach_the_session_that_listens() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.ask(&[query("listen oracle_p16")]);
        talk.ask(&[query("notify oracle_p16, 'x'")]);
        talk.ask(&[query("begin; notify oracle_p16, 'y'; select 1")]);
        talk.ask(&[query("commit")]);
        talk.ask(&[query("unlisten *; notify oracle_p16, 'z'")]);
    };
    let expected = "C(LISTEN) ZI C(NOTIFY) A(oracle_p16) ZI C(BEGIN) C(NOTIFY) T D C(SELECT 1) ZT \
                    C(COMMIT) A(oracle_p16) ZI C(UNLISTEN) C(NOTIFY) ZI";
    oracle.agree(script, expected);
}

#[test]
fn idle_session_hears_what_others_notify() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "2").start();
    let mut ears = howdah.session(USER, SESSION);
    ears.sql("listen session_ears");
    let mut mouth = howdah.session(USER, SESSION);
    mouth.sql("notify session_ears, 'hello'");
    let heard = ears.recv();
    assert_eq!(heard.letter(), "A(session_ears)");
    assert!(heard.body.ends_with(b"hello\0"));
    assert_eq!(ears.value("select 1"), "1");
}

// P25

#[test]
fn goodbye_is_said_at_any_point() {
    let oracle = Oracle::new();
    let after_nothing = |talk: &mut Talk| {
        talk.send(&[terminate()]);
        talk.end();
    };
    oracle.agree(after_nothing, "EOF");
    let in_skip_mode = |talk: &mut Talk| {
        talk.send(&[parse("", "selec", &[]), flush()]);
        talk.messages(1);
        talk.send(&[terminate()]);
        talk.end();
    };
    oracle.agree_at_a_cost(in_skip_mode, "E(42601) EOF");
    let in_transaction = |talk: &mut Talk| {
        talk.ask(&[query("begin; select 1")]);
        talk.send(&[terminate()]);
        talk.end();
    };
    oracle.agree_at_a_cost(in_transaction, "C(BEGIN) T D C(SELECT 1) ZT EOF");
    let in_failed_transaction = |talk: &mut Talk| {
        talk.ask(&[query("begin; select 1/0")]);
        talk.send(&[terminate()]);
        talk.end();
    };
    oracle.agree_at_a_cost(in_failed_transaction, "C(BEGIN) E(22012) ZE EOF");
    let in_half_a_batch = |talk: &mut Talk| {
        talk.send(&[extended("select 1"), flush()]);
        talk.messages(4);
        talk.send(&[terminate()]);
        talk.end();
    };
    oracle.agree_at_a_cost(in_half_a_batch, "1 2 D C(SELECT 1) EOF");
    let with_more_behind_it = |talk: &mut Talk| {
        talk.send(&[terminate(), query("select 1")]);
        talk.end();
    };
    oracle.agree(with_more_behind_it, "EOF");
}

#[test]
fn what_was_asked_before_the_goodbye_is_done() {
    let oracle = Oracle::new();
    let answered = |talk: &mut Talk| {
        talk.send(&[query("select 1"), extended("select 2"), sync(), terminate()]);
        talk.end();
    };
    oracle.agree(answered, "T D C(SELECT 1) ZI 1 2 D C(SELECT 1) ZI EOF");
    let server = oracle::fresh_database(Version::wanted(), "goodbye");
    server.session("goodbye").sql("create table t (n int)");
    let howdah = pooler_to(&server.connection("goodbye")).start();
    let mut client = howdah.session(USER, TRANSACTION);
    client.send(message::all(&[query("insert into t select 1 from pg_sleep(0.05)"), terminate()]));
    drop(client);
    let mut next = howdah.session(USER, TRANSACTION);
    eventually(oracle::LIMIT, || next.value("select count(*) from t") == "1");
}

// P26 and P27

/// A client sends such bytes, hears an error or nothing, and is closed; nobody else notices.
#[track_caller]
fn check_bad_frame(howdah: &Howdah, bytes: &[u8]) {
    let shown = bytes[..bytes.len().min(12)].escape_ascii().to_string();
    let mut other = howdah.session(USER, TRANSACTION);
    let pid = other.value("select pg_backend_pid()");
    let mut bad = howdah.session(USER, TRANSACTION);
    assert_eq!(bad.ask(query("select 1")), "T D C(SELECT 1) ZI");
    // It may be closed before all is written.
    let _ = bad.try_send(bytes);
    let end = bad.expect_closed();
    assert!(end.is_empty() || end == "E(08P01)", "{shown}: {end}");
    assert_eq!(other.value("select pg_backend_pid()"), pid, "{shown} has cost a server");
}

#[test]
fn impossible_lengths_close_only_their_sender() {
    let howdah = pooler(Version::wanted()).start();
    for tag in *b"QPBDECSHFdcfp" {
        for length in [0, 3, -1, -5, i32::MIN, i32::MAX] {
            check_bad_frame(&howdah, &message_of_length(tag, length, b"select 1\0"));
        }
    }
}

#[test]
fn small_messages_may_not_be_large() {
    let howdah = pooler(Version::wanted()).start();
    for tag in *b"DECSHcf" {
        check_bad_frame(&howdah, &message_of_length(tag, 20_000, &[0; 100]));
    }
    check_bad_frame(&howdah, &message_of_length(b'X', 20_000, &[0; 100]));
}

#[test]
fn unknown_types_close_only_their_sender() {
    let howdah = pooler(Version::wanted()).start();
    for tag in (0..=255_u8).filter(|tag| !b"QPBDECSHXFdcf".contains(tag)) {
        check_bad_frame(&howdah, &message::message(tag, b"x\0"));
    }
    check_bad_frame(&howdah, b"GET / HTTP/1.1\r\n\r\n");
}

#[test]
fn bad_frame_inside_a_transaction_leaves_nothing_behind() {
    let howdah = pooler(Version::wanted()).start();
    for bad in
        [message_of_length(b'Q', 3, b""), message_of_length(b'S', 20_000, &[0; 10]), b"!\0\0\0\x04".to_vec()]
    {
        let mut client = howdah.session(USER, TRANSACTION);
        assert_eq!(client.ask(query("begin; create temp table half (n int)")), "C(BEGIN) C(CREATE TABLE) ZT");
        let mut waiting = howdah.session(USER, TRANSACTION);
        waiting.send(query("create temp table half (n int)"));
        until_waiting(&howdah, TRANSACTION, 1);
        client.send(bad);
        client.expect_closed();
        assert_eq!(waiting.answers(1), "C(CREATE TABLE) ZI");
        assert_eq!(waiting.ask(query("drop table half")), "C(DROP TABLE) ZI");
    }
}

#[test]
fn bodies_that_do_not_fit_are_errors() {
    let howdah = pooler(Version::wanted()).start();
    let mut other = howdah.session(USER, TRANSACTION);
    let pid = other.value("select pg_backend_pid()");
    let bodies: [(u8, &[u8]); 17] = [
        (b'Q', b""),
        (b'Q', b"select 1"),
        (b'P', b""),
        (b'P', b"name"),
        (b'P', b"name\0select 1"),
        (b'P', b"name\0select 1\0\0\x05"),
        (b'B', b""),
        (b'B', b"portal\0"),
        (b'B', b"\0\0\0\x01"),
        (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff"),
        (b'D', b""),
        (b'D', b"X\0"),
        (b'D', b"Sname"),
        (b'C', b"X\0"),
        (b'E', b"\0\0"),
        (b'F', b"\0\0\0\xb1\0"),
        (b'F', b""),
    ];
    for (tag, body) in bodies {
        let shown = format!("{} {}", char::from(tag), body.escape_ascii());
        let mut client = howdah.session(USER, TRANSACTION);
        client.send(message::all(&[message::message(tag, body), sync()]));
        let heard = client.answers(if b"QF".contains(&tag) { 2 } else { 1 });
        // Of an unnamed statement that does not exist PostgreSQL may complain first.
        let is_right = heard.starts_with("E(08P01)") || heard.starts_with("E(26000)");
        assert!(is_right, "{shown}: {heard}");
        drop(client);
        assert_eq!(other.value("select pg_backend_pid()"), pid, "{shown} has cost a server");
    }
}

// P24, the smallest part of it: a message that is not whole

#[test]
fn half_a_message_holds_no_server() {
    let howdah = pooler(Version::wanted()).start();
    let whole = message::all(&[extended("select 'whole'"), sync()]);
    let mut other = howdah.session(USER, TRANSACTION);
    for cut in 1..whole.len() {
        // Up to the first whole message the client holds nothing; behind it it holds a server for its batch.
        let holds = cut >= parse("", "select 'whole'", &[]).len();
        let mut slow = howdah.session(USER, TRANSACTION);
        slow.send(&whole[..cut]);
        if !holds {
            assert_eq!(other.value("select 'other'"), "other");
        }
        slow.send(&whole[cut..]);
        assert_eq!(slow.answers(1), "1 2 D C(SELECT 1) ZI", "cut at {cut}");
    }
    let mut gone = howdah.session(USER, TRANSACTION);
    gone.send(&query("select 'never'")[..9]);
    gone.half_close();
    gone.expect_closed();
    let mut late = howdah.session(USER, TRANSACTION);
    late.send(&copy_data(b"late")[..6]);
    assert_eq!(other.value("select 'other'"), "other");
    late.reset();
}
