//! The report as one HTML page that needs nothing else: no request leaves it. Charts first, then every
//! figure, then all that is needed to repeat the run.

use super::charts::charts;
use super::html::{escaped, table};
use super::palette::{AXIS, CARD, Colour, GRID, INK, Palette, hex};
use super::{CONTROLS, Report, overview};
use crate::summary::{self, Section, Steadiness};
use crate::table as words;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub fn page(report: &Report) -> String {
    let sections = summary::sections(report);
    let palette = Palette::of(&report.targets());
    let mut text = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n",
    );
    text += &format!("<title>{}</title>\n", escaped(&title(report)));
    text += &format!("<style>\n{}{STYLE}</style>\n</head>\n<body>\n", colours(&palette));
    text += &header(report, &sections);
    text += "<main>\n";
    text += &overview::tiles(report, &sections, &palette);
    if let Some(beside) = &report.beside {
        text += &format!(
            "<section>\n<h2>Beside what was published</h2>\n<pre>{}</pre>\n</section>\n",
            escaped(beside)
        );
    }
    let families = families(&sections);
    text += &overview::maps(report, &families, &palette);
    for family in &families {
        text += &chapter(report, family, &palette);
    }
    text += &how_to_repeat(report);
    text += "</main>\n<div id=\"tip\" role=\"status\"></div>\n";
    text + &format!("<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}

/// What competes; a run without it is named after what it has.
fn title(report: &Report) -> String {
    let baseline = report.baseline();
    let targets = report.targets();
    let ours: Vec<_> =
        targets.iter().copied().filter(|target| *target != baseline && !CONTROLS.contains(target)).collect();
    if ours.is_empty() || !targets.contains(&baseline) {
        return targets.join(", ");
    }
    format!("{} against {baseline}", ours.join(", "))
}

/// The colours as variables, and the rules that put them where plotters has drawn the light ones.
fn colours(palette: &Palette) -> String {
    let pair = |colour: Colour| format!("light-dark({}, {})", hex(colour.light), hex(colour.dark));
    let own = [("ink-2", INK), ("grid", GRID), ("axis", AXIS), ("card", CARD)];
    let mut named: Vec<_> = own.iter().map(|(name, colour)| ((*name).to_owned(), *colour)).collect();
    named.extend(palette.iter().enumerate().map(|(number, (_, colour))| (format!("s{number}"), colour)));
    let mut text = String::from(":root {\n");
    for (name, colour) in &named {
        text += &format!("  --{name}: {};\n", pair(*colour));
    }
    text += "}\n";
    for (name, colour) in &named {
        let drawn = hex(colour.light);
        text += &format!(".chart [fill=\"{drawn}\"] {{ fill: var(--{name}) }}\n");
        text += &format!(".chart [stroke=\"{drawn}\"] {{ stroke: var(--{name}) }}\n");
    }
    for (number, (_, colour)) in palette.iter().enumerate() {
        let drawn = hex(colour.light);
        text += &format!(".s{number} {{ --series: var(--s{number}) }}\n");
        text += &format!(
            "[data-only]:not([data-only=\"{number}\"]) .chart :is([fill=\"{drawn}\"], [stroke=\"{drawn}\"]) \
             {{ opacity: 0.12 }}\n"
        );
    }
    text
}

fn header(report: &Report, sections: &[Section]) -> String {
    let class = match summary::machine_noise(sections).steadiness {
        Steadiness::Quiet => "quiet",
        Steadiness::Uneasy => "uneasy",
        Steadiness::Noisy | Steadiness::Unknown => "noisy",
    };
    let verdict: String = words::verdict(report, sections)
        .iter()
        .map(|sentence| format!("<p>{}</p>\n", escaped(sentence)))
        .collect();
    format!(
        "<header>\n<div class=\"bar\"><span class=\"brand\">howdah bench</span>\
         <button type=\"button\" id=\"theme\" aria-label=\"Light or dark\">◐</button></div>\n\
         <h1>{}</h1>\n<p class=\"where\">{}</p>\n<div class=\"verdict {class}\">\n{verdict}</div>\n</header>\n",
        unbroken(&title(report)),
        escaped(&place(report)),
    )
}

/// Words of which none is broken at its hyphen.
fn unbroken(words: &str) -> String {
    let word = |word: &str| match word.contains('-') {
        true => format!("<span class=\"word\">{}</span>", escaped(word)),
        false => escaped(word),
    };
    words.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// When, where and how often, in one line.
fn place(report: &Report) -> String {
    let machine = &report.machine;
    let mut parts = Vec::new();
    parts.extend(report.started.as_ref().map(|started| started.replace('T', " ").replace('Z', " UTC")));
    let cpu = machine.cpu.clone().unwrap_or_else(|| "unnamed processor".to_owned());
    parts.push(format!("{} cores, {cpu}", machine.cores));
    parts.push(format!("Linux {}", machine.kernel));
    let plural = if report.rounds == 1 { "" } else { "s" };
    parts.push(format!("{} round{plural} of {} s each", report.rounds, report.seconds));
    parts.join(" · ")
}

/// Sections that differ in their clients alone belong together.
fn families(sections: &[Section]) -> Vec<Vec<&Section>> {
    let mut families: Vec<Vec<&Section>> = Vec::new();
    for section in sections {
        let name = section.family();
        match families.iter_mut().find(|family| family.first().is_some_and(|first| first.family() == name)) {
            Some(family) => family.push(section),
            None => families.push(vec![section]),
        }
    }
    for family in &mut families {
        family.sort_by_key(|section| section.clients);
    }
    families
}

fn chapter(report: &Report, family: &[&Section], palette: &Palette) -> String {
    let name = family.first().map(|section| section.family()).unwrap_or_default();
    let drawn = charts(family, palette);
    let mut text = format!("<section>\n<h2>{}</h2>\n", escaped(&name));
    if !drawn.is_empty() {
        text += "<p class=\"legend\">";
        let charted =
            |target: &str| family.iter().filter_map(|one| one.row(target)).any(|row| row.is_measured());
        for (number, (target, _)) in palette.iter().enumerate().filter(|(_, (target, _))| charted(target)) {
            text += &format!("<span><i class=\"dot s{number}\"></i>{}</span> ", escaped(target));
        }
        text += "<span class=\"fine\">whiskers: least and most of the rounds; hollow or pale: too far apart to tell</span></p>\n";
    }
    text += "<div class=\"charts\">\n";
    for chart in drawn {
        text += &format!(
            "<figure class=\"chart\"><figcaption>{} <small>{}</small></figcaption>\n{}</figure>\n",
            escaped(chart.title),
            escaped(chart.unit),
            chart.svg
        );
    }
    text += "</div>\n";
    for section in family {
        text += &figures(report, section);
    }
    text + "</section>\n"
}

fn figures(report: &Report, section: &Section) -> String {
    let cells = words::cells(section, report.baseline());
    let noisy = |number: usize| section.rows.get(number).is_some_and(|row| row.noisy);
    let table = table(&cells, |number| if noisy(number) { "noisy".to_owned() } else { String::new() });
    let remarks: String = words::remarks(section)
        .iter()
        .map(|remark| format!("<p class=\"remark\">{}</p>\n", escaped(remark)))
        .collect();
    format!(
        "<details open=\"open\"><summary>{} <small>{}</small></summary>\n{table}{remarks}</details>\n",
        escaped(&section.title),
        escaped(&words::rounds(report, section)),
    )
}

fn how_to_repeat(report: &Report) -> String {
    let machine = &report.machine;
    let mut facts = vec![
        ("Command".to_owned(), format!("howdah bench {}", report.command.join(" "))),
        ("Seed of the order".to_owned(), report.seed.to_string()),
        ("Pool size".to_owned(), report.pool_size.to_string()),
        ("pgbench".to_owned(), format!("scale {}, {} queries", report.scale, report.mode)),
        (
            "Cores".to_owned(),
            if report.pinned { "poolers on cores of their own" } else { "shared by all" }.to_owned(),
        ),
        ("TCP".to_owned(), machine.tcp_congestion_control.clone()),
        ("Load before the run".to_owned(), machine.load_before.clone()),
    ];
    for (program, version) in &report.programs {
        facts.push((program.clone(), version.clone().unwrap_or_else(|| "it did not say".to_owned())));
    }
    if let Some(settings) = &report.postgres_settings {
        facts.push(("PostgreSQL's settings".to_owned(), settings.join(", ")));
    }
    let facts: String = facts
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value)))
        .collect();
    let configurations: String = report
        .configurations
        .iter()
        .map(|(target, ini)| {
            format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escaped(target), escaped(ini))
        })
        .collect();
    format!(
        "<section>\n<h2>How to repeat it</h2>\n<dl>\n{facts}</dl>\n<h3>Configurations</h3>\n{configurations}</section>\n"
    )
}

#[cfg(test)]
mod tests;
