//! The report as words: the cells that every form of it shares, and their lines for a terminal.

use crate::report::{RELAY, Report, Statement};
use crate::summary::{self, Row, Section, Spread, Verdict};

/// Lines longer than this are folded: a terminal would break them in the middle of a figure.
const WIDTH_MAX: usize = 132;

/// The whole report for a terminal.
pub fn report(report: &Report) -> String {
    let sections = summary::sections(report);
    let mut text = String::new();
    for section in &sections {
        text += &format!("\n{} ({})\n", section.title, rounds(report, section));
        for block in folded(&cells(section, report.baseline()), WIDTH_MAX) {
            text += &lines(&block);
        }
        for remark in remarks(section) {
            text += &format!("  {remark}\n");
        }
    }
    text.push('\n');
    for sentence in verdict(report, &sections) {
        text += &format!("{sentence}\n");
    }
    text
}

/// How often a section was measured, and how long.
pub fn rounds(report: &Report, section: &Section) -> String {
    match section.rounds() {
        0 => "no figures".to_owned(),
        1 if report.rounds != 1 => "once, on fresh processes".to_owned(),
        1 => format!("1 round of {} s", report.seconds),
        rounds => format!("median of {rounds} rounds of {} s, least-most in brackets", report.seconds),
    }
}

/// What is to be said below a section's table.
pub fn remarks(section: &Section) -> Vec<String> {
    let remark = |row: &Row| {
        let counts = row.errors_by_state.iter().map(|(state, count)| format!("{state}: {count}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let words = row.remark.clone().unwrap_or_default();
        match (counts.is_empty(), words.is_empty()) {
            (true, true) => None,
            (true, false) => Some(format!("{}: {words}", row.target)),
            (false, true) => Some(format!("{}: {counts}", row.target)),
            (false, false) => Some(format!("{}: {counts}; first: {words}", row.target)),
        }
    };
    section.rows.iter().flat_map(|row| [remark(row), waits(row)]).flatten().collect()
}

/// Where the clients of a transaction of many statements wait.
fn waits(row: &Row) -> Option<String> {
    const SHOWN: usize = 3;
    let mut slowest = row.statements.clone();
    slowest.sort_by(|one, two| two.mean_s.total_cmp(&one.mean_s));
    let words = |one: &Statement| {
        let text: String = one.statement.chars().take(40).collect();
        format!("{text} {:.1} ms", one.mean_s * 1e3)
    };
    let slowest: Vec<_> = slowest.iter().take(SHOWN).map(words).collect();
    let deviation = row.deviation_s.map_or(String::new(), |spread| {
        format!("; latency's standard deviation {:.1} ms", spread.median * 1e3)
    });
    (!slowest.is_empty()).then(|| format!("{}: waits most at {}{deviation}", row.target, slowest.join(", ")))
}

/// What the machine allows to be said, in sentences.
pub fn verdict(report: &Report, sections: &[Section]) -> Vec<String> {
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let mut sentences = report.notes.clone();
    if rows().any(|row| row.cpu_s_per_1000.is_some()) {
        sentences.push(
            "CPU is the target's own, user and system, all threads. Ratios are paired within each round."
                .into(),
        );
    }
    sentences.extend(summary::machine_noise(sections).sentences());
    let baseline = report.baseline();
    if !rows().any(|row| row.target == baseline && row.is_measured()) {
        sentences.push(format!("No ratios to {baseline}: it has no figures in this run."));
    } else if rows().any(|row| matches!(row.verdict, Some(Verdict::Cheaper | Verdict::Dearer))) {
        sentences.push(format!(
            "Cheaper and dearer mean: than {baseline} in every round; by chance alone one pair in {} is.",
            1u64 << report.rounds.saturating_sub(1).min(62),
        ));
    }
    sentences
}

/// A column: its heading, and its cell in a row.
type Column = (String, fn(&Row) -> String);

fn columns(baseline: &str) -> Vec<Column> {
    let column = |heading: &str, cell: fn(&Row) -> String| (heading.to_owned(), cell);
    let to_relay: fn(&Row) -> String = |row| plain(row.cpu_to_relay, 1.0, 2);
    let mut columns = vec![
        column("target", |row| row.target.clone()),
        column("tps", |row| marked(ranged(row.tps, 1.0, 0), row.cpu_s_per_1000.is_none() && row.noisy)),
        column("p50 ms", |row| plain(row.p50_s, 1e3, 3)),
        column("p90 ms", |row| plain(row.p90_s, 1e3, 3)),
        column("p99 ms", |row| plain(row.p99_s, 1e3, 3)),
        column("p99.9 ms", |row| plain(row.p999_s, 1e3, 3)),
        // Percentiles say more; a load that has none has a mean perhaps.
        column("mean ms", |row| plain(row.mean_s.filter(|_| row.p50_s.is_none()), 1e3, 3)),
        column("connect ms", |row| plain(row.connect_s, 1e3, 3)),
        column("all in ms", |row| plain(row.connect_all_s, 1e3, 1)),
        column("MB/s", |row| ranged(row.bytes_per_second, 1e-6, 0)),
        column("CPU s/1000", |row| {
            marked(ranged(row.cpu_s_per_1000, 1.0, 4), row.cpu_s_per_1000.is_some() && row.noisy)
        }),
    ];
    if baseline != RELAY {
        columns.push(column("CPU / relay", to_relay));
    }
    columns.extend([
        (format!("CPU / {baseline}"), (|row| ranged(row.cpu_to_baseline, 1.0, 2)) as fn(&Row) -> String),
        (format!("tps / {baseline}"), |row| ranged(row.tps_to_baseline, 1.0, 2)),
        column("CPU is", |row| row.verdict.map_or("", Verdict::words).to_owned()),
        column("B/client", |row| plain(row.bytes_per_client, 1.0, 0)),
        column("peak MiB", |row| {
            row.rss_peak_kib.map_or(String::new(), |kib| format!("{:.1}", kib as f64 / 1_024.0))
        }),
        column("servers", |row| row.servers_max.map_or(String::new(), |count| count.to_string())),
        column("spread", |row| {
            row.width().map_or(String::new(), |width| marked(format!("{:.0}%", width * 100.0), row.noisy))
        }),
        column("errors", |row| row.errors.to_string()),
    ]);
    columns
}

/// The section as a table of words under a line of headings; columns without any are left out.
pub fn cells(section: &Section, baseline: &str) -> Vec<Vec<String>> {
    let shown: Vec<_> = columns(baseline)
        .into_iter()
        .map(|(heading, cell)| (heading, section.rows.iter().map(cell).collect::<Vec<_>>()))
        .filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()))
        .collect();
    let mut table = vec![shown.iter().map(|(heading, _)| heading.clone()).collect::<Vec<_>>()];
    table.extend(
        (0..section.rows.len()).map(|row| shown.iter().map(|(_, cells)| cells[row].clone()).collect()),
    );
    table
}

