//! Claims about `options`, each as small as it can be.

use super::*;

fn stages_of(words: &str) -> Result<Vec<Stage>, BenchError> {
    let words = std::iter::once("bench").chain(words.split_whitespace());
    Options::try_parse_from(words).expect("the command line parses").stages()
}

fn check(words: &str, expected: &str) {
    let stages = stages_of(words).expect("a plan");
    let plan = &stages[0].plan;
    let targets: Vec<_> = plan.targets.iter().map(Kind::to_string).collect();
    let loads: Vec<_> = plan.loads.iter().map(|load| load.title()).collect();
    let line = format!(
        "{} x{} {}s | {} | {}",
        plan.rounds,
        plan.steps(),
        plan.seconds,
        targets.join(" "),
        loads.join("; ")
    );
    assert_eq!(line, expected);
}

/// As clap sees it.
fn refused(words: &str) -> bool {
    Options::try_parse_from(std::iter::once("bench").chain(words.split_whitespace())).is_err()
}

#[test]
fn quick_is_short_and_leaves_out_connect_and_memory() {
    check(
        "--quick",
        "3 x78 1s | direct relay pgbouncer haproxy pgpool2 howdah-1 howdah-2 | pgbench -S simple, 20 clients; \
         pgbench -S simple, 200 clients; canned replies, 20 clients; canned replies, 200 clients",
    );
}

#[test]
fn targets_and_clients_are_chosen_by_name() {
    check(
        "--only pgbouncer,howdah-4 --load pgbench --clients 7 --mode prepared --rounds 1 --seconds 1",
        "1 x2 1s | pgbouncer howdah-4 | pgbench -S prepared, 7 clients",
    );
}

#[test]
fn connections_are_opened_in_all_three_ways() {
    check(
        "--only direct --load connect --clients 9",
        "5 x15 2s | direct | pgbench -S -C simple, 9 clients; pgbench -S -C simple with SCRAM, 9 clients; \
         pgbench -S -C simple through TLS, 9 clients",
    );
    check(
        "--only direct --load connect --login tls --clients 9",
        "5 x5 2s | direct | pgbench -S -C simple through TLS, 9 clients",
    );
}

#[test]
fn bulk_needs_fewer_rounds() {
    check(
        "--only direct --load copy --login plain",
        "5 x6 2s | direct | COPY of 100 MB to the client, 1 client; COPY of 100 MB from the client, 1 client",
    );
}

#[test]
fn bulk_comes_plain_and_through_tls() {
    check(
        "--only direct --load row64k --rounds 1",
        "1 x2 2s | direct | pgbench 64 KB row simple, 20 clients; pgbench 64 KB row simple through TLS, 20 clients",
    );
    check(
        "--only direct --load copy --rounds 1 --login scram,tls",
        "1 x2 2s | direct | COPY of 100 MB to the client through TLS, 1 client; COPY of 100 MB from the client through TLS, 1 client",
    );
}

#[test]
fn memory_is_run_once_and_not_without_a_pooler() {
    check(
        "--memory --only direct,relay",
        "5 x2 2s | direct relay | memory, 5000 idle clients; memory, 10000 idle clients",
    );
}

#[test]
fn a_given_target_is_one_more() {
    check(
        "--only direct --target odyssey=postgres://me:pw@127.0.0.1:6432/x,pid=7 --load pgbench --clients 2 --mode simple",
        "5 x10 2s | direct odyssey | pgbench -S simple, 2 clients",
    );
}

#[test]
fn a_scenario_takes_targets_and_rounds_but_no_loads() {
    check(
        "--scenario haproxy-150 --only haproxy --clients 150 --rounds 1 --seconds 4",
        "1 x2 4s | haproxy | pgbench -S simple, 150 clients; pgbench -S -C simple, 150 clients",
    );
    for words in
        ["--scenario haproxy-150 --load pgbench", "--scenario rds-proxy --quick", "--scenario nothing"]
    {
        assert!(refused(words), "{words}");
    }
}

#[test]
fn an_unknown_target_is_named() {
    let error = stages_of("--only pgcat").expect_err("refused");
    assert!(error.to_string().contains("\"pgcat\""), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn given_targets_need_names_of_their_own() {
    for words in [
        "--target postgres://a@b/c",
        "--target direct=postgres://a@b/c",
        "--target x=postgres://a@b/c --target x=postgres://a@b/c",
        "--target x=postgres://a@b/c,pid=y",
    ] {
        let error = stages_of(words).expect_err("refused");
        assert_eq!((error.to_string().lines().count(), error.exit_code()), (1, 2), "{words}: {error}");
    }
}

#[test]
fn nothing_may_be_zero() {
    for words in [
        "--rounds 0",
        "--clients 0",
        "--seconds 0",
        "--load-threads 0",
        "--pool-size 0",
        "--scale 0",
        "--idle-clients 0",
    ] {
        assert!(matches!(stages_of(words), Err(BenchError::Options(_))), "{words}");
    }
}

/// What runs in an hour: the sum of the guesses, which hold within a tenth.
#[test]
fn the_full_set_fits_into_an_hour_and_the_quick_one_into_three_minutes() {
    for (words, minutes) in [("", 60), ("--quick", 3)] {
        let stages = stages_of(words).expect("a plan");
        let plan = &stages[0].plan;
        let guess: std::time::Duration = plan.order(1).iter().map(|step| step.guess(plan.seconds)).sum();
        assert!(guess.as_secs() < minutes * 54, "{words:?}: {} s", guess.as_secs());
    }
}
