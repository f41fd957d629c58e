//! The report for a terminal.

use crate::plan::{Load, Plan};
use crate::summary::{NOISE_MAX, Row, Section, Spread};

/// The whole report.
pub fn report(plan: &Plan, sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let memory = matches!(section.load, Load::Memory { .. });
        let rounds = if memory { "once, on fresh processes".to_owned() } else { rounds(plan) };
        text += &format!("\n{} ({rounds})\n", section.load.title());
        text += &lines(&cells(section));
        for row in section.rows.iter().filter(|row| row.remark.is_some()) {
            text += &format!("  {}: {}\n", row.target, row.remark.as_deref().unwrap_or_default());
        }
    }
    text += &verdict(plan, sections);
    text
}

fn rounds(plan: &Plan) -> String {
    let plural = if plan.rounds == 1 { "" } else { "s" };
    format!("median of {} round{plural} of {} s, least-most in brackets", plan.rounds, plan.seconds)
}

/// What the machine allows to be said.
fn verdict(plan: &Plan, sections: &[Section]) -> String {
    let rows = || sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section.load, row)));
    let noisy: Vec<_> = rows().filter(|(_, row)| row.is_noisy()).collect();
    let told = rows().filter(|(_, row)| row.width().is_some()).count();
    let mut text = String::from(
        "\nCPU is the pooler's own, user and system, all threads. Ratios are paired within each round.\n",
    );
    if plan.rounds < 3 {
        text += "Fewer than 3 rounds tell nothing about noise.\n";
    }
    let worst = noisy.iter().max_by(|(_, one), (_, two)| {
        f64::total_cmp(&one.width().unwrap_or(0.0), &two.width().unwrap_or(0.0))
    });
    if let Some((load, row)) = worst {
        text += &format!(
            "~ The machine was too noisy to tell: in {} of {told} rows the rounds lie more than {:.0}% apart \
             (worst: {} with {}, {:.0}%). Take from those rows only ratios whose whole range lies on one side of 1; by \
             chance alone one comparison in {} does.\n",
            noisy.len(),
            NOISE_MAX * 100.0,
            row.target,
            load.title(),
            row.width().unwrap_or(0.0) * 100.0,
            1u64 << plan.rounds.saturating_sub(1).min(62),
        );
    }
    text
}

/// A column: its heading, and its cell in a row.
type Column = (&'static str, fn(&Row) -> String);

fn columns() -> [Column; 12] {
    [
        ("target", |row| row.target.to_string()),
        ("tps", |row| marked(ranged(row.tps, 1.0, 0), row.cpu.is_none() && row.is_noisy())),
        ("p50 ms", |row| plain(row.p50, 1e3, 3)),
        ("p99 ms", |row| plain(row.p99, 1e3, 3)),
        ("connect ms", |row| plain(row.connect, 1e3, 3)),
        ("CPU s/1000", |row| marked(ranged(row.cpu, 1.0, 4), row.cpu.is_some() && row.is_noisy())),
        ("CPU / pgbouncer", |row| ranged(row.cpu_ratio, 1.0, 2)),
        ("tps / pgbouncer", |row| ranged(row.tps_ratio, 1.0, 2)),
        ("B/client", |row| plain(row.bytes_per_client, 1.0, 0)),
        ("peak MiB", |row| {
            row.rss_peak_kib.map_or(String::new(), |kib| format!("{:.1}", kib as f64 / 1_024.0))
        }),
        ("servers", |row| row.servers_max.map_or(String::new(), |count| count.to_string())),
        ("errors", |row| row.errors.to_string()),
    ]
}

/// The section as a table of words; columns without any are left out.
fn cells(section: &Section) -> Vec<Vec<String>> {
    let shown: Vec<_> = columns()
        .into_iter()
        .map(|(heading, cell)| (heading, section.rows.iter().map(cell).collect::<Vec<_>>()))
        .filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()))
        .collect();
    let mut table = vec![shown.iter().map(|(heading, _)| (*heading).to_owned()).collect::<Vec<_>>()];
    table.extend(
        (0..section.rows.len()).map(|row| shown.iter().map(|(_, cells)| cells[row].clone()).collect()),
    );
    table
}

fn lines(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let widths: Vec<_> = (0..columns)
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
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

fn ranged(spread: Option<Spread>, factor: f64, digits: usize) -> String {
    let Some(Spread { median, min, max }) = spread else { return String::new() };
    let (median, min, max) = (median * factor, min * factor, max * factor);
    if min == max {
        return format!("{median:.digits$}");
    }
    format!("{median:.digits$} [{min:.digits$}-{max:.digits$}]")
}

#[cfg(test)]
mod tests;
