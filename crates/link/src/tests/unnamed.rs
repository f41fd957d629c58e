//! The unnamed statement: on its server, on another, and never a stranger's.

use super::script::check;

#[test]
fn the_unnamed_statement_lives_on_its_server() {
    check(
        "C P(,x) D S
         > P(,x) D S
         S 1 t T Z(I)
         < 1 t T Z(I)
         free
         C B E S
         > B E S
         S 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn the_unnamed_statement_follows_its_client() {
    check(
        "C P(,x) D S
         > P(,x) D S
         S 1 t T Z(I)
         < 1 t T Z(I)
         free
         server 2
         C B E S
         > P(,x) B E S
         S 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn a_strangers_unnamed_statement_is_never_bound() {
    check(
        "C P(,secret) D S
         > P(,secret) D S
         S 1 t T Z(I)
         < 1 t T Z(I)
         free
         client b
         C B E S
         > B(#0) E S
         S E(26000 of howdah_0) Z(I)
         < E(26000 unnamed prepared statement does not exist) Z(I)
         free
         C P(,mine) S
         > P(,mine) S
         S 1 Z(I)
         < 1 Z(I)
         free
         client a
         C B E S
         > P(,secret) B E S
         S 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn a_query_destroys_the_unnamed_statement() {
    check(
        "C P(,x) S Q(select 1)
         > P(,x) S Q(select 1)
         S 1 Z(I) T D(1) C(SELECT 1) Z(I)
         < 1 Z(I) T D(1) C(SELECT 1) Z(I)
         free
         C B S
         > B(#0) S
         S E(26000) Z(I)
         < E(26000 unnamed prepared statement does not exist) Z(I)
         free",
    );
}

#[test]
fn a_failed_unnamed_parse_leaves_none() {
    check(
        "C P(,x) S P(,bad) S
         > P(,x) S P(,bad) S
         S 1 Z(I) E(42601) Z(I)
         < 1 Z(I) E(42601) Z(I)
         free
         C B S
         > B(#0) S
         S E(26000) Z(I)
         < E(26000 unnamed prepared statement does not exist) Z(I)
         free",
    );
}

#[test]
fn an_unnamed_parse_behind_a_failed_one_stays() {
    check(
        "C P(,bad) S P(,x) B S
         > P(,bad) S P(,x) B S
         S E(42601) Z(I) 1 2 Z(I)
         < E(42601) Z(I) 1 2 Z(I)
         free
         C B S
         > B S
         S 2 Z(I)
         < 2 Z(I)
         free",
    );
}

#[test]
fn a_query_of_our_own_destroys_it_too() {
    check(
        "C P(,x) D S
         > P(,x) D S
         S 1 t T Z(I)
         < 1 t T Z(I)
         free
         check
         C B E S
         > Q
         S I Z(I)
         > P(,x) B E S
         S 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn one_parsed_behind_deallocate_all_stays() {
    check(
        "C Q(deallocate all) P(,x) B
         > Q(deallocate all) P(,x) B
         S C(DEALLOCATE ALL) Z(I)
         < C(DEALLOCATE ALL) Z(I)
         held
         C B S
         > B S
         S 1 2 2 Z(I)
         < 1 2 2 Z(I)
         free",
    );
}
