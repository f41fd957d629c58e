//! Prepared statements: names are the client's, servers are anybody's, and every answer is the one that
//! PostgreSQL alone would give.
//!
//! Rows P39 to P48, without P45, of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{Expected, Oracle, SESSION, TRANSACTION, Talk, USER, has_full_size, pooler};
use testkit::message::{
    all, bind, close_portal, close_statement, describe_portal, describe_statement, execute, flush, parse,
    query, rows, sync,
};
use testkit::{Howdah, Raw, Version};

const INT: u32 = 23;
const TEXT: u32 = 25;

/// Bind and Execute of a named statement without parameters.
fn run(name: &str) -> Vec<u8> {
    all(&[bind("", name, &[]), execute("", 0)])
}

/// Binds a statement, runs it, and returns the first value of what came.
#[track_caller]
fn value(client: &mut Raw, name: &str, parameters: &[Option<&str>]) -> String {
    client.send(all(&[bind("", name, parameters), execute("", 0), sync()]));
    let messages = client.until_ready();
    let rows = rows(&messages);
    let first = rows.first().and_then(|row| row[0].clone());
    first.unwrap_or_else(|| panic!("{}", testkit::letters(&messages)))
}

#[track_caller]
fn prepare(client: &mut Raw, name: &str, sql: &str) {
    assert_eq!(client.ask(all(&[parse(name, sql, &[]), sync()])), "1 ZI");
}

// P39

#[test]
fn sql_and_protocol_share_their_names() {
    let oracle = Oracle::new();
    let sql_then_protocol = |talk: &mut Talk| {
        talk.ask(&[query("begin; prepare q1 as select 1")]);
        talk.ask(&[describe_statement("q1"), run("q1"), sync()]);
        talk.ask(&[query("deallocate q1; commit")]);
    };
    let expected = "C(BEGIN) C(PREPARE) ZT t T 2 D C(SELECT 1) ZT C(DEALLOCATE) C(COMMIT) ZI";
    oracle.agree(sql_then_protocol, expected);
    let deallocated = |talk: &mut Talk| {
        talk.ask(&[parse("n", "select 1", &[]), sync()]);
        talk.ask(&[query("deallocate n")]);
        talk.ask(&[run("n"), sync()]);
        talk.ask(&[parse("n", "select 2", &[]), run("n"), close_statement("n"), sync()]);
        talk.ask(&[query("deallocate n")]);
    };
    oracle.agree(deallocated, "1 ZI C(DEALLOCATE) ZI E(26000) ZI 1 2 D C(SELECT 1) 3 ZI E(26000) ZI");
    let quoted = |talk: &mut Talk| {
        talk.ask(&[parse("A b", "select 1", &[]), parse("low", "select 2", &[]), sync()]);
        talk.ask(&[query("DEALLOCATE PREPARE \"A b\"")]);
        talk.ask(&[run("A b"), sync()]);
        talk.ask(&[query("deallocate LOW;")]);
        talk.ask(&[run("low"), sync()]);
    };
    oracle.agree(quoted, "1 1 ZI C(DEALLOCATE) ZI E(26000) ZI C(DEALLOCATE) ZI E(26000) ZI");
}

// P40

