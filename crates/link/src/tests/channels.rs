//! LISTEN where somebody else listens for the client.

use model::{PoolMode, StateMode};

use crate::Policy;

use super::harness::parameters;
use super::script::{Stage, check_on};

fn stage(state: StateMode, encoding: &str) -> Stage {
    let reported = parameters(&[("client_encoding", "UTF8", true), ("server_encoding", encoding, true)]);
    let policy = Policy { state, listen_fanout: true, ..Policy::default() };
    Stage { policy, client: reported.clone(), server: reported }
}

fn check(script: &str) {
    check_on(&stage(StateMode::Carry, "UTF8"), script);
}

/// A client that listens on `a`, and has its server still.
const LISTENS: &str = "
    C Q(listen a)
    wishes a
    heard
    > Q(listen a)
    S C(LISTEN) Z(I)
    < C(LISTEN) Z(I)
    > Q(UNLISTEN \"a\";)
    held
    S C(UNLISTEN) Z(I)
    settled a
    notify
";

#[test]
fn a_listen_waits_until_its_channel_is_heard_and_leaves_nothing_on_the_server() {
    check(
        "C Q(listen a)
         wishes a
         free
         unsettled
         heard
         unsettled
         > Q(listen a)
         hush
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         held
         hush
         S C(UNLISTEN) Z(I)
         <
         pins
         settled a
         unsettled
         free
         notify",
    );
}

#[test]
fn a_channel_is_asked_for_once() {
    check(&format!(
        "{LISTENS}
         C Q(listen a)
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         unsettled
         C Q(listen a; listen B; listen \"B\")
         wishes b B
         heard
         > Q(listen a; listen B; listen \"B\")
         S C(LISTEN) C(LISTEN) C(LISTEN) Z(I)
         < C(LISTEN) C(LISTEN) C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";UNLISTEN \"b\";UNLISTEN \"B\";)
         S C(UNLISTEN) C(UNLISTEN) C(UNLISTEN) Z(I)
         settled a b B
         free"
    ));
}

#[test]
fn what_is_sent_before_a_listen_goes_before_it_and_the_rest_waits() {
    check(
        "C Q(begin) Q(listen a) Q(commit)
         > Q(begin)
         wishes a
         held
         S C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         hush
         heard
         > Q(listen a) Q(commit)
         S C(LISTEN) Z(T) C(COMMIT) Z(I)
         < C(LISTEN) Z(T) C(COMMIT) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         settled a
         free",
    );
}

#[test]
fn a_listen_counts_by_what_the_server_says_of_its_transaction() {
    check(
        "C Q(begin) Q(listen a) Q(rollback)
         > Q(begin)
         wishes a
         heard
         > Q(listen a) Q(rollback)
         S C(BEGIN) Z(T) C(LISTEN) Z(T) C(ROLLBACK) Z(I)
         < C(BEGIN) Z(T) C(LISTEN) Z(T) C(ROLLBACK) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         settled
         free",
    );
    check(
        "C Q(listen a; select 1/0)
         wishes a
         heard
         > Q(listen a; select 1/0)
         S C(LISTEN) E(22012 division by zero) Z(I)
         < C(LISTEN) E(22012 division by zero) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         settled
         free",
    );
    check(&format!(
        "{LISTENS}
         C Q(begin) Q(savepoint s) Q(unlisten a) Q(rollback to s) Q(commit)
         > Q(begin) Q(savepoint s) Q(unlisten a) Q(rollback to s) Q(commit)
         S C(BEGIN) Z(T) C(SAVEPOINT) Z(T) C(UNLISTEN) Z(T) C(ROLLBACK) Z(T) C(COMMIT) Z(I)
         < C(BEGIN) Z(T) C(SAVEPOINT) Z(T) C(UNLISTEN) Z(T) C(ROLLBACK) Z(T) C(COMMIT) Z(I)
         unsettled
         free"
    ));
}

/// What came on it meanwhile was sent before the second LISTEN.
#[test]
fn a_channel_that_is_listened_on_no_more_is_asked_for_again() {
    for end in ["rollback", "unlisten a; commit"] {
        let tags = if end == "rollback" { "C(ROLLBACK)" } else { "C(UNLISTEN) C(COMMIT)" };
        check(&format!(
            "C Q(begin) Q(listen a) Q({end})
             > Q(begin)
             wishes a
             heard
             > Q(listen a) Q({end})
             S C(BEGIN) Z(T) C(LISTEN) Z(T) {tags} Z(I)
             < C(BEGIN) Z(T) C(LISTEN) Z(T) {tags} Z(I)
             > Q(UNLISTEN \"a\";)
             unsettled
             C Q(listen a)
             wishes a
             hush
             S C(UNLISTEN) Z(I)
             heard
             > Q(listen a)
             S C(LISTEN) Z(I)
             < C(LISTEN) Z(I)
             > Q(UNLISTEN \"a\";)
             S C(UNLISTEN) Z(I)
             settled a
             free"
        ));
    }
}

#[test]
fn a_channel_that_is_asked_for_again_may_be_refused() {
    check(
        "C Q(begin) Q(listen a) Q(rollback)
         > Q(begin)
         wishes a
         heard
         > Q(listen a) Q(rollback)
         S C(BEGIN) Z(T) C(LISTEN) Z(T) C(ROLLBACK) Z(I)
         < C(BEGIN) Z(T) C(LISTEN) Z(T) C(ROLLBACK) Z(I)
         > Q(UNLISTEN \"a\";)
         C Q(listen a)
         wishes a
         deaf
         > Q(listen a)
         S C(UNLISTEN) Z(I) C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         S T D(n,,) C(SELECT 1) Z(I)
         pins LISTEN Listen
         S A(a one)
         < A(a one)",
    );
}

#[test]
fn a_channel_on_which_the_client_is_about_to_listen_is_not_asked_for_again() {
    check(
        "C Q(listen a) Q(notify a) Q(listen a)
         wishes a
         heard
         > Q(listen a) Q(notify a) Q(listen a)
         S C(LISTEN) Z(I) C(NOTIFY) A(a) Z(I) C(LISTEN) Z(I)
         < C(LISTEN) Z(I) C(NOTIFY) Z(I) C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         settled a
         free",
    );
}

#[test]
fn unlisten_and_discard_all_end_it() {
    for (text, tag) in
        [("unlisten a", "UNLISTEN"), ("unlisten *", "UNLISTEN"), ("discard all", "DISCARD ALL")]
    {
        check(&format!(
            "{LISTENS}
             C Q({text})
             > Q({text})
             S C({tag}) Z(I)
             < C({tag}) Z(I)
             settled
             free"
        ));
    }
    check(&format!(
        "{LISTENS}
         C Q(unlisten b)
         > Q(unlisten b)
         S C(UNLISTEN) Z(I)
         < C(UNLISTEN) Z(I)
         unsettled
         free"
    ));
}

#[test]
fn what_somebody_else_hears_does_not_come_twice() {
    check(
        "C Q(listen a)
         wishes a
         heard
         > Q(listen a)
         S C(LISTEN) A(a one) Z(I) A(a two) A(b three)
         < C(LISTEN) Z(I) A(b three)
         > Q(UNLISTEN \"a\";)
         S A(a four) C(UNLISTEN) Z(I)
         settled a
         free",
    );
}

#[test]
fn what_nobody_will_hear_keeps_the_server() {
    check(
        "C Q(listen a)
         wishes a
         deaf
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         S T D(n,,) C(SELECT 1) Z(I)
         pins LISTEN Listen
         settled
         S A(a one)
         < A(a one)
         held",
    );
}

#[test]
fn the_extended_protocol_waits_at_its_execute() {
    check(
        "C P(,listen a) B() E() S
         > P(,listen a) B
         wishes a
         held
         heard
         > E S
         S 1 2 C(LISTEN) Z(I)
         < 1 2 C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         settled a
         free",
    );
}

#[test]
fn an_answer_of_an_earlier_batch_does_not_make_a_bound_listen_forgotten() {
    check(
        "C P(,select 1) B() E() S P(,listen a) B()
         > P(,select 1) B E S P(,listen a) B
         S 1 2 D(1) C(SELECT 1) Z(I)
         < 1 2 D(1) C(SELECT 1) Z(I)
         C E() S
         wishes a
         heard
         > E S
         S 1 2 C(LISTEN) Z(I)
         < 1 2 C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         settled a
         free",
    );
}

#[test]
fn a_question_that_was_canceled_is_asked_again() {
    check(&format!(
        "{LISTENS}
         C Q(listen a)
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         S E(57014 canceling statement due to user request) Z(I)
         > Q(UNLISTEN \"a\";)
         held
         S C(UNLISTEN) Z(I)
         free"
    ));
}

/// Its statements may be looked at for the settings that it logged in with.
#[test]
fn who_has_a_server_for_itself_listens_by_itself() {
    let reported = [("client_encoding", "UTF8", true), ("server_encoding", "UTF8", true)];
    let own = [&reported[..], &[("work_mem", "5MB", false)]].concat();
    let policy =
        Policy { mode: PoolMode::Session, state: StateMode::Carry, listen_fanout: true, ..Policy::default() };
    check_on(
        &Stage { policy, client: parameters(&own), server: parameters(&reported) },
        "C Q(listen a)
         > Q(SELECT pg_catalog.set_config(E'work_mem',E'5MB',false))
         S T D(5MB) C(SELECT 1) Z(I)
         <
         > Q(listen a)
         S C(LISTEN) Z(I) A(a one)
         < C(LISTEN) Z(I) A(a one)
         held",
    );
}

#[test]
fn where_state_is_refused_listen_is_not() {
    check_on(
        &stage(StateMode::Refuse, "UTF8"),
        "C Q(listen a)
         wishes a
         heard
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         free",
    );
}

#[test]
fn names_that_may_be_others_to_the_server_are_not_fanned_out() {
    for (text, encoding) in [("listen \u{fc}", "LATIN1"), ("listen a.b", "UTF8")] {
        check_on(
            &stage(StateMode::Carry, encoding),
            &format!(
                "C Q({text})
                 > Q({text})
                 S E(42601 no) Z(I)
                 < E(42601 no) Z(I)
                 > Q(census n)
                 S T C(SELECT 0) Z(I)
                 free"
            ),
        );
    }
}

#[test]
fn a_client_that_goes_leaves_a_server_that_is_cleaned() {
    check(
        "C Q(listen a)
         wishes a
         heard
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         left close",
    );
}

#[test]
fn a_client_that_asks_what_it_listens_on_is_shown_it() {
    check(&format!(
        "{LISTENS}
         free
         C Q(select pg_listening_channels())
         > Q(LISTEN \"a\";) Q(select pg_listening_channels())
         S A(a no) C(LISTEN) Z(I) T D(a) C(SELECT 1) Z(I) A(a no)
         < T D(a) C(SELECT 1) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         unsettled
         free
         C Q(begin)
         > Q(LISTEN \"a\";) Q(begin)
         S C(LISTEN) Z(I) C(BEGIN) Z(T)
         < C(BEGIN) Z(T)
         C P(,select pg_listening_channels()) B() E() S
         > P(,select pg_listening_channels()) B E S
         S 1 2 D(a) C(SELECT 1) Z(T)
         < 1 2 D(a) C(SELECT 1) Z(T)
         C Q(commit)
         > Q(commit)
         S C(COMMIT) Z(I)
         < C(COMMIT) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         free"
    ));
    check(&format!(
        "{LISTENS}
         free
         C P(,select pg_listening_channels()) B() E() S
         > Q(LISTEN \"a\";) P(,select pg_listening_channels()) B E S
         S C(LISTEN) Z(I) 1 2 D(a) C(SELECT 1) Z(I)
         < 1 2 D(a) C(SELECT 1) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         free"
    ));
}

/// Else the server would be told to listen and to stop for ever.
#[test]
fn a_statement_that_waits_for_a_quiet_server_comes_before_it_stops_to_listen() {
    check(&format!(
        "{LISTENS}
         free
         C Q(select pg_listening_channels())
         > Q(LISTEN \"a\";) Q(select pg_listening_channels())
         S C(LISTEN) Z(I) T D(a) C(SELECT 1) Z(I)
         < T D(a) C(SELECT 1) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         free
         C Q(prepare p as select 1)
         > Q(LISTEN \"a\";)
         S C(LISTEN) Z(I)
         > Q(prepare howdah_2 as select 1)
         S C(PREPARE) Z(I)
         < C(PREPARE) Z(I)
         > Q(UNLISTEN \"a\";)
         S C(UNLISTEN) Z(I)
         free"
    ));
}

#[test]
fn a_server_that_only_stops_to_listen_may_be_lost() {
    check(
        "C Q(listen a)
         wishes a
         heard
         > Q(listen a)
         harmful
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(UNLISTEN \"a\";)
         harmless
         C Q(select 1)
         > Q(select 1)
         harmful",
    );
    check(
        "C Q(select pg_advisory_lock(1))
         > Q(select pg_advisory_lock(1))
         S T D(1) C(SELECT 1) Z(I)
         < T D(1) C(SELECT 1) Z(I)
         > Q(census l)
         harmful",
    );
}

/// Else its server and whoever listens for it would both tell it.
#[test]
fn a_channel_on_which_the_client_listens_by_itself_is_not_heard_for_it_as_well() {
    check_on(
        &stage(StateMode::Carry, "UTF8"),
        "C Q(listen a)
         wishes a
         deaf
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         S D(n,,) C(SELECT 1) Z(I)
         held
         C Q(listen a)
         > Q(listen a)
         S C(LISTEN) Z(I)
         < C(LISTEN) Z(I)
         > Q(census n)
         S D(n,,) C(SELECT 1) Z(I)
         held
         S A(a x)
         < A(a x)",
    );
}
