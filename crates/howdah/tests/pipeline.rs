//! The extended protocol in pipelines: what is answered, in which order, and who has the server meanwhile.
//!
//! Rows P1 to P6, P46, P47, P54 and P55 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{Expected, Oracle, TRANSACTION, Talk, USER, has_full_size, pooler, until_waiting};
use testkit::message::{
    self, bind, describe_portal, describe_statement, execute, flush, function_call, parse, query, rows, sync,
};
use testkit::{Raw, Version};

/// Parse, Bind and Execute without a name.
fn run(sql: &str) -> Vec<u8> {
    message::all(&[parse("", sql, &[]), bind("", "", &[]), execute("", 0)])
}

/// As `run`, with a Describe of the portal.
fn run_described(sql: &str) -> Vec<u8> {
    message::all(&[parse("", sql, &[]), bind("", "", &[]), describe_portal(""), execute("", 0)])
}

// P1

#[test]
fn every_sync_has_its_ready() {
    let oracle = Oracle::new();
    let three = |talk: &mut Talk| {
        talk.send(&[run("select 1"), sync(), run("select 2"), sync(), run("select 3"), sync()]);
        talk.ready(3);
    };
    oracle.agree(three, "1 2 D C(SELECT 1) ZI 1 2 D C(SELECT 1) ZI 1 2 D C(SELECT 1) ZI");
    let bare = |talk: &mut Talk| {
        talk.send(&[sync(), sync(), sync()]);
        talk.ready(3);
    };
    oracle.agree(bare, "ZI ZI ZI");
    let mixed = |talk: &mut Talk| {
        talk.send(&[query("select 1"), run_described("select 2"), sync(), query("select 3"), sync()]);
        talk.ready(4);
    };
    oracle.agree(mixed, "T D C(SELECT 1) ZI 1 2 T D C(SELECT 1) ZI T D C(SELECT 1) ZI ZI");
}

#[test]
fn transaction_may_span_the_syncs_of_one_pipeline() {
    let oracle = Oracle::new();
    let committed = |talk: &mut Talk| {
        talk.send(&[
            run("begin"),
            sync(),
            run("select 1"),
            sync(),
            run("commit"),
            sync(),
            run("select 2"),
            sync(),
        ]);
        talk.ready(4);
    };
    oracle.agree(committed, "1 2 C(BEGIN) ZT 1 2 D C(SELECT 1) ZT 1 2 C(COMMIT) ZI 1 2 D C(SELECT 1) ZI");
    let failed = |talk: &mut Talk| {
        talk.send(&[
            run("begin"),
            sync(),
            run("select 1/0"),
            sync(),
            run("select 1"),
            sync(),
            run("rollback"),
            sync(),
        ]);
        talk.ready(4);
    };
    oracle.agree(failed, "1 2 C(BEGIN) ZT 1 E(22012) ZE E(25P02) ZE 1 2 C(ROLLBACK) ZI");
}

#[test]
fn deep_pipelines_of_many_clients_are_answered_in_order() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "2").start();
    const DEPTH: usize = 3000;
    std::thread::scope(|scope| {
        for client in 0..6 {
            let mut raw = howdah.session(USER, TRANSACTION);
            scope.spawn(move || {
                let of = |number| format!("select '{client}:{number}'");
                let batch = |number| message::all(&[run(&of(number)), sync()]);
                let bytes: Vec<u8> = (0..DEPTH).flat_map(batch).collect();
                let socket =
                    raw.stream().tcp().expect("a TCP connection").try_clone().expect("an open socket");
                let writer = std::thread::spawn(move || std::io::Write::write_all(&mut &socket, &bytes));
                for number in 0..DEPTH {
                    let answer = rows(&raw.until_ready());
                    assert_eq!(answer, [[Some(format!("{client}:{number}"))]]);
                }
                writer.join().expect("the writer ends").expect("everything is sent");
            });
        }
    });
    has_full_size(&howdah, TRANSACTION, 2);
}

// P2 and P6

#[test]
fn flush_brings_the_answers_so_far_and_no_ready() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.send(&[parse("", "select $1::int", &[]), describe_statement(""), flush()]);
        talk.messages(3);
        talk.send(&[bind("", "", &[Some("7")]), execute("", 0), flush()]);
        talk.messages(3);
        talk.ask(&[sync()]);
    };
    oracle.agree(script, "1 t T 2 D C(SELECT 1) ZI");
    let alone = |talk: &mut Talk| {
        talk.send(&[flush(), flush()]);
        talk.ask(&[sync()]);
        talk.ask(&[query("select 1"), flush()]);
    };
    oracle.agree(alone, "ZI T D C(SELECT 1) ZI");
}