#[test]
fn misused_names_are_errors_and_the_session_lives() {
    let oracle = Oracle::new();
    let duplicate = |talk: &mut Talk| {
        talk.ask(&[parse("s", "select 1", &[]), sync()]);
        talk.ask(&[parse("s", "select 2", &[]), run("s"), sync()]);
        talk.ask(&[run("s"), sync()]);
        talk.ask(&[parse("s", "select 1", &[]), parse("t", "select 2", &[]), sync(), run("t"), sync()]);
        talk.ready(1);
        talk.ask(&[close_statement("s"), sync()]);
    };
    oracle.agree(duplicate, "1 ZI E(42P05) ZI 2 D C(SELECT 1) ZI E(42P05) ZI E(26000) ZI 3 ZI");
    let unknown = |talk: &mut Talk| {
        talk.ask(&[describe_statement("nothing"), sync()]);
        talk.ask(&[bind("", "nothing", &[]), execute("", 0), sync()]);
        talk.ask(&[describe_portal("nothing"), sync()]);
        talk.ask(&[execute("nothing", 0), sync()]);
        talk.ask(&[query("select 1")]);
    };
    oracle.agree(unknown, "E(26000) ZI E(26000) ZI E(34000) ZI E(34000) ZI T D C(SELECT 1) ZI");
    let in_transaction = |talk: &mut Talk| {
        talk.ask(&[query("begin")]);
        talk.ask(&[bind("", "nothing", &[]), sync()]);
        talk.ask(&[parse("r", "rollback", &[]), run("r"), close_statement("r"), sync()]);
    };
    oracle.agree(in_transaction, "C(BEGIN) ZT E(26000) ZE 1 2 C(ROLLBACK) 3 ZI");
}

// P41 and P42

#[test]
fn close_of_nothing_is_no_error_and_portals_are_not_statements() {
    let oracle = Oracle::new();
    let nothing = |talk: &mut Talk| {
        talk.ask(&[close_statement("nothing"), close_portal("nothing"), close_portal(""), sync()])
    };
    oracle.agree(nothing, "3 3 3 ZI");
    let portal = |talk: &mut Talk| {
        talk.ask(&[parse("same", "select 1", &[]), bind("same", "same", &[]), close_portal("same"), sync()]);
        talk.ask(&[run("same"), sync()]);
        talk.ask(&[close_statement("same"), run("same"), sync()]);
    };
    oracle.agree(portal, "1 2 3 ZI 2 D C(SELECT 1) ZI 3 E(26000) ZI");
}

// P43

#[test]
fn statement_exists_only_once_its_parse_has_succeeded() {
    let oracle = Oracle::new();
    let syntax = |talk: &mut Talk| {
        talk.ask(&[parse("s", "selec 1", &[]), sync()]);
        talk.ask(&[run("s"), sync()]);
        talk.ask(&[parse("s", "selec 1", &[]), sync()]);
        talk.ask(&[parse("s", "select 1", &[]), run("s"), sync()]);
        talk.ask(&[close_statement("s"), sync()]);
    };
    oracle.agree(syntax, "E(42601) ZI E(26000) ZI E(42601) ZI 1 2 D C(SELECT 1) ZI 3 ZI");
    let skipped = |talk: &mut Talk| {
        talk.ask(&[
            parse("a", "select 1", &[]),
            parse("", "selec", &[]),
            parse("b", "select 2", &[]),
            sync(),
        ]);
        talk.ask(&[run("a"), sync()]);
        talk.ask(&[run("b"), sync()]);
        talk.ask(&[parse("b", "select 2", &[]), run("b"), sync()]);
    };
    oracle.agree(skipped, "1 E(42601) ZI 2 D C(SELECT 1) ZI E(26000) ZI 1 2 D C(SELECT 1) ZI");
    let closed_behind_an_error = |talk: &mut Talk| {
        talk.ask(&[parse("c", "select 1", &[]), sync()]);
        talk.ask(&[parse("", "selec", &[]), close_statement("c"), sync()]);
        talk.ask(&[run("c"), sync()]);
        talk.ask(&[
            parse("", "select 1/0", &[]),
            bind("", "", &[]),
            execute("", 0),
            close_statement("c"),
            sync(),
        ]);
        talk.ask(&[run("c"), sync()]);
    };
    oracle.agree(
        closed_behind_an_error,
        "1 ZI E(42601) ZI 2 D C(SELECT 1) ZI 1 E(22012) ZI 2 D C(SELECT 1) ZI",
    );
    let in_failed_transaction = |talk: &mut Talk| {
        talk.ask(&[parse("d", "select 1", &[]), sync()]);
        talk.ask(&[query("begin; select 1/0")]);
        talk.ask(&[parse("e", "select 1", &[]), sync()]);
        talk.ask(&[run("d"), sync()]);
        talk.ask(&[query("rollback")]);
        talk.ask(&[run("e"), sync()]);
        talk.ask(&[run("d"), sync()]);
    };
    oracle.agree(
        in_failed_transaction,
        "1 ZI C(BEGIN) E(22012) ZE E(25P02) ZE E(25P02) ZE C(ROLLBACK) ZI E(26000) ZI 2 D C(SELECT 1) ZI",
    );
}

