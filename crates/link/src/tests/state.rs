//! Session state: what is carried, what keeps a server, what is refused.

use model::{PoolMode, StateMode};
use sql::state::Reason;

use crate::Policy;

use super::harness::parameters;
use super::script::{Stage, check_on};

pub const QUERY: &str = "T D(1) C(SELECT 1) Z(I)";

pub fn stage(state: StateMode) -> Stage {
    let reported = parameters(&[("TimeZone", "UTC", true)]);
    let policy = Policy { state, ..Policy::default() };
    Stage { policy, client: reported.clone(), server: reported }
}

fn check(script: &str) {
    check_on(&stage(StateMode::Carry), script);
}

/// The question, by what it asks for.
const LOCKS: &str = "> Q(census l)";

#[test]
fn statements_that_do_nothing_to_the_session_leave_no_trace() {
    for text in [
        "select 1",
        "begin",
        "commit",
        "savepoint s",
        "rollback to s",
        "set local a = 1",
        "insert into t values (1)",
    ] {
        check(&format!(
            "C Q({text})
             > Q({text})
             S {QUERY}
             < {QUERY}
             free"
        ));
    }
}

#[test]
fn what_is_set_goes_with_its_client_and_is_undone_for_the_next() {
    check(&format!(
        "C Q(set work_mem = '4MB')
         > Q(set work_mem = '4MB')
         S C(SET) Z(I)
         < C(SET) Z(I)
         free
         client b
         C Q(select 1)
         > Q(RESET \"work_mem\";)
         S C(RESET) Z(I)
         <
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         free
         client a
         C Q(select 1)
         > Q(SET \"work_mem\" TO '4MB';)
         S C(SET) Z(I)
         <
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         free
         C Q(select 1)
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn a_setting_that_did_not_come_about_is_not_carried() {
    for (first, second) in [
        ("C Q(set a = 1)\n> Q(set a = 1)", "S E(22023 no) Z(I)\n< E(22023 no) Z(I)"),
        (
            "C Q(set a = 1;select 1/0)\n> Q(set a = 1;select 1/0)",
            "S C(SET) E(22012 x) Z(I)\n< C(SET) E(22012 x) Z(I)",
        ),
        (
            "C Q(begin;set a = 1;rollback)\n> Q(begin;set a = 1;rollback)",
            "S C(BEGIN) C(SET) C(ROLLBACK) Z(I)\n< C(BEGIN) C(SET) C(ROLLBACK) Z(I)",
        ),
        (
            "C Q(begin;set a = 1;commit)\n> Q(begin;set a = 1;commit)",
            "S C(BEGIN) C(SET) C(ROLLBACK) Z(I)\n< C(BEGIN) C(SET) C(ROLLBACK) Z(I)",
        ),
        (
            "C P(,set a = 1) B E P(,select 1/0) B E S\n> P(,set a = 1) B E P(,select 1/0) B E S",
            "S 1 2 C(SET) 1 2 E(22012 x) Z(I)\n< 1 2 C(SET) 1 2 E(22012 x) Z(I)",
        ),
        (
            "C P(,select 1/0) B E P(,set a = 1) B E S\n> P(,select 1/0) B E P(,set a = 1) B E S",
            "S 1 2 E(22012 x) Z(I)\n< 1 2 E(22012 x) Z(I)",
        ),
    ] {
        check(&format!(
            "{first}
             {second}
             free
             client b
             C Q(select 1)
             > Q(select 1)
             S {QUERY}
             < {QUERY}
             free"
        ));
    }
}

/// A transaction of these statements, each with its tag; then what the next client's server is told first.
fn in_transaction(statements: &[(&str, &str)], status: &str, then: &str) {
    let mut script = String::from("C Q(begin)\n> Q(begin)\nS C(BEGIN) Z(T)\n< C(BEGIN) Z(T)\n");
    for (at, (text, answer)) in statements.iter().enumerate() {
        let status = if at + 1 == statements.len() { status } else { "T" };
        let status = if answer.starts_with('E') { "E" } else { status };
        script
            .push_str(&format!("C Q({text})\n> Q({text})\nS {answer} Z({status})\n< {answer} Z({status})\n"));
    }
    script.push_str("free\nclient b\nC Q(select 1)\n");
    if !then.is_empty() {
        script.push_str(&format!("> Q({then})\nS C(RESET) Z(I)\n<\n"));
    }
    script.push_str(&format!("> Q(select 1)\nS {QUERY}\n< {QUERY}\nfree"));
    check(&script);
}

#[test]
fn settings_follow_the_transaction_and_its_savepoints() {
    let a = ("set a = 1", "C(SET)");
    let reset = "RESET \"a\";";
    let commit = ("commit", "C(COMMIT)");
    let rollback = ("rollback", "C(ROLLBACK)");
    let failed = ("select 1/0", "E(22012 x)");
    let s = ("savepoint s", "C(SAVEPOINT)");
    let to_s = ("rollback to s", "C(ROLLBACK)");
    let release = ("release s", "C(RELEASE)");
    in_transaction(&[a, commit], "I", reset);
    in_transaction(&[a, rollback], "I", "");
    in_transaction(&[a, failed, rollback], "I", "");
    in_transaction(&[a, failed, ("commit", "C(ROLLBACK)")], "I", "");
    in_transaction(&[a, ("commit", "E(23503 x)"), rollback], "I", "");
    in_transaction(&[s, a, to_s, commit], "I", "");
    in_transaction(&[a, s, to_s, commit], "I", reset);
    in_transaction(&[a, s, ("set b = 1", "C(SET)"), to_s, commit], "I", reset);
    in_transaction(&[s, a, release, commit], "I", reset);
    in_transaction(&[s, a, release, rollback], "I", "");
    in_transaction(&[a, s, s, ("set b = 1", "C(SET)"), to_s, commit], "I", reset);
    in_transaction(&[s, a, s, ("set b = 1", "C(SET)"), release, to_s, commit], "I", "");
    in_transaction(&[s, a, failed, to_s, commit], "I", "");
    in_transaction(&[a, s, failed, to_s, commit], "I", reset);
    in_transaction(&[a, ("prepare transaction 'x'", "C(PREPARE TRANSACTION)")], "I", reset);
    in_transaction(&[a, ("commit and chain", "C(COMMIT)"), ("set b = 1", "C(SET)"), rollback], "I", reset);
    in_transaction(&[a, ("rollback and chain", "C(ROLLBACK)"), commit], "I", "");
    in_transaction(&[("set local a = 1", "C(SET)"), commit], "I", "");
    in_transaction(&[a, ("reset a", "C(RESET)"), commit], "I", "");
    in_transaction(&[a, ("set a to default", "C(SET)"), commit], "I", "");
    in_transaction(&[a, ("reset all", "C(RESET)"), commit], "I", "");
}

#[test]
fn every_form_of_a_setting_is_carried() {
    for (text, tag, carried) in [
        ("set a.b = 'x'", "SET", "SET \"a.b\" TO 'x';"),
        ("set \"Ab\" to x, y", "SET", "SET \"ab\" TO x, y;"),
        ("set role bob", "SET", "SET \"role\" TO bob;"),
        ("set search_path = a, \"B\"", "SET", "SET \"search_path\" TO a, \"B\";"),
        ("set schema 'a'", "SET", "SET \"search_path\" TO 'a';"),
        (
            "select set_config('a.b', 'c', false)",
            "SELECT 1",
            "SELECT pg_catalog.set_config(E'a.b',E'c',false)",
        ),
        (
            "set session characteristics as transaction read only",
            "SET",
            "SET \"default_transaction_read_only\" TO on;",
        ),
    ] {
        check(&format!(
            "C Q({text})
             > Q({text})
             S C({tag}) Z(I)
             < C({tag}) Z(I)
             free
             server 2
             C Q(select 1)
             > Q({carried})
             S C(SET) Z(I)
             <
             > Q(select 1)
             S {QUERY}
             < {QUERY}
             free"
        ));
    }
}

#[test]
fn a_role_is_given_up_first_and_taken_last() {
    check(&format!(
        "C Q(set role bob;set work_mem = '4MB')
         > Q(set role bob;set work_mem = '4MB')
         S C(SET) C(SET) Z(I)
         < C(SET) C(SET) Z(I)
         free
         client b
         C Q(set role alice; set lock_timeout = 1)
         > Q(RESET \"role\";RESET \"work_mem\";)
         S C(RESET) C(RESET) Z(I)
         <
         > Q(set role alice; set lock_timeout = 1)
         S C(SET) C(SET) Z(I)
         < C(SET) C(SET) Z(I)
         free
         client a
         C Q(select 1)
         > Q(RESET \"role\";RESET \"lock_timeout\";SET \"work_mem\" TO '4MB';SET \"role\" TO bob;)
         S C(RESET) C(RESET) C(SET) C(SET) Z(I)
         <
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn what_was_prepared_sets_when_it_is_executed() {
    let carried = "> Q(SET \"a\" TO 1;)\nS C(SET) Z(I)\n<\n> Q(select 1)\nS T D(1) C(SELECT 1) Z(I)\n< T D(1) C(SELECT 1) Z(I)\nfree";
    // Unnamed, named, and by a portal with a name.
    for (first, answer) in [
        ("C P(,set a = 1) S\n> P(,set a = 1) S\nS 1 Z(I)\n< 1 Z(I)\nfree\nC B E S\n> B E S", "2 C(SET) Z(I)"),
        ("C P(s,set a = 1) B(s) E S\n> P(#1,set a = 1) B(#1) E S", "1 2 C(SET) Z(I)"),
        ("C P(s,set a = 1) B(s,p) E(p) S\n> P(#1,set a = 1) B(#1,p) E(p) S", "1 2 C(SET) Z(I)"),
    ] {
        check(&format!("{first}\nS {answer}\n< {answer}\nfree\nserver 2\nC Q(select 1)\n{carried}"));
    }
    // A portal of the same name that does nothing.
    check(&format!(
        "C P(s,set a = 1) B(s) P(,select 1) B E S
         > P(#1,set a = 1) B(#1) P(,select 1) B E S
         S 1 2 1 2 D(1) C(SELECT 1) Z(I)
         < 1 2 1 2 D(1) C(SELECT 1) Z(I)
         free
         server 2
         C Q(select 1)
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn a_lock_keeps_the_server_until_it_is_gone() {
    check(&format!(
        "C Q(select pg_advisory_lock(1))
         > Q(select pg_advisory_lock(1))
         S {QUERY}
         < {QUERY}
         {LOCKS}
         held
         S D(l,,) C(SELECT 1) Z(I)
         <
         held
         pins SELECT AdvisoryLock
         C Q(select 1)
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         held
         C Q(select pg_advisory_unlock(1))
         > Q(select pg_advisory_unlock(1))
         S {QUERY}
         < {QUERY}
         {LOCKS}
         S C(SELECT 0) Z(I)
         <
         pins
         free"
    ));
}

#[test]
fn what_a_client_is_notified_of_while_the_server_answers_us_is_not_lost() {
    check(&format!(
        "C Q(listen a)
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         S D(n,,) C(SELECT 1) A(a x) Z(I)
         < A(a x)
         held
         pins LISTEN Listen
         C Q(select pg_advisory_lock(1))
         > Q(select pg_advisory_lock(1))
         S {QUERY}
         < {QUERY}
         {LOCKS}
         S A(a y) D(l,,) C(SELECT 1) Z(I)
         < A(a y)
         held"
    ));
}

#[test]
fn a_lock_that_was_taken_by_a_statement_that_failed_is_one() {
    check(
        "C Q(select pg_advisory_lock(1), 1/0)
         > Q(select pg_advisory_lock(1), 1/0)
         S E(22012 x) Z(I)
         < E(22012 x) Z(I)
         > Q(census l)
         S D(l,,) C(SELECT 1) Z(I)
         <
         held
         pins SELECT AdvisoryLock
         left cleaning
         > Q(DISCARD ALL)
         S C(DISCARD ALL) Z(I)
         clean",
    );
}

#[test]
fn nothing_is_asked_within_a_transaction_or_of_a_statement_that_was_skipped() {
    check(
        "C Q(begin)
         > Q(begin)
         S C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         C Q(create temp table t (a int))
         > Q(create temp table t (a int))
         S C(CREATE TABLE) Z(T)
         < C(CREATE TABLE) Z(T)
         C Q(rollback)
         > Q(rollback)
         S C(ROLLBACK) Z(I)
         < C(ROLLBACK) Z(I)
         > Q(census t)
         S C(SELECT 0) Z(I)
         <
         free
         C P(,select 1/0) B E P(,listen a) B E S
         > P(,select 1/0) B E P(,listen a) B E S
         S 1 2 E(22012 x) Z(I)
         < 1 2 E(22012 x) Z(I)
         free",
    );
}

#[test]
fn each_kind_is_asked_for_alone() {
    for (text, letters, reason) in [
        ("create temp table t (a int)", "t", Reason::TempObject),
        ("select 1 into temp t", "t", Reason::TempObject),
        ("declare c cursor with hold for select 1", "c", Reason::HoldCursor),
        ("listen a", "n", Reason::Listen),
        ("select pg_try_advisory_lock(1)", "l", Reason::AdvisoryLock),
    ] {
        let verb = text.split(' ').next().unwrap_or_default().to_uppercase();
        check(&format!(
            "C Q({text})
             > Q({text})
             S C(X) Z(I)
             < C(X) Z(I)
             > Q(census {letters})
             S D({letters},,) C(SELECT 1) Z(I)
             <
             held
             pins {verb} {reason:?}
             left cleaning
             > Q(DISCARD ALL)
             S C(DISCARD ALL) Z(I)
             clean"
        ));
    }
}

#[test]
fn what_cannot_be_read_is_asked_for_altogether() {
    for text in ["do 'x'", "call p()", "frobnicate", "select 'open"] {
        check(&format!(
            "C Q({text})
             > Q({text})
             S C(X) Z(I)
             < C(X) Z(I)
             > Q(census ltcnpsr)
             S D(s,work_mem,8MB) C(SELECT 1) Z(I)
             <
             free
             server 2
             C Q(select 1)
             > Q(SELECT pg_catalog.set_config(E'work_mem',E'8MB',false))
             S {QUERY}
             > Q(select 1)
             S {QUERY}
             < {QUERY}
             free"
        ));
    }
}

/// No list of settings shows it.
#[test]
fn who_the_session_is_after_a_program_is_asked_for() {
    for (row, given_up) in [("D(r,role,other)", true), ("", false)] {
        let for_the_next = match given_up {
            true => "> Q(RESET \"role\";)\n S C(RESET) Z(I)\n <\n > Q(select 1)",
            false => "> Q(select 1)",
        };
        for first in ["select 1", "set role own"] {
            check(&format!(
                "C Q({first})
                 > Q({first})
                 S {QUERY}
                 < {QUERY}
                 C Q(do 'x')
                 > Q(do 'x')
                 S C(DO) Z(I)
                 < C(DO) Z(I)
                 > Q(census ltcnpsr)
                 S {row} C(SELECT 0) Z(I)
                 <
                 free
                 client b
                 C Q(select 1)
                 {for_the_next}
                 S {QUERY}
                 < {QUERY}
                 free"
            ));
        }
    }
}

#[test]
fn a_value_that_the_text_does_not_tell_is_asked_for() {
    for text in [
        "set a.b = 'x\\y'",
        "set a.b from current",
        "select set_config('a.b', x, false) from t",
        "select set_config('a.b', E'x', false)",
    ] {
        check(&format!(
            "C Q({text})
             > Q({text})
             S C(SET) Z(I)
             < C(SET) Z(I)
             > Q(census a.b)
             S D(v,a.b,xy) C(SELECT 1) Z(I)
             <
             free
             server 2
             C Q(select 1)
             > Q(SELECT pg_catalog.set_config(E'a.b',E'xy',false))
             S {QUERY}
             > Q(select 1)
             S {QUERY}
             < {QUERY}
             free"
        ));
    }
}

#[test]
fn a_question_that_fails_is_asked_again_and_then_the_client_is_pinned() {
    check(
        "C Q(listen a)
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         S E(57014 canceled) Z(I)
         <
         > Q(census n)
         S E(57014 canceled) Z(I)
         <
         > Q(census n)
         S E(57014 canceled) Z(I)
         <
         held
         pins LISTEN Unread",
    );
}

#[test]
fn a_client_may_go_on_while_its_server_is_asked() {
    check(&format!(
        "C Q(listen a)
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         C Q(select 1)
         > Q(select 1)
         S C(SELECT 0) Z(I)
         <
         held
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn an_answer_counts_before_what_was_asked_behind_it_however_they_arrive() {
    for (ends, tag, asks) in
        [("select pg_advisory_unlock(1)", "SELECT 1", true), ("discard all", "DISCARD ALL", false)]
    {
        let after = if asks { format!("{LOCKS}\nS C(SELECT 0) Z(I)\n<") } else { String::new() };
        check(&format!(
            "C Q(select pg_advisory_lock(1))
             > Q(select pg_advisory_lock(1))
             S {QUERY}
             < {QUERY}
             {LOCKS}
             C Q({ends})
             > Q({ends})
             S D(l,,) C(SELECT 1) Z(I) C({tag}) Z(I)
             < C({tag}) Z(I)
             {after}
             pins
             free"
        ));
    }
}

#[test]
fn what_no_view_shows_keeps_the_server_by_the_words() {
    for (text, reason) in
        [("load 'x'", "LOAD Library"), ("select setseed(0.5)", "SELECT Seed"), ("set seed = 0.5", "SET Seed")]
    {
        check(&format!(
            "C Q({text})
             > Q({text})
             S C(X) Z(I)
             < C(X) Z(I)
             held
             pins {reason}
             left close"
        ));
    }
    check(
        "C Q(select dblink_connect('a', 'b'))
         > Q(select dblink_connect('a', 'b'))
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         held
         C Q(select dblink_connect('b', 'b'))
         > Q(select dblink_connect('b', 'b'))
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         C Q(select dblink_disconnect('a'))
         > Q(select dblink_disconnect('a'))
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         held
         C Q(select dblink_disconnect('b'))
         > Q(select dblink_disconnect('b'))
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         pins
         free",
    );
}

#[test]
fn sequences_keep_a_server_only_where_somebody_reads_them_back() {
    check(&format!(
        "C Q(select nextval('s'))
         > Q(select nextval('s'))
         S {QUERY}
         < {QUERY}
         free
         client b
         C Q(select currval('s'))
         > Q(DISCARD SEQUENCES) Q(select currval('s'))
         S C(DISCARD SEQUENCES) Z(I)
         <
         S E(55000 not yet defined) Z(I)
         < E(55000 not yet defined) Z(I)
         free
         client a
         C Q(select nextval('s'))
         > Q(select nextval('s'))
         S {QUERY}
         < {QUERY}
         held
         pins SELECT Sequence
         C Q(discard sequences)
         > Q(discard sequences)
         S C(DISCARD SEQUENCES) Z(I)
         < C(DISCARD SEQUENCES) Z(I)
         free"
    ));
}

#[test]
fn what_draws_from_a_sequence_out_of_sight_is_asked_about_where_somebody_reads_it_back() {
    let drawn = "S D(q,,7) C(SELECT 1) Z(I)";
    check(&format!(
        "C Q(insert into t values (1))
         > Q(insert into t values (1))
         S {QUERY}
         < {QUERY}
         free
         client b
         C P(,select lastval()) B E S
         > P(,select lastval()) B C(#forgets) P(#forgets,DISCARD SEQUENCES) B(#forgets,howdah_forgets) \
           E(howdah_forgets) Cp(#forgets) C(#forgets) E S
         S 1 2 3 1 2 C(DISCARD SEQUENCES) 3 3 E(55000 no) Z(I)
         < 1 2 E(55000 no) Z(I)
         free
         client a
         C Q(insert into t values (1))
         > Q(insert into t values (1))
         S {QUERY}
         < {QUERY}
         > Q(census q)
         S E(55000 not yet defined) Z(I)
         <
         free
         C P(,insert into s values (1)) B E S
         > P(,insert into s values (1)) B E S
         S 1 2 C(INSERT 0 1) Z(I)
         < 1 2 C(INSERT 0 1) Z(I)
         > Q(census q)
         {drawn}
         <
         held
         pins INSERT Sequence
         C Q(select lastval())
         > Q(select lastval())
         S {QUERY}
         < {QUERY}
         held
         C Q(discard sequences)
         > Q(discard sequences)
         S C(DISCARD SEQUENCES) Z(I)
         < C(DISCARD SEQUENCES) Z(I)
         free
         C Q(begin;insert into s values (1);create temp table t (n int);rollback)
         > Q(begin;insert into s values (1);create temp table t (n int);rollback)
         S C(BEGIN) C(INSERT 0 1) C(CREATE TABLE) C(ROLLBACK) Z(I)
         < C(BEGIN) C(INSERT 0 1) C(CREATE TABLE) C(ROLLBACK) Z(I)
         > Q(census t)
         S C(SELECT 0) Z(I)
         <
         > Q(census q)
         S E(42501 permission denied for sequence s) Z(I)
         <
         held
         pins INSERT Sequence"
    ));
}

#[test]
fn a_client_that_leaves_in_its_transaction_leaves_the_settings_of_before() {
    check(&format!(
        "C Q(begin;set a = 1)
         > Q(begin;set a = 1)
         S C(BEGIN) C(SET) Z(T)
         < C(BEGIN) C(SET) Z(T)
         left cleaning
         > Q(ROLLBACK)
         S C(ROLLBACK) Z(I)
         clean
         client b
         C Q(select 1)
         > Q(select 1)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn a_reset_goes_back_to_what_the_client_logged_in_with() {
    let stage = Stage {
        client: parameters(&[("TimeZone", "CET", true), ("work_mem", "1MB", false)]),
        ..stage(StateMode::Carry)
    };
    // Within a transaction it is told at once, and the server is set right behind it.
    for (text, again) in [
        (
            "reset all",
            "SELECT pg_catalog.set_config(E'TimeZone',E'CET',false),pg_catalog.set_config(E'work_mem',E'1MB',false)",
        ),
        ("reset timezone", "SELECT pg_catalog.set_config(E'TimeZone',E'CET',false)"),
    ] {
        check_on(
            &stage,
            &format!(
                "C Q(begin;set timezone = 'JST')
                 > Q(SELECT pg_catalog.set_config(E'TimeZone',E'CET',false),pg_catalog.set_config(E'work_mem',E'1MB',false))
                 S S(TimeZone=CET) {QUERY}
                 <
                 > Q(begin;set timezone = 'JST')
                 S C(BEGIN) C(SET) S(TimeZone=JST) Z(T)
                 < C(BEGIN) C(SET) S(TimeZone=JST) Z(T)
                 C Q({text})
                 > Q({text})
                 S C(RESET) S(TimeZone=UTC) Z(T)
                 < C(RESET) S(TimeZone=CET) Z(T)
                 > Q({again})
                 C Q(select 1)
                 > Q(select 1)
                 S S(TimeZone=CET) T D(1) C(SELECT 1) Z(T)
                 <
                 S T D(1) C(SELECT 1) Z(T)
                 < T D(1) C(SELECT 1) Z(T)
                 C Q(rollback)
                 > Q(rollback)
                 S C(ROLLBACK) Z(I)
                 < C(ROLLBACK) Z(I)
                 free"
            ),
        );
    }
}

#[test]
fn who_is_another_user_is_so_alone() {
    let login = parameters(&[("session_authorization", "app", true), ("is_superuser", "on", true)]);
    let stage = Stage { client: login.clone(), server: login, ..stage(StateMode::Carry) };
    check_on(
        &stage,
        &format!(
            "C Q(set role x;set session authorization bob)
             > Q(set role x;set session authorization bob)
             S C(SET) C(SET) S(session_authorization=bob) S(is_superuser=off) Z(I)
             < C(SET) C(SET) S(session_authorization=bob) S(is_superuser=off) Z(I)
             free
             client b
             C Q(select 1)
             > Q(RESET \"session_authorization\";SELECT pg_catalog.set_config(E'session_authorization',E'app',false))
             S S(session_authorization=app) S(is_superuser=on) {QUERY}
             > Q(select 1)
             S {QUERY}
             < {QUERY}
             free"
        ),
    );
}

#[test]
fn pin_keeps_the_server_for_settings_too() {
    check_on(
        &stage(StateMode::Pin),
        "C Q(set a = 1)
         > Q(set a = 1)
         S C(SET) Z(I)
         < C(SET) Z(I)
         held
         pins SET Setting
         C Q(reset all)
         > Q(reset all)
         S C(RESET) Z(I)
         < C(RESET) Z(I)
         free",
    );
}

#[test]
fn refuse_raises_an_error_in_place() {
    let words = "0A000 LISTEN is not allowed here (session_state = refuse): listen a; instead: listen on a connection \
                 that does nothing else";
    check_on(
        &stage(StateMode::Refuse),
        &format!(
            "C Q(begin;listen a)
             > Q(EXECUTE howdah_0)
             S E(26000 no such statement) Z(I)
             < E({words}) Z(I)
             free
             C P(s,listen a) B(s) E S
             > P(#1,listen a) B(#0) E S
             S 1 E(26000 no such statement) Z(I)
             < 1 E({words}) Z(I)
             free
             C Q(set a = 1)
             > Q(set a = 1)
             S C(SET) Z(I)
             < C(SET) Z(I)
             free"
        ),
    );
}

#[test]
fn a_text_that_is_streamed_is_scanned_as_far_as_it_is_here() {
    use super::harness::{Seat, server};
    use super::words::{client_bytes, client_words, server_bytes};
    let stage = stage(StateMode::Carry);
    let mut seat = Seat::new(1, &stage.policy, &Default::default(), stage.client);
    seat.grant(server(1, stage.server), false);
    let bytes = client_bytes(&format!("Q(insert into t values ('{}'))", "x".repeat(100_000)));
    seat.client_says(&bytes[..20_000]);
    seat.client_says(&bytes[20_000..]);
    seat.to_server.clear();
    seat.server_says(&server_bytes("C(INSERT 0 1) Z(I)"));
    assert_eq!(client_words(&seat.to_server), "Q(census ltcnpsr)");
    assert!(seat.release().is_none());
    seat.server_says(&server_bytes("C(SELECT 0) Z(I)"));
    assert!(seat.release().is_some());
}

#[test]
fn who_would_keep_its_server_asks_before_anything_is_sent() {
    use super::harness::{Seat, server};
    use super::words::{client_bytes, client_words};
    for (text, rest) in [
        ("Q(listen a)", "Q(listen a)"),
        ("Q(begin;listen a)", "Q(begin;listen a)"),
        ("P(,listen a) B E S", "P(,listen a) B E S"),
        ("P(s,listen a) B(s) E S", "P(#,listen a) B(#) E S"),
    ] {
        let stage = stage(StateMode::Carry);
        let mut seat = Seat::new(1, &stage.policy, &Default::default(), stage.client);
        seat.is_denied = true;
        seat.grant(server(1, stage.server.clone()), false);
        seat.client_says(&client_bytes(text));
        assert_eq!(
            (client_words(&seat.to_server), client_words(&seat.from_client).as_str()),
            (String::new(), text)
        );
        // Its server is anybody's, and the next one is its own.
        assert!(seat.leave().is_some_and(|server| server.is_shareable()));
        seat.is_denied = false;
        seat.grant(server(2, stage.server), false);
        // A number is given each time it is looked at.
        assert_eq!(client_words(&seat.to_server).replace(|c: char| c.is_ascii_digit(), ""), rest);
        assert!(!seat.link.has_pinned_unasked());
    }
    // In the middle of something it is too late.
    let stage = stage(StateMode::Carry);
    let mut seat = Seat::new(1, &stage.policy, &Default::default(), stage.client);
    seat.is_denied = true;
    seat.grant(server(1, stage.server), false);
    seat.client_says(&client_bytes("Q(begin) Q(listen a)"));
    assert_eq!(client_words(&seat.to_server), "Q(begin) Q(listen a)");
    assert!(seat.link.has_pinned_unasked());
    assert!(!seat.link.has_pinned_unasked());
}

/// A client with settings of its own, which are set on its first server and then changed.
fn own_settings(mode: StateMode, policy: Policy, script: &str) {
    let client = parameters(&[("TimeZone", "CET", true), ("work_mem", "1MB", false)]);
    let stage = Stage { client, policy: Policy { state: mode, ..policy }, ..stage(mode) };
    let all = "SELECT pg_catalog.set_config(E'TimeZone',E'CET',false),pg_catalog.set_config(E'work_mem',E'1MB',false)";
    let first = format!(
        "C Q(begin)
         > Q({all})
         S S(TimeZone=CET) {QUERY}
         <
         > Q(begin)
         S C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         C Q(set timezone = 'JST')
         > Q(set timezone = 'JST')
         S C(SET) S(TimeZone=JST) Z(T)
         < C(SET) S(TimeZone=JST) Z(T)
         C Q(commit)
         > Q(commit)
         S C(COMMIT) Z(I)
         < C(COMMIT) Z(I)
         "
    );
    check_on(&stage, &format!("{first}{}", script.replace("ALL", all)));
}

#[test]
fn what_follows_a_reset_finds_what_the_client_logged_in_with() {
    // In queries of their own it waits for the answer.
    own_settings(
        StateMode::Carry,
        Policy::default(),
        "free
         C Q(begin) Q(reset all) Q(select 1)
         > Q(begin) Q(reset all)
         S C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         S C(RESET) S(TimeZone=UTC) Z(T)
         < C(RESET) S(TimeZone=CET) Z(T)
         > Q(ALL) Q(select 1)",
    );
    // Within a batch it is set at once.
    let within = "> P(,reset all) B E P(#restores,ALL) B(#restores,howdah_restores) E(howdah_restores) \
                  Cp(#restores) C(#restores) P(,select 1) B E S";
    own_settings(
        StateMode::Carry,
        Policy::default(),
        &format!(
            "free
             C P(,reset all) B E P(,select 1) B E S
             {within}
             S 1 2 C(RESET) 1 2 D(1) C(SELECT 1) 3 3 1 2 D(1) C(SELECT 1) S(TimeZone=CET) Z(I)
             < 1 2 C(RESET) 1 2 D(1) C(SELECT 1) S(TimeZone=CET) Z(I)
             free
             C Q(select 1)
             > Q(select 1)"
        ),
    );
    own_settings(
        StateMode::Carry,
        Policy::default(),
        &format!(
            "free
             C P(,reset all) B E P(,select 1) B E S
             {within}
             S 1 2 E(57014 x) Z(I)
             < 1 2 E(57014 x) Z(I)
             free"
        ),
    );
}

#[test]
fn in_session_mode_a_reset_goes_back_to_the_login_too() {
    for (mode, text, tag) in [
        (StateMode::Carry, "discard all", "DISCARD ALL"),
        (StateMode::Off, "discard all", "DISCARD ALL"),
        (StateMode::Carry, "reset all", "RESET"),
        (StateMode::Carry, "listen a;reset all", "RESET"),
    ] {
        let first = if text.starts_with("listen") { "C(LISTEN) " } else { "" };
        own_settings(
            mode,
            Policy { mode: PoolMode::Session, ..Policy::default() },
            &format!(
                "C Q({text})
                 > Q({text})
                 S {first}C({tag}) S(TimeZone=UTC) Z(I)
                 < {first}C({tag}) S(TimeZone=CET) Z(I)
                 > Q(ALL)
                 C Q(select 1)
                 > Q(select 1)
                 S S(TimeZone=CET) {QUERY} {QUERY}
                 < {QUERY}
                 pins"
            ),
        );
    }
    // Without settings of its own nothing is looked at.
    let policy = Policy { mode: PoolMode::Session, ..Policy::default() };
    check_on(
        &Stage { policy, ..stage(StateMode::Carry) },
        "C Q(set a = 1;discard all)
         > Q(set a = 1;discard all)
         S C(SET) C(DISCARD ALL) Z(I)
         < C(SET) C(DISCARD ALL) Z(I)",
    );
}
