//! What the rounds and the machine allow to be said: of a row against the baseline, and of a whole run.

use super::{NOISE_MAX, Section};
use serde::Serialize;

/// What may be said of a ratio, from the rounds it was measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Below 1 in every round.
    Cheaper,
    /// Above 1 in every round.
    Dearer,
    /// As good as 1 in every round.
    Even,
    /// On both sides of 1.
    TooNoisy,
    /// Too few rounds to have an opinion.
    TooFewRounds,
}

/// A ratio this near to 1 is 1 to anyone who has to choose a pooler.
const EVEN: f64 = 0.03;
/// By chance alone, one pair in 2^(rounds - 1) has all its rounds on one side: a third round at least.
const ROUNDS_MIN: usize = 3;

impl Verdict {
    /// Of a ratio in each round.
    pub fn of(ratios: &[f64]) -> Option<Verdict> {
        if ratios.is_empty() {
            return None;
        }
        Some(match ratios {
            _ if ratios.len() < ROUNDS_MIN => Verdict::TooFewRounds,
            _ if ratios.iter().all(|ratio| (ratio - 1.0).abs() <= EVEN) => Verdict::Even,
            _ if ratios.iter().all(|&ratio| ratio < 1.0) => Verdict::Cheaper,
            _ if ratios.iter().all(|&ratio| ratio > 1.0) => Verdict::Dearer,
            _ => Verdict::TooNoisy,
        })
    }

    /// For a table.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Cheaper => "cheaper",
            Verdict::Dearer => "dearer",
            Verdict::Even => "even",
            Verdict::TooNoisy => "cannot tell",
            Verdict::TooFewRounds => "few rounds",
        }
    }
}

/// How well the machine repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    /// Differences of a few percent can be seen.
    Quiet,
    /// Only larger ones can.
    Uneasy,
    /// Nothing can be claimed but what every round agrees on.
    Noisy,
    /// It was not repeated often enough.
    Unknown,
}

/// The noise of a run, told from targets that have no pooler's code in them where there are such.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineNoise {
    /// In one word.
    pub steadiness: Steadiness,
    /// How far the rounds of a typical row lie apart, as a share.
    pub typical: f64,
    /// How far those of the worst do.
    pub worst: f64,
    /// Which that is.
    pub worst_row: String,
    /// Rows it was told from.
    pub rows: usize,
    /// Whether they are all relay or direct; else they are whatever was run.
    pub by_controls: bool,
    /// Rows of any target whose rounds lie too far apart.
    pub noisy_rows: usize,
    /// Rows of any target that were repeated.
    pub told_rows: usize,
}

/// Up to here a machine repeats itself well.
const QUIET_MAX: f64 = 0.05;

/// Tells the machine's noise from a run.
pub fn machine_noise(sections: &[Section]) -> MachineNoise {
    let rows: Vec<_> = sections
        .iter()
        .flat_map(|section| section.rows.iter().map(move |row| (section, row)))
        .filter_map(|(section, row)| Some((section, row, row.width_of_all()?)))
        .collect();
    let controls: Vec<_> = rows.iter().filter(|(_, row, _)| row.is_control()).collect();
    let by_controls = !controls.is_empty();
    let mut told = if by_controls { controls } else { rows.iter().collect() };
    told.sort_by(|(_, _, one), (_, _, two)| one.total_cmp(two));
    let typical = told.get(told.len() / 2).map_or(0.0, |(_, _, width)| *width);
    let worst = told.last();
    // Two rounds may agree by luck, in a row; hardly in all rows.
    let enough = sections.iter().map(Section::rounds).max().unwrap_or(0) >= ROUNDS_MIN;
    let steadiness = match typical {
        _ if told.is_empty() || !enough => Steadiness::Unknown,
        _ if typical <= QUIET_MAX => Steadiness::Quiet,
        _ if typical <= NOISE_MAX => Steadiness::Uneasy,
        _ => Steadiness::Noisy,
    };
    MachineNoise {
        steadiness,
        typical,
        worst: worst.map_or(0.0, |(_, _, width)| *width),
        worst_row: worst
            .map_or(String::new(), |(section, row, _)| format!("{} with {}", row.target, section.title)),
        rows: told.len(),
        by_controls,
        noisy_rows: rows.iter().filter(|(_, row, _)| row.noisy).count(),
        told_rows: rows.len(),
    }
}

impl MachineNoise {
    /// What it means, as sentences.
    pub fn sentences(&self) -> Vec<String> {
        if self.steadiness == Steadiness::Unknown {
            return vec![
                "Fewer than 3 rounds tell nothing about noise: no difference here is proven.".to_owned(),
            ];
        }
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let whose = if self.by_controls {
            "relay and direct, which no pooler's code is in,"
        } else {
            "the targets (neither relay nor direct was run)"
        };
        let word = match self.steadiness {
            Steadiness::Quiet => "was quiet",
            Steadiness::Uneasy => "was uneasy",
            _ => "was too noisy to tell",
        };
        let mut sentences = vec![format!(
            "The machine {word}: the rounds of {whose} lie {} apart in the middle of {} rows, {} at worst ({}).",
            percent(self.typical),
            self.rows,
            percent(self.worst),
            self.worst_row,
        )];
        if self.noisy_rows > 0 {
            sentences.push(format!(
                "~ In {} of {} rows the rounds lie more than {} apart: take from those only ratios whose whole range \
                 lies on one side of 1.",
                self.noisy_rows,
                self.told_rows,
                percent(NOISE_MAX),
            ));
        }
        sentences
    }
}