// P45 is in stale.rs.

// P46

#[test]
fn unnamed_statement_outlives_the_visit_of_another_client() {
    let howdah = pooler(Version::wanted()).start();
    let mut first = howdah.session(USER, TRANSACTION);
    let mut second = howdah.session(USER, TRANSACTION);
    prepare(&mut first, "", "select 'first ' || $1");
    prepare(&mut second, "", "select 'second ' || $1");
    for _ in 0..3 {
        assert_eq!(value(&mut first, "", &[Some("x")]), "first x");
        assert_eq!(value(&mut second, "", &[Some("y")]), "second y");
    }
    assert_eq!(second.value("select 1"), "1");
    assert_eq!(value(&mut first, "", &[Some("z")]), "first z");
    // The simple query has ended the second client's own.
    assert_eq!(second.ask(all(&[run(""), sync()])), "E(26000) ZI");
    // And a client that never had one gets nobody's.
    let mut third = howdah.session(USER, TRANSACTION);
    assert_eq!(third.ask(all(&[run(""), sync()])), "E(26000) ZI");
    assert_eq!(third.ask(all(&[describe_statement(""), sync()])), "E(26000) ZI");
}

// P48

#[test]
fn everything_is_deallocated_where_it_may_be() {
    let oracle = Oracle::new();
    for command in ["deallocate all", "discard all", "DISCARD ALL;", "deallocate prepare all"] {
        let script = |talk: &mut Talk| {
            talk.ask(&[parse("s", "select 1", &[]), sync()]);
            talk.ask(&[query(command)]);
            talk.ask(&[run("s"), sync()]);
            talk.ask(&[parse("s", "select 2", &[]), run("s"), sync()]);
        };
        let expected = if command.to_lowercase().starts_with("discard") {
            "1 ZI C(DISCARD ALL) ZI E(26000) ZI 1 2 D C(SELECT 1) ZI"
        } else {
            "1 ZI C(DEALLOCATE ALL) ZI E(26000) ZI 1 2 D C(SELECT 1) ZI"
        };
        oracle.agree(script, expected);
    }
    let by_protocol = |talk: &mut Talk| {
        talk.ask(&[parse("s", "select 1", &[]), parse("d", "discard all", &[]), run("d"), sync()]);
        talk.ask(&[run("s"), sync()]);
        talk.ask(&[run("d"), sync()]);
    };
    oracle.agree(by_protocol, "1 1 2 C(DISCARD ALL) ZI E(26000) ZI E(26000) ZI");
    let refused = |talk: &mut Talk| {
        talk.ask(&[parse("s", "select 1", &[]), sync()]);
        talk.ask(&[query("begin")]);
        talk.ask(&[query("discard all")]);
        talk.ask(&[query("rollback")]);
        talk.ask(&[query("rollback; discard all")]);
        talk.ask(&[run("s"), sync()]);
    };
    oracle.agree(
        refused,
        "1 ZI C(BEGIN) ZT E(25001) ZE C(ROLLBACK) ZI N(25P01) C(ROLLBACK) E(25001) ZI 2 D C(SELECT 1) ZI",
    );
}

#[test]
fn one_client_that_discards_does_not_hurt_another() {
    let howdah = pooler(Version::wanted()).start();
    let mut first = howdah.session(USER, TRANSACTION);
    let mut second = howdah.session(USER, TRANSACTION);
    for command in ["discard all", "deallocate all"] {
        prepare(&mut first, "s", "select 'shared'");
        prepare(&mut second, "s", "select 'shared'");
        first.sql(command);
        assert_eq!(first.ask(all(&[run("s"), sync()])), "E(26000) ZI");
        assert_eq!(value(&mut second, "s", &[]), "shared");
        assert_eq!(second.ask(all(&[close_statement("s"), sync()])), "3 ZI");
    }
}

