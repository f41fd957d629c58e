//! Servers that keep nothing of a session beyond a transaction: another pooler stands in front of them.

use model::StateMode;

use super::script::check_with;
use crate::Policy;

fn check(script: &str) {
    let policy = Policy { servers_forget: true, state: StateMode::Refuse, ..Policy::default() };
    check_with(policy, script);
}

#[test]
fn a_statement_is_made_anew_in_each_batch() {
    check(
        "C P(s,x) S
         > C(#1) P(#1,x) S
         S 3 1 Z(I)
         < 1 Z(I)
         free
         C B(s) E S
         > C(#1) P(#1,x) B(#1) E S
         S 3 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free
         client b
         C P(t,x) B(t) E B(t) E S
         > C(#1) P(#1,x) B(#1) E B(#1) E S
         S 3 1 2 C(SELECT 1) 2 C(SELECT 1) Z(I)
         < 1 2 C(SELECT 1) 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn within_a_transaction_too() {
    check(
        "C P(s,x) S
         > C(#1) P(#1,x) S
         S 3 1 Z(I)
         < 1 Z(I)
         free
         C Q(begin)
         > Q(begin)
         S C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         held
         C B(s) E S
         > C(#1) P(#1,x) B(#1) E S
         S 3 1 2 C(SELECT 1) Z(T)
         < 2 C(SELECT 1) Z(T)
         held
         C B(s) E S
         > C(#1) P(#1,x) B(#1) E S
         S 3 1 2 C(SELECT 1) Z(T)
         < 2 C(SELECT 1) Z(T)
         held
         C Q(commit)
         > Q(commit)
         S C(COMMIT) Z(I)
         < C(COMMIT) Z(I)
         free",
    );
}

#[test]
fn unnamed_statements_are_no_other_clients() {
    check(
        "C P(,x) S
         > P(,x) S
         S 1 Z(I)
         < 1 Z(I)
         free
         C B E S
         > P(,x) B E S
         S 1 2 C(SELECT 1) Z(I)
         < 2 C(SELECT 1) Z(I)
         free",
    );
}

#[test]
fn what_would_meet_somebody_else_is_refused() {
    let refused = |what: &str, text: &str, instead: &str| {
        let words = format!(
            "0A000 {what} is not allowed here (server_keeps_session = 0): {text}; instead: {instead}"
        );
        check(&format!(
            "C Q({text})
             > Q(EXECUTE howdah_0)
             S E(26000 no such statement) Z(I)
             < E({words}) Z(I)
             free"
        ));
    };
    let (what, _, instead) = sql::state::Reason::Setting.says();
    refused(what, "set work_mem = 1", instead);
    let (what, _, instead) = sql::state::Reason::Listen.says();
    refused(what, "listen a", instead);
    let (what, _, instead) = sql::state::Reason::TempObject.says();
    refused(what, "create temp table t (n int)", instead);
    let (what, _, instead) = sql::state::Reason::Prepared.says();
    refused(what, "prepare p as select 1", instead);
    for text in ["set timezone = 'UTC'", "set local work_mem = 1", "select f()"] {
        check(&format!("C Q({text})\n > Q({text})\n S C(SET) Z(I)\n < C(SET) Z(I)\n free"));
    }
}

#[test]
fn nobody_is_asked_what_somebody_else_did() {
    check(
        "C Q(do $$begin end$$)
         > Q(do $$begin end$$)
         S C(DO) Z(I)
         < C(DO) Z(I)
         free",
    );
}