#[test]
fn client_that_has_flushed_keeps_its_server() {
    let howdah = pooler(Version::wanted()).start();
    let mut first = howdah.session(USER, TRANSACTION);
    let mut second = howdah.session(USER, TRANSACTION);
    first.send(message::all(&[parse("", "select 'first'", &[]), describe_statement(""), flush()]));
    for letter in ["1", "t", "T"] {
        assert_eq!(first.recv().letter(), letter);
    }
    second.send(query("select 'second'"));
    until_waiting(&howdah, TRANSACTION, 1);
    first.send(message::all(&[bind("", "", &[]), execute("", 0), flush()]));
    for letter in ["2", "D", "C(SELECT 1)"] {
        assert_eq!(first.recv().letter(), letter);
    }
    until_waiting(&howdah, TRANSACTION, 1);
    assert_eq!(first.ask(sync()), "ZI");
    assert_eq!(second.answers(1), "T D C(SELECT 1) ZI");
}

// P3

#[test]
fn error_skips_to_its_sync_and_the_next_batch_works() {
    let oracle = Oracle::new();
    let at_bind = |talk: &mut Talk| {
        talk.send(&[parse("", "select $1::int", &[]), bind("", "", &[Some("x")]), execute("", 0), sync()]);
        talk.send(&[run("select 1"), sync()]);
        talk.ready(2);
    };
    oracle.agree(at_bind, "1 E(22P02) ZI 1 2 D C(SELECT 1) ZI");
    let at_parse = |talk: &mut Talk| {
        talk.send(&[parse("s", "selec", &[]), describe_statement("s"), bind("", "s", &[]), execute("", 0)]);
        talk.send(&[parse("t", "select 1", &[]), flush(), sync(), sync(), run("select 2"), sync()]);
        talk.ready(3);
    };
    oracle.agree(at_parse, "E(42601) ZI ZI 1 2 D C(SELECT 1) ZI");
    let at_execute = |talk: &mut Talk| {
        talk.send(&[run("select 1/(3 - n) from generate_series(1, 3) n"), run("select 1"), sync()]);
        talk.send(&[run("select 2"), sync()]);
        talk.ready(2);
    };
    oracle.agree(at_execute, "1 2 D D E(22012) ZI 1 2 D C(SELECT 1) ZI");
    let at_describe = |talk: &mut Talk| {
        talk.send(&[describe_portal("nothing"), run("select 1"), sync()]);
        talk.send(&[describe_statement(""), sync(), query("select 1")]);
        talk.ready(3);
    };
    oracle.agree(at_describe, "E(34000) ZI E(26000) ZI T D C(SELECT 1) ZI");
}

#[test]
fn error_undoes_the_whole_implicit_transaction() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.ask(&[query("create temp table kept (n int)")]);
        talk.ask(&[run("insert into kept values (1)"), run("insert into kept values (1/0)"), sync()]);
        talk.ask(&[query("select count(*) from kept")]);
        talk.ask(&[query("drop table kept")]);
    };
    let expected = "C(CREATE TABLE) ZI 1 2 C(INSERT 0 1) 1 E(22012) ZI T D C(SELECT 1) ZI C(DROP TABLE) ZI";
    oracle.agree(script, expected);
}

// P4

#[test]
fn query_and_function_call_after_an_error_are_skipped_too() {
    let oracle = Oracle::new();
    let with_query = |talk: &mut Talk| {
        talk.send(&[run("select 1/0"), query("select 2"), flush()]);
        talk.messages(2);
        talk.ask(&[query("select 3"), sync()]);
        talk.ask(&[query("select 4")]);
    };
    oracle.agree(with_query, "1 E(22012) ZI T D C(SELECT 1) ZI");
    let with_call = |talk: &mut Talk| {
        talk.send(&[run("select 1/0"), function_call(177, &[Some("2"), Some("3")]), sync()]);
        talk.send(&[function_call(177, &[Some("2"), Some("3")])]);
        talk.ready(2);
    };
    oracle.agree(with_call, "1 E(22012) ZI V ZI");
}

// P5

#[test]
fn query_after_a_batch_without_sync_ends_the_batch() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.ask(&[run("select 1"), query("select 2")]);
        talk.ask(&[sync()]);
    };
    // PostgreSQL 18 answers the next query of such a session with XX000: that must not be another client's.
    oracle.agree_at_a_cost(
        script,
        Expected("1 2 D C(SELECT 1) T D C(SELECT 1) ZI ZI", "1 2 D C(SELECT 1) T D C(SELECT 1) ZT ZI"),
    );
}

// P46

