//! Nobody is told what another has drawn from a sequence.

use model::StateMode;

use super::script::check_on;
use super::state::{QUERY, stage};

fn check(script: &str) {
    check_on(&stage(StateMode::Carry), script);
}

/// Server 1 remembers what `a` has drawn before anybody asked, and it is known that the application asks.
const DRAWN: &str = "
    C Q(select nextval('s'))
    > Q(select nextval('s'))
    S T D(1) C(SELECT 1) Z(I)
    < T D(1) C(SELECT 1) Z(I)
    free
    client b
    server 2
    C Q(select lastval())
    > Q(DISCARD SEQUENCES) Q(select lastval())
    S C(DISCARD SEQUENCES) Z(I) E(55000 no) Z(I)
    < E(55000 no) Z(I)
    free
    client c
    server 1
";

#[test]
fn who_begins_a_transaction_finds_nothing_that_others_have_drawn() {
    check(&format!(
        "{DRAWN}
         C Q(begin)
         > Q(DISCARD SEQUENCES) Q(begin)
         S C(DISCARD SEQUENCES) Z(I) C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         C Q(select lastval())
         > Q(select lastval())
         S E(55000 no) Z(E)
         < E(55000 no) Z(E)
         C Q(rollback)
         > Q(rollback)
         S C(ROLLBACK) Z(I)
         < C(ROLLBACK) Z(I)
         free"
    ));
}

#[test]
fn who_draws_from_one_sequence_finds_nothing_that_others_have_drawn_from_another() {
    check(&format!(
        "{DRAWN}
         C Q(select nextval('t'))
         > Q(DISCARD SEQUENCES) Q(select nextval('t'))
         S C(DISCARD SEQUENCES) Z(I) {QUERY}
         < {QUERY}
         held
         C Q(select currval('s'))
         > Q(select currval('s'))
         S E(55000 no) Z(I)
         < E(55000 no) Z(I)"
    ));
}

#[test]
fn what_nobody_has_drawn_since_is_forgotten_once() {
    check(&format!(
        "{DRAWN}
         C Q(select 1)
         > Q(DISCARD SEQUENCES) Q(select 1)
         S C(DISCARD SEQUENCES) Z(I) {QUERY}
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
fn a_batch_finds_nothing_that_others_have_drawn() {
    check(&format!(
        "{DRAWN}
         C P(,begin) B E P(,select currval('s')) B E S
         > P(,begin) B C(#forgets) P(#forgets,DISCARD SEQUENCES) B(#forgets,howdah_forgets) \
           E(howdah_forgets) Cp(#forgets) C(#forgets) E P(,select currval('s')) B E S
         S 1 2 3 1 2 C(DISCARD SEQUENCES) 3 3 C(BEGIN) 1 2 E(55000 no) Z(E)
         < 1 2 C(BEGIN) 1 2 E(55000 no) Z(E)"
    ));
}