const INDENT: usize = 2;

fn widths(table: &[Vec<String>]) -> Vec<usize> {
    let columns = table.first().map_or(0, Vec::len);
    let longest = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    (0..columns).map(longest).collect()
}

/// The table cut between columns into tables of at most that width, each with the first column.
fn folded(table: &[Vec<String>], width_max: usize) -> Vec<Vec<Vec<String>>> {
    let widths = widths(table);
    let Some(&first) = widths.first() else { return Vec::new() };
    let mut blocks = vec![vec![0]];
    let mut width = INDENT + first;
    for (column, cell) in widths.iter().enumerate().skip(1) {
        if width + INDENT + cell > width_max && blocks.last().is_some_and(|block| block.len() > 1) {
            blocks.push(vec![0]);
            width = INDENT + first;
        }
        width += INDENT + cell;
        blocks.last_mut().into_iter().for_each(|block| block.push(column));
    }
    let cut = |block: &Vec<usize>| {
        table.iter().map(|row| block.iter().map(|&column| row[column].clone()).collect()).collect()
    };
    blocks.iter().map(cut).collect()
}

/// A table as lines: words to the left, figures to the right.
pub fn lines(table: &[Vec<String>]) -> String {
    let widths = widths(table);
    let mut text = String::new();
    for row in table {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text += &if column == 0 { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn marked(cell: String, noisy: bool) -> String {
    if noisy { cell + " ~" } else { cell }
}

fn plain(spread: Option<Spread>, factor: f64, digits: usize) -> String {
    spread.map_or(String::new(), |spread| format!("{:.digits$}", spread.median * factor))
}

/// A median with its range in brackets, unless that has no width.
pub fn ranged(spread: Option<Spread>, factor: f64, digits: usize) -> String {
    let Some(Spread { median, min, max }) = spread else { return String::new() };
    let (median, min, max) = (median * factor, min * factor, max * factor);
    if min == max {
        return format!("{median:.digits$}");
    }
    format!("{median:.digits$} [{min:.digits$}-{max:.digits$}]")
}

#[cfg(test)]
mod tests;
