//! COPY in both directions, by both protocols, with Syncs too early, failures and what comes too late.

use super::script::check;

#[test]
fn copy_in_ends_with_the_clients_done() {
    check(
        "C Q(copy t from stdin)
           > Q(copy t from stdin)
           S G
           < G
           held
           C d(row) d(row) c
           > d(row) d(row) c
           S C(COPY 2) Z(I)
           < C(COPY 2) Z(I)
           free",
    );
}

#[test]
fn copy_in_may_be_sent_at_once() {
    check(
        "C Q(copy t from stdin) d(row) c Q(select 1)
           > Q(copy t from stdin) d(row) c Q(select 1)
           S G C(COPY 1) Z(I) T D(1) C(SELECT 1) Z(I)
           < G C(COPY 1) Z(I) T D(1) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn copy_in_fails_at_the_clients_wish() {
    check(
        "C Q(copy t from stdin) f(no)
           > Q(copy t from stdin) f(no)
           S G E(57014) Z(I)
           < G E(57014) Z(I)
           free",
    );
}

#[test]
fn data_behind_a_failed_copy_needs_no_server() {
    check(
        "C Q(copy t from stdin)
           > Q(copy t from stdin)
           S G E(23505) Z(I)
           < G E(23505) Z(I)
           free
           C d(late) c Q(select 1)
           > Q(select 1)
           S T D(1) C(SELECT 1) Z(I)
           < T D(1) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn data_and_ends_outside_a_copy_are_ignored() {
    check(
        "C d(x) c f(x)
           >
           free
           C Q(select 1) d(x) c f(x) Q(select 2)
           > Q(select 1) d(x) c f(x) Q(select 2)
           S T D(1) C(SELECT 1) Z(I)
           < T D(1) C(SELECT 1) Z(I)
           held
           S T D(2) C(SELECT 1) Z(I)
           < T D(2) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn a_query_during_copy_in_ends_the_server() {
    check(
        "C Q(copy t from stdin)
           > Q(copy t from stdin)
           S G
           < G
           C Q(select 1)
           > Q(select 1)
           S E(08P01) Fatal(08P01 lost)
           < E(08P01) Fatal(08P01 lost)
           gone told",
    );
}

#[test]
fn two_copies_in_one_string() {
    check(
        "C Q(copy a from stdin;copy b from stdin;x) d(1) c d(2) c
           > Q(copy a from stdin;copy b from stdin;x) d(1) c d(2) c
           S G C(COPY 1) G C(COPY 1) T D(1) C(SELECT 1)
           < G C(COPY 1) G C(COPY 1) T D(1) C(SELECT 1)
           held
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn copy_out_streams() {
    check(
        "C Q(copy t to stdout)
           > Q(copy t to stdout)
           S H d(1) d(2)
           < H d(1) d(2)
           held
           S c C(COPY 2) Z(I)
           < c C(COPY 2) Z(I)
           free",
    );
}

#[test]
fn copy_out_may_fail_in_the_middle() {
    check(
        "C P(,copy t to stdout) B E S
           > P(,copy t to stdout) B E S
           S 1 2 H d(1) E(57014) Z(I)
           < 1 2 H d(1) E(57014) Z(I)
           free",
    );
}

#[test]
fn extended_copy_in_with_its_sync_in_place() {
    check(
        "C P(,copy t from stdin) B E d(1) c S
           > P(,copy t from stdin) B E d(1) c S
           S 1 2 G C(COPY 1)
           < 1 2 G C(COPY 1)
           held
           S Z(I)
           < Z(I)
           free",
    );
}

#[test]
fn a_sync_within_copy_in_is_owed_nothing() {
    check(
        "C P(,copy t from stdin) B E S
           > P(,copy t from stdin) B E S
           S 1 2 G
           < 1 2 G
           C d(1) c S
           > d(1) c S
           S C(COPY 1) Z(I)
           < C(COPY 1) Z(I)
           free",
    );
}

#[test]
fn a_sync_sent_while_copying_is_owed_nothing_either() {
    check(
        "C Q(copy t from stdin)
           > Q(copy t from stdin)
           S G
           < G
           C S d(1) S c
           > S d(1) S c
           S C(COPY 1) Z(I)
           < C(COPY 1) Z(I)
           free",
    );
}

#[test]
fn a_batch_whose_only_sync_was_eaten_is_not_over() {
    check(
        "C P(,copy t from stdin) B E S d(1) c
           > P(,copy t from stdin) B E S d(1) c
           S 1 2 G C(COPY 1)
           < 1 2 G C(COPY 1)
           held
           C S
           > S
           S Z(I)
           < Z(I)
           free",
    );
}

/// What tokio-postgres does: where the first Sync was eaten, only the second is answered.
#[test]
fn a_failed_copy_that_ate_a_sync_is_proved_by_a_query_of_our_own() {
    check(
        "C P(,copy t from stdin) B E S
           > P(,copy t from stdin) B E S
           S 1 2 G
           < 1 2 G
           C d(boom) f(no) S
           > d(boom) f(no) S
           S E(22P04) Z(I)
           < E(22P04) Z(I)
           > Q
           held
           S I Z(I)
           <
           free",
    );
}

#[test]
fn a_failed_copy_that_left_the_sync_is_proved_by_the_same() {
    check(
        "C P(,copy t from stdin) B E S
           > P(,copy t from stdin) B E S
           S 1 2 G E(23514)
           < 1 2 G E(23514)
           held
           C f(no) S
           > f(no) S
           S Z(I)
           < Z(I)
           > Q
           held
           S Z(I)
           < Z(I)
           held
           S I Z(I)
           <
           free",
    );
}

#[test]
fn a_sync_behind_a_simple_copy_is_proved_too() {
    check(
        "C Q(copy t from stdin) S d(boom) c
           > Q(copy t from stdin) S d(boom) c
           S G E(22P04) Z(I)
           < G E(22P04) Z(I)
           > Q
           S I Z(I)
           <
           free",
    );
}

#[test]
fn nothing_is_proved_before_the_server_was_ready_again() {
    check(
        "C S P(,copy t from stdin) B E S
           > S P(,copy t from stdin) B E S
           S Z(I) 1 2 G E(23514)
           < Z(I) 1 2 G E(23514)
           held
           C c S
           > c S
           S Z(I)
           < Z(I)
           > Q
           S I Z(I)
           <
           free",
    );
}

#[test]
fn an_answered_sync_leaves_no_doubt() {
    check(
        "C P(,copy t from stdin) B E S
           > P(,copy t from stdin) B E S
           S 1 2 G E(23514) Z(I)
           < 1 2 G E(23514) Z(I)
           free",
    );
}

#[test]
fn the_next_reply_proves_that_a_sync_was_eaten() {
    check(
        "C P(,copy t from stdin) B E S d(boom) c S P(s,x) P(t,x) B(t) E S
           > P(,copy t from stdin) B E S d(boom) c S P(#1,x) C(#1) P(#1,x) B(#1) E S
           S 1 2 G E(22P04) Z(I)
           < 1 2 G E(22P04) Z(I)
           S 1 3 1 2 D(1) C(SELECT 1) Z(I)
           < 1 1 2 D(1) C(SELECT 1) Z(I)
           free",
    );
}

#[test]
fn behind_a_copy_that_may_eat_syncs_no_reply_is_our_own() {
    check(
        "C P(s,x) S
           > P(#1,x) S
           S 1 Z(I)
           < 1 Z(I)
           free
           C P(,copy t from stdin) B E S d(boom) c S P(t,x) C(s) S
           > P(,copy t from stdin) B E S d(boom) c S C(#1) P(#1,x) C(#0) S
           S 1 2 G E(22P04) Z(I)
           < 1 2 G E(22P04) Z(I)
           S 3 1 3 Z(I)
           < 1 3 Z(I)
           free",
    );
}

#[test]
fn a_command_that_ends_a_copy_without_the_clients_done_ends_the_server() {
    check(
        "C Q(copy t from stdin)
           > Q(copy t from stdin)
           S G
           < G
           S C(COPY 0)
           <
           gone",
    );
}
