//! Claims about comparisons.

use super::*;
use crate::report::{Figures, Outcome, Step};

const TITLE: &str = "canned replies, 20 clients";

fn step(round: usize, target: &str, outcome: Outcome) -> Step {
    let (load, title) = ("canned".to_owned(), TITLE.to_owned());
    Step { round, load, clients: 20, title, target: target.to_owned(), outcome }
}

/// A report with the throughput of each target's rounds.
fn run(targets: &[(&str, &[f64])]) -> Report {
    let measured = |target: &str, round: usize, tps: f64| {
        let figures = Figures { tps: Some(tps), ..Figures::default() };
        step(round, target, Outcome::Measured(Box::new(figures)))
    };
    let steps = targets.iter().flat_map(|(target, rounds)| {
        rounds.iter().enumerate().map(|(round, &tps)| measured(target, round, tps)).collect::<Vec<_>>()
    });
    Report { format: 2, rounds: 3, steps: steps.collect(), ..Report::default() }
}

const QUIET: &[f64] = &[100.0, 101.0, 102.0];

/// What becomes of howdah's throughput beside a relay with those rounds.
fn check(relay: (&[f64], &[f64]), howdah: (&[f64], &[f64]), wanted: Verdict) {
    let before = run(&[("relay", relay.0), ("howdah-1", howdah.0)]);
    let after = run(&[("relay", relay.1), ("howdah-1", howdah.1)]);
    let changes = compare(&before, &after).changes;
    assert_eq!(changes.len(), 1, "controls are not judged");
    assert_eq!(changes[0].verdict, wanted, "{relay:?} {howdah:?}");
}

#[test]
fn a_change_beyond_noise_is_told_with_its_direction() {
    check((QUIET, QUIET), (&[100.0, 101.0, 102.0], &[110.0, 111.0, 112.0]), Verdict::Better);
    check((QUIET, QUIET), (&[110.0, 111.0, 112.0], &[100.0, 101.0, 102.0]), Verdict::Worse);
}

#[test]
fn a_small_change_is_none_even_when_rounds_are_apart() {
    check((QUIET, QUIET), (&[100.0, 100.0, 100.0], &[104.0, 104.0, 104.0]), Verdict::Same);
}

#[test]
fn a_change_whose_rounds_overlap_is_not_claimed() {
    check((QUIET, QUIET), (&[100.0, 101.0, 112.0], &[110.0, 115.0, 116.0]), Verdict::TooNoisy);
}

#[test]
fn rounds_too_far_apart_do_not_prove_that_nothing_changed() {
    check((QUIET, QUIET), (&[80.0, 100.0, 120.0], &[80.0, 100.0, 120.0]), Verdict::TooNoisy);
}

#[test]
fn what_the_relay_does_as_well_is_the_machine() {
    let slower: &[f64] = &[70.0, 71.0, 72.0];
    check((QUIET, slower), (&[100.0, 101.0, 102.0], &[75.0, 75.0, 75.0]), Verdict::TooNoisy);
    check((QUIET, slower), (&[100.0, 101.0, 102.0], &[30.0, 30.0, 30.0]), Verdict::Worse);
}

#[test]
fn two_rounds_tell_nothing() {
    check((QUIET, QUIET), (&[100.0, 101.0], &[200.0, 201.0, 202.0]), Verdict::TooFewRounds);
}

#[test]
fn without_a_control_only_a_large_change_counts_and_that_is_said() {
    let compared = |tps: f64| compare(&run(&[("howdah-1", &[100.0; 3])]), &run(&[("howdah-1", &[tps; 3])]));
    assert_eq!(compared(110.0).changes[0].verdict, Verdict::Same);
    assert_eq!(compared(120.0).changes[0].verdict, Verdict::Better);
    assert!(compared(120.0).warnings.iter().any(|warning| warning.contains("relay or direct")));
}

#[test]
fn what_fails_now_got_worse_and_what_fails_no_more_got_better() {
    let sound = run(&[("howdah-1", &[100.0; 3])]);
    let broken = Outcome::Failed { failed: "08006 gone".to_owned() };
    let broken = Report { steps: vec![step(0, "howdah-1", broken)], ..sound.clone() };
    let verdict = |before, after| compare(before, after).changes[0].verdict;
    assert_eq!(verdict(&sound, &broken), Verdict::Worse);
    assert_eq!(verdict(&broken, &sound), Verdict::Better);
    assert_eq!(verdict(&broken, &broken), Verdict::TooNoisy);
}

#[test]
fn less_latency_and_less_memory_are_better() {
    let run = |scale: f64| {
        let latency = crate::report::Latency { p50_s: scale, p99_s: scale, ..Default::default() };
        let figures =
            Figures { latency: Some(latency), bytes_per_client: Some(1e3 * scale), ..Figures::default() };
        let steps = (0..3).map(|round| step(round, "howdah-1", Outcome::Measured(Box::new(figures.clone()))));
        Report { format: 2, steps: steps.collect(), ..Report::default() }
    };
    let verdicts = |before, after| {
        compare(&run(before), &run(after)).changes.iter().map(|change| change.verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(1.0, 0.5), [Verdict::Better; 3]);
    assert_eq!(verdicts(0.5, 1.0), [Verdict::Worse; 3]);
}

#[test]
fn other_machines_and_settings_are_warned_of_but_not_other_ports() {
    let mut before = run(&[("relay", QUIET)]);
    before.configurations.insert("pgbouncer".into(), "canned = host=::1 port=17 user=a\nauth = 1".into());
    let mut after = before.clone();
    after.configurations.insert("pgbouncer".into(), "canned = host=::1 port=99 user=a\nauth = 1".into());
    assert_eq!(compare(&before, &after).warnings, [""; 0]);
    after.configurations.insert("pgbouncer".into(), "canned = host=::1 port=99 user=a\nauth = 2".into());
    after.machine.cores = 7;
    after.pool_size = 5;
    let wanted =
        ["other machine, cores: 0, then 7", "pool size: 0, then 5", "pgbouncer was configured otherwise"];
    assert_eq!(compare(&before, &after).warnings, wanted);
}

#[test]
fn what_only_one_of_them_has_is_named() {
    let one = run(&[("relay", QUIET), ("howdah-1", QUIET), ("howdah-2", QUIET)]);
    let mut two = run(&[("relay", QUIET), ("howdah-1", QUIET), ("haproxy", QUIET)]);
    two.steps.push(Step { title: "COPY".to_owned(), ..two.steps[0].clone() });
    assert_eq!(
        compare(&one, &two).unpaired,
        [
            format!("{TITLE}, haproxy: only in the second"),
            format!("{TITLE}, howdah-2: only in the first"),
            "COPY: only in the second".to_owned(),
        ]
    );
}

#[test]
fn the_first_form_is_compared_by_load_and_clients() {
    let new = run(&[("relay", QUIET), ("howdah-1", QUIET)]);
    let mut old = Report { format: 1, ..new.clone() };
    old.steps.iter_mut().for_each(|step| step.title = "canned, 20 clients".to_owned());
    assert_eq!(compare(&old, &new).count(Verdict::Same), 1);
}

#[test]
fn the_text_shows_what_changed_and_counts_the_rest() {
    let before = run(&[("relay", QUIET), ("howdah-1", QUIET), ("howdah-2", QUIET)]);
    let after = run(&[("relay", QUIET), ("howdah-1", &[50.0; 3]), ("howdah-2", QUIET)]);
    let text = text(&compare(&before, &after));
    for wanted in [
        "WORSE",
        "-50%",
        "no change: howdah-2 tps",
        "figures: 1 worse, 1 without change",
        "one figure in 10\n",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}