// S27: two clients, one name

#[test]
fn names_and_types_of_two_clients_do_not_mix() {
    for size in ["1", "2"] {
        let howdah = pooler(Version::wanted()).setting("default_pool_size", size).start();
        let mut first = howdah.session(USER, TRANSACTION);
        let mut second = howdah.session(USER, TRANSACTION);
        prepare(&mut first, "s", "select 'first'");
        prepare(&mut second, "s", "select 'second'");
        let typed = |oid| all(&[parse("typed", "select pg_typeof($1)::text", &[oid]), sync()]);
        assert_eq!(first.ask(typed(INT)), "1 ZI");
        assert_eq!(second.ask(typed(TEXT)), "1 ZI");
        for _ in 0..5 {
            assert_eq!(value(&mut first, "s", &[]), "first");
            assert_eq!(value(&mut second, "s", &[]), "second");
            assert_eq!(value(&mut first, "typed", &[Some("1")]), "integer");
            assert_eq!(value(&mut second, "typed", &[Some("1")]), "text");
        }
        assert_eq!(first.ask(all(&[close_statement("s"), sync()])), "3 ZI");
        assert_eq!(first.ask(all(&[run("s"), sync()])), "E(26000) ZI");
        assert_eq!(value(&mut second, "s", &[]), "second");
    }
}

/// `clients` threads with names of their own for statements that are partly the same, all checked.
fn storm(howdah: &Howdah, clients: usize, rounds: usize) {
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let mut raw = howdah.session(USER, TRANSACTION);
                for round in 0..rounds {
                    let number = (client + round * 7) % 11;
                    // The same name means another text in each client, and the same text another name.
                    let name = format!("s{}", (number + client) % 11);
                    let sql = format!("select '{number}:' || $1");
                    let given = format!("{client}-{round}");
                    raw.send(all(&[
                        parse(&name, &sql, &[]),
                        describe_statement(&name),
                        bind("", &name, &[Some(&given)]),
                        execute("", 0),
                        sync(),
                    ]));
                    let messages = raw.until_ready();
                    let letters = testkit::letters(&messages);
                    if letters == "E(42P05) ZI" {
                        assert_eq!(value(&mut raw, &name, &[Some(&given)]), format!("{number}:{given}"));
                        if round % 3 == 0 {
                            assert_eq!(raw.ask(all(&[close_statement(&name), sync()])), "3 ZI");
                        }
                    } else {
                        assert_eq!(letters, "1 t T 2 D C(SELECT 1) ZI");
                        assert_eq!(rows(&messages)[0][0], Some(format!("{number}:{given}")));
                    }
                }
            });
        }
    });
}

#[test]
fn many_clients_share_statements_and_servers() {
    for size in [1, 2] {
        let howdah = pooler(Version::wanted())
            .setting("default_pool_size", &size.to_string())
            .setting("workers", "4")
            .start();
        storm(&howdah, 12, 100);
        has_full_size(&howdah, TRANSACTION, size);
    }
}

// P44

#[test]
fn eviction_does_not_overtake_what_is_bound() {
    let howdah = pooler(Version::wanted()).setting("max_prepared_statements", "2").start();
    let mut client = howdah.session(USER, TRANSACTION);
    let of = |number: usize| (format!("s{number}"), format!("select 'value {number}'"));
    let mut batch = Vec::new();
    for number in 0..6 {
        let (name, sql) = of(number);
        batch.extend(all(&[parse(&name, &sql, &[]), run(&name), run("s0")]));
    }
    batch.extend(sync());
    client.send(batch);
    let got: Vec<String> =
        rows(&client.until_ready()).into_iter().filter_map(|mut row| row.remove(0)).collect();
    let expected: Vec<String> =
        (0..6).flat_map(|number| [format!("value {number}"), "value 0".to_owned()]).collect();
    assert_eq!(got, expected);
    for number in (0..6).rev().chain([3, 0, 5]) {
        assert_eq!(value(&mut client, &of(number).0, &[]), format!("value {number}"));
    }
    let held = client.value("select count(*) from pg_prepared_statements");
    assert!(held.parse::<u32>().expect("a count") <= 2, "{held} statements are kept on the server");
}

