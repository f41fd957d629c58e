//! Claims about `summary`, each as small as it can be.

use super::*;

fn report(rounds: usize, steps: Vec<Step>) -> Report {
    Report { rounds, steps, ..Report::default() }
}

fn step(round: usize, target: &str, outcome: Outcome) -> Step {
    let title = "canned replies, 20 clients".to_owned();
    Step { round, load: "canned".to_owned(), clients: 20, title, target: target.to_owned(), outcome }
}

/// A step with that much CPU a transaction.
fn used(round: usize, target: &str, cpu: f64) -> Step {
    let one = Figures { tps: Some(1_000.0), cpu_s_per_1000: Some(cpu), ..Figures::default() };
    step(round, target, Outcome::Measured(Box::new(one)))
}

fn rows(rounds: usize, steps: Vec<Step>) -> Vec<Row> {
    let mut sections = sections(&report(rounds, steps));
    assert_eq!(sections.len(), 1);
    sections.remove(0).rows
}

fn spread(median: f64, min: f64, max: f64) -> Option<Spread> {
    Some(Spread { median, min, max })
}

#[test]
fn a_median_has_its_neighbours() {
    assert_eq!(Spread::of([3.0, 1.0, 2.0]), spread(2.0, 1.0, 3.0));
    assert_eq!(Spread::of([4.0, 1.0]).map(|spread| spread.median), Some(2.5));
    assert_eq!(Spread::of([f64::NAN]), None);
}

/// The machine grows three times slower; within each round the relay needs half of pgbouncer's.
#[test]
fn ratios_are_paired_within_rounds() {
    let mut steps = Vec::new();
    for (round, cpu) in [0.01, 0.02, 0.03].into_iter().enumerate() {
        steps.push(used(round, "pgbouncer", 2.0 * cpu));
        steps.push(used(round, "relay", cpu));
    }
    let rows = rows(3, steps);
    let [relay, pgbouncer] = &rows[..] else { panic!("two rows") };
    assert_eq!(relay.cpu_to_baseline, spread(0.5, 0.5, 0.5));
    assert_eq!(pgbouncer.cpu_to_relay, spread(2.0, 2.0, 2.0));
    assert_eq!(relay.cpu_s_per_1000, spread(0.02, 0.01, 0.03));
    assert!(relay.noisy);
    assert_eq!((relay.verdict, pgbouncer.verdict), (Some(Verdict::Cheaper), None));
}

#[test]
fn rows_are_in_the_same_order_however_steps_were_shuffled() {
    let names = ["howdah-10", "odyssey", "howdah-2", "pgbouncer", "relay", "direct"];
    let rows = rows(1, names.iter().map(|target| used(0, target, 1.0)).collect());
    let order: Vec<_> = rows.iter().map(|row| row.target.as_str()).collect();
    assert_eq!(order, ["direct", "relay", "pgbouncer", "odyssey", "howdah-2", "howdah-10"]);
}

#[test]
fn any_target_can_be_the_baseline() {
    let steps = vec![used(0, "pgbouncer", 2.0), used(0, "haproxy", 4.0)];
    let report = Report { baseline: Some("haproxy".to_owned()), ..report(1, steps) };
    let section = &sections(&report)[0];
    assert_eq!(section.rows[0].cpu_to_baseline, spread(0.5, 0.5, 0.5));
}

#[test]
fn rounds_close_together_are_not_noisy() {
    let rows = rows(2, vec![used(0, "relay", 100.0), used(1, "relay", 114.0)]);
    assert_eq!(rows.len(), 1, "a target that was never run has no row");
    assert!(!rows[0].noisy);
}

#[test]
fn one_round_has_no_width() {
    assert_eq!(rows(1, vec![used(0, "relay", 100.0)])[0].width(), None);
}

#[test]
fn a_failed_round_is_an_error_with_its_words_and_pairs_with_nothing() {
    let gone = Outcome::Failed { failed: "08P01 gone".to_owned() };
    let steps = vec![
        used(0, "relay", 10.0),
        used(0, "pgbouncer", 10.0),
        used(1, "relay", 10.0),
        step(1, "pgbouncer", gone),
    ];
    let rows = rows(2, steps);
    assert_eq!((rows[1].errors, rows[1].remark.as_deref()), (1, Some("08P01 gone")));
    assert_eq!(rows[0].cpu_to_baseline, spread(1.0, 1.0, 1.0));
}

