//! Claims about the page.

use super::*;
use crate::report::{Figures, Outcome, Step};

/// Of a real run, cut down to two loads.
const REAL: &str = include_str!("../../../fixtures/report.json");

fn real() -> Report {
    Report::parse(REAL).expect("a real report")
}

/// What programs say may hold anything.
fn hostile() -> Report {
    let text = "</script><img src=\"http://example.org/x\" onload='a'>&\u{1b}[0m".to_owned();
    let failed = Outcome::Failed { failed: text.clone() };
    let step = |target: &str, outcome| Step {
        round: 0,
        load: text.clone(),
        clients: 1,
        title: text.clone(),
        target: target.to_owned(),
        outcome,
    };
    let one = Figures { tps: Some(f64::MAX), cpu_s_per_1000: Some(0.0), ..Figures::default() };
    let steps = vec![step(&text, failed), step("relay", Outcome::Measured(Box::new(one)))];
    Report {
        command: vec![text.clone()],
        notes: vec![text.clone()],
        beside: Some(text),
        steps,
        ..Report::default()
    }
}

/// The names of elements that are open at the end; panics at a wrong one.
fn open_elements(page: &str) -> Vec<&str> {
    let mut open = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').expect("a tag has an end");
        assert!(!tag.contains('<'), "<{tag}>");
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
        let name = name.trim_end_matches('/');
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {page}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        // These two are text to their ends, in HTML.
        rest = if ["style", "script"].contains(&name) && !tag.starts_with('/') {
            &after[after.find(&format!("</{name}>")).expect("an end")..]
        } else {
            after
        };
    }
    open
}

#[test]
fn every_element_is_closed_where_it_was_opened() {
    for report in [real(), hostile(), Report::default()] {
        assert_eq!(open_elements(&page(&report)), [""; 0]);
    }
}

#[test]
fn the_page_asks_nobody_for_anything() {
    let page = page(&real());
    for word in ["http:", "https:", "//", "src=", "href=", "@import", "url(", "fetch(", "XMLHttp"] {
        assert!(!page.contains(word), "{word} at {:?}", page.find(word).map(|at| &page[at..at + 40]));
    }
}

#[test]
fn what_programs_say_stays_text() {
    let page = page(&hostile());
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(!page.contains("<img"), "an element of a stranger");
    assert!(!page.contains('\u{1b}'));
}

#[test]
fn the_page_has_every_figure_of_the_table() {
    let report = real();
    let page = page(&report).replace("<small>", "").replace("</small>", "");
    let mut seen = 0;
    for section in summary::sections(&report) {
        assert!(page.contains(&section.title));
        for cell in words::cells(&section, report.baseline()).concat() {
            assert!(page.contains(&format!(">{}</t", escaped(&cell))), "{cell}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} cells");
}

#[test]
fn each_family_has_its_charts_with_a_point_a_figure() {
    let report = real();
    let sections = summary::sections(&report);
    let page = page(&report);
    let families = families(&sections);
    assert_eq!(families.len(), 2, "pgbench and canned replies");
    // Throughput, CPU and two latencies; none of them is lost in drawing.
    assert_eq!(page.matches("<svg ").count(), 8);
    let figures =
        |row: &summary::Row| [row.tps, row.cpu_s_per_1000, row.p50_s, row.p99_s].iter().flatten().count();
    let points: usize = sections.iter().flat_map(|section| &section.rows).map(figures).sum();
    assert_eq!(page.matches("class=\"hit\"").count(), points);
}

#[test]
fn every_colour_that_is_drawn_has_a_rule() {
    let page = page(&real());
    for attribute in ["fill", "stroke"] {
        for drawn in page.split(&format!(" {attribute}=\"#")).skip(1).map(|rest| &rest[..6]) {
            assert!(page.contains(&format!(".chart [{attribute}=\"#{drawn}\"]")), "{attribute} {drawn}");
        }
    }
}
