//! What is told of what was read.

use std::collections::BTreeSet;
use std::time::Duration;

use console::{NodeRow, PinRow, RouteRow, Snapshot};

use super::*;

fn find(families: &[Family], name: &str) -> Vec<(String, Value)> {
    let family = families.iter().find(|family| family.metric.full_name() == name);
    let series = family.map(|family| family.series.as_slice()).unwrap_or_default();
    series.iter().map(|series| (series.labels.join("|"), series.value)).collect()
}

#[test]
fn names_are_by_the_conventions_and_nobody_elses() {
    let mut names = BTreeSet::new();
    for metric in METRICS {
        let name = metric.full_name();
        assert!(name.starts_with("howdah_") || name.starts_with("process_"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        // Both formats put the unit and `_total` where they belong; here they would stand twice.
        for end in ["_total", "_seconds", "_bytes", "_count", "_sum", "_bucket"] {
            assert!(!metric.name.ends_with(end), "{name}");
        }
        assert!(names.insert(name.clone()), "{name} stands there twice");
        assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\', '"', '|']), "{name}");
        let labels: BTreeSet<_> = metric.labels.iter().collect();
        assert_eq!(labels.len(), metric.labels.len(), "{name}");
        assert!(!labels.contains(&"application_name") && !labels.contains(&"le"), "{name}");
    }
}

#[test]
fn what_was_counted_is_told_in_the_units_of_its_name() {
    let totals =
        stats::Totals { xact_count: 7, xact_time_us: 1_500_000, sent_bytes: 99, ..stats::Totals::default() };
    let pool = |standby: Option<&str>| PoolTally {
        database: "d".to_owned(),
        user: "u".to_owned(),
        standby: standby.map(str::to_owned),
        totals,
        statements: 3,
        is_held: standby.is_some(),
    };
    let reading = Reading { pools: vec![pool(None), pool(Some("h:1"))], ..Reading::default() };
    let families = families(&reading);
    let both = |value: Value| vec![("d|u|".to_owned(), value), ("d|u|h:1".to_owned(), value)];
    assert_eq!(find(&families, "howdah_pool_transactions_total"), both(Value::Count(7)));
    assert_eq!(find(&families, "howdah_pool_transaction_seconds_total"), both(Value::Real(1.5)));
    assert_eq!(find(&families, "howdah_pool_sent_bytes_total"), both(Value::Count(99)));
    assert_eq!(find(&families, "howdah_pool_held")[1].1, Value::Count(1));
    assert!(find(&families, "process_open_fds").is_empty(), "what the system does not say is not told");
}

#[test]
fn applications_are_added_up_and_statements_are_one_of_few() {
    let pin = |application: &str, statement: &str| PinRow {
        database: "d".to_owned(),
        user: "u".to_owned(),
        application_name: application.to_owned(),
        reason: "temporary table".to_owned(),
        statement: statement.to_owned(),
        current: 1,
        total: 10,
        hint: String::new(),
    };
    let pins = vec![pin("a", "CREATE"), pin("b", "create temp"), pin("c", "whatever they say"), pin("d", "")];
    let reading = Reading { shown: Snapshot { pins, ..Snapshot::default() }, ..Reading::default() };
    let families = families(&reading);
    let wanted = |each: u64| {
        vec![
            ("d|u|temporary table|CREATE".to_owned(), Value::Count(2 * each)),
            ("d|u|temporary table|other".to_owned(), Value::Count(2 * each)),
        ]
    };
    assert_eq!(find(&families, "howdah_pins"), wanted(1));
    assert_eq!(find(&families, "howdah_pins_begun_total"), wanted(10));
}

#[test]
fn a_host_has_each_role_and_state_once_and_a_lag_only_if_it_has_one() {
    let node = |port, role, state, lag| NodeRow {
        databases: "d".to_owned(),
        host: "h".to_owned(),
        port,
        role,
        state,
        timeline: Some(3),
        lag,
        since: String::new(),
        connections: 2,
        last_error: String::new(),
        member: String::new(),
        tags: String::new(),
        topology: String::new(),
    };
    let late = Some((10, Duration::from_millis(250)));
    let nodes = vec![node(1, "primary", "up", None), node(2, "standby", "down", late)];
    let reading = Reading { shown: Snapshot { nodes, ..Snapshot::default() }, ..Reading::default() };
    let families = families(&reading);
    assert_eq!(find(&families, "howdah_node_lag_seconds"), [("d|h:2".to_owned(), Value::Real(0.25))]);
    assert_eq!(find(&families, "howdah_node_lag_bytes"), [("d|h:2".to_owned(), Value::Count(10))]);
    assert_eq!(
        find(&families, "howdah_node_up").iter().map(|(_, up)| *up).collect::<Vec<_>>(),
        [Value::Count(1), Value::Count(0)]
    );
    for (name, wanted) in [("howdah_node_role", 12), ("howdah_node_state", 14)] {
        let rows = find(&families, name);
        assert_eq!(rows.len(), wanted);
        assert_eq!(rows.iter().filter(|(_, value)| *value == Value::Count(1)).count(), 2, "{rows:?}");
    }
}

#[test]
fn values_are_bounded_and_what_is_left_out_is_counted() {
    let route = |number: usize| RouteRow {
        database: format!("d{number}"),
        user: "\u{fc}".repeat(1_000),
        to: "primary".to_owned(),
        reason: "write",
        count: 1,
    };
    let routes = (0..SERIES_MAX + 25).map(route).collect();
    let reading = Reading { shown: Snapshot { routes, ..Snapshot::default() }, ..Reading::default() };
    let families = families(&reading);
    assert_eq!(find(&families, "howdah_routes_total").len(), SERIES_MAX);
    assert_eq!(find(&families, "howdah_series_left_out"), [(String::new(), Value::Count(25))]);
    let longest = families.iter().flat_map(|family| &family.series).flat_map(|series| &series.labels);
    assert_eq!(longest.map(String::len).max(), Some(LABEL_BYTES_MAX));
}

#[test]
fn the_document_has_a_line_for_each() {
    let text = manual();
    for metric in METRICS {
        let line = format!("| `{}` |", metric.full_name());
        assert_eq!(text.matches(&line).count(), 1, "{line}");
    }
    assert!(!text.contains("_MAX"));
}