#[test]
fn a_round_with_errors_is_not_compared_and_its_errors_are_added_up() {
    let faulty = |round| {
        let states = [("26000".to_owned(), 2)].into();
        let one =
            Figures { errors: 2, errors_by_state: states, cpu_s_per_1000: Some(1.0), ..Figures::default() };
        step(round, "pgbouncer", Outcome::Measured(Box::new(one)))
    };
    let rows = rows(2, vec![used(0, "relay", 10.0), faulty(0), used(1, "relay", 10.0), faulty(1)]);
    assert!(rows.iter().all(|row| row.cpu_to_baseline.is_none()));
    assert_eq!((rows[1].errors, rows[1].errors_by_state.get("26000")), (4, Some(&4)));
}

#[test]
fn a_family_is_the_title_without_the_clients() {
    let family =
        |title: &str, clients| Section { title: title.into(), clients, ..Section::default() }.family();
    assert_eq!(family("pgbench -S simple, 1 client", 1), "pgbench -S simple");
    assert_eq!(family("memory, 500 idle clients", 500), "memory");
    assert_eq!(family("managed-950, 950 clients, wall 300", 950), "managed-950, wall 300");
    assert_eq!(family("COPY of 100 MB", 4), "COPY of 100 MB");
}

#[test]
fn a_verdict_needs_every_round() {
    let check = |ratios: &[f64], wanted| assert_eq!(Verdict::of(ratios), wanted, "{ratios:?}");
    check(&[], None);
    check(&[0.5, 0.5], Some(Verdict::TooFewRounds));
    check(&[0.5, 0.9, 0.99], Some(Verdict::Cheaper));
    check(&[1.5, 1.1, 1.01], Some(Verdict::Dearer));
    check(&[0.98, 0.99, 1.02], Some(Verdict::Even));
    check(&[0.9, 0.98, 1.02], Some(Verdict::TooNoisy));
}

fn noise_of(target: &str, widths: &[f64]) -> MachineNoise {
    let steps = widths.iter().enumerate().flat_map(|(number, width)| {
        let at = move |round, cpu| Step { title: number.to_string(), ..used(round, target, cpu) };
        [at(0, 100.0), at(1, 100.0), at(2, 100.0 + width)]
    });
    machine_noise(&sections(&report(3, steps.collect())))
}

#[test]
fn the_machine_is_judged_by_what_has_no_pooler_in_it() {
    let steadiness = |target, widths: &[f64]| noise_of(target, widths).steadiness;
    assert_eq!(steadiness("relay", &[1.0, 2.0, 40.0]), Steadiness::Quiet);
    assert_eq!(steadiness("relay", &[1.0, 12.0, 40.0]), Steadiness::Uneasy);
    assert_eq!(steadiness("relay", &[1.0, 20.0, 40.0]), Steadiness::Noisy);
    let noise = noise_of("pgbouncer", &[20.0]);
    assert!(!noise.by_controls);
    assert_eq!((noise.noisy_rows, noise.told_rows), (1, 1));
}

#[test]
fn nothing_is_said_of_a_machine_after_two_rounds() {
    let noise = machine_noise(&sections(&report(2, vec![used(0, "relay", 1.0), used(1, "relay", 1.0)])));
    assert_eq!(noise.steadiness, Steadiness::Unknown);
}

#[test]
fn a_steady_cpu_does_not_hide_a_throughput_that_is_not() {
    let at = |round, tps| {
        let one = Figures { tps: Some(tps), cpu_s_per_1000: Some(0.01), ..Figures::default() };
        step(round, "relay", Outcome::Measured(Box::new(one)))
    };
    let noise = machine_noise(&sections(&report(3, vec![at(0, 100.0), at(1, 100.0), at(2, 190.0)])));
    assert_eq!(noise.steadiness, Steadiness::Noisy);
}
