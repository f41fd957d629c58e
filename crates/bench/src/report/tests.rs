//! Claims about the report file.

use super::*;

/// Of a real run, cut down to two loads.
const REAL: &str = include_str!("../../fixtures/report.json");

const FIRST_FORM: &str = r#"{"format": 1, "rounds": 1, "summary": [], "steps": [
    {"round": 0, "load": "canned", "clients": 1, "target": "relay", "outcome": {"tps": 5.0, "latency": null}},
    {"round": 0, "load": "canned", "clients": 2, "target": "relay", "outcome": {"failed": "gone"}}]}"#;

#[test]
fn what_is_written_is_read_back() {
    let report = Report::parse(REAL).expect("a real report");
    assert!(report.steps.len() > 20);
    assert_eq!(Report::parse(&report.to_json()).as_ref(), Ok(&report));
}

#[test]
fn the_first_form_is_still_read() {
    let report = Report::parse(FIRST_FORM).expect("format 1");
    let titles: Vec<_> = report.steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["canned, 1 client", "canned, 2 clients"]);
    assert_eq!(report.steps[1].outcome, Outcome::Failed { failed: "gone".to_owned() });
}

#[test]
fn unknown_fields_are_passed_over() {
    let text = FIRST_FORM.replacen("\"rounds\"", "\"weather\": {\"rain\": [1]}, \"rounds\"", 1);
    assert_eq!(Report::parse(&text), Report::parse(FIRST_FORM));
}

#[test]
fn what_is_no_report_is_refused_in_one_line() {
    let check = |text: &str, wanted: &str| {
        let why = Report::parse(text).expect_err(text);
        assert!(why.contains(wanted) && !why.contains('\n'), "{why}");
    };
    check("", "no report");
    check("{}", "no report");
    check("[1, 2]", "no report");
    check(r#"{"format": 3, "steps": 7}"#, "format 3");
    check(r#"{"format": 0}"#, "format 0");
    check(r#"{"format": 2, "steps": 7}"#, "damaged");
}
