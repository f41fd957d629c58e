//! Claims about `options`, each as small as it can be.

use super::*;

fn plan_of(words: &str) -> Result<Plan, BenchError> {
    let words = std::iter::once("bench").chain(words.split_whitespace());
    Options::try_parse_from(words).expect("the command line parses").plan()
}

fn check(words: &str, expected: &str) {
    let plan = plan_of(words).expect("a plan");
    let targets: Vec<_> = plan.targets.iter().map(Kind::to_string).collect();
    let loads: Vec<_> = plan.loads.iter().map(|load| load.title(plan.mode)).collect();
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

#[test]
fn quick_is_short_and_leaves_out_connect_and_memory() {
    check(
        "--quick",
        "3 x60 2s | direct relay pgbouncer howdah-1 howdah-2 | pgbench -S simple, 20 clients; \
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
fn memory_is_run_once_and_not_without_a_pooler() {
    check("--memory --only direct,relay", "5 x1 3s | direct relay | memory, 5000 idle clients");
}

#[test]
fn an_unknown_target_is_named() {
    let error = plan_of("--only pgcat").expect_err("refused");
    assert!(error.to_string().contains("\"pgcat\""), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn nothing_may_be_zero() {
    for words in ["--rounds 0", "--clients 0", "--seconds 0", "--load-threads 0", "--pool-size 0"] {
        assert!(matches!(plan_of(words), Err(BenchError::Options(_))), "{words}");
    }
}
