//! The first things a reader sees: a tile a target, and the ratios of all loads as one coloured table.

use super::Report;
use super::html::escaped;
use super::palette::Palette;
use crate::summary::{Row, Section, Spread, Verdict};
use crate::table::ranged;

/// A tile a target: its colour, what it is, and how it did against the baseline over all loads.
pub fn tiles(report: &Report, sections: &[Section], palette: &Palette) -> String {
    let mut text = String::from("<div class=\"tiles\">\n");
    for (number, (target, _)) in palette.iter().enumerate() {
        let rows = || sections.iter().filter_map(|section| section.row(target));
        let medians = rows().filter_map(|row| row.cpu_to_baseline).map(|ratio| ratio.median);
        let figure = match (target == report.baseline(), Spread::of(medians)) {
            (false, Some(ratio)) => {
                format!(
                    "<b>{:.2}–{:.2}×</b> <small>the CPU of {}</small>",
                    ratio.min,
                    ratio.max,
                    escaped(report.baseline())
                )
            }
            _ => what_it_is(report, target),
        };
        text += &format!(
            "<button type=\"button\" class=\"tile\" data-series=\"{number}\" aria-pressed=\"false\">\
             <span class=\"name\"><i class=\"dot s{number}\"></i>{}</span><span>{figure}</span>\
             <span class=\"fine\">{}</span></button>\n",
            escaped(target),
            escaped(&tally(rows()))
        );
    }
    text + "</div>\n"
}

fn what_it_is(report: &Report, target: &str) -> String {
    match target {
        "direct" => "no pooler".to_owned(),
        _ if target == report.baseline() => {
            "<b>1.00×</b> <small>what the others are compared with</small>".to_owned()
        }
        _ => escaped(&report.programs.get(target).cloned().flatten().unwrap_or_default()),
    }
}

/// Like "cheaper in 5, dearer in 4, cannot tell in 2".
fn tally<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let verdicts: Vec<_> = rows.filter_map(|row| row.verdict).collect();
    let all = [Verdict::Cheaper, Verdict::Even, Verdict::Dearer, Verdict::TooNoisy, Verdict::TooFewRounds];
    let count = |wanted: &Verdict| verdicts.iter().filter(|verdict| *verdict == wanted).count();
    let words = all.iter().map(|verdict| (verdict.words(), count(verdict))).filter(|(_, count)| *count > 0);
    words.map(|(words, count)| format!("{words} in {count}")).collect::<Vec<_>>().join(", ")
}

/// A ratio to the baseline that is worth a map.
struct Map {
    title: String,
    pick: fn(&Row) -> Option<Spread>,
    more_is_better: bool,
}

/// Beside one another two maps are readable up to so many targets.
const NARROW_MAX: usize = 5;

/// The ratios of all loads to the baseline.
pub fn maps(report: &Report, families: &[Vec<&Section>], palette: &Palette) -> String {
    let baseline = report.baseline();
    let maps = [
        Map {
            title: format!("CPU per transaction, {baseline} = 1"),
            pick: |row| row.cpu_to_baseline,
            more_is_better: false,
        },
        Map {
            title: format!("Throughput, {baseline} = 1"),
            pick: |row| row.tps_to_baseline,
            more_is_better: true,
        },
    ];
    let wide = if palette.iter().count() > NARROW_MAX { " wide" } else { "" };
    let text: String = maps.iter().map(|map| map.table(baseline, families, palette)).collect();
    format!("<div class=\"maps{wide}\">\n{text}</div>\n")
}

impl Map {
    fn ratio(&self, section: &Section, target: &str) -> Option<Spread> {
        section.row(target).and_then(self.pick)
    }

    fn table(&self, baseline: &str, families: &[Vec<&Section>], palette: &Palette) -> String {
        let told = |target: &&str| {
            let mut sections = families.iter().flatten();
            *target != baseline && sections.any(|section| self.ratio(section, target).is_some())
        };
        let targets: Vec<_> = palette.iter().map(|(target, _)| target).filter(told).collect();
        let rows: String = families.iter().map(|family| self.rows(family, &targets)).collect();
        if rows.is_empty() {
            return String::new();
        }
        let head = |target: &&str| format!("<th scope=\"col\">{}</th>", escaped(target));
        let heads: String = targets.iter().map(head).collect();
        format!(
            "<figure class=\"map\"><figcaption>{} <small>blue: better, red: worse, hatched: the rounds do not agree</small>\
             </figcaption>\n<div class=\"scroll\"><table><tr><th scope=\"col\">clients</th>{heads}</tr>\n{rows}</table></div>\
             </figure>\n",
            escaped(&self.title)
        )
    }

    fn rows(&self, family: &[&Section], targets: &[&str]) -> String {
        let told = |section: &&&Section| targets.iter().any(|target| self.ratio(section, target).is_some());
        let row = |section: &&Section| {
            let cells: String =
                targets.iter().map(|target| cell(self.ratio(section, target), self.more_is_better)).collect();
            format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", section.clients)
        };
        let rows: String = family.iter().filter(told).map(row).collect();
        match family.first() {
            Some(first) if !rows.is_empty() => format!(
                "<tr class=\"family\"><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>\n{rows}",
                targets.len() + 1,
                escaped(&first.family())
            ),
            _ => String::new(),
        }
    }
}

/// The colour says which way and how far, the hatching that the rounds do not agree which way.
fn cell(ratio: Option<Spread>, more_is_better: bool) -> String {
    let Some(ratio) = ratio else { return "<td class=\"none\">–</td>".to_owned() };
    let better = (ratio.median > 1.0) == more_is_better;
    let class = if better { "better" } else { "worse" };
    // Twice or half as much is as strong as the colour gets.
    let strength = (ratio.median.max(1e-9).log2().abs()).min(1.0) * 100.0;
    let unsure = if ratio.min < 1.0 && ratio.max > 1.0 { " unsure" } else { "" };
    format!(
        "<td class=\"{class}{unsure}\" style=\"--strength:{strength:.0}%\" title=\"{}\">{:.2}</td>",
        escaped(&ranged(Some(ratio), 1.0, 2)),
        ratio.median
    )
}
