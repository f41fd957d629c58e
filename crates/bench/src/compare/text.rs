//! A comparison as words for a terminal: what changed is shown, what did not is counted.

use super::{Change, Comparison, Verdict};
use crate::table;

/// The whole comparison.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for warning in &comparison.warnings {
        text += &format!("! {warning}\n");
    }
    let mut titles: Vec<&str> = Vec::new();
    for change in &comparison.changes {
        if !titles.contains(&change.title.as_str()) {
            titles.push(&change.title);
        }
    }
    for title in titles {
        let changes: Vec<_> = comparison.changes.iter().filter(|change| change.title == title).collect();
        text += &section(title, &changes);
    }
    if !comparison.unpaired.is_empty() {
        text += "\nnot compared\n";
    }
    for unpaired in &comparison.unpaired {
        text += &format!("  {unpaired}\n");
    }
    text += &format!("\n{}\n", counts(comparison));
    if comparison.count(Verdict::Worse) + comparison.count(Verdict::Better) > 0 {
        text += &format!("{}\n", odds(comparison.rounds));
    }
    text
}

fn section(title: &str, changes: &[&Change]) -> String {
    let mut text = format!("\n{title}\n");
    let heads = ["target", "figure", "before", "after", "change", "is", "counts beyond"];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    let told = |change: &&&Change| matches!(change.verdict, Verdict::Worse | Verdict::Better);
    for change in changes.iter().filter(told) {
        let percent = |share: f64| format!("{:+.0}%", share * 100.0);
        let is = if change.verdict == Verdict::Worse { "WORSE" } else { "better" };
        cells.push(vec![
            change.target.clone(),
            change.figure.to_owned(),
            change.before.clone(),
            change.after.clone(),
            change.growth.map_or(String::new(), percent),
            is.to_owned(),
            change.growth.map_or(String::new(), |_| format!("{:.0}%", change.needed * 100.0)),
        ]);
    }
    if cells.len() > 1 {
        text += &table::lines(&cells);
    }
    let rest = [
        (Verdict::Same, "no change"),
        (Verdict::TooNoisy, "too noisy to tell"),
        (Verdict::TooFewRounds, "too few rounds to tell"),
    ];
    for (verdict, words) in rest {
        let names = names(changes.iter().filter(|change| change.verdict == verdict).copied());
        if !names.is_empty() {
            text += &format!("  {words}: {names}\n");
        }
    }
    text
}

/// Like "howdah-1 tps, p50 ms; pgbouncer tps".
fn names<'a>(changes: impl Iterator<Item = &'a Change>) -> String {
    let mut by_target: Vec<(&str, Vec<&str>)> = Vec::new();
    for change in changes {
        match by_target.iter_mut().find(|(target, _)| *target == change.target) {
            Some((_, figures)) => figures.push(change.figure),
            None => by_target.push((&change.target, vec![change.figure])),
        }
    }
    let names = by_target.iter().map(|(target, figures)| format!("{target} {}", figures.join(", ")));
    names.collect::<Vec<_>>().join("; ")
}

fn counts(comparison: &Comparison) -> String {
    let words = [
        (Verdict::Worse, "worse"),
        (Verdict::Better, "better"),
        (Verdict::Same, "without change"),
        (Verdict::TooNoisy, "too noisy to tell"),
        (Verdict::TooFewRounds, "of too few rounds to tell"),
    ];
    let counts = words.map(|(verdict, words)| (comparison.count(verdict), words));
    let shown =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { "nothing to compare".to_owned() } else { format!("figures: {shown}") }
}

/// How often the rounds of an unchanged figure lie apart by chance: two of all the ways to deal them out.
fn odds((before, after): (usize, usize)) -> String {
    let ways = (1..=before).fold(1.0, |ways, number| ways * (after + number) as f64 / number as f64);
    format!(
        "better and worse: all rounds apart, and further than any of relay and direct; after {before} and {after} rounds, \
         chance alone does the first to one figure in {:.0}",
        (ways / 2.0).max(1.0)
    )
}
