//! What came out: cells by kind, those that fail with their reasons.

use std::collections::BTreeMap;

use super::cell::{Cell, Mode};
use super::not_yet;

/// A cell and how it went.
pub struct Outcome {
    pub cell: Cell,
    pub result: Result<(), String>,
}

/// Prints what is not there yet; an error says all that is not as it should be.
pub fn judge(outcomes: &[Outcome]) -> Result<(), String> {
    let mut faults: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
    let mut known: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut by_chance = Vec::new();
    for Outcome { cell, result } in outcomes {
        // What is missing is missing in transaction mode.
        let reason = if cell.mode == Mode::Transaction { not_yet::reason(*cell) } else { None };
        match (result, reason) {
            (Ok(()), None) => {}
            (Ok(()), Some((why, true))) => by_chance.push((cell.kind.name, why)),
            (Ok(()), Some(_)) => {
                faults
                    .entry(cell.kind.name)
                    .or_default()
                    .push((name(*cell), "it holds: take it off NOT_YET"));
            }
            (Err(_), Some((why, _))) => known.entry((cell.kind.name, why)).or_default().push(name(*cell)),
            (Err(why), None) => faults.entry(cell.kind.name).or_default().push((name(*cell), why)),
        }
    }
    for (kind, why) in by_chance {
        if !known.contains_key(&(kind, why)) {
            faults.entry(kind).or_default().push(("all".into(), "they hold: take it off NOT_YET"));
        }
    }
    for ((kind, why), cells) in &known {
        println!("not yet: {kind}: {why}: {}", cells.join(" "));
    }
    println!("{} cells, {} not yet", outcomes.len(), known.values().map(Vec::len).sum::<usize>());
    if faults.is_empty() { Ok(()) } else { Err(all(&faults)) }
}

/// As in [`not_yet::NotYet::cells`].
fn name(cell: Cell) -> String {
    let mode = if cell.mode == Mode::Session { " in session mode" } else { "" };
    format!("{:?}/{:?}{mode}", cell.ending, cell.protocol)
}

fn all(faults: &BTreeMap<&str, Vec<(String, &str)>>) -> String {
    let mut text = String::new();
    for (kind, cells) in faults {
        let names: Vec<&str> = cells.iter().map(|(cell, _)| cell.as_str()).collect();
        text.push_str(&format!("\n{kind}: {}\n", names.join(" ")));
        let mut last = "";
        for (cell, why) in cells.iter().filter(|(_, why)| !why.is_empty()) {
            // The same words are said once.
            if *why != last {
                text.push_str(&format!("  {cell}: {why}\n"));
            }
            last = *why;
        }
    }
    let count: usize = faults.values().map(Vec::len).sum();
    format!("{text}\n{count} cells are not as they should be")
}
