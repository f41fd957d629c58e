//! Claims about `beside`, each as small as it can be.

use super::*;
use crate::options::Mode;
use crate::plan::{Login, Script, Step};
use std::time::Duration;

const LOAD: Load =
    Load::Connect { clients: 100, script: Script::Select, mode: Mode::Extended, login: Login::Plain };

fn text_of(outcomes: Vec<(Kind, Outcome)>) -> String {
    let plan = Plan { targets: vec![Kind::Direct, Kind::Pgpool2], loads: vec![LOAD], rounds: 1, seconds: 1 };
    let results = outcomes
        .into_iter()
        .map(|(target, outcome)| (Step { round: 0, load: LOAD, target }, outcome))
        .collect();
    text(Scenario::ShortConnections, &plan, &results)
}

#[test]
fn published_and_measured_stand_in_one_table() {
    let one = Measurement {
        tps: Some(900.0),
        latency_mean: Some(Duration::from_millis(7)),
        connect_mean: Some(Duration::from_millis(2)),
        ..Measurement::default()
    };
    let text = text_of(vec![(Kind::Direct, Outcome::Measured(Box::new(one)))]);
    let line =
        |head: &str| text.lines().find(|line| line.trim_start().starts_with(head)).expect(head).to_owned();
    assert!(line("(published) PgBouncer").contains("5985"), "{text}");
    let direct = line("direct");
    assert!(["900", "7.0", "2.0"].iter().all(|figure| direct.contains(figure)), "{text}");
    assert!(!text.contains("pgpool2"), "what was not run has no row: {text}");
}

#[test]
fn a_hang_is_a_result_with_its_words() {
    let hung = Outcome::Failed("pgbench hung: killed after 9 s".to_owned());
    let text = text_of(vec![(Kind::Pgpool2, hung)]);
    assert!(text.contains("failed: pgbench hung: killed after 9 s"), "{text}");
}

#[test]
fn the_longest_wait_is_named() {
    let statements = [("BEGIN;", 80), ("UPDATE pgbench_accounts SET x", 10), ("END;", 10)]
        .map(|(text, millis)| (text.to_owned(), Duration::from_millis(millis)));
    let one = Measurement { tps: Some(1.0), statements: statements.into(), ..Measurement::default() };
    assert!(text_of(vec![(Kind::Direct, Outcome::Measured(Box::new(one)))]).contains("80 ms of it in BEGIN"));
}
