//! Prepared statements: names are the client's, statements are shared, errors are PostgreSQL's.

use model::PoolMode;

use super::script::{check, check_with};
use crate::Policy;

/// Parses statement `s` of text `x` on server 1, where it becomes `#1`.
const PREPARED: &str = "C P(s,x) S
                        > P(#1,x) S
                        S 1 Z(I)
                        < 1 Z(I)
                        free
                        ";

fn check_prepared(script: &str) {
    check(&format!("{PREPARED}{script}"));
}

#[test]
fn clients_share_a_statement_whatever_they_call_it() {
    check_prepared(
        "client b
         C P(t,x) B(t) E S
         > B(#1) E S
         < 1
         S 2 D(1) C(SELECT 1) Z(I)
         < 2 D(1) C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn one_name_of_two_clients_is_two_statements() {
    check_prepared(
        "client b
         C P(s,y) S
         > P(#2,y) S
         S 1 Z(I)
         < 1 Z(I)
         free
         client a
         C B(s) E S
         > B(#1) E S
         S 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn a_statement_follows_its_client_to_another_server() {
    check_prepared(
        "server 2
         C B(s) E S
         > P(#1,x) B(#1) E S
         S 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free
         C D(s) S
         > D(#1) S
         S t T Z(I)
         < t T Z(I)
         free",
    );
}

#[test]
fn a_parse_that_fails_on_another_server_is_told_in_its_place() {
    check_prepared(
        "server 2
         C B(s) E S
         > P(#1,x) B(#1) E S
         S E(42P01 gone) Z(I)
         < E(42P01 gone) Z(I)
         free
         C B(s) S
         > P(#1,x) B(#1) S
         S 1 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn a_name_in_use_is_an_error_in_postgres_words() {
    check_prepared(
        "C P(s,y) B(s) E S
         > B(#0) B(#1) E S
         S E(26000 prepared statement \"howdah_0\" does not exist) Z(I)
         < E(42P05 prepared statement \"s\" already exists) Z(I)
         free
         C B(s) S
         > B(#1) S
         S 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn a_name_in_use_may_end_the_connection_as_pgbouncer_does() {
    let policy = Policy { misuse_closes: true, ..Policy::default() };
    let script = format!("{PREPARED}C P(s,y) S\n closed prepared statement name is already in use");
    check_with(policy.clone(), &script);
    check_with(policy, "C B(s) S\n closed prepared statement did not exist");
}

#[test]
fn misuses_that_are_skipped_are_not_told() {
    check_prepared(
        "C P(s,1) P(s,2) S
         > B(#0) B(#0) S
         S E(26000 of howdah_0) Z(I)
         < E(42P05 prepared statement \"s\" already exists) Z(I)
         free
         C P(t,bad) P(s,3) S D(#9) S
         > P(#2,bad) B(#0) S D(#0) S
         S E(42601) Z(I) E(26000 of howdah_0) Z(I)
         < E(42601) Z(I) E(26000 prepared statement \"howdah_9\" does not exist) Z(I)
         free",
    );
}

#[test]
fn a_success_of_what_was_sent_to_fail_ends_the_server() {
    check_prepared(
        "C P(s,y) S
         > B(#0) S
         S 2
         <
         gone",
    );
}

#[test]
fn an_unknown_name_is_the_servers_error() {
    check(
        "C B(nobody) E S
           > B(nobody) E S
           S E(26000 prepared statement \"nobody\" does not exist) Z(I)
           < E(26000 prepared statement \"nobody\" does not exist) Z(I)
           free
           C D(nobody) S
           > D(nobody) S
           S E(26000 prepared statement \"nobody\" does not exist) Z(I)
           < E(26000 prepared statement \"nobody\" does not exist) Z(I)
           free",
    );
}

#[test]
fn a_client_cannot_say_a_servers_name() {
    check_prepared(
        "client b
         C B(#1) E S
         > B(#0) E S
         S E(26000 of howdah_0) Z(I)
         < E(26000 prepared statement \"howdah_1\" does not exist) Z(I)
         free
         C C(#1) S
         > S
         < 3
         S Z(I)
         < Z(I)
         free",
    );
}

#[test]
fn a_statement_by_sql_can_be_bound() {
    check(
        "C Q(prepare q as x)
           > Q(prepare q as x)
           S C(PREPARE) Z(I)
           < C(PREPARE) Z(I)
           free
           C B(q) E S
           > B(q) E S
           S 2 C(SELECT 1) Z(I)
           < 2 C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn close_is_never_an_error() {
    check(
        "C C(nobody) Cp(nobody) S
           > C(nobody) Cp(nobody) S
           S 3 3 Z(I)
           < 3 3 Z(I)
           free",
    );
}

#[test]
fn a_closed_name_is_free_and_the_server_keeps_the_statement() {
    check_prepared(
        "C C(s) P(s,y) B(s) E P(t,x) S
         > P(#2,y) B(#2) E S
         < 3
         S 1 2 C(SELECT 1)
         < 1 2 C(SELECT 1) 1
         S Z(I)
         < Z(I)
         free
         C C(s) S
         > S
         < 3
         S Z(I)
         < Z(I)
         free
         C B(s) S
         > B(s) S
         S E(26000) Z(I)
         < E(26000) Z(I)
         free",
    );
}

#[test]
fn closing_a_portal_leaves_the_statement_of_its_name() {
    check_prepared(
        "C Cp(s) B(s) S
         > Cp(s) B(#1) S
         S 3 2 Z(I)
         < 3 2 Z(I)
         free",
    );
}

#[test]
fn a_failed_parse_leaves_the_name_free_and_the_server_without_it() {
    check(
        "C P(s,bad) S
           > P(#1,bad) S
           S E(42601) Z(I)
           < E(42601) Z(I)
           free
           C B(s) S
           > B(s) S
           S E(26000) Z(I)
           < E(26000) Z(I)
           free
           C P(s,bad) S
           > P(#2,bad) S
           S E(42601) Z(I)
           < E(42601) Z(I)
           free",
    );
}

#[test]
fn a_skipped_parse_and_a_skipped_close_did_not_happen() {
    check_prepared(
        "C E C(s) P(t,y) S
         > E P(#2,y) S
         S E(34000) Z(I)
         < E(34000) Z(I)
         free
         C P(t,y) B(s) S
         > P(#3,y) B(#1) S
         S 1 2 Z(I)
         < 1 2 Z(I)
         free",
    );
}

#[test]
fn replies_of_our_own_wait_for_those_before_them() {
    check_prepared(
        "C B(s) E P(t,x) C(t) S
         > B(#1) E S
         <
         S 2 D(1)
         < 2 D(1)
         S C(SELECT 1)
         < C(SELECT 1) 1 3
         held
         S Z(I)
         < Z(I)
         free",
    );
}

#[test]
fn replies_of_our_own_alone_still_need_the_sync() {
    check_prepared(
        "C P(t,x)
         >
         < 1
         free
         server 2
         C B(t) S
         > P(#1,x) B(#1) S
         S 1 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn in_a_failed_transaction_the_server_judges_every_parse() {
    check_prepared(
        "C Q(begin;bad)
         > Q(begin;bad)
         S C(BEGIN) E(42601) Z(E)
         < C(BEGIN) E(42601) Z(E)
         C P(t,x) S
         > C(#1) P(#1,x) S
         S 3 E(25P02) Z(E)
         < E(25P02) Z(E)
         C Q(rollback)
         > Q(rollback)
         S C(ROLLBACK) Z(I)
         < C(ROLLBACK) Z(I)
         free
         C B(s) S
         > P(#1,x) B(#1) S
         S 1 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn the_oldest_statement_makes_room_behind_what_uses_it() {
    let policy = Policy { prepared_max: 1, ..Policy::default() };
    let script = format!(
        "{PREPARED}
         C B(s) P(t,y) B(t) B(s) S
         > B(#1) P(#2,y) C(#1) B(#2) P(#1,x) C(#2) B(#1) S
         S 2 1 3 2 1 3 2 Z(I)
         < 2 1 2 2 Z(I)
         free"
    );
    check_with(policy, &script);
}

#[test]
fn an_eviction_that_is_skipped_did_not_happen() {
    let policy = Policy { prepared_max: 1, ..Policy::default() };
    let script = format!(
        "{PREPARED}
         C E P(t,y) B(s) S
         > E P(#2,y) C(#1) P(#1,x) C(#2) B(#1) S
         S E(34000) Z(I)
         < E(34000) Z(I)
         free
         C B(s) S
         > B(#1) S
         S 2 Z(I)
         < 2 Z(I)
         free"
    );
    check_with(policy, &script);
}

#[test]
fn what_an_earlier_batch_may_skip_is_waited_for() {
    check_prepared(
        "server 2
         C E B(s) S B(s) S
         > E P(#1,x) B(#1) S
         S E(34000) Z(I)
         < E(34000) Z(I)
         > P(#1,x) B(#1) S
         held
         S 1 2 Z(I)
         < 2 Z(I)
         free
         C E P(t,y) C(s) S P(t,y) B(s) S
         > E P(#2,y) S
         S E(34000) Z(I)
         < E(34000) Z(I)
         > P(#3,y) B(#1) S
         S 1 2 Z(I)
         < 1 2 Z(I)
         free",
    );
}

#[test]
fn a_name_that_a_query_may_free_is_waited_for() {
    check_prepared(
        "C Q(DISCARD ALL) P(s,x) S
         > Q(DISCARD ALL)
         S C(DISCARD ALL) Z(I)
         < C(DISCARD ALL) Z(I)
         > P(#2,x) S
         held
         S 1 Z(I)
         < 1 Z(I)
         free",
    );
    check_prepared(
        "C Q(select 1) Q(deallocate s)
         > Q(select 1)
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         > P(s,) S Q(deallocate s)
         S 1 Z(I) C(DEALLOCATE) Z(I)
         < C(DEALLOCATE) Z(I)
         free",
    );
}

#[test]
fn discard_all_forgets_every_name_of_the_client() {
    for tag in ["DISCARD ALL", "DEALLOCATE ALL"] {
        check_prepared(&format!(
            "C Q({tag})
             > Q({tag})
             S C({tag}) Z(I)
             < C({tag}) Z(I)
             free
             C B(s) S
             > B(s) S
             S E(26000) Z(I)
             < E(26000) Z(I)
             free
             client b
             C P(s,x) S
             > P(#2,x) S
             S 1 Z(I)
             < 1 Z(I)
             free"
        ));
    }
}

#[test]
fn what_is_parsed_behind_deallocate_all_stays() {
    check(
        "C Q(deallocate all) P(s,x) S
         > Q(deallocate all) P(#1,x) S
         S C(DEALLOCATE ALL) Z(I) 1 Z(I)
         < C(DEALLOCATE ALL) Z(I) 1 Z(I)
         free
         C B(s) S
         > B(#1) S
         S 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn deallocate_by_sql_frees_the_clients_name() {
    check_prepared(
        "C Q(DEALLOCATE s)
         > P(s,) S Q(DEALLOCATE s)
         S 1 Z(I) C(DEALLOCATE) Z(I)
         < C(DEALLOCATE) Z(I)
         free
         C B(s) S
         > B(s) S
         S E(26000) Z(I)
         < E(26000) Z(I)
         free",
    );
}

#[test]
fn an_error_of_our_own_batch_is_not_told() {
    check_prepared(
        "C Q(DEALLOCATE s)
         > P(s,) S Q(DEALLOCATE s)
         S E(42P05) Z(I) C(DEALLOCATE) Z(I)
         < C(DEALLOCATE) Z(I)
         free",
    );
}

#[test]
fn a_statement_over_the_limit_fails_in_its_place() {
    let policy = Policy { statement_bytes_max: 20, ..Policy::default() };
    check_with(
        policy,
        "C P(s,a text of more than twenty bytes) B(s) S
         > B(#0) B(s) S
         S E(26000) Z(I)
         < E(54000 prepared statement is larger than may be kept (prepared_statement_size_max)) Z(I)
         free",
    );
}

#[test]
fn a_client_over_its_limit_keeps_what_it_has() {
    let policy = Policy { client_statement_bytes_max: 10, ..Policy::default() };
    let script = format!(
        "{PREPARED}
         C P(t,y) S B(s) S
         > B(#0) S B(#1) S
         S E(26000) Z(I) 2 Z(I)
         < E(54000 prepared statement is larger than may be kept (prepared_statement_size_max)) Z(I) 2 Z(I)
         free"
    );
    check_with(policy, &script);
}

#[test]
fn without_a_limit_of_statements_names_pass_as_they_are() {
    for policy in [
        Policy { prepared_max: 0, ..Policy::default() },
        Policy { mode: PoolMode::Session, ..Policy::default() },
    ] {
        check_with(
            policy,
            "C P(s,x) P(s,y) B(s) D(s) C(s) S
             > P(s,x) P(s,y) B(s) D(s) C(s) S
             S 1 E(42P05 own words) Z(I)
             < 1 E(42P05 own words) Z(I)",
        );
    }
}
