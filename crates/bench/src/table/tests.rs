//! Claims about `table`, each as small as it can be.

use super::*;
use crate::report::{Figures, Outcome, Step};

/// A report of one load, with a target's figures in each round.
fn text(targets: &[(&str, Vec<Figures>)]) -> String {
    let steps = targets.iter().flat_map(|(target, rounds)| {
        rounds.iter().enumerate().map(|(round, figures)| Step {
            round,
            load: "canned".to_owned(),
            clients: 20,
            title: "canned replies, 20 clients".to_owned(),
            target: (*target).to_owned(),
            outcome: Outcome::Measured(Box::new(figures.clone())),
        })
    });
    report(&Report { rounds: 3, seconds: 2, steps: steps.collect(), ..Report::default() })
}

fn tps(tps: f64) -> Figures {
    Figures { tps: Some(tps), ..Figures::default() }
}

fn cpu(cpu: f64) -> Figures {
    Figures { cpu_s_per_1000: Some(cpu), ..Figures::default() }
}

#[test]
fn columns_without_figures_are_left_out() {
    let text = text(&[
        ("direct", vec![tps(990.0), tps(1_000.0), tps(1_020.4)]),
        ("pgbouncer", vec![Figures::default()]),
    ]);
    assert_eq!(
        text.lines().skip(1).take(4).collect::<Vec<_>>(),
        [
            "canned replies, 20 clients (median of 3 rounds of 2 s, least-most in brackets)",
            "  target                 tps  spread  errors",
            "  direct     1000 [990-1020]      3%       0",
            "  pgbouncer                                0",
        ]
    );
    assert!(!text.contains('~'));
}

#[test]
fn a_wide_spread_is_called_noise() {
    let text = text(&[("relay", vec![cpu(0.015), cpu(0.02), cpu(0.03)])]);
    assert!(text.contains("0.0200 [0.0150-0.0300] ~"), "{text}");
    assert!(text.contains("75% ~"), "{text}");
    assert!(text.contains("The machine was too noisy to tell"), "{text}");
    assert!(text.contains("In 1 of 1 rows"), "{text}");
}

#[test]
fn what_is_cheaper_in_every_round_is_said_to_be_with_the_odds() {
    let text = text(&[("pgbouncer", vec![cpu(0.02); 3]), ("howdah-1", vec![cpu(0.01); 3])]);
    assert!(text.contains("cheaper"), "{text}");
    assert!(text.contains("one pair in 4 is"), "three rounds: {text}");
}

#[test]
fn a_run_without_its_baseline_says_so() {
    assert!(text(&[("relay", vec![cpu(1.0); 3])]).contains("No ratios to pgbouncer"));
}

#[test]
fn errors_stand_below_the_table_by_sqlstate() {
    let states = [("53300".to_owned(), 2), ("08006".to_owned(), 1)].into();
    let first_error = Some("53300 too many".to_owned());
    let text =
        text(&[("relay", vec![Figures { errors: 3, errors_by_state: states, first_error, ..cpu(1.0) }])]);
    assert!(text.contains("\n  relay: 08006: 1, 53300: 2; first: 53300 too many\n"), "{text}");
}

#[test]
fn where_clients_wait_is_told_by_its_slowest_statements() {
    let statement = |text: &str, mean_s| Statement { statement: text.to_owned(), mean_s };
    let round = |begin| Figures {
        statements: vec![statement("BEGIN", begin), statement("UPDATE", 0.002), statement("END", 0.001)],
        latency_deviation_s: Some(0.0042),
        ..cpu(1.0)
    };
    let text = text(&[("howdah-1", vec![round(0.04), round(0.06)])]);
    let wanted = "howdah-1: waits most at BEGIN 50.0 ms, UPDATE 2.0 ms, END 1.0 ms; latency's standard deviation 4.2 ms";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn a_mean_is_shown_where_there_are_no_percentiles() {
    let latency = crate::report::Latency::default();
    let mean = Figures { latency_mean_s: Some(0.0015), latency_p99_s: Some(0.007), ..Figures::default() };
    let alone = text(&[("relay", vec![mean.clone()])]);
    assert!(alone.contains("mean ms") && alone.contains("1.500") && alone.contains("7.000"), "{alone}");
    assert!(!text(&[("relay", vec![Figures { latency: Some(latency), ..mean }])]).contains("mean ms"));
}

#[test]
fn a_wide_table_is_folded_and_names_its_targets_in_each_part() {
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    let table = [row(["target", "aaaa", "bbbb", "cccc"]), row(["relay", "1", "2", "3"])];
    let blocks = folded(&table, 20);
    let text: Vec<_> = blocks.iter().map(|block| lines(block)).collect();
    assert_eq!(text, ["  target  aaaa  bbbb\n  relay      1     2\n", "  target  cccc\n  relay      3\n"]);
    assert_eq!(folded(&table, 1).len(), 3, "a part has one column at least");
}
