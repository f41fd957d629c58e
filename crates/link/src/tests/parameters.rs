//! Settings follow the client by difference.

use std::sync::Arc;

use super::harness::parameters;
use super::script::{Stage, check, check_on};

fn stage(client: &[(&str, &str, bool)], server: &[(&str, &str, bool)]) -> Stage {
    Stage { client: parameters(client), server: parameters(server), ..Stage::default() }
}

const QUERY: &str = "T D(1) C(SELECT 1) Z(I)";

#[test]
fn sides_that_agree_say_nothing() {
    let pairs = [("TimeZone", "UTC", true), ("work_mem", "1MB", false)];
    check_on(
        &stage(&pairs, &pairs),
        "C Q(x)
         > Q(x)
         S C(SELECT 1) Z(I)
         < C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn only_the_difference_is_set_and_only_strangers_settings_are_reset() {
    check_on(
        &stage(
            &[("a", "1", true), ("b", "2", true), ("c", "3", false)],
            &[("a", "1", true), ("b", "9", true), ("d", "4", true), ("e", "5", false)],
        ),
        &format!(
            "C Q(x)
             > Q(RESET \"e\";SELECT pg_catalog.set_config(E'b',E'2',false),pg_catalog.set_config(E'c',E'3',false))
             S C(RESET) S(b=2) {QUERY}
             <
             > Q(x)
             S {QUERY}
             < {QUERY}
             free
             C Q(x)
             > Q(x)
             S {QUERY}
             < {QUERY}
             free"
        ),
    );
}

#[test]
fn values_and_names_are_quoted() {
    check_on(
        &stage(&[("it's", "a\\b'c\"d", false)], &[("x\"y", "", false)]),
        "C Q(x)
         > Q(RESET \"x\"\"y\";SELECT pg_catalog.set_config(E'it''s',E'a\\\\b''c\"d',false))",
    );
}

#[test]
fn an_empty_value_is_a_value() {
    check_on(
        &stage(&[("search_path", "", false)], &[("search_path", "public", true)]),
        "C Q(x)
         > Q(SELECT pg_catalog.set_config(E'search_path',E'',false))",
    );
}

#[test]
fn the_value_as_the_server_says_it_ends_the_comparing() {
    check_on(
        &stage(&[("DateStyle", "ISO", true)], &[("DateStyle", "Postgres, MDY", true)]),
        &format!(
            "C Q(x)
             > Q(SELECT pg_catalog.set_config(E'DateStyle',E'ISO',false))
             S S(DateStyle=ISO, MDY) {QUERY}
             < S(DateStyle=ISO, MDY)
             > Q(x)
             S {QUERY}
             < {QUERY}
             free
             C Q(x)
             > Q(x)
             S {QUERY}
             < {QUERY}
             free"
        ),
    );
}

#[test]
fn what_a_client_sets_follows_it_and_leaves_the_next_alone() {
    check(&format!(
        "C Q(set)
         > Q(set)
         S C(SET) S(TimeZone=CET) Z(I)
         < C(SET) S(TimeZone=CET) Z(I)
         free
         client b
         C Q(x)
         > Q(SELECT pg_catalog.set_config(E'TimeZone',E'UTC',false))
         S S(TimeZone=UTC) {QUERY}
         <
         > Q(x)
         S {QUERY}
         < {QUERY}
         free
         client a
         server 2
         C Q(x)
         > Q(SELECT pg_catalog.set_config(E'TimeZone',E'CET',false))
         S S(TimeZone=CET) {QUERY}
         <
         > Q(x)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn a_setting_that_is_rolled_back_goes_back() {
    check(&format!(
        "C Q(begin;set)
         > Q(begin;set)
         S C(BEGIN) C(SET) S(TimeZone=CET) Z(T)
         < C(BEGIN) C(SET) S(TimeZone=CET) Z(T)
         C Q(rollback)
         > Q(rollback)
         S C(ROLLBACK) S(TimeZone=UTC) Z(I)
         < C(ROLLBACK) S(TimeZone=UTC) Z(I)
         free
         server 2
         C Q(x)
         > Q(x)
         S {QUERY}
         < {QUERY}
         free"
    ));
}

#[test]
fn only_news_reach_the_client() {
    check(
        "C S
           > S
           S S(TimeZone=UTC) S(application_name=a) Z(I)
           < S(application_name=a) Z(I)
           free",
    );
}

#[test]
fn what_cannot_be_set_is_told() {
    check_on(
        &stage(&[("in_hot_standby", "on", true)], &[("in_hot_standby", "off", true)]),
        "C Q(x)
         < S(in_hot_standby=off)
         > Q(x)",
    );
}

#[test]
fn a_setting_that_the_server_refuses_ends_the_server() {
    check_on(
        &stage(&[("work_mem", "much", false)], &[]),
        "C Q(x)
         > Q(SELECT pg_catalog.set_config(E'work_mem',E'much',false))
         S E(22023 invalid value)
         <
         gone",
    );
}

#[test]
fn notices_of_the_preparation_are_not_the_clients() {
    check_on(
        &stage(&[("a", "1", true)], &[("a", "2", true)]),
        &format!(
            "C Q(x)
             > Q(SELECT pg_catalog.set_config(E'a',E'1',false))
             S N(ours) S(a=1) {QUERY}
             <
             > Q(x)
             S N(yours) {QUERY}
             < N(yours) {QUERY}
             free"
        ),
    );
}

#[test]
fn after_a_reset_of_everything_what_was_carried_is_set_again() {
    for tag in ["RESET", "DISCARD ALL"] {
        check_on(
            &stage(&[("work_mem", "1MB", false)], &[]),
            &format!(
                "C Q(x)
                 > Q(SELECT pg_catalog.set_config(E'work_mem',E'1MB',false))
                 S {QUERY}
                 > Q(x)
                 S {QUERY}
                 < {QUERY}
                 free
                 C Q({tag})
                 > Q({tag})
                 S C({tag}) Z(I)
                 < C({tag}) Z(I)
                 free
                 C Q(x)
                 > Q(SELECT pg_catalog.set_config(E'work_mem',E'1MB',false)) Q(x)
                 S {QUERY}
                 <
                 S {QUERY}
                 < {QUERY}
                 free"
            ),
        );
    }
}

#[test]
fn sides_that_come_to_agree_share_one_set() {
    use super::harness::{Seat, server};
    use super::words::{client_bytes, server_bytes};
    let mut seat = Seat::new(1, &crate::Policy::default(), &Arc::default(), parameters(&[("a", "1", true)]));
    seat.grant(server(1, parameters(&[("a", "2", true)])), false);
    seat.client_says(&client_bytes("S"));
    seat.server_says(&server_bytes("S(a=1) T D(1) C(SELECT 1) Z(I)"));
    seat.server_says(&server_bytes("Z(I)"));
    let server = seat.release().expect("free");
    assert!(Arc::ptr_eq(&server.parameters, &seat.link.client.parameters));
}

#[test]
fn what_a_server_has_taken_before_goes_with_the_clients_own_bytes() {
    let stage = stage(&[("work_mem", "1MB", false)], &[]);
    let carried = "Q(SELECT pg_catalog.set_config(E'work_mem',E'1MB',false))";
    // The first time nobody knows whether it will be taken.
    let first = format!("C Q(x)\n> {carried}\nS {QUERY}\n<\n> Q(x)\nS {QUERY}\n< {QUERY}\nfree\n");
    check_on(
        &stage,
        &format!("{first}server 2\nC Q(x)\n> {carried} Q(x)\nS {QUERY} {QUERY}\n< {QUERY}\nfree"),
    );
    // Nothing for a client that says goodbye, or no whole word.
    check_on(&stage, &format!("{first}server 2\nC X\nclosed\nleft clean"));
    // What fails all the same ends the server before the client's reply is told.
    check_on(
        &stage,
        &format!("{first}server 2\nC Q(x)\n> {carried} Q(x)\nS E(42501 no) Z(I) {QUERY}\n<\ngone"),
    );
}

#[test]
fn a_client_that_waits_for_what_is_set_keeps_its_server() {
    // Its DEALLOCATE may not end a batch of ours.
    check_on(
        &stage(&[("work_mem", "1MB", false)], &[]),
        "C P(s,select 1) S
         > Q(SELECT pg_catalog.set_config(E'work_mem',E'1MB',false))
         S T D(1) C(SELECT 1) Z(I)
         <
         > P(#1,select 1) S
         S 1 Z(I)
         < 1 Z(I)
         free
         server 2
         C Q(deallocate s)
         > Q(SELECT pg_catalog.set_config(E'work_mem',E'1MB',false))
         held
         S T D(1) C(SELECT 1) Z(I)
         <
         > P(s,) S Q(deallocate s)",
    );
}
