//! Statements that SQL prepares, runs and drops, in one namespace with those of the protocol.

use model::StateMode;

use super::harness::parameters;
use super::script::{Stage, check_on};
use super::state::{QUERY, stage};
use crate::Policy;

fn check(script: &str) {
    check_on(&stage(StateMode::Carry), script);
}

/// Prepares `p` of `select 1` by SQL on server 1, where it becomes `howdah_1`.
const PREPARED: &str = "C Q(prepare p as select 1)
                        > Q(prepare howdah_1 as select 1)
                        S C(PREPARE) Z(I)
                        < C(PREPARE) Z(I)
                        free
                        ";
/// How that is prepared on another server, and what is answered.
const PLACED: &str = "C(#prepares) P(#prepares,PREPARE howdah_1 as select 1) B(#prepares,howdah_prepares) \
                      E(howdah_prepares) Cp(#prepares) C(#prepares)";
const PLACED_IS: &str = "3 1 2 C(PREPARE) 3 3";

fn check_prepared(script: &str) {
    check(&format!("{PREPARED}{script}"));
}

#[test]
fn what_sql_prepares_goes_with_its_client() {
    check_prepared(&format!(
        "C Q(execute p)
         > Q(execute howdah_1)
         S {QUERY}
         < {QUERY}
         free
         server 2
         C Q(explain execute p;create table t as execute p)
         > {PLACED} S Q(explain execute howdah_1;create table t as execute howdah_1)
         S {PLACED_IS} Z(I)
         <
         S {QUERY}
         < {QUERY}
         free
         server 3
         C D(p) B(p) E S
         > {PLACED} D(#1) B(#1) E S
         S {PLACED_IS} t T 2 D(1) C(SELECT 1) Z(I)
         < t T 2 D(1) C(SELECT 1) Z(I)
         free
         server 4
         C P(,execute p) B E S
         > {PLACED} P(,execute howdah_1) B E S
         S {PLACED_IS} 1 2 D(1) C(SELECT 1) Z(I)
         < 1 2 D(1) C(SELECT 1) Z(I)
         free"
    ));
}

#[test]
fn one_text_of_two_clients_is_one_statement_and_one_name_of_two_clients_is_two() {
    check_prepared(&format!(
        "client b
         C Q(prepare p as select 2)
         > Q(prepare howdah_2 as select 2)
         S C(PREPARE) Z(I)
         < C(PREPARE) Z(I)
         free
         C Q(prepare q as select 1)
         > C(#1) S Q(prepare howdah_1 as select 1)
         S 3 Z(I) C(PREPARE) Z(I)
         < C(PREPARE) Z(I)
         free
         C Q(execute p;execute \"q\")
         > Q(execute howdah_2;execute howdah_1)
         S {QUERY}
         < {QUERY}
         free
         client a
         C Q(execute p)
         > Q(execute howdah_1)
         S {QUERY}
         < {QUERY}
         free
         C Q(execute q)
         > Q(execute q)
         S E(26000 no such statement) Z(I)
         < E(26000 no such statement) Z(I)
         free"
    ));
}

#[test]
fn who_reads_constants_otherwise_by_now_prepares_for_nobody_else() {
    check(
        "C P(s,select date '1/2/26') S
         > P(#1,select date '1/2/26') S
         S 1 Z(I)
         < 1 Z(I)
         free
         C Q(set intervalstyle = iso_8601)
         > Q(set intervalstyle = iso_8601)
         S C(SET) Z(I)
         < C(SET) Z(I)
         free
         C B(s) E S
         > B(#1) E S
         S 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free
         server 2
         C B(s) E S
         > Q(SET \"intervalstyle\" TO iso_8601;)
         S C(SET) Z(I)
         <
         > P(#2,select date '1/2/26') B(#2) E S
         S 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free
         client b
         C P(s,select date '1/2/26') S
         > Q(RESET \"intervalstyle\";)
         S C(RESET) Z(I)
         <
         > P(#1,select date '1/2/26') S
         S 1 Z(I)
         < 1 Z(I)
         free",
    );
}

#[test]
fn a_text_is_another_statement_under_another_search_path() {
    check(
        "C Q(set search_path = a)
         > Q(set search_path = a)
         S C(SET) Z(I)
         < C(SET) Z(I)
         free
         C Q(prepare p as table t)
         > Q(prepare howdah_1 as table t)
         S C(PREPARE) Z(I)
         < C(PREPARE) Z(I)
         free
         client b
         C Q(prepare p as table t)
         > Q(RESET \"search_path\";)
         S C(RESET) Z(I)
         <
         > Q(prepare howdah_2 as table t)
         S C(PREPARE) Z(I)
         < C(PREPARE) Z(I)
         free",
    );
}

#[test]
fn a_name_in_use_is_refused_in_its_place() {
    let missing = "E(26000 prepared statement \"howdah_0\" does not exist)";
    let exists = "E(42P05 prepared statement \"p\" already exists)";
    check_prepared(&format!(
        "C Q(prepare P as select 2)
         > Q(EXECUTE howdah_0)
         S {missing} Z(I)
         < {exists} Z(I)
         free
         C Q(select 1;prepare p as select 2;prepare q as select 3)
         > Q(select 1;EXECUTE howdah_0;prepare q as select 3)
         S {QUERY_ONLY} {missing} Z(I)
         < {QUERY_ONLY} {exists} Z(I)
         free
         C Q(execute nobody;prepare p as select 2)
         > Q(execute nobody;EXECUTE howdah_0)
         S E(26000 prepared statement \"nobody\" does not exist) Z(I)
         < E(26000 prepared statement \"nobody\" does not exist) Z(I)
         free
         C P(p,select 2) S
         > B(#0) S
         S {missing} Z(I)
         < {exists} Z(I)
         free
         C P(,prepare p as select 2) B E S
         > P(,prepare p as select 2) B B(#0) S
         S 1 2 {missing} Z(I)
         < 1 2 {exists} Z(I)
         free
         C Q(execute p)
         > Q(execute howdah_1)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

const QUERY_ONLY: &str = "T D(1) C(SELECT 1)";

#[test]
fn names_are_not_undone_with_their_transaction() {
    check(&format!(
        "C Q(prepare p as select 1;select 1/0;prepare q as select 2)
         > Q(prepare howdah_1 as select 1;select 1/0;prepare howdah_2 as select 2)
         S C(PREPARE) E(22012 x) Z(I)
         < C(PREPARE) E(22012 x) Z(I)
         free
         C Q(begin;deallocate p;prepare p as select 3;rollback)
         > C(#drops0) P(#drops0,) S Q(begin;deallocate howdah_drops0;prepare howdah_3 as select 3;rollback)
         S 3 1 Z(I)
         <
         S C(BEGIN) C(DEALLOCATE) C(PREPARE) C(ROLLBACK) Z(I)
         < C(BEGIN) C(DEALLOCATE) C(PREPARE) C(ROLLBACK) Z(I)
         free
         C Q(execute p)
         > Q(execute howdah_3)
         S {QUERY}
         < {QUERY}
         free
         C Q(execute q)
         > Q(execute q)
         S E(26000 x) Z(I)
         < E(26000 x) Z(I)
         free"
    ));
}

#[test]
fn deallocate_frees_the_name_and_leaves_the_statement_to_others() {
    check_prepared(&format!(
        "C Q(DEALLOCATE PREPARE p)
         > C(#drops0) P(#drops0,) S Q(DEALLOCATE PREPARE howdah_drops0)
         S 3 1 Z(I) C(DEALLOCATE) Z(I)
         < C(DEALLOCATE) Z(I)
         free
         C Q(execute p)
         > Q(execute p)
         S E(26000 x) Z(I)
         < E(26000 x) Z(I)
         free
         C Q(prepare p as select 5;execute p;deallocate p;execute p)
         > C(#drops0) P(#drops0,) S \
           Q(prepare howdah_2 as select 5;execute howdah_2;deallocate howdah_drops0;execute p)
         S 3 1 Z(I)
         <
         S C(PREPARE) {QUERY_ONLY} C(DEALLOCATE) E(26000 x) Z(I)
         < C(PREPARE) {QUERY_ONLY} C(DEALLOCATE) E(26000 x) Z(I)
         free
         client b
         C Q(prepare q as select 5)
         > C(#2) S Q(prepare howdah_2 as select 5)
         S 3 Z(I) C(PREPARE) Z(I)
         < C(PREPARE) Z(I)
         free
         C Q(deallocate all;prepare r as select 6;deallocate r;prepare s as select 7)
         > Q(deallocate all;prepare howdah_3 as select 6;deallocate howdah_3;prepare howdah_4 as select 7)
         S C(DEALLOCATE ALL) C(PREPARE) C(DEALLOCATE) C(PREPARE) Z(I)
         < C(DEALLOCATE ALL) C(PREPARE) C(DEALLOCATE) C(PREPARE) Z(I)
         free
         C Q(execute q)
         > Q(execute q)
         S E(26000 x) Z(I)
         < E(26000 x) Z(I)
         free"
    ));
}

#[test]
fn what_comes_behind_a_prepare_waits_for_its_answer() {
    check(
        "C P(,prepare p as select 1) B E P(,execute p) B E S
         > P(,prepare howdah_1 as select 1) B E H
         S 1 2 C(PREPARE)
         < 1 2 C(PREPARE)
         > P(,execute howdah_1) B E S
         S 1 2 D(1) C(SELECT 1) Z(I)
         < 1 2 D(1) C(SELECT 1) Z(I)
         free
         C Q(deallocate p) Q(execute p)
         > C(#drops0) P(#drops0,) S Q(deallocate howdah_drops0)
         S 3 1 Z(I) C(DEALLOCATE) Z(I)
         < C(DEALLOCATE) Z(I)
         > Q(execute p)
         S E(26000 x) Z(I)
         < E(26000 x) Z(I)
         free
         C P(,prepare p as select bad) B E B(p) S
         > P(,prepare howdah_2 as select bad) B E H
         S 1 2 E(42703 no)
         < 1 2 E(42703 no)
         > B(p) S
         S Z(I)
         < Z(I)
         free
         C B(p) S
         > B(p) S
         S E(26000 x) Z(I)
         < E(26000 x) Z(I)
         free",
    );
}

#[test]
fn errors_name_the_clients_name_and_its_own_text() {
    check_prepared(&format!(
        "C Q(execute p (1))
         > Q(execute howdah_1 (1))
         S E(42601 wrong number of parameters for prepared statement \"howdah_1\") Z(I)
         < E(42601 wrong number of parameters for prepared statement \"p\") Z(I)
         free
         C Q(execute howdah_1)
         > Q(EXECUTE howdah_0)
         S E(26000 prepared statement \"howdah_0\" does not exist) Z(I)
         < E(26000 prepared statement \"howdah_1\" does not exist) Z(I)
         free
         server 2
         C Q(execute p)
         > {PLACED} S Q(execute howdah_1)
         S 3 1 2 E(42P01 no table) Z(I) E(26000 prepared statement \"howdah_1\" does not exist) Z(I)
         < E(42P01 no table) Z(I)
         free"
    ));
}

#[test]
fn a_statement_of_the_protocol_that_names_others_is_another_on_each_use() {
    check_prepared(&format!(
        "C P(n,execute p) S
         > P(#2,execute p) S
         S 1 Z(I)
         < 1 Z(I)
         free
         server 2
         C D(n) B(n) E S
         > {PLACED} P(#3,execute howdah_1) D(#3) B(#3) E S
         S {PLACED_IS} 1 t T 2 D(1) C(SELECT 1) Z(I)
         < t T 2 D(1) C(SELECT 1) Z(I)
         free
         C C(p) P(p,select 2) S
         > P(#4,select 2) S
         < 3
         S 1 Z(I)
         < 1 Z(I)
         free
         C B(n) E S
         > P(#5,execute howdah_4) B(#5) E S
         S 1 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free"
    ));
}

#[test]
fn what_the_protocol_has_prepared_is_run_by_sql() {
    check(&format!(
        "C P(s,select 1) S
         > P(#1,select 1) S
         S 1 Z(I)
         < 1 Z(I)
         free
         C Q(execute s;explain analyze execute \"s\")
         > Q(execute howdah_1;explain analyze execute howdah_1)
         S {QUERY}
         < {QUERY}
         free
         server 2
         C Q(execute s)
         > P(#1,select 1) S Q(execute howdah_1)
         S 1 Z(I)
         <
         S {QUERY}
         < {QUERY}
         free
         C Q(execute t)
         > Q(execute t)
         S E(26000 no) Z(I)
         < E(26000 no) Z(I)
         free
         C P(,execute s) B E S
         > P(,execute howdah_1) B E S
         S 1 2 D(1) C(SELECT 1) Z(I)
         < 1 2 D(1) C(SELECT 1) Z(I)
         free
         C P(,deallocate s) B E S B(s) E S
         > P(,deallocate howdah_drops0) B C(#drops0) P(#drops0,) E S
         S 1 2 3 1 C(DEALLOCATE) Z(I)
         < 1 2 C(DEALLOCATE) Z(I)
         > B(s) E S
         S E(26000 no such statement) Z(I)
         < E(26000 no such statement) Z(I)
         free"
    ));
}

#[test]
fn what_is_skipped_takes_no_name() {
    check(
        "C P(s,select 1) S
         > P(#1,select 1) S
         S 1 Z(I)
         < 1 Z(I)
         free
         C P(,select 1/0) B E P(,deallocate s) B E S
         > P(,select 1/0) B E P(,deallocate howdah_drops0) B C(#drops0) P(#drops0,) E S
         S 1 2 E(22012 x) Z(I)
         < 1 2 E(22012 x) Z(I)
         free
         C B(s) E S
         > B(#1) E S",
    );
}

#[test]
fn what_is_prepared_is_known_for_what_it_does_when_sql_runs_it() {
    let prepared = ["P(s,set a = 1) S", "Q(prepare s as select set_config('a','1',false))"];
    let sent = ["P(#1,set a = 1) S", "Q(prepare howdah_1 as select set_config('a','1',false))"];
    for ((prepare, sent), answer) in prepared.iter().zip(sent).zip(["1 Z(I)", "C(PREPARE) Z(I)"]) {
        check(&format!(
            "C {prepare}
             > {sent}
             S {answer}
             < {answer}
             free
             C Q(execute s)
             > Q(execute howdah_1)
             S C(SET) Z(I)
             < C(SET) Z(I)
             free
             client b
             C Q(select 1)
             > Q(RESET \"a\";)
             S C(RESET) Z(I)
             <
             > Q(select 1)
             S {QUERY}
             < {QUERY}
             free"
        ));
    }
}

#[test]
fn there_is_room_for_what_a_client_prepares() {
    let policy = Policy { prepared_max: 1, ..stage(StateMode::Carry).policy };
    check_on(
        &Stage { policy, ..stage(StateMode::Carry) },
        &format!(
            "{PREPARED}
             C Q(prepare q as select 2)
             > C(#1) S Q(prepare howdah_2 as select 2)
             S 3 Z(I) C(PREPARE) Z(I)
             < C(PREPARE) Z(I)
             free
             C Q(execute q;execute p)
             > {PLACED} S Q(execute howdah_2;execute howdah_1)
             S {PLACED_IS} Z(I)
             <
             S {QUERY}
             < {QUERY}
             free"
        ),
    );
}

/// What is kept by its server, as in `pin` and where a text may mean something else later.
fn check_kept(stage: &Stage, text: &str) {
    check_on(
        stage,
        &format!(
            "C Q(prepare s as {text})
             > Q(prepare s as {text})
             S C(PREPARE) Z(I)
             < C(PREPARE) Z(I)
             > Q(census p)
             S D(p,,) C(SELECT 1) Z(I)
             <
             held
             pins PREPARE Prepared
             C P(s,select 2) S
             > B(#0) S
             S E(26000 no) Z(I)
             < E(42P05 prepared statement \"s\" already exists) Z(I)
             held
             C Q(execute s)
             > Q(execute s)
             S {QUERY}
             < {QUERY}
             held
             C C(s) S
             > C(s) S
             S 3 Z(I)
             < 3 Z(I)
             > Q(census p)
             S C(SELECT 0) Z(I)
             <
             free"
        ),
    );
}

#[test]
fn what_cannot_go_with_its_client_keeps_its_server() {
    check_kept(&stage(StateMode::Pin), "select 1");
    let escapes = parameters(&[("standard_conforming_strings", "off", true)]);
    check_kept(
        &Stage { client: escapes.clone(), server: escapes, ..stage(StateMode::Carry) },
        r"select '\\'",
    );
}

#[test]
fn what_goes_with_its_client_is_not_refused() {
    check_on(&stage(StateMode::Refuse), PREPARED);
}

#[test]
fn where_state_is_refused_a_name_in_use_is_called_so() {
    check_on(
        &stage(StateMode::Refuse),
        &format!(
            "{PREPARED}
             C P(,prepare p as select 2) B E S
             > P(,prepare p as select 2) B B(#0) S
             S 1 2 E(26000 no) Z(I)
             < 1 2 E(42P05 prepared statement \"p\" already exists) Z(I)
             free"
        ),
    );
}
