//! Statements whose result has changed: who prepared before is refused, who prepares after is served.

use super::script::{check, check_with};
use crate::Policy;

const STALE: &str = "E(0A000 cached plan must not change result type)";

/// Client `a` prepares `s` on server 1 and is told that it has one column.
const TOLD: &str = "C P(s,x) D(s) S
                    > P(#1,x) D(#1) S
                    S 1 t T(a) Z(I)
                    < 1 t T(a) Z(I)
                    free
                    ";

/// Client `m` changes the schema.
const ALTERED: &str = "client m
                       C Q(alter)
                       > Q(alter)
                       S C(ALTER TABLE) Z(I)
                       < C(ALTER TABLE) Z(I)
                       free
                       ";

/// After `TOLD` and `ALTERED`, by client `a` again.
fn check_altered(script: &str) {
    check(&format!("{TOLD}{ALTERED}client a\n{script}"));
}

#[test]
fn a_server_that_refuses_an_old_plan_is_kept() {
    check(&format!(
        "{TOLD}
         C B(s) E S
         > B(#1) E S
         S {STALE} Z(I)
         < {STALE} Z(I)
         free
         client b
         C P(s,x) D(s) B(s) E S
         > P(#2,x) D(#2) B(#2) E S
         S 1 t T(a,b) 2 D(1) C(SELECT 1) Z(I)
         < 1 t T(a,b) 2 D(1) C(SELECT 1) Z(I)
         free"
    ));
}

#[test]
fn the_refusal_is_known_in_every_language() {
    // `R` is the function that raised it; the harness writes no such field, so this is of the fields alone.
    let error = |code, message, routine| wire::server::ErrorFields { severity: None, code, message, routine };
    let code = Some(&b"0A000"[..]);
    assert!(crate::stale::is_stale_plan(error(code, Some(b"anders"), Some(b"RevalidateCachedQuery"))));
    assert!(crate::stale::is_stale_plan(error(code, Some(crate::stale::STALE_PLAN.as_bytes()), None)));
    assert!(!crate::stale::is_stale_plan(error(code, Some(b"anders"), Some(b"transformStmt"))));
    let other = Some(&b"42P01"[..]);
    assert!(!crate::stale::is_stale_plan(error(other, Some(b"anders"), Some(b"RevalidateCachedQuery"))));
}

#[test]
fn what_is_prepared_after_a_change_is_another_statement() {
    for tag in ["ALTER TABLE", "ALTER TYPE", "DROP TABLE", "DROP VIEW", "CREATE VIEW", "CREATE FUNCTION"] {
        check(&format!(
            "{TOLD}
             client b
             C Q(change)
             > Q(change)
             S C({tag}) Z(I)
             < C({tag}) Z(I)
             C P(s,x) S
             > P(#2,x) S
             S 1 Z(I)
             < 1 Z(I)
             free"
        ));
    }
    for tag in
        ["SELECT 1", "DELETE 1", "DISCARD TEMP", "DO", "COMMIT", "CREATE INDEX", "COPY 1", "DECLARE CURSOR"]
    {
        check(&format!(
            "{TOLD}
             client b
             C Q(no change)
             > Q(no change)
             S C({tag}) Z(I)
             < C({tag}) Z(I)
             C P(s,x) S
             > S
             < 1
             S Z(I)
             < Z(I)
             free"
        ));
    }
}

#[test]
fn a_change_by_execute_counts_too() {
    check(&format!(
        "{TOLD}
         C P(,alter) B() E S
         > P(,alter) B E S
         S 1 2 C(ALTER TABLE) Z(I)
         < 1 2 C(ALTER TABLE) Z(I)
         C P(t,x) S
         > P(#2,x) S
         S 1 Z(I)
         < 1 Z(I)
         free"
    ));
}

#[test]
fn what_was_prepared_in_the_middle_of_a_change_is_doubted_at_its_end() {
    for end in ["COMMIT", "ROLLBACK"] {
        check(&format!(
            "C Q(alter)
             > Q(alter)
             S C(BEGIN) C(ALTER TABLE) Z(T)
             < C(BEGIN) C(ALTER TABLE) Z(T)
             client b
             server 2
             C P(s,x) S
             > P(#1,x) S
             S 1 Z(I)
             < 1 Z(I)
             free
             client a
             server 1
             C Q(end)
             > Q(end)
             S C({end}) Z(I)
             < C({end}) Z(I)
             free
             client b
             server 2
             C P(t,x) S
             > P(#2,x) S
             S 1 Z(I)
             < 1 Z(I)
             free"
        ));
    }
}

#[test]
fn a_result_that_changed_is_refused_where_the_server_did_not_have_the_statement() {
    check_altered(&format!(
        "server 2
         C B(s) E S
         > P(#1,x) D(#1) H
         S 1
         <
         S t T(a,b)
         <
         > C(#1) B(#0) E S
         S 3 E(26000 of howdah_0) Z(I)
         < {STALE} Z(I)
         free
         C D(s) S
         > P(#1,x) D(#1) H
         S 1 t T(a,b)
         > C(#1) D(#0) S
         S 3 E(26000 of howdah_0) Z(I)
         < {STALE} Z(I)
         free
         C C(s) P(s,x) D(s) B(s) E S
         > P(#2,x) D(#2) B(#2) E S
         < 3
         S 1 t T(a,b) 2 D(1) C(SELECT 1) Z(I)
         < 1 t T(a,b) 2 D(1) C(SELECT 1) Z(I)
         free"
    ));
}

#[test]
fn parameters_that_changed_are_refused_too() {
    check_altered(&format!(
        "server 2
         C B(s) E S
         > P(#1,x) D(#1) H
         S 1 t(other) T(a)
         > C(#1) B(#0) E S
         S 3 E(26000) Z(I)
         < {STALE} Z(I)
         free"
    ));
}

#[test]
fn a_result_that_did_not_change_is_compared_once() {
    check_altered(
        "server 2
         C B(s) E S
         > P(#1,x) D(#1) H
         S 1 t T(a)
         <
         > B(#1) E S
         S 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free
         C B(s) E S
         > B(#1) E S
         S 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free
         client b
         C P(t,x) S
         > S
         < 1
         S Z(I)
         < Z(I)
         free
         client a
         server 3
         C B(s) E S
         > P(#1,x) D(#1) B(#1) E S
         S 1 t T(a) 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn a_difference_nobody_had_announced_ends_the_session_before_a_row_is_told() {
    check(&format!(
        "{TOLD}
         server 2
         C B(s) E S
         > P(#1,x) D(#1) B(#1) E S
         S 1 t T(a,b) 2 D(1) C(SELECT 1) Z(I)
         <
         gone
         client b
         server 3
         C P(s,x) S
         > P(#2,x) S
         S 1 Z(I)
         < 1 Z(I)
         free"
    ));
}

#[test]
fn what_nobody_was_told_need_not_be_compared() {
    check(&format!(
        "C P(s,x) S
         > P(#1,x) S
         S 1 Z(I)
         < 1 Z(I)
         free
         {ALTERED}
         client a
         server 2
         C B(s) E S
         > P(#1,x) B(#1) E S
         S 1 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free"
    ));
}

#[test]
fn what_nobody_was_told_and_has_changed_is_refused_everywhere() {
    check(&format!(
        "C P(s,x) S
         > P(#1,x) S
         S 1 Z(I)
         < 1 Z(I)
         free
         C B(s) E S
         > B(#1) E S
         S {STALE} Z(I)
         < {STALE} Z(I)
         free
         server 2
         C B(s) E S
         > B(#0) E S
         S E(26000) Z(I)
         < {STALE} Z(I)
         free"
    ));
}

#[test]
fn a_description_of_a_portal_is_told_too() {
    for portal in ["", "p"] {
        let bind = if portal.is_empty() { "B(s)".to_owned() } else { format!("B(s,{portal})") };
        let bound = bind.replace("(s", "(#1");
        let describe = if portal.is_empty() { "Dp".to_owned() } else { format!("Dp({portal})") };
        check(&format!(
            "C P(s,x) {bind} {describe} E({portal}) S
             > P(#1,x) {bound} {describe} E{} S
             S 1 2 T(a) D(1) C(SELECT 1) Z(I)
             < 1 2 T(a) D(1) C(SELECT 1) Z(I)
             free
             {ALTERED}
             client a
             server 2
             C B(s) E S
             > P(#1,x) D(#1) H
             S 1 t T(a,b)
             > C(#1) B(#0) E S
             S 3 E(26000) Z(I)
             < {STALE} Z(I)
             free",
            if portal.is_empty() { String::new() } else { format!("({portal})") },
        ));
    }
}

#[test]
fn a_portal_of_another_statement_tells_nothing() {
    check(&format!(
        "C P(s,x) B(s,p) P(,y) B() Dp S
         > P(#1,x) B(#1,p) P(,y) B Dp S
         S 1 2 1 2 T(other) Z(I)
         < 1 2 1 2 T(other) Z(I)
         free
         {ALTERED}
         client a
         server 2
         C B(s) S
         > P(#1,x) B(#1) S
         S 1 2 Z(I)
         < 2 Z(I)
         free"
    ));
}

#[test]
fn clients_that_were_told_different_things_are_both_refused_elsewhere() {
    check(&format!(
        "{TOLD}
         client b
         server 2
         C P(s,x) D(s) S
         > P(#1,x) D(#1) S
         S 1 t T(a,b) Z(I)
         < 1 t T(a,b) Z(I)
         free
         server 3
         C B(s) S
         > B(#0) S
         S E(26000) Z(I)
         < {STALE} Z(I)
         free
         C C(s) P(s,x) B(s) S
         > P(#2,x) B(#2) S
         < 3
         S 1 2 Z(I)
         < 1 2 Z(I)
         free"
    ));
}

#[test]
fn a_statement_that_no_longer_parses_is_told_so_while_its_client_waits() {
    check_altered(
        "server 2
         C B(s) E S
         > P(#1,x) D(#1) H
         S E(42P01 gone)
         < E(42P01 gone)
         > B(s) E S
         S Z(I)
         < Z(I)
         free
         C B(s) E S
         > P(#1,x) D(#1) H
         S 1 t T(a)
         > B(#1) E S
         S 2 C(SELECT 0) Z(I)
         < 2 C(SELECT 0) Z(I)
         free",
    );
}

#[test]
fn an_error_before_it_ends_the_wait() {
    check_altered(
        "server 2
         C E(nothing) B(s) S B(s) S
         > E(nothing) P(#1,x) D(#1) H
         S E(34000)
         < E(34000)
         > B(s) S P(#1,x) D(#1) H
         S Z(I)
         < Z(I)
         S 1 t T(a)
         > B(#1) S
         S 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn in_a_transaction_that_changes_the_schema_the_refusal_is_its_own() {
    check(&format!(
        "{TOLD}
         client b
         C P(s,x) S
         > S
         < 1
         S Z(I)
         < Z(I)
         free
         C Q(alter)
         > Q(alter)
         S C(BEGIN) C(ALTER TABLE) Z(T)
         < C(BEGIN) C(ALTER TABLE) Z(T)
         C B(s) E S
         > B(#1) E S
         S {STALE} Z(E)
         < {STALE} Z(E)
         C Q(rollback)
         > Q(rollback)
         S C(ROLLBACK) Z(I)
         < C(ROLLBACK) Z(I)
         free
         client a
         C B(s) E S
         > B(#1) E S
         S 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free
         server 2
         C B(s) E S
         > P(#1,x) D(#1) H
         S 1 t T(a)
         > B(#1) E S
         S 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free"
    ));
}

#[test]
fn room_for_one_statement_is_enough_to_compare() {
    let policy = Policy { prepared_max: 1, ..Policy::default() };
    let script = format!(
        "{TOLD}{ALTERED}client a
         server 2
         C P(t,y) B(s) S
         > P(#2,y) P(#1,x) C(#2) D(#1) H
         S 1 1 3 t T(a)
         < 1
         > B(#1) S
         S 2 Z(I)
         < 2 Z(I)
         free"
    );
    check_with(policy, &script);
}

#[test]
fn where_tables_are_looked_up_is_part_of_a_statement() {
    check(
        "C Q(set)
         > Q(set)
         S C(SET) S(search_path=one) Z(I)
         < C(SET) S(search_path=one) Z(I)
         C P(s,x) S
         > P(#1,x) S
         S 1 Z(I)
         < 1 Z(I)
         C Q(set)
         > Q(set)
         S C(SET) S(search_path=two) Z(I)
         < C(SET) S(search_path=two) Z(I)
         C P(t,x) S
         > P(#2,x) S
         S 1 Z(I)
         < 1 Z(I)",
    );
}

#[test]
fn a_client_that_tries_for_ever_makes_nobody_prepare_anew() {
    let refused = format!(
        "client a
         C B(s) E S
         > B(#1) E S
         S {STALE} Z(I)
         < {STALE} Z(I)
         free
         "
    );
    check(&format!(
        "{TOLD}{refused}
         client b
         C P(s,x) S
         > P(#2,x) S
         S 1 Z(I)
         < 1 Z(I)
         free
         {refused}{refused}
         client b
         C P(t,x) S
         > S
         < 1
         S Z(I)
         < Z(I)
         free"
    ));
}

#[test]
fn what_a_fetch_gives_is_its_cursors_and_may_differ() {
    check(
        "C P(s,fetch 2 from c) D(s) S
         > P(#1,fetch 2 from c) D(#1) S
         S 1 t n Z(I)
         < 1 t n Z(I)
         free
         server 2
         C Q(begin;declare c cursor for select 1)
         > Q(begin;declare c cursor for select 1)
         S C(BEGIN) C(DECLARE CURSOR) Z(T)
         < C(BEGIN) C(DECLARE CURSOR) Z(T)
         C B(s) Dp E S
         > P(#1,fetch 2 from c) B(#1) Dp E S
         S 1 2 T(a) D(1) C(FETCH 1) Z(T)
         < 2 T(a) D(1) C(FETCH 1) Z(T)
         held",
    );
}