#[test]
fn eviction_survives_errors_in_the_same_batch() {
    let howdah = pooler(Version::wanted()).setting("max_prepared_statements", "2").start();
    let mut client = howdah.session(USER, TRANSACTION);
    for number in 0..4 {
        prepare(&mut client, &format!("s{number}"), &format!("select 'value {number}'"));
    }
    for round in 0..10 {
        let fails = all(&[parse("", "select 1/0", &[]), bind("", "", &[]), execute("", 0)]);
        let (a, b, c) = (round % 4, (round + 1) % 4, (round + 2) % 4);
        let name = |number: usize| format!("s{number}");
        client.send(all(&[run(&name(a)), fails, run(&name(b)), run(&name(c)), sync()]));
        assert_eq!(testkit::letters(&client.until_ready()), "2 D C(SELECT 1) 1 E(22012) ZI");
        for number in [c, b, a] {
            assert_eq!(value(&mut client, &name(number), &[]), format!("value {number}"));
        }
    }
}

#[test]
fn many_clients_evict_one_another() {
    let howdah = pooler(Version::wanted())
        .setting("default_pool_size", "2")
        .setting("max_prepared_statements", "2")
        .start();
    storm(&howdah, 8, 100);
    has_full_size(&howdah, TRANSACTION, 2);
}

#[test]
fn unknown_statement_after_flush_still_ends_at_the_sync() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        talk.send(&[parse("f", "select 1", &[]), flush()]);
        talk.messages(1);
        talk.send(&[run("f"), bind("", "nothing", &[]), flush()]);
        talk.messages(4);
        talk.ask(&[run("f"), sync()]);
        talk.ask(&[run("f"), close_statement("f"), sync()]);
    };
    oracle.agree(script, Expected::from("1 2 D C(SELECT 1) E(26000) ZI 2 D C(SELECT 1) 3 ZI"));
}

#[test]
fn session_mode_leaves_names_to_the_server() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, SESSION);
    prepare(&mut client, "mine", "select 1");
    assert_eq!(client.value("select name from pg_prepared_statements"), "mine");
    client.close();
    // The reset that follows takes them away.
    let mut next = howdah.session(USER, SESSION);
    assert_eq!(next.ask(all(&[run("mine"), sync()])), "E(26000) ZI");
}

#[test]
fn without_the_function_names_go_to_the_server_as_they_are() {
    let howdah = pooler(Version::wanted()).setting("max_prepared_statements", "0").start();
    let mut client = howdah.session(USER, TRANSACTION);
    prepare(&mut client, "as_it_is", "select 1");
    assert_eq!(client.value("select name from pg_prepared_statements"), "as_it_is");
    let mut next = howdah.session(USER, TRANSACTION);
    assert_eq!(next.ask(all(&[parse("as_it_is", "select 2", &[]), sync()])), "E(42P05) ZI");
    assert_eq!(value(&mut next, "as_it_is", &[]), "1");
}

#[test]
fn a_name_stays_given_when_its_batch_fails_before_it_is_described() {
    let oracle = Oracle::new();
    let failed = |talk: &mut Talk| {
        talk.ask(&[
            parse("n", "select $1::int", &[]),
            describe_statement("none"),
            describe_statement("n"),
            sync(),
        ]);
        talk.ask(&[parse("n", "select 2", &[]), sync()]);
        talk.ask(&[bind("", "n", &[Some("1")]), execute("", 0), sync()]);
        talk.ask(&[close_statement("n"), parse("n", "select 2", &[]), run("n"), sync()]);
    };
    oracle.agree(failed, "1 E(26000) ZI E(42P05) ZI 2 D C(SELECT 1) ZI 3 1 2 D C(SELECT 1) ZI");
}