#[test]
fn unnamed_statement_ends_with_the_next_one_or_a_query() {
    let oracle = Oracle::new();
    let by_parse = |talk: &mut Talk| {
        talk.ask(&[
            parse("", "select 1, 2", &[]),
            parse("", "select 3", &[]),
            bind("", "", &[]),
            execute("", 0),
            sync(),
        ]);
    };
    oracle.agree(by_parse, "1 1 2 D C(SELECT 1) ZI");
    let by_query = |talk: &mut Talk| {
        talk.ask(&[parse("", "select 1", &[]), sync()]);
        talk.ask(&[bind("", "", &[]), execute("", 0), sync()]);
        talk.ask(&[query("select 2")]);
        talk.ask(&[bind("", "", &[]), execute("", 0), sync()]);
    };
    oracle.agree(by_query, "1 ZI 2 D C(SELECT 1) ZI T D C(SELECT 1) ZI E(26000) ZI");
    let by_failed_parse = |talk: &mut Talk| {
        talk.ask(&[parse("", "select 1", &[]), sync()]);
        talk.ask(&[parse("", "selec", &[]), sync()]);
        talk.ask(&[bind("", "", &[]), execute("", 0), sync()]);
    };
    oracle.agree(by_failed_parse, "1 ZI E(42601) ZI E(26000) ZI");
    let by_close = |talk: &mut Talk| {
        talk.ask(&[parse("", "select 1", &[]), message::close_statement(""), sync()]);
        talk.ask(&[bind("", "", &[]), sync()]);
    };
    oracle.agree(by_close, "1 3 ZI E(26000) ZI");
}

#[test]
fn portal_ends_at_the_sync_outside_a_transaction() {
    let oracle = Oracle::new();
    let outside = |talk: &mut Talk| {
        talk.ask(&[
            parse("", "select generate_series(1, 5)", &[]),
            bind("p", "", &[]),
            execute("p", 2),
            sync(),
        ]);
        talk.ask(&[execute("p", 2), sync()]);
    };
    oracle.agree(outside, "1 2 D D s ZI E(34000) ZI");
    let inside = |talk: &mut Talk| {
        talk.ask(&[query("begin")]);
        talk.ask(&[
            parse("", "select generate_series(1, 5)", &[]),
            bind("p", "", &[]),
            execute("p", 2),
            sync(),
        ]);
        talk.ask(&[execute("p", 2), sync()]);
        talk.ask(&[bind("p", "", &[]), sync()]);
        talk.ask(&[query("rollback")]);
    };
    oracle.agree(inside, "C(BEGIN) ZT 1 2 D D s ZT D D s ZT E(42P03) ZE C(ROLLBACK) ZI");
}

// P47

#[test]
fn suspended_portal_goes_on_until_the_sync() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.send(&[
            parse("", "select generate_series(1, 5)", &[]),
            bind("", "", &[]),
            execute("", 2),
            flush(),
        ]);
        talk.messages(5);
        talk.send(&[execute("", 2), flush()]);
        talk.messages(3);
        talk.ask(&[execute("", 2), execute("", 2), sync()]);
    };
    oracle.agree(script, "1 2 D D s D D s D C(SELECT 1) C(SELECT 0) ZI");
    let two = |talk: &mut Talk| {
        talk.send(&[parse("", "select generate_series(1, 2)", &[]), bind("a", "", &[]), bind("b", "", &[])]);
        talk.ask(&[
            execute("a", 1),
            execute("b", 1),
            execute("a", 1),
            execute("b", 1),
            message::close_portal("a"),
            sync(),
        ]);
    };
    oracle.agree(two, "1 2 2 D s D s D s D s 3 ZI");
}

// P54

#[test]
fn function_call_is_one_answer() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.ask(&[function_call(177, &[Some("2"), Some("3")])]);
        talk.ask(&[function_call(1, &[])]);
        talk.send(&[
            function_call(177, &[Some("2"), Some("x")]),
            function_call(177, &[Some("4"), Some("5")]),
        ]);
        talk.ready(2);
    };
    oracle.agree(script, "V ZI E(42883) ZI E(22P02) ZI V ZI");
}

// P55

#[test]
fn server_is_kept_through_a_transaction_and_its_failure() {
    let howdah = pooler(Version::wanted()).start();
    let mut holder = howdah.session(USER, TRANSACTION);
    let mut other = howdah.session(USER, TRANSACTION);
    assert_eq!(holder.ask(query("begin")), "C(BEGIN) ZT");
    other.send(query("select 'other'"));
    until_waiting(&howdah, TRANSACTION, 1);
    assert_eq!(holder.ask(query("select 1/0")), "E(22012) ZE");
    assert_eq!(holder.ask(message::all(&[run("select 1"), sync()])), "E(25P02) ZE");
    until_waiting(&howdah, TRANSACTION, 1);
    assert_eq!(holder.ask(query("rollback")), "C(ROLLBACK) ZI");
    assert_eq!(rows(&other.until_ready()), [[Some("other".to_owned())]]);
}

#[test]
fn statements_between_transactions_may_go_to_any_server() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "3").start();
    let mut clients: Vec<Raw> = (0..9).map(|_| howdah.session(USER, TRANSACTION)).collect();
    for round in 0..200 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(message::all(&[run(&format!("select {}", number * 1000 + round)), sync()]));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(rows(&client.until_ready()), [[Some((number * 1000 + round).to_string())]]);
        }
    }
    has_full_size(&howdah, TRANSACTION, 3);
}
